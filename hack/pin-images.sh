#!/usr/bin/env bash
#
# Base images are named by digest: what was looked at is what is built upon.
#
#   hack/pin-images.sh check   fails if a Dockerfile names an image without a digest
#   hack/pin-images.sh         writes the digest that each tag has now (needs skopeo and the registries)

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly DOCKERFILES=(Dockerfile hack/helm-operator/Dockerfile)

die() {
    printf 'pin-images: %s\n' "$*" >&2
    exit 1
}

# The images that a Dockerfile names itself: the defaults of its arguments, and
# what FROM names that is neither an argument nor a stage.
images() { # dockerfile
    awk '
        $1 == "ARG" && $2 ~ /_IMAGE=/ { sub(/^[^=]*=/, "", $2); print $2 }
        $1 == "FROM" { if ($2 !~ /^\$/ && $2 != "scratch" && !($2 in stages)) print $2; stages[$4] }
    ' "$1"
}

check() {
    local file image bare=0
    for file in "${DOCKERFILES[@]}"; do
        while read -r image; do
            [[ $image =~ @sha256:[0-9a-f]{64}$ ]] && continue
            printf 'pin-images: %s: %s has no digest\n' "$file" "$image" >&2
            bare=1
        done < <(images "$file")
    done
    return "$bare"
}

# The digest of the index, which serves every platform.
pin() {
    local file image name digest
    command -v skopeo >/dev/null || die "skopeo is needed"
    for file in "${DOCKERFILES[@]}"; do
        while read -r image; do
            name=${image%@sha256:*}
            digest=$(skopeo inspect --raw "docker://$name" | sha256sum | cut -d' ' -f1)
            sed -i "s|$image|$name@sha256:$digest|" "$file"
            printf '%s: %s@sha256:%s\n' "$file" "$name" "$digest"
        done < <(images "$file")
    done
}

case ${1:-} in
check) check ;;
'') pin ;;
*) die "unknown: $1" ;;
esac
