//! ASCII armor: packets as text, RFC 9580 section 6.

use super::OpenPgpError;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// Longer lines are no armor, as in Helm.
const MAX_LINE: usize = 96;

/// One block of armor.
pub(super) struct Block<'a> {
    /// `PGP SIGNATURE`, `PGP PUBLIC KEY BLOCK`.
    pub kind: String,
    /// The packets, as far as they can be read.
    pub bytes: Vec<u8>,
    /// Why no more of them can.
    pub fault: Option<OpenPgpError>,
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
    let (bytes, fault) = body(&mut rest);
    Some(Block { kind, bytes, fault, rest })
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
fn body(rest: &mut &[u8]) -> (Vec<u8>, Option<OpenPgpError>) {
    let mut bytes = Vec::new();
    let (mut group, mut filled, mut padding, mut read) = (0_u32, 0_usize, 0_usize, 0_usize);
    while let Some(line) = next_line(rest).map(<[u8]>::trim_ascii) {
        if line.starts_with(END) || (line.len() == 5 && line.first() == Some(&b'=')) {
            break;
        }
        if line.len() > MAX_LINE {
            return (bytes, Some(OpenPgpError::Armor));
        }
        for byte in line {
            let sextet = match (sextet(*byte), *byte) {
                (Some(sextet), _) if padding == 0 => sextet,
                (None, b'=') if filled >= 2 => {
                    padding += 1;
                    0
                }
                _ => return (bytes, Some(OpenPgpError::Base64(read))),
            };
            read += 1;
            group = group << 6 | sextet;
            filled += 1;
            if filled == 4 {
                let [_, a, b, c] = group.to_be_bytes();
                bytes.extend([a, b, c].iter().take(3 - padding));
                (group, filled) = (0, 0);
            }
        }
    }
    let fault = (filled != 0).then_some(OpenPgpError::Truncated);
    (bytes, fault)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
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
