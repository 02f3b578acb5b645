//! RSA and DSA over numbers and primes of crates: making keys, and RSA's signatures (PKCS #1 v1.5).

use catamaran_gotemplate::{Ctx, FuncError};
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, NonZero, Odd, U256, U2048, Uint};
use crypto_primes::{Flavor, random_prime};
use num_bigint::BigUint;
use sha2::{Digest, Sha256};

use super::der::{self, Reader};
use super::primes::{first_prime, two_primes};
use crate::random::Random;

/// More bits than this, and a signature of a key that a chart brings along takes seconds.
const MOST_BITS: u64 = 8192;
/// What an RSA signature signs: that what follows is a SHA-256 sum (RFC 8017, 9.2).
const SHA256_PREFIX: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 0x20];

/// A private RSA key of two primes.
#[derive(Debug)]
pub(super) struct RsaKey {
    pub n: BigUint,
    pub e: BigUint,
    d: BigUint,
    p: BigUint,
    q: BigUint,
}

impl RsaKey {
    /// A new key of two primes of so many limbs; its modulus has exactly twice as many bits.
    pub fn generate<const LIMBS: usize>(ctx: &mut Ctx) -> Result<Self, FuncError> {
        let e = BigUint::from(65_537_u32);
        loop {
            ctx.meter.check_deadline()?;
            let (p, q) = two_primes::<LIMBS>(Random::drawn(ctx), Random::drawn(ctx))
                .ok_or_else(|| FuncError::new("error generating rsa key: no prime found"))?;
            let (p, q) = (number(&p), number(&q));
            // Primes near each other, or one that leaves 1 by 65537, are a matter of theory.
            if far_apart(&p, &q)
                && let Some(d) = private_exponent(&e, &p, &q)
            {
                return Ok(Self { n: &p * &q, e, d, p, q });
            }
        }
    }

    /// Reads PKCS #1; the error is Go's text, as far as it has one of its own.
    pub fn from_der(data: &[u8]) -> Result<Self, String> {
        let malformed = || "asn1: structure error: malformed RSA private key".to_owned();
        let mut outer = Reader::new(data);
        let mut inner = outer.enter(der::SEQUENCE).ok_or_else(malformed)?;
        if !outer.is_empty() {
            return Err("asn1: syntax error: trailing data".to_owned());
        }
        let version = inner.small().ok_or_else(malformed)?;
        if version > 1 {
            return Err("x509: unsupported private key version".to_owned());
        }
        let mut number = || inner.positive().map(BigUint::from_bytes_be).ok_or_else(malformed);
        let key = Self { n: number()?, e: number()?, d: number()?, p: number()?, q: number()? };
        // The rest follows from these.
        for _ in 0..3 {
            number()?;
        }
        if version == 1 {
            return Err("catamaran: RSA keys of more than two primes are not supported".to_owned());
        }
        key.check().map(|()| key)
    }

    fn check(&self) -> Result<(), String> {
        let one = BigUint::from(1_u32);
        let fits = |prime: &BigUint| *prime > one && &self.e * &self.d % (prime - &one) == one;
        let all = [&self.n, &self.e, &self.d, &self.p, &self.q];
        if all.iter().any(|number| number.bits() > MOST_BITS) {
            return Err(format!(
                "catamaran: RSA keys of more than {MOST_BITS} bits are not supported"
            ));
        }
        if &self.p * &self.q != self.n || !fits(&self.p) || !fits(&self.q) {
            return Err("crypto/rsa: invalid private key".to_owned());
        }
        Ok(())
    }

    /// PKCS #1.
    pub fn to_der(&self) -> Vec<u8> {
        let one = BigUint::from(1_u32);
        let (dp, dq) = (&self.d % (&self.p - &one), &self.d % (&self.q - &one));
        let inverse = self.q.modinv(&self.p).unwrap_or_default();
        let zero = BigUint::default();
        let all = [&zero, &self.n, &self.e, &self.d, &self.p, &self.q, &dp, &dq, &inverse];
        der::sequence(&all.map(|number| der::integer(&number.to_bytes_be())))
    }

    /// The public key, as PKCS #1 has it.
    pub fn public_der(&self) -> Vec<u8> {
        der::sequence(&[&self.n, &self.e].map(|number| der::integer(&number.to_bytes_be())))
    }

    /// What one signature costs in steps, compared with that of another length.
    pub fn cost(&self) -> u64 {
        (self.n.bits() / 32).pow(3)
    }

