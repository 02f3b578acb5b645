#!/usr/bin/env bash
#
# The inside of `make demo`: runs with KUBECONFIG and PATH of a cluster, plays
# the tutorial on it with a running operator, and shows what happens while it
# happens. Each step is checked: the exit status is 0 only if all of it went as
# told. OPERATOR is the operator's binary; without it, the operator is deployed
# as a pod, from the image that hack/with-images.sh has made (NODE=real).

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${KUBECONFIG:?is not set: start this with make demo}"
OPERATOR=${OPERATOR:-}
IMAGE=${CATAMARAN_E2E_IMAGE:-}
[[ -n $OPERATOR$IMAGE ]] || { echo "OPERATOR is not set: start this with make demo" >&2 && exit 1; }

readonly NAMESPACE=memcached-demo
readonly CHART=memcached-sample NATIVE=memcachedbackup-sample
# Where config/default puts the operator, and its Deployment.
readonly SYSTEM=memcached-operator-system MANAGER=deployment/memcached-operator-controller-manager
# The longest that any one step may take, and between two looks at the cluster.
readonly STEP_SECONDS=${DEMO_STEP_SECONDS:-60} LOOK_SECONDS=0.2

LOG=$(mktemp "${TMPDIR:-/tmp}/catamaran-demo.XXXXXX.log")
OPERATOR_PID=
STEP=0
# What is known of each pod, so that only changes are shown.
declare -A PODS=()

# --- telling ----------------------------------------------------------------

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    BOLD=$'\e[1m' DIM=$'\e[2m' GREEN=$'\e[32m' RED=$'\e[31m' PLAIN=$'\e[0m'
else
    BOLD='' DIM='' GREEN='' RED='' PLAIN=''
fi

# The heading of a step. Times in a step count from here.
step() {
    STEP=$((STEP + 1))
    printf '\n%s%d. %s%s\n' "$BOLD" "$STEP" "$*" "$PLAIN"
    start_clock
}

start_clock() { CLOCK=${EPOCHREALTIME/[.,]/}; }

# Seconds since the step began, with a tenth.
clock() {
    local tenths=$(((${EPOCHREALTIME/[.,]/} - CLOCK) / 100000))
    printf '%2d.%ds' $((tenths / 10)) $((tenths % 10))
}

happened() { printf '   %s%s%s  %s\n' "$DIM" "$(clock)" "$PLAIN" "$*"; }

done_well() { printf '   %s%s  ok%s  %s\n' "$GREEN" "$(clock)" "$PLAIN" "$*"; }

