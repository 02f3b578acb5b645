//! Keyrings: whose keys there are, and whether one of them made a signature that still holds.

use super::OpenPgpError;
use super::key::PublicKey;
use super::packets::{Packet, Packets};
use super::signature::{Signature, is_over, kind};
use super::verify::verify;

/// The keys of some people.
#[derive(Default)]
pub(in super::super) struct Keyring {
    owners: Vec<Owner>,
}

/// A primary key, with the names and the further keys that it signed as its own.
struct Owner {
    key: PublicKey,
    names: Vec<Name>,
    revocations: Vec<Signature>,
    subkeys: Vec<Subkey>,
}

struct Name {
    text: Vec<u8>,
    /// The latest of those that the owner made.
    own: Option<Signature>,
    revocations: Vec<Signature>,
}

struct Subkey {
    key: PublicKey,
    /// The latest by which the owner took it in.
    own: Signature,
    revocations: Vec<Signature>,
}

/// A key that may have made a signature.
struct Candidate<'k> {
    owner: &'k Owner,
    /// `None` for the primary key.
    subkey: Option<&'k Subkey>,
}

impl Keyring {
    /// Reads keys. One that is not supported, or is not sound, is passed over if there are others.
    pub(super) fn read(packets: &mut Packets<'_>) -> Result<Self, OpenPgpError> {
        let mut ring = Self::default();
        let mut passed_over = None;
        loop {
            match Owner::read(packets) {
                Ok(Some(owner)) => ring.owners.push(owner),
                Ok(None) => break,
                Err(error @ (OpenPgpError::Shape(_) | OpenPgpError::Unsupported(_))) => {
                    passed_over = Some(error);
                    if !to_next_owner(packets)? {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        match passed_over {
            Some(error) if ring.owners.is_empty() => Err(error),
            _ => Ok(ring),
        }
    }

    /// Takes in the keys of another.
    pub fn extend(&mut self, other: Self) {
        self.owners.extend(other.owners);
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Whether the first of the signatures whose maker is known is good, and everything that it
    /// rests on holds at this time (seconds of Unix time).
    pub fn check(&self, message: &super::Message, now: u64) -> Result<(), OpenPgpError> {
        let mut packets = Packets::new(message.signatures.as_ref().map_err(Clone::clone)?);
        loop {
            let signature = match packets.next()? {
                None => return Err(OpenPgpError::UnknownSigner),
                Some(Packet::Signature(signature)) => signature,
                Some(_) => return OpenPgpError::shape("non signature packet found"),
            };
            let Some(issuer) = signature.said.issuer else {
                return OpenPgpError::shape("signature doesn't have an issuer");
            };
            let candidates = self.signing(issuer);
            if candidates.is_empty() {
                continue;
            }
            let signed = match signature.kind {
                kind::BINARY => message.signed.clone(),
                kind::TEXT => canonical(&message.signed),
                other => {
                    return OpenPgpError::unsupported(format!(
                        "unsupported signature type: {other}"
                    ));
                }
            };
            let mut verdict = Err(OpenPgpError::UnknownSigner);
            for candidate in &candidates {
                verdict = verify(candidate.key(), signed.clone(), &signature);
                if verdict.is_ok() {
                    return candidate.check(&signature, now);
                }
            }
            return verdict;
        }
    }

    /// The keys of this number that sign.
    fn signing(&self, id: u64) -> Vec<Candidate<'_>> {
        let mut found = Vec::new();
        for owner in &self.owners {
            let keys = std::iter::once(None).chain(owner.subkeys.iter().map(Some));
            let candidates = keys.map(|subkey| Candidate { owner, subkey });
            found.extend(candidates.filter(|one| one.key().id == id && one.signs()));
        }
        found
    }
}

impl Candidate<'_> {
    fn key(&self) -> &PublicKey {
        self.subkey.map_or(&self.owner.key, |subkey| &subkey.key)
    }

    fn signs(&self) -> bool {
        let own = match self.subkey {
            Some(subkey) => Some(&subkey.own),
            None => self.owner.name().and_then(|name| name.own.as_ref()),
        };
        own.and_then(Signature::allows_signing) == Some(true)
    }

    /// Whether a good signature of this key counts.
    fn check(&self, signature: &Signature, now: u64) -> Result<(), OpenPgpError> {
        let name = self.owner.name();
        let Some(primary) = name.and_then(|name| name.own.as_ref()) else {
            return Err(OpenPgpError::Revoked);
        };
        let mut signatures = vec![signature, primary];
        if let Some(subkey) = self.subkey {
            signatures.push(&subkey.own);
            signatures.extend(subkey.own.said.embedded.as_deref());
        }
        if let Some(note) = signatures.iter().find_map(|one| one.said.critical_note.as_ref()) {
            return Err(OpenPgpError::Signature(format!("unknown critical notation: {note}")));
        }
        let revocations = [
            Some(&self.owner.revocations),
            self.subkey.map(|subkey| &subkey.revocations),
            name.map(|name| &name.revocations),
        ];
        if revocations.into_iter().flatten().flatten().any(|one| one.revokes(now)) {
            return Err(OpenPgpError::Revoked);
        }
        let is_over =
            |key: &PublicKey, own: &Signature| is_over(key.created, own.said.key_lifetime, now);
        if is_over(&self.owner.key, primary)
            || self.subkey.is_some_and(|subkey| is_over(&subkey.key, &subkey.own))
        {
            return Err(OpenPgpError::KeyExpired);
        }
        if signatures.iter().any(|one| one.is_expired(now)) {
            return Err(OpenPgpError::SignatureExpired);
        }
        Ok(())
    }
}

impl Owner {
    /// Reads a primary key and what belongs to it; `None` at the end.
    fn read(packets: &mut Packets<'_>) -> Result<Option<Self>, OpenPgpError> {
        let key = match packets.next()? {
            None => return Ok(None),
            Some(Packet::Key(key)) => *key,
            Some(other) => {
                packets.unread(other);
                return OpenPgpError::shape("first packet was not a public/private key");
            }
        };
        if !key.signs() {
            return OpenPgpError::shape("primary key cannot be used for signatures");
        }
        let mut owner =
            Self { key, names: Vec::new(), revocations: Vec::new(), subkeys: Vec::new() };
        let mut revocations = Vec::new();
        while let Some(packet) = packets.next()? {
            match packet {
                Packet::Name(text) => owner.add_name(text, packets)?,
                Packet::Key(key) if key.is_subkey => owner.add_subkey(*key, packets)?,
                Packet::Key(key) => {
                    packets.unread(Packet::Key(key));
                    break;
                }
                Packet::Signature(one) if one.kind == kind::KEY_REVOCATION => {
                    revocations.push(*one);
                }
                Packet::Signature(_) | Packet::Other => {}
            }
        }
        if owner.names.is_empty() {
            return OpenPgpError::shape("v4 entity without any identities");
        }
        for revocation in revocations {
            if verify(&owner.key, owner.key.hashed.clone(), &revocation).is_err() {
                return OpenPgpError::shape("revocation signature signed by alternate key");
            }
            owner.revocations.push(revocation);
        }
        Ok(Some(owner))
    }

    /// Reads what was signed of a name. One that the owner did not sign is none.
    fn add_name(&mut self, text: Vec<u8>, packets: &mut Packets<'_>) -> Result<(), OpenPgpError> {
        let mut name = Name { text, own: None, revocations: Vec::new() };
        let mut is_own = false;
        while let Some(packet) = packets.next()? {
            let Packet::Signature(signature) = packet else {
                packets.unread(packet);
                break;
            };
            let is_revocation = signature.kind == kind::CERTIFICATION_REVOCATION;
            if !is_revocation && !kind::CERTIFICATIONS.contains(&signature.kind) {
                return OpenPgpError::shape("user ID signature with wrong type");
            }
            if !signature.is_by(&self.key) {
                continue;
            }
            verify(&self.key, self.named(&name.text), &signature).map_err(|error| {
                OpenPgpError::Shape(format!("user ID self-signature invalid: {error}"))
            })?;
            is_own = true;
            if is_revocation {
                name.revocations.push(*signature);
            } else if name.own.as_ref().is_none_or(|own| signature.created() > own.created()) {
                name.own = Some(*signature);
            }
        }
        if is_own {
            self.names.retain(|other| other.text != name.text);
            self.names.push(name);
        }
        Ok(())
    }

    fn add_subkey(
        &mut self,
        key: PublicKey,
        packets: &mut Packets<'_>,
    ) -> Result<(), OpenPgpError> {
        let invalid =
            |error: OpenPgpError| OpenPgpError::Shape(format!("subkey signature invalid: {error}"));
        let (mut own, mut revocations) = (None::<Signature>, Vec::new());
        while let Some(packet) = packets.next().map_err(invalid)? {
            let Packet::Signature(signature) = packet else {
                packets.unread(packet);
                break;
            };
            if !matches!(signature.kind, kind::SUBKEY | kind::SUBKEY_REVOCATION) {
                return OpenPgpError::shape("subkey signature with wrong type");
            }
            self.check_subkey(&key, &signature).map_err(invalid)?;
            if signature.kind == kind::SUBKEY_REVOCATION {
                revocations.push(*signature);
            } else if own.as_ref().is_none_or(|own| signature.created() > own.created()) {
                own = Some(*signature);
            }
        }
        let Some(own) = own else {
            return OpenPgpError::shape("subkey packet not followed by signature");
        };
        self.subkeys.push(Subkey { key, own, revocations });
        Ok(())
    }

    /// A subkey that signs must have said itself whose it is: else anybody could call it theirs.
    fn check_subkey(&self, key: &PublicKey, own: &Signature) -> Result<(), OpenPgpError> {
        let both = || [&self.key.hashed[..], &key.hashed].concat();
        verify(&self.key, both(), own)?;
        if own.allows_signing() != Some(true) {
            return Ok(());
        }
        let Some(embedded) = &own.said.embedded else {
            return OpenPgpError::shape("signing subkey is missing cross-signature");
        };
        verify(key, both(), embedded).map_err(|error| {
            OpenPgpError::Shape(format!("error while verifying cross-signature: {error}"))
        })
    }

    /// What is signed of a name.
    fn named(&self, name: &[u8]) -> Vec<u8> {
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        [&self.key.hashed[..], &[0xb4], &length.to_be_bytes(), name].concat()
    }

    /// The name that speaks for the key: not revoked, said to be the first, the latest.
    fn name(&self) -> Option<&Name> {
        self.names.iter().reduce(|best, name| if name.is_before(best) { name } else { best })
    }
}

impl Name {
    fn is_before(&self, other: &Self) -> bool {
        let rank = |name: &Self| {
            let own = name.own.as_ref();
            let is_first = own.is_some_and(|own| own.said.is_primary_name);
            let created = own.map(Signature::created);
            (std::cmp::Reverse(name.revocations.len()), is_first, created)
        };
        rank(self) > rank(other)
    }
}

/// Goes on to the next primary key; whether there is one.
fn to_next_owner(packets: &mut Packets<'_>) -> Result<bool, OpenPgpError> {
    while let Some(packet) = packets.next()? {
        if matches!(&packet, Packet::Key(key) if !key.is_subkey) {
            packets.unread(packet);
            return Ok(true);
        }
    }
    Ok(false)
}

/// A text with the line ends that are signed: `\r\n`, but for those after a `\r` that is one half
/// of another end.
fn canonical(text: &[u8]) -> Vec<u8> {
    let mut signed = Vec::with_capacity(text.len());
    let mut is_return = false;
    for byte in text {
        if *byte == b'\n' && !is_return {
            signed.push(b'\r');
        }
        is_return = *byte == b'\r' && !is_return;
        signed.push(*byte);
    }
    signed
}
