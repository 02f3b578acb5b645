#!/usr/bin/env bash
#
# Provides the programs the integration tests and `make dev` run against:
# a real Kubernetes control plane, simulated nodes, and two real Helms.
# What it promises is in hack/README.md; `hack/tools.sh --help` is short.
#
# All that people read goes to stderr, all that machines read to stdout, so
# that `bin=$(hack/tools.sh path)` works while a build reports its progress.

set -euo pipefail

HERE=$(CDPATH="" cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MODULES=$HERE/tools
CACHE=${CATAMARAN_TOOLS_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set; set CATAMARAN_TOOLS_CACHE}/.cache}/catamaran/tools}
readonly HERE MODULES CACHE

# How long a program may take to tell its version. One that hangs (a wrapper
# waiting for a network, say) must not hang us.
readonly PROBE_SECONDS=20

# name | family = folder under hack/tools or hack/oracle | module whose version is the pin
# | package | which versions fit besides the pinned one: `minor` = every patch
# of the pinned minor, `exact` = none | group: `node` only with --node, `oracle`
# only with --oracle.
readonly TABLE='
etcd                    etcd       go.etcd.io/etcd/server/v3 .                                              minor base
kube-apiserver          kubernetes k8s.io/kubernetes         k8s.io/kubernetes/cmd/kube-apiserver          minor base
kube-controller-manager kubernetes k8s.io/kubernetes         k8s.io/kubernetes/cmd/kube-controller-manager minor base
kube-scheduler          kubernetes k8s.io/kubernetes         k8s.io/kubernetes/cmd/kube-scheduler          minor base
kubectl                 kubernetes k8s.io/kubernetes         k8s.io/kubernetes/cmd/kubectl                 minor base
kwok                    kwok       sigs.k8s.io/kwok          sigs.k8s.io/kwok/cmd/kwok                     minor base
helm4                   helm4      helm.sh/helm/v4           helm.sh/helm/v4/cmd/helm                      exact base
helm3                   helm3      helm.sh/helm/v3           helm.sh/helm/v3/cmd/helm                      minor base
kubelet                 kubernetes k8s.io/kubernetes         k8s.io/kubernetes/cmd/kubelet                 minor node
kube-proxy              kubernetes k8s.io/kubernetes         k8s.io/kubernetes/cmd/kube-proxy              minor node
oracle4                 oracle4    helm.sh/helm/v4           .                                             exact oracle
oracle3                 oracle3    helm.sh/helm/v3           .                                             exact oracle
'

# The names above that are wanted, in order, and what is known of each.
NAMES=()
declare -A FAMILY PACKAGE FIT VERSION CACHED FOUND ORIGIN

# The running `go build` and its folder, for the trap.
CHILD=
SCRATCH=

say() { printf '%s\n' "$*" >&2; }

die() {
    say "tools: $*"
    exit 1
}

usage() {
    cat <<'END'
usage: hack/tools.sh [--node] [--oracle] [path|env]

  (nothing)  find or build every tool and print a table of them
  path       the same, and print only the folder that holds them all
  env        the same, and print lines for a shell to eval
  --node     also kubelet and kube-proxy, which only a real node needs
  --oracle   also both Helms' libraries as programs, for `make conformance`

$KUBEBUILDER_ASSETS is searched first, then the cache
($CATAMARAN_TOOLS_CACHE, else ~/.cache/catamaran/tools), then $PATH; what is
not there in a fitting version is built with Go. More in hack/README.md.
END
}

# --- what is wanted -------------------------------------------------------

# The folder of a family's Go module: of a pinned tool, or of an oracle, which
# is a program of ours around a pinned library.
module_dir() { # family
    case $1 in
    oracle*) printf '%s' "$HERE/oracle/$1" ;;
    *) printf '%s' "$MODULES/$1" ;;
    esac
}

