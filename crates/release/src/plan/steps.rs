//! How a revision is reached: the requests, in their order.

use std::collections::{HashMap, HashSet};

use catamaran_cluster::apply::Target;
use catamaran_cluster::mapper::{Mapper, MapperError, Mapping};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::observed_state::History;
use super::{ActionKind, Removal, TargetRevision};
use crate::Error;
use crate::objects::{
    ObjectId, Owner, PlannedObject, RawObject, decorate, id_of, make_applicable, parse_manifest,
};
use crate::record::{Release, Status};

/// Which resources serve the kinds in question; a kind that nothing serves is `None`.
pub type Kinds = HashMap<GroupVersionKind, Option<Mapping>>;

/// How an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// Only if there is none; one that is there must prove to be ours.
    Claim,
    /// Over what is there: the deployed revision shows it as ours, or it is to become so.
    Apply,
    /// As [`ApplyMode::Apply`], but only if that changes something: the deployed revision has it the same.
    Verify,
    /// As [`ApplyMode::Apply`], but one that is there must prove to be ours: only a record that is not trusted
    /// shows it as ours.
    ApplyIfOurs,
    /// The same for [`ApplyMode::Verify`].
    VerifyIfOurs,
}

/// All that leads from the records as they are to a deployed revision.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The revision, as its record stands while the plan is carried out.
    pub record: Release,
    /// Whether that record has to be created. It is the lock: whoever creates it, goes on.
    pub create: bool,
    /// What is done.
    pub doing: ActionKind,
    /// The description of the record at the end.
    pub complete: String,
    /// Revisions that were begun and are given up for this one.
    pub give_up: Vec<u32>,
    /// Revisions that the history has no place for.
    pub forget: Vec<u32>,
    /// What is sent, in install order.
    pub steps: Vec<(ApplyMode, PlannedObject)>,
    /// What the deployed revision, and those begun after it, wanted of objects, see [`Plan::before`].
    pub old: HashMap<ObjectId, Vec<Value>>,
    /// What earlier revisions had and this one has not.
    pub removals: Vec<Removal>,
    /// Revisions that are deployed until this one is.
    pub supersede: Vec<u32>,
}

/// The manifests that a plan is made of.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    /// The objects of the revision to reach.
    pub wanted: Vec<RawObject>,
    /// The objects of the deployed revision: ours beyond doubt, if the record is trusted.
    pub deployed: Vec<RawObject>,
    /// Whether the record of the deployed revision is trusted.
    pub is_deployed_trusted: bool,
    /// The objects of each revision that was begun after it: ours, if they exist at all, by their
    /// labels.
    pub begun: Vec<(u32, Vec<RawObject>)>,
    /// The definitions of `crds/`.
    pub definitions: Vec<RawObject>,
}

impl Manifests {
    /// Reads them.
    pub fn read(history: &History, goal: &TargetRevision<'_>) -> Result<Self, Error> {
        let wanted = parse_manifest(&goal.record.manifest)?;
        let mut manifests = Self { wanted, ..Self::default() };
        let deployed = history.deployed().map_or(0, |deployed| deployed.version);
        manifests.is_deployed_trusted = history.is_trusted(deployed);
        for release in history.releases() {
            if release.version == deployed {
                manifests.deployed = claimed(history, release)?;
            } else if release.version > deployed && release.version != goal.record.version {
                manifests.begun.push((release.version, claimed(history, release)?));
            }
        }
        Ok(manifests)
    }

    /// Every kind in them.
    pub fn kinds(&self) -> HashSet<&GroupVersionKind> {
        self.wanted.iter().chain(self.old()).map(|raw| &raw.gvk).collect()
    }

    /// The objects that there may be already.
    fn old(&self) -> impl Iterator<Item = &RawObject> {
        self.deployed.iter().chain(self.begun.iter().flat_map(|(_, objects)| objects))
    }

