//! The API server's audit log: who asked for what, exactly.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::readiness::POLL;

/// A place in the log: all that was asked before, or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// One request, in Kubernetes' own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or an HTTP
    /// method in lower case for what is not a resource.
    pub verb: String,
    /// The path and the query.
    pub uri: String,
    /// The API group; empty for the core group, and for what is not a resource.
    pub group: String,
    /// The API version, as `v1`; empty for what is not a resource.
    pub version: String,
    /// As `deployments`; empty for what is not a resource (`/apis`, `/readyz`).
    pub resource: String,
    /// As `status`; empty if there is none.
    pub subresource: String,
    /// Empty if there is none.
    pub namespace: String,
    /// Empty if there is none: for lists and watches, and for creations.
    pub name: String,
    /// The answer's HTTP status code; 0 if there was none.
    pub code: u16,
    /// Who asked.
    pub user: String,
    /// As whom, if by impersonation; else empty.
    pub impersonated: String,
    /// With which program.
    pub user_agent: String,
    /// `ResponseComplete`; for a request that goes on (a watch, logs) `ResponseStarted`; `Panic`.
    pub stage: String,
}

/// No line of the log, which has metadata alone, is longer.
const LONGEST_LINE: u64 = 1 << 20;

/// A reader of the audit log, of all requests or of some.
///
/// A request is in the log when its answer is out. One that goes on for long (a watch) is there once,
/// from when it began.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: Option<PathBuf>,
    agent: Option<String>,
    user: Option<String>,
}

impl AuditLog {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, agent: None, user: None }
    }

    /// Only requests whose user agent begins with `prefix`.
    #[must_use]
    pub fn of_agent(&self, prefix: &str) -> Self {
        Self { agent: Some(prefix.to_owned()), ..self.clone() }
    }

    /// Only requests of this user.
    #[must_use]
    pub fn of_user(&self, name: &str) -> Self {
        Self { user: Some(name.to_owned()), ..self.clone() }
    }

    /// The end of the log as it is now: behind its last whole line.
    ///
    /// # Errors
    /// [`Error::NoAudit`] if the cluster keeps no log.
    pub fn mark(&self) -> Result<Mark> {
        let mut file = self.open()?;
        let mut bytes = Vec::new();
        let read = |file: &mut File, bytes: &mut Vec<u8>| {
            let begin = file.metadata()?.len().saturating_sub(LONGEST_LINE);
            file.seek(SeekFrom::Start(begin))?;
            file.read_to_end(bytes)?;
            Ok(begin)
        };
        let begin: u64 = read(&mut file, &mut bytes).map_err(Error::io("read the audit log"))?;
        Ok(Mark(begin + whole_lines(&bytes) as u64))
    }

    /// All requests so far, in the order of their answers.
    pub fn requests(&self) -> Result<Vec<Request>> {
        self.since(Mark(0))
    }

    /// All requests so far whose user agent begins with `prefix`.
    pub fn requests_of(&self, prefix: &str) -> Result<Vec<Request>> {
        self.of_agent(prefix).requests()
    }

    /// The requests since `mark`.
    ///
    /// # Errors
    /// [`Error::NoAudit`] if the cluster keeps no log.
    pub fn since(&self, mark: Mark) -> Result<Vec<Request>> {
        self.read(mark).map(|(requests, _)| requests)
    }

    /// Waits until there was no request for `quiet`, and says where the log ends then.
    ///
    /// # Errors
    /// [`Error::Deadline`], with the last request, if there is no such pause before `deadline`.
    pub async fn until_quiet(&self, quiet: Duration, deadline: Duration) -> Result<Mark> {
        let begun = Instant::now();
        let (mut last, mut since) = (None, begun);
        let mut mark = self.mark()?;
        loop {
            let (requests, end) = self.read(mark)?;
            mark = end;
            if let Some(request) = requests.into_iter().next_back() {
                (last, since) = (Some(request), Instant::now());
            }
            if since.elapsed() >= quiet {
                return Ok(mark);
            }
            if begun.elapsed() >= deadline {
                let waiting_for = format!("{quiet:?} without a request; the last one: {last:?}");
                return Err(Error::Deadline { waiting_for, after: deadline });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The requests since `mark`, and up to where they were read.
    fn read(&self, mark: Mark) -> Result<(Vec<Request>, Mark)> {
        let mut file = self.open()?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(mark.0))
            .and_then(|_| file.read_to_end(&mut bytes))
            .map_err(Error::io("read the audit log"))?;
        let whole = whole_lines(&bytes);
        bytes.truncate(whole);
        let mut requests = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Event = serde_json::from_slice(line)
                .map_err(|error| Error::Invalid(format!("the audit log is damaged: {error}")))?;
            if event.counts() && self.wants(&event) {
                requests.push(event.into());
            }
        }
        Ok((requests, Mark(mark.0 + whole as u64)))
    }

    fn wants(&self, event: &Event) -> bool {
        self.agent.as_deref().is_none_or(|prefix| event.user_agent.starts_with(prefix))
            && self.user.as_deref().is_none_or(|user| event.user.username == user)
    }

    fn open(&self) -> Result<File> {
        let path = self.path.as_deref().ok_or(Error::NoAudit)?;
        File::open(path).map_err(Error::io(format!("open {}", path.display())))
    }
}

