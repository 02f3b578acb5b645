#!/usr/bin/env bash
#
# Makes images without any registry: from Debian's packages, and for the
# builder from this machine's Rust toolchain. `make docker-build` needs none of
# them where the images that the Dockerfile names can be pulled. Why each
# exists is in docs/images.md; `hack/images.sh --help` is short.

set -euo pipefail

HERE=$(CDPATH="" cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DEBS=${CATAMARAN_DEBS_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set; set CATAMARAN_DEBS_CACHE}/.cache}/catamaran/debs}
readonly HERE DEBS

# What a Rust program loads, and nothing else. It brings its own roots of trust:
# a cluster's certificate comes with the kubeconfig or the service account.
readonly BASE_PACKAGES=(libc6 libgcc-s1)
# What memcached loads; the packages it depends on besides are for its
# maintainer scripts, which do not run here.
readonly MEMCACHED_PACKAGES=(memcached libevent-2.1-7 libsasl2-2 libdb5.3 libssl3 libc6)
# For projects whose Dockerfile runs commands: a shell, what scripts use, and apt.
readonly SHELL_PACKAGES=(bash dash coreutils grep sed findutils diffutils tar gzip libc-bin apt debian-archive-keyring ca-certificates)
# What cargo needs to link, and crates that compile C; with all they depend on.
readonly BUILDER_PACKAGES=(gcc libc6-dev dash coreutils)
# A server and what the Jobs of examples/database run; with all they depend on, but for what only serves
# maintainer scripts, people and the compiler of queries.
readonly POSTGRES_PACKAGES=(dash coreutils findutils grep sed)
readonly NOT_IN_POSTGRES='^(adduser|debconf|dpkg|tar|passwd|perl.*|lib.*-perl|libperl.*|libllvm.*|libz3.*|locales|libc-l10n|openssl|procps|ssl-cert|sysvinit-utils|ucf|usrmerge|postgresql.*-common.*)$'

WORK=
# Options of apt-get, for packages of another release than this machine's.
APT=()

say() { printf '%s\n' "$*" >&2; }

die() {
    say "images: $*"
    exit 1
}

usage() {
    cat <<'EOF'
usage: hack/images.sh base|shell|builder|memcached NAME
       hack/images.sh postgres NAME [RELEASE]

  base       what the operator's image stands on: libc, a user, no shell
  shell      the same with a shell and apt, for Dockerfiles that run commands
  builder    what the Dockerfile compiles in: this machine's Rust, Debian's gcc
  memcached  memcached as the samples ask for it, for a node without registry
  postgres   PostgreSQL of this machine's release of Debian, or of another one (trixie)

Packages are kept in $CATAMARAN_DEBS_CACHE, else ~/.cache/catamaran/debs.
$CONTAINER_TOOL (docker, podman or buildah) makes the image NAME.
EOF
}

# --- a root folder ------------------------------------------------------------

# apt compares with its lists: a file that is whole is not fetched again.
download() { # packages...
    (cd "$DEBS" && apt-get "${APT[@]}" download --quiet --quiet "$@" 2> >(grep -v 'unsandboxed as root' >&2))
}

# Downloads packages, or finds them from last time, and unpacks them. Their
# maintainer scripts do not run.
unpack() { # root packages...
    local root=$1 files='' file lock
    shift
    mkdir -p "$DEBS" "$root"
    exec {lock}>"$DEBS/lock"
    flock "$lock"
    # A second time with fresh lists: old ones name files that are gone.
    if download "$@" || { ((EUID == 0)) && apt-get "${APT[@]}" update --quiet --quiet && download "$@"; }; then
        # Asked elsewhere: of files that are there apt says nothing.
        files=$(cd "$WORK" && apt-get "${APT[@]}" download --print-uris "$@" | awk '{ print $2 }')
    fi
    [[ -n $files ]] ||
        die "apt-get could not get all of: $* (does 'apt-get update' help?)"
    while read -r file; do
        dpkg --extract "$DEBS/$file" "$root"
    done <<<"$files"
    exec {lock}>&-
    # For people who log in; nobody does.
    rm -rf "$root"/usr/share/{doc,man,info,locale,lintian,bug}
}

# The packages and all they depend on, as if nothing were installed yet.
closure() { # packages...
    apt-get "${APT[@]}" --option Dir::State::Status=/dev/null --simulate --quiet --quiet --no-install-recommends \
        install "$@" | awk '$1 == "Inst" { print $2 }'
}

