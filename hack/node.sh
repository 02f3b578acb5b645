#!/usr/bin/env bash
#
# Debian's packages for a real node (crates/localcluster), for building images
# and for tests that need servers: says which, checks for them, installs them.
# The list itself is hack/node-packages.txt.

set -euo pipefail

HERE=$(CDPATH="" cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly HERE

usage() {
    cat <<'END'
usage: hack/node.sh packages|check|install [node|image|server]

  packages  print the packages' names
  check     exit 0 if a real node is possible here; else say in one line what
            is missing, and exit 1
  install   install those that are missing (as root, or by sudo); all, or those
            of one use
END
}

# Programs of the administrator are not on everyone's PATH.
has() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; }

# Lines "use package", of all packages or of those that lack a program.
list() { # all|missing
    local use package programs program
    while read -r use package programs; do
        [[ -n $use && $use != \#* ]] || continue
        if [[ $1 == missing ]]; then
            for program in $programs; do
                has "$program" || break
                program=
            done
            [[ -n $program ]] || continue
        fi
        printf '%s %s\n' "$use" "$package"
    done <"$HERE/node-packages.txt"
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo --non-interactive "$@"; fi
}

check() {
    local lacking=() missing
    ((EUID == 0)) || lacking+=("root")
    missing=$(list missing | sed -n 's/^node //p' | paste -sd' ')
    [[ -z $missing ]] || lacking+=("Debian's packages $missing")
    if [[ -z $missing ]] && ((EUID == 0)) &&
        ! unshare --mount --pid --net --ipc --uts --fork --mount-proc true 2>/dev/null; then
        lacking+=("the right to make namespaces")
    fi
    ((${#lacking[@]})) || return 0
    printf 'no real node is possible here: it needs %s\n' "$(printf '%s, and ' "${lacking[@]}" | sed 's/, and $//')"
    return 1
}

install() {
    local missing
    mapfile -t missing < <(list missing | sed -n "s/^${1:-[a-z]*} //p")
    ((${#missing[@]})) || return 0
    echo "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update --quiet --quiet
    as_root apt-get install --yes --quiet --quiet --no-install-recommends "${missing[@]}"
}

case ${1:-} in
packages) list all | cut -d' ' -f2 ;;
check) check ;;
install) install "${2:-}" ;;
-h | --help) usage ;;
*) usage >&2 && exit 2 ;;
esac
