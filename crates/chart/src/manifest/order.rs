//! The orders in which Helm installs and uninstalls kinds. They ignore groups.

use std::cmp::Ordering;

use crate::Profile;

/// Kinds in the order of their installation; the last two since Helm 4 only.
const INSTALL: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Kinds in the order of their removal; the first two since Helm 4 only.
const UNINSTALL: &[&str] = &[
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBindingList",
    "RoleBinding",
    "RoleList",
    "Role",
    "ClusterRoleBindingList",
    "ClusterRoleBinding",
    "ClusterRoleList",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "SecretList",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

/// Compares two kinds by the order of installation. Sort stably: equal ones
/// keep the order of their files. Unknown kinds come last, in byte order.
pub fn by_install(a: &str, b: &str, profile: Profile) -> Ordering {
    let known = match profile {
        Profile::Helm318 => INSTALL.get(..INSTALL.len() - 2).unwrap_or(INSTALL),
        Profile::Helm43 => INSTALL,
    };
    compare(a, b, known)
}

/// Compares two kinds by the order of removal; unknown kinds come last.
pub fn by_uninstall(a: &str, b: &str, profile: Profile) -> Ordering {
    let known = match profile {
        Profile::Helm318 => UNINSTALL.get(2..).unwrap_or(UNINSTALL),
        Profile::Helm43 => UNINSTALL,
    };
    compare(a, b, known)
}

fn compare(a: &str, b: &str, known: &[&str]) -> Ordering {
    let rank = |kind: &str| known.iter().position(|k| *k == kind);
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_configurations_have_a_place_of_their_own_since_helm_4() {
        let sorted = |profile| {
            let mut kinds = ["Zebra", "MutatingWebhookConfiguration", "Apple", "Service", "Secret"];
            kinds.sort_by(|a, b| by_install(a, b, profile));
            kinds
        };
        assert_eq!(
            sorted(Profile::Helm43),
            ["Secret", "Service", "MutatingWebhookConfiguration", "Apple", "Zebra"]
        );
        assert_eq!(
            sorted(Profile::Helm318),
            ["Secret", "Service", "Apple", "MutatingWebhookConfiguration", "Zebra"]
        );
    }

    #[test]
    fn removal_is_installation_backwards_but_for_services() {
        let mut kinds = ["Deployment", "Service", "Namespace", "Ingress", "Widget"];
        kinds.sort_by(|a, b| by_uninstall(a, b, Profile::Helm43));
        assert_eq!(kinds, ["Ingress", "Service", "Deployment", "Namespace", "Widget"]);
    }
}
