//! `catamaran upgrade`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use catamaran_release::plan::values::Reuse;
use catamaran_release::{History, Status};
use clap::Args;

use super::deploy::{DeployAction, Deployment, prefixed};
use super::flags::{ChartArgs, Format, RevisionArgs};
use crate::charts;

/// Upgrade a release to a chart and values, as `helm upgrade` does
///
/// Makes a new revision in any case. Values that the release has are kept if none are given; see
/// --reset-values, --reuse-values and --reset-then-reuse-values. Ctrl-C leaves what was begun as it
/// is, and the same command goes on with it.
#[derive(Args, Debug)]
#[command(disable_version_flag = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct UpgradeArgs {
    /// The release's name and the chart (a folder, a .tgz, repo/name, oci://…)
    #[arg(value_name = "RELEASE CHART")]
    places: Vec<String>,
    /// Install it if there is no release of this name
    #[arg(short, long, help_heading = "Release")]
    install: bool,
    #[command(flatten)]
    revision: RevisionArgs,
    /// Drop the values that the release has
    #[arg(long, help_heading = "Values")]
    reset_values: bool,
    /// Keep the values that the release has, and the defaults that its chart had, below those given
    #[arg(long, help_heading = "Values")]
    reuse_values: bool,
    /// Keep the values that the release has below those given, with the defaults of CHART
    #[arg(long, help_heading = "Values")]
    reset_then_reuse_values: bool,
    #[command(flatten)]
    chart: ChartArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran upgrade demo ./chart --set image.tag=v3 --reset-then-reuse-values
  catamaran upgrade --install demo ./chart -f production.yaml --wait --rollback-on-failure
  catamaran upgrade demo ./chart --dry-run=server -o yaml";

pub(crate) fn run(args: &UpgradeArgs) -> ExitCode {
    charts::print(|out| upgrade(args, out))
}

fn upgrade(args: &UpgradeArgs, out: &mut impl Write) -> Result<()> {
    let [name, place] = args.places.as_slice() else {
        let usage = "upgrade [RELEASE] [CHART] [flags]";
        return Err(charts::wrong_count("requires 2 arguments", usage));
    };
    let mode = args.chart.dry_run.mode()?;
    let doing = DeployAction::Upgrade;
    let mut deployment = Deployment::new(&args.chart, name.clone(), mode, doing)?;
    deployment.history_max = args.revision.history_max;
    deployment.cleanup = args.revision.cleanup_on_fail;
    deployment.reuse = match () {
        () if args.reset_values => Reuse::Reset,
        () if args.reuse_values => Reuse::Reuse,
        () if args.reset_then_reuse_values => Reuse::ResetThenReuse,
        () => Reuse::Unless,
    };
    let table = args.chart.output.output == Format::Table;
    let is_new = args.install && is_to_be_installed(deployment.history()?);
    deployment.open(place)?;
    if is_new {
        if table {
            writeln!(out, "Release {name:?} does not exist. Installing it now.")?;
        }
        deployment.doing = DeployAction::Install;
        charts::check_name(name, args.chart.rendering.profile())?;
        return deployment.run(out);
    }
    check_upgradable(name, &mut deployment).map_err(|error| prefixed("UPGRADE FAILED", error))?;
    if table {
        deployment.said = format!("Release {name:?} has been upgraded. Happy Helming!\n");
    }
    deployment.run(out).map_err(|error| prefixed("UPGRADE FAILED", error))
}

fn is_to_be_installed(history: &History) -> bool {
    history.newest().is_none_or(|newest| newest.info.status == Status::Uninstalled)
}

fn check_upgradable(name: &str, deployment: &mut Deployment<'_>) -> Result<()> {
    let history = deployment.history()?;
    match history.newest().map(|newest| &newest.info.status) {
        None | Some(Status::Uninstalled) => Err(anyhow!("{name:?} has no deployed releases")),
        Some(Status::Uninstalling) => bail!(
            "{name:?} has no deployed releases: it is being uninstalled, and \"catamaran uninstall {name}\" goes on with that"
        ),
        Some(_) => Ok(()),
    }
}
