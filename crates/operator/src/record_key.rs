//! The keys that records of releases are signed with, see [`catamaran_release::RecordPolicy`].
//!
//! They lie in a Secret of the operator's own namespace: `current`, which signs, and `previous`, which
//! still verifies. The Secret is made at the first start. To rotate, move `current` to `previous` and
//! restart the operator: it makes a new `current`. If the Secret is lost, the records that are there are
//! no longer authenticated, and nothing else happens.
//!
//! An operator that may not have the Secret signs with a key that nobody else has, and that is lost with
//! its process.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_cluster::apply::{Applier, ApplyError, FailureKind, Target};
use catamaran_release::RecordKeys;
use catamaran_release::record::authenticity::SHORTEST_KEY;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};

/// The type of the Secret, which cannot be changed.
const TYPE: &str = "catamaran.dev/record-key";
/// The key that signs.
const CURRENT: &str = "current";
/// The key that signed before.
const PREVIOUS: &str = "previous";
/// How often the start tries to have the Secret where the API server does not answer.
const TRIES: u32 = 10;
/// The pause between these tries, and the first one after them.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The Secret of an operator's keys.
#[derive(Clone, Debug)]
pub(crate) struct KeySecret {
    applier: Applier,
    target: Target,
    /// What signs until the Secret is there.
    own: Vec<u8>,
    keys: RecordKeys,
}

impl KeySecret {
    /// The Secret of the operator of this name in its namespace; nothing is asked for yet.
    ///
    /// # Errors
    /// A message for people if the system has no random numbers.
    pub fn new(client: Client, operator: &str, namespace: &str) -> Result<Self, String> {
        let gvk = GroupVersionKind::gvk("", "v1", "Secret");
        let target = Target {
            resource: ApiResource::from_gvk_with_plural(&gvk, "secrets"),
            namespace: Some(namespace.to_owned()),
            name: secret_name(operator),
        };
        let own = fresh()?;
        let keys = RecordKeys::new(&[&own]);
        Ok(Self { applier: Applier::new(client, operator), target, own, keys })
    }

    /// The keys: what is read or made later, takes effect on all that have them.
    pub fn keys(&self) -> RecordKeys {
        self.keys.clone()
    }

    /// Reads the keys, or makes them. Returns once that is done, or will not be done soon: then it is
    /// tried again in the background, for as long as the task runs that this future belongs to.
    ///
    /// Yields what is still to be run.
    pub async fn load(self) -> Option<impl Future<Output = ()> + Send + 'static> {
        for left in (0..TRIES).rev() {
            match self.load_once().await {
                Ok(()) => return None,
                // A permission may be missing only until the API server has heard of it.
                Err(error)
                    if error.kind.is_transient()
                        || (error.kind == FailureKind::MissingPermission && left > 0) =>
                {
                    tracing::debug!(%error, "cannot read the keys of records yet");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    self.log_error(&error);
                    break;
                }
            }
        }
        Some(async move {
            let mut pause = PAUSE;
            while let Err(error) = self.load_once().await {
                tracing::debug!(%error, "cannot read the keys of records yet");
                pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
                tokio::time::sleep(pause).await;
            }
            tracing::info!(secret = self.target.name, "the keys of records are there now");
        })
    }

    fn log_error(&self, error: &ApplyError) {
        let Target { namespace, name, .. } = &self.target;
        tracing::warn!(
            namespace = namespace.as_deref().unwrap_or_default(), secret = name, %error,
            "cannot read or make the key that release records are signed with: until then a restart \
             takes all records for unauthenticated; allow get, create and update on this Secret"
        );
    }

    async fn load_once(&self) -> Result<(), ApplyError> {
        let live = match self.applier.get(&self.target).await? {
            Some(live) => live,
            None => match self.applier.create(&self.target, &self.made()).await {
                Ok(live) => live,
                // Another process was quicker: its key counts.
                Err(error) if error.kind == FailureKind::AlreadyExists => {
                    let live = self.applier.get(&self.target).await?;
                    live.ok_or(ApplyError { kind: FailureKind::Conflict, ..error })?
                }
                Err(error) => return Err(error),
            },
        };
        let live = if key(&live, CURRENT).is_some() {
            live
        } else {
            let rotated = with_current(live, &self.own);
            self.applier.replace(&self.target, &rotated).await?
        };
        // What was signed before the Secret was there holds for this process.
        let keys: Vec<Vec<u8>> = [key(&live, CURRENT), key(&live, PREVIOUS)]
            .into_iter()
            .flatten()
            .chain([self.own.clone()])
            .collect();
        self.keys.replace(&keys);
        Ok(())
    }

    /// The Secret where there is none.
    fn made(&self) -> Value {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": TYPE,
            "metadata": {
                "name": self.target.name, "namespace": self.target.namespace,
                "labels": { "app.kubernetes.io/managed-by": self.applier.manager() },
            },
        });
        with_current(secret, &self.own)
    }
}

