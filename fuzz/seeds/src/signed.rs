//! Inputs of the target `provenance`: its first byte says what the rest is.

use std::fs;
use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::Outcome;

const PROVENANCE: u8 = 0;
const SIGNATURE: u8 = 1;
const KEYRING: u8 = 2;

/// Provenances, the packets of their signatures, and keyrings, whole and key by key.
pub fn inputs(folder: &Path) -> Outcome<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut add = |kind: u8, data: &[u8]| found.push([&[kind], data].concat());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let data = fs::read(&path)?;
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("prov") => {
                add(PROVENANCE, &data);
                add(SIGNATURE, &packets(&data)?);
            }
            Some("gpg") => owners(&data).iter().for_each(|owner| add(KEYRING, owner)),
            Some("kbx") => boxes(&data).iter().for_each(|keybox| add(KEYRING, keybox)),
            Some("asc") => add(KEYRING, &data),
            _ => {}
        }
    }
    Ok(found)
}

/// The packets of the signature under a provenance.
fn packets(provenance: &[u8]) -> Outcome<Vec<u8>> {
    let text = String::from_utf8_lossy(provenance);
    let lines = text.lines().skip_while(|line| *line != "-----BEGIN PGP SIGNATURE-----").skip(2);
    let body: String = lines.take_while(|line| !line.starts_with(['=', '-'])).collect();
    Ok(STANDARD.decode(body)?)
}

/// The keys of a keyring, each with all that belongs to it.
fn owners(mut ring: &[u8]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    while let [tag, length, rest @ ..] = ring {
        // GnuPG writes lengths of one, two or four bytes.
        let count = 1 << (tag & 3);
        let bytes = [&[*length], rest].concat();
        let length = bytes.iter().take(count).fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let (packet, rest) = ring.split_at((1 + count + length).min(ring.len()));
        if (tag & 0x3f) >> 2 == 6 || found.is_empty() {
            found.push(Vec::new());
        }
        found.last_mut().into_iter().for_each(|owner| owner.extend(packet));
        ring = rest;
    }
    found
}

/// Keyboxes of one key each.
fn boxes(keybox: &[u8]) -> Vec<Vec<u8>> {
    let mut blobs = Vec::new();
    let mut rest = keybox;
    while let Some((length, _)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let (blob, after) = rest.split_at(length.clamp(4, rest.len()));
        blobs.push(blob);
        rest = after;
    }
    let Some((head, keys)) = blobs.split_first() else { return Vec::new() };
    keys.iter().map(|key| [*head, key].concat()).collect()
}
