//! `catamaran dependency`: the charts that a chart needs, as `helm dependency` brings them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use catamaran_chart::Profile;
use catamaran_repository::{Dependencies, Finder, dependencies};
use clap::{Args, Subcommand};

use crate::charts::flags::FilesArgs;
use crate::source::{SourceArgs, wait};

/// List, choose and fetch the charts that a chart needs
#[derive(Subcommand, Debug)]
pub(crate) enum DependencyCommand {
    /// Tell what Chart.yaml asks for, and what is in charts/
    #[command(visible_alias = "ls")]
    List {
        /// The chart's folder
        #[arg(default_value = ".")]
        chart: PathBuf,
    },
    /// Choose versions by Chart.yaml, fetch them into charts/, and write Chart.lock
    #[command(visible_alias = "up")]
    Update(FetchArgs),
    /// Fetch what Chart.lock says into charts/
    Build(FetchArgs),
}

#[derive(Args, Debug)]
#[command(disable_version_flag = true)]
pub(crate) struct FetchArgs {
    /// The chart's folder
    #[arg(default_value = ".")]
    chart: PathBuf,
    /// Take the cached indexes of repositories as they are
    #[arg(long)]
    skip_refresh: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    files: FilesArgs,
}

/// Runs the command.
pub(crate) fn run(command: &DependencyCommand) -> ExitCode {
    let result = match command {
        DependencyCommand::List { chart } => list(chart),
        DependencyCommand::Update(args) => fetch(args, true),
        DependencyCommand::Build(args) => fetch(args, false),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list(chart: &Path) -> Result<()> {
    Ok(io::stdout().write_all(dependencies::list(chart)?.as_bytes())?)
}

fn fetch(args: &FetchArgs, choose: bool) -> Result<()> {
    let finder = args.source.finder(&args.files, Profile::Helm43);
    let (mut out, mut pulled) = (io::stdout(), io::stdout());
    let dependencies =
        Dependencies::new(&finder, &args.chart, args.skip_refresh, &mut out, &mut pulled);
    if choose {
        wait(dependencies.update())?;
    } else {
        wait(dependencies.build())?;
    }
    Ok(())
}

/// For a chart that is about to be rendered, `--dependency-update`. As in Helm, who signed what it
/// needs is not asked.
pub(crate) fn update(chart: &Path, finder: &Finder) -> Result<()> {
    let (mut out, mut pulled) = (io::stdout(), io::stderr());
    let finder = Finder { keyring: None, ..finder.clone() };
    wait(Dependencies::new(&finder, chart, false, &mut out, &mut pulled).update())
}
