//! A key of each kind and a certificate, for functions that take them; the same ones in every run.

use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use catamaran_chart::render::standalone;

static FILES: LazyLock<[(&'static str, String); 3]> = LazyLock::new(|| {
    let make = |text: &str| {
        let clock = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        standalone("pki", text, clock, 1).unwrap_or_default()
    };
    [
        ("pki/ec.pem", make("{{ genPrivateKey \"ecdsa\" }}")),
        ("pki/ed25519.pem", make("{{ genPrivateKey \"ed25519\" }}")),
        (
            "pki/cert.pem",
            make(
                "{{ (genSelfSignedCertWithKey \"x\" nil nil 36500 (genPrivateKey \"ecdsa\")).Cert }}",
            ),
        ),
    ]
});

/// Names and contents.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().map(|(name, text)| (*name, text.as_str()))
}
