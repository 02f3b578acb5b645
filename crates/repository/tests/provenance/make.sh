#!/usr/bin/env bash
# Makes the fixtures of this folder anew: a chart, keys of all kinds, and what they signed.
#
#   make.sh FOLDER    writes them to FOLDER; needs gpg (GnuPG 2.2 or later) and helm
#
# Secret keys are made in a folder that is removed, and are never written here. Nothing depends on
# the hour: keys and signatures are of January 2024, what is to have expired did so that month.
set -euo pipefail

out=$(realpath "${1:?a folder}")
home=$(mktemp -d)
trap 'gpgconf --homedir "$home" --kill all; rm -rf "$home"' EXIT
export GNUPGHOME=$home
mkdir -p "$out"

# gpg at a time: 20240101T000000
at() {
    local time=$1
    shift
    gpg --batch --quiet --yes --no-tty --passphrase '' --pinentry-mode loopback \
        --faked-system-time "$time!" "$@"
}
begin=20240101T000000 later=20240102T000000

key() { # name, algorithm, usage, expiry
    at "$begin" --quick-generate-key "$1 <$1@charts.test>" "$2" "${3:-sign}" "${4:-never}"
}
fingerprint() {
    gpg --batch --with-colons --list-keys "$1@charts.test" | awk -F: '$1 == "fpr" { print $10; exit }'
}
subkey() { # name, algorithm, usage, expiry
    at "$begin" --quick-add-key "$(fingerprint "$1")" "$2" "$3" "${4:-never}"
}
edit() { # name, command...
    local name=$1
    shift
    printf '%s\n' "$@" | at "$later" --command-fd 0 --edit-key "$name@charts.test" >/dev/null 2>&1
}

key rsa rsa2048
subkey rsa rsa2048 encr
key rsa4096 rsa4096
key dsa dsa2048
subkey dsa elg2048 encr
key p256 nistp256
subkey p256 nistp256 encr
key p384 nistp384
key p521 nistp521
key ed25519 ed25519
subkey ed25519 cv25519 encr
key brainpool brainpoolP256r1
key stranger ed25519

# The name is the subkey's, which signs.
for name in subkey expired-subkey revoked-subkey; do
    key "$name" ed25519 cert
done
subkey subkey nistp256/ecdsa sign
subkey expired-subkey rsa2048 sign 20240115T000000
subkey revoked-subkey ed25519 sign

key expired rsa2048 sign 20240115T000000
key extended ed25519 sign 20240115T000000
key revoked ed25519
key renamed ed25519
key certifies ed25519

# What Helm signs: the archive is its own, and so is what is signed by all others.
chart=$home/signed
mkdir -p "$chart/templates"
cat >"$chart/Chart.yaml" <<'YAML'
apiVersion: v2
name: signed
version: 1.0.0
description: A chart that is signed
maintainers:
- name: somebody
  email: somebody@charts.test
YAML
cat >"$chart/templates/a.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
YAML
gpg --batch --export-secret-keys rsa@charts.test >"$home/secret.gpg"
(cd "$home" && SOURCE_DATE_EPOCH=1704067200 helm package --sign --key rsa@charts.test \
    --keyring secret.gpg -d "$out" signed >/dev/null)
mv "$out/signed-1.0.0.tgz.prov" "$out/helm.prov"
message=$home/message
gpg --batch --quiet --decrypt "$out/helm.prov" >"$message" 2>/dev/null

sign() { # file, arguments of gpg
    local file=$1
    shift
    at "$later" "$@" --output "$out/$file.prov" --clear-sign "$message"
}
for name in rsa rsa4096 dsa p256 p384 p521 ed25519 brainpool stranger subkey expired-subkey \
    revoked-subkey expired extended revoked renamed certifies; do
    sign "$name" --local-user "$name@charts.test"
done
for hash in sha1 sha224 sha256 sha384; do
    sign "$hash" --local-user rsa@charts.test --digest-algo "$hash"
done
sign p256-sha512 --local-user p256@charts.test --digest-algo sha512
sign p384-sha512 --local-user p384@charts.test --digest-algo sha512
sign two --local-user stranger@charts.test --local-user ed25519@charts.test
sign expired-signature --local-user rsa@charts.test --default-sig-expire 1d
sign notation --local-user rsa@charts.test --sig-notation '!critical@charts.test=yes'
at 20990101T000000 --local-user rsa@charts.test --output "$out/future.prov" --clear-sign "$message"

# Signed well, and says something else.
variant() { # file, command that rewrites the message
    local file=$1
    shift
    cp "$message" "$home/original"
    "$@" <"$home/original" >"$message"
    sign "$file" --local-user ed25519@charts.test
    cp "$home/original" "$message"
}
variant other-name sed 's/signed-1.0.0.tgz/other-1.0.0.tgz/'
variant other-sum sed 's/sha256:..../sha256:0000/'
variant no-sums sed "/^\.\.\.\$/,\$d"
variant no-yaml sed 's/^files:/files: [/'
variant no-map sed "/^files:/,\$d;/^\.\.\.\$/a files: [a]"
variant spaces sed 's/^description: .*/&  \t/;s/^maintainers:/\n- dashes\n-- more\n&/'

# Only now keys change.
edit extended 'expire' '0' 'save'
at "$later" --quick-add-uid "$(fingerprint renamed)" 'renamed anew <anew@charts.test>'
at "$later" --quick-revoke-uid "$(fingerprint renamed)" 'renamed <renamed@charts.test>'
edit certifies 'change-usage' 's' 'q' 'save'
edit revoked-subkey 'key 1' 'revkey' 'y' '1' '' 'y' 'save'
# What gpg wrote when it made the key, without the colon that keeps it from being used.
sed 's/^:-----/-----/' "$home/openpgp-revocs.d/$(fingerprint revoked).rev" |
    at "$later" --import 2>/dev/null

mapfile -t ring < <(gpg --batch --with-colons --list-keys | awk -F: '$1 == "pub" { p = 1 } $1 == "fpr" && p { print $10; p = 0 }')
stranger=$(fingerprint stranger)
others=()
for one in "${ring[@]}"; do
    [ "$one" = "$stranger" ] || others+=("$one")
done
gpg --batch --export "${others[@]}" >"$out/ring.gpg"
gpg --batch --export --armor "${others[@]}" >"$out/ring.asc"
gpg --batch --export "$stranger" >"$out/stranger.gpg"
gpg --batch --export --armor "$stranger" >"$out/stranger.asc"
gpg --batch --export brainpool@charts.test >"$out/brainpool.gpg"
gpg --batch --export ed25519@charts.test >"$out/ed25519.gpg"
(
    export GNUPGHOME=$home/other
    mkdir -m 700 "$GNUPGHOME"
    gpg --batch --quiet --import "$out/ring.gpg"
    cp "$GNUPGHOME/pubring.kbx" "$out/ring.kbx"
    gpgconf --kill all
)