    /// The signature of SHA-256 of a message.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let bits = self.n.bits();
        if bits < 1024 {
            return Err(format!(
                "crypto/rsa: {bits}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)"
            ));
        }
        let length = usize::try_from(bits.div_ceil(8)).unwrap_or(0);
        let digest = [&SHA256_PREFIX[..], &Sha256::digest(message)].concat();
        let padding = vec![0xff; length.saturating_sub(digest.len() + 3)];
        let padded = [&[0, 1][..], &padding, &[0], &digest].concat();
        let power = power(&padded, &self.d, &self.n)
            .ok_or_else(|| "crypto/rsa: invalid private key".to_owned())?;
        let bytes = power.to_bytes_be();
        let mut signature = vec![0; length.saturating_sub(bytes.len())];
        signature.extend_from_slice(&bytes);
        Ok(signature)
    }
}

/// `base` to the power of `exponent`, modulo an odd number, in a time that does not tell the exponent.
fn power(base: &[u8], exponent: &BigUint, modulus: &BigUint) -> Option<BigUint> {
    let bits = u32::try_from(modulus.bits()).ok()?.next_multiple_of(64);
    let boxed = |number: &[u8]| BoxedUint::from_be_slice(number, bits).ok();
    let modulus = Odd::new(boxed(&modulus.to_bytes_be())?).into_option()?;
    let params = BoxedMontyParams::new(modulus);
    let base = BoxedMontyForm::new(boxed(base)?, &params);
    let power = base.pow(&boxed(&exponent.to_bytes_be())?).retrieve();
    Some(BigUint::from_bytes_be(&power.to_be_bytes()))
}

fn number<const LIMBS: usize>(of: &Uint<LIMBS>) -> BigUint {
    BigUint::from_bytes_be(of.to_be_bytes().as_ref())
}

/// Whether the first 100 bits of two primes of one length differ, as the standard wants (FIPS 186-5,
/// A.1.3): the product of others can be factored.
fn far_apart(p: &BigUint, q: &BigUint) -> bool {
    let difference = if p > q { p - q } else { q - p };
    difference.bits() + 100 > p.bits()
}

fn private_exponent(public: &BigUint, p: &BigUint, q: &BigUint) -> Option<BigUint> {
    let one = BigUint::from(1_u32);
    let (p, q) = (p - &one, q - &one);
    // The least common multiple, by way of the greatest common divisor.
    let (mut divisor, mut rest) = (p.clone(), q.clone());
    while rest != BigUint::default() {
        (divisor, rest) = (rest.clone(), divisor % rest);
    }
    public.modinv(&(p * q / divisor))
}

/// A private DSA key.
#[derive(Debug)]
pub(super) struct DsaKey([BigUint; 5]);

impl DsaKey {
    /// A new key with parameters of its own: 2048 and 256 bits.
    #[allow(clippy::many_single_char_names)] // the standard's names (FIPS 186-4)
    pub fn generate(ctx: &mut Ctx) -> Result<Self, FuncError> {
        let one = BigUint::from(1_u32);
        let order: U256 = random_prime(&mut Random::drawn(ctx), Flavor::Any, 256);
        let p = loop {
            ctx.meter.check_deadline()?;
            if let Some(prime) = prime_above_multiple(ctx, order) {
                break number(&prime);
            }
        };
        let q = number(&order);
        let exponent = (&p - &one) / &q;
        let mut h = BigUint::from(2_u32);
        let g = loop {
            let g = h.modpow(&exponent, &p);
            if g != one {
                break g;
            }
            h += &one;
        };
        let mut data = [0; 40];
        crate::random::fill(ctx, &mut data);
        let x = BigUint::from_bytes_be(&data) % (&q - &one) + &one;
        let y = power(&g.to_bytes_be(), &x, &p).unwrap_or_default();
        Ok(Self([p, q, g, y, x]))
    }

    /// Reads OpenSSL's form.
    pub fn from_der(data: &[u8]) -> Result<Self, String> {
        let read = || {
            let mut inner = Reader::new(data).enter(der::SEQUENCE)?;
            inner.small()?;
            let mut number = || inner.positive().map(BigUint::from_bytes_be);
            Some(Self([number()?, number()?, number()?, number()?, number()?]))
        };
        read().ok_or_else(|| "asn1: structure error: malformed DSA private key".to_owned())
    }

    /// OpenSSL's form.
    pub fn to_der(&self) -> Vec<u8> {
        let mut parts = vec![der::integer(&[])];
        parts.extend(self.0.iter().map(|number| der::integer(&number.to_bytes_be())));
        der::sequence(&parts)
    }
}

/// A prime of 2048 bits that leaves 1 when it is divided by another; seldom none is near what was drawn.
fn prime_above_multiple(ctx: &mut Ctx, order: U256) -> Option<U2048> {
    let mut data = [0; 256];
    crate::random::fill(ctx, &mut data);
    data[0] |= 0x80;
    let start = U2048::from_be_slice(&data);
    let divisor = NonZero::new(order.resize()).into_option()?;
    let rest: U2048 = start.rem_vartime(&divisor);
    let prime = first_prime(start.wrapping_sub(&rest).wrapping_add(&U2048::ONE), order)?;
    (prime.bits() == U2048::BITS).then_some(prime)
}
