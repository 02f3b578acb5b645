#!/usr/bin/env bash
#
# Fails if a CRD in config/crd/bases is not what the Rust types would generate
# today. CRDs that are written by hand (chart kinds) are not looked at.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

"${CARGO:-cargo}" run --bin crdgen -- "$fresh"

stale=0
for crd in "$fresh"/*.yaml; do
    [[ -e $crd ]] || { echo "check-crds: crdgen wrote nothing" >&2 && exit 1; }
    diff -uN "config/crd/bases/${crd##*/}" "$crd" || stale=1
done

if ((stale)); then
    echo "check-crds: config/crd/bases is stale (above: what it lacks is +); run 'make manifests' and commit the result" >&2
    exit 1
fi
echo "check-crds: config/crd/bases is up to date"
