//! The commands of a README, typed one after the other as a person would.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Bench, Process, eventually};

/// A command may take this long, `--watch` apart; it is typed again until it goes well.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a command that never ends may be looked at.
const LOOK: Duration = Duration::from_secs(3);

/// Walks through the `sh` blocks of a README in the namespace of a [`Bench`], from the root of the
/// project, with `kubectl` and `helm` on the path.
///
/// - Each command must go well; until it does it is typed again. One that looks (`kubectl get`, ...)
///   must show something.
/// - A block without a language that follows is what the last command shows: each of its lines must
///   come, spaces apart; `…` stands for anything.
/// - `cargo run -p NAME` starts the program that was handed in, restricted to the namespace. Other
///   commands of cargo, and those of make, are left out: CI runs them as they are.
/// - A command with `--watch` is ended once it has shown something.
#[derive(Debug)]
pub struct Readme {
    steps: std::vec::IntoIter<Step>,
    root: PathBuf,
    program: PathBuf,
    kubeconfig: PathBuf,
    path: std::ffi::OsString,
    operators: Vec<Process>,
    _folder: tempfile::TempDir,
}

/// One command, and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    command: String,
    shows: Vec<String>,
}

impl Readme {
    /// The README.md in `folder` (`env!("CARGO_MANIFEST_DIR")`, two below the root of the project), with
    /// the program that `cargo run` starts (`env!("CARGO_BIN_EXE_…")`).
    pub fn open(bench: &Bench, folder: &str, program: &str) -> Self {
        let folder = Path::new(folder);
        let text = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let own = tempfile::tempdir().unwrap();
        let kubeconfig = own.path().join("kubeconfig");
        std::fs::copy(bench.cluster.kubeconfig(), &kubeconfig).unwrap();
        let tools = bench.cluster.tools().unwrap();
        let set = Command::new(tools.kubectl())
            .args(["config", "set-context", "--current", "--namespace", &bench.namespace])
            .env("KUBECONFIG", &kubeconfig)
            .output()
            .unwrap();
        assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
        Self {
            steps: steps(&text).into_iter(),
            root: folder.ancestors().nth(2).unwrap().to_owned(),
            program: program.into(),
            kubeconfig,
            path: tools.search_path(),
            operators: Vec::new(),
            _folder: own,
        }
    }

    /// Walks up to and including the next command that begins so.
    pub async fn walk_to(&mut self, bench: &Bench, command: &str) {
        loop {
            let step = self.steps.next();
            let step = step.unwrap_or_else(|| panic!("no command begins with {command:?}"));
            self.step(bench, &step).await;
            if step.command.starts_with(command) {
                return;
            }
        }
    }

    /// Walks to the end.
    pub async fn walk(&mut self, bench: &Bench) {
        for step in std::mem::take(&mut self.steps) {
            self.step(bench, &step).await;
        }
    }

    async fn step(&mut self, bench: &Bench, step: &Step) {
        let command = step.command.as_str();
        if command.starts_with("cargo run ") {
            let operator = bench.start_as(&self.program, &self.kubeconfig);
            self.operators.push(operator);
        } else if !["cargo ", "make "].iter().any(|other| command.starts_with(other)) {
            eprintln!("$ {command}");
            eventually(command, async || self.run(step).await).await;
        }
    }

    /// Types a command; what is wrong with what it did.
    async fn run(&self, step: &Step) -> Result<(), String> {
        let mut bash = tokio::process::Command::new("bash");
        bash.args(["-eu", "-o", "pipefail", "-c", &step.command])
            .current_dir(&self.root)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if step.command.contains("--watch") {
            return glance(bash).await;
        }
        let output = tokio::time::timeout(PATIENCE, bash.output()).await;
        let output = output.map_err(|_| format!("no end within {PATIENCE:?}"))?.unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        if looks(&step.command) && shown.trim().is_empty() {
            return Err("it shows nothing".to_owned());
        }
        match step.shows.iter().find(|line| !shown.lines().any(|shown| is_like(shown, line))) {
            Some(line) => Err(format!("no line is like {line:?} in\n{shown}")),
            None => Ok(()),
        }
    }
}

