//! What an install and an upgrade have in common: from a chart to a deployed revision.

use std::io::Write;
use std::time::{Duration, SystemTime};

use anyhow::{Error, Result, anyhow, bail};
use catamaran_chart::{
    Capabilities, Chart, CompiledChart, Lookups, RandomOverrides, ReleaseFacts, RenderInput,
    Rendered, fresh_seed,
};
use catamaran_release::plan::values::{Chosen, Reuse, choose};
use catamaran_release::plan::{
    TargetRevision, another_time, is_same_but_generated, kept_random_texts,
};
use catamaran_release::{
    Action, ActionOptions, ApplyMethod, CrdPolicy, DesiredState, Driver, Error as ReleaseError,
    History, Release, RetainedObject, Status, WhyKept,
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::flags::{ChartArgs, DryRun};
use super::release_target::ReleaseTarget;
use super::run_to_completion::Interruption;
use super::show::{DRY, Shown, hide_secrets};
use crate::charts::{self, cluster};
use crate::explain::{Explained, Style};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeployAction {
    Install,
    Upgrade,
}

/// An install or an upgrade.
pub(super) struct Deployment<'a> {
    args: &'a ChartArgs,
    pub(super) name: String,
    pub(super) doing: DeployAction,
    pub(super) reuse: Reuse,
    pub(super) history_max: usize,
    pub(super) cleanup: bool,
    /// What is printed first once it is done.
    pub(super) said: String,
    mode: DryRun,
    chart: Chart,
    given: Map<String, Value>,
    /// Absent where no cluster is asked, and before one is.
    site: Option<ReleaseTarget>,
    history: Option<History>,
}

/// What was rendered, for which revision.
struct DesiredRevision {
    facts: ReleaseFacts,
    rendered: Rendered,
    /// Whether the record of a begun revision stands instead of what was rendered now.
    drawn: bool,
}

impl<'a> Deployment<'a> {
    pub(super) fn new(
        args: &'a ChartArgs,
        name: String,
        mode: DryRun,
        doing: DeployAction,
    ) -> Result<Self> {
        args.check()?;
        if args.hide_secret && mode == DryRun::No {
            bail!("hiding Kubernetes secrets requires a dry-run mode");
        }
        let (reuse, history_max) = (Reuse::Unless, catamaran_release::apply::DEFAULT_HISTORY);
        Ok(Self {
            args,
            name,
            doing,
            reuse,
            history_max,
            cleanup: false,
            said: String::new(),
            mode,
            chart: Chart::default(),
            given: Map::new(),
            site: None,
            history: None,
        })
    }

    /// Finds and loads the chart, and reads the values. As in helm, what is wrong with them is told
    /// before a cluster is asked, but by `upgrade --install`.
    pub(super) fn open(&mut self, place: &str) -> Result<()> {
        let rendering = &self.args.rendering;
        let (finder, path) = rendering.locate(place)?;
        self.given = charts::values(&self.args.values, &finder, rendering.profile())?;
        self.chart = rendering.open(&path, &finder, Chart::load)?;
        if self.doing == DeployAction::Install && self.chart.is_library() {
            bail!("library charts are not installable");
        }
        Ok(())
    }

    /// The release's records, read once.
    pub(super) fn history(&mut self) -> Result<&History> {
        if self.history.is_none() {
            let global = &self.args.rendering.global;
            self.history =
                Some(if self.mode == DryRun::Client && self.doing == DeployAction::Install {
                    History::empty(&global.cluster.namespace(), &self.name, Timestamp::now())
                } else {
                    self.site.insert(ReleaseTarget::new(global)?).history(&self.name)?
                });
        }
        self.history.as_ref().ok_or_else(|| anyhow!("there is no history"))
    }

    /// Carries it out, or shows it.
    pub(super) fn run(mut self, out: &mut impl Write) -> Result<()> {
        let profile = self.args.rendering.profile();
        let history = self.history()?.clone();
        let base = if self.doing == DeployAction::Upgrade { history.base() } else { None };
        let given = std::mem::take(&mut self.given);
        let chosen = choose(self.reuse, base, given, profile).map_err(|why| anyhow!(why))?;
        let chart = self.compile(&chosen)?;
        self.define(&chart)?;
        let wish = self.wish(&history, &chart, &chosen.config, out)?;
        charts::warn(&wish.rendered.warnings);
        let labels = self.args.labels(self.doing == DeployAction::Upgrade)?;
        let desired = DesiredState::new(chart.chart(), &chosen.config, &wish.rendered, &wish.facts)
            .labelled(&labels)
            .of_any_chart();
        if self.mode != DryRun::No {
            let record = self.preview(&history, &desired)?;
            out.write_all(self.said.as_bytes())?;
            return self.print(&record, out);
        }
        let site = self.site()?;
        let resumes = history.newest().is_some_and(|it| it.version == wish.facts.revision);
        if !resumes {
            self.preview(&history, &desired)?;
        }
        if self.doing == DeployAction::Install && self.args.create_namespace {
            site.create_namespace()?;
        }
        let owner = site.owner(&history)?;
        let desired = owner.as_ref().map_or(desired, |owner| desired.owned_by(owner));
        let (driver, until) = site.driver(self.action_options(), self.args.jobs.wait.timeout());
        let driver = driver.history_max(self.history_max);
        let record = match drive(site, &driver, until, history, &desired, wish.drawn) {
            Ok(record) => record,
            Err(stop) => return Err(self.failed(site, wish.facts.revision, stop)),
        };
        out.write_all(self.said.as_bytes())?;
        self.print(&record, out)
    }

