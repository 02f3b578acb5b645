//! Whose an object is: Helm's label and annotations, and the owner of the release.

use catamaran_cluster::apply::{metadata, metadata_str};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};

use super::ObjectId;

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";
const PRIMARY_RESOURCE: &str = "operator-sdk/primary-resource";
const PRIMARY_RESOURCE_TYPE: &str = "operator-sdk/primary-resource-type";

/// On every live object of an operator's releases, hooks included: their chart's name, as operator-sdk's
/// Helm operator writes it. Watches are filtered by it.
pub const CHART_LABEL: &str = "helm.sdk.operatorframework.io/chart";
/// The longest value of a label, in bytes.
const LONGEST_LABEL: usize = 63;

/// The resource that a release belongs to.
///
/// Objects in its own namespace get it as their controller, so that they are found, and collected,
/// by it; all others, and those to be kept, carry the annotations of operator-sdk instead, as an
/// owner in another namespace would have them collected at once. `blockOwnerDeletion` needs the
/// right to `update` the owner kind's `finalizers` where admission enforces that.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// apiVersion, kind, name and uid; `controller` is set in any case, `blockOwnerDeletion` unless it
    /// is false here.
    pub reference: OwnerReference,
    /// Its namespace; `None` for a cluster-scoped one, which may own objects anywhere.
    pub namespace: Option<String>,
    /// The value of [`CHART_LABEL`] on its objects, see [`chart_label`]; without it they have none.
    pub chart: Option<String>,
}