/// Runs a command that does not end until it shows something.
async fn glance(mut bash: tokio::process::Command) -> Result<(), String> {
    use tokio::io::AsyncReadExt;
    let mut child = bash.spawn().unwrap();
    let mut shown = child.stdout.take().unwrap();
    let read = tokio::time::timeout(LOOK, shown.read_u8()).await;
    child.kill().await.unwrap();
    read.map_err(|_| "it shows nothing".to_owned())?.map(drop).map_err(|error| error.to_string())
}

fn looks(command: &str) -> bool {
    ["kubectl get ", "kubectl describe ", "kubectl explain ", "helm list"]
        .iter()
        .any(|look| command.starts_with(look))
}

/// Whether a line is as the README shows it, spaces apart.
fn is_like(line: &str, shown: &str) -> bool {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, shown) = (squeeze(line), squeeze(shown));
    let Some((first, rest)) = shown.split_once('…') else { return line == shown };
    let (middle, last) = rest.rsplit_once('…').unwrap_or(("", rest));
    let inner = line.strip_prefix(first.trim()).and_then(|line| line.strip_suffix(last.trim()));
    let Some(mut inner) = inner else { return false };
    middle.split('…').map(str::trim).all(|part| match inner.split_once(part) {
        Some((_, rest)) => {
            inner = rest;
            true
        }
        None => false,
    })
}

/// The commands of a text in Markdown.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            "sh" => steps.extend(commands(&block)),
            "" => {
                if let Some(step) = steps.last_mut() {
                    step.shows.extend(block.iter().map(|line| (*line).to_owned()));
                }
            }
            _ => {}
        }
    }
    steps
}

/// The commands of a block: a line each, if it does not go on in the next.
fn commands(block: &[&str]) -> Vec<Step> {
    let mut found = Vec::new();
    let mut command = String::new();
    let mut until = None;
    for line in block {
        command.push_str(line);
        match until {
            Some(word) if *line != word => {
                command.push('\n');
                continue;
            }
            Some(_) => until = None,
            None => {
                until = line.split_once("<<").map(|(_, word)| word.trim_matches(['\'', '"', '-']));
            }
        }
        if until.is_some() || line.ends_with('\\') {
            command.push('\n');
            continue;
        }
        let command = std::mem::take(&mut command);
        if !command.is_empty() && !command.starts_with('#') {
            found.push(Step { command, shows: Vec::new() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_what_they_show() {
        let text = "# A\n\n```sh\nkubectl get pods\n# a remark\nkubectl apply -f - <<EOF\na: 1\n\nb: 2\nEOF\n\
                    kubectl get \\\n  nodes\n```\n\nThen:\n\n```\nNAME   X\na      …s\n```\n\n```yaml\na: 1\n```\n";
        let found: Vec<_> =
            steps(text).into_iter().map(|step| (step.command, step.shows)).collect();
        let shows = vec!["NAME   X".to_owned(), "a      …s".to_owned()];
        assert_eq!(
            found,
            [
                ("kubectl get pods".to_owned(), vec![]),
                ("kubectl apply -f - <<EOF\na: 1\n\nb: 2\nEOF".to_owned(), vec![]),
                ("kubectl get \\\n  nodes".to_owned(), shows),
            ]
        );
    }

    #[test]
    fn a_line_is_like_another_whatever_its_spaces() {
        assert!(is_like("NAME        AGE", "NAME  AGE"));
        assert!(!is_like("NAME        AGE", "NAME"));
        assert!(is_like("pod-1   Running   5s", "pod-1 Running …"));
        assert!(is_like("pod-1   Running   5s", "pod-1 … 5s"));
        assert!(!is_like("pod-1   Running   5m", "pod-1 … 5s"));
    }
}
