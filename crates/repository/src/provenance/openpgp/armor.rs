//! ASCII armor: packets as text, RFC 9580 section 6.

use base64::engine::general_purpose::{GeneralPurpose, PAD};
use base64::{DecodeError, Engine as _, alphabet};

use super::OpenPgpError;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// As Go reads it: what fills up the last byte may be anything.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));
/// Longer lines are no armor, as in Helm.
const MAX_LINE: usize = 96;

/// One block of armor.
pub(super) struct Block<'a> {
    /// `PGP SIGNATURE`, `PGP PUBLIC KEY BLOCK`.
    pub kind: String,
    /// The packets.
    pub packets: Result<Vec<u8>, OpenPgpError>,
    /// What follows the block.
    pub rest: &'a [u8],
}

/// Finds the first block in a text; whatever stands before it is passed over.
pub(super) fn decode(text: &[u8]) -> Option<Block<'_>> {
    let mut rest = text;
    let mut kind = begin(&mut rest)?;
    loop {
        let line = next_line(&mut rest)?.trim_ascii();
        if line.is_empty() {
            break;
        }
        // Headers say nothing that matters. What is no header shows that this was no block.
        if !line.contains(&b':') {
            kind = begin(&mut rest)?;
        }
    }
    let packets = body(&mut rest);
    Some(Block { kind, packets, rest })
}

/// Reads up to the line that begins a block, and gives its kind.
fn begin(rest: &mut &[u8]) -> Option<String> {
    loop {
        let line = next_line(rest)?.trim_ascii();
        let name = line.strip_prefix(BEGIN).filter(|name| name.len() > DASHES.len());
        if let Some(name) = name.and_then(|name| name.get(..name.len() - DASHES.len())) {
            return Some(String::from_utf8_lossy(name).into_owned());
        }
    }
}

/// Reads base64 up to the checksum, which proves nothing that the signature does not, or the end.
fn body(rest: &mut &[u8]) -> Result<Vec<u8>, OpenPgpError> {
    let mut text = Vec::new();
    while let Some(line) = next_line(rest).map(<[u8]>::trim_ascii) {
        if line.starts_with(END) || (line.len() == 5 && line.first() == Some(&b'=')) {
            break;
        }
        if line.len() > MAX_LINE {
            return Err(OpenPgpError::Armor);
        }
        text.extend_from_slice(line);
    }
    BASE64.decode(text).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) => OpenPgpError::Base64(at),
        _ => OpenPgpError::Truncated,
    })
}

/// The next line without its end; `None` when there is none.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let line = parts.next().unwrap_or_default();
    *rest = parts.next().unwrap_or_default();
    Some(line)
}
