//! Randomness. It comes from the rendering's seed, so that a rendering can be repeated, through a
//! one-way function, so that nobody who sees some of it can tell the rest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_gotemplate::{Ctx, FuncError, Value};
use sha2::{Digest, Sha256};

use crate::args::{Outcome, announce, chars, int, string, text};

/// What one draw costs, in steps.
const DRAW_STEPS: u64 = 30;

items! {
    /// A string of so many random letters and digits.
    sprig "COUNT -> string", "{{ randAlphaNum 8 | len }}" => "8";
    "randAlphaNum"(Int) => |ctx, args| random_text(ctx, int(args, 0), |c| c.is_ascii_alphanumeric());
    /// A string of so many random letters.
    sprig "COUNT -> string", r#"{{ randAlpha 8 | regexMatch "^[a-zA-Z]{8}$" }}"# => "true";
    "randAlpha"(Int) => |ctx, args| random_text(ctx, int(args, 0), |c| c.is_ascii_alphabetic());
    /// A string of so many random digits.
    sprig "COUNT -> string", r#"{{ randNumeric 8 | regexMatch "^[0-9]{8}$" }}"# => "true";
    "randNumeric"(Int) => |ctx, args| random_text(ctx, int(args, 0), |c| c.is_ascii_digit());
    /// A string of so many random printable ASCII characters.
    sprig "COUNT -> string", "{{ randAscii 8 | len }}" => "8";
    "randAscii"(Int) => |ctx, args| random_text(ctx, int(args, 0), |_| true);
    /// So many random bytes, in base 64.
    sprig "COUNT -> string", "{{ randBytes 8 | b64dec | len }}" => "8";
    "randBytes"(Int) => |ctx, args| {
        let Ok(count) = usize::try_from(int(args, 0)) else {
            return Err(FuncError::new("runtime error: makeslice: len out of range"));
        };
        ctx.meter.charge_steps(u64::try_from(count).unwrap_or(u64::MAX))?;
        announce(ctx, count.saturating_mul(3))?;
        let mut data = vec![0; count];
        fill(ctx, &mut data);
        string(ctx, STANDARD.encode(data))
    };
    /// A random number from the first to the second, which is not among them.
    sprig "MIN MAX -> int", "{{ randInt 7 8 }}" => "7";
    "randInt"(Int, Int) => |ctx, args| {
        ctx.meter.charge_steps(DRAW_STEPS)?;
        let (low, high) = (int(args, 0), int(args, 1));
        match u64::try_from(high.wrapping_sub(low)) {
            Ok(span) if span > 0 => Ok(Value::Int(low.wrapping_add_unsigned(below(ctx, span)))),
            _ => Err(FuncError::new("invalid argument to Intn")),
        }
    };
    /// The characters of a string in random order.
    sprig "TEXT -> string", r#"{{ shuffle "aaa" }}"# => "aaa";
    "shuffle"(String) => |ctx, args| {
        announce(ctx, text(args, 0).len().saturating_mul(4))?;
        ctx.meter.charge_steps(text(args, 0).len() as u64 * DRAW_STEPS)?;
        let mut all: Vec<char> = chars(args, 0).chars().collect();
        for last in (1..all.len()).rev() {
            let other = usize::try_from(below(ctx, u64::try_from(last + 1).unwrap_or(1))).unwrap_or(0);
            all.swap(last, other);
        }
        string(ctx, all.into_iter().collect::<String>())
    };
    /// A random UUID, of version 4.
    sprig "-> string", "{{ uuidv4 | len }}" => "36";
    "uuidv4"() => |ctx, _| {
        ctx.meter.charge_steps(DRAW_STEPS)?;
        let mut data = [0_u8; 16];
        fill(ctx, &mut data);
        let number = u128::from_be_bytes(data) & !(0xf << 76 | 0b11 << 62) | 4 << 76 | 0b10 << 62;
        let hex = format!("{number:032x}");
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| hex.get(range).unwrap_or_default().to_owned());
        string(ctx, parts.join("-"))
    };
}

/// The generator of a rendering: blocks of SHA-256 over a key and a counter.
#[derive(Debug)]
struct Generator {
    key: [u8; 32],
    counter: u64,
}

/// Fills a buffer with random bytes.
pub(crate) fn fill(ctx: &mut Ctx, data: &mut [u8]) {
    if ctx.extension::<Generator>().is_none() {
        let mut hash = Sha256::new_with_prefix(b"catamaran template randomness");
        hash.update(ctx.seed().as_bytes());
        ctx.extend(Generator { key: hash.finalize().into(), counter: 0 });
    }
    let Some(generator) = ctx.extension_mut::<Generator>() else { return };
    for chunk in data.chunks_mut(32) {
        let mut hash = Sha256::new_with_prefix(generator.key);
        hash.update(generator.counter.to_be_bytes());
        generator.counter += 1;
        for (to, from) in chunk.iter_mut().zip(hash.finalize()) {
            *to = from;
        }
    }
}

/// The rendering's randomness, for those who make keys of it.
pub(crate) struct Random<'c>(pub &'c mut Ctx);

impl rand_core::TryRng for Random<'_> {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut data = [0; 4];
        fill(self.0, &mut data);
        Ok(u32::from_le_bytes(data))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut data = [0; 8];
        fill(self.0, &mut data);
        Ok(u64::from_le_bytes(data))
    }

    fn try_fill_bytes(&mut self, data: &mut [u8]) -> Result<(), Self::Error> {
        fill(self.0, data);
        Ok(())
    }
}

// As good as the seed: what comes out tells nothing of the rest.
impl rand_core::TryCryptoRng for Random<'_> {}

/// A random number below `limit`, which is above 0; each is equally likely.
fn below(ctx: &mut Ctx, limit: u64) -> u64 {
    let fair = u64::MAX - u64::MAX % limit;
    loop {
        let mut data = [0; 8];
        fill(ctx, &mut data);
        let number = u64::from_be_bytes(data);
        if number < fair {
            return number % limit;
        }
    }
}

fn random_text(ctx: &mut Ctx, count: i64, wanted: fn(char) -> bool) -> Outcome {
    // Fewer than none: Helm swallows the error and gives nothing.
    let count = usize::try_from(count).unwrap_or(0);
    announce(ctx, count)?;
    ctx.meter.charge_steps(u64::try_from(count).unwrap_or(u64::MAX))?;
    let set: Vec<u8> = (b' '..=b'~').filter(|byte| wanted(char::from(*byte))).collect();
    let size = u64::try_from(set.len()).unwrap_or(1).max(1);
    let mut out = Vec::with_capacity(count);
    // A byte is fair below the largest multiple of the set's size.
    let fair = 256 - 256 % size;
    let mut block = [0; 32];
    while out.len() < count {
        fill(ctx, &mut block);
        let picks = block.iter().map(|byte| u64::from(*byte)).filter(|byte| *byte < fair);
        let picks = picks.filter_map(|byte| set.get(usize::try_from(byte % size).unwrap_or(0)));
        out.extend(picks.take(count - out.len()));
    }
    string(ctx, out)
}
