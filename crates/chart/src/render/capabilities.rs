//! `.Capabilities`: what the cluster can do.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use catamaran_gotemplate::Str;
use catamaran_sprig::semver::{Edition, Version};

use crate::Profile;

/// What the cluster can do, as templates see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The API server's version.
    pub kube_version: KubeVersion,
    /// `apps/v1` and `apps/v1/Deployment`, as discovery lists them.
    pub api_versions: ApiVersions,
}

static OFFLINE_318: OnceLock<ApiVersions> = OnceLock::new();
static OFFLINE_43: OnceLock<ApiVersions> = OnceLock::new();

/// API versions in the order in which templates see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersions(Arc<Vec<Str>>);

impl ApiVersions {
    /// Adds one at the end, even if it is there already, as Helm does.
    pub fn insert(&mut self, version: String) {
        Arc::make_mut(&mut self.0).push(version.into());
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(Str::as_str)
    }

    /// The same as templates get them: shared, as there are many and every rendering shows them.
    pub(super) fn shared(&self) -> &[Str] {
        &self.0
    }

    /// What helm assumes without a cluster.
    fn offline(profile: Profile) -> Self {
        let make = |profile| {
            let has =
                |(_, only): &&(&str, Option<Profile>)| only.is_none_or(|only| only == profile);
            OFFLINE_API_VERSIONS
                .iter()
                .filter(has)
                .map(|(version, _)| (*version).to_owned())
                .collect()
        };
        match profile {
            Profile::Helm318 => OFFLINE_318.get_or_init(|| make(profile)).clone(),
            Profile::Helm43 => OFFLINE_43.get_or_init(|| make(profile)).clone(),
        }
    }
}

impl Extend<String> for ApiVersions {
    fn extend<T: IntoIterator<Item = String>>(&mut self, more: T) {
        let mut more = more.into_iter().peekable();
        if more.peek().is_some() {
            Arc::make_mut(&mut self.0).extend(more.map(Str::from));
        }
    }
}

impl FromIterator<String> for ApiVersions {
    fn from_iter<T: IntoIterator<Item = String>>(versions: T) -> Self {
        Self(Arc::new(versions.into_iter().map(Str::from).collect()))
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
    /// What Helm 4 makes of a version that a person wrote, without any suffix: it is printed for
    /// the whole, and held against a chart's constraint.
    normalized: Option<String>,
}

impl KubeVersion {
    /// As a cluster tells it (`GET /version`).
    pub fn of_cluster(git_version: &str, major: &str, minor: &str) -> Self {
        Self {
            version: git_version.to_owned(),
            major: major.to_owned(),
            minor: minor.to_owned(),
            normalized: None,
        }
    }

    /// As a person writes it (`--kube-version 1.30`).
    ///
    /// # Errors
    ///
    /// It is no version; Helm's text.
    pub fn parse(text: &str, profile: Profile) -> Result<Self, String> {
        match profile {
            Profile::Helm318 => Self::semantic(text),
            Profile::Helm43 => Self::generic(text),
        }
    }

    /// Helm 3 reads a semantic version.
    fn semantic(text: &str) -> Result<Self, String> {
        let version = Version::parse(text).map_err(|error| error.text(Edition::Helm3))?;
        let bare = text.strip_prefix('v').unwrap_or(text);
        let suffix = bare.find(['-', '+']).and_then(|at| bare.get(at..)).unwrap_or_default();
        let Version { major, minor, patch, .. } = version;
        let version = format!("v{major}.{minor}.{patch}{suffix}");
        let (major, minor) = (major.to_string(), minor.to_string());
        Ok(Self { version, major, minor, normalized: None })
    }

    /// Helm 4 reads as many numbers as there are, and pays no heed to what follows.
    fn generic(text: &str) -> Result<Self, String> {
        let none = || format!("could not parse {text:?} as version");
        let start = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let start = start.strip_prefix('v').unwrap_or(start);
        let mut parts = Vec::new();
        let mut rest = start;
        loop {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if part.is_empty() {
                break;
            }
            parts.push(part);
            let Some(next) = after.strip_prefix('.') else { break };
            rest = next;
        }
        if parts.is_empty() || rest.contains('\n') {
            return Err(none());
        }
        let [major, _, ..] = parts.as_slice() else {
            return Err(format!("illegal version string {text:?}"));
        };
        if major.len() > 1 && major.starts_with('0') {
            return Err(format!("illegal zero-prefixed version component {major:?} in {text:?}"));
        }
        let numbers = parts.iter().map(|part| {
            let number = part.parse::<u64>().map(|number| number.to_string());
            number.map_err(|_| {
                format!("illegal non-numeric version component {part:?} in {text:?}: strconv.ParseUint: parsing {part:?}: value out of range")
            })
        });
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        let number = |at: usize| numbers.get(at).cloned().unwrap_or_default();
        Ok(Self {
            version: format!("v{}", text.strip_prefix('v').unwrap_or(text)),
            major: number(0),
            minor: number(1),
            normalized: Some(format!("v{}", numbers.join("."))),
        })
    }

    /// What a chart's constraint is held against, and what printing it gives.
    pub fn shown(&self) -> &str {
        self.normalized.as_deref().unwrap_or(&self.version)
    }

    /// The field that Helm 4 keeps it in, empty for a cluster's.
    pub(super) fn normalized(&self) -> &str {
        self.normalized.as_deref().unwrap_or_default()
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
        let mut kube_version = KubeVersion::of_cluster(&version, "1", minor);
        kube_version.normalized = (profile == Profile::Helm43).then_some(version);
        Self { kube_version, api_versions: ApiVersions::offline(profile) }
    }

    /// From what a cluster tells: its version, and discovery's `group/version`
    /// and `group/version/Kind` strings, which templates see sorted (Helm's order is random).
    pub fn of_cluster(
        kube_version: KubeVersion,
        api_versions: impl IntoIterator<Item = String>,
    ) -> Self {
        let sorted: BTreeSet<String> = api_versions.into_iter().collect();
        Self { kube_version, api_versions: sorted.into_iter().collect() }
    }
}

/// The group versions of client-go's scheme in its order, then those of apiextensions, and the
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
