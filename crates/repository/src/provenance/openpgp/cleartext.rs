//! The cleartext signature framework: a text, and signatures over it, RFC 9580 section 7.

use super::{OpenPgpError, armor};

const BEGIN: &[u8] = b"-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &[u8] = b"-----BEGIN PGP SIGNATURE-----";
const END: &[u8] = b"\n-----END PGP SIGNATURE-----";
const HASHES: [&str; 9] =
    ["MD5", "SHA1", "RIPEMD160", "SHA224", "SHA256", "SHA384", "SHA512", "SHA3-256", "SHA3-512"];

/// A text with its signatures.
pub(in super::super) struct Message {
    /// The text without escapes and without blanks at the ends of lines.
    pub text: Vec<u8>,
    /// The same with the line ends that were signed.
    pub(super) signed: Vec<u8>,
    /// The packets of the signatures.
    pub(super) signatures: Result<Vec<u8>, OpenPgpError>,
}

impl Message {
    /// The first message in some text; `None` if there is none, or if it is not whole.
    pub fn find(data: &[u8]) -> Option<Self> {
        let mut rest = after_begin(data)?;
        if !line(&mut rest).is_empty() {
            return None;
        }
        headers(&mut rest)?;
        let mut lines: Vec<&[u8]> = Vec::new();
        let armored = loop {
            let before = rest;
            let line = line(&mut rest);
            if line.is_empty() && rest.is_empty() {
                return None;
            }
            if line == SIGNATURE {
                break before;
            }
            let line = line.strip_prefix(b"- ").unwrap_or(line);
            let blanks = line.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            lines.push(line.get(..line.len() - blanks)?);
        };
        // A message without a line is not one that Helm's library reads to its end.
        if lines.is_empty() || !contains(armored, END) {
            return None;
        }
        let block = armor::decode(armored)?;
        Some(Self {
            text: lines.join(&b"\n"[..]),
            signed: lines.join(&b"\r\n"[..]),
            signatures: block.packets,
        })
    }
}

fn after_begin(data: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = data.strip_prefix(BEGIN) {
        return Some(rest);
    }
    let at = data
        .windows(BEGIN.len() + 1)
        .position(|window| window.first() == Some(&b'\n') && window.get(1..) == Some(BEGIN))?;
    data.get(at + 1 + BEGIN.len()..)
}

/// Reads headers up to the empty line. They name hashes, which the signatures name again: nothing
/// comes of them, but a text with others is no message.
fn headers(rest: &mut &[u8]) -> Option<()> {
    loop {
        if rest.is_empty() {
            return None;
        }
        let line = std::str::from_utf8(line(rest)).ok()?;
        if line.trim().is_empty() {
            return Some(());
        }
        let (name, hashes) = line.split_once(':')?;
        let is_plain = line.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
        let is_hash = |hash: &str| HASHES.contains(&hash.trim().to_uppercase().as_str());
        if !is_plain || name.trim() != "Hash" || !hashes.split(',').all(is_hash) {
            return None;
        }
    }
}

/// The next line without its end, which is `\n` or `\r\n`.
fn line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let line = parts.next().unwrap_or_default();
    let after = parts.next();
    *rest = after.unwrap_or_default();
    // The last line, which nothing ends, may end in whatever it likes.
    after.and_then(|_| line.strip_suffix(b"\r")).unwrap_or(line)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
