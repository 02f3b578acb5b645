//! What is known, but not done yet.

use catamaran_gotemplate::Func;

use crate::{not_supported, stub};

macro_rules! stubs {
    ($($name:literal)*) => {
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        pub(crate) fn functions() -> Vec<Func> {
            vec![$(stub($name, |_, _| Err(not_supported($name)))),*]
        }
    };
}

stubs! {
    "toToml" "mustToToml" "fromToml"
    "genPrivateKey" "genCA" "genCAWithKey" "genSelfSignedCert" "genSelfSignedCertWithKey"
    "genSignedCert" "genSignedCertWithKey" "buildCustomCert"
    "derivePassword" "encryptAES" "decryptAES"
}
