//! Where records live: one Secret per revision, or several, see [`super::chunks`].

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_cluster::apply::{Applier, ApplyError, FailureKind, Target, metadata, metadata_str};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, PropagationPolicy};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::model::{Release, secret_name};
use super::{chunks, codec};
use crate::plan::History;
use crate::{Clock, Error};

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";

/// Labels that Helm sets itself; all others on a record are a user's.
const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// The same of helm-operator-plugins.
const PLUGIN_LABELS: [&str; 8] =
    ["name", "owner", "status", "version", "createdAt", "modifiedAt", "key", "type"];

/// A record as it lies in the cluster.
#[derive(Debug, Clone)]
pub struct Stored {
    /// What it says.
    pub release: Arc<Release>,
    /// The version of its Secret, so that nobody's write is lost under ours.
    pub resource_version: String,
    /// The uid of its Secret.
    pub uid: String,
    /// Who owns its Secret: nobody, unless a Helm operator wrote it.
    pub owners: Arc<[OwnerReference]>,
    /// The label `createdAt`, kept when the record is written again.
    created_at: Option<String>,
    layout: Layout,
}

/// How a record lies in its Secrets. It stays so: a Secret's type cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    /// Helm's Secret.
    Whole,
    /// An index, and pieces of these names.
    Cut(Vec<String>),
    /// The index of helm-operator-plugins, which owns its pieces.
    Plugins,
}

/// A piece that no index names: its writer died before the index, or between two of its own.
#[derive(Debug, Clone)]
pub(crate) struct Loose {
    name: String,
    uid: String,
    created: Option<Timestamp>,
}

/// A loose piece may still get its index as long as its writer may be at it.
const AT_WORK: Duration = Duration::from_mins(10);

impl Stored {
    /// Whether it lies in several Secrets: then the helm CLI does not see it.
    pub fn is_cut(&self) -> bool {
        self.layout != Layout::Whole
    }
}

#[cfg(test)]
impl Stored {
    /// A record that no Secret holds.
    pub(crate) fn unsaved(release: Arc<Release>) -> Self {
        let (resource_version, uid) = (String::new(), String::new());
        let (owners, created_at) = (Arc::default(), None);
        Self { release, resource_version, uid, owners, created_at, layout: Layout::Whole }
    }
}

/// Is told of every record that is written.
type Tell = dyn Fn(&str, &str, u32, Option<&str>) + Send + Sync;

/// Tells somebody of what is written.
#[derive(Clone, Default)]
pub(crate) struct Teller(Option<Arc<Tell>>);

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Teller").field(&self.0.is_some()).finish()
    }
}

impl Teller {
    pub fn new(tell: impl Fn(&str, &str, u32, Option<&str>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    fn wrote(&self, stored: Stored) -> Stored {
        self.tell(&stored.release, Some(&stored.resource_version));
        stored
    }

    fn deletes(&self, release: &Release) {
        self.tell(release, None);
    }

    fn tell(&self, release: &Release, version: Option<&str>) {
        if let Some(tell) = &self.0 {
            tell(&release.namespace, &release.name, release.version, version);
        }
    }
}

/// Reads and writes records.
///
/// The helm CLI writes records without preconditions and drops every other metadata of theirs, so
/// nothing but the payload counts, and no owner reference is put on them.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) applier: Applier,
    pub(super) clock: Clock,
    /// Where all records lie; `None` is the namespace of each release.
    place: Option<Arc<str>>,
    teller: Teller,
}

impl Store {
    /// A store that reads and writes by this applier.
    pub fn new(applier: Applier) -> Self {
        Self { applier, clock: Clock::default(), teller: Teller::default(), place: None }
    }

    /// The same, for records that all lie in this namespace.
    #[must_use]
    pub fn in_namespace(mut self, place: &str) -> Self {
        self.place = Some(place.into());
        self
    }

    fn target(&self, namespace: &str, name: String) -> Target {
        target(self.place.as_deref().unwrap_or(namespace), name)
    }

