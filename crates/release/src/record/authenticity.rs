//! Which records are believed.
//!
//! A record is a Secret in the namespace of its release. Whoever may write Secrets there may write
//! records, and an operator acts with more rights than they have. So an operator signs the records that
//! it writes, and acts only on what it has signed: see [`RecordPolicy`].
//!
//! The signature is an HMAC-SHA256 in the annotation [`ANNOTATION`] of the record's Secret. It covers the
//! payload, the namespace and the name of the Secret, the release, and the resource that the release
//! belongs to with its uid. So a record is worth nothing under another name, in another namespace, for
//! another release, or for a resource that was deleted and created again.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest, Sha256};

use crate::objects::Owner;

/// The annotation of a record's Secret that holds the signature.
pub const ANNOTATION: &str = "catamaran.dev/record-hmac";

/// The shortest key that is accepted, in bytes.
pub const SHORTEST_KEY: usize = 32;

/// What every signed text begins with: another use of the same key cannot make a valid signature.
const DOMAIN: &[u8] = b"catamaran.dev/record-hmac/v1";

/// Which records a [`crate::Driver`] acts on.
///
/// A record that is not acted on is still history: it counts revisions, and it tells which objects may
/// be deleted, if they carry the marks of the release.
#[derive(Debug, Clone, Default)]
pub enum RecordPolicy {
    /// Every record that can be read, as the helm CLI does: a command acts with the rights of the person
    /// who runs it.
    #[default]
    TrustAll,
    /// The records that these keys have signed for this resource. What is written is signed.
    Authenticate {
        /// The keys.
        keys: RecordKeys,
        /// The resource that the release belongs to.
        owner: RecordOwner,
    },
}

/// Who wrote a record, as far as its signature tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authenticity {
    /// This operator, for this resource; or the policy trusts all records.
    Authenticated,
    /// This operator, for an earlier resource of the same kind, namespace and name.
    EarlierOwner,
    /// Nobody knows: another program, or a person.
    Unauthenticated,
}

/// The resource that a release belongs to, as signatures name it. The default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordOwner {
    name: Arc<str>,
    uid: Arc<str>,
}

impl RecordOwner {
    /// The owner of a release.
    pub fn new(owner: &Owner) -> Self {
        let reference = &owner.reference;
        let group = reference.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let namespace = owner.namespace.as_deref().unwrap_or_default();
        let name = format!("{}.{group}/{namespace}/{}", reference.kind, reference.name);
        Self { name: name.into(), uid: reference.uid.as_str().into() }
    }
}

/// Where a record lies, and what it is a record of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Location<'a> {
    pub secret_namespace: &'a str,
    pub secret_name: &'a str,
    pub release_namespace: &'a str,
    pub release_name: &'a str,
}

impl RecordPolicy {
    /// The value of [`ANNOTATION`] for a record that is written; `None` if records are not signed.
    pub(super) fn sign(&self, at: Location<'_>, packed: &[u8]) -> Option<String> {
        let Self::Authenticate { keys, owner } = self else { return None };
        let keys = keys.current();
        let key = keys.first()?;
        let mac = key.mac(at, owner, &owner.uid, packed).finalize().into_bytes();
        Some(format!("v1.{}.{}.{}", key.id, owner.uid, URL_SAFE_NO_PAD.encode(mac)))
    }

    /// What the signature of a record that was read is worth.
    pub(super) fn verify(
        &self,
        at: Location<'_>,
        packed: &[u8],
        signature: Option<&str>,
    ) -> Authenticity {
        let Self::Authenticate { keys, owner } = self else { return Authenticity::Authenticated };
        let verified = signature.and_then(|text| {
            let (id, uid, mac) = parts(text)?;
            let keys = keys.current();
            let key = keys.iter().find(|key| *key.id == *id)?;
            // In constant time.
            key.mac(at, owner, uid, packed).verify_slice(&mac).ok()?;
            Some(uid)
        });
        match verified {
            Some(uid) if *uid == *owner.uid => Authenticity::Authenticated,
            Some(_) => Authenticity::EarlierOwner,
            None => Authenticity::Unauthenticated,
        }
    }
}

/// The key's id, the owner's uid and the MAC of a signature.
fn parts(signature: &str) -> Option<(&str, &str, Vec<u8>)> {
    let (id, rest) = signature.strip_prefix("v1.")?.split_once('.')?;
    let (uid, mac) = rest.rsplit_once('.')?;
    Some((id, uid, URL_SAFE_NO_PAD.decode(mac).ok()?))
}

/// The keys that records are signed with. Clones share them.
#[derive(Clone)]
pub struct RecordKeys(Arc<RwLock<Arc<[RecordKey]>>>);

/// Without the keys.
impl fmt::Debug for RecordKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.current();
        f.debug_list().entries(keys.iter().map(|key| &key.id)).finish()
    }
}

struct RecordKey {
    id: Box<str>,
    mac: Hmac<Sha256>,
}

impl RecordKeys {
    /// Records are signed with the first key, and verified with all of them.
    pub fn new<K: AsRef<[u8]>>(keys: &[K]) -> Self {
        Self(Arc::new(RwLock::new(prepared(keys))))
    }

    /// Takes other keys in the place of those that were there.
    pub fn replace<K: AsRef<[u8]>>(&self, keys: &[K]) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = prepared(keys);
    }

    fn current(&self) -> Arc<[RecordKey]> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Keys that are too short are left out.
