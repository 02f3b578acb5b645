//! Which Helm is followed where Helm's versions differ.

/// The generation of Helm whose behaviour a rendering follows.
///
/// They differ in how nulls in values delete defaults, in how a rendered file
/// is split into documents, in the kind order of webhook configurations, in
/// `.Chart` (a struct, later a map), `.Capabilities.HelmVersion`, some functions,
/// and in the layout of error texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
    /// Helm 3.18.6: the rules existing helm-operator projects were built on.
    #[default]
    Helm318,
    /// Helm 4.3.1: today's command line.
    Helm43,
}

impl Profile {
    /// What `.Capabilities.HelmVersion.Version` says.
    pub fn helm_version(self) -> &'static str {
        match self {
            Self::Helm318 => "v3.18.6",
            Self::Helm43 => "v4.3.1",
        }
    }

    /// The Go compiler Helm's release was built with.
    pub(crate) fn go_version(self) -> &'static str {
        match self {
            Self::Helm318 => "go1.24.6",
            Self::Helm43 => "go1.27.2",
        }
    }
}
