//! Chart kinds: a Helm chart reconciles each resource. [`ChartKind`] configures a kind in code.
//!
//! A resource becomes a release with the name of the resource, in its namespace. The spec is the values,
//! the operator renders the chart in process, and [`catamaran_release`] applies the objects. The state of
//! applied releases is cached (`release_cache`), so that a resource whose inputs and objects did not
//! change costs no request.

mod account;
mod annotations;
mod customization;
mod diagnosis;
mod event_reporter;
mod finalizer;
pub mod lookup;
mod prefetch;
pub(crate) mod readiness_watches;
mod reconcile;
pub(crate) mod records;
mod release_cache;
mod release_key;
mod remediation;
mod render;
mod render_seed;
mod revision;
mod status;
mod uninstall;
mod wait;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_chart::{Budget, CompiledChart};
use catamaran_cluster::apply::Applier;
use catamaran_cluster::conditions::types;
use catamaran_cluster::mapper::Mapper;
use catamaran_cluster::missing_permissions::MissingPermissions;
use catamaran_release::plan::hooks::HOOK_TIMEOUT;
use catamaran_release::{Driver, Owner, RecordKeys, RecordOwner, RecordPolicy};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use kube::core::GroupVersionKind;

pub use catamaran_cluster::drift::IgnoreRule;
pub use catamaran_release::{
    ActionOptions, Cascade, CrdPolicy, Force, Release, Scope, WaitStrategy,
};
pub(crate) use customization::ChartKindConfig;
pub use customization::{Action, ChartKind, Context, Event, Logic, Outcome, PendingAction, Values};

pub use crate::manager::events::Severity;
pub use crate::native::{Error, ReconcileTrigger, Reference};

use crate::manager::ManagerContext;
use crate::manager::controller::{Controller, Failure, Request, Requeue, Unread};
use crate::manager::dependents::Dependents;
use crate::manager::queue::Key;
use crate::manager::reflectors::Reflectors;
use crate::metrics::KindMetrics;
use crate::native::References;
use crate::watches::{Overrides, Watch};
use account::{Access, Requester};
use customization::calls::PendingCallbacks;
use event_reporter::EventReporter;
use prefetch::HistoryPrefetcher;
use readiness_watches::ReadinessWatches;
use records::ReleaseSecretInformer;
use release_cache::ReleaseCache;
use tracing::Instrument;

/// Reconciles the resources of one chart kind.
pub(crate) struct ChartController {
    gvk: GroupVersionKind,
    chart: Arc<CompiledChart>,
    /// Who makes the requests of releases; see [`ChartController::driver_for_owner`].
    requester: Requester,
    scope: Scope,
    record_keys: RecordKeys,
    mapper: Mapper,
    dependents: Option<Arc<Dependents>>,
    /// Which objects are watched: those of all charts of the manager, so that kinds share one watch.
    label_selector: Arc<str>,
    reflectors: Reflectors,
    records: ReleaseSecretInformer,
    /// Histories that were read before their turn.
    prefetcher: HistoryPrefetcher,
    readiness_watches: ReadinessWatches,
    overrides: Overrides,
    render_limits: Budget,
    /// Whether the chart asks which APIs there are.
    asks_for_apis: bool,
    /// Whether the status shows manifests.
    status_manifest: bool,
    /// What becomes of the definitions of `crds/`.
    crds: CrdPolicy,
    /// The namespace of releases whose resources have none.
    home: String,
    /// Where records lie, unless with their releases.
    storage: Option<String>,
    /// Whether records hold the whole chart.
    full_record: bool,
    missing_permissions: MissingPermissions,
    releases: Mutex<ReleaseCache>,
    recorder: EventReporter,
    /// What is configured in code.
    config: ChartKindConfig,
    /// What the kind's logic refers to.
    references: References,
    /// Outcomes that the logic has not taken in yet.
    pending_callbacks: PendingCallbacks,
    /// The number of the next reconcile.
    epochs: AtomicU64,
    client: Client,
}

