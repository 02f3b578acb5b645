//! Whether a key made a signature. The arithmetic is that of libraries, but for DSA's few lines.

use num_bigint::BigUint;
use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
use ring::signature::{self as with, RsaPublicKeyComponents, UnparsedPublicKey};

use super::OpenPgpError;
use super::key::{Curve, Material, PublicKey};
use super::signature::{Hash, Numbers, Signature};

/// Larger numbers are no key of DSA, and would take long.
const MAX_DSA_BITS: u64 = 4096;

/// Whether the key made the signature, over what is hashed before the signature's own words.
pub(super) fn verify(
    key: &PublicKey,
    mut signed: Vec<u8>,
    signature: &Signature,
) -> Result<(), OpenPgpError> {
    if matches!(key.algorithm, 2 | 16 | 18) {
        return Err(OpenPgpError::OtherAlgorithm("public key cannot generate signatures"));
    }
    if key.algorithm != signature.algorithm {
        return Err(OpenPgpError::OtherAlgorithm(
            "public key and signature use different algorithms",
        ));
    }
    signed.extend_from_slice(&signature.suffix);
    let digest = signature.hash.digest(&signed);
    let (name, is_good) = match (&key.material, &signature.numbers) {
        (Material::Rsa { n, e }, Numbers::Rsa(number)) => {
            ("RSA", rsa(n, e, signature.hash, &signed, number)?)
        }
        (Material::Dsa { p, q, g, y }, Numbers::Pair(r, s)) => {
            ("DSA", dsa([p, q, g, y], &digest, [r, s]).is_some())
        }
        (Material::Ecdsa { curve, point }, Numbers::Pair(r, s)) => {
            ("ECDSA", ecdsa(*curve, point, &digest, r, s).is_some())
        }
        (Material::Ed25519(point), Numbers::Pair(r, s)) => {
            let whole = padded(r, 32).zip(padded(s, 32)).map(|(r, s)| [r, s].concat());
            ("EdDSA", whole.is_some_and(|whole| ed25519(point, &digest, &whole)))
        }
        (Material::Ed25519(point), Numbers::Ed25519(whole)) => {
            ("Ed25519", ed25519(point, &digest, whole))
        }
        _ => ("key", false),
    };
    if is_good {
        return Ok(());
    }
    Err(OpenPgpError::Signature(format!("{name} verification failure")))
}

/// Whether some bytes are a point of the curve, not compressed.
pub(super) fn is_point(curve: Curve, point: &[u8]) -> bool {
    point.first() == Some(&4)
        && match curve {
            Curve::P256 => p256::ecdsa::VerifyingKey::from_sec1_bytes(point).is_ok(),
            Curve::P384 => p384::ecdsa::VerifyingKey::from_sec1_bytes(point).is_ok(),
            Curve::P521 => p521::ecdsa::VerifyingKey::from_sec1_bytes(point).is_ok(),
        }
}

/// PKCS #1 version 1.5, of 1024 bits at least and 8192 at most.
fn rsa(n: &[u8], e: &[u8], hash: Hash, signed: &[u8], number: &[u8]) -> Result<bool, OpenPgpError> {
    let parameters = match hash {
        Hash::Sha1 => &with::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha256 => &with::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
        Hash::Sha384 => &with::RSA_PKCS1_2048_8192_SHA384,
        Hash::Sha512 => &with::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        Hash::Sha224 => return OpenPgpError::unsupported("SHA-224 with RSA"),
    };
    let (n, e) = (without_zeros(n), without_zeros(e));
    let Some(number) = padded(number, n.len()) else { return Ok(false) };
    Ok(RsaPublicKeyComponents { n, e }.verify(parameters, signed, &number).is_ok())
}

/// FIPS 186-4 section 4.7. All of it is public, so that it need not take the same time for all.
fn dsa(key: [&[u8]; 4], digest: &[u8], numbers: [&[u8]; 2]) -> Option<()> {
    let [prime, order, generator, public] = key.map(BigUint::from_bytes_be);
    let [r, s] = numbers.map(BigUint::from_bytes_be);
    let in_group = |number: &BigUint| *number > BigUint::ZERO && *number < order;
    let is_key = prime.bits() <= MAX_DSA_BITS && order < prime && order.bits().is_multiple_of(8);
    if !is_key || !in_group(&r) || !in_group(&s) {
        return None;
    }
    let length = usize::try_from(order.bits() / 8).ok()?;
    let digest = BigUint::from_bytes_be(digest.get(..length).unwrap_or(digest));
    let inverse = s.modinv(&order)?;
    let (first, second) = (digest * &inverse % &order, &r * inverse % &order);
    let found = generator.modpow(&first, &prime) * public.modpow(&second, &prime);
    (found % &prime % &order == r).then_some(())
}

fn ecdsa(curve: Curve, point: &[u8], digest: &[u8], r: &[u8], s: &[u8]) -> Option<()> {
    let length = match curve {
        Curve::P256 => 32,
        Curve::P384 => 48,
        Curve::P521 => 66,
    };
    let numbers = [padded(r, length)?, padded(s, length)?].concat();
    // A hash that is shorter than the curve's numbers is a number too; the crates refuse it.
    let digest = padded(digest, length).unwrap_or_else(|| digest.to_owned());
    macro_rules! verify {
        ($curve:ident) => {{
            let key = $curve::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
            let signature = $curve::ecdsa::Signature::from_slice(&numbers).ok()?;
            key.verify_prehash(&digest, &signature).ok()
        }};
    }
    match curve {
        Curve::P256 => verify!(p256),
        Curve::P384 => verify!(p384),
        Curve::P521 => verify!(p521),
    }
}

/// OpenPGP signs the hash, as if it were the message.
fn ed25519(point: &[u8], digest: &[u8], whole: &[u8]) -> bool {
    UnparsedPublicKey::new(&with::ED25519, point).verify(digest, whole).is_ok()
}

/// A number with zeros before it up to a length; `None` if it is longer.
fn padded(number: &[u8], length: usize) -> Option<Vec<u8>> {
    let zeros = length.checked_sub(number.len())?;
    Some([&vec![0; zeros][..], number].concat())
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
