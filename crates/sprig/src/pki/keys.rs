//! Private keys: made, read, written, and what they sign.

use catamaran_gotemplate::{Ctx, FuncError};
use crypto_bigint::{U1024, U2048};
use ed25519_dalek::Signer as _;
use p256::ecdsa::{DerSignature, SigningKey};

use super::der::{self, Reader, read_pem, write_pem};
use super::rsa::{DsaKey, RsaKey};

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const SHA256_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// P-224, P-384 and P-521: read, but nothing is made with them.
const OTHER_CURVES: [&[u8]; 3] =
    [&[0x2b, 0x81, 4, 0, 33], &[0x2b, 0x81, 4, 0, 34], &[0x2b, 0x81, 4, 0, 35]];

/// A private key.
#[derive(Debug)]
pub(super) enum PrivateKey {
    Rsa(RsaKey),
    P256(SigningKey),
    /// A sound key on one of [`OTHER_CURVES`].
    OtherCurve,
    Ed25519(ed25519_dalek::SigningKey),
    Dsa(DsaKey),
}

/// What a certificate says of a key: algorithm and key, both in DER.
#[derive(Debug)]
pub(super) struct PublicKey {
    pub algorithm: Vec<u8>,
    pub key: Vec<u8>,
}

/// What keys cost to make, in hundredths of the first (measured).
const RSA_2048: u32 = 100;
const RSA_4096: u32 = 1300;
const DSA: u32 = 700;
/// What a key on a curve costs to make and to sign with, in steps.
const CURVE_STEPS: u64 = 50_000;

impl PrivateKey {
    /// The key that certificates get when none is given: RSA of 2048 bits.
    pub fn for_certificate(ctx: &mut Ctx) -> Result<Self, FuncError> {
        ctx.meter.charge_keys(RSA_2048)?;
        RsaKey::generate::<{ U1024::LIMBS }>(ctx).map(Self::Rsa)
    }

    /// A key of a kind that `genPrivateKey` knows; `None` for another.
    pub fn of_kind(ctx: &mut Ctx, kind: &str) -> Result<Option<Self>, FuncError> {
        match kind {
            "" | "rsa" => ctx.meter.charge_keys(RSA_4096)?,
            "dsa" => ctx.meter.charge_keys(DSA)?,
            "ecdsa" | "ed25519" => ctx.meter.charge_steps(CURVE_STEPS)?,
            _ => return Ok(None),
        }
        Ok(Some(match kind {
            "dsa" => Self::Dsa(DsaKey::generate(ctx)?),
            "ecdsa" => loop {
                // Nearly every number is a key.
                let mut secret = [0; 32];
                crate::random::fill(ctx, &mut secret);
                if let Ok(key) = SigningKey::from_slice(&secret) {
                    break Self::P256(key);
                }
            },
            "ed25519" => {
                let mut seed = [0; 32];
                crate::random::fill(ctx, &mut seed);
                Self::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed))
            }
            _ => Self::Rsa(RsaKey::generate::<{ U2048::LIMBS }>(ctx)?),
        }))
    }

    /// Reads PEM. The error is Sprig's text, with our words where Go tells what part of ASN.1 is wrong.
    pub fn from_pem(text: &[u8]) -> Result<Self, String> {
        let pem = read_pem(text).ok_or_else(|| "no PEM data in input".to_owned())?;
        if pem.label == "PRIVATE KEY" {
            return from_pkcs8(&pem.data)
                .map_err(|error| format!("decoding PEM as PKCS#8: {error}"));
        }
        let label = &pem.label;
        let Some(kind) = label.strip_suffix(" PRIVATE KEY") else {
            return Err(format!("no private key data in PEM block of type {label}"));
        };
        let read = match kind {
            "RSA" => RsaKey::from_der(&pem.data).map(Self::Rsa),
            "EC" => from_sec1(&pem.data, None),
            "DSA" => DsaKey::from_der(&pem.data).map(Self::Dsa),
            _ => return Err(format!("invalid private key type {label}")),
        };
        read.map_err(|error| format!("parsing {kind} private key from PEM: {error}"))
    }

    /// As PEM, of the type that Go's tools write for the kind of key.
    pub fn to_pem(&self) -> String {
        match self {
            Self::Rsa(key) => write_pem("RSA PRIVATE KEY", &key.to_der()),
            Self::P256(key) => {
                let public = key.verifying_key().to_sec1_point(false);
                let parts = [
                    der::integer(&[1]),
                    der::element(der::OCTET_STRING, &key.to_bytes()),
                    der::element(der::context(0), &der::oid(P256)),
                    der::element(der::context(1), &der::bit_string(public.as_ref())),
                ];
                write_pem("EC PRIVATE KEY", &der::sequence(&parts))
            }
            Self::Ed25519(key) => {
                let seed = der::element(der::OCTET_STRING, key.as_bytes());
                let parts = [
                    der::integer(&[]),
                    der::sequence(&[der::oid(ED25519)]),
                    der::element(der::OCTET_STRING, &seed),
                ];
                write_pem("PRIVATE KEY", &der::sequence(&parts))
            }
            Self::Dsa(key) => write_pem("DSA PRIVATE KEY", &key.to_der()),
            Self::OtherCurve => String::new(),
        }
    }

    /// The public half. Certificates of DSA keys are beyond Go's library, and so beyond us.
    pub fn public(&self) -> Result<PublicKey, String> {
        let null = der::element(der::NULL, &[]);
        Ok(match self {
            Self::Rsa(key) => PublicKey {
                algorithm: der::sequence(&[der::oid(RSA), null]),
                key: key.public_der(),
            },
            Self::P256(key) => PublicKey {
                algorithm: der::sequence(&[der::oid(EC), der::oid(P256)]),
                key: key.verifying_key().to_sec1_point(false).as_ref().to_vec(),
            },
            Self::Ed25519(key) => PublicKey {
                algorithm: der::sequence(&[der::oid(ED25519)]),
                key: key.verifying_key().to_bytes().to_vec(),
            },
            Self::Dsa(_) => {
                return Err("x509: unsupported public key type: *dsa.PublicKey".to_owned());
            }
            Self::OtherCurve => return Err(other_curve()),
        })
    }

    /// How this key signs; an error if it cannot.
    pub fn signature_algorithm(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Rsa(_) => {
                let null = der::element(der::NULL, &[]);
                Ok(der::sequence(&[der::oid(SHA256_WITH_RSA), null]))
            }
            Self::P256(_) => Ok(der::sequence(&[der::oid(ECDSA_WITH_SHA256)])),
            Self::Ed25519(_) => Ok(der::sequence(&[der::oid(ED25519)])),
            Self::Dsa(_) => {
                Err("x509: certificate private key does not implement crypto.Signer".to_owned())
            }
            Self::OtherCurve => Err(other_curve()),
        }
    }

    /// The signature of a message; the same each time.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Rsa(key) => key.sign(message),
            Self::P256(key) => {
                let signature: DerSignature = key.sign(message);
                Ok(signature.as_bytes().to_vec())
            }
            Self::Ed25519(key) => Ok(key.sign(message).to_bytes().to_vec()),
            Self::Dsa(_) | Self::OtherCurve => self.signature_algorithm(),
        }
    }

    /// What a signature costs, in steps.
    pub fn signing_steps(&self) -> u64 {
        if let Self::Rsa(key) = self { key.cost() } else { CURVE_STEPS }
    }
}