/// How many bytes the whole lines take: the last one may be half written.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// What we read of an `audit.k8s.io/v1` Event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    impersonated_user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    api_version: String,
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl Event {
    /// Whether this event stands for its request. A request that goes on for long has two: its start
    /// counts, or it would seem to be made when it ends.
    fn counts(&self) -> bool {
        match self.stage.as_str() {
            "ResponseStarted" => self.goes_on(),
            "ResponseComplete" => !self.goes_on(),
            "Panic" => true,
            _ => false,
        }
    }

    /// What the API server takes for long-running (`genericfilters.BasicLongRunningRequestCheck` as
    /// kube-apiserver sets it up), and announces by `ResponseStarted`.
    fn goes_on(&self) -> bool {
        let subresources = ["attach", "exec", "proxy", "log", "portforward"];
        ["watch", "proxy"].contains(&self.verb.as_str())
            || subresources.contains(&self.object_ref.subresource.as_str())
    }
}

impl From<Event> for Request {
    fn from(event: Event) -> Self {
        let object = event.object_ref;
        Self {
            verb: event.verb,
            uri: event.uri,
            group: object.api_group,
            version: object.api_version,
            resource: object.resource,
            subresource: object.subresource,
            namespace: object.namespace,
            name: object.name,
            code: event.response_status.code,
            user: event.user.username,
            impersonated: event.impersonated_user.username,
            user_agent: event.user_agent,
            stage: event.stage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn event(stage: &str, verb: &str, agent: &str) -> String {
        serde_json::json!({
            "stage": stage, "verb": verb, "userAgent": agent, "requestURI": "/api/v1/pods",
            "user": {"username": "jane", "groups": ["x"]}, "auditID": "1",
            "objectRef": {"resource": "pods", "apiVersion": "v1"},
            "responseStatus": {"code": 200, "metadata": {}},
        })
        .to_string()
    }

    fn log(lines: &[String]) -> (tempfile::NamedTempFile, AuditLog) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        let log = AuditLog::new(Some(file.path().to_owned()));
        (file, log)
    }

    #[test]
    fn every_request_is_there_once() {
        let (_file, log) = log(&[
            event("ResponseComplete", "get", "a/1"),
            event("ResponseStarted", "watch", "a/1"),
            event("ResponseComplete", "watch", "a/1"),
            event("ResponseComplete", "list", "b/1"),
        ]);
        let verbs = |requests: Vec<Request>| -> Vec<String> {
            requests.into_iter().map(|request| request.verb).collect()
        };
        assert_eq!(verbs(log.requests().unwrap()), ["get", "watch", "list"]);
        assert_eq!(verbs(log.requests_of("a/").unwrap()), ["get", "watch"]);
        assert!(log.of_user("joe").requests().unwrap().is_empty());
        assert_eq!(log.requests().unwrap()[0].resource, "pods");
    }

    #[test]
    fn a_mark_parts_before_from_after_and_half_a_line_waits() {
        let (mut file, log) = log(&[event("ResponseComplete", "get", "a")]);
        let mark = log.mark().unwrap();
        let line = event("ResponseComplete", "patch", "a");
        let (half, rest) = line.split_at(40);
        write!(file, "{half}").unwrap();
        assert!(log.since(mark).unwrap().is_empty());
        writeln!(file, "{rest}").unwrap();
        assert_eq!(log.since(mark).unwrap()[0].verb, "patch");
    }

    #[test]
    fn without_a_log_there_is_an_error_and_no_empty_list() {
        assert!(matches!(AuditLog::new(None).requests(), Err(Error::NoAudit)));
    }

    #[test]
    fn a_mark_set_while_a_line_is_written_stands_before_that_line() {
        let line = event("ResponseComplete", "get", "x/1");
        let (begun, rest) = line.split_at(40);
        let (mut file, log) = log(&[event("ResponseComplete", "list", "x/1")]);
        write!(file, "{begun}").unwrap();
        let mark = log.mark().unwrap();
        writeln!(file, "{rest}").unwrap();
        let verbs: Vec<_> = log.since(mark).unwrap().into_iter().map(|it| it.verb).collect();
        assert_eq!(verbs, ["get"]);
    }
}