fn prepared<K: AsRef<[u8]>>(keys: &[K]) -> Arc<[RecordKey]> {
    let long = keys.iter().map(AsRef::as_ref).filter(|key| key.len() >= SHORTEST_KEY);
    long.filter_map(RecordKey::new).collect()
}

impl RecordKey {
    fn new(key: &[u8]) -> Option<Self> {
        // HMAC takes keys of any length; the error is there for the types.
        let mac = Hmac::new_from_slice(key).ok()?;
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(key).finalize();
        let id = URL_SAFE_NO_PAD.encode(digest.get(..6).unwrap_or_default());
        Some(Self { id: id.into(), mac })
    }

    /// Each part is preceded by its length, so that no two lists of parts are the same text.
    fn mac(&self, at: Location<'_>, owner: &RecordOwner, uid: &str, packed: &[u8]) -> Hmac<Sha256> {
        let Location { secret_namespace, secret_name, release_namespace, release_name } = at;
        let digest = Sha256::digest(packed);
        let mut mac = self.mac.clone();
        for part in [
            DOMAIN,
            secret_namespace.as_bytes(),
            secret_name.as_bytes(),
            release_namespace.as_bytes(),
            release_name.as_bytes(),
            owner.name.as_bytes(),
            uid.as_bytes(),
            digest.as_slice(),
        ] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    const OLD: [u8; 32] = [1; 32];
    const NEW: [u8; 32] = [2; 32];
    const AT: Location<'static> = Location {
        secret_namespace: "ns",
        secret_name: "sh.helm.release.v1.rel.v1",
        release_namespace: "ns",
        release_name: "rel",
    };

    fn policy(keys: &[[u8; 32]], name: &str, uid: &str) -> RecordPolicy {
        let reference = OwnerReference {
            api_version: "cache.my.domain/v1alpha1".into(),
            kind: "Memcached".into(),
            name: name.into(),
            uid: uid.into(),
            ..OwnerReference::default()
        };
        let owner = Owner { reference, namespace: Some("ns".into()), chart: None };
        let (keys, owner) = (RecordKeys::new(keys), RecordOwner::new(&owner));
        RecordPolicy::Authenticate { keys, owner }
    }

    #[test]
    fn a_signature_holds_for_one_record_of_one_resource() {
        use Authenticity::{Authenticated, EarlierOwner, Unauthenticated};
        let ours = policy(&[NEW], "rel", "uid-1");
        let signature = ours.sign(AT, b"payload").expect("a signature");
        let verified = |policy: &RecordPolicy, at, payload: &[u8]| {
            policy.verify(at, payload, Some(&signature))
        };
        assert_eq!(verified(&ours, AT, b"payload"), Authenticated);
        assert_eq!(verified(&ours, AT, b"payloae"), Unauthenticated);
        for other in [
            Location { secret_namespace: "n", ..AT },
            Location { secret_name: "sh.helm.release.v1.rel.v2", ..AT },
            Location { release_namespace: "n", ..AT },
            Location { release_name: "re", ..AT },
            // The same letters, cut elsewhere.
            Location { release_namespace: "nsr", release_name: "el", ..AT },
        ] {
            assert_eq!(verified(&ours, other, b"payload"), Unauthenticated, "{other:?}");
        }
        assert_eq!(verified(&policy(&[NEW], "rel", "uid-2"), AT, b"payload"), EarlierOwner);
        assert_eq!(verified(&policy(&[NEW], "other", "uid-1"), AT, b"payload"), Unauthenticated);
        let claims_another = signature.replace("uid-1", "uid-2");
        let second = policy(&[NEW], "rel", "uid-2");
        assert_eq!(second.verify(AT, b"payload", Some(&claims_another)), Unauthenticated);
        for rubbish in ["", "v1", "v1...", "v2.a.b.c", "v1.\u{0}.é.=", &signature[..40]] {
            assert_eq!(ours.verify(AT, b"payload", Some(rubbish)), Unauthenticated);
        }
        assert_eq!(ours.verify(AT, b"payload", None), Unauthenticated);
        assert_eq!(RecordPolicy::TrustAll.verify(AT, b"payload", None), Authenticated);
        assert_eq!(RecordPolicy::TrustAll.sign(AT, b"payload"), None);
    }

    #[test]
    fn a_signature_of_the_previous_key_holds_until_it_is_dropped() {
        let old = policy(&[OLD], "rel", "uid-1").sign(AT, b"payload");
        let verified = |keys: &[[u8; 32]], signature: &Option<String>| {
            policy(keys, "rel", "uid-1").verify(AT, b"payload", signature.as_deref())
        };
        assert_eq!(verified(&[NEW, OLD], &old), Authenticity::Authenticated);
        let both = policy(&[NEW, OLD], "rel", "uid-1").sign(AT, b"payload");
        assert_eq!(verified(&[NEW], &both), Authenticity::Authenticated, "the first one signs");
        assert_eq!(verified(&[NEW], &old), Authenticity::Unauthenticated);
        assert_eq!(verified(&[], &old), Authenticity::Unauthenticated);
    }

    #[test]
    fn a_short_key_is_no_key() {
        assert!(RecordKeys::new(&[[7_u8; 31]]).current().is_empty());
        let shown = format!("{:?}", RecordKeys::new(&[NEW]));
        assert!(!shown.contains("2, 2"), "{shown}");
    }
}
