#!/usr/bin/env bash
#
# Makes the goldens of tests/fixtures with the real helm, in both generations.
# Nobody edits a golden by hand. What a case is: fixtures/README.md.
#
#   regenerate-goldens.sh [PART...]     all cases, or those whose names contain PART

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$("$here/../../../hack/tools.sh" path)
cd "$here"
exec cargo run --quiet --package catamaran-fixtures -- "$tools" "$@"
