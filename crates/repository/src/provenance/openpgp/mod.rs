//! As much of OpenPGP (RFC 9580, and RFC 4880 before it) as it takes to tell whose signature a text
//! has. Nothing secret is read, nothing is encrypted, nothing is signed.
//!
//! A reader of our own: the library for it would bring 68 crates, most of them ciphers, and among
//! them an RSA with an open advisory. The arithmetic is that of crates which are in the tree anyway
//! or belong to those. What is taken and what is not, and the words for it, are those of the library
//! that Helm uses; COMPATIBILITY.md tells the rest.
//!
//! Bounds: the caller's for bytes; packets are counted; no signature holds one that holds one;
//! numbers of keys have at most 8192 bits.

mod armor;
mod cleartext;
mod error;
mod key;
mod keybox;
mod keyring;
mod packets;
mod signature;
mod verify;

pub(super) use cleartext::Message;
pub use error::OpenPgpError;
pub(super) use keyring::Keyring;

use packets::Packets;

/// Reads a keyring in any of its three forms: packets, armor, GnuPG's keybox. Armor may be several
/// blocks, one after another.
pub(super) fn keyring(data: &[u8], place: &str) -> Result<Keyring, String> {
    let read =
        |bytes: &[u8]| Keyring::read(&mut Packets::new(bytes)).map_err(|error| error.to_string());
    if keybox::is_keybox(data) {
        let packets =
            keybox::packets(data).map_err(|error| format!("reading keybox {place}: {error}"))?;
        return read(&packets);
    }
    if !data.trim_ascii_start().starts_with(b"-----BEGIN PGP") {
        return read(data);
    }
    let fault = |error: &str| format!("reading armored keyring {place}: {error}");
    let mut ring = Keyring::default();
    let mut rest = data;
    while let Some(block) = armor::decode(rest) {
        if !matches!(block.kind.as_str(), "PGP PUBLIC KEY BLOCK" | "PGP PRIVATE KEY BLOCK") {
            let kind = block.kind;
            return Err(fault(&format!("expected a public or private key block, got {kind:?}")));
        }
        let packets = block.packets.map_err(|error| fault(&error.to_string()))?;
        ring.extend(read(&packets).map_err(|error| fault(&error))?);
        rest = block.rest;
    }
    if ring.is_empty() {
        return Err(fault("no keys found"));
    }
    Ok(ring)
}
