//! Randomness. It comes from the rendering's seed, so that a rendering can be repeated, through a
//! one-way function, so that nobody who sees some of it can tell the rest.
//!
//! What a function draws depends on the template file that is run, the function, its arguments, and how
//! often it was called so before: another value that makes a template draw more, or less, changes
//! nothing of what else is drawn.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::time::SystemTime;

use catamaran_gotemplate::{Ctx, FuncError, Value};
use sha2::{Digest, Sha256};

use crate::args::{Outcome, announce, chars, int, string, text};
use crate::overrides::{Alphabet, RandomCall, RandomOverrides, RandomText, RandomTexts};

/// What one draw costs, in steps.
const DRAW_STEPS: u64 = 30;

items! {
    /// A string of so many random letters and digits.
    sprig "COUNT -> string", "{{ randAlphaNum 8 | len }}" => "8";
    "randAlphaNum"(Int) => |ctx, args| random_text(ctx, "randAlphaNum", args, Alphabet::Alphanumeric);
    /// A string of so many random letters.
    sprig "COUNT -> string", r#"{{ randAlpha 8 | regexMatch "^[a-zA-Z]{8}$" }}"# => "true";
    "randAlpha"(Int) => |ctx, args| random_text(ctx, "randAlpha", args, Alphabet::Letters);
    /// A string of so many random digits.
    sprig "COUNT -> string", r#"{{ randNumeric 8 | regexMatch "^[0-9]{8}$" }}"# => "true";
    "randNumeric"(Int) => |ctx, args| random_text(ctx, "randNumeric", args, Alphabet::Digits);
    /// A string of so many random printable ASCII characters.
    sprig "COUNT -> string", "{{ randAscii 8 | len }}" => "8";
    "randAscii"(Int) => |ctx, args| random_text(ctx, "randAscii", args, Alphabet::Printable);
    /// So many random bytes, in base 64.
    sprig "COUNT -> string", "{{ randBytes 8 | b64dec | len }}" => "8";
    "randBytes"(Int) => |ctx, args| {
        let call = begin(ctx, "randBytes", args)?;
        let Ok(count) = usize::try_from(int(args, 0)) else {
            return Err(FuncError::new("runtime error: makeslice: len out of range"));
        };
        ctx.meter.charge_steps(u64::try_from(count).unwrap_or(u64::MAX))?;
        announce(ctx, count.saturating_mul(3))?;
        let mut data = vec![0; count];
        fill(ctx, &mut data);
        finish(ctx, call, Alphabet::Base64, STANDARD.encode(data))
    };
    /// A random number from the first to the second, which is not among them.
    sprig "MIN MAX -> int", "{{ randInt 7 8 }}" => "7";
    "randInt"(Int, Int) => |ctx, args| {
        begin(ctx, "randInt", args)?;
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
        begin(ctx, "shuffle", args)?;
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
        let call = begin(ctx, "uuidv4", &[])?;
        ctx.meter.charge_steps(DRAW_STEPS)?;
        let mut data = [0_u8; 16];
        fill(ctx, &mut data);
        let number = u128::from_be_bytes(data) & !(0xf << 76 | 0b11 << 62) | 4 << 76 | 0b10 << 62;
        let hex = format!("{number:032x}");
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| hex.get(range).unwrap_or_default().to_owned());
        finish(ctx, call, Alphabet::Uuid, parts.join("-"))
    };
}

/// The generator of a rendering.
#[derive(Debug, Default)]
struct Generator {
    /// The template file that is run.
    template: String,
    /// How often each draw was begun, by a hash of who asked for what.
    begun: HashMap<[u8; 32], u64>,
    random: Random,
    drawn: Option<Drawn>,
    overrides: RandomOverrides,
    texts: RandomTexts,
}

/// What a rendering drew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// When the first certificate is to be made anew.
    pub renew_at: Option<SystemTime>,
    /// How often certificates were made anew by now, all together.
    pub renewals: u64,
}

/// Says which template file is run from now on.
pub fn enter_template(ctx: &mut Ctx, name: &str) {
    if let Some(generator) = ctx.extension_mut::<Generator>() {
        name.clone_into(&mut generator.template);
    } else {
        ctx.extend(Generator { template: name.to_owned(), ..Generator::default() });
    }
}

/// What was drawn so far; `None` if nothing was.
pub fn drawn(ctx: &Ctx) -> Option<Drawn> {
    ctx.extension::<Generator>()?.drawn
}

/// Makes random functions give what the overrides say.
pub fn override_random(ctx: &mut Ctx, overrides: RandomOverrides) {
    if let Some(generator) = ctx.extension_mut::<Generator>() {
        generator.overrides = overrides;
    } else {
        ctx.extend(Generator { overrides, ..Generator::default() });
    }
}

/// The texts that random functions gave, in the order of the calls. Texts that are too short to be
/// recognized, and those beyond [`RandomTexts`]'s bounds, are left out.
pub fn random_texts(ctx: &mut Ctx) -> Vec<RandomText> {
    let generator = ctx.extension_mut::<Generator>();
    generator.map(|generator| std::mem::take(&mut generator.texts).into_vec()).unwrap_or_default()
}

/// Notes a certificate that is to be made anew at a time, and how often that has happened.
pub(crate) fn note_certificate(ctx: &mut Ctx, renew_at: Option<SystemTime>, renewals: u64) {
    let drawn = ctx.extension_mut::<Generator>().and_then(|generator| generator.drawn.as_mut());
    let Some(drawn) = drawn else { return };
    drawn.renewals = drawn.renewals.saturating_add(renewals);
    drawn.renew_at = match (drawn.renew_at, renew_at) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
}

