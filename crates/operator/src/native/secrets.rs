//! Secrets whose values are drawn once and kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use catamaran_cluster::apply::FailureKind;
use catamaran_cluster::watch::ObjectKey;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::context::{Context, MANAGED_BY};
use super::references::Reference;
use super::{Error, Managed, gvk};

/// Annotation of such a Secret: for what its values were drawn last, see [`SecretOnce::rotated_by`].
const ROTATION: &str = "catamaran.dev/rotation";
/// What values are drawn from: no shell, URL or YAML reads any of these as more than a character.
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A Secret of which values are made when they are missing, and at no other time.
#[derive(Clone, Debug, Default)]
pub struct SecretOnce {
    keys: BTreeMap<String, Make>,
    rotation: Option<String>,
}

#[derive(Clone)]
enum Make {
    Random(usize),
    Given(String),
}

impl std::fmt::Debug for Make {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Random(length) => write!(f, "Random({length})"),
            Self::Given(_) => f.write_str("Given(…)"),
        }
    }
}

impl SecretOnce {
    /// No keys yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A key with as many random letters and digits, drawn from the system's randomness.
    #[must_use]
    pub fn random(mut self, key: &str, length: usize) -> Self {
        self.keys.insert(key.to_owned(), Make::Random(length));
        self
    }

    /// A key that has this value at first, such as the name of a user. Rotation leaves it alone.
    #[must_use]
    pub fn given(mut self, key: &str, value: impl Into<String>) -> Self {
        self.keys.insert(key.to_owned(), Make::Given(value.into()));
        self
    }

    /// Has random values drawn anew whenever this is another than at the last time, such as a field of
    /// the spec or an annotation by which people ask for it.
    #[must_use]
    pub fn rotated_by(mut self, request: Option<impl Into<String>>) -> Self {
        self.rotation = request.map(Into::into);
        self
    }

    /// The values that `live` lacks; all random ones if they are to be drawn anew.
    fn missing(&self, live: Option<&Secret>) -> Result<BTreeMap<String, ByteString>, Error> {
        let rotate = live.is_some_and(|live| self.is_rotated(live));
        let has = |key: &String| {
            live.and_then(|live| live.data.as_ref()).is_some_and(|data| data.contains_key(key))
        };
        let mut missing = BTreeMap::new();
        for (key, make) in &self.keys {
            let value = match make {
                Make::Random(length) if rotate || !has(key) => random(*length)?,
                Make::Given(value) if !has(key) => value.clone(),
                _ => continue,
            };
            missing.insert(key.clone(), ByteString(value.into_bytes()));
        }
        Ok(missing)
    }

    fn is_rotated(&self, live: &Secret) -> bool {
        self.rotation
            .as_ref()
            .is_some_and(|wanted| live.annotations().get(ROTATION) != Some(wanted))
    }
}

