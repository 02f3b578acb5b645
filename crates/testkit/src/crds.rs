//! Whether the files of a folder are what the types say.

use std::path::Path;

use catamaran_operator::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Fails if a definition in `folder` is not what the Rust type says; with `$WRITE_MANIFESTS` set it
/// writes them (`make manifests-examples`).
pub fn check_crds(folder: &Path, definitions: &[CustomResourceDefinition]) {
    if std::env::var_os("WRITE_MANIFESTS").is_some() {
        crds::write(folder, definitions).unwrap();
        return;
    }
    let fresh = tempfile::tempdir().unwrap();
    for path in crds::write(fresh.path(), definitions).unwrap() {
        let written = folder.join(path.file_name().unwrap_or_default());
        let (written_text, text) = (
            std::fs::read_to_string(&written).unwrap_or_default(),
            std::fs::read_to_string(&path).unwrap(),
        );
        assert!(
            written_text == text,
            "{} is stale: run `make manifests-examples`",
            written.display()
        );
    }
}
