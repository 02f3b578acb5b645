//! Chart.lock, and what its digest is over.

use std::path::Path;
use std::time::SystemTime;

use catamaran_chart::Dependency;
use serde_json::json;

use super::fault;
use crate::cache::Digest;
use crate::{RepositoryError, files};

/// The digest over what is asked for and what was chosen.
pub(super) fn digest(
    wanted: &[Dependency],
    locked: &[Dependency],
) -> Result<String, RepositoryError> {
    of(serde_json::to_string(&[wanted, locked]))
}

/// The same of Helm 2, over what is asked for alone.
pub(super) fn digest_of_helm_2(wanted: &[Dependency]) -> Result<String, RepositoryError> {
    of(serde_json::to_string(wanted).map(|list| format!("{{\"dependencies\":{list}}}")))
}

fn of(json: serde_json::Result<String>) -> Result<String, RepositoryError> {
    let json = json.map_err(|error| RepositoryError::Dependency(error.to_string()))?;
    // As Go writes JSON; outside of texts these do not occur.
    let escaped = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    let json = escaped.into_iter().fold(json, |json, (char, escape)| json.replace(char, escape));
    Ok(format!("{:?}", Digest::of(json.as_bytes())))
}

/// Writes the lock: requirements.lock for charts of apiVersion v1.
pub(super) fn write(
    folder: &Path,
    api_version: &str,
    digest: &str,
    locked: &[Dependency],
) -> Result<(), RepositoryError> {
    let name = if api_version == "v1" { "requirements.lock" } else { "Chart.lock" };
    let path = folder.join(name);
    // A chart of somebody else's must not choose which file of ours is written.
    if let Ok(target) = std::fs::read_link(&path) {
        return fault(format!(
            "the {name} file is a symlink to {:?}",
            target.display().to_string()
        ));
    }
    let text = catamaran_yaml::to_string(&json!({
        "dependencies": locked,
        "digest": digest,
        "generated": now(),
    }));
    let text = text.map_err(|error| RepositoryError::Dependency(error.to_string()))?;
    files::write(&path, text.as_bytes()).map_err(|error| RepositoryError::io("open", &path, &error))
}

/// RFC 3339.
fn now() -> String {
    jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default().to_string()
}