    /// Who is told of writes.
    #[must_use]
    pub(crate) fn telling(mut self, teller: Teller) -> Self {
        self.teller = teller;
        self
    }

    /// What tells the time.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// All records of a release, oldest first: one LIST. (And a GET for each piece of a record of
    /// helm-operator-plugins, whose pieces do not tell whose they are.)
    pub async fn history(&self, namespace: &str, name: &str) -> Result<History, Error> {
        // What all records carry, and little else does, whatever the values.
        let labels = format!("name={name},owner,status,version");
        let place = self.place.as_deref().unwrap_or(namespace);
        let mut found = self.applier.list(&secrets(), place, &labels).await?;
        let plugins = found.iter().filter(|secret| type_of(secret) == chunks::PLUGIN_INDEX);
        let elsewhere: Vec<String> =
            plugins.filter_map(|index| chunks::names(index).ok()).flatten().collect();
        for name in elsewhere {
            found.extend(self.applier.get(&self.target(namespace, name)).await?);
        }
        let of_type = |types: [&'static str; 2]| {
            found.iter().filter(move |secret| types.contains(&type_of(secret)))
        };
        let pieces: Vec<&Value> = of_type([chunks::CHUNK, chunks::PLUGIN_CHUNK]).collect();
        let indices = || of_type([chunks::INDEX, chunks::PLUGIN_INDEX]);
        let mut history = History::empty(namespace, name, self.clock.now());
        for record in of_type([SECRET_TYPE, SECRET_TYPE]).chain(indices()) {
            take_in(&mut history, record, &pieces);
        }
        let named: HashSet<String> =
            indices().filter_map(|index| chunks::names(index).ok()).flatten().collect();
        let is_loose = |piece: &&&Value| !named.contains(metadata_str(piece, "name"));
        history.loose = pieces.iter().filter(is_loose).map(|piece| Loose::new(piece)).collect();
        Ok(history)
    }

    /// The record of one revision, by one GET; `None` if there is none, or if it lies in several Secrets.
    pub async fn whole(
        &self,
        namespace: &str,
        name: &str,
        revision: u32,
    ) -> Result<Option<Stored>, Error> {
        let found = self.applier.get(&self.target(namespace, secret_name(name, revision))).await?;
        let whole = found.filter(|record| type_of(record) == SECRET_TYPE);
        // One that cannot be read is told of by who reads the history.
        Ok(whole.and_then(|record| read(&record, &[]).ok()))
    }

    /// Whether there is a record of a revision.
    pub async fn exists(&self, namespace: &str, name: &str, revision: u32) -> Result<bool, Error> {
        let target = self.target(namespace, secret_name(name, revision));
        Ok(self.applier.get(&target).await?.is_some())
    }

    /// Creates the record: of all who try, one succeeds.
    /// `packed` is what [`codec::pack`] made of it.
    pub async fn create(&self, release: Release, packed: &[u8]) -> Result<Stored, Error> {
        let now = self.clock.now().as_second().to_string();
        let cut = chunks::is_needed(packed);
        self.post(release, packed, cut, [("createdAt", now)]).await
    }

    async fn post(
        &self,
        release: Release,
        packed: &[u8],
        cut: bool,
        times: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Stored, Error> {
        let secret = self.lay_out(&release, packed, cut, times).await?;
        let target = self.target(&release.namespace, release.secret_name());
        match self.applier.create(&target, &secret).await {
            Ok(live) => Ok(self.teller.wrote(stored(&live, release))),
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                Err(Error::Raced { name: release.name, revision: release.version })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a changed record over the one that was read.
    pub async fn update(&self, old: &Stored, release: Release) -> Result<Stored, Error> {
        let packed = codec::pack(&release).map_err(Error::Encode)?;
        let now = self.clock.now().as_second().to_string();
        let created = old.created_at.clone().map(|at| ("createdAt", at));
        let times = created.into_iter().chain([("modifiedAt", now)]);
        if old.layout == Layout::Plugins {
            // A Secret keeps its type, and its name is taken: the one has to go before the other.
            self.delete(old).await?;
            return self.post(release, &packed, chunks::is_needed(&packed), times).await;
        }
        let mut secret = self.lay_out(&release, &packed, old.is_cut(), times).await?;
        if let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), old.resource_version.clone().into());
        }
        let target = self.target(&release.namespace, release.secret_name());
        let live = self.applier.replace(&target, &secret).await?;
        let new = self.teller.wrote(stored(&live, release));
        self.drop_pieces(&old.release, &old.layout, &new.layout).await?;
        Ok(new)
    }

