//! What templates draw stays drawn: the seed lies in a Secret that the resource owns, written before the
//! first object of a release, and only if a rendering drew by chance.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_chart::{Drawn, RandomSeed, fresh_seed};
use catamaran_cluster::apply::{ApplyError, FailureKind, Target, metadata_str};
use catamaran_release::Release;
use kube::ResourceExt;
use kube::api::ApiResource;
use kube::core::{DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::ChartController;
use super::release_key::{ReleaseKey, digest};
use crate::manager::queue::Key;
use crate::names::beginning;

/// On records: which rotation their random values are of, and how often certificates were renewed.
pub(super) const DRAWN: &str = "catamaran.dev/drawn";

/// The right to keep a seed.
const KEEP: &str = "get, create and update secrets";

/// A resource's seed.
#[derive(Clone, Debug)]
pub(super) struct RenderSeed {
    pub bits: RandomSeed,
    /// What the resource asked for when it was drawn.
    rotation: String,
    /// Whether it is in the cluster.
    kept: bool,
}

impl RenderSeed {
    /// One that nobody has used.
    pub fn fresh(rotation: &str) -> Self {
        // In whole seconds, as the Secret tells it.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let bits = fresh_seed().drawn_at(UNIX_EPOCH + Duration::from_secs(now));
        Self { bits, rotation: rotation.to_owned(), kept: false }
    }

    /// Whether it is in the cluster.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Whether it does for what a resource asks for.
    pub fn is_of(&self, rotation: &str) -> bool {
        self.rotation == rotation
    }

    fn data(&self) -> Value {
        let since = self.bits.since().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let since = since.unwrap_or_default().as_secs().to_string();
        json!({
            "seed": STANDARD.encode(self.bits.as_bytes()),
            "since": STANDARD.encode(since),
            "rotation": STANDARD.encode(&self.rotation),
        })
    }

    fn read(secret: &Value) -> Option<Self> {
        let field = |name: &str| STANDARD.decode(secret.get("data")?.get(name)?.as_str()?).ok();
        let bits: [u8; 32] = field("seed")?.try_into().ok()?;
        let since = String::from_utf8(field("since")?).ok()?.parse().ok()?;
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(since))?;
        let rotation = String::from_utf8(field("rotation").unwrap_or_default()).ok()?;
        Some(Self { bits: RandomSeed::from(bits).drawn_at(since), rotation, kept: true })
    }
}

/// What a record says of what was generated for it: the rotation, how often certificates were renewed,
/// and the seed. Records of earlier versions do not tell the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    rotation: String,
    renewals: String,
    seed: Option<String>,
}

impl Mark {
    /// That of a rendering.
    pub fn new(seed: &RenderSeed, drawn: Drawn) -> Self {
        Self {
            rotation: digest(&seed.rotation),
            renewals: drawn.renewals.to_string(),
            seed: Some(digest(&STANDARD.encode(seed.bits.as_bytes()))),
        }
    }

    /// That of a record; `None` if nothing was generated for it, or another program wrote it.
    pub fn of(record: &Release) -> Option<Self> {
        let mut parts = record.labels.get(DRAWN)?.split('.');
        let mut part = || parts.next().map(str::to_owned);
        Some(Self { rotation: part()?, renewals: part()?, seed: part() })
    }

    /// Whether both are of the same rotation.
    pub fn is_of_rotation(&self, other: &Self) -> bool {
        self.rotation == other.rotation
    }

    /// Whether both are of the same rotation and renewals.
    pub fn is_current(&self, other: &Self) -> bool {
        self.is_of_rotation(other) && self.renewals == other.renewals
    }

    /// Whether both were made of the same seed, as far as is known.
    pub fn is_of_seed(&self, other: &Self) -> bool {
        self.seed.is_some() && self.seed == other.seed
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.rotation, self.renewals)?;
        self.seed.as_ref().map_or(Ok(()), |seed| write!(f, ".{seed}"))
    }
}

impl ChartController {
    /// Stores a seed in the cluster, for all later renderings; returns the one that the cluster has already,
    /// if there is one.
    ///
    /// Without the right to do so, logs that once: another process of the operator would generate other
    /// values at the next change.
    pub(super) async fn keep_seed(
        &self,
        key: &Key,
        resource: &DynamicObject,
        site: &ReleaseKey,
        seed: RenderSeed,
    ) -> Result<RenderSeed, ApplyError> {
        if seed.kept {
            return Ok(seed);
        }
        let kept = match self.kept_seed(resource, site, &seed).await {
            Err(error)
                if error.kind.is_forbidden() && self.missing_permissions.is_missing(KEEP) =>
            {
                let effect = format!("what templates draw is not kept ({error})");
                self.missing_permissions.warn_once(KEEP, &effect);
                RenderSeed { kept: true, ..seed }
            }
            kept => kept?,
        };
        self.release_cache().put_seed(key, kept.clone());
        Ok(kept)
    }

