//! Public keys: RFC 9580 section 5.5.2, version 4.

use sha1::{Digest as _, Sha1};

use super::OpenPgpError;
use super::packets::Reader;

/// The curves of ECDSA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

/// Numbers of a key, by its algorithm.
pub(super) enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    Dsa {
        p: Vec<u8>,
        q: Vec<u8>,
        g: Vec<u8>,
        y: Vec<u8>,
    },
    Ecdsa {
        curve: Curve,
        point: Vec<u8>,
    },
    Ed25519(Vec<u8>),
    /// It only encrypts.
    None,
}

/// A public key, or the public part of a secret one.
pub(super) struct PublicKey {
    pub is_subkey: bool,
    /// Seconds of Unix time.
    pub created: u32,
    pub algorithm: u8,
    pub material: Material,
    pub fingerprint: [u8; 20],
    /// The last eight bytes of the fingerprint.
    pub id: u64,
    /// As it is hashed: head and body.
    pub hashed: Vec<u8>,
}

impl Curve {
    fn of(oid: &[u8]) -> Option<Self> {
        Some(match oid {
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => Self::P256,
            [0x2b, 0x81, 4, 0, 34] => Self::P384,
            [0x2b, 0x81, 4, 0, 35] => Self::P521,
            _ => return None,
        })
    }
}

impl PublicKey {
    pub fn read(rest: &mut Reader<'_>, is_subkey: bool) -> Result<Self, OpenPgpError> {
        let whole = *rest;
        let version = rest.byte()?;
        let created = rest.word()?;
        let algorithm = rest.byte()?;
        if version != 4 {
            return OpenPgpError::unsupported(format!("public key version {version}"));
        }
        let material = Material::read(rest, algorithm)?;
        let body = { whole }.take(whole.left() - rest.left())?;
        let Ok(length) = u16::try_from(body.len()) else {
            return OpenPgpError::shape("a public key of more than 65535 bytes");
        };
        let hashed = [&[0x99], &length.to_be_bytes()[..], body].concat();
        let fingerprint: [u8; 20] = Sha1::digest(&hashed).into();
        let id = Reader::new(&fingerprint[12..]).number(8)?;
        Ok(Self { is_subkey, created, algorithm, material, fingerprint, id, hashed })
    }

    /// Whether keys of this algorithm sign.
    pub fn signs(&self) -> bool {
        matches!(self.algorithm, 1 | 3 | 17 | 19 | 22 | 27)
    }
}

impl Material {
    fn read(rest: &mut Reader<'_>, algorithm: u8) -> Result<Self, OpenPgpError> {
        match algorithm {
            1..=3 => {
                let (n, e) = (rest.integer()?.to_owned(), rest.integer()?.to_owned());
                if e.len() > 3 {
                    return OpenPgpError::unsupported("large public exponent");
                }
                Ok(Self::Rsa { n, e })
            }
            // ElGamal.
            16 => {
                for _ in 0..3 {
                    rest.integer()?;
                }
                Ok(Self::None)
            }
            17 => {
                let mut next = || rest.integer().map(<[u8]>::to_owned);
                Ok(Self::Dsa { p: next()?, q: next()?, g: next()?, y: next()? })
            }
            18 => Self::ecdh(rest),
            19 => Self::ecdsa(rest),
            22 => Self::eddsa(rest),
            // X25519 and X448.
            25 => rest.take(32).map(|_| Self::None),
            26 => rest.take(56).map(|_| Self::None),
            27 => rest.take(32).map(|key| Self::Ed25519(key.to_owned())),
            other => OpenPgpError::unsupported(format!("public key type: {other}")),
        }
    }

    /// Helm reads no key whose secrets are derived in a way that it does not know, although nobody
    /// asks for them here.
    fn ecdh(rest: &mut Reader<'_>) -> Result<Self, OpenPgpError> {
        oid(rest)?;
        rest.integer()?;
        match oid(rest)? {
            [1, 8..=12 | 14, 2 | 3 | 7..=9, ..] => Ok(Self::None),
            other => OpenPgpError::unsupported(format!("unsupported ECDH KDF: {other:x?}")),
        }
    }

    fn ecdsa(rest: &mut Reader<'_>) -> Result<Self, OpenPgpError> {
        let oid = oid(rest)?;
        let Some(curve) = Curve::of(oid) else {
            return OpenPgpError::unsupported(format!("unknown oid: {oid:x?}"));
        };
        let point = rest.integer()?.to_owned();
        if !super::verify::is_point(curve, &point) {
            return Err(OpenPgpError::Point("ecdsa"));
        }
        Ok(Self::Ecdsa { curve, point })
    }

    fn eddsa(rest: &mut Reader<'_>) -> Result<Self, OpenPgpError> {
        let oid = oid(rest)?;
        if oid != [0x2b, 6, 1, 4, 1, 0xda, 0x47, 15, 1] {
            return OpenPgpError::unsupported(format!("unknown oid: {oid:x?}"));
        }
        match rest.integer()? {
            [] => OpenPgpError::shape("empty EdDSA public key"),
            [0x40, key @ ..] if key.len() == 32 => Ok(Self::Ed25519(key.to_owned())),
            [0x40, ..] => Err(OpenPgpError::Point("eddsa")),
            [flag, ..] => {
                OpenPgpError::unsupported(format!("unsupported EdDSA compression: {flag}"))
            }
        }
    }
}

/// The name of a curve, or another field of up to 254 bytes.
fn oid<'a>(rest: &mut Reader<'a>) -> Result<&'a [u8], OpenPgpError> {
    match rest.byte()? {
        0 | 255 => OpenPgpError::unsupported("reserved for future extensions"),
        length => rest.take(length.into()),
    }
}
