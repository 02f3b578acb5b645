//! Flags that limit the manager.

use std::time::Duration;

use clap::Args;

use super::duration;
use crate::client::RateLimit;

/// Concurrent reconciles of all kinds, for each concurrent reconcile of one kind.
const KINDS_AT_ONCE: usize = 4;

/// Flags that limit the manager.
#[derive(Args, Clone, Debug)]
pub struct LimitOptions {
    /// Concurrent reconciles of all kinds together, and at least one of each kind [default: four times
    /// --max-concurrent-reconciles]
    #[arg(long, value_name = "N")]
    pub max_concurrent_reconciles_total: Option<usize>,

    /// Deadline of one reconcile; after it, the resource is requeued
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub reconcile_timeout: Duration,

    /// Limit for requests per second to the API server; 0 means none: its priority and fairness decides
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    pub kube_api_qps: f64,

    /// Burst of requests, with --kube-api-qps
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub kube_api_burst: u32,
}

impl LimitOptions {
    /// How many of all kinds may be worked on at once, where one kind may have `each`.
    pub(crate) fn total(&self, each: usize) -> usize {
        let default = || each.saturating_mul(KINDS_AT_ONCE);
        self.max_concurrent_reconciles_total.unwrap_or_else(default).max(1)
    }

    /// The cap on requests, if there is one.
    pub(crate) fn requests(&self) -> Option<RateLimit> {
        RateLimit::new(self.kube_api_qps, self.kube_api_burst)
    }
}
