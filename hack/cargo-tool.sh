#!/usr/bin/env bash
#
# Prints where a program of the crates' registry is, in exactly this version:
# on the PATH, in the cache, or built into it now.
#
#   hack/cargo-tool.sh cargo-deny 0.20.2
#
# Without optimisation: building one takes longer than all it is asked to do.

set -euo pipefail

readonly NAME=${1:?is missing: the crate} VERSION=${2:?is missing: its version}
CACHE=${CATAMARAN_TOOLS_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set; set CATAMARAN_TOOLS_CACHE}/.cache}/catamaran/tools}
readonly CACHE PLACE=$CACHE/$NAME-$VERSION

fits() { # program
    [[ $("$1" --version 2>/dev/null) == "$NAME $VERSION" ]]
}

if fits "$NAME"; then
    command -v "$NAME"
    exit
fi
mkdir -p "$CACHE"
exec {lock}>"$CACHE/$NAME.lock"
flock "$lock"
# Whole or not there: cargo moves what it has built to its place.
if [[ ! -x $PLACE/bin/$NAME ]]; then
    printf 'cargo-tool: building %s %s into %s …\n' "$NAME" "$VERSION" "$PLACE" >&2
    CARGO_PROFILE_DEV_DEBUG=0 cargo install "$NAME" --version "$VERSION" --locked --debug --quiet \
        --root "$PLACE" --target-dir "$PLACE/target" >&2
    rm -rf "$PLACE/target"
fi
printf '%s\n' "$PLACE/bin/$NAME"
