//! `catamaran uninstall`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use catamaran_release::{ActionOptions, History, RetainedObject, Status, Uninstalled, WhyKept};
use clap::Args;

use super::flags::{WaitArgs, cascade};
use super::run_to_completion::Interruption;
use super::{missing, release_target::ReleaseTarget};
use crate::charts;
use crate::charts::flags::GlobalArgs;

/// Uninstall releases, as `helm uninstall` does
///
/// Deletes what is still the release's own, each object after a fresh read and by its uid. Ctrl-C
/// leaves what was begun as it is, and the same command goes on with it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct UninstallArgs {
    /// The releases' names
    #[arg(value_name = "RELEASE_NAME")]
    names: Vec<String>,
    /// Keep the records: the release can be rolled back
    #[arg(long, help_heading = "Release")]
    keep_history: bool,
    /// What becomes of dependents, such as a Deployment's pods: background, foreground (deleted
    /// before it) or orphan (left)
    #[arg(long, default_value = "background", value_name = "HOW", help_heading = "Release")]
    cascade: String,
    /// A release that is not there is no error
    #[arg(long, help_heading = "Release")]
    ignore_not_found: bool,
    /// Run no hooks
    #[arg(long, help_heading = "Release")]
    no_hooks: bool,
    /// With --keep-history: what the history says, instead of helm's words
    #[arg(long, value_name = "TEXT", help_heading = "Release")]
    description: Option<String>,
    /// Do nothing
    #[arg(long, help_heading = "Release")]
    dry_run: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran uninstall demo -n team-a --wait
  catamaran uninstall demo --keep-history      so that `catamaran rollback demo` brings it back";

pub(crate) fn run(args: &UninstallArgs) -> ExitCode {
    charts::print(|out| {
        if args.names.is_empty() {
            let usage = "uninstall RELEASE_NAME [...] [flags]";
            return Err(charts::wrong_count("requires at least 1 argument", usage));
        }
        cascade(&args.cascade)?;
        let site = ReleaseTarget::new(&args.global)?;
        for name in &args.names {
            let kept = uninstall(args, &site, name)?;
            if !kept.is_empty() {
                writeln!(out, "{kept}")?;
            }
            writeln!(out, "release \"{name}\" uninstalled")?;
        }
        Ok(())
    })
}

/// Yields what is said of objects that were left.
fn uninstall(args: &UninstallArgs, site: &ReleaseTarget, name: &str) -> Result<String> {
    let history = site.history(name)?;
    let Some(newest) = history.newest() else {
        return match args.ignore_not_found {
            true => Ok(String::new()),
            false if args.dry_run => Err(missing()),
            false => bail!("uninstall: Release not loaded: {name}: {}", missing()),
        };
    };
    if newest.info.status == Status::Uninstalled && args.keep_history && !args.dry_run {
        bail!("the release named {name:?} is already deleted");
    }
    if args.dry_run {
        return Ok(to_be_kept(&history));
    }
    let action_options = ActionOptions {
        keep_history: args.keep_history,
        cascade: cascade(&args.cascade)?,
        no_hooks: args.no_hooks,
        description: args.description.clone(),
        wait: args.wait.what(false, false),
        ..ActionOptions::default()
    };
    let (driver, until) = site.driver(action_options, args.wait.timeout());
    let owner = site.owner(&history)?;
    let namespace = site.namespace.as_str();
    let mut known = Some(history);
    let done = site.run_to_completion(&driver, until, async || {
        let history = match known.take() {
            Some(history) => history,
            None => driver.history(namespace, name).await?,
        };
        driver.uninstall_from(history, owner.as_ref()).await.map_err(Interruption::from)
    })?;
    told(&done)
}

/// What is said of the objects that were left; an error if hooks failed after the release was gone.
fn told(done: &Uninstalled) -> Result<String> {
    let mut text = kept(
        done,
        |why| *why == WhyKept::Policy,
        |_| "These resources were kept due to the resource policy:".to_owned(),
    );
    let mut add = |more: String| {
        if !text.is_empty() && !more.is_empty() {
            text.push('\n');
        }
        text.push_str(&more);
    };
    add(kept(
        done,
        |why| matches!(why, WhyKept::UnknownPolicy(_)),
        |_| {
            "These resources were kept, as Helm does not know the value of their resource policy:"
                .to_owned()
        },
    ));
    add(kept(
        done,
        |why| matches!(why, WhyKept::NotOurs | WhyKept::Replaced | WhyKept::NoKind),
        |count| {
            format!(
                "{count} resource(s) were not deleted because they are not owned by this release:"
            )
        },
    ));
    add(kept(
        done,
        |why| *why == WhyKept::Forbidden,
        |count| format!("{count} resource(s) of a failed revision may not be read:"),
    ));
    match done.failed_hooks.as_slice() {
        [] => Ok(text),
        failed => Err(anyhow!(
            "uninstallation completed with {} error(s): {}",
            failed.len(),
            failed.join("; ")
        )),
    }
}

fn kept(
    done: &Uninstalled,
    which: impl Fn(&WhyKept) -> bool,
    heading: impl Fn(usize) -> String,
) -> String {
    let left: Vec<&RetainedObject> = done.kept.iter().filter(|kept| which(&kept.why)).collect();
    if left.is_empty() {
        return String::new();
    }
    let mut text = heading(left.len()) + "\n";
    for RetainedObject { id, why } in left {
        let value = match why {
            WhyKept::UnknownPolicy(value) => format!(": {value:?}"),
            _ => String::new(),
        };
        for part in ["[", &id.kind, "] ", &id.name, &value, "\n"] {
            text.push_str(part);
        }
    }
    text
}

/// What the manifest asks to keep.
fn to_be_kept(history: &History) -> String {
    use catamaran_release::objects::{is_kept, parse_manifest};
    let manifest = history.newest().map(|newest| newest.manifest.as_str()).unwrap_or_default();
    let objects = parse_manifest(manifest).unwrap_or_default();
    let mut text = String::new();
    for raw in objects.iter().filter(|raw| is_kept(&raw.object)) {
        let name = catamaran_cluster::apply::metadata_str(&raw.object, "name");
        for part in ["[", &raw.gvk.kind, "] ", name, "\n"] {
            text.push_str(part);
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("These resources were kept due to the resource policy:\n{text}")
}
