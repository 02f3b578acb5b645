#!/usr/bin/env bash
#
# Writes what the shipped binaries are made of, as CycloneDX (JSON), into the
# folder sbom/: one file for the operator, one for the command. The images hold
# them. Fails where a package that is compiled into a binary is missing there, or
# one has no licence.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VERSION=0.5.9
readonly TARGET=${SBOM_TARGET:-x86_64-unknown-linux-gnu}
# package | its folder
readonly SHIPPED='
memcached-operator .
catamaran-cli      crates/cli
'
# The tool writes beside every manifest of the workspace, under this name.
readonly DRAFT=catamaran-sbom-draft

die() {
    printf 'sbom: %s\n' "$*" >&2
    exit 1
}

clean() { find . -name "$DRAFT.json" -not -path './target/*' -delete; }

# name@version of all packages that are compiled for the binary.
compiled() { # package
    cargo tree --locked --package "$1" --edges normal,build --target "$TARGET" --prefix none --format '{p}' |
        awk '{ print $1 "@" substr($2, 2) }' | sort -u
}

# The same of all components that are listed.
listed() { # file
    sed -nE 's|^ *"purl": "pkg:cargo/([^?"]+).*|\1|p' "$1" | sort -u
}

# A component without a licence has no line of it between its name and the next.
unlicensed() { # file
    awk '
        /^    \{$/ { open = 1; ref = ""; licence = 0 }
        open && /"bom-ref"/ { ref = $2 }
        open && /"licenses"/ { licence = 1 }
        open && /^    \}/ { if (ref != "" && !licence) print ref; open = 0 }
        /^  "dependencies"/ { exit }
    ' "$1"
}

main() {
    local tool package folder file missing epoch
    tool=$(hack/cargo-tool.sh cargo-cyclonedx "$VERSION") || die "cargo-cyclonedx $VERSION could not be built"
    trap clean EXIT
    # The same commit gives the same file.
    epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
    SOURCE_DATE_EPOCH=$epoch "$tool" cyclonedx --manifest-path Cargo.toml --format json --spec-version 1.5 \
        --target "$TARGET" --override-filename "$DRAFT" --quiet
    mkdir -p sbom
    while read -r package folder; do
        [[ -n $package ]] || continue
        file=sbom/$package.cdx.json
        # Where it was built is nobody's business.
        sed "s|path+file://$PWD|path+file://.|g" "$folder/$DRAFT.json" >"$file"
        missing=$(comm -23 <(compiled "$package") <(listed "$file"))
        [[ -z $missing ]] || die "$file lacks $missing"
        missing=$(unlicensed "$file")
        [[ -z $missing ]] || die "$file names no licence for $missing"
        printf '%s: %d packages\n' "$file" "$(listed "$file" | wc -l)"
    done <<<"$SHIPPED"
}

main
