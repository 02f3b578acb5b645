//! Where records live: one Secret per revision, or several, see [`super::chunks`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_cluster::apply::{Applier, ApplyError, FailureKind, Target, metadata, metadata_str};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{ApiResource, ListParams, PropagationPolicy};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::authenticity::{ANNOTATION, Authenticity, Location, RecordPolicy};
use super::codec::{Bounds, CodecError};
use super::model::{LARGEST_REVISION, Release, secret_name};
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
    /// Who wrote it, as far as is known. It stays so when the record is written again with another
    /// status: what was not ours does not become ours by that.
    pub authenticity: Authenticity,
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

/// A Secret that should be a record and cannot be read as one.
#[derive(Debug, Clone)]
pub(crate) struct Unreadable {
    /// The revision by the Secret's name; 0 if that is none of a record of the release.
    pub revision: u32,
    /// Why it cannot be read.
    pub error: CodecError,
    pub secret: String,
    uid: String,
}

/// A piece that no index names: its writer died before the index, or between two of its own.
#[derive(Debug, Clone)]
pub(crate) struct Loose {
    name: String,
    uid: String,
    created: Option<Timestamp>,
}

/// How many records the first page of a list has: all that a limited history has.
const FIRST_PAGE: u32 = 12;
/// How many pages are read at once.
const PAGES_AT_ONCE: usize = 2;
/// How many bytes each later page is to have, about.
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// How many records each later page has at most.
const LARGEST_PAGE: usize = 250;
/// More Secrets than these are no history of a release: whoever may create Secrets may label any number
/// of them so.
const MOST_RECORDS: usize = 10_000;
/// The same, in bytes of their data.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// A loose piece may still get its index as long as its writer may be at it.
const AT_WORK: Duration = Duration::from_mins(10);

impl Stored {
    /// Whether the driver acts on what it says.
    pub fn is_trusted(&self) -> bool {
        self.authenticity == Authenticity::Authenticated
    }

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
        let authenticity = Authenticity::Authenticated;
        let layout = Layout::Whole;
        Self { release, resource_version, uid, owners, authenticity, created_at, layout }
    }

    /// The same, written by nobody knows whom.
    pub(crate) fn unauthenticated(release: Arc<Release>) -> Self {
        Self { authenticity: Authenticity::Unauthenticated, ..Self::unsaved(release) }
    }
}

#[cfg(test)]
impl Unreadable {
    /// A record of a revision that no Secret holds.
    pub(crate) fn unsaved(revision: u32, error: CodecError) -> Self {
        Self { revision, error, secret: secret_name("rel", revision), uid: String::new() }
    }
}

/// Is told of every record that is written.
type OnWrite = dyn Fn(&str, &str, u32, Option<&str>) + Send + Sync;

/// Tells somebody of what is written.
#[derive(Clone, Default)]
pub(crate) struct WriteObserver(Option<Arc<OnWrite>>);

impl fmt::Debug for WriteObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Teller").field(&self.0.is_some()).finish()
    }
}

impl WriteObserver {
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
/// nothing but the payload counts, and no owner reference is put on them. The signature goes with it:
/// what another program wrote is not authenticated, see [`RecordPolicy`].
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) applier: Applier,
    pub(super) clock: Clock,
    /// Where all records lie; `None` is the namespace of each release.
    place: Option<Arc<str>>,
    teller: WriteObserver,
    pub(super) policy: RecordPolicy,
    /// How many pages of records may be in memory at once.
    turns: Arc<Semaphore>,
}

impl Store {
    /// A store that reads and writes by this applier.
    pub fn new(applier: Applier) -> Self {
        let (clock, teller, policy) =
            (Clock::default(), WriteObserver::default(), RecordPolicy::default());
        let turns = Arc::new(Semaphore::new(PAGES_AT_ONCE));
        Self { applier, clock, teller, place: None, policy, turns }
    }

