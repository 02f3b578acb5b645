//! Flags that several actions have in common.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use catamaran_release::apply::DEFAULT_HISTORY;
use catamaran_release::{ApplyMethod, Cascade, CrdPolicy, Force, Release, WaitStrategy};
use catamaran_sprig::parse_duration;
use clap::Args;

use crate::charts::flags::{ValueArgs, go_bool, go_number};
use crate::charts::rendering::RenderingArgs;
use crate::charts::slices::Pairs;

/// Labels that Helm keeps for itself.
const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];
/// What helm waits if it is told not to.
const LEAST: Duration = Duration::from_secs(30);

/// How long, and what for.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Waiting")]
pub(crate) struct WaitArgs {
    /// Wait until all objects do their work (or are gone, at an uninstall), and fail if they do not
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "watcher",
        hide_default_value = true,
        value_name = "HOW",
        value_parser = strategy
    )]
    wait: Option<bool>,
    /// How long all waiting may take together, hooks included
    #[arg(
        long,
        default_value = "5m0s",
        value_name = "DURATION",
        value_parser = timeout
    )]
    timeout: Duration,
}

/// What comes with waiting where there may be Jobs.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Waiting")]
pub(crate) struct JobArgs {
    #[command(flatten)]
    pub wait: WaitArgs,
    /// With --wait: Jobs have to be complete
    #[arg(long)]
    pub wait_for_jobs: bool,
}

impl WaitArgs {
    /// How long all waiting may take together.
    pub(crate) fn timeout(&self) -> Duration {
        if self.timeout.is_zero() { LEAST } else { self.timeout }
    }

    /// What is waited for; `always` where another flag asks for it too.
    pub(crate) fn what(&self, always: bool, jobs: bool) -> WaitStrategy {
        match self.wait.unwrap_or_default() || always {
            true if jobs => WaitStrategy::Jobs,
            true => WaitStrategy::Objects,
            false => WaitStrategy::No,
        }
    }
}

/// Ours waits by watching in any case; helm's other ways are taken as the wish to wait, or not to.
fn strategy(text: &str) -> Result<bool, String> {
    match text {
        "watcher" | "legacy" => Ok(true),
        "hookOnly" => Ok(false),
        other => go_bool(other).map_err(|_| wrong_strategy(other)),
    }
}

/// What Helm 4 says of a way to wait that it does not know.
pub(crate) fn wrong_strategy(text: &str) -> String {
    format!("invalid wait input {text:?}. Valid inputs are watcher, hookOnly, and legacy")
}

/// How long to wait at most, as Go writes it. What is over before it begins is over at once.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    let negative = text.strip_prefix('-').filter(|rest| !rest.starts_with('+'));
    match negative.and_then(|rest| parse_duration(rest).ok()) {
        Some(before) => Ok(before.min(Duration::from_nanos(1))),
        None => parse_duration(text),
    }
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

#[derive(Args, Debug, Default)]
pub(crate) struct OutputArgs {
    /// The form of what is printed: table, json or yaml
    #[arg(
        short,
        long,
        default_value = "table",
        value_name = "FORMAT",
        help_heading = "Output",
        value_parser = format
    )]
    pub output: Format,
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "table" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        "yaml" => Ok(Format::Yaml),
        _ => Err("invalid format type".to_owned()),
    }
}

/// Whether, and how, an action is only shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DryRun {
    /// It is carried out.
    #[default]
    No,
    /// What would be done, as far as that is known without the objects of the cluster.
    Client,
    /// The cluster is asked for what it can do and what is there.
    Server,
}

#[derive(Args, Debug, Default)]
pub(crate) struct DryRunArgs {
    /// Show what would be done and do nothing: client, or server, which looks at what is there
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "unset",
        value_name = "WHERE",
        help_heading = "Release"
    )]
    dry_run: Option<String>,
}

