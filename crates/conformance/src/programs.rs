//! Both commands, as people run them: `helm template` and `catamaran template`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Result;
use catamaran_fixtures::Helm;
use tempfile::TempDir;

/// What a command left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// From `Error: ` on; warnings come before.
    pub error: String,
    /// The exit status; 0 is success.
    pub status: i32,
}

impl Run {
    /// For people.
    pub fn show(&self) -> String {
        format!("{}{}exit {}\n", String::from_utf8_lossy(&self.stdout), self.error, self.status)
    }

    /// The same where lines that are others in each run of Helm's are left out.
    fn without(&self, odd: &[bool]) -> Vec<&[u8]> {
        let lines = self.stdout.split(|byte| *byte == b'\n');
        lines.zip(odd).map(|(line, odd)| if *odd { &b"(random)"[..] } else { line }).collect()
    }
}

/// Both programs, and a home of their own.
#[derive(Debug)]
pub struct Programs {
    tools: PathBuf,
    /// Our command.
    pub ours: PathBuf,
    home: TempDir,
}

impl Programs {
    /// The pinned helms, and a `catamaran`; by default the one that was built beside this program.
    pub fn new(tools: &Path, ours: Option<&Path>) -> Result<Self> {
        let beside =
            || -> Result<PathBuf> { Ok(std::env::current_exe()?.with_file_name("catamaran")) };
        let ours = ours.map_or_else(beside, |path| Ok(path.to_owned()))?;
        Ok(Self { tools: tools.to_owned(), ours, home: tempfile::tempdir()? })
    }

    /// Where a helm is.
    pub fn theirs(&self, helm: Helm) -> PathBuf {
        self.tools.join(match helm {
            Helm::V4 => "helm4",
            Helm::V3 => "helm3",
        })
    }

    /// `helm template`.
    pub fn helm(&self, helm: Helm, folder: &Path, words: &[OsString]) -> Result<Run> {
        self.run(&self.theirs(helm), folder, words)
    }

    /// `catamaran template`, following a helm.
    pub fn ours(&self, helm: Helm, folder: &Path, words: &[OsString]) -> Result<Run> {
        let mut words = words.to_vec();
        words.push(format!("--profile={}", helm.name()).into());
        self.run(&self.ours, folder, &words)
    }

    /// `None` if both do the same.
    pub fn difference(
        &self,
        helm: Helm,
        folder: &Path,
        words: &[OsString],
    ) -> Result<Option<(Run, Run)>> {
        let theirs = self.helm(helm, folder, words)?;
        let ours = self.ours(helm, folder, words)?;
        if theirs == ours {
            return Ok(None);
        }
        // Charts draw random passwords and make certificates: what Helm prints another way each
        // time is not compared.
        let again = self.helm(helm, folder, words)?;
        let lines = |run: &Run| -> Vec<Vec<u8>> {
            run.stdout.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        let (first, second) = (lines(&theirs), lines(&again));
        let odd: Vec<bool> = first.iter().zip(&second).map(|(a, b)| a != b).collect();
        let same_length = first.len() == second.len() && lines(&ours).len() == first.len();
        let same = same_length
            && (&theirs.error, theirs.status) == (&ours.error, ours.status)
            && theirs.without(&odd) == ours.without(&odd);
        Ok((!same).then_some((theirs, ours)))
    }

    fn run(&self, program: &Path, folder: &Path, words: &[OsString]) -> Result<Run> {
        let output = catamaran_fixtures::run(program, "template", words, folder, self.home.path())?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let start = stderr.find("Error: ").filter(|at| *at == 0 || stderr[..*at].ends_with('\n'));
        Ok(Run {
            stdout: output.stdout,
            error: start.map(|at| stderr[at..].to_owned()).unwrap_or_default(),
            status: output.status.code().unwrap_or(-1),
        })
    }
}

/// Words of a command line.
pub fn words<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    words.into_iter().map(|word| word.as_ref().to_owned()).collect()
}