impl<K: Managed> Context<'_, K> {
    /// A Secret of this name in the resource's namespace, owned by it, whose keys are made once:
    /// nothing is ever overwritten, keys that are missing are added, values are drawn anew on request
    /// alone. No request is made while there is nothing to do.
    ///
    /// # Errors
    /// A Secret of that name that belongs to somebody else; what the API server refuses.
    pub async fn secret_once(&self, name: &str, once: SecretOnce) -> Result<Arc<Secret>, Error> {
        let namespace = self.key().object.namespace.clone();
        let key = ObjectKey { namespace, name: name.to_owned() };
        let live = match self.reference_to::<Secret>(key.clone()).await? {
            Reference::Missing { .. } => match self.create_secret(&key, &once).await? {
                Some(created) => return Ok(created),
                None => self.reference_to::<Secret>(key.clone()).await?.found()?,
            },
            found => found.found()?,
        };
        if !self.has_secret(&live) {
            return Err(Error::Permanent(format!(
                "Secret \"{key}\" exists and does not belong to this resource: delete or rename one of the two"
            )));
        }
        let missing = once.missing(Some(&live))?;
        if missing.is_empty() && !once.is_rotated(&live) {
            return Ok(live);
        }
        let mut patch = json!({ "data": missing });
        if let Some(rotation) = &once.rotation {
            patch["metadata"] = json!({ "annotations": { ROTATION: rotation } });
        }
        let patched: Secret = self.patch(&*live, patch).await?;
        self.remember_secret(&key, serde_json::to_value(&patched).map_err(Error::transient)?);
        Ok(Arc::new(patched))
    }

    fn has_secret(&self, live: &Secret) -> bool {
        if self.shared().outlast {
            return self
                .annotations()
                .iter()
                .all(|(name, of)| live.annotations().get(name) == Some(of));
        }
        let uid = self.uid();
        live.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref())
    }

    /// `None`: somebody was faster.
    async fn create_secret(
        &self,
        key: &ObjectKey,
        once: &SecretOnce,
    ) -> Result<Option<Arc<Secret>>, Error> {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": key.name, "namespace": key.namespace,
                "labels": { MANAGED_BY: self.shared().operator },
                "annotations": once.rotation.as_ref().map(|rotation| json!({ ROTATION: rotation })),
            },
            "data": once.missing(None)?,
        });
        if self.shared().outlast {
            self.hold(&gvk::<Secret>(), key.namespace.as_ref(), &mut object).await?;
        } else {
            let owner = self.controller_owner_ref(&()).map(|us| vec![us]);
            object["metadata"]["ownerReferences"] = json!(owner);
        }
        let target = self.target::<Secret>(key.namespace.clone(), key.name.clone()).await?;
        match self.shared().applier.create(&target, &object).await {
            Ok(live) => {
                let live = self.remember_secret(key, live);
                let secret = serde_json::from_value((*live).clone()).map_err(Error::transient)?;
                Ok(Some(Arc::new(secret)))
            }
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                let live = self.shared().applier.get(&target).await?.ok_or(Error::Conflict)?;
                self.remember_secret(key, live);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn remember_secret(&self, key: &ObjectKey, live: Value) -> Arc<Value> {
        self.shared().references.remember(&(gvk::<Secret>(), key.clone()), live)
    }
}

/// Letters and digits, each as likely as any other.
fn random(length: usize) -> Result<String, Error> {
    let mut text = String::with_capacity(length);
    let mut bytes = [0_u8; 64];
    while text.len() < length {
        getrandom::fill(&mut bytes).map_err(Error::transient)?;
        // 248 is the largest multiple of 62 that a byte can hold: above it some would be likelier.
        let drawn = bytes.iter().filter(|byte| **byte < 248);
        let letters = drawn.filter_map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()));
        text.extend(letters.map(|byte| char::from(*byte)).take(length - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(data: &Value, rotation: Option<&str>) -> Secret {
        let annotations = rotation.map(|rotation| json!({ ROTATION: rotation }));
        let object = json!({ "metadata": { "annotations": annotations }, "data": data });
        serde_json::from_value(object).unwrap()
    }

    fn keys(once: &SecretOnce, live: &Secret) -> Vec<String> {
        once.missing(Some(live)).unwrap().into_keys().collect()
    }

    #[test]
    fn only_what_is_missing_is_made() {
        let once = SecretOnce::new().random("password", 12).given("user", "admin");
        let made = once.missing(None).unwrap();
        assert_eq!(
            (made["password"].0.len(), made["user"].0.as_slice()),
            (12, b"admin".as_slice())
        );
        assert_eq!(keys(&once, &secret(&json!({ "password": "b2xk" }), None)), ["user"]);
        assert_eq!(keys(&once, &secret(&json!({ "password": "", "user": "" }), None)), [""; 0]);
    }

    #[test]
    fn a_rotation_draws_random_values_and_leaves_given_ones() {
        let once = SecretOnce::new().random("password", 12).given("user", "admin");
        let once = once.rotated_by(Some("2"));
        let data = json!({ "password": "b2xk", "user": "bWU=" });
        assert_eq!(keys(&once, &secret(&data, Some("1"))), ["password"]);
        assert_eq!(keys(&once, &secret(&data, Some("2"))), [""; 0]);
    }

    #[test]
    fn nothing_of_a_secret_is_in_its_debug_form() {
        assert!(!format!("{:?}", SecretOnce::new().given("user", "hunter2")).contains("hunter2"));
    }
}
