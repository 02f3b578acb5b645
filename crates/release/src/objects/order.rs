//! The order in which Helm deletes kinds. (The order in which it installs them is the order of the
//! rendered manifests.)

/// Kinds in the order of their deletion; whatever routes traffic goes before what serves it, and
/// namespaces and the like go last.
const UNINSTALL: [&str; 38] = [
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

/// Where a kind stands in the order of deletion, to be used with the kind itself as a second key:
/// kinds that Helm does not know come last, by name. Groups do not count.
pub fn uninstall_rank(kind: &str) -> usize {
    UNINSTALL.iter().position(|known| *known == kind).unwrap_or(UNINSTALL.len())
}
