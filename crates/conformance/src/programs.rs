//! Both commands, as people run them: `helm template` and `catamaran template`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use catamaran_chart::Profile;
use tempfile::TempDir;

/// The two profiles, by the names that `--profile` takes.
pub const PROFILES: [(Profile, &str); 2] = [(Profile::Helm43, "4.3"), (Profile::Helm318, "3.18")];

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

    /// The helm of a profile, by its name.
    pub fn theirs(&self, profile: &str) -> PathBuf {
        self.tools.join(if profile == "4.3" { "helm4" } else { "helm3" })
    }

    /// `helm template` of a profile.
    pub fn helm(&self, profile: Profile, folder: &Path, words: &[OsString]) -> Result<Run> {
        self.run(&self.theirs(name_of(profile)), folder, words)
    }

    /// `catamaran template`, following a profile.
    pub fn ours(&self, profile: Profile, folder: &Path, words: &[OsString]) -> Result<Run> {
        let mut words = words.to_vec();
        words.push(format!("--profile={}", name_of(profile)).into());
        self.run(&self.ours, folder, &words)
    }

    /// `None` if both do the same.
    pub fn difference(
        &self,
        profile: Profile,
        folder: &Path,
        words: &[OsString],
    ) -> Result<Option<(Run, Run)>> {
        let theirs = self.helm(profile, folder, words)?;
        let ours = self.ours(profile, folder, words)?;
        if theirs == ours {
            return Ok(None);
        }
        // Charts draw random passwords and make certificates: what Helm prints another way each
        // time is not compared.
        let again = self.helm(profile, folder, words)?;
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
        let home = self.home.path();
        let output = Command::new(program)
            .arg("template")
            .args(words)
            .current_dir(folder)
            .env_clear()
            // Nothing of the user's: no kubeconfig, no plugins, no registries.
            .envs(
                ["HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_CACHE_HOME"]
                    .map(|name| (name, home)),
            )
            .env("KUBECONFIG", home.join("none"))
            .env("TZ", "UTC")
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let start = stderr.find("Error: ").filter(|at| *at == 0 || stderr[..*at].ends_with('\n'));
        Ok(Run {
            stdout: output.stdout,
            error: start.map(|at| stderr[at..].to_owned()).unwrap_or_default(),
            status: output.status.code().unwrap_or(-1),
        })
    }
}

fn name_of(profile: Profile) -> &'static str {
    PROFILES.iter().find(|(known, _)| *known == profile).map_or("", |(_, name)| name)
}

/// Words of a command line.
pub fn words<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    words.into_iter().map(|word| word.as_ref().to_owned()).collect()
}
