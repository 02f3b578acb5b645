//! Signatures: RFC 9580 section 5.2, version 4.

use sha1::Sha1;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

use super::OpenPgpError;
use super::packets::Reader;

/// What a signature is over, of those kinds that matter here.
pub(super) mod kind {
    pub const BINARY: u8 = 0x00;
    pub const TEXT: u8 = 0x01;
    pub const CERTIFICATIONS: std::ops::RangeInclusive<u8> = 0x10..=0x13;
    pub const SUBKEY: u8 = 0x18;
    pub const PRIMARY_KEY: u8 = 0x19;
    pub const KEY_REVOCATION: u8 = 0x20;
    pub const SUBKEY_REVOCATION: u8 = 0x28;
    pub const CERTIFICATION_REVOCATION: u8 = 0x30;
}

/// The flag of keys that sign.
const SIGNS: u8 = 0x02;
/// The reason of a revocation that holds for all that was signed before it too.
const COMPROMISED: u8 = 2;

/// The functions that signatures hash with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// The numbers of a signature, by its algorithm.
pub(super) enum Numbers {
    Rsa(Vec<u8>),
    /// Of DSA, ECDSA and the older form of Ed25519.
    Pair(Vec<u8>, Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A signature, with what its maker says of it. What counts stands where it is signed itself; only
/// who made it may be told beside that.
pub(super) struct Signature {
    pub kind: u8,
    pub algorithm: u8,
    pub hash: Hash,
    pub numbers: Numbers,
    /// What is hashed after what is signed.
    pub suffix: Vec<u8>,
    pub said: Said,
}

/// Subpackets.
#[derive(Default)]
pub(super) struct Said {
    created: Option<u32>,
    lifetime: Option<u32>,
    /// How long the key that is signed is to live.
    pub key_lifetime: Option<u32>,
    pub issuer: Option<u64>,
    issuer_fingerprint: Option<Vec<u8>>,
    flags: Option<u8>,
    pub is_primary_name: bool,
    reason: Option<u8>,
    /// The name of a note that must be understood: none is.
    pub critical_note: Option<String>,
    /// A subkey's own signature, by which it says whose it is.
    pub embedded: Option<Box<Signature>>,
}

impl Hash {
    fn of(id: u8) -> Option<Self> {
        Some(match id {
            2 => Self::Sha1,
            8 => Self::Sha256,
            9 => Self::Sha384,
            10 => Self::Sha512,
            11 => Self::Sha224,
            _ => return None,
        })
    }

    pub fn digest(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(data).to_vec(),
            Self::Sha224 => Sha224::digest(data).to_vec(),
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha384 => Sha384::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }
}

impl Signature {
    pub fn read(rest: &mut Reader<'_>) -> Result<Self, OpenPgpError> {
        Self::read_at(rest, false)
    }

    fn read_at(rest: &mut Reader<'_>, is_embedded: bool) -> Result<Self, OpenPgpError> {
        let hashed = *rest;
        let version = rest.byte()?;
        if version != 4 {
            return OpenPgpError::unsupported(format!("signature packet version {version}"));
        }
        let (kind, algorithm, hash) = (rest.byte()?, rest.byte()?, rest.byte()?);
        if !matches!(algorithm, 1 | 3 | 17 | 19 | 22 | 27) {
            return OpenPgpError::unsupported(format!("public key algorithm {algorithm}"));
        }
        let Some(hash) = Hash::of(hash) else {
            return OpenPgpError::unsupported(format!("hash function {hash}"));
        };
        let mut said = Said::default();
        let length = rest.short()?;
        said.read(Reader::new(rest.take(length)?), true, is_embedded)?;
        let hashed = { hashed }.take(length + 6)?;
        let length = rest.short()?;
        said.read(Reader::new(rest.take(length)?), false, is_embedded)?;
        // The first bytes of the hash, to tell soon what cannot be: it is told soon enough.
        rest.take(2)?;
        let mut next = || rest.integer().map(<[u8]>::to_owned);
        let numbers = match algorithm {
            1 | 3 => Numbers::Rsa(next()?),
            27 => Numbers::Ed25519(rest.take(64)?.to_owned()),
            _ => Numbers::Pair(next()?, next()?),
        };
        // No length of two bytes and six more is beyond four bytes.
        let length = u32::try_from(hashed.len()).unwrap_or_default();
        let suffix = [hashed, &[4, 0xff], &length.to_be_bytes()].concat();
        Ok(Self { kind, algorithm, hash, numbers, suffix, said })
    }

    /// Whether its maker says that this key made it.
    pub fn is_by(&self, key: &super::key::PublicKey) -> bool {
        match &self.said.issuer_fingerprint {
            Some(fingerprint) => *fingerprint == key.fingerprint,
            None => self.said.issuer == Some(key.id),
        }
    }

    /// Seconds of Unix time.
    pub fn created(&self) -> u32 {
        self.said.created.unwrap_or_default()
    }

    /// Whether it holds no longer, or not yet.
    pub fn is_expired(&self, now: u64) -> bool {
        is_over(self.created(), self.said.lifetime, now)
    }

    /// Whether it says that the key signs: `None` if it does not say what the key does.
    pub fn allows_signing(&self) -> Option<bool> {
        self.said.flags.map(|flags| flags & SIGNS != 0)
    }

    /// Of a revocation: whether it holds.
    pub fn revokes(&self, now: u64) -> bool {
        self.said.reason == Some(COMPROMISED) || !self.is_expired(now)
    }
}

/// Whether a time of some seconds, from a moment on, does not hold now. None, or no seconds, end
/// never.
pub(super) fn is_over(begin: u32, seconds: Option<u32>, now: u64) -> bool {
    let begin = u64::from(begin);
    let end = seconds.filter(|seconds| *seconds != 0).map(|seconds| begin + u64::from(seconds));
    begin > now || end.is_some_and(|end| now > end)
}

impl Said {
    fn read(
        &mut self,
        mut rest: Reader<'_>,
        is_signed: bool,
        is_embedded: bool,
    ) -> Result<(), OpenPgpError> {
        while rest.left() > 0 {
            let part = part(&mut rest)
                .map_err(|_| OpenPgpError::Shape("signature subpacket truncated".into()))?;
            let Some((kind, part)) = part.split_first() else {
                return OpenPgpError::shape("zero length signature subpacket");
            };
            let (kind, is_critical) = (kind & 0x7f, kind & 0x80 != 0);
            if is_signed || matches!(kind, 16 | 32 | 33) {
                self.take(kind, is_critical, part, is_embedded)?;
            }
        }
        match self.created {
            None => OpenPgpError::shape("no creation time in signature"),
            Some(_) => Ok(()),
        }
    }

    fn take(
        &mut self,
        kind: u8,
        is_critical: bool,
        part: &[u8],
        is_embedded: bool,
    ) -> Result<(), OpenPgpError> {
        let bad = |text: &str| OpenPgpError::Shape(text.to_owned());
        let word = |text| match part.len() {
            4 => Reader::new(part).word(),
            _ => Err(bad(text)),
        };
        let first = part.first().copied();
        match kind {
            2 => self.created = Some(word("signature creation time not four bytes")?),
            3 => self.lifetime = Some(word("expiration subpacket with bad length")?),
            4 if first == Some(0) => {
                return OpenPgpError::unsupported("signature with non-exportable certification");
            }
            5 if part.len() != 2 => return Err(bad("trust subpacket with bad length")),
            6 if part.is_empty() => return Err(bad("regexp subpacket with bad length")),
            6 if part.last() != Some(&0) => {
                return Err(bad("expected regular expression to be null-terminated"));
            }
            9 => self.key_lifetime = Some(word("key expiration subpacket with bad length")?),
            16 if part.len() != 8 => return Err(bad("issuer subpacket with bad length")),
            16 => self.issuer = Some(Reader::new(part).number(8)?),
            20 => self.note(part, is_critical)?,
            25 if part.len() != 1 => return Err(bad("primary user id subpacket with bad length")),
            25 => self.is_primary_name = first.is_some_and(|byte| byte > 0),
            27 => *self.flags.get_or_insert_default() |= first.unwrap_or_default(),
            29 if part.is_empty() => return Err(bad("empty revocation reason subpacket")),
            29 => self.reason = first,
            32 => self.embed(part, is_embedded)?,
            33 => self.fingerprint(part)?,
            35 if part.is_empty() => {
                return Err(bad("invalid intended recipient fingerpring length"));
            }
            39 if !part.len().is_multiple_of(2) => {
                return Err(bad("invalid aead cipher suite length"));
            }
            4..=6 | 11 | 21..=24 | 26 | 28 | 30 | 35 | 39 => {}
            other if is_critical => {
                return OpenPgpError::unsupported(format!(
                    "unknown critical signature subpacket type {other}"
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, part: &[u8], is_critical: bool) -> Result<(), OpenPgpError> {
        let bad = || OpenPgpError::Shape("notation data subpacket with bad length".into());
        let mut rest = Reader::new(part);
        rest.take(4).map_err(|_| bad())?;
        let name = rest.short().map_err(|_| bad())?;
        let value = rest.short().map_err(|_| bad())?;
        if rest.left() != name + value {
            return Err(bad());
        }
        let name = rest.take(name)?;
        if is_critical && self.critical_note.is_none() {
            self.critical_note = Some(String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }

    /// The signature that a subkey makes over its primary key. It holds no further one.
    fn embed(&mut self, part: &[u8], is_embedded: bool) -> Result<(), OpenPgpError> {
        if is_embedded {
            return OpenPgpError::shape("a signature in a signature in a signature");
        }
        if self.embedded.is_some() {
            return OpenPgpError::shape("Cannot have multiple embedded signatures");
        }
        let inner = Signature::read_at(&mut Reader::new(part), true)?;
        if inner.kind != kind::PRIMARY_KEY {
            let kind = inner.kind;
            return OpenPgpError::shape(format!("cross-signature has unexpected type {kind}"));
        }
        self.embedded = Some(Box::new(inner));
        Ok(())
    }

    fn fingerprint(&mut self, part: &[u8]) -> Result<(), OpenPgpError> {
        let Some((version, fingerprint)) = part.split_first() else {
            return OpenPgpError::shape("empty issuer fingerprint subpacket");
        };
        let is_new = *version >= 5;
        if fingerprint.len() != if is_new { 32 } else { 20 } {
            return OpenPgpError::shape("bad fingerprint length");
        }
        let id = if is_new { fingerprint.get(..8) } else { fingerprint.get(12..) };
        self.issuer = Some(Reader::new(id.unwrap_or_default()).number(8)?);
        self.issuer_fingerprint = Some(fingerprint.to_owned());
        Ok(())
    }
}

/// The next subpacket, its kind first.
fn part<'a>(rest: &mut Reader<'a>) -> Result<&'a [u8], OpenPgpError> {
    let length = match rest.byte()? {
        first @ 0..192 => usize::from(first),
        first @ 192..255 => (usize::from(first - 192) << 8) + usize::from(rest.byte()?) + 192,
        255 => rest.word()? as usize,
    };
    rest.take(length)
}