    fn site(&self) -> Result<&ReleaseTarget> {
        self.site.as_ref().ok_or_else(|| anyhow!("there is no cluster"))
    }

    /// Who merges, by the flags and by what the release's last revision says.
    fn method(&self) -> ApplyMethod {
        let newest = self.history.as_ref().and_then(History::newest);
        let newest = newest.filter(|_| self.doing == DeployAction::Upgrade);
        self.args.force.method(newest.map(AsRef::as_ref)).unwrap_or_default() // checked at the beginning
    }

    fn action_options(&self) -> ActionOptions {
        let args = self.args;
        let wait = args.jobs.wait.what(args.failure.takes_back(), args.jobs.wait_for_jobs);
        ActionOptions {
            description: args.description.clone().filter(|text| !text.is_empty()),
            full_record: args.full_record,
            no_hooks: args.no_hooks,
            crds: args.definitions(),
            method: self.method(),
            take_ownership: args.take_ownership,
            force: args.force.force().unwrap_or_default(), // checked at the beginning
            wait,
            ..ActionOptions::default()
        }
    }

    /// The chart, with the defaults that were chosen.
    fn compile(&mut self, chosen: &Chosen) -> Result<CompiledChart> {
        let rendering = &self.args.rendering;
        let steps = rendering.post_renderer.steps(rendering.profile())?;
        let mut chart = std::mem::take(&mut self.chart);
        if let Some(defaults) = &chosen.defaults {
            chart.values.clone_from(defaults);
            chart.more_values.clear();
        }
        Ok(rendering.compile(chart)?.with_post_renderers(steps))
    }

    /// Sees to the definitions of `crds/`, before anything is rendered: what the cluster serves is one
    /// of a rendering's inputs.
    fn define(&self, chart: &CompiledChart) -> Result<()> {
        if self.args.definitions() == CrdPolicy::Skip
            || self.mode == DryRun::Client
            || chart.chart().crds().is_empty()
        {
            return Ok(());
        }
        if self.mode == DryRun::Server {
            eprintln!(
                "level=WARN msg=\"This chart or one of its subcharts contains CRDs. Rendering may fail or contain inaccuracies.\""
            );
            let site = self.site()?;
            let driver = site.cluster.driver().options(self.action_options());
            return Ok(site
                .cluster
                .wait(driver.preview_crds(chart.chart()))
                .map_err(Interruption::from)?);
        }
        let site = self.site()?;
        let (driver, until) = site.driver(self.action_options(), self.args.jobs.wait.timeout());
        let defined = site.run_to_completion(&driver, until, async || {
            driver.crds(chart.chart()).await.map_err(Interruption::from)
        });
        Ok(defined?)
    }

    /// Renders for the revision that is due: the one that an earlier call has begun for the same, or
    /// the next.
    fn wish(
        &self,
        history: &History,
        chart: &CompiledChart,
        config: &Map<String, Value>,
        out: &mut impl Write,
    ) -> Result<DesiredRevision> {
        if let Some(facts) = self.begun(history, chart, config) {
            let (clock, none) = (SystemTime::now(), RandomOverrides::default());
            let mut render = |clock, random: &RandomOverrides| {
                self.render(chart, config, &facts, (clock, random), out)
            };
            let mut rendered = render(clock, &none)?;
            let newest = history.newest();
            let kept = newest.map(|newest| kept_random_texts(newest, &rendered, fresh_seed()));
            let kept = kept.unwrap_or_default();
            if !kept.is_empty() {
                rendered = render(clock, &kept)?;
            }
            let desired =
                DesiredState::new(chart.chart(), config, &rendered, &facts).of_any_chart();
            let is_same = history.decide(&desired)? == Action::Resume;
            // What still differs may be what the chart generates anew each time.
            let drawn = match newest.filter(|_| !is_same) {
                Some(newest) => {
                    let other = render(another_time(clock), &kept)?;
                    is_same_but_generated(newest, &rendered, &other)
                }
                None => false,
            };
            if is_same || drawn {
                eprintln!("going on with revision {}, which was begun earlier", facts.revision);
                return Ok(DesiredRevision { facts, rendered, drawn });
            }
        }
        let facts = history.next_facts();
        let random = (SystemTime::now(), &RandomOverrides::default());
        let rendered = self.render(chart, config, &facts, random, out)?;
        Ok(DesiredRevision { facts, rendered, drawn: false })
    }

