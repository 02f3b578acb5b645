//! CustomResourceDefinitions as files, generated from Rust types.

use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// A definition cannot be printed.
    #[error("cannot print the definition of {name}: {message}")]
    Print {
        /// The definition's name.
        name: String,
        /// Why.
        message: String,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Writes each definition to `<group>_<plural>.yaml` in a folder, as controller-gen names them, and
/// returns the paths.
///
/// # Errors
/// [`CrdError`].
pub fn write(
    folder: &Path,
    definitions: &[CustomResourceDefinition],
) -> Result<Vec<PathBuf>, CrdError> {
    definitions.iter().map(|definition| write_one(folder, definition)).collect()
}

fn write_one(folder: &Path, definition: &CustomResourceDefinition) -> Result<PathBuf, CrdError> {
    let print = |message| CrdError::Print { name: definition.name_any(), message };
    let value = serde_json::to_value(definition).map_err(|error| print(error.to_string()))?;
    let yaml = catamaran_yaml::to_string(&value).map_err(|error| print(error.to_string()))?;
    let path =
        folder.join(format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural));
    let text =
        format!("# Generated from the Rust types by `make manifests`; do not edit.\n---\n{yaml}");
    std::fs::write(&path, text).map_err(|source| CrdError::Write { path: path.clone(), source })?;
    Ok(path)
}