    /// Whether a record may be forgotten although its revision came after the deployed one: only
    /// if other records that stay show all of its objects, or one could be left behind for ever.
    fn is_dispensable(&self, revision: u32, identify: impl Fn(&RawObject) -> ObjectId) -> bool {
        let Some((_, own)) = self.begun.iter().find(|(begun, _)| *begun == revision) else {
            return true;
        };
        let later = self.begun.iter().filter(|(begun, _)| *begun > revision);
        let elsewhere =
            self.wanted.iter().chain(&self.deployed).chain(later.flat_map(|(_, objects)| objects));
        let elsewhere: HashSet<ObjectId> = elsewhere.map(&identify).collect();
        own.iter().all(|raw| elsewhere.contains(&identify(raw)))
    }
}

impl Plan {
    /// The plan for a goal.
    pub fn new(
        history: &History,
        goal: TargetRevision<'_>,
        manifests: &Manifests,
        kinds: &Kinds,
        history_max: usize,
    ) -> Result<Self, Error> {
        let TargetRevision { record, create, doing, owner, complete, adopt } = goal;
        let namespace = record.namespace.as_str();
        let deployed = ids(&manifests.deployed, kinds, namespace);
        let id = (record.name.as_str(), namespace);
        let objects = planned(id, owner, &manifests.wanted, &manifests.definitions, kinds)?;
        let wanted: HashSet<ObjectId> = objects.iter().map(|object| object.id.clone()).collect();
        let how = |object: &PlannedObject, wanted: &RawObject| match deployed.get(&object.id) {
            Some(before) => {
                match (**before == wanted.object, manifests.is_deployed_trusted || adopt) {
                    (true, true) => ApplyMode::Verify,
                    (true, false) => ApplyMode::VerifyIfOurs,
                    (false, true) => ApplyMode::Apply,
                    (false, false) => ApplyMode::ApplyIfOurs,
                }
            }
            None if adopt => ApplyMode::Apply,
            None => ApplyMode::Claim,
        };
        let steps = objects
            .into_iter()
            .zip(&manifests.wanted)
            .map(|(object, wanted)| (how(&object, wanted), object))
            .collect();
        let old = wanted_before(manifests.old(), kinds, namespace);
        let mut removals =
            super::uninstall::removals_of(manifests.old(), kinds, namespace, &wanted);
        for removal in &mut removals {
            removal.doubtful =
                !manifests.is_deployed_trusted || !deployed.contains_key(&removal.id);
        }
        let dispensable = |revision| {
            manifests.is_dispensable(revision, |raw| id_of(&raw.object, &raw.gvk, true, namespace))
        };
        let others = || history.releases().filter(|release| release.version != record.version);
        let revisions = |wanted: fn(&Status) -> bool| {
            others()
                .filter(|release| wanted(&release.info.status))
                .map(|release| release.version)
                .collect()
        };
        Ok(Self {
            give_up: revisions(Status::is_pending),
            supersede: revisions(|status| *status == Status::Deployed),
            forget: if create { surplus(history, history_max, dispensable) } else { Vec::new() },
            record,
            create,
            doing,
            complete,
            steps,
            old,
            removals,
        })
    }

