//! What can go wrong between asking for a cluster and having one.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no cluster, or why it did not do what was asked of it.
///
/// `Debug` prints what a person needs (the whole chain, the logs as lines): most callers are tests,
/// and a test shows an error by `unwrap`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, folder, socket or process could not be handled.
    #[error("cannot {what}")]
    Io {
        /// What was tried, with the path.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The control plane's programs were not found and could not be built.
    #[error("the control plane's programs are not there: {0}")]
    Tools(String),
    /// This machine can have no real node. The text is one sentence that names what it lacks.
    #[error("{0}")]
    RealNode(String),
    /// The supervisor's program (`localcluster`) was not found and could not be built.
    #[error("cannot build the program `localcluster`: {0}")]
    Program(String),
    /// A component of the control plane did not come up, or died.
    #[error("{0}")]
    Component(Box<Failure>),
    /// The supervisor ended without saying why.
    #[error("the supervisor of the local cluster ended while it was waited for {waiting_for}{}", tail(.log))]
    Lost {
        /// What the caller was waiting for.
        waiting_for: &'static str,
        /// The last lines of the supervisor's log, as far as they are still there.
        log: String,
    },
    /// Something did not happen in time.
    #[error("waited {} s in vain for {waiting_for}", .after.as_secs())]
    Deadline {
        /// What was waited for.
        waiting_for: String,
        /// For how long.
        after: Duration,
    },
    /// The API server refused a request, or could not be asked.
    #[error("cannot {what}")]
    Api {
        /// What was tried.
        what: String,
        /// The API server's answer.
        source: Box<kube::Error>,
    },
    /// A key or certificate could not be made.
    #[error("cannot make a certificate for {subject}")]
    Certificate {
        /// Whom it was for.
        subject: String,
        /// What rcgen said.
        source: rcgen::Error,
    },
    /// A user of more groups than a certificate of ours can carry.
    #[error(
        "user {user} has {count} groups, and the certificates made here carry at most two; bind the rights to the user instead"
    )]
    TooManyGroups {
        /// The user.
        user: String,
        /// How many groups were asked for.
        count: usize,
    },
    /// The cluster keeps no audit log.
    #[error("this cluster keeps no audit log; start it with `.audit(true)`")]
    NoAudit,
    /// Something that is not what its own kind says it is, such as a file that was changed by others.
    #[error("{0}")]
    Invalid(String),
}

/// How a component of the control plane failed. Travels from the supervisor to all who wait.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{component} {reason} while it was waited for {waiting_for}{}", tail(.log))]
pub struct Failure {
    /// The component's name, as `kube-apiserver`.
    pub component: String,
    /// What was waited for when it happened.
    pub waiting_for: String,
    /// What happened.
    pub reason: String,
    /// The last lines of the component's log.
    pub log: String,
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }

    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        |source| Self::Api { what, source: Box::new(source) }
    }

    pub(crate) fn certificate(subject: impl Into<String>) -> impl FnOnce(rcgen::Error) -> Self {
        let subject = subject.into();
        |source| Self::Certificate { subject, source }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Component(Box::new(failure))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        // One source at most: those we have (io, kube, rcgen) print their own.
        self.source().map_or(Ok(()), |source| write!(f, ": {source}"))
    }
}

fn tail(log: &str) -> String {
    if log.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = log.lines().collect();
    format!("; the end of its log:\n    {}", lines.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_component_the_wait_and_the_log() {
        let failure = Failure {
            component: "kube-apiserver".into(),
            waiting_for: "/readyz".into(),
            reason: "ended (exit status: 1)".into(),
            log: "one\ntwo".into(),
        };
        let expected = "kube-apiserver ended (exit status: 1) while it was waited for /readyz; \
                        the end of its log:\n    one\n    two";
        assert_eq!(format!("{:?}", Error::from(failure)), expected);
    }

    #[test]
    fn debug_prints_the_source_once() {
        let error = Error::io("read x")(io::Error::other("no luck"));
        assert_eq!(format!("{error}"), "cannot read x");
        assert_eq!(format!("{error:?}"), "cannot read x: no luck");
    }
}
