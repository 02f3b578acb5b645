#!/usr/bin/env bash
#
# The inside of `make dev`: runs with KUBECONFIG and PATH of a fresh local
# cluster, installs the CRDs, says how to go on, and stays until Ctrl-C. When
# it ends, the cluster ends.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${KUBECONFIG:?is not set: start this with make dev}"

SLEEPER=
finish() {
    [[ -z $SLEEPER ]] || kill "$SLEEPER" 2>/dev/null || true
    printf '\nThe cluster ends, and all that was in it.\n'
    exit 0
}
trap finish INT TERM HUP

kubectl apply -k config/crd
kubectl get nodes
cat <<END

The cluster is up, and the CRDs are installed. In another terminal:

    cd $(printf '%q' "$PWD")
    eval "\$(hack/tools.sh env)"              # kubectl and helm that fit this cluster
    export KUBECONFIG=$(printf '%q' "$KUBECONFIG")

    make run                                 # the operator, in the foreground; and in a third one:
    kubectl apply -k config/samples
    kubectl get memcacheds,memcachedbackups,pods
    helm list

Nodes are simulated: pods are scheduled and become ready, but no container runs.
Ctrl-C here ends the cluster.
END

# In the background and waited for: a trap runs at once, not after the sleep.
while :; do
    sleep 3600 &
    SLEEPER=$!
    wait "$SLEEPER"
done
