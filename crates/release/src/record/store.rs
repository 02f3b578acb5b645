//! Where records live: one Secret per revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_cluster::apply::{Applier, ApplyError, FailureKind, Target, metadata, metadata_str};
use jiff::Timestamp;
use kube::api::{ApiResource, PropagationPolicy};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::codec;
use super::model::{Release, secret_name};
use crate::Error;
use crate::plan::History;

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";

/// Labels that Helm sets itself; all others on a record are a user's.
const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// A record as it lies in the cluster.
#[derive(Debug, Clone)]
pub struct Stored {
    /// What it says.
    pub release: Arc<Release>,
    /// The version of its Secret, so that nobody's write is lost under ours.
    pub resource_version: String,
    /// The uid of its Secret.
    pub uid: String,
    /// The label `createdAt`, kept when the record is written again.
    created_at: Option<String>,
}

#[cfg(test)]
impl Stored {
    /// A record that no Secret holds.
    pub(crate) fn unsaved(release: Arc<Release>) -> Self {
        Self { release, resource_version: String::new(), uid: String::new(), created_at: None }
    }
}

/// Reads and writes records.
///
/// The helm CLI writes records without preconditions and drops every other metadata of theirs, so
/// nothing but the payload counts, and no owner reference is put on them.
#[derive(Debug, Clone)]
pub struct Store {
    applier: Applier,
}

impl Store {
    /// A store that reads and writes by this applier.
    pub fn new(applier: Applier) -> Self {
        Self { applier }
    }

    /// All records of a release, oldest first: one LIST.
    pub async fn history(&self, namespace: &str, name: &str) -> Result<History, Error> {
        let labels = format!("name={name},owner=helm");
        let secrets = self.applier.list(&secrets(), namespace, &labels).await?;
        let mut history = History::empty(namespace, name, Timestamp::now());
        for secret in &secrets {
            match read(secret) {
                Ok(stored) => history.put(stored),
                Err(error) => {
                    let secret_name = metadata_str(secret, "name");
                    tracing::warn!(namespace, secret = secret_name, %error, "a release record cannot be read");
                    let revision = secret_name
                        .rsplit_once(".v")
                        .and_then(|(_, v)| v.parse().ok())
                        .unwrap_or(0);
                    history.unreadable.push((revision, error));
                }
            }
        }
        Ok(history)
    }

    /// Creates the record: of all who try, one succeeds.
    pub async fn create(&self, release: Release) -> Result<Stored, Error> {
        let target = target(&release.namespace, &release.name, release.version);
        let now = Timestamp::now().as_second().to_string();
        let secret = secret(&release, [("createdAt", now)], None)?;
        match self.applier.create(&target, &secret).await {
            Ok(live) => Ok(stored(&live, release)),
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                Err(Error::Raced { name: release.name, revision: release.version })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a changed record over the one that was read.
    pub async fn update(&self, old: &Stored, release: Release) -> Result<Stored, Error> {
        let target = target(&release.namespace, &release.name, release.version);
        let now = Timestamp::now().as_second().to_string();
        let created = old.created_at.clone().map(|at| ("createdAt", at));
        let labels = created.into_iter().chain([("modifiedAt", now)]);
        let secret = secret(&release, labels, Some(&old.resource_version))?;
        let live = self.applier.replace(&target, &secret).await?;
        Ok(stored(&live, release))
    }

    /// Deletes a record; one that is gone already, or was replaced by somebody, is left alone.
    pub async fn delete(&self, old: &Stored) -> Result<(), ApplyError> {
        let release = &old.release;
        let target = target(&release.namespace, &release.name, release.version);
        self.applier.delete(&target, &old.uid, PropagationPolicy::Background).await?;
        Ok(())
    }
}

fn secrets() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Secret"), "secrets")
}

fn target(namespace: &str, name: &str, revision: u32) -> Target {
    Target {
        resource: secrets(),
        namespace: Some(namespace.to_owned()),
        name: secret_name(name, revision),
    }
}

/// The Secret of a record.
fn secret(
    release: &Release,
    times: impl IntoIterator<Item = (&'static str, String)>,
    resource_version: Option<&str>,
) -> Result<Value, Error> {
    let payload = codec::encode(release).map_err(Error::Encode)?;
    let mut labels: BTreeMap<String, String> = release.labels.clone();
    let own = [
        ("name", release.name.clone()),
        ("owner", "helm".to_owned()),
        ("status", release.info.status.to_string()),
        ("version", release.version.to_string()),
    ];
    labels.extend(own.into_iter().chain(times).map(|(key, value)| (key.to_owned(), value)));
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": { "name": release.secret_name(), "namespace": release.namespace, "labels": labels },
        "data": { "release": STANDARD.encode(payload) },
    });
    if let (Some(version), Some(metadata)) =
        (resource_version, secret.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("resourceVersion".to_owned(), version.into());
    }
    Ok(secret)
}

fn read(secret: &Value) -> Result<Stored, codec::CodecError> {
    let data = secret.pointer("/data/release").and_then(Value::as_str);
    let payload = STANDARD
        .decode(data.ok_or(codec::CodecError::Missing)?)
        .map_err(|_| codec::CodecError::Base64)?;
    let mut release = codec::decode(&payload)?;
    let labels = metadata(secret).get("labels").and_then(Value::as_object);
    release.labels = labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| !SYSTEM_LABELS.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    if release.namespace.is_empty() {
        metadata_str(secret, "namespace").clone_into(&mut release.namespace);
    }
    Ok(stored(secret, release))
}

fn stored(live: &Value, release: Release) -> Stored {
    let created_at = metadata(live).get("labels").and_then(|labels| labels.get("createdAt"));
    Stored {
        release: Arc::new(release),
        resource_version: metadata_str(live, "resourceVersion").to_owned(),
        uid: metadata_str(live, "uid").to_owned(),
        created_at: created_at.and_then(Value::as_str).map(str::to_owned),
    }
}
