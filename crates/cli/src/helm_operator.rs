//! What the images and manifests of operator-sdk's Helm operator call: `helm-operator run`, and what
//! that was called before.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// The names of programs that mean [`Command::Run`](crate::Command::Run) where no command follows:
/// operator-sdk's binary, and the script that its images once began with.
const NAMES: [&str; 2] = ["helm-operator", "entrypoint"];
/// What such a program is asked for by flags besides.
const OTHERS: [&str; 4] = ["--help", "-h", "--version", "-V"];

/// The arguments of this process, in the form that [`crate::Cli`] takes.
pub(crate) fn arguments() -> Vec<OsString> {
    spelled_out(std::env::args_os().collect())
}

/// Long flags may have one dash where the manager is started; and a program that is called like
/// operator-sdk's is told to start it.
fn spelled_out(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_theirs = words
        .first()
        .and_then(|path| Path::new(path).file_stem())
        .is_some_and(|name| NAMES.iter().any(|theirs| name == OsStr::new(theirs)));
    let command = words.get(1).and_then(|word| word.to_str());
    let asked = command.is_some_and(|word| !word.starts_with('-') || OTHERS.contains(&word));
    if is_theirs && !asked {
        let at = words.len().min(1);
        words.insert(at, "run".into());
    }
    let runs = words.get(1).is_some_and(|word| word == "run" || word == "exec-entrypoint");
    if runs { catamaran_operator::normalised(words) } else { words }
}

/// Prints the line of `helm-operator version`, as far as it means something here.
pub(crate) fn version() -> ExitCode {
    println!(
        "helm-operator version: \"v{}\", commit: \"{}\", kubernetes version: \"v1.36\", GOOS: \"{}\", GOARCH: \"{}\" (catamaran)",
        env!("CARGO_PKG_VERSION"),
        option_env!("CATAMARAN_COMMIT").unwrap_or("unknown"),
        std::env::consts::OS,
        architecture(),
    );
    ExitCode::SUCCESS
}

/// In Go's words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_call_it_runs() {
        let table = [
            ("catamaran run -leader-elect", "catamaran run --leader-elect"),
            ("catamaran template -x", "catamaran template -x"),
            (
                "/usr/local/bin/helm-operator run --watches-file=./watches.yaml --leader-elect",
                "/usr/local/bin/helm-operator run --watches-file=./watches.yaml --leader-elect",
            ),
            (
                "helm-operator exec-entrypoint helm --watches-file=/opt/helm/watches.yaml",
                "helm-operator exec-entrypoint helm --watches-file=/opt/helm/watches.yaml",
            ),
            ("helm-operator --leader-elect", "helm-operator run --leader-elect"),
            ("helm-operator", "helm-operator run"),
            (
                "/usr/local/bin/entrypoint -max-workers=2",
                "/usr/local/bin/entrypoint run --max-workers=2",
            ),
            ("helm-operator version", "helm-operator version"),
            ("helm-operator --help", "helm-operator --help"),
            ("helm-operator template x", "helm-operator template x"),
        ];
        for (line, expected) in table {
            let words = line.split(' ').map(OsString::from).collect();
            let found: Vec<_> =
                spelled_out(words).into_iter().map(|word| word.into_string().unwrap()).collect();
            assert_eq!(found.join(" "), expected);
        }
    }
}