    /// The seed that is in the cluster, or else the given one, which is there then.
    async fn kept_seed(
        &self,
        resource: &DynamicObject,
        site: &ReleaseKey,
        now: &RenderSeed,
    ) -> Result<RenderSeed, ApplyError> {
        let reader = &self.requester.of(&site.namespace).reader;
        let target = target(resource, site);
        let mut secret = self.secret(resource, &target, now);
        let live = match reader.create(&target, &secret).await {
            Err(error) if error.kind == FailureKind::AlreadyExists => reader.get(&target).await?,
            created => {
                created?;
                return Ok(RenderSeed { kept: true, ..now.clone() });
            }
        };
        let of_it = |live: &&Value| {
            let owners = live.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str);
            owners == resource.metadata.uid.as_deref()
        };
        let found = live.as_ref().filter(of_it).and_then(RenderSeed::read);
        if let Some(found) = found.filter(|found| found.is_of(&now.rotation)) {
            return Ok(found);
        }
        // Of another rotation, or of an earlier resource of that name.
        if let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) {
            let version = live.as_ref().map(|live| metadata_str(live, "resourceVersion"));
            metadata.insert("resourceVersion".to_owned(), version.unwrap_or_default().into());
        }
        reader.replace(&target, &secret).await?;
        Ok(RenderSeed { kept: true, ..now.clone() })
    }

    fn secret(&self, resource: &DynamicObject, target: &Target, seed: &RenderSeed) -> Value {
        let owner = json!({
            "apiVersion": self.gvk.api_version(), "kind": self.gvk.kind,
            "name": resource.name_any(), "uid": resource.metadata.uid,
        });
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "catamaran.dev/seed",
            "metadata": {
                "name": target.name, "namespace": target.namespace,
                "labels": { "app.kubernetes.io/managed-by": "catamaran" },
                "ownerReferences": [owner],
            },
            "data": seed.data(),
        })
    }

    /// Takes the seed away with its release. The garbage collector would, too, but later.
    pub(super) async fn forget_seed(&self, key: &Key, resource: &DynamicObject, site: &ReleaseKey) {
        if !self.release_cache().is_seed_kept(key) {
            return;
        }
        let reader = &self.requester.of(&site.namespace).reader;
        let target = target(resource, site);
        if let Ok(Some(live)) = reader.get(&target).await {
            let uid = metadata_str(&live, "uid");
            let background = kube::api::PropagationPolicy::Background;
            let _ = reader.delete(&target, uid, background).await;
        }
    }
}

/// The Secret of a resource's seed: its name holds what tells the resource from others.
fn target(resource: &DynamicObject, site: &ReleaseKey) -> Target {
    let gvk = GroupVersionKind::gvk("", "v1", "Secret");
    let name = resource.name_any();
    let name = beginning(&name, 200);
    Target {
        resource: ApiResource::from_gvk_with_plural(&gvk, "secrets"),
        namespace: Some(site.namespace.clone()),
        name: format!("{name}.{}.seed", site.owner()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_read_as_it_was_written() {
        let seed = RenderSeed::fresh("once more");
        let read = RenderSeed::read(&json!({ "data": seed.data() })).unwrap();
        assert_eq!(read.bits, seed.bits);
        assert!(read.kept && !seed.kept && read.is_of("once more"));
        assert!(RenderSeed::read(&json!({ "data": { "seed": "eA==" } })).is_none());
    }

    #[test]
    fn a_mark_tells_rotations_renewals_and_seeds_apart() {
        let mark =
            |seed: &RenderSeed, renewals| Mark::new(seed, Drawn { renewals, renew_at: None });
        let (one, other) = (RenderSeed::fresh("a"), RenderSeed::fresh("b"));
        assert!(mark(&one, 0).is_current(&mark(&RenderSeed::fresh("a"), 0)));
        assert!(!mark(&one, 0).is_current(&mark(&one, 1)));
        assert!(!mark(&one, 0).is_current(&mark(&other, 0)));
        assert!(mark(&one, 0).is_of_rotation(&mark(&one, 1)));
        assert!(mark(&one, 0).is_of_seed(&mark(&one, 1)));
        assert!(!mark(&one, 0).is_of_seed(&mark(&RenderSeed::fresh("a"), 0)));
        let long = RenderSeed::fresh("any text, as long as it wants to be");
        assert!(mark(&long, u64::MAX).to_string().len() <= 63);
    }

    #[test]
    fn a_mark_is_read_from_a_record_also_from_one_without_a_seed() {
        let of = |label: &str| {
            let labels = [(DRAWN.to_owned(), label.to_owned())].into();
            Mark::of(&Release { labels, ..Release::default() })
        };
        let mark = Mark::new(&RenderSeed::fresh("a"), Drawn::default());
        assert_eq!(of(&mark.to_string()), Some(mark.clone()));
        let earlier = of(&format!("{}.0", digest("a"))).unwrap();
        assert!(earlier.is_current(&mark) && !earlier.is_of_seed(&mark));
        assert_eq!(of(""), None);
        assert_eq!(Mark::of(&Release::default()), None);
    }
}
