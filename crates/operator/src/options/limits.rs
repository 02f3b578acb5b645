//! Flags that bound what the manager does at once.

use std::time::Duration;

use clap::Args;

use super::duration;
use crate::client::RateLimit;

/// How many of all kinds may be worked on at once, for each that a single kind may.
const KINDS_AT_ONCE: usize = 4;

/// Flags that bound the manager.
#[derive(Args, Clone, Debug)]
pub struct LimitOptions {
    /// How many resources of all kinds together are worked on at once, but at least one of each kind;
    /// the default is four times that of one kind
    #[arg(long, value_name = "N")]
    pub max_concurrent_reconciles_total: Option<usize>,

    /// How long one reconcile may take before it is ended and tried again
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub reconcile_timeout: Duration,

    /// Requests a second to the API server at most; 0 is no cap: its own priority and fairness decides
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    pub kube_api_qps: f64,

    /// Requests that may be made at once after a pause, with --kube-api-qps
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