/// Begins what a function draws.
///
/// # Errors
/// A budget that is used up by what its arguments are printed as.
pub(crate) fn begin(
    ctx: &mut Ctx,
    function: &str,
    args: &[Value],
) -> Result<RandomCall, FuncError> {
    let mut call = Sha256::new_with_prefix(b"catamaran random call");
    let mut hash = Sha256::new_with_prefix(b"catamaran template randomness");
    hash.update(ctx.seed().as_bytes());
    let mut part = |bytes: &[u8]| {
        for hash in [&mut call, &mut hash] {
            hash.update(bytes.len().to_be_bytes());
            hash.update(bytes);
        }
    };
    part(ctx.extension::<Generator>().map_or("", |it| it.template.as_str()).as_bytes());
    part(function.as_bytes());
    for arg in args {
        part(ctx.print(arg)?.as_bytes());
    }
    let draw: [u8; 32] = hash.finalize().into();
    if ctx.extension::<Generator>().is_none() {
        ctx.extend(Generator::default());
    }
    let Some(generator) = ctx.extension_mut::<Generator>() else {
        return Ok(RandomCall::from_hash(call.finalize().into()));
    };
    let ordinal = generator.begun.entry(draw).or_default();
    call.update(ordinal.to_be_bytes());
    let call = RandomCall::from_hash(call.finalize().into());
    let key = generator.overrides.seed_of(call).map_or(draw, |seed| *seed.as_bytes());
    let mut hash = Sha256::new_with_prefix(key);
    hash.update(ordinal.to_be_bytes());
    *ordinal += 1;
    generator.random = Random { key: hash.finalize().into(), counter: 0 };
    generator.drawn.get_or_insert_default();
    Ok(call)
}

/// Ends a call that gives a random text: its override, if there is one that the call could have given.
fn finish(ctx: &mut Ctx, call: RandomCall, alphabet: Alphabet, text: String) -> Outcome {
    let mut random = RandomText { call, text, alphabet };
    if let Some(generator) = ctx.extension_mut::<Generator>() {
        if let Some(text) = generator.overrides.text_of(call).filter(|it| random.could_be(it)) {
            text.clone_into(&mut random.text);
        }
        generator.texts.note(&random);
    }
    string(ctx, random.text)
}

/// Fills a buffer with random bytes of the draw that was begun.
pub(crate) fn fill(ctx: &mut Ctx, data: &mut [u8]) {
    if drawn(ctx).is_none() {
        // Never nothing, whoever forgets to begin.
        let _ = begin(ctx, "", &[]);
    }
    if let Some(generator) = ctx.extension_mut::<Generator>() {
        generator.random.fill(data);
    }
}

/// Random bytes without end: blocks of SHA-256 over a key and a counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Random {
    key: [u8; 32],
    counter: u64,
}

impl Random {
    /// Drawn from the rendering's randomness and then on its own: what takes long may go on elsewhere.
    pub fn drawn(ctx: &mut Ctx) -> Self {
        let mut key = [0; 32];
        fill(ctx, &mut key);
        Self { key, counter: 0 }
    }

    fn fill(&mut self, data: &mut [u8]) {
        for chunk in data.chunks_mut(32) {
            let mut hash = Sha256::new_with_prefix(self.key);
            hash.update(self.counter.to_be_bytes());
            self.counter += 1;
            for (to, from) in chunk.iter_mut().zip(hash.finalize()) {
                *to = from;
            }
        }
    }
}

impl rand_core::TryRng for Random {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut data = [0; 4];
        self.fill(&mut data);
        Ok(u32::from_le_bytes(data))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut data = [0; 8];
        self.fill(&mut data);
        Ok(u64::from_le_bytes(data))
    }

    fn try_fill_bytes(&mut self, data: &mut [u8]) -> Result<(), Self::Error> {
        self.fill(data);
        Ok(())
    }
}

// As good as the seed: what comes out tells nothing of the rest.
impl rand_core::TryCryptoRng for Random {}

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

fn random_text(ctx: &mut Ctx, function: &str, args: &[Value], alphabet: Alphabet) -> Outcome {
    let call = begin(ctx, function, args)?;
    // Fewer than none: Helm swallows the error and gives nothing.
    let count = usize::try_from(int(args, 0)).unwrap_or(0);
    announce(ctx, count)?;
    ctx.meter.charge_steps(u64::try_from(count).unwrap_or(u64::MAX))?;
    let set: Vec<u8> = (b' '..=b'~').filter(|byte| alphabet.contains(*byte)).collect();
    let size = u64::try_from(set.len()).unwrap_or(1).max(1);
    let mut out = String::with_capacity(count);
    // A byte is fair below the largest multiple of the set's size.
    let fair = 256 - 256 % size;
    let mut block = [0; 32];
    while out.len() < count {
        fill(ctx, &mut block);
        let picks = block.iter().map(|byte| u64::from(*byte)).filter(|byte| *byte < fair);
        let picks = picks.filter_map(|byte| set.get(usize::try_from(byte % size).unwrap_or(0)));
        out.extend(picks.take(count - out.len()).map(|byte| char::from(*byte)));
    }
    finish(ctx, call, alphabet, out)
}
