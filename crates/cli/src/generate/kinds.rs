//! Which resource serves a kind, as far as that is known without a cluster.

/// Kind, group, resource, and whether it lies in namespaces.
type Known = (&'static str, &'static str, &'static str, bool);

/// The kinds of Kubernetes that charts make, and one whose resource nobody would guess.
const KNOWN: [Known; 47] = [
    ("ConfigMap", "", "configmaps", true),
    ("Endpoints", "", "endpoints", true),
    ("Event", "", "events", true),
    ("LimitRange", "", "limitranges", true),
    ("Namespace", "", "namespaces", false),
    ("Node", "", "nodes", false),
    ("PersistentVolume", "", "persistentvolumes", false),
    ("PersistentVolumeClaim", "", "persistentvolumeclaims", true),
    ("Pod", "", "pods", true),
    ("PodTemplate", "", "podtemplates", true),
    ("ReplicationController", "", "replicationcontrollers", true),
    ("ResourceQuota", "", "resourcequotas", true),
    ("Secret", "", "secrets", true),
    ("Service", "", "services", true),
    ("ServiceAccount", "", "serviceaccounts", true),
    ("ControllerRevision", "apps", "controllerrevisions", true),
    ("DaemonSet", "apps", "daemonsets", true),
    ("Deployment", "apps", "deployments", true),
    ("ReplicaSet", "apps", "replicasets", true),
    ("StatefulSet", "apps", "statefulsets", true),
    ("HorizontalPodAutoscaler", "autoscaling", "horizontalpodautoscalers", true),
    ("CronJob", "batch", "cronjobs", true),
    ("Job", "batch", "jobs", true),
    ("CertificateSigningRequest", "certificates.k8s.io", "certificatesigningrequests", false),
    ("Lease", "coordination.k8s.io", "leases", true),
    ("EndpointSlice", "discovery.k8s.io", "endpointslices", true),
    ("FlowSchema", "flowcontrol.apiserver.k8s.io", "flowschemas", false),
    (
        "PriorityLevelConfiguration",
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        false,
    ),
    ("Ingress", "networking.k8s.io", "ingresses", true),
    ("IngressClass", "networking.k8s.io", "ingressclasses", false),
    ("NetworkPolicy", "networking.k8s.io", "networkpolicies", true),
    ("RuntimeClass", "node.k8s.io", "runtimeclasses", false),
    ("PodDisruptionBudget", "policy", "poddisruptionbudgets", true),
    ("PodSecurityPolicy", "policy", "podsecuritypolicies", false),
    ("ClusterRole", "rbac.authorization.k8s.io", "clusterroles", false),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io", "clusterrolebindings", false),
    ("Role", "rbac.authorization.k8s.io", "roles", true),
    ("RoleBinding", "rbac.authorization.k8s.io", "rolebindings", true),
    ("PriorityClass", "scheduling.k8s.io", "priorityclasses", false),
    ("CSIDriver", "storage.k8s.io", "csidrivers", false),
    ("StorageClass", "storage.k8s.io", "storageclasses", false),
    ("VolumeAttachment", "storage.k8s.io", "volumeattachments", false),
    ("SecurityContextConstraints", "security.openshift.io", "securitycontextconstraints", false),
    ("CustomResourceDefinition", "apiextensions.k8s.io", "customresourcedefinitions", false),
    ("APIService", "apiregistration.k8s.io", "apiservices", false),
    (
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        false,
    ),
    (
        "ValidatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        false,
    ),
];

/// A resource that serves a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Served {
    pub group: String,
    pub resource: String,
    /// `None` where only a cluster could tell.
    pub namespaced: Option<bool>,
}

/// The resource of a kind in a group; for kinds that are not Kubernetes' own the name is a guess.
pub(super) fn of(group: &str, kind: &str) -> Served {
    let known = KNOWN.iter().find(|known| (known.0, known.1) == (kind, group));
    match known {
        Some((_, _, resource, namespaced)) => {
            let (group, resource) = (group.to_owned(), (*resource).to_owned());
            Served { group, resource, namespaced: Some(*namespaced) }
        }
        None => Served { group: group.to_owned(), resource: plural(kind), namespaced: None },
    }
}

/// The group of a kind of Kubernetes, where a chart does not say it.
pub(super) fn group_of(kind: &str) -> Option<&'static str> {
    KNOWN.iter().find(|known| known.0 == kind).map(|known| known.1)
}

/// The resource of a kind as most people name it.
pub(super) fn plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    let before = singular.chars().rev().nth(1);
    if singular.ends_with('y') && before.is_some_and(|c| !"aeiou".contains(c)) {
        return format!("{}ies", singular.trim_end_matches('y'));
    }
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| singular.ends_with(end)) {
        return format!("{singular}es");
    }
    format!("{singular}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_kubernetes_own_or_guessed() {
        let table = [
            ("networking.k8s.io", "NetworkPolicy", "networkpolicies", Some(true)),
            ("", "Endpoints", "endpoints", Some(true)),
            ("gateway.networking.k8s.io", "Gateway", "gateways", None),
            ("x.io", "Proxy", "proxies", None),
            ("x.io", "Mesh", "meshes", None),
        ];
        for (group, kind, resource, namespaced) in table {
            let served = of(group, kind);
            assert_eq!((served.resource.as_str(), served.namespaced), (resource, namespaced));
        }
        assert_eq!(group_of("Deployment"), Some("apps"));
    }
}
