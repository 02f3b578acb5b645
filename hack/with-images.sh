#!/usr/bin/env bash
#
# Makes the images that a real node needs, without any registry, and runs a
# command that uses them: `make e2e` and `make demo NODE=real` are two such.
#
#   hack/with-images.sh FOLDER COMMAND...
#
# Puts the operator's image and memcached's into the folder, as operator.tar and
# memcached.tar; the command finds the folder in $CATAMARAN_E2E_ARCHIVES, and the
# operator's name in $CATAMARAN_E2E_IMAGE. buildah makes them (hack/node.sh
# install).
#
# WITH_POSTGRES=yes: two images of PostgreSQL as well, as postgres-1.tar and
# postgres-2.tar, their names in $CATAMARAN_E2E_POSTGRES: of this release of
# Debian and of the next one, which has a later major version. Where that cannot
# be had, a second one of the same version.

set -euo pipefail

PLACE=$(realpath -m "${1:?is missing: the folder for the images}")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."

OPERATOR=localhost/memcached-operator:e2e
MEMCACHED=docker.io/library/memcached:1.6
NEXT_RELEASE=trixie
CATAMARAN_E2E_POSTGRES=
export CATAMARAN_E2E_POSTGRES
readonly PLACE OPERATOR MEMCACHED NEXT_RELEASE
# What an image may take besides its base.
readonly MOST_MEBIBYTES=40

# Works wherever root does, also without the right to make all namespaces.
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
# In a container the disk is an overlay, on which no other one can be put.
if [[ -z ${STORAGE_DRIVER:-} && $(stat --file-system --format %T /var/lib) == overlayfs ]]; then
    export STORAGE_DRIVER=vfs
fi
export CONTAINER_TOOL=buildah

say() { printf 'images: %s\n' "$*" >&2; }

die() {
    say "$@"
    exit 1
}

# Runs what says much, and shows it only if it fails.
quietly() { # log command...
    local log=$PLACE/$1.log
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        die "failed: $* (all of it in $log)"
    }
}

there() { [[ -n $(buildah images --quiet "$1" 2>/dev/null) ]]; }

# The image of this recipe and toolchain; made once, for it takes two minutes.
own() { # base|builder|memcached|postgres [release]
    local key name
    key=$({ cat hack/images.sh && rustc --version; } | sha256sum | cut -c1-12)
    name=localhost/catamaran-$1${2:+-$2}:$key
    there "$name" || hack/images.sh "$1" "$name" "${@:2}" || return 1
    printf '%s' "$name"
}

# Two of them, the older first.
postgres() {
    local first second of_first of_second
    first=$(own postgres)
    second=$(own postgres "$NEXT_RELEASE") || second=$first
    of_first=$(major "$first")
    of_second=$(major "$second")
    if [[ $of_second == "$of_first" ]]; then
        say "there is one major version of PostgreSQL here, $of_first: an upgrade is to another tag of it"
        of_second=$of_first-again
    fi
    tag_postgres "$first" "localhost/postgres:$of_first" 1
    tag_postgres "$second" "localhost/postgres:$of_second" 2
}

major() { # image
    buildah inspect --type image --format '{{.OCIv1.Config.Labels.major}}' "$1"
}

tag_postgres() { # image name number
    buildah tag "$1" "$2"
    save "$2" "postgres-$3.tar"
    CATAMARAN_E2E_POSTGRES+=" $2"
}

# As a person does it; with cargo's results and downloads kept, because a layer
# would have to be copied to keep them.
build_operator() { # base builder
    local old
    old=$(buildah images --quiet "$OPERATOR" 2>/dev/null || true)
    mkdir -p "$PLACE/target"
    say "building $OPERATOR upon $1 in $2 …"
    quietly docker-build make docker-build IMG="$OPERATOR" BASE_IMAGE="$1" BUILDER_IMAGE="$2" \
        BUILD_FLAGS="--volume $PLACE/target:/src/target --volume ${CARGO_HOME:-$HOME/.cargo}:/usr/local/cargo"
    # It has lost its name to the new one.
    [[ -z $old || $old == "$(buildah images --quiet "$OPERATOR")" ]] || buildah rmi "$old" >/dev/null 2>&1 || true
}

# Whether the image is what it claims: one binary, charts, watches.yaml; no
# shell, not root.
check_operator() {
    local container root size shells lacks=
    container=$(buildah from --pull-never "$OPERATOR")
    root=$(buildah mount "$container")
    size=$(du --summarize --bytes "$root/opt/operator" | cut -f1)
    shells=$(find "$root" \( -name '*sh' -o -name 'busybox*' \) -type f -perm /111)
    [[ -s $root/opt/operator/sbom.cdx.json ]] || lacks=yes
    buildah rm "$container" >/dev/null
    [[ -z $lacks ]] || die "$OPERATOR lacks the list of what it is made of (make sbom)"
    [[ -z $shells ]] || die "$OPERATOR holds a shell: $shells"
    ((size < MOST_MEBIBYTES << 20)) || die "$OPERATOR has $size bytes besides its base, more than $MOST_MEBIBYTES MiB"
    [[ $(buildah inspect --type image --format '{{.OCIv1.Config.User}}' "$OPERATOR") == 65532:65532 ]] ||
        die "$OPERATOR does not run as 65532"
    say "$OPERATOR: $((size >> 20)) MiB besides its base, no shell, user 65532"
}

save() { # image file
    rm -f "$PLACE/$2"
    quietly save buildah push "$1" "docker-archive:$PLACE/$2:$1"
}

main() {
    local lock base builder
    command -v buildah >/dev/null || die "buildah is needed: hack/node.sh install"
    mkdir -p "$PLACE"
    exec {lock}>"$PLACE/lock"
    flock "$lock"
    base=${BASE_IMAGE:-$(own base)}
    builder=${BUILDER_IMAGE:-$(own builder)}
    buildah tag "$(own memcached)" "$MEMCACHED"
    build_operator "$base" "$builder"
    check_operator
    save "$OPERATOR" operator.tar
    save "$MEMCACHED" memcached.tar
    [[ ${WITH_POSTGRES:-} != yes ]] || postgres
    exec {lock}>&-
    CATAMARAN_E2E_IMAGE=$OPERATOR CATAMARAN_E2E_ARCHIVES=$PLACE exec "$@"
}

main "$@"
