//! Keeps a Deployment of `spec.size` memcached instances for each MemcachedBackup and, where
//! `spec.backup` asks for it, what writes to a volume what a server holds.

use std::collections::BTreeMap;

use catamaran_operator::native::{Action, Context, Error, Reconciler, Watches};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, Pod, PodSecurityContext, PodSpec, PodTemplateSpec,
    Probe, SeccompProfile, SecurityContext, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::backups;
use crate::api::v1::MemcachedBackup;

const IMAGE: &str = "docker.io/library/memcached:1.6";
const PORT: i32 = 11211;
/// The user of the image.
const USER: i64 = 11211;

/// Reconciles [`MemcachedBackup`].
#[derive(Debug, Default)]
pub struct MemcachedBackups {
    /// The operator's own image, which can write backups.
    pub image: Option<String>,
}

impl Reconciler for MemcachedBackups {
    type Object = MemcachedBackup;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<Deployment>().related::<Pod>("app.kubernetes.io/name=memcachedbackup");
        backups::watches(watches);
    }

    async fn reconcile(&self, ctx: &Context<'_, MemcachedBackup>) -> Result<Action, Error> {
        ctx.component("Deployment", ctx.apply(deployment(ctx, ctx.annotations()))).await;
        ctx.status(|status| status.nodes = ctx.related::<Pod>());
        backups::keep(ctx, self.image.as_deref()).await?;
        ctx.finish()
    }
}

/// The Deployment of a backup; its pods carry `annotations`, which lead from a pod to its resource.
fn deployment(backup: &MemcachedBackup, annotations: BTreeMap<String, String>) -> Deployment {
    let labels = labels(backup);
    Deployment {
        metadata: ObjectMeta {
            name: Some(backup.name_any()),
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: Some(backup.spec.size),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    annotations: Some(annotations),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod()),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

/// A label value has at most 63 characters, a name up to 253: longer names are told by their uid.
pub(super) fn instance(backup: &MemcachedBackup) -> String {
    let short = Some(backup.name_any()).filter(|name| name.len() <= 63);
    short.or_else(|| backup.uid()).unwrap_or_default()
}

fn labels(backup: &MemcachedBackup) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "memcachedbackup".to_owned()),
        ("app.kubernetes.io/instance", instance(backup)),
    ]
    .map(|(label, value)| (label.to_owned(), value))
    .into()
}

/// A pod that restricted pod security admits.
fn pod() -> PodSpec {
    PodSpec {
        automount_service_account_token: Some(false),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![Container {
            name: "memcached".to_owned(),
            image: Some(IMAGE.to_owned()),
            args: Some(["--memory-limit=64", "--extended=modern"].map(str::to_owned).into()),
            ports: Some(vec![ContainerPort {
                name: Some("memcached".to_owned()),
                container_port: PORT,
                ..ContainerPort::default()
            }]),
            readiness_probe: Some(Probe {
                tcp_socket: Some(TCPSocketAction { port: IntOrString::Int(PORT), host: None }),
                // The first probe is often too early: the next one soon after.
                period_seconds: Some(3),
                ..Probe::default()
            }),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                read_only_root_filesystem: Some(true),
                capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
                ..SecurityContext::default()
            }),
            ..Container::default()
        }],
        ..PodSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::MemcachedBackupSpec;

    fn backup(name: &str, size: i32) -> MemcachedBackup {
        let mut backup = MemcachedBackup::new(name, MemcachedBackupSpec { size, backup: None });
        backup.metadata.uid = Some("7f1a".to_owned());
        backup
    }

    #[test]
    fn the_deployment_has_the_size_and_the_name_of_the_backup() {
        let deployment = deployment(&backup("b", 2), BTreeMap::new());
        assert_eq!((deployment.name_any().as_str(), deployment.spec.replicas), ("b", Some(2)));
    }

    #[test]
    fn a_name_too_long_for_a_label_is_replaced_by_the_uid() {
        assert_eq!(labels(&backup("b", 1))["app.kubernetes.io/instance"], "b");
        assert_eq!(labels(&backup(&"b".repeat(64), 1))["app.kubernetes.io/instance"], "7f1a");
    }
}
