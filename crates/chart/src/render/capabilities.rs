//! `.Capabilities`: what the cluster can do.

use crate::Profile;

/// What the cluster can do, as templates see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The API server's version.
    pub kube_version: KubeVersion,
    /// `apps/v1` and `apps/v1/Deployment`, as discovery lists them.
    pub api_versions: ApiVersions,
}

/// API versions in the order in which templates see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersions(Vec<String>);

impl ApiVersions {
    /// Adds one behind all others, as `--api-versions` does.
    pub fn insert(&mut self, version: String) {
        self.0.push(version);
    }

    /// All, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, String> {
        self.0.iter()
    }
}

impl Extend<String> for ApiVersions {
    fn extend<I: IntoIterator<Item = String>>(&mut self, versions: I) {
        self.0.extend(versions);
    }
}

impl FromIterator<String> for ApiVersions {
    fn from_iter<I: IntoIterator<Item = String>>(versions: I) -> Self {
        Self(versions.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a ApiVersions {
    type Item = &'a String;
    type IntoIter = std::slice::Iter<'a, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// With a `v`, and with the distribution's suffix: `v1.36.3`, `v1.30.1-gke.1`.
    pub version: String,
    /// `1`. Some distributions report more than digits.
    pub major: String,
    /// `36`.
    pub minor: String,
}

impl KubeVersion {
    /// As a cluster tells it (`GET /version`).
    pub fn of_cluster(git_version: &str, major: &str, minor: &str) -> Self {
        Self { version: git_version.to_owned(), major: major.to_owned(), minor: minor.to_owned() }
    }

    /// As a person writes it (`--kube-version 1.30`); `None` if it is no version.
    pub fn parse(text: &str, profile: Profile) -> Option<Self> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(bare.len());
        let (core, suffix) = bare.split_at(end);
        let core = core.trim_end_matches('.');
        let mut numbers = Vec::new();
        for part in core.split('.') {
            numbers.push(part.parse::<u64>().ok()?);
        }
        let (Some(major), count) = (numbers.first().copied(), numbers.len()) else { return None };
        let minor = numbers.get(1).copied().unwrap_or(0);
        let patch = numbers.get(2).copied().unwrap_or(0);
        let fits = match profile {
            Profile::Helm318 => count <= 3 && (suffix.is_empty() || suffix.starts_with(['-', '+'])),
            Profile::Helm43 => count >= 2,
        };
        let clean = format!("v{major}.{minor}.{patch}");
        fits.then(|| Self {
            version: match profile {
                Profile::Helm318 => format!("{clean}{suffix}"),
                Profile::Helm43 => format!("v{bare}"),
            },
            major: major.to_string(),
            minor: minor.to_string(),
        })
    }
}

impl Capabilities {
    /// What `helm template` of that generation assumes without a cluster.
    pub fn offline(profile: Profile) -> Self {
        let minor = match profile {
            Profile::Helm318 => "33",
            Profile::Helm43 => "37",
        };
        let version = format!("v1.{minor}.0");
        let api_versions =
            OFFLINE_API_VERSIONS.iter().filter(|(_, only)| only.is_none_or(|only| only == profile));
        Self {
            kube_version: KubeVersion::of_cluster(&version, "1", minor),
            api_versions: api_versions.map(|(version, _)| (*version).to_owned()).collect(),
        }
    }

    /// From what a cluster tells: its version, and discovery's `group/version`
    /// and `group/version/Kind` strings.
    pub fn of_cluster(
        kube_version: KubeVersion,
        api_versions: impl IntoIterator<Item = String>,
    ) -> Self {
        Self { kube_version, api_versions: api_versions.into_iter().collect() }
    }
}

/// The group versions of client-go's scheme and of apiextensions, in Helm's order, and the
/// profile that has them (`None`: both). No kinds: offline,
/// `.Capabilities.APIVersions.Has "apps/v1/Deployment"` is false.
const OFFLINE_API_VERSIONS: &[(&str, Option<Profile>)] = &[
    ("v1", None),
    ("admissionregistration.k8s.io/v1", None),
    ("admissionregistration.k8s.io/v1alpha1", None),
    ("admissionregistration.k8s.io/v1beta1", None),
    ("internal.apiserver.k8s.io/v1alpha1", None),
    ("apps/v1", None),
    ("apps/v1beta1", None),
    ("apps/v1beta2", None),
    ("authentication.k8s.io/v1", None),
    ("authentication.k8s.io/v1alpha1", None),
    ("authentication.k8s.io/v1beta1", None),
    ("authorization.k8s.io/v1", None),
    ("authorization.k8s.io/v1beta1", None),
    ("autoscaling/v1", None),
    ("autoscaling/v2", None),
    ("autoscaling/v2beta1", Some(Profile::Helm318)),
    ("autoscaling/v2beta2", Some(Profile::Helm318)),
    ("batch/v1", None),
    ("batch/v1beta1", None),
    ("certificates.k8s.io/v1", None),
    ("certificates.k8s.io/v1beta1", None),
    ("certificates.k8s.io/v1alpha1", None),
    ("coordination.k8s.io/v1alpha2", None),
    ("coordination.k8s.io/v1beta1", None),
    ("coordination.k8s.io/v1", None),
    ("discovery.k8s.io/v1", None),
    ("discovery.k8s.io/v1beta1", None),
    ("events.k8s.io/v1", None),
    ("events.k8s.io/v1beta1", None),
    ("extensions/v1beta1", None),
    ("flowcontrol.apiserver.k8s.io/v1", None),
    ("flowcontrol.apiserver.k8s.io/v1beta1", None),
    ("flowcontrol.apiserver.k8s.io/v1beta2", None),
    ("flowcontrol.apiserver.k8s.io/v1beta3", None),
    ("lifecycle.k8s.io/v1alpha1", Some(Profile::Helm43)),
    ("networking.k8s.io/v1", None),
    ("networking.k8s.io/v1alpha1", Some(Profile::Helm318)),
    ("networking.k8s.io/v1beta1", None),
    ("node.k8s.io/v1", None),
    ("node.k8s.io/v1alpha1", None),
    ("node.k8s.io/v1beta1", None),
    ("policy/v1", None),
    ("policy/v1beta1", None),
    ("rbac.authorization.k8s.io/v1", None),
    ("rbac.authorization.k8s.io/v1beta1", None),
    ("rbac.authorization.k8s.io/v1alpha1", None),
    ("resource.k8s.io/v1", Some(Profile::Helm43)),
    ("resource.k8s.io/v1beta2", None),
    ("resource.k8s.io/v1beta1", None),
    ("resource.k8s.io/v1alpha3", None),
    ("scheduling.k8s.io/v1alpha3", Some(Profile::Helm43)),
    ("scheduling.k8s.io/v1alpha1", Some(Profile::Helm318)),
    ("scheduling.k8s.io/v1beta1", None),
    ("scheduling.k8s.io/v1", None),
    ("storage.k8s.io/v1beta1", None),
    ("storage.k8s.io/v1", None),
    ("storage.k8s.io/v1alpha1", None),
    ("storagemigration.k8s.io/v1", Some(Profile::Helm43)),
    ("storagemigration.k8s.io/v1beta1", Some(Profile::Helm43)),
    ("storagemigration.k8s.io/v1alpha1", Some(Profile::Helm318)),
    ("apiextensions.k8s.io/v1beta1", None),
    ("apiextensions.k8s.io/v1", None),
];
