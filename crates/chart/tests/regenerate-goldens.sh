#!/usr/bin/env bash
#
# Makes the goldens of tests/fixtures with the real helm, in both profiles.
# Nobody edits a golden by hand.
#
#   regenerate-goldens.sh [CASE...]     all cases, or some
#
# A case is a folder: `chart/` (or `chart.path`, the path of a chart elsewhere),
# `values.yaml` if there are user values, `args` if there are arguments for
# `helm template` (the release's name first). Its goldens:
#
#   golden/4.3.yaml, golden/3.18.yaml    what `helm template` printed, or
#   golden/4.3.error, golden/3.18.error  what it complained of
#   golden/notes.txt                     NOTES.txt, if the chart has one

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$("$here/../../../hack/tools.sh" path)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Nothing of the user's: no kubeconfig, no plugins, no registries.
export HOME=$scratch HELM_CONFIG_HOME=$scratch HELM_DATA_HOME=$scratch KUBECONFIG=/nonexistent TZ=UTC

template() { # helm profile
    local out=golden/$2.yaml error=golden/$2.error status=0
    rm -f "$out" "$error"
    "$tools/$1" template "${args[@]}" "$chart" "${values[@]}" >"$out" 2>"$scratch/stderr" || status=$?
    if [ "$status" != 0 ]; then
        rm -f "$out"
        # Warnings come before the error; where this chart lies is nobody's business.
        sed -n '/^Error: /,$p' "$scratch/stderr" | sed "s|$here/fixtures/||g" >"$error"
    fi
}

# Only `install` shows notes, and only helm 4 does so without a cluster.
notes() {
    rm -f golden/notes.txt
    [ -f golden/4.3.yaml ] || return 0
    "$tools/helm" install "${args[@]}" "$chart" "${values[@]}" --dry-run=client --output json \
        >"$scratch/release.json" 2>/dev/null || return 0
    python3 -c '
import json, sys
notes = json.load(open(sys.argv[1]))["info"].get("notes", "")
sys.stdout.write(notes)' "$scratch/release.json" >golden/notes.txt
    [ -s golden/notes.txt ] || rm -f golden/notes.txt
}

cd "$here/fixtures"
for case in "${@:-*}"; do
    for folder in $case; do
        cd "$here/fixtures/$folder"
        chart=$here/fixtures/$folder/chart
        [ ! -f chart.path ] || chart=$(cd "$(cat chart.path)" && pwd)
        read -ra args <<<"$(cat args 2>/dev/null || echo demo)"
        values=()
        [ ! -f values.yaml ] || values=(--values values.yaml)
        mkdir -p golden
        template helm 4.3
        template helm3 3.18
        notes
    done
done