/// A chart's name as a label: what no label may hold is replaced, what is too long is cut off.
pub fn chart_label(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    let cut = text.get(..LONGEST_LABEL).unwrap_or(&text);
    cut.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

impl Owner {
    /// Whether it is what a live object names as its owner.
    pub(crate) fn is(&self, claimed: &Claimed) -> bool {
        let Self { reference, namespace, .. } = self;
        claimed.group == self.group()
            && claimed.kind == reference.kind
            && claimed.name == reference.name
            && claimed.namespace == namespace.as_deref().unwrap_or_default()
            && claimed.uid.as_ref().is_none_or(|uid| *uid == reference.uid)
    }

    fn group(&self) -> &str {
        self.reference.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }
}

/// Puts on an object what shows whose it is. Only on what is sent, never into a stored manifest.
pub fn decorate(body: &mut Value, id: &ObjectId, release: (&str, &str), owner: Option<&Owner>) {
    let kept = is_kept(body);
    let Some(metadata) = map_in(body, "metadata") else { return };
    if let Some(namespace) = &id.namespace {
        metadata.insert("namespace".to_owned(), namespace.as_str().into());
    }
    if let Some(labels) = map_at(metadata, "labels") {
        labels.insert(MANAGED_BY.to_owned(), "Helm".into());
        if let Some(chart) = owner.and_then(|owner| owner.chart.as_deref()) {
            labels.insert(CHART_LABEL.to_owned(), chart.into());
        }
    }
    let reaches = |owner: &&Owner| owner.namespace.is_none() || owner.namespace == id.namespace;
    let reachable = owner.filter(|owner| !kept && reaches(owner));
    if let Some(annotations) = map_at(metadata, "annotations") {
        annotations.insert(RELEASE_NAME.to_owned(), release.0.into());
        annotations.insert(RELEASE_NAMESPACE.to_owned(), release.1.into());
        if let (Some(owner), None) = (owner, reachable) {
            name_owner(annotations, owner);
        }
    }
    if let Some(owner) = reachable {
        metadata.insert("ownerReferences".to_owned(), json!([owner_reference(&owner.reference)]));
    }
}

/// Puts on a hook's object what shows whose it is, and which run of the hook.
///
/// Its owner is named in annotations, wherever it lies: hooks outlive what they are for, as with
/// Helm, and an owned Job of `pre-delete` would be collected in the midst of its work when its owner
/// is deleted in the foreground.
pub(crate) fn decorate_hook(
    body: &mut Value,
    id: &ObjectId,
    release: (&str, &str),
    owner: Option<&Owner>,
    run: (&str, &str),
) {
    decorate(body, id, release, None);
    let Some(metadata) = map_in(body, "metadata") else { return };
    if let Some(chart) = owner.and_then(|owner| owner.chart.as_deref())
        && let Some(labels) = map_at(metadata, "labels")
    {
        labels.insert(CHART_LABEL.to_owned(), chart.into());
    }
    let Some(annotations) = map_at(metadata, "annotations") else { return };
    annotations.insert(run.0.to_owned(), run.1.into());
    if let Some(owner) = owner {
        name_owner(annotations, owner);
    }
}

fn name_owner(annotations: &mut Map<String, Value>, owner: &Owner) {
    let namespace = owner.namespace.as_deref().unwrap_or_default();
    let name = format!("{namespace}/{}", owner.reference.name);
    annotations.insert(PRIMARY_RESOURCE.to_owned(), name.into());
    let kind = format!("{}.{}", owner.reference.kind, owner.group());
    annotations.insert(PRIMARY_RESOURCE_TYPE.to_owned(), kind.into());
}

fn owner_reference(owner: &OwnerReference) -> Value {
    json!({
        "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid,
        "controller": true, "blockOwnerDeletion": owner.block_owner_deletion.unwrap_or(true),
    })
}

/// Whether `helm.sh/resource-policy: keep` asks to leave the object when its release goes.
pub fn is_kept(object: &Value) -> bool {
    policy(object).is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// The value of the policy annotation, if there is one.
pub(crate) fn policy(object: &Value) -> Option<&str> {
    metadata(object).get("annotations")?.get(RESOURCE_POLICY)?.as_str()
}

/// What speaks against a live object being this release's, in Helm's words; `None` if it is.
pub fn ownership_problems(live: &Value, release: (&str, &str)) -> Option<String> {
    let value = |map: &str, key: &str| {
        metadata(live).get(map).and_then(|map| map.get(key)).and_then(Value::as_str)
    };
    let required = [
        ("label", "labels", MANAGED_BY, "Helm"),
        ("annotation", "annotations", RELEASE_NAME, release.0),
        ("annotation", "annotations", RELEASE_NAMESPACE, release.1),
    ];
    let problems: Vec<String> = required
        .into_iter()
        .filter_map(|(what, map, key, expected)| match value(map, key) {
            Some(current) if current == expected => None,
            Some(current) => Some(format!(
                "{what} validation error: key \"{key}\" must equal \"{expected}\": current value is \"{current}\""
            )),
            None => Some(format!("{what} validation error: missing key \"{key}\": must be set to \"{expected}\"")),
        })
        .collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// The resource that a live object says it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    pub group: String,
    /// Annotations do not tell it.
    pub version: Option<String>,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    uid: Option<String>,
    chart: Option<String>,
}

impl Claimed {
    /// The owner, if this is the very resource.
    pub fn seen(self, live: &Value) -> Option<Owner> {
        let uid = metadata_str(live, "uid");
        if self.uid.as_deref().is_some_and(|own| own != uid) {
            return None;
        }
        let api_version = live.get("apiVersion").and_then(Value::as_str)?.to_owned();
        let namespace = metadata_str(live, "namespace").to_owned();
        Some(self.owner(api_version, uid.to_owned(), namespace))
    }

    /// The owner, where nobody may look at it; annotations alone do not tell enough.
    pub fn unseen(self) -> Option<Owner> {
        let version = self.version.as_deref()?;
        let api_version = match self.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let (uid, namespace) = (self.uid.clone()?, self.namespace.clone());
        Some(self.owner(api_version, uid, namespace))
    }

    fn owner(self, api_version: String, uid: String, namespace: String) -> Owner {
        let (kind, name) = (self.kind, self.name);
        let reference =
            OwnerReference { api_version, kind, name, uid, ..OwnerReference::default() };
        let namespace = Some(namespace).filter(|name| !name.is_empty());
        Owner { reference, namespace, chart: self.chart }
    }
}

/// Whom a live object names as its owner: its controller, or what [`decorate`] writes instead.
pub(crate) fn claimed_owner(live: &Value) -> Option<Claimed> {
    let metadata = metadata(live);
    let references = metadata.get("ownerReferences").and_then(Value::as_array);
    let controller = references
        .into_iter()
        .flatten()
        .find(|reference| reference.get("controller") == Some(&Value::Bool(true)));
    let text = |object: &Value, key: &str| Some(object.get(key)?.as_str()?.to_owned());
    let chart = metadata.get("labels").and_then(|labels| text(labels, CHART_LABEL));
    if let Some(reference) = controller {
        let api_version = text(reference, "apiVersion")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        return Some(Claimed {
            group: group.to_owned(),
            version: Some(version.to_owned()),
            kind: text(reference, "kind")?,
            namespace: metadata_str(live, "namespace").to_owned(),
            name: text(reference, "name")?,
            uid: Some(text(reference, "uid")?),
            chart,
        });
    }
    let annotations = metadata.get("annotations")?;
    let (named, typed) =
        (text(annotations, PRIMARY_RESOURCE)?, text(annotations, PRIMARY_RESOURCE_TYPE)?);
    let (namespace, name) = named.split_once('/')?;
    let (kind, group) = typed.split_once('.')?;
    let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
    Some(Claimed { group, version: None, kind, namespace, name, uid: None, chart })
}

/// Whether a live object belongs to the owner whose marks are on what is to be sent.
pub(crate) fn has_owner_of(live: &Value, body: &Value) -> bool {
    let (Some(live), Some(body)) = (claimed_owner(live), claimed_owner(body)) else { return false };
    let key = |it: &Claimed| {
        [&it.group, &it.kind, &it.namespace, &it.name].map(|part| part.as_str().to_owned())
    };
    let same_uid = |(one, other)| one == other;
    key(&live) == key(&body) && live.uid.as_ref().zip(body.uid.as_ref()).is_none_or(same_uid)
}

/// The marks of [`decorate`] that a live object lacks, as a merge patch; `None` if it has them all.
pub(crate) fn missing_marks(live: &Value, body: &Value) -> Option<Value> {
    let mut patch = Map::new();
    for (map, keys) in [
        ("labels", [MANAGED_BY, CHART_LABEL].as_slice()),
        (
            "annotations",
            &[RELEASE_NAME, RELEASE_NAMESPACE, PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE],
        ),
    ] {
        let of = |object: &Value, key: &str| metadata(object).get(map)?.get(key).cloned();
        let missing: Map<String, Value> = keys
            .iter()
            .filter_map(|key| Some((*key, of(body, key)?)))
            .filter(|(key, wanted)| of(live, key).as_ref() != Some(wanted))
            .map(|(key, wanted)| (key.to_owned(), wanted))
            .collect();
        if !missing.is_empty() {
            patch.insert(map.to_owned(), missing.into());
        }
    }
    let owners = |object: &Value| {
        let owners = metadata(object).get("ownerReferences").and_then(Value::as_array);
        owners.cloned().unwrap_or_default()
    };
    let there = owners(live);
    let is_missing =
        |wanted: &Value| there.iter().all(|owner| owner.get("uid") != wanted.get("uid"));
    let added: Vec<Value> = owners(body).into_iter().filter(is_missing).collect();
    if !added.is_empty() {
        // A merge patch replaces lists.
        let all = there.iter().cloned().chain(added).collect();
        patch.insert("ownerReferences".to_owned(), Value::Array(all));
    }
    (!patch.is_empty()).then(|| json!({ "metadata": patch }))
}

/// The release that an object says it is of: `namespace/name`.
pub(crate) fn release_of(live: &Value) -> Option<String> {
    let annotations = metadata(live).get("annotations")?;
    let name = annotations.get(RELEASE_NAME)?.as_str()?;
    let namespace = annotations.get(RELEASE_NAMESPACE).and_then(Value::as_str).unwrap_or_default();
    Some(format!("{namespace}/{name}"))
}

/// The map under `key`, made if it is missing or null; `None` if it is something else, which the
/// API server will say better than we could.
fn map_at<'a>(parent: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    let entry = parent.entry(key).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    entry.as_object_mut()
}

fn map_in<'a>(object: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    map_at(object.as_object_mut()?, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: (&str, &str) = ("rel", "ns");

    fn owner() -> Owner {
        let reference = OwnerReference {
            api_version: "cache.my.domain/v1alpha1".into(),
            kind: "Memcached".into(),
            name: "rel".into(),
            uid: "uid-1".into(),
            ..OwnerReference::default()
        };
        Owner { reference, namespace: Some("ns".to_owned()), chart: Some("demo".to_owned()) }
    }

    fn decorated(mut object: Value, namespace: Option<&str>) -> Value {
        let id = ObjectId {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: namespace.map(str::to_owned),
            name: "a".into(),
        };
        decorate(&mut object, &id, RELEASE, Some(&owner()));
        object
    }

    #[test]
    fn an_object_beside_its_owner_refers_to_it() {
        let object = decorated(json!({"metadata": {"name": "a", "labels": null}}), Some("ns"));
        assert_eq!(object["metadata"]["namespace"], "ns");
        let labels = json!({"app.kubernetes.io/managed-by": "Helm", CHART_LABEL: "demo"});
        assert_eq!(object["metadata"]["labels"], labels);
        let annotations =
            json!({"meta.helm.sh/release-name": "rel", "meta.helm.sh/release-namespace": "ns"});
        assert_eq!(object["metadata"]["annotations"], annotations);
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "uid-1");
        assert_eq!(object["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(ownership_problems(&object, RELEASE), None);
    }

    #[test]
    fn a_charts_name_becomes_a_label_whatever_it_is() {
        let long = format!("{}-{}", "a".repeat(62), "b".repeat(9));
        for (name, label) in
            [("demo", "demo"), ("a b+c", "a_b_c"), ("_x.", "x"), (&*long, &*"a".repeat(62))]
        {
            assert_eq!(chart_label(name), label);
        }
    }

    #[test]
    fn an_object_that_its_owner_cannot_or_must_not_collect_names_it_in_annotations() {
        let kept =
            json!({"metadata": {"name": "a", "annotations": {"helm.sh/resource-policy": "keep"}}});
        for (object, namespace) in [
            (json!({"metadata": {}}), Some("elsewhere")),
            (json!({"metadata": {}}), None),
            (kept, Some("ns")),
        ] {
            let object = decorated(object, namespace);
            assert_eq!(object["metadata"].get("ownerReferences"), None);
            assert_eq!(
                object["metadata"]["annotations"]["operator-sdk/primary-resource"],
                "ns/rel"
            );
            let kind = &object["metadata"]["annotations"]["operator-sdk/primary-resource-type"];
            assert_eq!(kind, "Memcached.cache.my.domain");
        }
    }

    #[test]
    fn an_owner_is_known_again_by_what_it_left_on_objects() {
        let live = json!({
            "apiVersion": "cache.my.domain/v1alpha1",
            "metadata": {"uid": "uid-1", "namespace": "ns"},
        });
        for namespace in [Some("ns"), Some("elsewhere"), None] {
            let object = decorated(json!({"metadata": {}}), namespace);
            let claimed = claimed_owner(&object).expect("an owner");
            assert_eq!(claimed.seen(&live), Some(owner()), "{namespace:?}");
        }
        let claimed = claimed_owner(&decorated(json!({"metadata": {}}), Some("ns")));
        let claimed = claimed.expect("an owner");
        assert_eq!(claimed.clone().unseen(), Some(owner()));
        // It may have no namespace, although the object has one.
        let cluster_wide =
            json!({"apiVersion": "cache.my.domain/v1alpha1", "metadata": {"uid": "uid-1"}});
        let seen = claimed.clone().seen(&cluster_wide).expect("an owner");
        assert_eq!(seen.namespace, None);
        assert_eq!(claimed.seen(&json!({"metadata": {"uid": "another"}})), None);
        assert!(
            claimed_owner(&json!({"metadata": {"ownerReferences": [{"kind": "X"}]}})).is_none()
        );
    }

    #[test]
    fn what_is_missing_is_told_in_helms_words() {
        let live = json!({"metadata": {
            "labels": {"app.kubernetes.io/managed-by": "Kustomize"},
            "annotations": {"meta.helm.sh/release-name": "rel"},
        }});
        assert_eq!(
            ownership_problems(&live, RELEASE).as_deref(),
            Some(
                "label validation error: key \"app.kubernetes.io/managed-by\" must equal \"Helm\": current value is \"Kustomize\"; \
                 annotation validation error: missing key \"meta.helm.sh/release-namespace\": must be set to \"ns\""
            )
        );
    }
}