impl ChartController {
    /// A controller for the kind of a watch; without dependent watches drift is noticed only by the
    /// reconcile period.
    pub fn new(
        manager: &ManagerContext,
        watch: &Watch,
        chart: Arc<CompiledChart>,
        metrics: KindMetrics,
    ) -> Self {
        let reflectors = manager.dependents.reflectors();
        let records = match &watch.storage_namespace {
            Some(place) => manager.dependents.records().stored_in(place, &reflectors.namespaces),
            None => manager.dependents.records().clone(),
        };
        records.begin(reflectors);
        let wrote = records.clone();
        let (gvk, events) = (watch.gvk.clone(), manager.events.clone());
        let setup = watch.setup.clone();
        let (_, queue, kinds) = manager.dependents.parts();
        let kind = kinds.id(&watch.gvk).unwrap_or_default();
        setup.wakes.iter().for_each(|wake| wake.connect(queue, kind));
        let driver = Driver::new(manager.client.clone(), manager.mapper.clone())
            .record_policy(RecordPolicy::Authenticate {
                keys: manager.record_keys.clone(),
                owner: RecordOwner::default(),
            })
            .scope(watch.scope)
            .ignoring(watch.ignored.clone())
            .history_max(setup.history)
            .hook_timeout(setup.timeout.unwrap_or(HOOK_TIMEOUT))
            .options(ActionOptions { crds: watch.crds, ..ActionOptions::default() })
            .on_record_written(move |namespace, name, revision, version| {
                wrote.wrote(namespace, name, revision, version);
            });
        let storage = watch.storage_namespace.clone();
        let own = manager.client.default_namespace();
        let access = Access {
            driver: match &storage {
                Some(place) => driver.stored_in(place),
                None => driver,
            },
            reader: Applier::new(manager.client.clone(), &manager.operator),
        };
        Self {
            recorder: EventReporter {
                gvk,
                events,
                metrics,
                on_event: setup.on_event.clone(),
                suppresses: manager.suppress_override_values,
            },
            gvk: watch.gvk.clone(),
            asks_for_apis: render::asks_for_apis(chart.chart()),
            chart,
            requester: Requester::new(
                access,
                watch.service_account.as_deref(),
                &manager.impersonation,
            ),
            scope: watch.scope,
            home: storage.clone().unwrap_or_else(|| own.to_owned()),
            storage,
            reflectors: manager.dependents.reflectors().clone(),
            records,
            prefetcher: HistoryPrefetcher::new(queue),
            readiness_watches: manager.readiness_watches.clone(),
            mapper: manager.mapper.clone(),
            dependents: watch.watch_dependent_resources.then(|| manager.dependents.clone()),
            record_keys: manager.record_keys.clone(),
            label_selector: manager.labelled.clone(),
            overrides: watch.overrides.clone(),
            render_limits: manager.render_limits,
            status_manifest: manager.status_manifest,
            crds: watch.crds,
            full_record: watch.full_record,
            missing_permissions: MissingPermissions::default(),
            releases: Mutex::default(),
            config: setup,
            references: References::new(manager),
            pending_callbacks: PendingCallbacks::default(),
            epochs: AtomicU64::new(1),
            client: manager.client.clone(),
        }
    }
}

impl ChartController {
    /// A driver for the release of a resource: it acts only on records that this operator has written for
    /// it.
    fn driver_for_owner(&self, owner: &Owner) -> Driver {
        let namespace = owner.namespace.as_deref().unwrap_or(&self.home);
        let (keys, owner) = (self.record_keys.clone(), RecordOwner::new(owner));
        self.requester
            .of(namespace)
            .driver
            .clone()
            .record_policy(RecordPolicy::Authenticate { keys, owner })
    }
}

impl Controller for ChartController {
    fn reconcile(&self, request: Request) -> BoxFuture<'_, Result<Requeue, Failure>> {
        let key = request.key.clone();
        let forget = move |_: &_| self.prefetcher.forget(&key);
        match &self.config.span {
            None => self.run(request).inspect(forget).boxed(),
            Some(span) => {
                let span = span(&request.object);
                self.run(request).inspect(forget).instrument(span).boxed()
            }
        }
    }

    /// A release is uninstalled by its record.
    fn unread(&self) -> Unread {
        Unread::Ends(types::IRRECONCILABLE)
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner).forget(key);
        self.records.forget(key);
        self.prefetcher.forget(key);
        self.readiness_watches.end(key);
        self.references.forget(key);
        self.pending_callbacks.forget(key);
        std::future::ready(()).boxed()
    }
}
