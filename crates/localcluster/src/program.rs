//! Finding the program `localcluster`, whose process supervises. Never one that is out of date.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::places::checkout;

/// Names the program, and is believed.
const VARIABLE: &str = "CATAMARAN_LOCALCLUSTER";

const NAME: &str = "localcluster";

/// Where the program is; built first if need be. Blocks.
pub(crate) fn find() -> Result<PathBuf> {
    // Held while building, so that the tests of one process ask cargo once.
    static FOUND: Mutex<Option<PathBuf>> = Mutex::new(None);
    if let Some(path) = env::var_os(VARIABLE) {
        return Ok(path.into());
    }
    let mut found =
        FOUND.lock().map_err(|_| Error::Program("an earlier attempt panicked".into()))?;
    if let Some(path) = found.as_ref() {
        return Ok(path.clone());
    }
    let path = match env::current_exe().ok() {
        Some(ours) if ours.file_name().is_some_and(|name| name == NAME) => ours,
        ours => match ours.as_deref().and_then(beside).filter(|path| is_fresh(path)) {
            Some(path) => path,
            None => build(ours.as_deref())?,
        },
    };
    Ok(found.insert(path).clone())
}

/// The program in the folder where cargo puts programs, seen from a test or a program of the same
/// build.
fn beside(ours: &Path) -> Option<PathBuf> {
    let folder = ours.parent()?;
    let inner = folder.file_name().is_some_and(|name| name == "deps" || name == "examples");
    let folder = if inner { folder.parent()? } else { folder };
    Some(folder.join(NAME))
}

/// Whether the program is newer than all that it was made of, as cargo wrote it down beside it.
///
/// Spares the usual case a call of cargo, which would wait for every build that is going on.
fn is_fresh(program: &Path) -> bool {
    let Some(built) = modified(program) else { return false };
    let built = modified(&stamp(program)).map_or(built, |seen| seen.max(built));
    let Ok(list) = fs::read_to_string(program.with_extension("d")) else { return false };
    let Some((_, sources)) = list.split_once(": ") else { return false };
    // Spaces in paths are escaped by a backslash; such a path is not found, so cargo decides.
    let sources = sources.split_whitespace().map(PathBuf::from);
    let lists = checkout().map(|root| [root.join("Cargo.lock"), manifest(&root)]);
    let mut all = sources.chain(lists.into_iter().flatten());
    all.all(|source| modified(&source).is_some_and(|at| at <= built))
}

/// A file as old as the last time that cargo found the program up to date, which need not touch the
/// program itself.
fn stamp(program: &Path) -> PathBuf {
    program.with_extension("fresh")
}

fn manifest(root: &Path) -> PathBuf {
    root.join("crates/localcluster/Cargo.toml")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

/// Has cargo build the program, or find that there is nothing to do.
fn build(ours: Option<&Path>) -> Result<PathBuf> {
    let root = checkout().ok_or_else(|| {
        Error::Program(format!("its sources are gone; set ${VARIABLE} to the program"))
    })?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--package", "catamaran-localcluster", "--bin", NAME])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    // The profile of whoever asks, because that one's dependencies are built.
    let profile = ours.and_then(beside).and_then(|path| path.parent().map(Path::to_owned));
    if profile.is_some_and(|folder| folder.ends_with("release")) {
        command.arg("--release");
    }
    let begun = SystemTime::now();
    let output = command.output().map_err(|error| Error::Program(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::Program(format!("cargo ended with {}", output.status)));
    }
    let program = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == NAME)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| Error::Program("cargo does not say where it is".into()))?;
    // Spares the next one the question. If it fails, that one asks cargo too.
    let _ = fs::File::create(stamp(&program)).and_then(|file| file.set_modified(begun));
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_program_older_than_its_sources_is_not_fresh() {
        let folder = tempfile::tempdir().unwrap();
        let [program, source] = ["localcluster", "main.rs"].map(|name| folder.path().join(name));
        fs::write(&source, "").unwrap();
        fs::write(&program, "").unwrap();
        assert!(!is_fresh(&program), "cargo has written nothing about it");

        let list = format!("{}: {}\n", program.display(), source.display());
        fs::write(folder.path().join("localcluster.d"), list).unwrap();
        let at = |path: &Path, offset: u64| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(offset)).unwrap();
        };
        at(&program, 10);
        assert!(is_fresh(&program));
        at(&source, 20);
        assert!(!is_fresh(&program), "the source is newer");
        fs::write(stamp(&program), "").unwrap();
        at(&stamp(&program), 30);
        assert!(is_fresh(&program), "but cargo found that it makes no difference");
        fs::remove_file(&source).unwrap();
        assert!(!is_fresh(&program), "the source is gone");
    }

    #[test]
    fn the_program_lies_beside_tests_and_programs() {
        for ours in ["/t/debug/deps/x-1", "/t/debug/examples/x", "/t/debug/x"] {
            assert_eq!(beside(Path::new(ours)), Some("/t/debug/localcluster".into()), "{ours}");
        }
    }
}
