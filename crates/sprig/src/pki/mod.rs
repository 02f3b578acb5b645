//! Keys and certificates, real ones: what OpenSSL and Go read. Made as Go's `crypto/x509` makes
//! them for Sprig: RSA of 2048 bits, a common name and nothing else, server and client at once.

mod certificate;
mod der;
mod fermat;
mod keys;
mod primes;
mod rsa;

use catamaran_gotemplate::{Ctx, FuncError, Heap, NamedType, Object, Type, Value};

use crate::args::{Outcome, any, bytes, chars, int, string};
use crate::random::begin;
use certificate::{Issuer, Names, Request};
use keys::PrivateKey;

/// The type `sprig.certificate`.
pub(crate) static CERTIFICATE: NamedType =
    NamedType { name: "sprig.certificate", underlying: Type::Struct, methods: &[] };

items! {
    /// A private key in PEM: `rsa` (4096 bits), `ecdsa` (P-256), `ed25519` or `dsa`.
    sprig "KIND -> string",
        r#"{{ genPrivateKey "ecdsa" | trunc 30 }}"# => "-----BEGIN EC PRIVATE KEY-----";
    "genPrivateKey"(String) => |ctx, args| {
        begin(ctx, "genPrivateKey", args)?;
        let kind = chars(args, 0);
        match PrivateKey::of_kind(ctx, &kind)? {
            Some(key) => string(ctx, key.to_pem()),
            None => string(ctx, format!("Unknown type {kind}")),
        }
    };
    /// A certificate authority: its common name, the days it is valid. Has `.Cert` and `.Key`.
    sprig "NAME DAYS -> certificate",
        r#"{{ (genCA "my-ca" 365).Cert | trunc 27 }}"# => "-----BEGIN CERTIFICATE-----";
    "genCA"(String, Int) => |ctx, args| {
        begin(ctx, "genCA", args)?;
        let key = PrivateKey::for_certificate(ctx)?;
        authority(ctx, args, &key)
    };
    /// As `genCA`, with a private key in PEM.
    sprig "NAME DAYS KEY -> certificate",
        r#"{{ $key := genPrivateKey "ecdsa" }}{{ eq (genCAWithKey "my-ca" 365 $key).Key $key }}"#
            => "true";
    "genCAWithKey"(String, Int, String) => |ctx, args| {
        begin(ctx, "genCAWithKey", args)?;
        let key = given_key(bytes(args, 2))?;
        authority(ctx, args, &key)
    };
    /// A certificate that signs itself: common name, IP addresses, DNS names, days.
    sprig "NAME IPS DNS DAYS -> certificate",
        r#"{{ (genSelfSignedCert "web" (list "10.0.0.1") (list "web.local") 365).Cert | trunc 27 }}"#
            => "-----BEGIN CERTIFICATE-----";
    "genSelfSignedCert"(String, List, List, Int) => |ctx, args| {
        begin(ctx, "genSelfSignedCert", args)?;
        let key = PrivateKey::for_certificate(ctx)?;
        self_signed(ctx, args, &key)
    };
    /// As `genSelfSignedCert`, with a private key in PEM.
    sprig "NAME IPS DNS DAYS KEY -> certificate",
        r#"{{ $key := genPrivateKey "ed25519" }}{{ eq (genSelfSignedCertWithKey "web" nil nil 365 $key).Key $key }}"#
            => "true";
    "genSelfSignedCertWithKey"(String, List, List, Int, String) => |ctx, args| {
        begin(ctx, "genSelfSignedCertWithKey", args)?;
        let key = given_key(bytes(args, 4))?;
        self_signed(ctx, args, &key)
    };
    /// A certificate signed by an authority: common name, IP addresses, DNS names, days, authority.
    sprig "NAME IPS DNS DAYS CA -> certificate",
        r#"{{ $ca := genCA "my-ca" 365 }}{{ (genSignedCert "web" nil (list "web.local") 365 $ca).Cert | trunc 27 }}"#
            => "-----BEGIN CERTIFICATE-----";
    "genSignedCert"(String, List, List, Int, Certificate) => |ctx, args| {
        begin(ctx, "genSignedCert", args)?;
        let key = PrivateKey::for_certificate(ctx)?;
        signed(ctx, args, &key)
    };
    /// As `genSignedCert`, with a private key in PEM.
    sprig "NAME IPS DNS DAYS CA KEY -> certificate",
        r#"{{ $key := genPrivateKey "ecdsa" }}{{ $ca := genCAWithKey "my-ca" 365 $key }}{{ eq (genSignedCertWithKey "web" nil nil 365 $ca $key).Key $key }}"#
            => "true";
    "genSignedCertWithKey"(String, List, List, Int, Certificate, String) => |ctx, args| {
        begin(ctx, "genSignedCertWithKey", args)?;
        let key = given_key(bytes(args, 5))?;
        signed(ctx, args, &key)
    };
    /// A certificate of given parts: a certificate and a private key, both PEM in base 64.
    sprig "CERTIFICATE KEY -> certificate",
        r#"{{ $ca := genCA "my-ca" 365 }}{{ eq (buildCustomCert (b64enc $ca.Cert) (b64enc $ca.Key)).Cert $ca.Cert }}"#
            => "true";
    "buildCustomCert"(String, String) => |_, args| {
        let decoded = |at, what: &str| {
            crate::encoding::from_base64(bytes(args, at))
                .map_err(|_| FuncError::new(format!("unable to decode base64 {what}")))
        };
        let (cert, key) = (decoded(0, "certificate")?, decoded(1, "private key")?);
        Issuer::from_pem(&cert, "decodedCert.Bytes")?;
        PrivateKey::from_pem(&key).map_err(|error| format!("error parsing private key: {error}"))?;
        Ok(Value::object(Certificate { cert: cert.into(), key: key.into() }))
    };
}

