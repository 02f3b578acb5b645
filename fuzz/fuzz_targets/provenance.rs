//! Who signed a chart: any bytes as a provenance, as the packets of a signature, and as a keyring.
#![no_main]

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use catamaran_fuzz::limits::{Limits, within};
use catamaran_repository::verify_signed;
use libfuzzer_sys::fuzz_target;

// Some keys of 8192 bits, and signatures that each may have made.
const LIMITS: Limits = Limits { time: Duration::from_secs(2), bytes: 16 << 20 };

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../crates/repository/tests/provenance/", $name))
    };
}

const NAME: &str = "signed-1.0.0.tgz";
const ARCHIVE: &[u8] = fixture!("signed-1.0.0.tgz");
/// Of one key alone: to read many takes longer than what is tried.
const RING: &[u8] = fixture!("ed25519.gpg");
/// What its key signed, one of each other algorithm, and one of a subkey.
const PROVENANCES: [&[u8]; 5] = [
    fixture!("ed25519.prov"),
    fixture!("rsa.prov"),
    fixture!("dsa.prov"),
    fixture!("p256.prov"),
    fixture!("subkey.prov"),
];
const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 3 {
        0 => check(RING, data),
        1 => check(RING, &with_signature(data)),
        _ => PROVENANCES.iter().for_each(|provenance| check(data, provenance)),
    }
});

fn check(ring: &[u8], provenance: &[u8]) {
    let verdict = within(LIMITS, || verify_signed(NAME, ARCHIVE, provenance, (ring, "ring")));
    if let Err(error) = verdict {
        assert!(!error.to_string().is_empty(), "who refuses says why");
    }
}

/// What was signed, with other packets as its signature.
fn with_signature(packets: &[u8]) -> Vec<u8> {
    let signed = String::from_utf8_lossy(PROVENANCES[0]);
    let text = signed.split(SIGNATURE).next().unwrap_or_default();
    let base64 = STANDARD.encode(packets);
    let lines: Vec<_> = base64.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    let body = lines.join("\n");
    format!("{text}{SIGNATURE}\n\n{body}\n-----END PGP SIGNATURE-----\n").into_bytes()
}
