//! What can go wrong with a release.

use std::time::Duration;

use catamaran_chart::ManifestError;
use catamaran_cluster::apply::{ApplyError, FailureKind};
use catamaran_cluster::mapper::MapperError;
use catamaran_cluster::redact::Sensitive;

use kube::core::GroupVersionKind;

use crate::objects::ObjectId;
use crate::plan::hooks::{Event, HookReason};
use crate::record::CodecError;

/// An action on a release that did not come to its end.
///
/// No message holds the content of an object, least of all of a Secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The chart or the record needs what we cannot do yet. Nothing was written.
    #[error("not supported yet: {what}")]
    Unsupported {
        /// What is needed, and by whom.
        what: String,
    },
    /// The name cannot be a release's. Nothing was written.
    #[error(
        "invalid release name {name:?}: it must be at most 53 characters of a-z, 0-9, '-' and '.', \
         and begin and end with a letter or digit"
    )]
    InvalidName {
        /// The name that was asked for.
        name: String,
    },
    /// The manifests were rendered for another revision than the one that is due: render again
    /// with the facts that [`crate::History`] gives. Nothing was written.
    #[error("rendered for revision {rendered}, but revision {due} is due")]
    WrongFacts {
        /// What `.Release.Revision` was.
        rendered: u32,
        /// What it has to be.
        due: u32,
    },
    /// There is no such release, or no such revision of it. Nothing was written.
    #[error("release {name:?} {}", .revision.map_or_else(|| "was not found".to_owned(), |n| format!("has no revision {n}")))]
    NoRevision {
        /// The release's name.
        name: String,
        /// The revision that was asked for, if there are others.
        revision: Option<u32>,
    },
    /// Another chart has a release of this name here. Nothing was written.
    #[error(
        "duplicate release name: found existing release with name {name:?} for chart {chart:?}"
    )]
    OtherChart {
        /// The release's name.
        name: String,
        /// The chart that has it.
        chart: String,
    },
    /// A helm CLI began an action on this release and may still be at it. Nothing was written.
    #[error(
        "another operation (install/upgrade/rollback) is in progress: revision {revision} is {status}"
    )]
    Busy {
        /// The revision that it writes.
        revision: u32,
        /// Its status, such as `pending-upgrade`.
        status: String,
        /// When it will be taken over if nothing happens.
        retry_after: Duration,
    },
    /// Somebody else wrote a revision since the history was read: read it again.
    #[error("revision {revision} of release {name:?} was written by somebody else meanwhile")]
    Raced {
        /// The release's name.
        name: String,
        /// The revision that both wanted to write.
        revision: u32,
    },
    /// A manifest is not what Kubernetes calls an object.
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    /// An object of the manifest lacks what every object needs.
    #[error("an object of the manifest cannot be sent: {message}")]
    Object {
        /// What it lacks.
        message: String,
    },
    /// An object of the release, or a hook, is outside of the release's namespace, and [`Scope::Namespace`]
    /// allows no such object.
    ///
    /// [`Scope::Namespace`]: crate::Scope::Namespace
    #[error(
        "{object} is outside of the release's namespace {namespace:?}, and `scope: namespace` in \
         watches.yaml allows no such object"
    )]
    OutOfScope {
        /// The object.
        object: Box<ObjectId>,
        /// The release's namespace.
        namespace: String,
    },
    /// The API server does not serve the kind of an object, or could not be asked.
    #[error("resource mapping not found for {object}: {source}")]
    Mapping {
        /// The object.
        object: String,
        /// Why.
        #[source]
        source: MapperError,
    },
    /// An object is there already and belongs to somebody else. It was left untouched.
    #[error(
        "{object} exists and cannot be imported into the current release: invalid ownership metadata; {problems}"
    )]
    Ownership {
        /// The object, as Helm writes it.
        object: String,
        /// Which label and annotations are missing or different.
        problems: String,
    },
    /// An object is being deleted; once it is gone it is created again.
    #[error("{object} is being deleted{}", waited_for(finalizers))]
    Terminating {
        /// The object.
        object: ObjectId,
        /// The finalizers that it waits for, if any.
        finalizers: Vec<String>,
    },
    /// The CRD of an object is part of the same release and not in effect yet.
    #[error("the kind of {object} is not served yet")]
    NotServedYet {
        /// The object.
        object: ObjectId,
    },
    /// A hook is at work, or a definition of `crds/` not in effect yet. No time was spent on
    /// waiting: call again when the object changes, or after [`Error::retry_after`].
    #[error("waiting for {} {}: {}", .0.role, .0.object, .0.message)]
    Waiting(Box<Waiting>),
    /// A hook failed. The record says so; the next call runs it, and the ones after it, once more.
    #[error("{}: {object}: {message} ({reason})", event.failure())]
    Hook {
        /// When it runs.
        event: Event,
        /// Its object, as people write it.
        object: String,
        /// One word for machines.
        reason: String,
        /// The most specific cause that can be seen.
        message: String,
    },
    /// An object that was waited for has failed, or time was over before it was what it should be.
    #[error("{object} is not {state}: {message} ({reason})")]
    NotReady {
        /// The object, as people write it.
        object: String,
        /// What it should be: `ready`, or `gone`.
        state: &'static str,
        /// One word for machines.
        reason: String,
        /// The most specific cause that can be seen.
        message: String,
    },
    /// A definition of `crds/` cannot be created. Nothing of the release was written.
    #[error(
        "cannot install {source_file} of the chart: {source}; where the right is missing, allow get, \
         create and patch on customresourcedefinitions, or install it by other means"
    )]
    Definition {
        /// The file, with the chart's path.
        source_file: String,
        /// Why.
        #[source]
        source: ApplyError,
    },
    /// A definition of `crds/` must not replace the one that is there. Nothing was written.
    #[error(
        "cannot replace CRD {name:?} by {source_file} of the chart: it has no version {versions}, in which \
         objects may be stored (status.storedVersions); store them in another version first, then take \
         it out of status.storedVersions"
    )]
    StoredVersions {
        /// The file, with the chart's path.
        source_file: String,
        /// The definition's name.
        name: String,
        /// The versions that would go.
        versions: String,
    },
    /// The API server refused a request, or could not be reached.
    #[error("{0}")]
    Request(#[from] ApplyError),
    /// The newest record cannot be read, so nobody knows what is installed.
    #[error("record {secret} cannot be read: {source}; restore the Secret or delete it to go on")]
    Record {
        /// The name of its Secret.
        secret: String,
        /// Why.
        #[source]
        source: CodecError,
    },
    /// There are more records of a release than are read. Nothing was written.
    #[error(
        "release {name:?} has more records than can be read: delete the Secrets of its name that are none \
         of its last revisions"
    )]
    TooManyRecords {
        /// The release's name.
        name: String,
    },
    /// Only a record that this operator did not write says what would have to be done. Nothing was
    /// written.
    #[error(
        "the record of revision {revision} of release {name:?} is not authenticated: it was not written \
         by this operator, or was changed; {refused}"
    )]
    Unauthenticated {
        /// The release's name.
        name: String,
        /// The revision.
        revision: u32,
        /// What is not done for that.
        refused: &'static str,
    },
    /// The record cannot be written.
    #[error("the release's record cannot be written: {0}")]
    Encode(#[source] CodecError),
}