# Shows a command as one would type it, and what it prints.
show() {
    local word line=''
    for word in "$@"; do
        [[ $word != *[\"\ ]* ]] || word="'$word'"
        line+=" $word"
    done
    printf '   %s$%s%s\n' "$DIM" "$line" "$PLAIN"
    "$@" | sed 's/^/     /'
}

fail() {
    printf '   %s%s  FAILED: %s%s\n' "$RED" "$(clock)" "$*" "$PLAIN" >&2
    exit 1
}

# --- the operator -------------------------------------------------------------

in_pod() { [[ -z $OPERATOR ]]; }

start_operator() {
    # A free port for the probes: a second demo may run beside this one.
    "$OPERATOR" --watches-file watches.yaml --health-probe-bind-address 127.0.0.1:0 >"$LOG" 2>&1 &
    OPERATOR_PID=$!
}

# A pod is started again if it ends: Kubernetes looks after it.
operator_alive() { in_pod || kill -0 "$OPERATOR_PID" 2>/dev/null; }

operator_log() {
    if in_pod; then
        kubectl logs "$MANAGER" --namespace "$SYSTEM" --request-timeout 5s 2>&1
    else
        cat "$LOG"
    fi
}

# Asks the operator to end, and checks that it ends as Kubernetes expects.
stop_operator() {
    local pid=$OPERATOR_PID status=0
    kill -TERM "$pid" 2>/dev/null || fail "the operator was gone before it was told to end"
    eventually operator_gone || fail "the operator did not end within $STEP_SECONDS s of SIGTERM"
    OPERATOR_PID=
    wait "$pid" || status=$?
    ((status == 0)) || fail "the operator ended with status $status after SIGTERM"
}

operator_gone() { ! operator_alive; }

on_exit() {
    local status=$?
    trap - EXIT
    # Somebody who pressed Ctrl-C knows why it ended.
    if ((status != 0 && status < 128)); then
        {
            printf '\nThe end of the operator'\''s log%s:\n' "${OPERATOR:+, $LOG}"
            operator_log | tail -n 40 | sed 's/^/   | /' || true
            printf '\nThe resources:\n'
            kubectl get memcacheds,memcachedbackups,deployments,pods --namespace "$NAMESPACE" \
                --request-timeout 5s 2>&1 | sed 's/^/   | /' || true
        } >&2
    fi
    [[ -z $OPERATOR_PID ]] || { kill -KILL "$OPERATOR_PID" && wait "$OPERATOR_PID"; } 2>/dev/null || true
    ((status != 0)) || rm -f "$LOG"
    exit "$status"
}

# --- looking ------------------------------------------------------------------

kube() { kubectl --namespace "$NAMESPACE" "$@"; }

# Runs a question again and again until it answers yes. No when time is up.
eventually() { # command...
    local deadline=$((SECONDS + STEP_SECONDS))
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep "$LOOK_SECONDS"
    done
}

# Waits for what the operator is expected to do; the operator must live on.
expect() { # what command...
    local what=$1
    shift
    eventually alive_and "$@" || fail "$what: not within $STEP_SECONDS s"
    operator_alive || fail "the operator ended by itself"
}

# Yes also when the operator is gone, so that nobody waits for a dead one.
alive_and() { ! operator_alive || "$@"; }

# A line for each pod: its name, and its state in one word.
list_pods() {
    local name phase ready deleted
    # The columns are separated by bars: a deletion time is mostly empty.
    kube get pods --output jsonpath='{range .items[*]}{.metadata.name}|{.status.phase}|{.status.conditions[?(@.type=="Ready")].status}|{.metadata.deletionTimestamp}{"\n"}{end}' |
        while IFS='|' read -r name phase ready deleted; do
            if [[ -n $deleted ]]; then
                phase=terminating
            elif [[ $ready == True ]]; then
                phase=ready
            fi
            printf '%s %s\n' "$name" "${phase,,}"
        done
}

# Looks at the pods and shows what has changed since the last look.
look_at_pods() {
    local listed name state
    local -A now=()
    listed=$(list_pods) || return 1
    while read -r name state; do
        [[ -n $name ]] || continue
        now[$name]=$state
        [[ ${PODS[$name]:-} == "$state" ]] || happened "pod $name is $state"
        PODS[$name]=$state
    done <<<"$listed"
    for name in "${!PODS[@]}"; do
        [[ -n ${now[$name]:-} ]] || { happened "pod $name is gone" && unset "PODS[$name]"; }
    done
}

# Whether there are exactly so many pods of both samples, all of them ready.
pods_are() { # memcached backups
    local name
    local -A count=([$CHART]=0 [$NATIVE]=0)
    look_at_pods || return 1
    for name in "${!PODS[@]}"; do
        [[ ${PODS[$name]} == ready ]] || return 1
        case $name in
        "$CHART"-*) count[$CHART]=$((count[$CHART] + 1)) ;;
        "$NATIVE"-*) count[$NATIVE]=$((count[$NATIVE] + 1)) ;;
        esac
    done
    ((count[$CHART] == $1 && count[$NATIVE] == $2))
}

expect_pods() { # memcached backups
    expect "$1 pods of memcached and $2 of memcachedbackup" pods_are "$1" "$2"
    done_well "$1 memcached, $2 memcachedbackup"
}

# Whether both resources say that they are Ready.
resources_ready() {
    local resource status
    for resource in "memcached/$CHART" "memcachedbackup/$NATIVE"; do
        status=$(kube get "$resource" --output jsonpath='{.status.conditions[?(@.type=="Ready")].status}')
        [[ $status == True ]] || return 1
    done
}

# The generation of a Deployment counts changes of its spec.
replicas_and_generation() { # deployment
    kube get deployment "$1" --output jsonpath='{.spec.replicas} {.metadata.generation}'
}

# Whether a Deployment has changed since, and asks for so many again.
undone() { # deployment replicas generation
    local seen
    look_at_pods || return 1
    seen=$(replicas_and_generation "$1") || return 1
    [[ ${seen% *} == "$2" ]] && ((${seen#* } > $3))
}

revision_is() { # number
    helm list --namespace "$NAMESPACE" --filter "^$CHART\$" | awk -v want="$1" '
        NR == 2 { found = ($3 == want && /deployed/) } END { exit !found }'
}

nothing_left() {
    local left
    look_at_pods || return 1
    # Secrets are the release's records: the namespace has no others.
    left=$(kube get deployments,replicasets,pods,services,secrets,memcacheds,memcachedbackups --output name) || return 1
    [[ -z $left ]]
}

# --- the play -----------------------------------------------------------------

install_and_start() {
    step "The kinds are installed, and the operator starts"
    show kubectl apply -k config/crd
    kubectl wait --for=condition=Established --timeout "${STEP_SECONDS}s" \
        crd/memcacheds.cache.my.domain crd/memcachedbackups.cache.my.domain >/dev/null
    kubectl create namespace "$NAMESPACE" >/dev/null
    start_operator
    happened "the operator is process $OPERATOR_PID; its log is $LOG"
}

# What `make deploy` does, and all that must be there for it.
deploy() {
    step "The operator is deployed: its kinds, its rights, and a pod from its image"
    show make --no-print-directory deploy IMG="$IMAGE"
    kubectl create namespace "$NAMESPACE" >/dev/null
    start_clock
    kubectl rollout status "$MANAGER" --namespace "$SYSTEM" --timeout "${STEP_SECONDS}s" >/dev/null ||
        fail "the operator's pod is not ready"
    show kubectl get pods --namespace "$SYSTEM" --output wide
    done_well "it runs under restricted pod security, with its own service account"
}

create_samples() {
    step "Two resources: Memcached is a Helm chart, MemcachedBackup is Rust"
    show kubectl apply -k config/samples --namespace "$NAMESPACE"
    start_clock
    expect_pods 3 2
    expect "both resources Ready" resources_ready
    show kubectl get memcacheds,memcachedbackups --namespace "$NAMESPACE"
}

# The protocol is lines of text, and bash can speak TCP.
use_memcached() {
    local address answer
    step "The pods are real: a client stores a value through the Service, and reads it"
    address=$(kube get service "$CHART" --output jsonpath='{.spec.clusterIP}/{.spec.ports[0].port}')
    exec 3<>"/dev/tcp/$address" || fail "nobody answers at $address"
    printf 'set greeting 0 0 5\r\nhello\r\nget greeting\r\nquit\r\n' >&3
    answer=$(timeout "$STEP_SECONDS" cat <&3 | tr -d '\r')
    exec 3>&-
    happened "set greeting, get greeting at ${address/\//:}:"
    printf '%s\n' "$answer" | sed 's/^/     /'
    [[ $answer == $'STORED\nVALUE greeting 0 5\nhello\nEND' ]] || fail "that is not what was stored"
    done_well "memcached answers"
}

ask_helm() {
    step "The chart's objects are a release, and the real helm sees it"
    expect "helm sees revision 1 deployed" revision_is 1
    show helm list --namespace "$NAMESPACE"
    if command -v helm3 >/dev/null; then
        show helm3 list --namespace "$NAMESPACE"
    fi
    show helm get notes "$CHART" --namespace "$NAMESPACE"
    done_well "listed by $(helm version --short)$(command -v helm3 >/dev/null && printf ' and %s' "$(helm3 version --short)")"
}

scale_by_resource() {
    step "Both are scaled by editing the resources: 3 to 5, and 2 to 3"
    show kubectl patch memcached "$CHART" --namespace "$NAMESPACE" --type merge --patch '{"spec":{"replicaCount":5}}'
    show kubectl patch memcachedbackup "$NATIVE" --namespace "$NAMESPACE" --type merge --patch '{"spec":{"size":3}}'
    start_clock
    expect_pods 5 3
    expect "helm sees revision 2 deployed" revision_is 2
    expect "both resources Ready" resources_ready
    show helm history "$CHART" --namespace "$NAMESPACE"
}

scale_by_hand() { # deployment replicas-by-hand replicas-wanted
    local before
    before=$(replicas_and_generation "$1")
    start_clock
    show kubectl scale deployment "$1" --namespace "$NAMESPACE" --replicas "$2"
    # The scale by hand is one change of the spec, the operator's answer the
    # next: to see the second suffices, however quick it was.
    expect "the scale of deployment $1 undone" undone "$1" "$3" "$((${before#* } + 1))"
    happened "deployment $1 asks for $3 again"
}

undo_scale_by_hand() {
    step "Somebody scales the Deployments by hand, and the operator undoes it"
    scale_by_hand "$CHART" 1 5
    expect_pods 5 3
    scale_by_hand "$NATIVE" 0 3
    expect_pods 5 3
}

delete_samples() {
    step "The resources are deleted, and with them all they made"
    # Without waiting, so that we can look on; the end is checked below.
    show kubectl delete -k config/samples --namespace "$NAMESPACE" --wait=false
    start_clock
    expect "nothing left in the namespace" nothing_left
    done_well "no pod, Deployment, Service or release record is left"
}

end_operator() {
    step "The operator is told to end (SIGTERM)"
    stop_operator
    done_well "it ended with status 0"
}

replace_operator() {
    step "The operator's pod is deleted, and the next one takes over"
    show kubectl delete pod --selector control-plane=controller-manager --namespace "$SYSTEM"
    start_clock
    scale_by_hand "$CHART" 1 5
    expect_pods 5 3
    show kubectl get pods --namespace "$SYSTEM"
    happened "what it has logged:"
    operator_log | sed 's/^/     /'
}

undeploy() {
    step "The operator is undeployed"
    show make --no-print-directory undeploy
    kubectl get namespace "$SYSTEM" >/dev/null 2>&1 && fail "its namespace is still there"
    done_well "its pod, its rights, its kinds and its namespace are gone"
}

main() {
    local started=$SECONDS
    trap on_exit EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    start_clock
    if in_pod; then deploy; else install_and_start; fi
    create_samples
    if in_pod; then use_memcached; fi
    ask_helm
    scale_by_resource
    undo_scale_by_hand
    if in_pod; then replace_operator; fi
    delete_samples
    if in_pod; then undeploy; else end_operator; fi
    printf '\n%sAll as told, in %d s.%s Next: make dev, and docs/tutorial.md.\n' \
        "$BOLD" $((SECONDS - started)) "$PLAIN"
}

main "$@"