    /// What the newest revision was rendered with, if it was begun, by the same wish, and not ended.
    fn begun(
        &self,
        history: &History,
        chart: &CompiledChart,
        config: &Map<String, Value>,
    ) -> Option<ReleaseFacts> {
        let newest = history.interrupted().filter(|newest| newest.info.status.is_pending())?;
        let metadata = chart.metadata();
        let same = newest.info.status != Status::PendingRollback
            && (newest.chart_name(), newest.chart_version())
                == (&*metadata.name, &*metadata.version)
            && newest.config == *config;
        (same && self.mode == DryRun::No).then(|| history.current_facts())
    }

    fn render(
        &self,
        chart: &CompiledChart,
        config: &Map<String, Value>,
        facts: &ReleaseFacts,
        (clock, random_overrides): (SystemTime, &RandomOverrides),
        out: &mut impl Write,
    ) -> Result<Rendered> {
        let profile = self.args.rendering.profile();
        let cluster = match self.mode {
            DryRun::Client => None,
            DryRun::No | DryRun::Server => self.site.as_ref().map(|site| &site.cluster),
        };
        let capabilities = match cluster {
            Some(cluster) => cluster.capabilities()?,
            None => Capabilities::offline(profile),
        };
        let lookups = if cluster.is_some() { Lookups::online() } else { Lookups::offline() };
        let input = RenderInput {
            values: config,
            release: facts,
            capabilities: &capabilities,
            profile,
            lookups: &if self.args.enable_dns { lookups.with_hosts() } else { lookups },
            clock,
            seed: fresh_seed(),
            random_overrides: Some(random_overrides),
            budget: self.args.rendering.render_limits,
        };
        match cluster::render(chart, &input, cluster)? {
            Ok(rendered) if self.args.render_subchart_notes => Ok(rendered.with_subchart_notes()),
            Ok(rendered) => Ok(rendered),
            Err(error) => {
                charts::warn(&chart.warnings(&input));
                let text = charts::failed(&self.args.rendering.global, profile, &error, out)?;
                let style = Style::of(&self.args.rendering.global);
                Err(style.explain(text, &error, chart.chart(), &self.args.values))
            }
        }
    }

    /// The record that it would begin with; an error if it would be refused.
    fn preview(&self, history: &History, desired: &DesiredState<'_>) -> Result<Release> {
        let mut record = if let (Some(site), false) = (&self.site, self.mode == DryRun::Client) {
            let driver = site.cluster.driver().options(self.action_options());
            let looked = site.cluster.wait(driver.preview(history, desired));
            looked.map_err(|error| self.refused(error))?
        } else {
            let action = history.decide(desired)?;
            TargetRevision::new(history, desired, &action, Timestamp::now()).record
        };
        record.info.description = match &self.args.description {
            Some(text) if self.doing == DeployAction::Upgrade && !text.is_empty() => text.clone(),
            _ => DRY.to_owned(),
        };
        self.method().as_str().clone_into(&mut record.apply_method);
        if self.args.hide_secret {
            hide_secrets(&mut record);
        }
        Ok(record)
    }

    /// What stands in the way before anything was written.
    fn refused(&self, error: ReleaseError) -> Error {
        let what = match self.doing {
            DeployAction::Install => "install",
            DeployAction::Upgrade => "update",
        };
        match error {
            ReleaseError::Ownership { .. } => anyhow!("unable to continue with {what}: {error}"),
            error => Interruption::from(error).into(),
        }
    }

    fn print(&self, record: &Release, out: &mut impl Write) -> Result<()> {
        let shown = Shown { notes: !self.args.hide_notes, ..Shown::new(record) };
        shown.print(self.args.output.output, out)
    }

