//! `catamaran test`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};
use catamaran_release::plan::hooks::{Event, order};
use catamaran_release::record::Hook;
use catamaran_release::{ActionOptions, Release};
use clap::Args;
use kube::api::LogParams;
use kube::core::Request;
use serde_json::Value;

use super::flags::{Format, WaitArgs};
use super::run_to_completion::Interruption;
use super::show::Shown;
use super::{missing, one, release_target::ReleaseTarget};
use crate::charts;
use crate::charts::flags::GlobalArgs;

/// Run the tests of a release, as `helm test` does
///
/// They run one after the other until one fails. Ctrl-C leaves the test that runs, and the same
/// command goes on with it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// The release's name
    #[arg(value_name = "RELEASE")]
    names: Vec<String>,
    /// Which tests: name=a,name=b, or all but those by !name=a
    #[arg(long, value_delimiter = ',', value_name = "FILTERS", help_heading = "Release")]
    filter: Vec<String>,
    /// Print what the tests' pods have printed
    #[arg(long, help_heading = "Output")]
    logs: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran test demo --logs
  catamaran test demo --filter name=demo-connects --timeout 1m";

/// The names of tests that are asked for.
#[derive(Debug, Default)]
struct Filter<'a> {
    only: Vec<&'a str>,
    not: Vec<&'a str>,
}

impl<'a> Filter<'a> {
    fn read(filters: &'a [String]) -> Self {
        let mut filter = Self::default();
        for text in filters {
            if let Some(name) = text.strip_prefix("name=") {
                filter.only.push(name);
            } else if let Some(rest) = text.strip_prefix('!')
                && let Some(name) = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix("name=")
            {
                filter.not.push(name);
            }
        }
        filter
    }

    fn takes(&self, hook: &Hook) -> bool {
        let name = hook.name.as_str();
        !self.not.contains(&name) && (self.only.is_empty() || self.only.contains(&name))
    }
}

pub(crate) fn run(args: &TestArgs) -> ExitCode {
    charts::print(|out| test(args, out))
}

fn test(args: &TestArgs, out: &mut impl Write) -> Result<()> {
    let name = one(&args.names, "test [RELEASE] [flags]")?;
    let site = ReleaseTarget::new(&args.global)?;
    let history = site.history(name)?;
    if history.is_empty() {
        return Err(missing());
    }
    let filter = Filter::read(&args.filter);
    // Logs are read before what has printed them is deleted.
    let action_options = ActionOptions { keep_tests: true, ..ActionOptions::default() };
    let (driver, until) = site.driver(action_options, args.wait.timeout());
    let owner = site.owner(&history)?;
    let mut known = Some(history);
    let tested = site.run_to_completion(&driver, until, async || {
        let mut history = match known.take() {
            Some(history) => history,
            None => driver.history(&site.namespace, name).await?,
        };
        let tested = driver.test(&mut history, |hook| filter.takes(hook), owner.as_ref()).await;
        Ok(tested.map(drop)?)
    });
    if let Err(stop @ (Interruption::Interrupted | Interruption::Overtaken(_))) = tested {
        return Err(stop.into());
    }
    let history = site.history(name)?;
    let release = history.newest().ok_or_else(missing)?;
    Shown { notes: false, ..Shown::new(release) }.print(Format::Table, out)?;
    let mut told = Ok(());
    if args.logs {
        writeln!(out)?;
        told = logs(&site, release, &filter, out);
    }
    let cleared = site.cluster.wait(driver.clear_tests(&history, |hook| filter.takes(hook)));
    match (tested, told) {
        (Err(stop), Err(error)) => Err(anyhow!("{stop}\n{error}")),
        (tested, told) => tested.map_err(Error::from).and(told).and(cleared.map_err(Error::from)),
    }
}

/// What the containers of the tests' pods have printed.
fn logs(
    site: &ReleaseTarget,
    release: &Release,
    filter: &Filter<'_>,
    out: &mut impl Write,
) -> Result<()> {
    for hook in order(&release.hooks, Event::Test).iter().filter_map(|it| release.hooks.get(*it)) {
        if hook.kind == "Pod" && filter.takes(hook) {
            logs_of(site, &hook.name, out)?;
        }
    }
    Ok(())
}

fn logs_of(site: &ReleaseTarget, pod: &str, out: &mut impl Write) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}/pods", site.namespace);
    let (pods, client) = (Request::new(path), site.cluster.client());
    let live: Value = site
        .cluster
        .wait(client.request(pods.get(pod, &kube::api::GetParams::default())?))
        .map_err(|error| anyhow!("unable to get pod {pod}: {error}"))?;
    let containers = ["/spec/initContainers", "/spec/containers"];
    let containers = containers.iter().filter_map(|path| live.pointer(path)?.as_array()).flatten();
    let mut faults = Vec::new();
    for container in containers.filter_map(|container| container.get("name")?.as_str()) {
        let params = LogParams { container: Some(container.to_owned()), ..LogParams::default() };
        match site.cluster.wait(client.request_text(pods.logs(pod, &params)?)) {
            Ok(text) => writeln!(out, "POD LOGS: {pod} ({container})\n{text}")?,
            Err(error) => faults
                .push(format!("unable to get logs for pod {pod}, container {container}: {error}")),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(anyhow!(faults.join("\n"))) }
}
