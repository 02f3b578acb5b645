//! How actions are carried out.

use jiff::Timestamp;
use kube::api::PropagationPolicy;

/// How actions are carried out. The default is an operator's way; a person by hand may ask for more.
///
/// It is no part of a record: whoever continues an action says it again.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct ActionOptions {
    /// The record's description after success, instead of Helm's.
    pub description: Option<String>,
    /// Records hold the whole chart, and not only what is needed of it.
    pub full_record: bool,
    /// Hooks are recorded and not run.
    pub no_hooks: bool,
    /// What becomes of what `crds/` has.
    pub crds: CrdPolicy,
    /// Objects that are there already become the release's, whoever made them.
    pub take_ownership: bool,
    /// Who merges what is wanted with what is there.
    pub method: ApplyMethod,
    /// How objects are written that an apply alone does not bring to what they shall be.
    pub force: Force,
    /// What is waited for besides hooks.
    pub wait: WaitStrategy,
    /// When all waiting ends in a failure. Without it each hook has its own time.
    pub until: Option<Timestamp>,
    /// Tests that ended are left for [`super::Driver::clear_tests`], e.g. to read their logs first.
    pub keep_tests: bool,
    /// What an uninstall does with the history.
    pub keep_history: bool,
    /// What becomes of the dependents of objects that an uninstall deletes.
    pub cascade: Cascade,
}

/// What an action waits for besides hooks, before the hooks that come after its objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WaitStrategy {
    /// Nothing.
    #[default]
    No,
    /// Objects do their work, as kstatus has it; at an uninstall: they are gone.
    Objects,
    /// The same, and Jobs are complete.
    Jobs,
}

/// What becomes of the definitions of a chart's `crds/`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CrdPolicy {
    /// They are left alone.
    Skip,
    /// Created where there are none; what is there is left as it is, whoever made it.
    #[default]
    Create,
    /// The same, and what is there is brought to what the chart has, unless it belongs to another
    /// release or a version would go in which objects may be stored.
    CreateReplace,
}

impl std::str::FromStr for CrdPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "skip" => Ok(Self::Skip),
            "create" => Ok(Self::Create),
            "create-replace" => Ok(Self::CreateReplace),
            other => Err(format!("{other:?} is none of skip, create, create-replace")),
        }
    }
}

/// Who merges what is wanted with what is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApplyMethod {
    /// The API server, by apply: fields are owned.
    #[default]
    Server,
    /// We, as Helm 3 does: from what the revision before wanted, what this one wants, and what is
    /// there. Records say `csa`.
    Client,
}

impl ApplyMethod {
    /// As records have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "ssa",
            Self::Client => "csa",
        }
    }

    /// The method of a record; one that says nothing is Helm 3's.
    pub fn of(record: &crate::Release) -> Self {
        if record.apply_method == "ssa" { Self::Server } else { Self::Client }
    }
}

/// How objects are written. Conflicts with other field managers are always overcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Force {
    /// Applied; what the API server refuses fails.
    #[default]
    No,
    /// Replaced: what the manifest does not say is gone, whoever has set it.
    Replace,
    /// Applied; where a field would have to change that never does, deleted and created anew.
    Recreate,
}

/// What becomes of the dependents of a deleted object, such as a Deployment's pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cascade {
    /// They are deleted after it.
    #[default]
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl From<Cascade> for PropagationPolicy {
    fn from(cascade: Cascade) -> Self {
        match cascade {
            Cascade::Background => Self::Background,
            Cascade::Foreground => Self::Foreground,
            Cascade::Orphan => Self::Orphan,
        }
    }
}