    /// What is done, and said, about a revision that failed.
    fn failed(&self, site: &ReleaseTarget, revision: u32, stop: Interruption) -> Error {
        if !matches!(stop, Interruption::Failed(_)) {
            return stop.into();
        }
        let timeout = self.args.jobs.wait.timeout();
        let begun = site.history(&self.name).ok().filter(|history| {
            history.revision(revision).is_some_and(|record| {
                matches!(record.info.status, Status::Failed) || record.info.status.is_pending()
            })
        });
        let Some(history) = begun else { return stop.into() };
        if self.cleanup {
            let driver = site.cluster.driver();
            if let Err(error) = site.cluster.wait(driver.clean_up(&history, revision)) {
                return anyhow!(
                    "an error occurred while cleaning up resources. original upgrade error: {stop}: unable to cleanup resources: {error}"
                );
            }
        }
        if !self.args.failure.takes_back() {
            return stop.into();
        }
        match self.doing {
            DeployAction::Install => self.take_away(site, timeout, &stop),
            DeployAction::Upgrade => self.take_back(site, &history, timeout, &stop),
        }
    }

    /// A failed install is uninstalled.
    fn take_away(&self, site: &ReleaseTarget, timeout: Duration, stop: &Interruption) -> Error {
        let (driver, until) = site.driver(self.action_options(), timeout);
        let gone = site.run_to_completion(&driver, until, async || {
            driver.uninstall(&site.namespace, &self.name).await.map_err(Interruption::from)
        });
        match gone {
            Ok(_) => anyhow!(
                "release {} failed, and has been uninstalled due to rollback-on-failure being set: {stop}",
                self.name
            ),
            Err(error) => anyhow!(
                "an error occurred while uninstalling the release. original install error: {stop}: {error}"
            ),
        }
    }

    /// A failed upgrade is rolled back to the newest revision that was deployed.
    fn take_back(
        &self,
        site: &ReleaseTarget,
        history: &History,
        timeout: Duration,
        stop: &Interruption,
    ) -> Error {
        let good = |status: &Status| matches!(status, Status::Deployed | Status::Superseded);
        let Some(to) = history.releases().rev().find(|release| good(&release.info.status)) else {
            return anyhow!(
                "unable to find a previously successful release when attempting to rollback. original upgrade error: {stop}"
            );
        };
        let action_options = ActionOptions { description: None, ..self.action_options() };
        match super::rollback::roll_back(site, history, to.version, action_options, timeout, 0) {
            Ok(()) => anyhow!(
                "release {} failed, and has been rolled back due to rollback-on-failure being set: {stop}",
                self.name
            ),
            Err(error) => anyhow!(
                "an error occurred while rolling back the release. original upgrade error: {stop}: {error}"
            ),
        }
    }
}

/// Calls the driver until the revision is deployed.
fn drive(
    site: &ReleaseTarget,
    driver: &Driver,
    until: Timestamp,
    history: History,
    desired: &DesiredState<'_>,
    drawn: bool,
) -> Result<Release, Interruption> {
    let revision = desired.release.revision;
    let (namespace, name) = (site.namespace.clone(), history.name().to_owned());
    let (mut known, mut begun, mut kept) = (Some(history), false, Vec::new());
    let done = site.run_to_completion(driver, until, async || {
        let again = known.is_none();
        let history = match known.take() {
            Some(history) => history,
            None => driver.history(&namespace, &name).await?,
        };
        let own = history.revision(revision);
        if let Some(own) = own.filter(|own| again && own.info.status == Status::Deployed) {
            return Ok(Release::clone(own)); // by a write whose answer was lost
        }
        let newest = history.newest().map_or(0, |newest| newest.version);
        if newest > revision || begun && own.is_none() {
            return Err(Interruption::Overtaken(revision));
        }
        begun |= own.is_some();
        let applied = if drawn {
            driver.resume(&history, desired).await
        } else {
            driver.apply(&history, desired).await
        };
        let applied = match applied {
            Err(ReleaseError::WrongFacts { .. }) if again => {
                return Err(Interruption::Overtaken(revision));
            }
            applied => applied?,
        };
        kept = applied.kept;
        Ok(Release::clone(&applied.release))
    });
    kept.iter().for_each(tell_of_kept);
    done
}

/// Says that an object was left which the new revision has not, unless that was asked for.
fn tell_of_kept(kept: &RetainedObject) {
    let why = match &kept.why {
        WhyKept::Policy => return,
        WhyKept::UnknownPolicy(value) => {
            format!("its resource policy has the value {value:?}, which Helm does not know")
        }
        WhyKept::NotOurs => "it is not owned by this release any more".to_owned(),
        WhyKept::Replaced => "another object has taken its place".to_owned(),
        WhyKept::NoKind => "its kind is not served any more".to_owned(),
        WhyKept::Forbidden => "it may not be read".to_owned(),
    };
    eprintln!("warning: {} was left: {why}", kept.id);
}

/// An error in the words that helm puts before it.
pub(super) fn prefixed(before: &str, error: Error) -> Error {
    match error.downcast::<Explained>() {
        Ok(Explained { text, more }) => {
            Explained { text: format!("{before}: {text}"), more }.into()
        }
        Err(error) => anyhow!("{before}: {error}"),
    }
}
