//! What a project's own folders tell of its kinds: definitions, and samples of resources.

use std::path::Path;

use catamaran_chart::manifest::parse_objects;
use kube::core::GroupVersionKind;
use serde_json::{Map, Value};

use super::kinds::Served;

/// Where projects of all generations keep them.
const FOLDERS: [&str; 4] = ["config/crd/bases", "config/crd", "deploy/crds", "deploy"];

/// The same for samples.
const SAMPLES: [&str; 4] = ["config/samples", "deploy/crds", "deploy/examples", "deploy"];

/// More samples of a kind are not looked at.
const MOST_SAMPLES: usize = 20;

/// Larger files are not read.
const MOST_BYTES: u64 = 16 << 20;

/// Kinds and what serves them.
pub(super) fn of_project(folder: &Path) -> Vec<(String, Served)> {
    objects(folder, &FOLDERS).iter().filter_map(told).collect()
}

/// What the samples of a kind ask for: charts that do not render with their defaults do with these.
pub(super) fn samples(folder: &Path, gvk: &GroupVersionKind) -> Vec<Map<String, Value>> {
    let spec = |object: Value| {
        let version = object.get("apiVersion")?.as_str()?;
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        let is_its = object.get("kind")? == gvk.kind.as_str() && group == gvk.group;
        is_its.then(|| object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default())
    };
    objects(folder, &SAMPLES).into_iter().filter_map(spec).take(MOST_SAMPLES).collect()
}

/// The objects of the YAML files in these folders.
fn objects(folder: &Path, folders: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    for below in folders {
        let Ok(files) = folder.join(below).read_dir() else { continue };
        let mut files: Vec<_> = files.flatten().map(|file| file.path()).collect();
        files.sort();
        for file in files {
            let is_yaml = file.extension().is_some_and(|end| end == "yaml" || end == "yml");
            let is_small = file.metadata().is_ok_and(|it| it.is_file() && it.len() <= MOST_BYTES);
            if !is_yaml || !is_small {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            found.extend(parse_objects(&text).unwrap_or_default());
        }
    }
    found
}

fn told(definition: &Value) -> Option<(String, Served)> {
    if definition.get("kind")? != "CustomResourceDefinition" {
        return None;
    }
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
    let served = Served {
        group: text("/spec/group")?.to_owned(),
        resource: text("/spec/names/plural")?.to_owned(),
        namespaced: Some(text("/spec/scope") != Some("Cluster")),
    };
    Some((text("/spec/names/kind")?.to_owned(), served))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_all_layouts_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "deploy/crds/example.com_sheep_crd.yaml",
            "kind: CustomResourceDefinition\nspec: {group: example.com, scope: Cluster, names: {kind: Sheep, plural: sheep}}\n",
        );
        write("deploy/crds/broken_crd.yaml", "kind: [");
        write("deploy/operator.yaml", "kind: Deployment\nspec: {}\n");
        write(
            "deploy/crds/example.com_v1_sheep_cr.yaml",
            "apiVersion: example.com/v1\nkind: Sheep\nspec: {wool: true}\n",
        );
        let gvk = GroupVersionKind::gvk("example.com", "v1", "Sheep");
        let spec = serde_json::json!({ "wool": true }).as_object().unwrap().clone();
        assert_eq!(samples(folder.path(), &gvk), [spec]);
        let (group, resource) = ("example.com".to_owned(), "sheep".to_owned());
        let served = Served { group, resource, namespaced: Some(false) };
        assert_eq!(of_project(folder.path()), [("Sheep".to_owned(), served)]);
    }
}