# The version a family's go.mod requires of a module. go.mod is the only place
# that knows versions; everything here is derived from it.
required_version() { # family module
    awk -v module="$2" '
        $1 == "require" && $2 == module { print $3; exit }
        $1 == module && $2 ~ /^v/       { print $2; exit }
    ' "$(module_dir "$1")/go.mod"
}

load_table() { # groups...
    local name family module package fit group
    while read -r name family module package fit group; do
        [[ -n $name && " $* " == *" $group "* ]] || continue
        NAMES+=("$name")
        FAMILY[$name]=$family
        PACKAGE[$name]=$package
        FIT[$name]=$fit
        VERSION[$name]=$(required_version "$family" "$module")
        [[ -n ${VERSION[$name]} ]] || die "$(module_dir "$family")/go.mod does not require $module"
        CACHED[$name]=$CACHE/$name-${VERSION[$name]}-$(build_key "$family" "${VERSION[$name]}")/$name
    done <<<"$TABLE"
}

# The linker's flags: the version stamps each project's own release build sets
# where its sources do not carry them. The commit is left empty, because a
# module does not know it and an invented one would be a lie.
ldflags() { # family version
    local family=$1 version=$2 package minor flags='-s -w'
    case $family in
    kubernetes)
        for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
            flags+=" -X $package.gitVersion=$version"
            flags+=" -X $package.gitMajor=$(cut -d. -f1 <<<"${version#v}")"
            flags+=" -X $package.gitMinor=$(cut -d. -f2 <<<"$version")"
            flags+=" -X $package.gitCommit= -X $package.gitTreeState=clean"
        done
        ;;
    kwok)
        flags+=" -X sigs.k8s.io/kwok/pkg/consts.Version=$version"
        ;;
    helm3 | oracle3)
        # Unlike helm 4, helm 3 does not read the Kubernetes version it
        # renders for by default from its build information.
        minor=$(required_version helm3 k8s.io/client-go | cut -d. -f2)
        for package in helm.sh/helm/v3/pkg/lint/rules helm.sh/helm/v3/pkg/chartutil; do
            flags+=" -X $package.k8sVersionMajor=1 -X $package.k8sVersionMinor=$minor"
        done
        flags+=" -X helm.sh/helm/v3/internal/version.version=$version"
        flags+=" -X helm.sh/helm/v3/internal/version.gitTreeState=clean"
        ;;
    helm4 | oracle4)
        flags+=" -X helm.sh/helm/v4/internal/version.version=$version"
        flags+=" -X helm.sh/helm/v4/internal/version.gitTreeState=clean"
        ;;
    esac
    printf '%s' "$flags"
}

# Everything that decides what is built, in a dozen characters: a changed pin,
# sum, source or flag gets a folder of its own, so nothing cached goes stale.
build_key() { # family version
    local dir
    dir=$(module_dir "$1")
    {
        cat "$dir"/go.mod "$dir"/go.sum "$dir"/*.go
        case $1 in oracle*) cat "$HERE"/oracle/lines/* ;; esac
        ldflags "$1" "$2"
        uname -sm # a home directory may be shared by machines
    } | sha256sum | cut -c1-12
}

# --- what is there --------------------------------------------------------

# The version a program says it has, as vX.Y.Z…; nothing if it does not.
probe() { # name file
    local args=(--version)
    case $1 in
    kubectl) args=(version --client) ;;
    helm3 | helm4) args=(version --template '{{.Version}}') ;;
    esac
    timeout -k 1 "$PROBE_SECONDS" "$2" "${args[@]}" </dev/null 2>/dev/null |
        grep -oEm1 'v?[0-9]+\.[0-9]+\.[0-9]+[^[:space:]]*' | head -n1 | sed 's/^v*/v/' || true
}

# Whether a version will do. A build suffix (v1.36.3+vendor1) does, a
# pre-release or anything else behind a hyphen does not.
fits() { # name version
    local pinned=${VERSION[$1]} version=${2%%+*}
    case ${FIT[$1]} in
    exact) [[ $version == "$pinned" ]] ;;
    minor) [[ ${version%.*} == "${pinned%.*}" && ${version##*.} =~ ^[0-9]+$ ]] ;;
    esac
}

# Takes a program that was there before us, if it fits; says so if it does not.
# Links are followed, so that a later change of the link changes our folder too.
adopt() { # name file origin
    local version file
    file=$(realpath -e -- "$2" 2>/dev/null) && [[ -f $file && -x $file ]] || return 1
    version=$(probe "$1" "$file")
    if [[ -z $version ]]; then
        say "tools: passing over $2: it does not tell its version"
    elif ! fits "$1" "$version"; then
        say "tools: passing over $2: it is $version, wanted is $(wanted "$1")"
    else
        FOUND[$1]=$file VERSION[$1]=$version ORIGIN[$1]=$3
        return 0
    fi
    return 1
}

wanted() { # name
    case ${FIT[$1]} in
    exact) printf '%s' "${VERSION[$1]}" ;;
    minor) printf '%s.x' "${VERSION[$1]%.*}" ;;
    esac
}

