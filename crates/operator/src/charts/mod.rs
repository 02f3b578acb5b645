//! The first hull: kinds that are carried by a Helm chart. [`ChartKind`] configures one in code.
//!
//! A resource becomes a release of its name, in its namespace: its spec is the values, its chart is
//! rendered in process, [`catamaran_release`] does the rest. What was left behind is remembered
//! ([`memory`]), so that a resource whose inputs and objects did not move costs nothing.

mod account;
mod ahead;
mod code;
mod culprit;
mod drive;
mod finalizer;
pub mod lookup;
mod memory;
mod reconcile;
pub(crate) mod records;
mod render;
mod report;
mod seeds;
mod site;
mod takeback;
mod tell;
mod uninstall;
pub(crate) mod vigil;
mod wait;
mod wishes;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_chart::{Budget, CompiledChart};
use catamaran_cluster::apply::Applier;
use catamaran_cluster::conditions::types;
use catamaran_cluster::mapper::Mapper;
use catamaran_cluster::rights::Lacking;
use catamaran_release::plan::hooks::HOOK_TIMEOUT;
use catamaran_release::{Driver, Owner, RecordKeys, RecordOwner, RecordPolicy};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use kube::core::GroupVersionKind;

pub use catamaran_cluster::drift::IgnoreRule;
pub use catamaran_release::{Cascade, Definitions, Force, Release, Scope, Wait, Ways};
pub(crate) use code::Setup;
pub use code::{Action, ChartKind, Cx, Event, Logic, Outcome, Planned, Values};

pub use crate::manager::events::Severity;
pub use crate::native::{Error, Reference, Wake};

use crate::manager::Hub;
use crate::manager::controller::{Controller, Failure, Next, Request, Unread};
use crate::manager::dependents::Dependents;
use crate::manager::feeds::Feeds;
use crate::manager::queue::Key;
use crate::metrics::KindMetrics;
use crate::native::References;
use crate::watches::{Overrides, Watch};
use account::{Access, Requester};
use ahead::Ahead;
use code::calls::Owed;
use memory::Memory;
use records::Records;
use tell::Teller;
use tracing::Instrument;
use vigil::Vigils;

/// Carries one chart kind.
pub(crate) struct ChartController {
    gvk: GroupVersionKind,
    chart: Arc<CompiledChart>,
    /// Who makes the requests of releases; see [`ChartController::driver_for`].
    requester: Requester,
    scope: Scope,
    record_keys: RecordKeys,
    mapper: Mapper,
    dependents: Option<Arc<Dependents>>,
    /// Which objects are watched: those of all charts of the manager, so that kinds share one watch.
    labelled: Arc<str>,
    feeds: Feeds,
    records: Records,
    /// Histories that were read before their turn.
    ahead: Ahead,
    vigils: Vigils,
    overrides: Overrides,
    render_limits: Budget,
    /// Whether the chart asks which APIs there are.
    asks_for_apis: bool,
    /// Whether the status shows manifests.
    status_manifest: bool,
    /// What becomes of the definitions of `crds/`.
    crds: Definitions,
    /// The namespace of releases whose resources have none.
    home: String,
    /// Where records lie, unless with their releases.
    storage: Option<String>,
    /// Whether records hold the whole chart.
    full_record: bool,
    rights: Lacking,
    memory: Mutex<Memory>,
    tell: Teller,
    /// What is configured in code.
    setup: Setup,
    /// What the kind's logic refers to.
    references: References,
    /// Outcomes that the logic has not taken in yet.
    owed: Owed,
    /// The number of the next reconcile.
    epochs: AtomicU64,
    client: Client,
}

impl ChartController {
    /// A controller for the kind of a watch; without dependent watches drift is noticed only by the
    /// reconcile period.
    pub fn new(hub: &Hub, watch: &Watch, chart: Arc<CompiledChart>, metrics: KindMetrics) -> Self {
        let feeds = hub.dependents.feeds();
        let records = match &watch.storage_namespace {
            Some(place) => hub.dependents.records().stored_in(place, &feeds.namespaces),
            None => hub.dependents.records().clone(),
        };
        records.begin(feeds);
        let wrote = records.clone();
        let (gvk, events) = (watch.gvk.clone(), hub.events.clone());
        let setup = watch.setup.clone();
        let (_, queue, kinds) = hub.dependents.parts();
        let kind = kinds.id(&watch.gvk).unwrap_or_default();
        setup.wakes.iter().for_each(|wake| wake.connect(queue, kind));
        let driver = Driver::new(hub.client.clone(), hub.mapper.clone())
            .record_policy(RecordPolicy::Authenticate {
                keys: hub.record_keys.clone(),
                owner: RecordOwner::default(),
            })
            .scope(watch.scope)
            .ignoring(watch.ignored.clone())
            .history_max(setup.history)
            .hook_timeout(setup.timeout.unwrap_or(HOOK_TIMEOUT))
            .ways(Ways { crds: watch.crds, ..Ways::default() })
            .telling(move |namespace, name, revision, version| {
                wrote.wrote(namespace, name, revision, version);
            });
        let storage = watch.storage_namespace.clone();
        let own = hub.client.default_namespace();
        let access = Access {
            driver: match &storage {
                Some(place) => driver.stored_in(place),
                None => driver,
            },
            reader: Applier::new(hub.client.clone(), &hub.operator),
        };
        Self {
            tell: Teller {
                gvk,
                events,
                metrics,
                on_event: setup.on_event.clone(),
                suppresses: hub.suppress_override_values,
            },
            gvk: watch.gvk.clone(),
            asks_for_apis: render::asks_for_apis(chart.chart()),
            chart,
            requester: Requester::new(access, watch.service_account.as_deref(), &hub.impersonation),
            scope: watch.scope,
            home: storage.clone().unwrap_or_else(|| own.to_owned()),
            storage,
            feeds: hub.dependents.feeds().clone(),
            records,
            ahead: Ahead::new(queue),
            vigils: hub.vigils.clone(),
            mapper: hub.mapper.clone(),
            dependents: watch.watch_dependent_resources.then(|| hub.dependents.clone()),
            record_keys: hub.record_keys.clone(),
            labelled: hub.labelled.clone(),
            overrides: watch.overrides.clone(),
            render_limits: hub.render_limits,
            status_manifest: hub.status_manifest,
            crds: watch.crds,
            full_record: watch.full_record,
            rights: Lacking::default(),
            memory: Mutex::default(),
            setup,
            references: References::new(hub),
            owed: Owed::default(),
            epochs: AtomicU64::new(1),
            client: hub.client.clone(),
        }
    }
}

impl ChartController {
    /// A driver for the release of a resource: it acts only on records that this operator has written for
    /// it.
    fn driver_for(&self, owner: &Owner) -> Driver {
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
    fn reconcile(&self, request: Request) -> BoxFuture<'_, Result<Next, Failure>> {
        let key = request.key.clone();
        let forget = move |_: &_| self.ahead.forget(&key);
        match &self.setup.span {
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

    fn gone<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).forget(key);
        self.records.forget(key);
        self.ahead.forget(key);
        self.vigils.end(key);
        self.references.forget(key);
        self.owed.forget(key);
        std::future::ready(()).boxed()
    }
}
