//! What the manager counts and measures, for Prometheus.
//!
//! The names are those of controller-runtime, client-go and operator-sdk's Helm operator where the
//! meaning is the same, so that their dashboards and alerts go on; what only we have begins with
//! `catamaran_`.

mod process;
mod scraped;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub(crate) use scraped::{KindStats, Resource, ResourceNames, Source};

/// The media type of what [`Metrics::text`] returns.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Seconds, from a reconcile that has nothing to do to one at its deadline.
const SECONDS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

type Timings<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Part {
    controller: String,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InQueue {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    code: String,
    host: String,
    method: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Sent {
    result: &'static str,
}

/// All metrics of a manager.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    families: Families,
}

#[derive(Clone, Debug)]
struct Families {
    outcomes: Family<Outcome, Counter>,
    errors: Family<Of, Counter>,
    terminal: Family<Of, Counter>,
    panics: Family<Of, Counter>,
    timeouts: Family<Of, Counter>,
    time: Timings<Of>,
    phases: Timings<Part>,
    queued: Timings<InQueue>,
    worked: Timings<InQueue>,
    retries: Family<InQueue, Counter>,
    requests: Family<Asked, Counter>,
    leads: Family<Named, Gauge>,
    events: Family<Sent, Counter>,
}

impl Families {
    fn new() -> Self {
        Self {
            outcomes: Family::default(),
            errors: Family::default(),
            terminal: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(seconds),
            phases: Family::new_with_constructor(seconds),
            queued: Family::new_with_constructor(seconds),
            worked: Family::new_with_constructor(seconds),
            retries: Family::default(),
            requests: Family::default(),
            leads: Family::default(),
            events: Family::default(),
        }
    }

    /// Counters get their `_total` when they are written.
    fn register(&self, to: &mut Registry) {
        let of = "controller_runtime_reconcile";
        to.register(of, "Reconciles by how they ended", self.outcomes.clone());
        let errors = format!("{of}_errors");
        to.register(errors, "Reconciles that failed", self.errors.clone());
        to.register(
            "controller_runtime_terminal_reconcile_errors",
            "Reconciles that failed in a way that only a change of the resource mends",
            self.terminal.clone(),
        );
        to.register(format!("{of}_panics"), "Reconciles that panicked", self.panics.clone());
        to.register(
            format!("{of}_timeouts"),
            "Reconciles that reached their deadline",
            self.timeouts.clone(),
        );
        to.register(format!("{of}_time_seconds"), "How long reconciles took", self.time.clone());
        to.register(
            "catamaran_reconcile_phase_seconds",
            "How long the parts of reconciles took",
            self.phases.clone(),
        );
        to.register(
            "workqueue_queue_duration_seconds",
            "How long keys waited before they were worked on",
            self.queued.clone(),
        );
        to.register(
            "workqueue_work_duration_seconds",
            "How long keys were worked on",
            self.worked.clone(),
        );
        let retries = "Keys that came back after a failure";
        to.register("workqueue_retries", retries, self.retries.clone());
        to.register(
            "rest_client_requests",
            "Requests to the API server by answer, method and host",
            self.requests.clone(),
        );
        to.register(
            "leader_election_master_status",
            "Whether this process holds the lease of this name",
            self.leads.clone(),
        );
        to.register("catamaran_events", "Events by what became of them", self.events.clone());
    }
}

impl Metrics {
    /// Metrics of which none has moved yet. `operator` and `version` are told as build info.
    pub fn new(operator: &str) -> Self {
        let mut registry = Registry::default();
        let families = Families::new();
        families.register(&mut registry);
        let commit = option_env!("CATAMARAN_COMMIT").unwrap_or("unknown").to_owned();
        let labels = vec![
            ("commit", commit),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("operator", operator.to_owned()),
        ];
        registry.register(
            "helm_operator_build",
            "What this program was built of",
            Info::new(labels),
        );
        registry.register_collector(Box::new(process::Process));
        Self { registry: Mutex::new(registry), families }
    }

    /// Reads these whenever the metrics are read.
    pub fn add(&self, source: impl Source, names: ResourceNames) {
        let collector = Box::new(scraped::Scraped { source, names });
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register_collector(collector);
    }

    /// All metrics in OpenMetrics' text format; empty if they cannot be written.
    pub fn text(&self) -> String {
        let mut written = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        match text::encode(&mut written, &registry) {
            Ok(()) => written,
            Err(_) => String::new(),
        }
    }

    /// What is measured of one kind.
    pub fn kind(&self, controller: &str) -> KindMetrics {
        let families = &self.families;
        let of = Of { controller: controller.to_owned() };
        let queue = InQueue { name: controller.to_owned(), controller: controller.to_owned() };
        let outcome = |result| {
            families
                .outcomes
                .get_or_create_owned(&Outcome { controller: controller.to_owned(), result })
        };
        KindMetrics {
            controller: controller.to_owned(),
            success: outcome("success"),
            requeue_after: outcome("requeue_after"),
            requeue: outcome("requeue"),
            error: outcome("error"),
            errors: families.errors.get_or_create_owned(&of),
            terminal: families.terminal.get_or_create_owned(&of),
            panics: families.panics.get_or_create_owned(&of),
            timeouts: families.timeouts.get_or_create_owned(&of),
            time: families.time.get_or_create_owned(&of),
            queued: families.queued.get_or_create_owned(&queue),
            worked: families.worked.get_or_create_owned(&queue),
            retries: families.retries.get_or_create_owned(&queue),
            phases: families.phases.clone(),
        }
    }

    /// An answer of the API server, or none.
    pub fn request(&self, method: &Method, host: &str, code: Option<u16>) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let asked = Asked { code, host: host.to_owned(), method: method.as_str().to_owned() };
        self.families.requests.get_or_create(&asked).inc();
    }

    /// Whether this process holds the lease of this name.
    pub fn leads(&self, lease: &str, leads: bool) {
        let named = Named { name: lease.to_owned() };
        self.families.leads.get_or_create(&named).set(i64::from(leads));
    }

    /// What became of an event: `sent`, `counted` (like one before), `dropped`, `refused`.
    pub fn event(&self, result: &'static str) {
        self.families.events.get_or_create(&Sent { result }).inc();
    }
}

/// What is measured of one kind.
#[derive(Clone, Debug)]
pub(crate) struct KindMetrics {
    controller: String,
    pub success: Counter,
    pub requeue_after: Counter,
    pub requeue: Counter,
    pub error: Counter,
    pub errors: Counter,
    pub terminal: Counter,
    pub panics: Counter,
    pub timeouts: Counter,
    pub time: Histogram,
    pub queued: Histogram,
    pub worked: Histogram,
    pub retries: Counter,
    phases: Timings<Part>,
}

impl KindMetrics {
    /// Measures a part of a reconcile until the guard is dropped.
    pub fn phase(&self, phase: &'static str) -> Phase {
        let part = Part { controller: self.controller.clone(), phase };
        Phase { histogram: self.phases.get_or_create_owned(&part), begun: Instant::now() }
    }

    /// Takes note of a part of a reconcile that took this long.
    pub fn took(&self, phase: &'static str, time: Duration) {
        let part = Part { controller: self.controller.clone(), phase };
        self.phases.get_or_create(&part).observe(time.as_secs_f64());
    }
}

/// A part of a reconcile that is under way.
#[derive(Debug)]
#[must_use]
pub(crate) struct Phase {
    histogram: Histogram,
    begun: Instant,
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.histogram.observe(self.begun.elapsed().as_secs_f64());
    }
}
