//! Metrics that are read where they lie when somebody asks, instead of being kept up to date.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeMetric,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The state of one kind's queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindStats {
    pub controller: String,
    /// Keys that wait to be worked on.
    pub depth: usize,
    /// Keys that were ever added.
    pub adds: u64,
    /// Keys that are worked on.
    pub running: usize,
    /// How many may be at once.
    pub bound: usize,
    /// How long those that are worked on have been, together.
    pub unfinished: Duration,
    /// The longest of them.
    pub longest: Duration,
}

/// A resource, and when it was created in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Resource {
    pub name: String,
    pub namespace: String,
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// Where they are read.
pub(crate) trait Source: fmt::Debug + Send + Sync + 'static {
    /// The queue of each kind.
    fn kinds(&self) -> Vec<KindStats>;
    /// Every resource of every kind, with the time of its creation.
    fn resources(&self) -> Vec<(Resource, i64)>;
}

/// Whether metrics tell the names of resources and namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceNames {
    /// There is a series for each resource.
    Included,
    /// There is none.
    Omitted,
}

#[derive(Debug)]
pub(super) struct Scraped<S> {
    pub source: S,
    pub names: ResourceNames,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InQueue {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: String,
}

impl<S: Source> Collector for Scraped<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let kinds = self.source.kinds();
        let queue = |of: &KindStats| InQueue {
            name: of.controller.clone(),
            controller: of.controller.clone(),
        };
        let controller = |of: &KindStats| Of { controller: of.controller.clone() };
        gauges(
            &mut encoder,
            "workqueue_depth",
            "Keys that wait",
            kinds.iter().map(|of| (queue(of), of.depth)),
        )?;
        let unfinished = kinds.iter().map(|of| (queue(of), of.unfinished.as_secs_f64()));
        let help = "How long the keys that are worked on have been, together";
        gauges(&mut encoder, "workqueue_unfinished_work_seconds", help, unfinished)?;
        let longest = kinds.iter().map(|of| (queue(of), of.longest.as_secs_f64()));
        let help = "How long the longest of the keys that are worked on has been";
        gauges(&mut encoder, "workqueue_longest_running_processor_seconds", help, longest)?;
        let active = kinds.iter().map(|of| (controller(of), of.running));
        let help = "Resources that are worked on";
        gauges(&mut encoder, "controller_runtime_active_workers", help, active)?;
        let most = kinds.iter().map(|of| (controller(of), of.bound));
        let help = "Resources that may be worked on at once";
        gauges(&mut encoder, "controller_runtime_max_concurrent_reconciles", help, most)?;
        let mut adds = encoder.encode_descriptor(
            "workqueue_adds",
            "Keys that were added",
            None,
            MetricType::Counter,
        )?;
        for kind in &kinds {
            ConstCounter::new(kind.adds).encode(adds.encode_family(&queue(kind))?)?;
        }
        if self.names == ResourceNames::Omitted {
            return Ok(());
        }
        let help = "When each resource was created, in seconds since 1970";
        let resources = self.source.resources().into_iter();
        gauges(&mut encoder, "resource_created_at_seconds", help, resources)
    }
}

fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (L, V)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