/// A Secret with this key as the one that signs; the rest of it stays.
fn with_current(mut secret: Value, key: &[u8]) -> Value {
    let Some(fields) = secret.as_object_mut() else { return secret };
    let data = fields.entry("data").or_insert(Value::Null);
    if !data.is_object() {
        *data = Value::Object(Map::new());
    }
    if let Some(data) = data.as_object_mut() {
        data.insert(CURRENT.to_owned(), STANDARD.encode(key).into());
    }
    secret
}

/// The name of the Secret of an operator's keys.
pub(crate) fn secret_name(operator: &str) -> String {
    format!("{operator}-record-key")
}

/// What was looked up for a template, without Secrets of keys: a chart may print what it finds, and whoever
/// has a key can sign records.
pub(crate) fn without_keys(mut found: Value) -> Value {
    let is_key = |object: &Value| object.get("type").and_then(Value::as_str) == Some(TYPE);
    if is_key(&found) {
        return json!({});
    }
    if let Some(items) = found.get_mut("items").and_then(Value::as_array_mut) {
        items.retain(|item| !is_key(item));
    }
    found
}

/// A key of the Secret, if it is one.
fn key(secret: &Value, name: &str) -> Option<Vec<u8>> {
    let text = secret.get("data")?.get(name)?.as_str()?;
    STANDARD.decode(text).ok().filter(|key| key.len() >= SHORTEST_KEY)
}

fn fresh() -> Result<Vec<u8>, String> {
    let mut key = vec![0; SHORTEST_KEY];
    getrandom::fill(&mut key).map_err(|error| format!("no random numbers for a key: {error}"))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_do_not_see_the_keys() {
        let (key, other) =
            (json!({ "type": TYPE, "data": { "current": "a" } }), json!({ "type": "Opaque" }));
        assert_eq!(without_keys(key.clone()), json!({}));
        assert_eq!(without_keys(other.clone()), other);
        let list = json!({ "kind": "SecretList", "items": [key, other] });
        assert_eq!(without_keys(list), json!({ "kind": "SecretList", "items": [other] }));
    }

    #[test]
    fn a_secret_without_a_current_key_gets_one_and_keeps_the_rest() {
        let live =
            json!({ "metadata": { "resourceVersion": "5" }, "data": { "previous": "cHJldg==" } });
        let rotated = with_current(live.clone(), &[8; 32]);
        assert_eq!(rotated["metadata"], live["metadata"]);
        assert_eq!(rotated["data"]["previous"], "cHJldg==");
        assert_eq!(key(&rotated, CURRENT), Some(vec![8; 32]));
        assert_eq!(key(&rotated, PREVIOUS), None, "too short to be a key");
        assert_eq!(key(&with_current(json!({}), &[9; 32]), CURRENT), Some(vec![9; 32]));
    }
}
