//! Where the lock is stored: in a Lease, or in an annotation of a ConfigMap, as before Leases existed.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The annotation in which client-go stored a leader in a ConfigMap.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// A lock in the cluster.
#[derive(Clone)]
pub(super) enum Lock {
    Lease(Api<Lease>),
    ConfigMap(Api<ConfigMap>),
}

/// The leader, as client-go writes it into the annotation.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    holder_identity: String,
    lease_duration_seconds: i32,
    acquire_time: Option<Timestamp>,
    renew_time: Option<Timestamp>,
    leader_transitions: i32,
}

impl Lock {
    pub fn lease(client: Client, namespace: &str) -> Self {
        Self::Lease(Api::namespaced(client, namespace))
    }

    pub fn config_map(client: Client, namespace: &str) -> Self {
        Self::ConfigMap(Api::namespaced(client, namespace))
    }

    /// The right that it needs.
    pub fn right(&self) -> &'static str {
        match self {
            Self::Lease(_) => "get, create and update leases.coordination.k8s.io",
            Self::ConfigMap(_) => "get, create and patch configmaps",
        }
    }

    pub async fn get(&self, name: &str) -> Result<Option<Lease>, kube::Error> {
        match self {
            Self::Lease(api) => api.get_opt(name).await,
            Self::ConfigMap(api) => Ok(api.get_opt(name).await?.map(read)),
        }
    }

    pub async fn create(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        match self {
            Self::Lease(api) => api.create(&PostParams::default(), lease).await,
            Self::ConfigMap(api) => {
                let annotations = [(LEADER.to_owned(), written(lease))].into();
                let metadata = ObjectMeta {
                    name: lease.metadata.name.clone(),
                    annotations: Some(annotations),
                    ..ObjectMeta::default()
                };
                let map = ConfigMap { metadata, ..ConfigMap::default() };
                api.create(&PostParams::default(), &map).await.map(read)
            }
        }
    }

    /// Replaces the version that was read, and no other.
    pub async fn replace(&self, name: &str, lease: &Lease) -> Result<Lease, kube::Error> {
        match self {
            Self::Lease(api) => api.replace(name, &PostParams::default(), lease).await,
            Self::ConfigMap(api) => {
                let patch = json!({ "metadata": {
                    "resourceVersion": lease.resource_version(),
                    "annotations": { LEADER: written(lease) },
                }});
                api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(read)
            }
        }
    }
}

fn read(map: ConfigMap) -> Lease {
    let leader = map.annotations().get(LEADER);
    // An annotation that cannot be parsed has no holder, as in client-go.
    let leader: Written =
        leader.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let spec = LeaseSpec {
        holder_identity: Some(leader.holder_identity),
        lease_duration_seconds: Some(leader.lease_duration_seconds),
        acquire_time: leader.acquire_time.map(MicroTime),
        renew_time: leader.renew_time.map(MicroTime),
        lease_transitions: Some(leader.leader_transitions),
        ..LeaseSpec::default()
    };
    let ObjectMeta { name, namespace, resource_version, uid, .. } = map.metadata;
    let metadata = ObjectMeta { name, namespace, resource_version, uid, ..ObjectMeta::default() };
    Lease { metadata, spec: Some(spec) }
}

fn written(lease: &Lease) -> String {
    let spec = lease.spec.clone().unwrap_or_default();
    // In whole seconds, as client-go writes and reads it.
    let seconds = |time: Option<MicroTime>| {
        time.and_then(|MicroTime(time)| Timestamp::from_second(time.as_second()).ok())
    };
    let leader = Written {
        holder_identity: spec.holder_identity.unwrap_or_default(),
        lease_duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
        acquire_time: seconds(spec.acquire_time),
        renew_time: seconds(spec.renew_time),
        leader_transitions: spec.lease_transitions.unwrap_or_default(),
    };
    serde_json::to_string(&leader).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_read_from_a_config_map_as_client_go_wrote_it() {
        let text = r#"{"holderIdentity":"a_1","leaseDurationSeconds":15,"acquireTime":"2024-01-02T03:04:05Z","renewTime":"2024-01-02T03:04:15Z","leaderTransitions":2}"#;
        let map: ConfigMap =
            serde_json::from_value(json!({ "metadata": { "annotations": { LEADER: text } } }))
                .unwrap();
        let lease = read(map);
        let spec = lease.spec.as_ref().unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("a_1"));
        assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(2)));
        assert_eq!(written(&lease), text);
    }

    #[test]
    fn a_config_map_that_says_nothing_is_nobodys() {
        for metadata in [json!({}), json!({ "annotations": { LEADER: "nonsense" } })] {
            let map = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
            assert_eq!(read(map).spec.unwrap().holder_identity.as_deref(), Some(""));
        }
    }
}