# Who runs in the image. A number alone would do for Kubernetes, but some
# programs want to know their own name.
add_user() { # root name id
    mkdir -p "$1/etc" "$1/tmp"
    chmod 1777 "$1/tmp"
    printf 'root:x:0:0:root:/:/sbin/nologin\n%s:x:%d:%d:%s:/:/sbin/nologin\n' "$2" "$3" "$3" "$2" >"$1/etc/passwd"
    printf 'root:x:0:\n%s:x:%d:\n' "$2" "$3" >"$1/etc/group"
}

# Fails if a program of the root folder lacks a library there. The loader asks;
# it is run by its path, because the root folder has no shell to run ldd.
check_libraries() { # root program
    local loader missing
    loader=$(cd "$1" && find lib* usr/lib* -maxdepth 1 -name 'ld-linux*' -print -quit)
    missing=$(LD_LIBRARY_PATH=$(libraries "$1") "$1/$loader" --list "$1/$2" | grep -vF "$1/" | grep '/\|not found' || true)
    [[ -z $missing ]] || die "the packages for $2 lack libraries, the list in hack/images.sh is too short: $missing"
}

libraries() { # root
    (shopt -s nullglob && printf '%s:' "$1"/lib/*-linux-gnu "$1"/usr/lib/*-linux-gnu)
}

# --- the images ---------------------------------------------------------------

base() { # name
    unpack "$WORK/root" "${BASE_PACKAGES[@]}"
    # Converters between character sets are most of libc's size; Rust has its own.
    rm -rf "$WORK"/root/usr/lib/*/gconv
    add_user "$WORK/root" nonroot 65532
    build "$1" 'USER 65532:65532'
}

# What dpkg would have noted of packages that were unpacked, and an empty list of files for each.
installed() { # root packages...
    local root=$1 file
    shift
    while read -r file; do
        dpkg-deb --field "$DEBS/$file" | sed '/^Package:/a Status: install ok installed'
        echo
        touch "$root/var/lib/dpkg/info/$(dpkg-deb --field "$DEBS/$file" Package).list"
    done < <(cd "$WORK" && apt-get download --print-uris "$@" | awk '{ print $2 }')
}

shell() { # name
    local packages
    packages=$(closure "${SHELL_PACKAGES[@]}")
    [[ -n $packages ]] || die "apt-get does not know what ${SHELL_PACKAGES[*]} depend on; does 'apt-get update' help?"
    # shellcheck disable=SC2086 # one word for each package
    unpack "$WORK/root" $packages
    # What the maintainer scripts would have made, and this machine's sources.
    ln -sf dash "$WORK/root/bin/sh"
    add_user "$WORK/root" nonroot 65532
    mkdir -p "$WORK"/root/var/lib/dpkg/{info,updates,triggers} "$WORK/root/var/cache/apt/archives/partial" \
        "$WORK/root/var/lib/apt/lists/partial" "$WORK/root/var/log/apt" "$WORK/root/root"
    touch "$WORK"/root/var/lib/dpkg/available
    # shellcheck disable=SC2086
    installed "$WORK/root" $packages >"$WORK/root/var/lib/dpkg/status"
    cp --recursive /etc/apt/sources.list* "$WORK/root/etc/apt/"
    # Root runs apt in a build; the user _apt is made by a maintainer script.
    printf 'APT::Sandbox::User "root";\n' >"$WORK/root/etc/apt/apt.conf.d/10sandbox"
    build "$1" 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
}

memcached() { # name
    unpack "$WORK/root" "${MEMCACHED_PACKAGES[@]}"
    add_user "$WORK/root" memcache 11211
    check_libraries "$WORK/root" usr/bin/memcached
    build "$1" 'USER 11211:11211' 'EXPOSE 11211' 'ENTRYPOINT ["/usr/bin/memcached"]'
}

# Has apt-get see another release of Debian: lists of its own, from where this machine has its own.
release() { # codename
    local folder=$DEBS/../apt-$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg from
    mkdir -p "$folder"/{lists,cache}/partial
    # shellcheck disable=SC2016 # apt's own variables
    from=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Identifier: Packages' |
        awk '$2 == "Debian" { print $1; exit }')
    [[ -n $from && -f $keys ]] || die "apt-get knows no source of Debian's packages, or not their keys"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$from" "$1" "$keys" \
        >"$folder/release.sources"
    APT=(--option "Dir::Etc::SourceList=$folder/release.sources" --option Dir::Etc::SourceParts=/dev/null
        --option "Dir::State::Lists=$folder/lists" --option "Dir::Cache=$folder/cache")
    [[ -n $(find "$folder/lists" -name '*_Packages*' -mtime -7) ]] || apt-get "${APT[@]}" update --quiet --quiet
}

