//! `catamaran rollback`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use catamaran_release::{ActionOptions, History, Status};
use clap::Args;

use super::flags::{DryRun, DryRunArgs, ForceArgs, JobArgs, RevisionArgs};
use super::release_target::ReleaseTarget;
use super::run_to_completion::Interruption;
use super::{check_description, missing};
use crate::charts;
use crate::charts::flags::GlobalArgs;

/// Bring an earlier revision of a release back, as `helm rollback` does
///
/// Makes a new revision with the objects, values and hooks of the earlier one; nothing is rendered.
/// Ctrl-C leaves what was begun as it is, and the same command goes on with it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RollbackArgs {
    /// The release's name, and the revision [default: the one before the newest]
    #[arg(value_name = "RELEASE [REVISION]")]
    places: Vec<String>,
    /// What the history says of the revision, instead of helm's words
    #[arg(long, value_name = "TEXT", help_heading = "Release")]
    description: Option<String>,
    #[command(flatten)]
    revision: RevisionArgs,
    /// Run no hooks
    #[arg(long, help_heading = "Release")]
    no_hooks: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    jobs: JobArgs,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran rollback demo          to what it was before
  catamaran rollback demo 3 --wait --timeout 2m";

pub(crate) fn run(args: &RollbackArgs) -> ExitCode {
    charts::print(|out| rollback(args, out))
}

fn rollback(args: &RollbackArgs, out: &mut impl Write) -> Result<()> {
    let (name, to) = match args.places.as_slice() {
        [] => {
            let usage = "rollback <RELEASE> [REVISION] [flags]";
            return Err(charts::wrong_count("requires at least 1 argument", usage));
        }
        [name] => (name, 0),
        [name, revision, ..] => (name, number(revision)?),
    };
    let force = args.force.force()?;
    check_description(args.description.as_deref())?;
    let mode = args.dry_run.mode()?;
    let site = ReleaseTarget::new(&args.global)?;
    let history = site.history(name)?;
    let to = target(&history, to)?;
    if mode == DryRun::No {
        let action_options = ActionOptions {
            description: args.description.clone().filter(|text| !text.is_empty()),
            no_hooks: args.no_hooks,
            force,
            method: args.force.method(history.newest().map(AsRef::as_ref))?,
            wait: args.jobs.wait.what(false, args.jobs.wait_for_jobs),
            ..ActionOptions::default()
        };
        let rolled = roll_back(
            &site,
            &history,
            to,
            action_options,
            args.jobs.wait.timeout(),
            args.revision.history_max,
        );
        if let (Err(Interruption::Failed(_)), true) = (&rolled, args.revision.cleanup_on_fail) {
            clean_up(&site, name)?;
        }
        rolled?;
    }
    Ok(writeln!(out, "Rollback was a success! Happy Helming!")?)
}

fn number(text: &str) -> Result<u32> {
    let number: i64 = text.parse().map_err(|_| {
        anyhow!(
            "could not convert revision to a number: strconv.Atoi: parsing {text:?}: invalid syntax"
        )
    })?;
    u32::try_from(number).map_err(|_| anyhow!("invalid release revision"))
}

/// The revision to go back to: that of a rollback that was begun, or the one before the newest,
/// unless one is named.
fn target(history: &History, named: u32) -> Result<u32> {
    let newest = history.newest().ok_or_else(missing)?;
    let begun = newest.info.status == Status::PendingRollback && history.interrupted().is_some();
    let to = match named {
        0 if begun => newest.info.rollback_revision,
        0 => newest.version.saturating_sub(1),
        named => named,
    };
    if history.revision(to).is_none() {
        bail!("release has no {to} version");
    }
    Ok(to)
}

/// Rolls back to a revision; goes on with that if it was begun.
pub(super) fn roll_back(
    site: &ReleaseTarget,
    history: &History,
    to: u32,
    action_options: ActionOptions,
    timeout: Duration,
    history_max: usize,
) -> Result<(), Interruption> {
    let (driver, until) = site.driver(action_options, timeout);
    let driver = driver.history_max(history_max);
    let (namespace, name) = (site.namespace.as_str(), history.name());
    // The revision that this makes, so that it is known again, by whatever its last answer was.
    let own = history.newest().map_or(1, |newest| {
        let begun = newest.info.status == Status::PendingRollback
            && newest.info.rollback_revision == to
            && history.interrupted().is_some();
        if begun { newest.version } else { newest.version + 1 }
    });
    let owner = site.owner(history)?;
    let mut known = Some(history.clone());
    site.run_to_completion(&driver, until, async || {
        let again = known.is_none();
        let history = match known.take() {
            Some(history) => history,
            None => driver.history(namespace, name).await?,
        };
        let status = history.revision(own).map(|record| &record.info.status);
        if again && status == Some(&Status::Deployed) {
            return Ok(());
        }
        if history.newest().is_none_or(|newest| newest.version > own) {
            return Err(Interruption::Overtaken(own));
        }
        driver.rollback(&history, Some(to), owner.as_ref()).await?;
        Ok(())
    })
}

/// Deletes what a failed rollback has created.
fn clean_up(site: &ReleaseTarget, name: &str) -> Result<()> {
    let history = site.history(name)?;
    let failed = history.newest().filter(|newest| newest.info.status == Status::Failed);
    let Some(failed) = failed else { return Ok(()) };
    let driver = site.cluster.driver();
    site.cluster.wait(driver.clean_up(&history, failed.version)).map_err(|error| {
        anyhow!(
            "an error occurred while cleaning up resources. original rollback error: unable to cleanup resources: {error}"
        )
    })?;
    Ok(())
}
