//! What the definitions in a project's own folders tell of its kinds.

use std::path::Path;

use catamaran_chart::manifest::parse_objects;
use serde_json::Value;

use super::kinds::Served;

/// Where projects of all generations keep them.
const FOLDERS: [&str; 4] = ["config/crd/bases", "config/crd", "deploy/crds", "deploy"];

/// Larger files are not read.
const MOST_BYTES: u64 = 16 << 20;

/// Kinds and what serves them.
pub(super) fn of_project(folder: &Path) -> Vec<(String, Served)> {
    let mut found = Vec::new();
    for below in FOLDERS {
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
            found.extend(parse_objects(&text).unwrap_or_default().iter().filter_map(told));
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
        let (group, resource) = ("example.com".to_owned(), "sheep".to_owned());
        let served = Served { group, resource, namespaced: Some(false) };
        assert_eq!(of_project(folder.path()), [("Sheep".to_owned(), served)]);
    }
}
