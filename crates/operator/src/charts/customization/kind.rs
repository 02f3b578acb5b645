//! The builder: a chart kind with what is configured of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use catamaran_chart::{PostRender, PostRenderers};
use catamaran_cluster::drift::IgnoreRule;
use catamaran_release::{ActionOptions, CrdPolicy, Scope};
use kube::core::{DynamicObject, GroupVersionKind, Selector};
use serde_json::Value;
use tracing::Span;

use super::config::ActionOverride;
use super::{Action, Event, Logic, ReconcileTrigger};
use crate::ManagerError;
use crate::watches::{KindBackend, OverrideTypes, Watch, compile, describe};

/// A kind that a chart serves, configured in code. Made of an entry of watches.yaml, which says the rest,
/// or of a chart's folder; handed to [`crate::Manager::chart`]. Mistakes are told when the manager starts.
#[derive(Clone, Debug)]
#[must_use = "hand it to Manager::chart"]
pub struct ChartKind {
    watch: Watch,
    steps: Vec<Step>,
    wrong: Vec<String>,
}

#[derive(Clone)]
struct Step(Arc<dyn PostRender>);

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Step")
    }
}

impl ChartKind {
    /// The kind of an entry of watches.yaml, as the entry has it; `None` if a reconciler serves it.
    pub fn of(watch: &Watch) -> Option<Self> {
        let is_chart = matches!(watch.backend, KindBackend::Chart(_));
        is_chart.then(|| Self { watch: watch.clone(), steps: Vec::new(), wrong: Vec::new() })
    }

    /// A kind that watches.yaml does not mention, served by the chart in a folder or package.
    ///
    /// # Errors
    /// [`ManagerError::Kind`] if the chart cannot be loaded, or a template of it not be parsed.
    pub fn load(
        (group, version, kind): (&str, &str, &str),
        chart: impl AsRef<Path>,
    ) -> Result<Self, ManagerError> {
        let chart = compile(chart.as_ref()).map_err(ManagerError::Kind)?;
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let backend = KindBackend::Chart(Arc::new(chart));
        Ok(Self { watch: Watch::new(gvk, backend), steps: Vec::new(), wrong: Vec::new() })
    }

    /// The kind's name, such as `Memcached`.
    pub fn name(&self) -> &str {
        &self.watch.gvk.kind
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.watch.gvk
    }

    /// What the program adds: values from the state of the cluster, calls before and after each action.
    pub fn logic(mut self, logic: impl Logic) -> Self {
        self.watch.setup.logic = Some(Arc::new(logic));
        self
    }

    /// Changes how every install is carried out, such as what it waits for.
    pub fn installs(self, change: impl Fn(&mut ActionOptions) + Send + Sync + 'static) -> Self {
        self.always(Action::Install, change)
    }

    /// The same of upgrades.
    pub fn upgrades(self, change: impl Fn(&mut ActionOptions) + Send + Sync + 'static) -> Self {
        self.always(Action::Upgrade, change)
    }

    /// The same of uninstalls.
    pub fn uninstalls(self, change: impl Fn(&mut ActionOptions) + Send + Sync + 'static) -> Self {
        self.always(Action::Uninstall, change)
    }

    /// An annotation of resources that changes how they are installed; given its value. It comes after the
    /// annotations that every Helm operator has, and after [`ChartKind::installs`] before it.
    pub fn install_annotation(
        self,
        name: &str,
        change: impl Fn(&str, &mut ActionOptions) + Send + Sync + 'static,
    ) -> Self {
        self.annotated(Action::Install, name, change)
    }

    /// The same of upgrades.
    pub fn upgrade_annotation(
        self,
        name: &str,
        change: impl Fn(&str, &mut ActionOptions) + Send + Sync + 'static,
    ) -> Self {
        self.annotated(Action::Upgrade, name, change)
    }

    /// The same of uninstalls.
    pub fn uninstall_annotation(
        self,
        name: &str,
        change: impl Fn(&str, &mut ActionOptions) + Send + Sync + 'static,
    ) -> Self {
        self.annotated(Action::Uninstall, name, change)
    }

    /// Values that win over the spec, in the form of `helm --set`, with their types; environment variables
    /// and templates in them as in watches.yaml. They come over those of the entry.
    pub fn override_values<K: Into<String>, V: Into<Value>>(
        mut self,
        values: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let raw = values.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        let environment = |name: &str| std::env::var(name).ok();
        let added = self.watch.overrides.add(&raw, OverrideTypes::Typed, environment);
        self.wrong.extend(added.err());
        self
    }

    /// Only resources whose labels match are served.
    pub fn selector(mut self, selector: impl Into<Selector>) -> Self {
        self.watch.select(selector.into());
        self
    }