impl DryRunArgs {
    /// What the flag means; warns as helm does.
    pub(crate) fn mode(&self) -> Result<DryRun> {
        let warn = |text: &str| eprintln!("level=WARN msg={text:?}");
        match self.dry_run.as_deref() {
            None | Some("none") => Ok(DryRun::No),
            Some("client") => Ok(DryRun::Client),
            Some("server") => Ok(DryRun::Server),
            Some("unset") => {
                warn("--dry-run is deprecated and should be replaced with '--dry-run=client'");
                Ok(DryRun::Client)
            }
            Some(value) => {
                let asked = go_bool(value).map_err(|_| {
                    anyhow!(
                        "invalid dry-run value ({value:?}). Must be \"none\", \"server\", or \"client\""
                    )
                })?;
                let (mode, word) =
                    if asked { (DryRun::Client, "client") } else { (DryRun::No, "none") };
                warn(&format!(
                    "boolean '--dry-run={value}' flag is deprecated and must be replaced with '--dry-run={word}'"
                ));
                Ok(mode)
            }
        }
    }
}

/// What becomes of an action that fails.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Release")]
pub(crate) struct FailureArgs {
    /// If it fails, take it back: uninstall after an install, roll back after an upgrade; waits as
    /// with --wait
    #[arg(long)]
    rollback_on_failure: bool,
    #[arg(long, hide = true)]
    atomic: bool,
}

impl FailureArgs {
    /// Whether a failed action is taken back.
    pub(crate) fn takes_back(&self) -> bool {
        self.rollback_on_failure || self.atomic
    }
}

/// `HELM_MAX_HISTORY`, if it is a number, or what Helm keeps.
fn history_max() -> usize {
    let asked = env::var("HELM_MAX_HISTORY").ok();
    asked.and_then(|text| go_number(&text).ok()).unwrap_or(DEFAULT_HISTORY)
}

/// What comes with a revision that takes the place of another.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Release")]
pub(crate) struct RevisionArgs {
    /// If it fails, delete the objects that it has created
    #[arg(long)]
    pub cleanup_on_fail: bool,
    /// How many revisions are kept; 0 is all
    #[arg(long, default_value_t = history_max(), value_name = "N", value_parser = go_number)]
    pub history_max: usize,
}

/// What an install and an upgrade have in common.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct ChartArgs {
    #[command(flatten)]
    pub values: ValueArgs,

    #[command(flatten)]
    pub jobs: JobArgs,
    #[command(flatten)]
    pub failure: FailureArgs,
    #[command(flatten)]
    pub dry_run: DryRunArgs,
    /// Create the release's namespace if there is none (at an upgrade: with --install)
    #[arg(long, help_heading = "Release")]
    pub create_namespace: bool,
    /// What the history says of the revision, instead of helm's words
    #[arg(long, value_name = "TEXT", help_heading = "Release")]
    pub description: Option<String>,
    /// Labels of the release's record: key=value,...; an upgrade takes one away by key=null
    #[arg(short, long, value_name = "LABELS", help_heading = "Release")]
    pub labels: Vec<Pairs>,
    /// Keep the whole chart in the record, as helm does, and not only what is needed of it
    #[arg(long, help_heading = "Release")]
    pub full_record: bool,
    /// Run no hooks
    #[arg(long, help_heading = "Release")]
    pub no_hooks: bool,
    /// Leave the definitions of crds/ alone: --crds=skip
    #[arg(long, help_heading = "Release")]
    skip_crds: bool,
    /// What becomes of the definitions of crds/: skip, create (where there are none) or create-replace
    /// (the same, and those that are there become the chart's, unless a version would go in which
    /// objects are stored)
    #[arg(long, default_value = "create", value_name = "POLICY", help_heading = "Release")]
    crds: CrdPolicy,
    /// Take over objects that are there already, whoever made them
    #[arg(long, help_heading = "Release")]
    pub take_ownership: bool,
    /// Let `getHostByName` ask for addresses; it finds nothing otherwise
    #[arg(long, help_heading = "Cluster")]
    pub enable_dns: bool,

    #[command(flatten)]
    pub output: OutputArgs,
    /// Do not print the chart's notes
    #[arg(long, help_heading = "Output")]
    pub hide_notes: bool,
    /// With --dry-run: leave Secrets out of what is printed
    #[arg(long, help_heading = "Output")]
    pub hide_secret: bool,

    #[command(flatten)]
    pub rendering: RenderingArgs,
    #[command(flatten)]
    pub force: ForceArgs,
    #[arg(long, hide = true)]
    pub disable_openapi_validation: bool,
    /// Print, and record, the notes of subcharts, too
    #[arg(long, help_heading = "Output")]
    pub render_subchart_notes: bool,
}

