//! The definitions that a chart brings in `crds/`.

use catamaran_chart::Chart;
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::Error;
use crate::objects::{ObjectId, RawObject, parse_manifest};

/// A definition of `crds/`: created if there is none, and otherwise none of the release's business.
#[derive(Clone)]
pub struct Definition {
    /// The file that it comes from, with the chart's path.
    pub source: String,
    /// The definition, as the chart has it.
    pub object: RawObject,
    /// The kinds that it defines, one for each served version.
    pub kinds: Vec<GroupVersionKind>,
}

/// Without the object, which is long.
impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Definition").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Definition {
    /// Who it is.
    pub fn id(&self) -> ObjectId {
        ObjectId {
            group: self.object.gvk.group.clone(),
            kind: self.object.gvk.kind.clone(),
            namespace: None,
            name: catamaran_cluster::apply::metadata_str(&self.object.object, "name").to_owned(),
        }
    }
}

/// The definitions of a chart and of all charts in it, in the order of their files.
///
/// # Errors
/// [`Error::Unsupported`] if something else lies there.
pub fn definitions(chart: &Chart) -> Result<Vec<Definition>, Error> {
    let mut found = Vec::new();
    for file in chart.crds() {
        for object in parse_manifest(&String::from_utf8_lossy(&file.data))? {
            if object.gvk.kind != "CustomResourceDefinition" {
                let (name, kind) = (chart.name(), &object.gvk.kind);
                let what = format!("chart {name} has a {kind} in {}", file.source);
                return Err(Error::Unsupported { what });
            }
            let served = kinds(&object.object);
            found.push(Definition { source: file.source.clone(), object, kinds: served });
        }
    }
    Ok(found)
}

/// The versions in which objects may be stored, by the definition that is there, and that the chart's
/// does not have.
pub fn dropped(live: &Value, wanted: &Value) -> Vec<String> {
    let list = |object: &'_ Value, path: &str| -> Vec<Value> {
        object.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let kept = list(wanted, "/spec/versions");
    let is_kept = |version: &Value| kept.iter().any(|kept| kept.get("name") == Some(version));
    let stored = list(live, "/status/storedVersions");
    let gone = stored.iter().filter(|version| !is_kept(version)).filter_map(Value::as_str);
    gone.map(str::to_owned).collect()
}

/// The kinds that a definition has served.
pub fn kinds(definition: &Value) -> Vec<GroupVersionKind> {
    let text = |path| definition.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name")?.as_str())
        .map(|version| GroupVersionKind::gvk(group, version, kind))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::chart;
    use catamaran_chart::File;

    fn with(text: &str) -> Result<Vec<Definition>, Error> {
        let file = File { name: "crds/a.yaml".into(), data: text.as_bytes().into() };
        definitions(&Chart { files: vec![file], ..chart() })
    }

    #[test]
    fn every_document_of_a_file_is_a_definition() {
        let one = |name: &str| {
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}}}\n\
                 spec: {{group: g.io, names: {{kind: Thing}}, versions: [{{name: v1, served: true}}, {{name: v0, served: false}}]}}\n"
            )
        };
        let found = with(&format!("{}---\n{}", one("a"), one("b"))).expect("definitions");
        let shown: Vec<_> = found.iter().map(|it| (it.id().name, it.kinds.len())).collect();
        assert_eq!(shown, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
        assert_eq!(found[0].kinds[0], GroupVersionKind::gvk("g.io", "v1", "Thing"));
    }

    #[test]
    fn a_version_in_which_objects_may_be_stored_is_missed() {
        let live = serde_json::json!({"status": {"storedVersions": ["v1alpha1", "v1"]}});
        let with = |names: &[&str]| {
            let versions: Vec<_> =
                names.iter().map(|name| serde_json::json!({"name": name})).collect();
            dropped(&live, &serde_json::json!({"spec": {"versions": versions}}))
        };
        assert_eq!(with(&["v1", "v1alpha1", "v2"]), Vec::<String>::new());
        assert_eq!(with(&["v1", "v2"]), ["v1alpha1"]);
    }

    #[test]
    fn anything_else_is_refused() {
        let error =
            with("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").expect_err("an error");
        assert_eq!(
            error.to_string(),
            "not supported yet: chart demo has a ConfigMap in demo/crds/a.yaml"
        );
    }
}