# The file names a tool may go by where others have put it.
aliases() { # name
    printf '%s\n' "$1"
    case $1 in helm3 | helm4) printf 'helm\n' ;; esac
}

find_in_assets() { # name
    local alias
    [[ -n ${KUBEBUILDER_ASSETS:-} ]] || return 1
    for alias in $(aliases "$1"); do
        [[ -e $KUBEBUILDER_ASSETS/$alias ]] || continue
        adopt "$1" "$KUBEBUILDER_ASSETS/$alias" KUBEBUILDER_ASSETS && return 0
    done
    return 1
}

# No probe here: nothing gets to this place before it has answered one.
find_in_cache() { # name
    [[ -x ${CACHED[$1]} ]] || return 1
    FOUND[$1]=${CACHED[$1]} ORIGIN[$1]=cache
}

find_on_path() { # name
    local alias file real seen=:
    for alias in $(aliases "$1"); do
        while IFS= read -r file; do
            real=$(realpath -- "$file")
            # Our own folders may be on the PATH (`env` puts them there). What
            # they hold is of another pin, or the cache had had it.
            [[ $real != "$(realpath -m -- "$CACHE")"/* ]] || continue
            [[ $seen != *:"$real":* ]] || continue # /bin is often /usr/bin
            seen+=$real:
            adopt "$1" "$file" PATH && return 0
        done < <(type -aP "$alias")
    done
    return 1
}

# --- building -------------------------------------------------------------

# Go is asked inside the module: a Go that may fetch newer ones then answers
# with the version it would build with.
check_go() { # family
    local need have
    need=$(awk '$1 == "go" { print $2; exit }' "$(module_dir "$1")/go.mod")
    command -v go >/dev/null ||
        die "Go $need or newer is needed to build ${1}; install it, or put fitting binaries into \$KUBEBUILDER_ASSETS"
    have=$(cd "$(module_dir "$1")" && go env GOVERSION 2>/dev/null) || have=
    have=${have#go}
    [[ -n $have && $(printf '%s\n' "$need" "${have%% *}" | sort -V | head -n1) == "$need" ]] ||
        die "Go $need or newer is needed to build ${1}, and this one is ${have:-of an unknown version} ($(command -v go)); install a newer Go, or put fitting binaries into \$KUBEBUILDER_ASSETS"
}

cold_time() { # family
    case $1 in
    kubernetes) printf 'about 5 minutes when cold' ;;
    helm4 | oracle4) printf 'about 2 minutes when cold' ;;
    *) printf 'about 1 minute when cold' ;;
    esac
}

# Runs `go build` for all packages of a family that are missing: in one call,
# because they share most of what they are made of.
go_build() { # family version package...
    local family=$1 flags started=$SECONDS next=30 log=$CACHE/logs/$1.log
    flags=$(ldflags "$family" "$2")
    shift 2
    mkdir -p "$SCRATCH/out" "$SCRATCH/go"
    # Without cgo the result does not depend on a C compiler or libc, as in
    # the projects' own releases. A workspace file further up, or a GOOS left
    # in the environment, must not change what is built. Go's own scratch
    # files lie in ours, so that killing either leaves nothing behind. It gets
    # a process group of its own, so that its compilers can be stopped with it.
    (
        cd "$(module_dir "$family")"
        exec setsid env -u GOOS -u GOARCH CGO_ENABLED=0 GOWORK=off GOTMPDIR="$SCRATCH/go" \
            go build -mod=readonly -trimpath -buildvcs=false -ldflags "$flags" -o "$SCRATCH/out/" "$@"
    ) >"$log" 2>&1 </dev/null &
    CHILD=$!
    # In the background and polled, not waited for: a signal is acted upon at
    # once, and people see that something goes on.
    while kill -0 "$CHILD" 2>/dev/null; do
        sleep 1
        if ((SECONDS - started >= next)); then
            say "      … still building, $((SECONDS - started)) s"
            next=$((next + 30))
        fi
    done
    wait "$CHILD" || build_failed "$family" "$log"
    CHILD=
    say "      … done in $((SECONDS - started)) s"
}

build_failed() { # family log
    CHILD=
    say "tools: go build failed in $(module_dir "$1"); the end of $2:"
    tail -n 20 "$2" | sed 's/^/    /' >&2
    exit 1
}

# Moves a new binary to its place: only if it answers with the very version
# that was asked for, and by a rename, so that it is there whole or not at all.
install_built() { # name
    local name=$1 built version
    built=$SCRATCH/out/$(built_name "$name")
    version=$(probe "$name" "$built")
    [[ $version == "${VERSION[$name]}" ]] ||
        die "the $name just built says '$version' instead of '${VERSION[$name]}'; it was not installed"
    mkdir -p "$(dirname "${CACHED[$name]}")"
    sync "$built" # the name must not outlive the contents if the power fails
    mv -f "$built" "${CACHED[$name]}"
    FOUND[$name]=${CACHED[$name]} ORIGIN[$name]=built
}

# What `go build` calls the result: the last element of the package's path.
built_name() { # name
    if [[ ${PACKAGE[$1]} == . ]]; then
        printf '%s' "${FAMILY[$1]}"
    else
        basename "${PACKAGE[$1]}"
    fi
}

# Builds the missing tools of one family. The lock makes a second run wait for
# the first and then find its results. The child inherits it: if this script
# is killed hard, a `go build` that lives on keeps the folder it writes to.
build_family() { # family
    local family=$1 name lock missing=() packages=()
    check_go "$family"
    mkdir -p "$CACHE/locks" "$CACHE/logs" "$CACHE/tmp"
    exec {lock}>"$CACHE/locks/$family"
    if ! flock -n "$lock"; then
        say "      … waiting for another build of $family"
        flock "$lock"
    fi
    for name in "${NAMES[@]}"; do
        [[ ${FAMILY[$name]} == "$family" && -z ${FOUND[$name]:-} ]] || continue
        find_in_cache "$name" && continue
        missing+=("$name")
        packages+=("${PACKAGE[$name]}")
    done
    if ((${#missing[@]})); then
        SCRATCH=$CACHE/tmp/$family
        rm -rf "$SCRATCH" # of a build that was killed; we hold the lock
        go_build "$family" "${VERSION[${missing[0]}]}" "${packages[@]}"
        for name in "${missing[@]}"; do install_built "$name"; done
        rm -rf "$SCRATCH"
        SCRATCH=
    fi
    exec {lock}>&-
}

# Leaves nothing half done behind. What is finished is in its place, and what
# Go has compiled is in Go's cache, so the next run goes on from here.
# shellcheck disable=SC2317 # only the traps call it, and on_exit
on_signal() { # exit code
    trap '' INT TERM HUP
    if [[ -n $CHILD ]]; then
        kill -TERM -- "-$CHILD" "$CHILD" 2>/dev/null || true
        wait "$CHILD" 2>/dev/null || true
        CHILD=
    fi
    say "tools: interrupted; run it again to go on from here"
    exit "$1"
}

# shellcheck disable=SC2317
on_exit() { [[ -z $SCRATCH ]] || rm -rf "$SCRATCH"; }

# --- all together ---------------------------------------------------------

find_all() {
    local name
    for name in "${NAMES[@]}"; do
        find_in_assets "$name" || find_in_cache "$name" || find_on_path "$name" || true
    done
}

ensure_all() {
    local name family i=0
    find_all
    for name in "${NAMES[@]}"; do
        i=$((i + 1)) family=${FAMILY[$name]}
        if [[ -z ${FOUND[$name]:-} ]]; then
            say "[$i/${#NAMES[@]}] $name ${VERSION[$name]}: building ($(cold_time "$family")) …"
            build_family "$family"
        else
            say "[$i/${#NAMES[@]}] $name ${VERSION[$name]}: $(origin "$name")"
        fi
    done
}

origin() { # name
    case ${ORIGIN[$1]} in
    built) printf 'built just now' ;;
    cache) printf 'found in the cache' ;;
    PATH) printf "found on \$PATH" ;;
    KUBEBUILDER_ASSETS) printf "found in \$KUBEBUILDER_ASSETS" ;;
    esac
}

# One folder with a link for each tool, made aside and renamed into place. Its
# name is a digest of what the links point to: a folder once printed never
# changes under a process that uses it.
bin_dir() {
    local name dir tmp links=()
    for name in "${NAMES[@]}"; do links+=("$name=${FOUND[$name]}"); done
    links+=("helm=${FOUND[helm4]}")
    dir=$CACHE/bin-$(printf '%s\n' "${links[@]}" | sha256sum | cut -c1-12)
    if [[ ! -d $dir ]]; then
        mkdir -p "$CACHE"
        tmp=$(mktemp -d "$CACHE/.bin.XXXXXX")
        chmod 755 "$tmp"
        for name in "${links[@]}"; do ln -s "${name#*=}" "$tmp/${name%%=*}"; done
        # Losing the race against another run is fine: it made the same one.
        mv -T "$tmp" "$dir" 2>/dev/null || rm -rf "$tmp"
    fi
    printf '%s\n' "$dir"
}

print_table() {
    local name
    {
        printf 'NAME\tVERSION\tORIGIN\tPATH\n'
        for name in "${NAMES[@]}"; do
            printf '%s\t%s\t%s\t%s\n' "$name" "${VERSION[$name]}" "${ORIGIN[$name]}" "${FOUND[$name]}"
        done
    } | column -t -s $'\t'
    printf '\nall in %s (helm is helm4)\n' "$1"
}

check_helpers() {
    local program
    for program in flock setsid timeout sha256sum realpath; do
        command -v "$program" >/dev/null || die "$program is needed (util-linux and GNU coreutils)"
    done
}

main() {
    local mode=table groups=(base) dir
    while (($#)); do
        case $1 in
        -h | --help) usage && exit 0 ;;
        --node) groups+=(node) ;;
        --oracle) groups+=(oracle) ;;
        path | env) mode=$1 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    check_helpers
    trap 'on_signal 130' INT
    trap 'on_signal 143' TERM HUP
    trap on_exit EXIT
    load_table "${groups[@]}"
    ensure_all
    dir=$(bin_dir)
    case $mode in
    table) print_table "$dir" ;;
    path) printf '%s\n' "$dir" ;;
    env) printf 'export PATH=%q:"%s"\nexport CATAMARAN_TOOLS=%q\n' "$dir" "\$PATH" "$dir" ;;
    esac
}

# On one line: bash reads on after a command, and the file may have changed by
# the time a build is done.
main "$@"; exit
