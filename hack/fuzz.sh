#!/usr/bin/env bash
#
# Runs the fuzz targets of fuzz/, one after the other or those named:
#
#   FUZZ_TIME=60 hack/fuzz.sh [TARGET...]
#
# FUZZ_TIME    seconds for each target (default 60)
# FUZZ_CORPUS  where inputs that reach new code are kept (default: below the
#              target folder)
#
# An input that breaks an assertion is left in fuzz/artifacts/; its path is told.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}/fuzz")
corpus=$(realpath -m "${FUZZ_CORPUS:-$target_dir/corpus}")
seeds=$target_dir/seeds

cargo fuzz --version >/dev/null 2>&1 || {
    echo "fuzz: cargo-fuzz is not installed (cargo install --locked cargo-fuzz)" >&2
    exit 1
}
cargo +nightly --version >/dev/null 2>&1 || {
    echo "fuzz: a nightly toolchain is needed (rustup toolchain install nightly --profile minimal)" >&2
    exit 1
}

# The longest input worth trying: what needs more is a matter of budgets, which
# tests of the crates are about.
max_length() {
    case $1 in
        strvals) echo 256 ;;
        render_generated | yaml_write | archive_built) echo 2048 ;;
        *) echo 4096 ;;
    esac
}

run() {
    local target=$1 options=()
    mkdir -p "$corpus/$target" "$seeds/$target"
    [[ ! -e $seeds/$target.dict ]] || options+=(-dict="$seeds/$target.dict")
    # What is made of bytes needs many of them from the start.
    [[ ! $target =~ ^(render_generated|yaml_write|archive_built)$ ]] || options+=(-len_control=0)
    # No sanitizer: our code has no unsafe blocks, and all checks of Rust are on.
    cargo +nightly fuzz run --sanitizer none --target-dir "$target_dir" "$target" \
        "$corpus/$target" "$seeds/$target" -- \
        -max_total_time="${FUZZ_TIME:-60}" -timeout=10 -rss_limit_mb=1024 \
        -max_len="$(max_length "$target")" -print_final_stats=1 "${options[@]}"
}

cargo run --quiet --manifest-path fuzz/seeds/Cargo.toml --target-dir "$target_dir" -- "$seeds"
if (($#)); then targets=("$@"); else mapfile -t targets < <(cargo +nightly fuzz list); fi
for target in "${targets[@]}"; do
    run "$target"
done
