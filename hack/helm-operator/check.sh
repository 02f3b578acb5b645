#!/usr/bin/env bash
#
# Builds a project's three-line Dockerfile on an image of ours, and runs what
# comes of it as a container would: as 1001, in /opt/helm, by the entrypoint.
#
#   hack/helm-operator/check.sh IMAGE [shell]
#
# With `shell` the Dockerfile runs commands, as root and as the image's user.
# Nothing is deployed: the program must find its watches.yaml and chart, and end
# by saying that there is no cluster. buildah is needed (hack/node.sh install).

set -euo pipefail

IMAGE=${1:?is missing: the image of make helm-operator-image}
readonly IMAGE
readonly STAGE=${2:-}
# Works wherever root does, also without the right to make all namespaces.
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
# In a container the disk is an overlay, on which no other one can be put.
if [[ -z ${STORAGE_DRIVER:-} && $(stat --file-system --format %T /var/lib) == overlayfs ]]; then
    export STORAGE_DRIVER=vfs
fi

say() { printf 'helm-operator: %s\n' "$*" >&2; }

die() {
    say "$@"
    exit 1
}

# What operator-sdk scaffolds.
project() { # folder
    mkdir -p "$1/helm-charts/demo/templates"
    printf 'apiVersion: v2\nname: demo\nversion: 1.0.0\n' >"$1/helm-charts/demo/Chart.yaml"
    printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\n' >"$1/helm-charts/demo/templates/map.yaml"
    printf -- '- {group: example.com, version: v1, kind: Demo, chart: helm-charts/demo}\n' >"$1/watches.yaml"
    # shellcheck disable=SC2016 # the variable is the image's
    printf 'FROM %s\nENV HOME=/opt/helm\nCOPY watches.yaml ${HOME}/watches.yaml\nCOPY helm-charts ${HOME}/helm-charts\nWORKDIR ${HOME}\n' \
        "$IMAGE" >"$1/Dockerfile"
    if [[ $STAGE == shell ]]; then
        printf 'USER 0\nRUN apt-get --version >/dev/null && mkdir -p /licenses && echo ours > /licenses/LICENSE\nUSER 1001\nRUN test -f watches.yaml && ls helm-charts | grep demo\n' \
            >>"$1/Dockerfile"
    fi
}

# Runs the image's program with arguments; what it says.
run() { # container arguments...
    local container=$1
    shift
    buildah run --user 1001 "$container" -- /usr/local/bin/helm-operator "$@" 2>&1 || true
}

expect() { # text words
    [[ $1 == *"$2"* ]] || die "it should say \"$2\", and says: $1"
}

main() {
    local folder container said config
    command -v buildah >/dev/null || die "buildah is needed: hack/node.sh install"
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # as it is now
    trap "rm -rf '$folder'" EXIT
    project "$folder"
    buildah build --quiet --pull-never --tag localhost/helm-operator-check "$folder" >/dev/null
    config=$(buildah inspect --type image --format \
        '{{.OCIv1.Config.User}} {{.OCIv1.Config.WorkingDir}} {{.OCIv1.Config.Entrypoint}}' localhost/helm-operator-check)
    [[ $config == '1001 /opt/helm [/usr/local/bin/helm-operator run --watches-file=./watches.yaml]' ]] ||
        die "it is started as: $config"
    container=$(buildah from --pull-never localhost/helm-operator-check)
    expect "$(run "$container" version)" 'helm-operator version: '
    # The arguments of a manager.yaml come after those of the entrypoint.
    said=$(run "$container" run --watches-file=./watches.yaml --leader-elect --leader-election-id=demo \
        --metrics-bind-address=:8443 --metrics-secure --metrics-require-rbac)
    expect "$said" 'cannot reach a cluster'
    said=$(run "$container" exec-entrypoint helm --watches-file=/opt/helm/nowhere.yaml)
    expect "$said" '/opt/helm/nowhere.yaml'
    buildah rm "$container" >/dev/null
    buildah rmi localhost/helm-operator-check >/dev/null
    say "$IMAGE: a project's Dockerfile builds on it and starts"
}

main "$@"
