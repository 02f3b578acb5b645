//! Helm's own library, in a process beside ours (`hack/oracle`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_chart::Profile;
use serde::Deserialize;
use tempfile::TempDir;

use crate::case::Case;
use crate::outcome::Outcome;

/// How long one case may take before the process is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// One oracle process; started when it is first asked, and again when a case has ended it.
#[derive(Debug)]
pub struct Oracle {
    program: PathBuf,
    running: Option<Running>,
    asked: u64,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Where it keeps files of values: gone with it, however it ends.
    _scratch: TempDir,
    input: ChildStdin,
    answers: Receiver<String>,
}

#[derive(Deserialize)]
struct Wire {
    id: u64,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    notes: String,
    error: Option<String>,
    crash: Option<String>,
}

impl Oracle {
    /// The oracle of a profile in the folder of the pinned tools.
    pub fn new(tools: &Path, profile: Profile) -> Self {
        let name = match profile {
            Profile::Helm43 => "oracle4",
            Profile::Helm318 => "oracle3",
        };
        Self { program: tools.join(name), running: None, asked: 0 }
    }

    /// Hands a case over; [`Oracle::answer`] tells what came of it.
    pub fn ask(&mut self, case: &Case) -> Result<()> {
        self.asked += 1;
        let mut line = case.to_line(self.asked);
        line.push('\n');
        let running = self.running()?;
        // A process that died of the case before is told by the answer that does not come.
        let _ = running.input.write_all(line.as_bytes());
        Ok(())
    }

    /// What Helm made of the case that was handed over last.
    pub fn answer(&mut self) -> Result<Outcome> {
        let asked = self.asked;
        let running = self.running()?;
        let outcome = loop {
            match running.answers.recv_timeout(PATIENCE) {
                Ok(line) => {
                    let wire: Wire = serde_json::from_str(&line).context("the oracle's answer")?;
                    if wire.id == asked {
                        return wire.outcome();
                    }
                }
                Err(RecvTimeoutError::Timeout) => break Outcome::Crash("no end in sight".into()),
                Err(RecvTimeoutError::Disconnected) => break Outcome::Crash("died".into()),
            }
        };
        self.stop();
        Ok(outcome)
    }

    /// Both in one.
    pub fn render(&mut self, case: &Case) -> Result<Outcome> {
        self.ask(case)?;
        self.answer()
    }

    fn running(&mut self) -> Result<&mut Running> {
        if self.running.is_none() {
            self.running = Some(start(&self.program)?);
        }
        self.running.as_mut().ok_or_else(|| anyhow!("the oracle is not running"))
    }

    fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.stop();
    }
}

fn start(program: &Path) -> Result<Running> {
    let scratch = tempfile::tempdir()?;
    let mut child = Command::new(program)
        .env("TMPDIR", scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Two workers share the machine's cores already.
        .env("GOMAXPROCS", "1")
        .spawn()
        .with_context(|| {
            format!("cannot start {}: see hack/tools.sh --oracle", program.display())
        })?;
    let input = child.stdin.take().context("no standard input")?;
    let output = child.stdout.take().context("no standard output")?;
    let (sender, answers) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok(Running { child, _scratch: scratch, input, answers })
}

impl Wire {
    fn outcome(self) -> Result<Outcome> {
        if let Some(crash) = self.crash {
            return Ok(Outcome::Crash(crash));
        }
        if let Some(error) = self.error {
            return Ok(Outcome::Error(STANDARD.decode(error)?));
        }
        Ok(Outcome::Success {
            stdout: STANDARD.decode(self.stdout)?,
            notes: STANDARD.decode(self.notes)?,
        })
    }
}
