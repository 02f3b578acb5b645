//! Base 64, base 32 and checksums.

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use catamaran_gotemplate::Ctx;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::args::{Outcome, announce, bytes, string};

/// Go's decoder does not mind bits that are left over in the last character.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

items! {
    /// The text in base 64.
    sprig "TEXT -> string", r#"{{ b64enc "secret" }}"# => "c2VjcmV0";
    "b64enc"(String) => |ctx, args| {
        announce(ctx, bytes(args, 0).len().saturating_mul(2))?;
        string(ctx, STANDARD.encode(bytes(args, 0)))
    };
    /// The text that was encoded in base 64; what is none gives the text of the error.
    sprig "TEXT -> string", r#"{{ b64dec "c2VjcmV0" }}"# => "secret";
    "b64dec"(String) => |ctx, args| {
        announce(ctx, bytes(args, 0).len())?;
        ctx.meter.charge_scan(bytes(args, 0).len().saturating_mul(2))?;
        let decoded = from_base64(bytes(args, 0)).unwrap_or_else(String::into_bytes);
        string(ctx, decoded)
    };
    /// The text in base 32.
    sprig "TEXT -> string", r#"{{ b32enc "secret" }}"# => "ONSWG4TFOQ======";
    "b32enc"(String) => |ctx, args| {
        announce(ctx, bytes(args, 0).len().saturating_mul(2))?;
        ctx.meter.charge_steps(bytes(args, 0).len() as u64)?;
        string(ctx, encode32(bytes(args, 0)))
    };
    /// The text that was encoded in base 32; what is none gives the text of the error.
    sprig "TEXT -> string", r#"{{ b32dec "ONSWG4TFOQ======" }}"# => "secret";
    "b32dec"(String) => |ctx, args| {
        announce(ctx, bytes(args, 0).len())?;
        ctx.meter.charge_steps(bytes(args, 0).len() as u64 * 2)?;
        let decoded = decode32(bytes(args, 0));
        string(ctx, decoded)
    };
    /// The SHA-1 sum in hexadecimal digits.
    sprig "TEXT -> string", r#"{{ sha1sum "abc" }}"# => "a9993e364706816aba3e25717850c26c9cd0d89d";
    "sha1sum"(String) => |ctx, args| digest::<Sha1>(ctx, bytes(args, 0));
    /// The SHA-256 sum in hexadecimal digits.
    sprig "TEXT -> string", r#"{{ sha256sum "abc" | trunc 16 }}"# => "ba7816bf8f01cfea";
    "sha256sum"(String) => |ctx, args| digest::<Sha256>(ctx, bytes(args, 0));
    /// The SHA-512 sum in hexadecimal digits.
    sprig "TEXT -> string", r#"{{ sha512sum "abc" | trunc 16 }}"# => "ddaf35a193617aba";
    "sha512sum"(String) => |ctx, args| digest::<Sha512>(ctx, bytes(args, 0));
    /// The Adler-32 checksum as a decimal number.
    sprig "TEXT -> string", r#"{{ adler32sum "abc" }}"# => "38600999";
    "adler32sum"(String) => |ctx, args| {
        ctx.meter.charge_steps(bytes(args, 0).len() as u64 / 2)?;
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in bytes(args, 0) {
            a = (a + u32::from(*byte)) % 65521;
            b = (b + a) % 65521;
        }
        string(ctx, (b << 16 | a).to_string())
    };
}

fn digest<D: Digest>(ctx: &mut Ctx, data: &[u8]) -> Outcome {
    // A short text takes as long as a block.
    ctx.meter.charge_steps(data.len() as u64 / 2 + 60)?;
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    let digits = |byte: u8| [digit(byte >> 4), digit(byte & 15)];
    string(ctx, D::digest(data).iter().flat_map(|byte| digits(*byte)).collect::<String>())
}

/// The bytes; the error is Go's text. Line breaks are skipped.
pub(crate) fn from_base64(data: &[u8]) -> Result<Vec<u8>, String> {
    let packed: Vec<u8> =
        data.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    LENIENT.decode(&packed).map_err(|_| corrupt64(data))
}

/// Where Go's decoder gives up: it counts bytes of the text as it is given.
fn corrupt64(data: &[u8]) -> String {
    let at = |position: usize| format!("illegal base64 data at input byte {position}");
    let mut in_group = 0;
    let mut chars = data.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((position, byte)) = chars.next() {
        if *byte != b'=' {
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')) {
                return at(position);
            }
            in_group = (in_group + 1) % 4;
            continue;
        }
        return match in_group {
            0 | 1 => at(position),
            2 => match chars.next() {
                Some((_, b'=')) => at(chars.next().map_or(data.len(), |(position, _)| position)),
                Some((position, _)) => at(position - 1),
                None => at(data.len()),
            },
            _ => at(chars.next().map_or(data.len(), |(position, _)| position)),
        };
    }
    at(data.len().saturating_sub(in_group))
}

const DIGITS32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn encode32(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len().div_ceil(5) * 8);
    for group in data.chunks(5) {
        let bits =
            (0..5).fold(0_u64, |bits, at| bits << 8 | group.get(at).copied().map_or(0, u64::from));
        let used = (group.len() * 8).div_ceil(5);
        for at in 0..8 {
            let digit = usize::try_from(bits >> (35 - 5 * at) & 31).unwrap_or(0);
            let digit = if at < used { DIGITS32.get(digit).copied() } else { None };
            out.push(digit.map_or('=', char::from));
        }
    }
    out
}

/// The bytes, or Go's error text in their place.
fn decode32(data: &[u8]) -> Vec<u8> {
    let data: Vec<u8> =
        data.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::with_capacity(data.len() / 8 * 5);
    for (index, group) in data.chunks(8).enumerate() {
        match decode_group32(group, data.len() - index * 8) {
            Ok((bytes, ends)) => {
                out.extend(bytes);
                if ends {
                    break;
                }
            }
            Err(at) => {
                return format!("illegal base32 data at input byte {}", index * 8 + at)
                    .into_bytes();
            }
        }
    }
    out
}

/// Eight characters; `left`: how many there are from here on. The error is a place in the group. True:
/// there was padding, and nothing behind it is looked at.
fn decode_group32(group: &[u8], left: usize) -> Result<(Vec<u8>, bool), usize> {
    let mut bits = 0_u64;
    let mut used = group.len();
    for (at, byte) in group.iter().enumerate() {
        if *byte == b'=' && at >= 2 && left <= 8 {
            if left < 8 {
                return Err(left);
            }
            if let Some(wrong) = group.iter().skip(at).position(|byte| *byte != b'=') {
                return Err(at + wrong - 1);
            }
            used = at;
            break;
        }
        let digit = DIGITS32.iter().position(|digit| digit == byte).ok_or(at)?;
        bits |= u64::try_from(digit).unwrap_or(0) << (35 - 5 * at);
    }
    if group.len() < 8 && used == group.len() {
        return Err(0);
    }
    let bytes = match used {
        8 => 5,
        7 => 4,
        5 => 3,
        4 => 2,
        2 => 1,
        used => return Err(used),
    };
    Ok((bits.to_be_bytes().into_iter().skip(3).take(bytes).collect(), used < 8))
}