fn other_curve() -> String {
    "catamaran: of the elliptic curves only P-256 and Ed25519 are supported".to_owned()
}

fn from_pkcs8(data: &[u8]) -> Result<PrivateKey, String> {
    let read = || {
        let mut inner = Reader::new(data).enter(der::SEQUENCE)?;
        inner.small()?;
        let mut algorithm = inner.enter(der::SEQUENCE)?;
        let kind = algorithm.expect(der::OBJECT_IDENTIFIER)?;
        Some((kind, algorithm, inner.expect(der::OCTET_STRING)?))
    };
    let Some((kind, mut algorithm, key)) = read() else {
        return Err("asn1: structure error: malformed PKCS#8 private key".to_owned());
    };
    let embedded = |kind: &str, error: String| {
        format!("x509: failed to parse {kind} private key embedded in PKCS#8: {error}")
    };
    match kind {
        RSA => RsaKey::from_der(key).map(PrivateKey::Rsa).map_err(|error| embedded("RSA", error)),
        EC => {
            let curve = algorithm.optional(der::OBJECT_IDENTIFIER);
            from_sec1(key, curve).map_err(|error| embedded("EC", error))
        }
        ED25519 => {
            if !algorithm.is_empty() {
                return Err("x509: invalid Ed25519 private key parameters".to_owned());
            }
            let seed = Reader::new(key)
                .expect(der::OCTET_STRING)
                .ok_or_else(|| "x509: invalid Ed25519 private key: malformed".to_owned())?;
            let seed: [u8; 32] = seed
                .try_into()
                .map_err(|_| format!("x509: invalid Ed25519 private key length: {}", seed.len()))?;
            Ok(PrivateKey::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed)))
        }
        _ => Err("x509: PKCS#8 wrapping contained private key with unknown algorithm".to_owned()),
    }
}

fn from_sec1(data: &[u8], curve: Option<&[u8]>) -> Result<PrivateKey, String> {
    let read = || {
        let mut inner = Reader::new(data).enter(der::SEQUENCE)?;
        let version = inner.small()?;
        let secret = inner.expect(der::OCTET_STRING)?;
        let named = match inner.optional(der::context(0)) {
            Some(curve) => Some(Reader::new(curve).expect(der::OBJECT_IDENTIFIER)?),
            None => None,
        };
        Some((version, secret, named))
    };
    let Some((version, secret, named)) = read() else {
        return Err("x509: failed to parse EC private key: malformed".to_owned());
    };
    if version != 1 {
        return Err(format!("x509: unknown EC private key version {version}"));
    }
    let curve = curve.or(named).unwrap_or_default();
    if OTHER_CURVES.contains(&curve) {
        return Ok(PrivateKey::OtherCurve);
    }
    if curve != P256 {
        return Err("x509: unknown elliptic curve".to_owned());
    }
    let zeros = secret.iter().take_while(|byte| **byte == 0).count();
    let secret = secret.get(zeros..).unwrap_or_default();
    if secret.len() > 32 {
        return Err("x509: invalid private key length".to_owned());
    }
    let padded = [vec![0; 32 - secret.len()], secret.to_vec()].concat();
    let key = SigningKey::from_slice(&padded);
    key.map(PrivateKey::P256)
        .map_err(|_| "x509: invalid elliptic curve private key value".to_owned())
}