    /// What earlier revisions may have made of an object.
    pub(crate) fn before(&self, id: &ObjectId) -> &[Value] {
        self.old.get(id).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The objects that a record shows. Those of a record that is not trusted are only claimed: where they
/// cannot be read there are none, or a forged record could hold a release up for ever.
pub(crate) fn claimed(history: &History, release: &Release) -> Result<Vec<RawObject>, Error> {
    let objects = parse_manifest(&release.manifest);
    if history.is_trusted(release.version) {
        return objects;
    }
    let (name, revision) = (history.name(), release.version);
    match objects {
        Ok(objects) if kinds_of(&objects) <= MOST_CLAIMED_KINDS => Ok(objects),
        Ok(_) => {
            tracing::warn!(
                release = name,
                revision,
                "an unauthenticated record has too many kinds of objects, and is ignored"
            );
            Ok(Vec::new())
        }
        Err(error) => {
            tracing::warn!(release = name, revision, %error, "the manifest of an unauthenticated record cannot be read, and is ignored");
            Ok(Vec::new())
        }
    }
}

/// A kind that nothing serves costs a request: a forged record must not ask for any number of them.
const MOST_CLAIMED_KINDS: usize = 200;

fn kinds_of(objects: &[RawObject]) -> usize {
    objects.iter().map(|raw| &raw.gvk).collect::<HashSet<_>>().len()
}

/// What is wanted of objects, as it was sent.
fn wanted_before<'a>(
    objects: impl Iterator<Item = &'a RawObject>,
    kinds: &Kinds,
    namespace: &str,
) -> HashMap<ObjectId, Vec<Value>> {
    let mut wanted: HashMap<ObjectId, Vec<Value>> = HashMap::new();
    for RawObject { gvk, object } in objects {
        let mapping = kinds.get(gvk).and_then(Option::as_ref);
        let id = id_of(object, gvk, mapping.is_none_or(|mapping| mapping.namespaced), namespace);
        let mut object = object.clone();
        make_applicable(gvk, &mut object);
        wanted.entry(id).or_default().push(object);
    }
    wanted
}

/// The objects of a release (name and namespace), decorated and with the resources that serve them.
///
/// A kind that nothing serves is an error before anything is written, as in Helm, unless the same
/// manifest, or `definitions`, brings its CRD.
pub fn planned(
    release: (&str, &str),
    owner: Option<&Owner>,
    wanted: &[RawObject],
    definitions: &[RawObject],
    kinds: &Kinds,
) -> Result<Vec<PlannedObject>, Error> {
    let mut objects = Vec::with_capacity(wanted.len());
    let mut scopes = HashMap::new();
    for RawObject { gvk, object } in wanted {
        let mapping = kinds.get(gvk).and_then(Option::as_ref);
        let by_crd = || {
            *scopes.entry(gvk).or_insert_with(|| {
                scope_by_crd(gvk, wanted).or_else(|| scope_by_crd(gvk, definitions))
            })
        };
        let Some(namespaced) = mapping.map(|m| m.namespaced).or_else(by_crd) else {
            let source =
                MapperError::NoMatch { kind: gvk.kind.clone(), api_version: gvk.api_version() };
            let object = id_of(object, gvk, false, release.1).to_string();
            return Err(Error::Mapping { object, source });
        };
        let id = id_of(object, gvk, namespaced, release.1);
        let mut body = object.clone();
        let warnings = make_applicable(gvk, &mut body);
        decorate(&mut body, &id, release, owner);
        let target = mapping.map(|mapping| target(mapping, &id));
        objects.push(PlannedObject { id, gvk: gvk.clone(), target, body, warnings });
    }
    Ok(objects)
}

/// Where the requests about an object go.
pub(crate) fn target(mapping: &Mapping, id: &ObjectId) -> Target {
    Target {
        resource: mapping.resource.clone(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
    }
}

/// Asks the mapper for all kinds of the manifests.
pub(crate) async fn resolve(
    mapper: &Mapper,
    kinds: HashSet<&GroupVersionKind>,
) -> Result<Kinds, Error> {
    let mut resolved = Kinds::with_capacity(kinds.len());
    for gvk in kinds {
        let mapping = match mapper.resolve(gvk).await {
            Ok(mapping) => Some(mapping),
            Err(error) if error.is_no_match() => None,
            Err(source) => return Err(Error::Mapping { object: gvk.kind.clone(), source }),
        };
        resolved.insert(gvk.clone(), mapping);
    }
    Ok(resolved)
}

/// Whether a kind lives in namespaces, by a CRD among the objects.
pub(crate) fn scope_by_crd(gvk: &GroupVersionKind, objects: &[RawObject]) -> Option<bool> {
    let text = |object: &Value, path: &str| {
        object.pointer(path).and_then(Value::as_str).map(str::to_owned)
    };
    let crd = objects.iter().find(|raw| {
        raw.gvk.kind == "CustomResourceDefinition"
            && text(&raw.object, "/spec/group").as_deref() == Some(&gvk.group)
            && text(&raw.object, "/spec/names/kind").as_deref() == Some(&gvk.kind)
    })?;
    Some(text(&crd.object, "/spec/scope").as_deref() == Some("Namespaced"))
}

fn ids<'a>(
    objects: &'a [RawObject],
    kinds: &Kinds,
    namespace: &str,
) -> HashMap<ObjectId, &'a Value> {
    let mapped = |raw: &RawObject| Some(kinds.get(&raw.gvk)?.as_ref()?.namespaced);
    objects
        .iter()
        .filter_map(|raw| {
            Some((id_of(&raw.object, &raw.gvk, mapped(raw)?, namespace), &raw.object))
        })
        .collect()
}

