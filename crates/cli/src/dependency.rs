//! `catamaran dependency`: the charts that a chart needs, as `helm dependency` brings them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use catamaran_chart::Profile;
use catamaran_repository::{Dependencies, Finder, dependencies};
use clap::{Args, Subcommand};

use crate::charts;
use crate::charts::flags::{GlobalArgs, go_uint};
use crate::source::{SourceArgs, wait};

/// List, choose and fetch the charts that a chart needs
#[derive(Subcommand, Debug)]
#[allow(clippy::large_enum_variant, reason = "made once")]
pub(crate) enum DependencyCommand {
    /// Tell what Chart.yaml asks for, and what is in charts/
    #[command(visible_alias = "ls")]
    List {
        /// The chart's folder
        #[arg(default_value = ".", value_name = "CHART")]
        charts: Vec<PathBuf>,
        /// The most letters that a column has; 0 is no limit
        #[arg(long, default_value_t = 80, value_name = "N", value_parser = go_uint)]
        max_col_width: usize,
        #[command(flatten)]
        global: GlobalArgs,
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
    #[arg(default_value = ".", value_name = "CHART")]
    charts: Vec<PathBuf>,
    /// Take the cached indexes of repositories as they are
    #[arg(long)]
    skip_refresh: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

/// Runs the command.
pub(crate) fn run(command: &DependencyCommand) -> ExitCode {
    let result = match command {
        DependencyCommand::List { charts, max_col_width, .. } => list(charts, *max_col_width),
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

fn list(charts: &[PathBuf], widest: usize) -> Result<()> {
    let chart = only(charts, "dependency list CHART [flags]")?;
    Ok(io::stdout().write_all(dependencies::list(chart, widest)?.as_bytes())?)
}

fn fetch(args: &FetchArgs, choose: bool) -> Result<()> {
    let usage =
        if choose { "dependency update CHART [flags]" } else { "dependency build CHART [flags]" };
    let chart = only(&args.charts, usage)?;
    let finder = args.source.finder(&args.global.files, Profile::Helm43);
    let (mut out, mut pulled) = (io::stdout(), io::stdout());
    let dependencies = Dependencies::new(&finder, chart, args.skip_refresh, &mut out, &mut pulled);
    if choose {
        wait(dependencies.update())?;
    } else {
        wait(dependencies.build())?;
    }
    Ok(())
}

/// The one chart of a command, which need not be named.
fn only<'a>(charts: &'a [PathBuf], usage: &str) -> Result<&'a Path> {
    match charts {
        [chart] => Ok(chart),
        _ => Err(charts::wrong_count("accepts at most 1 argument", usage)),
    }
}

/// For a chart that is about to be rendered, `--dependency-update`. As in Helm, who signed what it
/// needs is not asked.
pub(crate) fn update(chart: &Path, finder: &Finder) -> Result<()> {
    let (mut out, mut pulled) = (io::stdout(), io::stderr());
    let finder = Finder { keyring: None, ..finder.clone() };
    wait(Dependencies::new(&finder, chart, false, &mut out, &mut pulled).update())
}