    /// Deletes a record; one that is gone already, or was replaced by somebody, is left alone.
    pub async fn delete(&self, old: &Stored) -> Result<(), ApplyError> {
        let target = self.target(&old.release.namespace, old.release.secret_name());
        // First, as a watch may hear of it before the answer is here.
        self.teller.deletes(&old.release);
        self.applier.delete(&target, &old.uid, PropagationPolicy::Background).await?;
        self.drop_pieces(&old.release, &old.layout, &Layout::Whole).await
    }

    /// Deletes pieces that nothing names; without `all` only those that no writer can be at.
    pub(crate) async fn sweep(&self, history: &mut History, all: bool) -> Result<(), ApplyError> {
        for loose in std::mem::take(&mut history.loose) {
            let age = loose.created.and_then(|at| history.time_since(at.into()));
            if all || age.is_some_and(|age| age > AT_WORK) {
                let target = self.target(history.namespace(), loose.name);
                self.applier.delete(&target, &loose.uid, PropagationPolicy::Background).await?;
            }
        }
        Ok(())
    }

    /// The Secret of a record; its pieces, if it has to be cut, are written here and now.
    async fn lay_out(
        &self,
        release: &Release,
        packed: &[u8],
        cut: bool,
        times: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Value, Error> {
        if !cut {
            let data = json!({ "release": STANDARD.encode(codec::encode(packed)) });
            let mut whole = secret(release, ("helm", SECRET_TYPE), &data, times);
            self.put(&mut whole);
            return Ok(whole);
        }
        let pieces = chunks::cut(release, packed);
        for (name, piece) in &pieces {
            let target = self.target(&release.namespace, name.clone());
            let mut secret = chunks::secret(release, name, piece);
            self.put(&mut secret);
            match self.applier.create(&target, &secret).await {
                Ok(_) => {}
                // Its name is its content: it was written before.
                Err(error) if error.kind == FailureKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        let data = chunks::index(&pieces);
        let mut index = secret(release, (chunks::OWNER, chunks::INDEX), &data, times);
        self.put(&mut index);
        Ok(index)
    }

    /// Says in a Secret where it lies.
    fn put(&self, secret: &mut Value) {
        if let (Some(place), Some(namespace)) =
            (&self.place, secret.pointer_mut("/metadata/namespace"))
        {
            *namespace = Value::from(place.as_ref());
        }
    }

    /// Takes the owner references off a record. Helm operators put one on it, by which a deletion in
    /// the foreground collects the record while the uninstall still needs it.
    pub async fn disown(&self, old: &Stored) -> Result<Stored, ApplyError> {
        let target = self.target(&old.release.namespace, old.release.secret_name());
        let patch = json!({ "metadata": {
            "resourceVersion": old.resource_version, "ownerReferences": null,
        }});
        let live = self.applier.merge(&target, &patch).await?;
        let resource_version = metadata_str(&live, "resourceVersion").to_owned();
        let disowned = Stored { resource_version, owners: Arc::default(), ..old.clone() };
        Ok(self.teller.wrote(disowned))
    }

    /// Deletes the pieces of the one that the other has not.
    async fn drop_pieces(
        &self,
        release: &Release,
        old: &Layout,
        new: &Layout,
    ) -> Result<(), ApplyError> {
        let names = |layout: &Layout| match layout {
            Layout::Cut(names) => names.clone(),
            Layout::Whole | Layout::Plugins => Vec::new(),
        };
        let kept = names(new);
        for name in names(old).into_iter().filter(|name| !kept.contains(name)) {
            let target = self.target(&release.namespace, name);
            if let Some(piece) = self.applier.get(&target).await? {
                let uid = metadata_str(&piece, "uid");
                self.applier.delete(&target, uid, PropagationPolicy::Background).await?;
            }
        }
        Ok(())
    }
}

impl Loose {
    fn new(piece: &Value) -> Self {
        Self {
            name: metadata_str(piece, "name").to_owned(),
            uid: metadata_str(piece, "uid").to_owned(),
            created: metadata_str(piece, "creationTimestamp").parse().ok(),
        }
    }
}

/// Puts a record into the history, or what is wrong with it.
pub(super) fn take_in(history: &mut History, record: &Value, pieces: &[&Value]) {
    match read(record, pieces) {
        Ok(stored) => history.put(stored),
        Err(error) => {
            let (secret, namespace) = (metadata_str(record, "name"), history.namespace());
            tracing::warn!(namespace, secret, %error, "a release record cannot be read");
            let revision = secret.rsplit_once(".v").and_then(|(_, v)| v.parse().ok()).unwrap_or(0);
            history.unreadable.push((revision, error));
        }
    }
}

pub(super) fn type_of(secret: &Value) -> &str {
    secret.get("type").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn secrets() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Secret"), "secrets")
}

fn target(namespace: &str, name: String) -> Target {
    Target { resource: secrets(), namespace: Some(namespace.to_owned()), name }
}

/// The Secret of a record, by the value of its label `owner`, its type and its data.
fn secret(
    release: &Release,
    (owner, kind): (&str, &str),
    data: &Value,
    times: impl IntoIterator<Item = (&'static str, String)>,
) -> Value {
    let mut labels: BTreeMap<String, String> = release.labels.clone();
    let own = [
        ("name", release.name.clone()),
        ("owner", owner.to_owned()),
        ("status", release.info.status.to_string()),
        ("version", release.version.to_string()),
    ];
    labels.extend(own.into_iter().chain(times).map(|(key, value)| (key.to_owned(), value)));
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": kind,
        "metadata": { "name": release.secret_name(), "namespace": release.namespace, "labels": labels },
        "data": data,
    })
}

fn read(secret: &Value, pieces: &[&Value]) -> Result<Stored, codec::CodecError> {
    let mut release = if type_of(secret) == SECRET_TYPE {
        let data = secret.pointer("/data/release").and_then(Value::as_str);
        let payload = STANDARD
            .decode(data.ok_or(codec::CodecError::Missing)?)
            .map_err(|_| codec::CodecError::Base64)?;
        codec::decode(&payload)?
    } else {
        chunks::join(secret, pieces)?
    };
    let labels = metadata(secret).get("labels").and_then(Value::as_object);
    let system: &[&str] = match type_of(secret) {
        chunks::PLUGIN_INDEX => &PLUGIN_LABELS,
        _ => &SYSTEM_LABELS,
    };
    release.labels = labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| !system.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    if release.namespace.is_empty() {
        metadata_str(secret, "namespace").clone_into(&mut release.namespace);
    }
    Ok(stored(secret, release))
}

fn owners(live: &Value) -> Vec<OwnerReference> {
    let listed = metadata(live).get("ownerReferences").and_then(Value::as_array);
    let read = |owner: &Value| serde_json::from_value(owner.clone()).ok();
    listed.into_iter().flatten().filter_map(read).collect()
}

fn stored(live: &Value, release: Release) -> Stored {
    let created_at = metadata(live).get("labels").and_then(|labels| labels.get("createdAt"));
    let layout = match type_of(live) {
        chunks::INDEX => Layout::Cut(chunks::names(live).unwrap_or_default()),
        chunks::PLUGIN_INDEX => Layout::Plugins,
        _ => Layout::Whole,
    };
    Stored {
        release: Arc::new(release),
        resource_version: metadata_str(live, "resourceVersion").to_owned(),
        uid: metadata_str(live, "uid").to_owned(),
        owners: owners(live).into(),
        created_at: created_at.and_then(Value::as_str).map(str::to_owned),
        layout,
    }
}