    /// The same, with requests by this client.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.applier = self.applier.with_client(client);
        self
    }

    /// The same, acting on these records.
    #[must_use]
    pub fn policy(mut self, policy: RecordPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Whether records have to be authenticated.
    pub(crate) fn authenticates(&self) -> bool {
        matches!(self.policy, RecordPolicy::Authenticate { .. })
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
    pub(crate) fn with_write_observer(mut self, teller: WriteObserver) -> Self {
        self.teller = teller;
        self
    }

    /// What tells the time.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// All records of a release, oldest first: one LIST, unless there are more than a limited history has.
    /// (And a GET for each piece of a record of helm-operator-plugins, whose pieces do not tell whose they
    /// are.)
    pub async fn history(&self, namespace: &str, name: &str) -> Result<History, Error> {
        // What all records carry, and little else does, whatever the values.
        let labels = format!("name={name},owner,status,version");
        let place = self.place.as_deref().unwrap_or(namespace);
        let mut history = History::empty(namespace, name, self.clock.now());
        let mut params = ListParams::default().labels(&labels).limit(FIRST_PAGE);
        let mut cut = Vec::new();
        let (mut count, mut bytes) = (0_usize, 0_usize);
        loop {
            // A page may have many megabytes, where somebody wants it so. Closed it never is.
            let _turn = self.turns.acquire().await.ok();
            let (mut page, more) = self.applier.page(&secrets(), Some(place), &params).await?;
            // What is too much for all together is missing at the oldest.
            page.sort_by_cached_key(|secret| Reverse(revision_of(metadata_str(secret, "name"))));
            count = count.saturating_add(page.len());
            bytes = bytes.saturating_add(page.iter().map(size_of).sum());
            // What stands for itself is unpacked at once: packed and unpacked it takes more room.
            for secret in page {
                match type_of(&secret) {
                    SECRET_TYPE => self.take_in(&mut history, &secret, &[]),
                    _ => cut.push(secret),
                }
            }
            let Some(token) = more else { break };
            if count > MOST_RECORDS || bytes > MOST_BYTES {
                return Err(Error::TooManyRecords { name: name.to_owned() });
            }
            let fitting = PAGE_BYTES / (bytes / count.max(1)).max(1);
            let limit = u32::try_from(fitting.clamp(1, LARGEST_PAGE)).unwrap_or(FIRST_PAGE);
            params = params.limit(limit).continue_token(&token);
        }
        self.take_in_cut(&mut history, cut).await?;
        Ok(history)
    }

    /// Puts the records that lie in several Secrets into the history.
    async fn take_in_cut(&self, history: &mut History, mut found: Vec<Value>) -> Result<(), Error> {
        let plugins = found.iter().filter(|secret| type_of(secret) == chunks::PLUGIN_INDEX);
        let elsewhere: Vec<String> = plugins
            .filter_map(|index| chunks::names(index).ok())
            .flatten()
            .take(chunks::MOST_PIECES)
            .collect();
        for name in elsewhere {
            found.extend(self.applier.get(&self.target(history.namespace(), name)).await?);
        }
        let of_type = |types: [&'static str; 2]| {
            found.iter().filter(move |secret| types.contains(&type_of(secret)))
        };
        let pieces: Vec<&Value> = of_type([chunks::CHUNK, chunks::PLUGIN_CHUNK]).collect();
        let indices = || of_type([chunks::INDEX, chunks::PLUGIN_INDEX]);
        for record in indices() {
            self.take_in(history, record, &pieces);
        }
        let named: HashSet<String> =
            indices().filter_map(|index| chunks::names(index).ok()).flatten().collect();
        let is_loose = |piece: &&&Value| !named.contains(metadata_str(piece, "name"));
        history.loose = pieces.iter().filter(is_loose).map(|piece| Loose::new(piece)).collect();
        Ok(())
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
        let read = |record: Value| self.read(&record, &[], (namespace, name), 0).ok();
        Ok(whole.and_then(read).map(|(stored, _)| stored))
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
        let ours = Authenticity::Authenticated;
        self.post((release, ours), packed, cut, [("createdAt", now)]).await
    }

    async fn post(
        &self,
        (release, authenticity): (Release, Authenticity),
        packed: &[u8],
        cut: bool,
        times: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Stored, Error> {
        let mut secret = self.lay_out(&release, packed, cut, times).await?;
        self.sign(&mut secret, &release, authenticity, packed);
        let target = self.target(&release.namespace, release.secret_name());
        match self.applier.create(&target, &secret).await {
            Ok(live) => Ok(self.teller.wrote(stored(&live, release, authenticity))),
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
            let cut = chunks::is_needed(&packed);
            return self.post((release, old.authenticity), &packed, cut, times).await;
        }
        let mut secret = self.lay_out(&release, &packed, old.is_cut(), times).await?;
        self.sign(&mut secret, &release, old.authenticity, &packed);
        if let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), old.resource_version.clone().into());
        }
        let target = self.target(&release.namespace, release.secret_name());
        let live = self.applier.replace(&target, &secret).await?;
        let new = self.teller.wrote(stored(&live, release, old.authenticity));
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

    /// Deletes the Secrets of a release that cannot be read as records.
    pub(crate) async fn drop_unreadable(&self, history: &mut History) -> Result<(), ApplyError> {
        for Unreadable { secret, uid, .. } in std::mem::take(&mut history.unreadable) {
            let target = self.target(history.namespace(), secret);
            self.applier.delete(&target, &uid, PropagationPolicy::Background).await?;
        }
        Ok(())
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

    /// Signs a record that is about to be written, if what it says is ours.
    fn sign(
        &self,
        secret: &mut Value,
        release: &Release,
        authenticity: Authenticity,
        packed: &[u8],
    ) {
        if authenticity != Authenticity::Authenticated {
            return;
        }
        let secret_name = release.secret_name();
        let at = self.location(&secret_name, (&release.namespace, &release.name));
        let Some(signature) = self.policy.sign(at, packed) else { return };
        if let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("annotations".to_owned(), json!({ ANNOTATION: signature }));
        }
    }

    fn location<'a>(&'a self, secret_name: &'a str, release: (&'a str, &'a str)) -> Location<'a> {
        let (release_namespace, release_name) = release;
        let secret_namespace = self.place.as_deref().unwrap_or(release_namespace);
        Location { secret_namespace, secret_name, release_namespace, release_name }
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
            // The index names them, and an index may name what it likes.
            if let Some(piece) = self.applier.get(&target).await?
                && chunks::is_piece_of(release, &piece)
            {
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

impl Store {
    /// Puts a record into the history, or what is wrong with it.
    pub(super) fn take_in(&self, history: &mut History, record: &Value, pieces: &[&Value]) {
        let (of, claimed) = ((history.namespace(), history.name()), history.claimed);
        match self.read(record, pieces, of, claimed) {
            Ok((stored, claimed)) => {
                history.claimed = claimed;
                history.put(stored);
            }
            Err(error) => {
                let (secret, namespace) = (metadata_str(record, "name"), history.namespace());
                tracing::warn!(namespace, secret, %error, "a release record cannot be read");
                let revision = revision_of(secret);
                let is_its = |revision: &u32| {
                    *revision <= LARGEST_REVISION
                        && secret == secret_name(history.name(), *revision)
                };
                let revision = revision.filter(is_its).unwrap_or(0);
                let (secret, uid) = (secret.to_owned(), metadata_str(record, "uid").to_owned());
                history.unreadable.push(Unreadable { revision, error, secret, uid });
            }
        }
    }

    /// Reads a record of a release, given by its namespace and name. `claimed` is how many bytes the records
    /// of unknown writers have that were read before it; yields the same after it.
    fn read(
        &self,
        secret: &Value,
        pieces: &[&Value],
        of: (&str, &str),
        claimed: u64,
    ) -> Result<(Stored, u64), CodecError> {
        let packed = if type_of(secret) == SECRET_TYPE {
            let data = secret.pointer("/data/release").and_then(Value::as_str);
            let payload = STANDARD.decode(data.ok_or(CodecError::Missing)?);
            codec::packed(&payload.map_err(|_| CodecError::Base64)?)?
        } else {
            chunks::join(secret, pieces)?
        };
        let annotations = metadata(secret).get("annotations");
        let signature = annotations.and_then(|all| all.get(ANNOTATION)).and_then(Value::as_str);
        let name = metadata_str(secret, "name");
        let authenticity = self.policy.verify(self.location(name, of), &packed, signature);
        let bounds = match authenticity {
            Authenticity::Authenticated => Bounds::TRUSTED,
            Authenticity::EarlierOwner | Authenticity::Unauthenticated => {
                Bounds::CLAIMED.after(claimed)
            }
        };
        let (mut release, size) = codec::unpack_sized(&packed, bounds)?;
        release.labels = users_labels(secret);
        if release.namespace.is_empty() {
            of.0.clone_into(&mut release.namespace);
        }
        let is_claimed = authenticity != Authenticity::Authenticated;
        if release.version == 0 || (is_claimed && release.version > LARGEST_REVISION) {
            return Err(CodecError::Revision);
        }
        // All later requests about the record go where it says that it is.
        if (&*release.namespace, &*release.name) != of || release.secret_name() != name {
            return Err(CodecError::Misplaced);
        }
        let claimed = if is_claimed { claimed.saturating_add(size) } else { claimed };
        Ok((stored(secret, release, authenticity), claimed))
    }
}

/// The revision that the name of a record's Secret ends in.
fn revision_of(secret: &str) -> Option<u32> {
    secret.rsplit_once(".v")?.1.parse().ok()
}

/// How many bytes of data a Secret has, as they are sent.
fn size_of(secret: &Value) -> usize {
    let data = secret.get("data").and_then(Value::as_object);
    data.into_iter().flatten().filter_map(|(_, value)| value.as_str()).map(str::len).sum()
}

/// The labels of a record that a user put there.
fn users_labels(secret: &Value) -> BTreeMap<String, String> {
    let labels = metadata(secret).get("labels").and_then(Value::as_object);
    let system: &[&str] = match type_of(secret) {
        chunks::PLUGIN_INDEX => &PLUGIN_LABELS,
        _ => &SYSTEM_LABELS,
    };
    labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| !system.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
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

fn owners(live: &Value) -> Vec<OwnerReference> {
    let listed = metadata(live).get("ownerReferences").and_then(Value::as_array);
    let read = |owner: &Value| serde_json::from_value(owner.clone()).ok();
    listed.into_iter().flatten().filter_map(read).collect()
}

fn stored(live: &Value, release: Release, authenticity: Authenticity) -> Stored {
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
        authenticity,
        created_at: created_at.and_then(Value::as_str).map(str::to_owned),
        layout,
    }
}
