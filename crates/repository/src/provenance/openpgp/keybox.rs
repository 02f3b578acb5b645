//! Keyboxes: the files in which GnuPG keeps keys since version 2.1.

use super::packets::Reader;

const OPENPGP: u8 = 2;
/// A blob that GnuPG has not taken in, and passes over itself.
const EPHEMERAL: u8 = 2;

/// Whether a file is a keybox.
pub(super) fn is_keybox(data: &[u8]) -> bool {
    data.get(4) == Some(&1) && data.get(8..12) == Some(b"KBXf")
}

/// The packets of all keys in a keybox.
pub(super) fn packets(data: &[u8]) -> Result<Vec<u8>, String> {
    let mut keys = Vec::new();
    let mut at = 0;
    while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
        let (Some(length), Some(kind)) = (word(rest, 0), rest.get(4)) else {
            return Err(format!("truncated blob header at offset {at}"));
        };
        if length < 5 {
            return Err(format!("invalid blob length {length} at offset {at}"));
        }
        let Some(blob) = rest.get(..length) else {
            let left = rest.len();
            return Err(format!(
                "blob at offset {at} has length {length} exceeding the {left} remaining bytes"
            ));
        };
        if *kind == OPENPGP {
            let (Some(start), Some(count)) = (word(blob, 8), word(blob, 12)) else {
                return Err(format!("OpenPGP blob at offset {at} is too short"));
            };
            let Some(key) = start.checked_add(count).and_then(|end| blob.get(start..end)) else {
                return Err(format!("OpenPGP blob at offset {at} has an out-of-range keyblock"));
            };
            let is_ephemeral = blob.get(7).is_some_and(|flags| flags & EPHEMERAL != 0);
            if !is_ephemeral {
                keys.extend_from_slice(key);
            }
        }
        at += length;
    }
    if keys.is_empty() {
        return Err("keybox contains no OpenPGP keys".into());
    }
    Ok(keys)
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = Reader::new(bytes.get(at..)?).word().ok()?;
    usize::try_from(word).ok()
}