/// How objects are written: over conflicts, always.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Release")]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct ForceArgs {
    /// Replace objects instead of applying them: what the chart does not say is gone
    #[arg(long)]
    force_replace: bool,
    /// Delete objects and create them anew where a field would have to change that never does
    #[arg(long)]
    recreate_on_immutable: bool,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    force_conflicts: bool,
    /// Who merges: true (the API server), false (this command, as Helm 3 does), auto (whoever did for
    /// the release so far; the API server for a new one)
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_value = "auto",
        hide_default_value = true,
        default_missing_value = "true",
        value_name = "HOW"
    )]
    server_side: String,
}

impl ForceArgs {
    /// Who merges; `newest` is the revision that there is already.
    pub(crate) fn method(&self, newest: Option<&Release>) -> Result<ApplyMethod> {
        match (self.server_side.as_str(), newest) {
            ("auto", Some(newest)) => Ok(ApplyMethod::of(newest)),
            ("auto", None) => Ok(ApplyMethod::Server),
            (text, _) => match go_bool(text) {
                Ok(true) => Ok(ApplyMethod::Server),
                Ok(false) => Ok(ApplyMethod::Client),
                Err(_) => bail!("invalid/unknown release server-side apply method: {text}"),
            },
        }
    }

    /// How objects are written; refuses what excludes each other.
    pub(crate) fn force(&self) -> Result<Force> {
        let replace = self.force || self.force_replace;
        match (replace, self.recreate_on_immutable) {
            (true, _) if self.force_conflicts => bail!(
                "if any flags in the group [force-replace force-conflicts] are set none of the others can be; [force-conflicts force-replace] were all set"
            ),
            (true, true) => bail!("--force-replace and --recreate-on-immutable exclude each other"),
            (true, false) => Ok(Force::Replace),
            (false, true) => Ok(Force::Recreate),
            (false, false) => Ok(Force::No),
        }
    }
}

impl ChartArgs {
    /// Refuses what cannot be done as asked.
    pub(crate) fn check(&self) -> Result<()> {
        self.force.method(None)?;
        self.force.force().map(drop)
    }

    /// What becomes of the definitions of `crds/`.
    pub(crate) fn definitions(&self) -> CrdPolicy {
        if self.skip_crds { CrdPolicy::Skip } else { self.crds }
    }

    /// The labels of `--labels`; `None` takes one away.
    pub(crate) fn labels(&self, is_upgrade: bool) -> Result<BTreeMap<String, Option<String>>> {
        let mut labels = BTreeMap::new();
        for (key, value) in self.labels.iter().flat_map(|pairs| &pairs.0) {
            let value = Some(value.clone()).filter(|value| !is_upgrade || value != "null");
            labels.insert(key.clone(), value);
        }
        if labels.keys().any(|key| SYSTEM_LABELS.contains(&key.as_str())) {
            bail!(
                "user supplied labels contains system reserved label name. System labels: [{}]",
                SYSTEM_LABELS.join(" ")
            );
        }
        Ok(labels)
    }
}

/// Which way dependents go.
pub(crate) fn cascade(text: &str) -> Result<Cascade> {
    match text {
        "background" => Ok(Cascade::Background),
        "foreground" => Ok(Cascade::Foreground),
        "orphan" => Ok(Cascade::Orphan),
        _ => bail!(
            "invalid cascade value ({text}). Must be \"background\", \"foreground\", or \"orphan\""
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_in_go() {
        for (text, expected) in [
            ("5m0s", Ok(Duration::from_mins(5))),
            ("1h2m3.5s", Ok(Duration::from_millis(3_723_500))),
            ("300ms", Ok(Duration::from_millis(300))),
            ("0", Ok(Duration::ZERO)),
            ("x", Err("time: invalid duration \"x\"".to_owned())),
            ("", Err("time: invalid duration \"\"".to_owned())),
            ("5", Err("time: missing unit in duration \"5\"".to_owned())),
            ("-1s", Err("time: invalid duration \"-1s\"".to_owned())),
            ("5d", Err("time: unknown unit \"d\" in duration \"5d\"".to_owned())),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }
}
