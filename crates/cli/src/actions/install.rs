//! `catamaran install`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, anyhow, bail};
use catamaran_release::{History, Status};
use clap::Args;

use super::deploy::{DeployAction, Deployment, prefixed};
use super::flags::{ChartArgs, DryRun};
use crate::charts::{self, cluster};

/// Install a chart as a release, as `helm install` does
///
/// The release is helm's own: the helm CLI lists, upgrades and uninstalls it. Objects are applied
/// server-side. Ctrl-C leaves what was begun as it is, and the same command goes on with it.
#[derive(Args, Debug)]
#[command(disable_version_flag = true, after_help = EXAMPLES)]
pub(crate) struct InstallArgs {
    /// The release's name and the chart (a folder, a .tgz, repo/name, oci://…); or the chart alone
    #[arg(value_name = "[NAME] CHART")]
    places: Vec<String>,
    /// Make up a name from the chart's and the time
    #[arg(short, long, help_heading = "Release")]
    generate_name: bool,
    /// A template that makes the release's name
    #[arg(long, value_name = "TEMPLATE", help_heading = "Release")]
    name_template: Option<String>,
    /// Take a name whose release failed, or was uninstalled with its history kept
    #[arg(long, help_heading = "Release")]
    replace: bool,
    #[command(flatten)]
    chart: ChartArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran install demo ./chart -n team-a --create-namespace
  catamaran install demo ./chart -f production.yaml --set image.tag=v2 --wait
  catamaran install demo repo/chart --version ^1.2 --rollback-on-failure --timeout 2m
  catamaran install demo ./chart --dry-run=server      what would be done, and whether it may be
  catamaran install -g ./chart -o json | jq .name";

pub(crate) fn run(args: &InstallArgs) -> ExitCode {
    charts::print(|out| {
        if args.places.is_empty() {
            let usage = "install [NAME] [CHART] [flags]";
            return Err(charts::wrong_count("requires at least 1 argument", usage));
        }
        let mode = args.chart.dry_run.mode()?;
        install(args, mode, out).map_err(|error| prefixed("INSTALLATION FAILED", error))
    })
}

fn install(args: &InstallArgs, mode: DryRun, out: &mut impl Write) -> Result<()> {
    let (name, place) = name_and_chart(args)?;
    let mut deployment = Deployment::new(&args.chart, name, mode, DeployAction::Install)?;
    deployment.open(&place)?;
    charts::check_name(&deployment.name, args.chart.rendering.profile())?;
    let history = deployment.history().map_err(cluster::checked)?;
    if mode == DryRun::No {
        check_available(history, args.replace)?;
    }
    deployment.run(out)
}

/// Whether the name is free; one of ours whose install was cut short is, to go on with it.
fn check_available(history: &History, replace: bool) -> Result<()> {
    let Some(newest) = history.newest() else { return Ok(()) };
    let status = &newest.info.status;
    let resumable = *status == Status::PendingInstall && history.interrupted().is_some();
    let replaceable = replace && matches!(status, Status::Uninstalled | Status::Failed);
    if resumable || replaceable {
        return Ok(());
    }
    bail!("release name check failed: cannot reuse a name that is still in use")
}

fn name_and_chart(args: &InstallArgs) -> Result<(String, String)> {
    let template = args.name_template.as_deref().filter(|text| !text.is_empty());
    match args.places.as_slice() {
        [_, _] if args.generate_name => {
            bail!("cannot set --generate-name and also specify a name")
        }
        [_, _] if template.is_some() => {
            bail!("cannot set --name-template and also specify a name")
        }
        [name, chart] => Ok((name.clone(), chart.clone())),
        [chart] => match template {
            Some(template) => Ok((charts::made_name(template)?, chart.clone())),
            None if args.generate_name => Ok((generated(chart), chart.clone())),
            None => bail!("must either provide a name or specify --generate-name"),
        },
        [_, _, more @ ..] => {
            bail!("expected at most two arguments, unexpected arguments: {}", more.join(", "))
        }
        [] => Err(anyhow!("there is no chart")),
    }
}

/// The chart's last path element without what follows a dot, and the time.
fn generated(chart: &str) -> String {
    let base = Path::new(chart).file_name().and_then(|name| name.to_str()).unwrap_or("chart");
    let base = base.split('.').next().unwrap_or_default();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{base}-{}", since.as_secs())
}
