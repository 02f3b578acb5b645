//! `catamaran lint`: what may be wrong with charts, as `helm lint` says it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, bail};
use catamaran_chart::lint::{Options, Report, Severity, is_package, lint};
use catamaran_chart::{Budget, Profile, gopath};
use clap::Args;

use crate::charts;
use crate::charts::flags::{GlobalArgs, ProfileArgs, ValueArgs};
use crate::source::SourceArgs;

/// Look for mistakes in charts, as `helm lint` does
///
/// An [ERROR] will keep the chart from being installed, a [WARNING] goes against the conventions,
/// an [INFO] is worth knowing. Fails if there is an error in any of the charts.
#[derive(Args, Debug)]
#[command(disable_version_flag = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct LintArgs {
    /// Charts: folders, or packages that end in .tgz
    #[arg(value_name = "CHART")]
    places: Vec<String>,

    #[command(flatten)]
    values: ValueArgs,

    /// Fail on warnings too
    #[arg(long, help_heading = "Checks")]
    strict: bool,
    /// Lint the charts under charts/ too
    #[arg(long, help_heading = "Checks")]
    with_subcharts: bool,
    /// Do not check the values against values.schema.json
    #[arg(long, help_heading = "Checks")]
    skip_schema_validation: bool,
    #[command(flatten)]
    helm: ProfileArgs,

    /// The cluster's version that the chart sees, and that decides what is deprecated
    #[arg(long, value_name = "VERSION", help_heading = "Cluster")]
    kube_version: Option<String>,

    /// Print warnings and errors only
    #[arg(long, help_heading = "Output")]
    quiet: bool,

    #[command(flatten)]
    global: GlobalArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran lint ./chart
  catamaran lint --strict --quiet charts/*          for CI: silent if all is well
  catamaran lint ./chart -f production.yaml --kube-version 1.33";

/// Runs the command.
pub(crate) fn run(args: &LintArgs) -> ExitCode {
    charts::print(|out| lint_all(args, out))
}

fn lint_all(args: &LintArgs, out: &mut impl io::Write) -> Result<()> {
    let profile = args.helm.profile;
    let mut places = args.places.clone();
    if places.is_empty() {
        if profile == Profile::Helm43 {
            let usage = "lint PATH [flags]";
            return Err(charts::wrong_count("requires at least 1 argument", usage));
        }
        places.push(".".to_owned());
    }
    let kube_version = charts::kube_version(args.kube_version.as_deref(), profile)?;
    if args.with_subcharts {
        for place in places.clone() {
            subcharts(Path::new(&gopath::join(&place, "charts")), &mut places);
        }
    }
    let namespace = args.global.cluster.namespace();
    let finder = SourceArgs::default().finder(&args.global.files, profile);
    let mut values = charts::values(&args.values, &finder, profile)?;
    let options = Options {
        namespace: &namespace,
        kube_version: kube_version.as_ref(),
        skip_schema_validation: args.skip_schema_validation,
        profile,
        clock: SystemTime::now(),
        seed: catamaran_chart::fresh_seed(),
        budget: Budget::default(),
    };
    let (mut failed, mut found) = (0, 0);
    let mut text = String::new();
    for place in &places {
        let result = lint(place, &mut values, &options);
        for note in result.iter().flat_map(|report| &report.notes) {
            eprintln!("{note}");
        }
        let worst = worst(&result);
        found += usize::from(worst > Some(Severity::Info));
        let least = if args.strict { Severity::Warning } else { Severity::Error };
        failed += usize::from(worst >= Some(least));
        if !args.quiet || worst > Some(Severity::Info) {
            tell(&mut text, place, &result, args.quiet);
        }
    }
    out.write_all(text.as_bytes())?;
    let summary = format!("{} chart(s) linted, {failed} chart(s) failed", places.len());
    if failed > 0 {
        bail!(summary);
    }
    if !args.quiet || found > 0 {
        writeln!(out, "{summary}")?;
    }
    Ok(())
}

/// A chart that is none is an error.
fn worst(result: &Result<Report, String>) -> Option<Severity> {
    match result {
        Ok(report) => report.messages.iter().map(|message| message.severity).max(),
        Err(_) => Some(Severity::Error),
    }
}

fn tell(text: &mut String, place: &str, result: &Result<Report, String>, quiet: bool) {
    // Writing to a text does not fail.
    let _ = writeln!(text, "==> Linting {place}");
    match result {
        Err(error) => {
            let _ = writeln!(text, "Error {error}");
        }
        Ok(report) => {
            let least = if quiet { Severity::Warning } else { Severity::Info };
            for message in report.messages.iter().filter(|message| message.severity >= least) {
                let _ = writeln!(text, "{message}");
            }
        }
    }
    text.push('\n');
}

/// Charts at any depth below a folder, in the byte order of their paths; links are not followed.
fn subcharts(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == "Chart.yaml" {
            found.push(folder.display().to_string());
        } else if is_package(&name) {
            found.push(path.display().to_string());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            subcharts(&path, found);
        }
    }
}
