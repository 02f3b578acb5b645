//! Charts that are signed: which count, and what is said of the others. The fixtures are
//! `provenance/make.sh`'s; what is expected is what the real helm says (crates/cli's tests ask it).

#![allow(clippy::unwrap_used, clippy::panic, clippy::format_push_string)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use catamaran_repository::{Access, Finder, Wanted};
use support::Home;

const ARCHIVE: &str = "signed-1.0.0.tgz";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/provenance").join(name)
}

fn provenance(name: &str) -> Vec<u8> {
    fs::read(fixture(&format!("{name}.prov"))).unwrap()
}

/// The chart with a provenance beside it, and who looks at it.
struct Signed {
    home: Home,
    finder: Finder,
}

impl Signed {
    fn new(keyring: &Path) -> Self {
        let home = Home::new();
        fs::copy(fixture(ARCHIVE), home.folder.path().join(ARCHIVE)).unwrap();
        let finder = Finder { keyring: Some(keyring.to_owned()), ..home.finder(Access::default()) };
        Self { home, finder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.folder.path().join(name)
    }

    /// What comes of the archive with this provenance; nothing is said of one that counts.
    fn verdict(&self, provenance: &[u8]) -> String {
        fs::write(self.path(&format!("{ARCHIVE}.prov")), provenance).unwrap();
        self.verdict_on(ARCHIVE)
    }

    fn verdict_on(&self, name: &str) -> String {
        let path = self.path(name).display().to_string();
        let found = self.finder.here(Wanted { name: &path, ..Wanted::default() });
        match found {
            Ok(found) => {
                assert_eq!(found.unwrap(), Path::new(&path));
                String::new()
            }
            Err(error) => error.to_string().replace(&path, "PATH"),
        }
    }
}

/// What each provenance comes to.
const VERDICTS: &[(&str, &str)] = &[
    ("helm", ""),
    ("rsa", ""),
    ("rsa4096", ""),
    ("dsa", ""),
    ("p256", ""),
    ("p384", ""),
    ("p521", ""),
    ("ed25519", ""),
    ("sha1", ""),
    ("sha256", ""),
    ("sha384", ""),
    ("p256-sha512", ""),
    ("p384-sha512", ""),
    ("subkey", ""),
    ("extended", ""),
    ("renamed", ""),
    ("two", ""),
    ("spaces", ""),
    ("stranger", "openpgp: signature made by unknown entity"),
    ("certifies", "openpgp: signature made by unknown entity"),
    ("expired", "openpgp: key expired"),
    ("expired-subkey", "openpgp: key expired"),
    ("expired-signature", "openpgp: signature expired"),
    ("future", "openpgp: signature expired"),
    ("revoked", "openpgp: signature made by revoked key"),
    ("revoked-subkey", "openpgp: signature made by revoked key"),
    ("notation", "openpgp: invalid signature: unknown critical notation: critical@charts.test"),
    ("no-sums", "message block must have at least two parts"),
    ("no-yaml", "error converting YAML to JSON: yaml: line 2: did not find expected ',' or ']'"),
    (
        "no-map",
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go struct field SumCollection.files of type map[string]string",
    ),
    ("other-name", "provenance does not contain a SHA for a file named \"signed-1.0.0.tgz\""),
    (
        "other-sum",
        "sha256 sum does not match for signed-1.0.0.tgz: \"sha256:0000SUM\" != \"sha256:SUM\"",
    ),
    // Helm takes these two.
    ("brainpool", "openpgp: signature made by unknown entity"),
    ("sha224", "openpgp: unsupported feature: SHA-224 with RSA"),
];

#[test]
fn what_counts_is_what_helm_says() {
    let sum = support::sha256(&fs::read(fixture(ARCHIVE)).unwrap());
    for (keyring, rest) in [("ring.gpg", 1), ("ring.asc", 5), ("ring.kbx", 5)] {
        let signed = Signed::new(&fixture(keyring));
        for (name, expected) in VERDICTS.iter().step_by(rest) {
            let said = signed.verdict(&provenance(name));
            let said = said.replace(&sum, "SUM").replace(&sum[4..], "SUM");
            assert_eq!(said, *expected, "{name} by {keyring}");
        }
    }
    let made = fs::read_dir(fixture("")).unwrap().map(|entry| entry.unwrap().path());
    let made = made.filter(|path| path.extension().is_some_and(|extension| extension == "prov"));
    assert_eq!(made.count(), VERDICTS.len());
}

#[test]
fn cve_2026_35205_files_that_are_missing_or_no_archives_are_told() {
    let signed = Signed::new(&fixture("ring.gpg"));
    let missing =
        "could not load provenance file PATH.prov: stat PATH.prov: no such file or directory";
    assert_eq!(signed.verdict_on(ARCHIVE), missing);
    fs::copy(fixture(ARCHIVE), signed.path("signed.tar.gz")).unwrap();
    assert_eq!(signed.verdict_on("signed.tar.gz"), "chart must be a tgz file");
    fs::create_dir(signed.path("folder.tgz")).unwrap();
    assert_eq!(signed.verdict_on("folder.tgz"), "unpacked charts cannot be verified");
    fs::copy(fixture(ARCHIVE), signed.path("Other.TGZ")).unwrap();
    fs::copy(fixture("rsa.prov"), signed.path("Other.TGZ.prov")).unwrap();
    assert_eq!(
        signed.verdict_on("Other.TGZ"),
        "provenance does not contain a SHA for a file named \"Other.TGZ\""
    );
    let nowhere = Signed::new(Path::new("/nowhere"));
    assert_eq!(
        nowhere.verdict(&provenance("rsa")),
        "failed to load keyring: open /nowhere: no such file or directory"
    );
}

#[test]
fn a_chart_that_was_changed_does_not_count() {
    let signed = Signed::new(&fixture("ring.gpg"));
    let mut archive = fs::read(fixture(ARCHIVE)).unwrap();
    archive.push(0);
    fs::write(signed.path(ARCHIVE), archive).unwrap();
    let said = signed.verdict(&provenance("ed25519"));
    assert!(said.starts_with("sha256 sum does not match for signed-1.0.0.tgz: "), "{said}");
}

/// A provenance, rewritten on its way.
fn rewritten(name: &str, rewrite: impl Fn(&str) -> String) -> Vec<u8> {
    rewrite(&String::from_utf8(provenance(name)).unwrap()).into_bytes()
}

#[test]
fn what_is_no_part_of_a_signature_may_change() {
    let signed = Signed::new(&fixture("ring.gpg"));
    for name in ["rsa", "ed25519", "spaces"] {
        for changed in [
            rewritten(name, |text| text.replace('\n', "\r\n")),
            rewritten(name, |text| text.replacen("version: 1.0.0\n", "version: 1.0.0 \t\n", 1)),
            rewritten(name, |text| format!("Before.\n{text}After.\n")),
            rewritten(name, |text| text.replacen("Hash: SHA256", "Hash: SHA1, MD5", 1)),
            rewritten(name, |text| {
                text.replacen("SIGNATURE-----\n", "SIGNATURE-----\nVersion: 1\n", 1)
            }),
        ] {
            let text = String::from_utf8_lossy(&changed).into_owned();
            assert_eq!(signed.verdict(&changed), "", "{text}");
        }
    }
}

#[test]
fn what_is_no_signed_text_is_told() {
    let signed = Signed::new(&fixture("ring.gpg"));
    let none = "signature block not found";
    let failed = "openpgp: invalid signature: EdDSA verification failure";
    let change = |from: &'static str, to: &'static str| {
        rewritten("ed25519", move |text| text.replacen(from, to, 1))
    };
    for (changed, expected) in [
        (Vec::new(), none),
        (b"apiVersion: v1\n".to_vec(), none),
        (
            change("-----BEGIN PGP SIGNED MESSAGE-----", "-----BEGIN PGP SIGNED MESSAGE----- x"),
            none,
        ),
        (change("Hash: SHA256", "Hash: SHA42"), none),
        (change("Hash: SHA256", "Comment: x"), none),
        (change("-----BEGIN PGP SIGNATURE-----", ""), none),
        (change("-----END PGP SIGNATURE-----", ""), none),
        (change("name: signed", "name: signet"), failed),
        (change("\n...\n", "\n...\n\n"), failed),
    ] {
        let text = String::from_utf8_lossy(&changed).into_owned();
        assert_eq!(signed.verdict(&changed), expected, "{text}");
    }
}

#[test]
fn keyrings_that_are_none_are_told() {
    let home = Home::new();
    let place = home.folder.path().join("ring");
    let shown = place.display().to_string();
    let whole = fs::read(fixture("ed25519.gpg")).unwrap();
    let armor = fs::read_to_string(fixture("stranger.asc")).unwrap();
    let keybox = fs::read(fixture("ring.kbx")).unwrap();
    let length = u32::from_be_bytes(keybox[32..36].try_into().unwrap()).to_string();
    for (ring, expected) in [
        (Vec::new(), "openpgp: signature made by unknown entity"),
        (fs::read(fixture("stranger.gpg")).unwrap(), "openpgp: signature made by unknown entity"),
        (
            fs::read(fixture("brainpool.gpg")).unwrap(),
            "failed to load keyring: openpgp: invalid data: first packet was not a public/private key",
        ),
        (
            b"some text".to_vec(),
            "failed to load keyring: openpgp: invalid data: tag byte does not have MSB set",
        ),
        (whole[..20].to_vec(), "failed to load keyring: unexpected EOF"),
        (
            armor.replace("PUBLIC KEY BLOCK", "MESSAGE").into_bytes(),
            "failed to load keyring: reading armored keyring RING: expected a public or private key block, got \"PGP MESSAGE\"",
        ),
        (
            b"-----BEGIN PGP".to_vec(),
            "failed to load keyring: reading armored keyring RING: no keys found",
        ),
        (
            keybox[..32].to_vec(),
            "failed to load keyring: reading keybox RING: keybox contains no OpenPGP keys",
        ),
        (
            keybox[..400].to_vec(),
            "failed to load keyring: reading keybox RING: blob at offset 32 has length LENGTH exceeding the 368 remaining bytes",
        ),
        ([armor.as_bytes(), &fs::read(fixture("ring.asc")).unwrap()].concat(), ""),
    ] {
        fs::write(&place, &ring).unwrap();
        let said = Signed::new(&place).verdict(&provenance("ed25519")).replace(&shown, "RING");
        let said = said.replace(&length, "LENGTH");
        let text = String::from_utf8_lossy(&ring).chars().take(60).collect::<String>();
        assert_eq!(said, expected, "{text}");
    }
}

#[test]
fn no_byte_of_what_is_signed_may_change() {
    let signed = Signed::new(&fixture("ed25519.gpg"));
    let good = provenance("ed25519");
    let text = String::from_utf8(good.clone()).unwrap();
    let begin = text.find("\n\n").unwrap() + 2;
    let end = text.find("\n-----BEGIN PGP SIGNATURE").unwrap();
    for at in (begin..end).filter(|at| !good[*at].is_ascii_whitespace()) {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert_ne!(signed.verdict(&changed), "", "byte {at}");
    }
}

/// Somebody's keyring or provenance, broken in any place: an error or not, and never a panic.
#[test]
fn broken_keys_and_signatures_are_told() {
    let home = Home::new();
    let place = home.folder.path().join("ring");
    let signed = Signed::new(&place);
    for name in ["ed25519.gpg", "brainpool.gpg", "stranger.asc"] {
        let good = fs::read(fixture(name)).unwrap();
        for at in 0..good.len() {
            for byte in [0, 0xff] {
                let mut broken = good.clone();
                broken[at] = byte;
                fs::write(&place, &broken).unwrap();
                signed.verdict(&provenance("two"));
            }
            fs::write(&place, &good[..at]).unwrap();
            assert_ne!(signed.verdict(&provenance("rsa")), "");
        }
    }
    let signed = Signed::new(&fixture("ed25519.gpg"));
    let good = provenance("ed25519");
    for at in 0..good.len() {
        for byte in [b'\n', 0xff] {
            let mut broken = good.clone();
            broken[at] = byte;
            signed.verdict(&broken);
        }
        signed.verdict(&good[..at]);
    }
}