/// The oldest revisions, so that there is room for one more; never a deployed one. 0 = no limit.
fn surplus(history: &History, max: usize, dispensable: impl Fn(u32) -> bool) -> Vec<u32> {
    let count = history.records.len() + 1;
    let surplus = if max == 0 { 0 } else { count.saturating_sub(max) };
    history
        .releases()
        .filter(|release| release.info.status != Status::Deployed && dispensable(release.version))
        .take(surplus)
        .map(|release| release.version)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::fixtures::{
        DesiredRelease, config_map, facts, history, kinds, now, record, rendered,
    };
    use crate::record::Status::{Deployed, Failed, PendingUpgrade, Superseded};
    use crate::record::Stored;
    use serde_json::json;

    const HOUR: Duration = Duration::from_hours(1);

    fn plan(history: &History, wish: &DesiredRelease) -> Result<Plan, Error> {
        let desired = wish.desired();
        let action = history.decide(&desired)?;
        let goal = TargetRevision::new(history, &desired, &action, now());
        let manifests = Manifests::read(history, &goal)?;
        Plan::new(history, goal, &manifests, &kinds(), 3)
    }

    /// The plan in short: `+a` claim, `~a` apply, `=a` verify, `?a` if it is ours, `-a` remove.
    fn short(plan: &Plan) -> String {
        let sent = plan.steps.iter().map(|(how, object)| {
            let sign = match how {
                ApplyMode::Claim => '+',
                ApplyMode::Apply => '~',
                ApplyMode::Verify => '=',
                ApplyMode::ApplyIfOurs | ApplyMode::VerifyIfOurs => '?',
            };
            format!("{sign}{}", object.id.name)
        });
        let gone = plan.removals.iter().map(|removal| format!("-{}", removal.id.name));
        sent.chain(gone).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_install_claims_everything() {
        let plan =
            plan(&history([]), &DesiredRelease::new(facts(1, true), &["a", "b"])).expect("a plan");
        assert_eq!(short(&plan), "+a +b");
        assert!(plan.create);
        assert_eq!((plan.record.version, plan.record.info.status.as_str()), (1, "pending-install"));
        assert_eq!(plan.record.info.first_deployed, plan.record.info.last_deployed);
        assert_eq!(plan.record.apply_method, "ssa");
    }

    #[test]
    fn an_upgrade_applies_what_is_deployed_claims_what_is_new_and_removes_the_rest() {
        let records = [
            record(1, Superseded, &["long-gone"], HOUR, ""),
            record(2, Deployed, &["a", "b"], HOUR, ""),
            record(3, Failed, &["c", "x"], HOUR, ""),
            record(4, PendingUpgrade, &["d", "e"], HOUR, "catamaran: at work"),
        ];
        let history = history(records);
        let plan = plan(&history, &DesiredRelease::new(facts(5, false), &["b", "c", "new"]))
            .expect("a plan");
        assert_eq!(short(&plan), "=b +c +new -a -d -e -x");
        assert_eq!(plan.give_up, [4]);
        assert_eq!(plan.supersede, [2]);
        assert_eq!(plan.forget, [1], "no other record shows what 4 began, and 2 is deployed");
        assert_eq!(
            plan.record.info.first_deployed,
            history.newest().expect("newest").info.first_deployed
        );
        assert_eq!(plan.record.info.status, PendingUpgrade);
    }

    #[test]
    fn what_only_an_unauthenticated_record_shows_as_ours_has_to_prove_it() {
        let deployed = |manifest: Option<&str>| {
            let mut record = record(1, Deployed, &["a", "b"], HOUR, "");
            record.manifest = manifest.map_or(record.manifest, str::to_owned);
            let mut history = History::empty("ns", "rel", now());
            history.put(Stored::unauthenticated(Arc::new(record)));
            plan(&history, &DesiredRelease::new(facts(2, false), &["b", "new"])).expect("a plan")
        };
        assert_eq!(short(&deployed(None)), "?b +new -a");
        assert!(deployed(None).removals.iter().all(|removal| removal.doubtful));
        for unreadable in ["a: [", "kind: ConfigMap", "- a"] {
            assert_eq!(short(&deployed(Some(unreadable))), "+b +new", "{unreadable}");
        }
    }

    #[test]
    fn resuming_keeps_the_record_and_forgets_nothing() {
        let records = [
            record(1, Superseded, &["x"], HOUR, ""),
            record(2, Superseded, &["x"], HOUR, ""),
            record(3, Deployed, &["a", "b"], HOUR, ""),
            record(4, PendingUpgrade, &["b", "c"], HOUR, "catamaran: at work"),
        ];
        let plan = plan(&history(records), &DesiredRelease::new(facts(4, false), &["b", "c"]))
            .expect("a plan");
        assert_eq!(short(&plan), "=b +c -a");
        assert!(!plan.create && plan.forget.is_empty() && plan.give_up.is_empty());
        assert_eq!((plan.record.version, plan.supersede), (4, vec![3]));
    }

    #[test]
    fn a_kind_that_nothing_serves_is_an_error_unless_its_crd_is_in_the_manifest() {
        let thing =
            json!({"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}});
        let mut wish = DesiredRelease::new(facts(1, true), &[]);
        wish.rendered = rendered(std::slice::from_ref(&thing));
        let error = plan(&history([]), &wish).expect_err("an error");
        assert_eq!(
            error.to_string(),
            r#"resource mapping not found for Thing "t": no matches for kind "Thing" in version "example.dev/v1""#
        );
        assert!(!error.is_transient());
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.dev"},
            "spec": {"group": "example.dev", "names": {"kind": "Thing"}, "scope": "Namespaced"},
        });
        wish.rendered = rendered(&[crd, thing]);
        let plan = plan(&history([]), &wish).expect("a plan");
        let last = &plan.steps.last().expect("two steps").1;
        assert_eq!((&last.target, last.id.namespace.as_deref()), (&None, Some("ns")));
    }

    #[test]
    fn objects_that_nobody_could_name_are_refused() {
        for (object, lacks) in [
            (
                json!({"kind": "ConfigMap", "metadata": {"name": "a"}}),
                r#"ConfigMap "a" has no apiVersion"#,
            ),
            (json!({"apiVersion": "v1", "metadata": {"name": "a"}}), r#"object "a" has no kind"#),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}),
                r#"ConfigMap "" has no metadata.name"#,
            ),
        ] {
            let mut wish = DesiredRelease::new(facts(1, true), &[]);
            wish.rendered = rendered(&[object]);
            let error = plan(&history([]), &wish).expect_err("an error");
            assert_eq!(
                error.to_string(),
                format!("an object of the manifest cannot be sent: {lacks}")
            );
        }
    }

    #[test]
    fn removal_follows_the_order_of_kinds_and_the_keep_policy() {
        let kept = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kept", "annotations": {"helm.sh/resource-policy": " Keep"}},
        });
        let objects = [
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "role"}}),
            config_map("map", "v"),
            kept,
            json!({"apiVersion": "gone.dev/v1", "kind": "Vanished", "metadata": {"name": "v"}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app", "namespace": "other"}}),
        ];
        let mut deployed = record(1, Deployed, &[], HOUR, "");
        deployed.manifest = rendered(&objects).manifest_text();
        let history = history([deployed]);
        let objects = super::super::all_objects(&history).expect("objects");
        let removals = super::super::removals(&history, &objects, &kinds());
        let shown: Vec<_> =
            removals.iter().map(|r| (r.id.to_string(), r.kept, r.target.is_some())).collect();
        assert_eq!(
            shown,
            [
                (r#"Deployment "app" in namespace "other""#.to_owned(), false, true),
                (r#"ClusterRole "role""#.to_owned(), false, true),
                (r#"ConfigMap "kept" in namespace "ns""#.to_owned(), true, true),
                (r#"ConfigMap "map" in namespace "ns""#.to_owned(), false, true),
                (r#"Vanished "v" in namespace "ns""#.to_owned(), false, false),
            ]
        );
    }
}