/// A certificate and its private key, both in PEM.
#[derive(Debug)]
struct Certificate {
    cert: catamaran_gotemplate::Str,
    key: catamaran_gotemplate::Str,
}

impl Object for Certificate {
    fn go_type(&self) -> &'static NamedType {
        &CERTIFICATE
    }

    fn field(&self, _: &mut Heap, name: &str) -> Option<Value> {
        self.fields().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Cert", self.cert.clone().into()), ("Key", self.key.clone().into())]
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other: &dyn std::any::Any = other;
        other.downcast_ref::<Self>().is_some_and(|it| it.cert == self.cert && it.key == self.key)
    }
}

fn given_key(pem: &[u8]) -> Result<PrivateKey, FuncError> {
    PrivateKey::from_pem(pem).map_err(|error| format!("parsing private key: {error}").into())
}

fn authority(ctx: &mut Ctx, args: &[Value], key: &PrivateKey) -> Outcome {
    let request = Request::new(ctx, bytes(args, 0), Names::default(), int(args, 1), true);
    made(ctx, &request, key, None)
}

fn self_signed(ctx: &mut Ctx, args: &[Value], key: &PrivateKey) -> Outcome {
    let names = Names::read(ctx, any(args, 1), any(args, 2))?;
    let request = Request::new(ctx, bytes(args, 0), names, int(args, 3), false);
    made(ctx, &request, key, None)
}

fn signed(ctx: &mut Ctx, args: &[Value], key: &PrivateKey) -> Outcome {
    let nothing = Certificate { cert: "".into(), key: "".into() };
    let authority = any(args, 4).downcast().unwrap_or(&nothing);
    let issuer = Issuer::from_pem(authority.cert.as_bytes(), "decodedSignerCert.Bytes")?;
    let issuer_key = PrivateKey::from_pem(authority.key.as_bytes())
        .map_err(|error| format!("error parsing private key: {error}"))?;
    let names = Names::read(ctx, any(args, 1), any(args, 2))?;
    let request = Request::new(ctx, bytes(args, 0), names, int(args, 3), false);
    made(ctx, &request, key, Some((&issuer, &issuer_key)))
}

fn made(
    ctx: &mut Ctx,
    request: &Request,
    key: &PrivateKey,
    issuer: Option<(&Issuer, &PrivateKey)>,
) -> Outcome {
    ctx.meter.charge_steps(issuer.map_or(key, |(_, key)| key).signing_steps())?;
    ctx.meter.check_deadline()?;
    let cert = request
        .certificate(key, issuer)
        .map_err(|error| format!("error creating certificate: {error}"))?;
    let (cert, key) = (der::write_pem("CERTIFICATE", &cert), key.to_pem());
    ctx.meter.charge_bytes(cert.len() + key.len())?;
    Ok(Value::object(Certificate { cert: cert.into(), key: key.into() }))
}
