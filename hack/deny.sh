#!/usr/bin/env bash
#
# Checks what the project depends on, the fuzz targets included, with a pinned
# cargo-deny and the rules of deny.toml. It builds cargo-deny where that version
# is missing, and fails where it cannot.
#
#   hack/deny.sh              licences, bans, sources: needs no network
#   hack/deny.sh advisories   known vulnerabilities, yanked and unmaintained crates
#
# The database of advisories is fetched with git from where cargo-deny expects
# it, or from the URL or folder in $ADVISORY_DB (a mirror of the same
# repository). Exit status 3: the database could not be had, so nothing was
# checked. All that people read goes to stderr.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VERSION=0.20.2
readonly UPSTREAM=https://github.com/RustSec/advisory-db
readonly NOT_CHECKED=3

say() { printf 'deny: %s\n' "$*" >&2; }

# Both workspaces: each has a lock file of its own.
check() { # program checks...
    local program=$1 manifest
    shift
    for manifest in Cargo.toml fuzz/Cargo.toml; do
        say "$manifest: $*"
        "$program" --locked --workspace --manifest-path "$manifest" --config deny.toml check --hide-inclusion-graph "$@" ||
            return 1
    done
}

# git takes the mirror wherever the other address is asked for.
use_mirror() { # url-or-folder
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.$1.insteadOf" GIT_CONFIG_VALUE_0=$UPSTREAM
}

main() {
    local program said
    program=$(hack/cargo-tool.sh cargo-deny "$VERSION") || { say "cargo-deny $VERSION could not be built" && exit 1; }
    case ${1:-} in
    '') check "$program" bans licenses sources ;;
    advisories)
        [[ -z ${ADVISORY_DB:-} ]] || use_mirror "$ADVISORY_DB"
        if ! said=$("$program" fetch db 2>&1); then
            say "$said"
            say "NOT CHECKED: the database of advisories cannot be fetched; \$ADVISORY_DB names a mirror of it"
            exit "$NOT_CHECKED"
        fi
        check "$program" advisories
        ;;
    *) say "unknown: $1" && exit 2 ;;
    esac
}

main "$@"