postgres() { # name [codename]
    local packages server program folder
    [[ -z ${2:-} ]] || release "$2"
    server=$(closure postgresql | grep -x 'postgresql-[0-9]*' || true)
    [[ -n $server ]] || die "apt-get knows no server of PostgreSQL; does 'apt-get update' help?"
    packages=$(closure "$server" "${POSTGRES_PACKAGES[@]}" | grep -Ev "$NOT_IN_POSTGRES")
    # shellcheck disable=SC2086 # one word for each package
    unpack "$WORK/root" $packages
    # Where these are one, no package says so.
    for folder in bin sbin lib lib64; do
        [[ -e $WORK/root/$folder ]] || ln -s "usr/$folder" "$WORK/root/$folder"
    done
    ln -sf dash "$WORK/root/bin/sh"
    add_user "$WORK/root" postgres 999
    rm -rf "$WORK"/root/usr/lib/*/{gconv,perl*} "$WORK"/root/usr/share/perl* \
        "$WORK"/root/usr/lib/postgresql/*/lib/{bitcode,llvmjit*}
    folder=usr/lib/postgresql/${server#postgresql-}/bin
    for program in postgres initdb psql pg_dump pg_restore pg_basebackup pg_isready; do
        check_libraries "$WORK/root" "$folder/$program"
    done
    # Asked to end, it ends at once, and does not wait for those who are connected.
    build "$1" "ENV PATH=/$folder:/usr/bin:/bin LANG=C.UTF-8" 'USER 999:999' 'STOPSIGNAL SIGINT' \
        "LABEL major=${server#postgresql-}" 'CMD ["postgres"]'
}

builder() { # name
    local packages toolchain
    packages=$(closure "${BUILDER_PACKAGES[@]}")
    [[ -n $packages ]] || die "apt-get does not know what ${BUILDER_PACKAGES[*]} depend on; does 'apt-get update' help?"
    # shellcheck disable=SC2086 # one word for each package
    unpack "$WORK/root" $packages
    # What the maintainer scripts would have made.
    ln -sf gcc "$WORK/root/usr/bin/cc"
    ln -sf dash "$WORK/root/bin/sh"
    add_user "$WORK/root" nonroot 65532
    # The toolchain that rust-toolchain.toml names; without its documentation.
    toolchain=$(cd "$HERE/.." && rustc --print sysroot)
    mkdir -p "$WORK/root/usr/local/rust"
    cp --archive "$toolchain"/{bin,lib} "$WORK/root/usr/local/rust/"
    # The machine's own authorities: a proxy's may be among them.
    mkdir -p "$WORK/root/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$WORK/root/etc/ssl/certs/" 2>/dev/null || true
    build "$1" 'ENV PATH=/usr/local/rust/bin:/usr/bin:/bin CARGO_HOME=/usr/local/cargo SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt'
}

build() { # name lines-of-a-Dockerfile...
    local name=$1
    shift
    printf '%s\n' 'FROM scratch' 'COPY root/ /' "$@" >"$WORK/Dockerfile"
    "$CONTAINER_TOOL" build --quiet --tag "$name" "$WORK" >/dev/null
    say "images: $name is there, $(du --summarize --human-readable "$WORK/root" | cut -f1)B unpacked"
}

# --- all together ---------------------------------------------------------------

main() {
    local program
    case ${1:-} in
    -h | --help) usage && exit 0 ;;
    base | shell | builder | memcached | postgres) [[ -n ${2:-} ]] || { usage >&2 && exit 2; } ;;
    *) usage >&2 && exit 2 ;;
    esac
    for program in apt-get dpkg flock "${CONTAINER_TOOL:=buildah}"; do
        command -v "$program" >/dev/null || die "$program is needed: images are made here from Debian's packages"
    done
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/catamaran-image.XXXXXX")
    trap 'rm -rf "$WORK"' EXIT
    "$@"
}

main "$@"
