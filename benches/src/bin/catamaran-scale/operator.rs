//! The operator, running, and what it takes.

use std::fmt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use catamaran_localcluster::{AuditLog, LocalCluster, Mark};

/// As whom it asks the API server: so its requests are told from all others.
const USER: &str = "bench-operator";
/// How long anything may take.
const DEADLINE: Duration = Duration::from_mins(30);

/// Resident memory, in KiB.
#[derive(Clone, Copy)]
pub struct Memory {
    pub now: u64,
    pub peak: u64,
}

impl fmt::Display for Memory {
    #[allow(clippy::cast_precision_loss, reason = "it is printed")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |kib: u64| kib as f64 / 1024.0;
        write!(f, "{:.1} MiB (peak {:.1})", mib(self.now), mib(self.peak))
    }
}

/// A running operator; ends with the value.
pub struct Operator {
    process: Child,
    audit: AuditLog,
    /// The log as it was before it began.
    pub begun: Mark,
    started: Instant,
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Operator {
    /// Starts it in a project's folder and waits until it asks for nothing more.
    pub async fn start(program: &Path, cluster: &LocalCluster, project: &Path) -> Result<Self> {
        let audit = cluster.audit().of_user(USER);
        let begun = cluster.audit().mark()?;
        let log = std::fs::File::create(project.join("operator.log"))?;
        let started = Instant::now();
        let process = Command::new(program)
            .args(["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"])
            .env("KUBECONFIG", cluster.kubeconfig_for(USER, &["system:masters"])?)
            .env("WATCH_NAMESPACE", "")
            .current_dir(project)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let mut operator = Self { process, audit, begun, started };
        let begun = Instant::now();
        while operator.requests(operator.begun)?.is_empty() {
            if let Some(status) = operator.process.try_wait()? {
                let log = std::fs::read_to_string(project.join("operator.log"))?;
                bail!("the operator ended: {status}\n{log}");
            }
            if begun.elapsed() > DEADLINE {
                bail!("the operator asks for nothing");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(operator)
    }

    /// Ends it as Kubernetes does.
    pub async fn end(mut self) -> Result<()> {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        while self.process.try_wait()?.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// The end of the audit log.
    pub fn mark(&self) -> Result<Mark> {
        Ok(self.audit.mark()?)
    }

    /// Waits until it has not asked for anything for so long; when it last did, after its start.
    pub async fn quiet(&self, pause: Duration) -> Result<Duration> {
        let (mut last, mut seen) = (Instant::now(), 0);
        loop {
            let count = self.audit.since(self.begun)?.len();
            if count != seen {
                (last, seen) = (Instant::now(), count);
            } else if last.elapsed() >= pause {
                return Ok(last.saturating_duration_since(self.started));
            }
            if self.started.elapsed() > DEADLINE {
                bail!("the operator never rests");
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Its requests since then: verb, resource, and how many.
    pub fn requests(&self, since: Mark) -> Result<Vec<(String, usize)>> {
        let mut counts = std::collections::BTreeMap::new();
        for request in self.audit.since(since)? {
            let slash = if request.subresource.is_empty() { "" } else { "/" };
            let what =
                format!("{} {}{slash}{}", request.verb, request.resource, request.subresource);
            *counts.entry(what).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }

    /// Its resident memory.
    pub fn memory(&self) -> Result<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok())
        };
        let (Some(now), Some(peak)) = (field("VmRSS"), field("VmHWM")) else { bail!("no VmRSS") };
        Ok(Memory { now, peak })
    }

    /// The processor time that it has used, of all its threads and of the system for it.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok());
        let (Some(user), Some(system)) = (ticks(11), ticks(12)) else { bail!("no times") };
        // Linux tells them in hundredths, on every machine.
        Ok(Duration::from_millis((user + system) * 10))
    }
}