    /// How many resources of the kind may be worked on at once; at least 1.
    pub fn max_concurrent_reconciles(mut self, number: usize) -> Self {
        if number == 0 {
            self.wrong.push("max_concurrent_reconciles must be at least 1".to_owned());
        }
        self.watch.max_concurrent_reconciles = Some(number);
        self
    }

    /// Looks at every resource this often although nothing moved; zero is never.
    pub fn reconcile_period(mut self, period: Duration) -> Self {
        self.watch.reconcile_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// How many revisions of a release are kept, 10 unless said otherwise; 0 is all.
    pub fn history(mut self, revisions: usize) -> Self {
        self.watch.setup.history = revisions;
        self
    }

    /// How long each hook may take, and all of an install or upgrade that waits (see
    /// [`ChartKind::installs`]): after that it has failed. Unless said otherwise hooks have five minutes,
    /// and what else is waited for has no end.
    pub fn timeout(mut self, time: Duration) -> Self {
        if time.is_zero() {
            self.wrong.push("timeout must be more than nothing".to_owned());
        }
        self.watch.setup.timeout = Some(time);
        self
    }

    /// Whether an upgrade that failed is rolled back, and an install that failed uninstalled; both are
    /// unless said otherwise.
    pub fn failure_rollbacks(mut self, wanted: bool) -> Self {
        self.watch.setup.failure_rollbacks = wanted;
        self
    }

    /// Does not watch the objects of releases: their drift is noticed only by the period.
    pub fn skip_dependent_watches(mut self) -> Self {
        self.watch.watch_dependent_resources = false;
        self
    }

    /// Lets a step change what the chart renders, after the steps that were added before.
    pub fn post_renderer(mut self, step: impl PostRender + 'static) -> Self {
        self.steps.push(Step(Arc::new(step)));
        self
    }

    /// Leaves to others what the rule says of the chart's objects.
    pub fn ignore_drift(mut self, rule: IgnoreRule) -> Self {
        self.watch.ignored.push(rule);
        self
    }

    /// What becomes of the definitions of the chart's `crds/`.
    pub fn crds(mut self, policy: CrdPolicy) -> Self {
        self.watch.crds = policy;
        self
    }

    /// Where all records of the kind lie; without it in the namespace of each resource.
    pub fn storage_namespace(mut self, namespace: &str) -> Self {
        self.watch.storage_namespace = Some(namespace.to_owned());
        self
    }

    /// Where the objects of a release, and what its chart looks up, may be; see docs/watches.md.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.watch.scope = scope;
        self
    }

    /// The service account, in the namespace of each release, as which all requests of the release are made.
    pub fn service_account_name(mut self, name: &str) -> Self {
        self.watch.service_account = Some(name.to_owned());
        self
    }

    /// Lets a channel of one's own wake resources.
    pub fn triggered_by(mut self, wake: &ReconcileTrigger) -> Self {
        self.watch.setup.wakes.push(wake.clone());
        self
    }

    /// Is told of every event about a resource of the kind, besides the cluster. It must not wait.
    pub fn on_event(mut self, told: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.watch.setup.on_event = Some(Arc::new(told));
        self
    }

    /// The span of what is logged of a resource: its fields stand in every line.
    pub fn log(mut self, span: impl Fn(&DynamicObject) -> Span + Send + Sync + 'static) -> Self {
        self.watch.setup.span = Some(Arc::new(span));
        self
    }

    fn always(
        mut self,
        action: Action,
        change: impl Fn(&mut ActionOptions) + Send + Sync + 'static,
    ) -> Self {
        let change =
            Arc::new(move |_: &str, action_options: &mut ActionOptions| change(action_options));
        self.watch.setup.reconcile_options.push(ActionOverride {
            action,
            annotation: None,
            change,
        });
        self
    }

    fn annotated(
        mut self,
        action: Action,
        name: &str,
        change: impl Fn(&str, &mut ActionOptions) + Send + Sync + 'static,
    ) -> Self {
        let annotation = Some(name.to_owned());
        self.watch.setup.reconcile_options.push(ActionOverride {
            action,
            annotation,
            change: Arc::new(change),
        });
        self
    }

    /// What the manager carries; `general` are the post-renderers of all kinds.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(crate) fn finish(mut self, general: &[Arc<dyn PostRender>]) -> Result<Watch, String> {
        if let Some(name) = self.watch.setup.duplicate_annotation() {
            self.wrong.push(format!("annotation {name:?} is configured twice"));
        }
        if !self.wrong.is_empty() {
            return Err(format!("{}: {}", describe(&self.watch.gvk), self.wrong.join("; ")));
        }
        let steps = self.steps.into_iter().map(|Step(step)| step);
        self.watch.post_render(general.iter().cloned().chain(steps).collect::<PostRenderers>());
        Ok(self.watch)
    }
}
