//! The file of `--config`: what operator-sdk 1.4 to 1.33 scaffolded as `controller_manager_config.yaml`.

use std::path::Path;

use serde::Deserialize;

/// What of it means something here.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub probes: Option<String>,
    pub metrics: Option<String>,
    pub elect: Option<bool>,
    pub lease: Option<String>,
    pub lease_namespace: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    health: Health,
    metrics: Metrics,
    leader_election: LeaderElection,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Health {
    health_probe_bind_address: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metrics {
    bind_address: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaderElection {
    leader_elect: Option<bool>,
    resource_name: Option<String>,
    resource_namespace: Option<String>,
}

/// Reads the file.
///
/// # Errors
/// A message for people that names it.
pub(super) fn read(path: &Path) -> Result<Settings, String> {
    let failed = |error: String| {
        format!("unable to load the manager config file {}: {error}", path.display())
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let raw: Raw = serde_saphyr::from_str(&text).map_err(|error| failed(error.to_string()))?;
    Ok(Settings {
        probes: raw.health.health_probe_bind_address,
        metrics: raw.metrics.bind_address,
        elect: raw.leader_election.leader_elect,
        lease: raw.leader_election.resource_name,
        lease_namespace: raw.leader_election.resource_namespace,
    })
}