fn waited_for(finalizers: &[String]) -> String {
    if finalizers.is_empty() {
        return String::new();
    }
    format!(", and waits for finalizers: {}", finalizers.join(", "))
}

/// What an action waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// What the object is to the release, such as `pre-install hook`.
    pub role: String,
    /// The object that has to change.
    pub object: ObjectId,
    /// Its kind with the version.
    pub gvk: GroupVersionKind,
    /// What has to become of it.
    pub why: HookReason,
    /// One word for machines.
    pub reason: String,
    /// A sentence for people: the most specific cause that can be seen.
    pub message: String,
    /// When the waiting ends in a failure, if it does.
    pub at_most: Option<Duration>,
    /// The state of the object that this was said of, as [`crate::Driver::object_state`] tells it, if it
    /// was there.
    pub seen: Option<String>,
}

impl Error {
    /// That an object belongs to somebody else, in Helm's words.
    pub(crate) fn ownership(id: &ObjectId, problems: String) -> Self {
        let namespace = id.namespace.as_deref().unwrap_or_default();
        let object = format!("{} \"{}\" in namespace \"{namespace}\"", id.kind, id.name);
        Self::Ownership { object, problems }
    }

    /// The same without what the Secrets of the release hold: policies, webhooks, pods and hooks may quote
    /// any of it.
    #[must_use]
    pub(crate) fn redacted(mut self, sensitive: &Sensitive) -> Self {
        let hide = |text: &mut String| *text = sensitive.hide(text);
        match &mut self {
            Self::Request(error) | Self::Definition { source: error, .. } => {
                hide(&mut error.message);
            }
            Self::Hook { message, .. } | Self::NotReady { message, .. } => hide(message),
            Self::Ownership { problems, .. } => hide(problems),
            Self::Waiting(waiting) => hide(&mut waiting.message),
            _ => {}
        }
        self
    }

    /// Whether the same call may succeed later although the resource and its chart stay as they are. A
    /// missing permission is no verdict about a revision: nothing is taken back for it.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Request(error) => {
                error.kind.is_transient() || error.kind == FailureKind::MissingPermission
            }
            Self::Mapping { source, .. } => !source.is_no_match(),
            // Definitions are made before anything is written: there is nothing to be taken back.
            Self::Definition { source, .. } => source.kind.is_transient(),
            Self::Busy { .. }
            | Self::Waiting(_)
            | Self::Raced { .. }
            | Self::Terminating { .. }
            | Self::NotServedYet { .. } => true,
            _ => false,
        }
    }

    /// Whether the history that the action was based on may be out of date: read it again before
    /// the next try. False only where nothing was written and nothing else can have been.
    pub fn is_stale(&self) -> bool {
        !matches!(
            self,
            Self::Unsupported { .. }
                | Self::InvalidName { .. }
                | Self::WrongFacts { .. }
                | Self::OtherChart { .. }
                | Self::Manifest(_)
                | Self::Object { .. }
                | Self::OutOfScope { .. }
        )
    }

    /// How long to wait before the next try, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => Some(*retry_after),
            Self::Waiting(waiting) => waiting.at_most,
            _ => None,
        }
    }
}
