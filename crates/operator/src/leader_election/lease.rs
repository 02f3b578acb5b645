//! A Lease: reads, takes, renews and releases it.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::ResourceExt;
use kube::api::{WatchEvent, WatchParams};

use super::LeaseConfig;
use super::lock::Lock;

/// The timeout of a watch, in seconds.
const WATCH: u32 = 290;

/// Why waiting for the Lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// It may be free, or has changed.
    Look,
    /// The right to watch it is missing.
    Forbidden,
}

/// How a watch of the Lease ended.
enum Seen {
    MayBeFree,
    Nothing,
}

/// The known state of the Lease.
#[derive(Clone)]
pub(super) struct Record {
    lock: Lock,
    lease_config: LeaseConfig,
    duration: Duration,
    /// The Lease when it was last read, and when it last changed by the local clock.
    seen: Option<(Lease, Instant)>,
}

impl Record {
    pub fn new(lock: Lock, lease_config: LeaseConfig, duration: Duration) -> Self {
        Self { lock, lease_config, duration, seen: None }
    }

    /// Whether nobody else holds it, or it cannot be read.
    ///
    /// # Errors
    /// The error of the API server, unless the right is missing.
    pub async fn is_free(&mut self) -> Result<bool, kube::Error> {
        match self.lock.get(&self.lease_config.name).await {
            Ok(Some(lease)) => self.see(lease),
            Ok(None) => {}
            Err(kube::Error::Api(status)) if status.is_forbidden() => return Ok(true),
            Err(error) => return Err(error),
        }
        Ok(self.may_take())
    }

    /// The right that holding it needs.
    pub fn right(&self) -> &'static str {
        self.lock.right()
    }

    pub fn identity(&self) -> &str {
        &self.lease_config.identity
    }

    pub fn name(&self) -> &str {
        &self.lease_config.name
    }

    /// The holder when the Lease was last read.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(lease, _)| holder(lease))
    }

    /// Takes or renews the Lease; false if another process has it.
    ///
    /// # Errors
    /// The error of the API server, unless another process was faster.
    pub async fn take(&mut self) -> Result<bool, kube::Error> {
        let Some(lease) = self.lock.get(&self.lease_config.name).await? else {
            // Somebody deleted it: its holder creates it again, and may write until it expires.
            if !self.may_take() {
                return Ok(false);
            }
            let lease = self.claim(None);
            return self.written(self.lock.create(&lease).await);
        };
        self.see(lease);
        let Some((lease, _)) = self.seen.as_ref().filter(|_| self.may_take()) else {
            return Ok(false);
        };
        let claim = self.claim(Some(lease));
        self.written(self.lock.replace(&self.lease_config.name, &claim).await)
    }

    /// Whether this process holds it, nobody holds it, or it has expired.
    fn may_take(&self) -> bool {
        self.seen.as_ref().is_none_or(|(lease, changed)| match holder(lease) {
            None => true,
            Some(holder) => {
                holder == self.lease_config.identity || changed.elapsed() >= good_for(lease)
            }
        })
    }

    /// Watches the Lease until it is released or expires. After a watch that failed, reads it again after
    /// `pause`.
    pub async fn until_free(&mut self, pause: Duration) -> Waited {
        match self.watch().await {
            Ok(Seen::MayBeFree) => return Waited::Look,
            Ok(Seen::Nothing) => {}
            Err(kube::Error::Api(status)) if status.is_forbidden() => return Waited::Forbidden,
            Err(error) => tracing::debug!(%error, "the watch on the lease failed"),
        }
        tokio::time::sleep(pause.min(self.left())).await;
        Waited::Look
    }

    /// Watches the Lease as long as others hold it; ends with the watch.
    async fn watch(&mut self) -> Result<Seen, kube::Error> {
        let Lock::Lease(api) = self.lock.clone() else { return Ok(Seen::Nothing) };
        let name = format!("metadata.name={}", self.lease_config.name);
        let only = WatchParams::default().fields(&name).timeout(WATCH);
        let version = self.seen.as_ref().and_then(|(lease, _)| lease.resource_version());
        let version = version.unwrap_or_default();
        let Ok(events) = tokio::time::timeout(self.left(), api.watch(&only, &version)).await else {
            return Ok(Seen::MayBeFree);
        };
        let mut events = pin!(events?);
        loop {
            let Ok(event) = tokio::time::timeout(self.left(), events.try_next()).await else {
                return Ok(Seen::MayBeFree); // nobody renewed it
            };
            match event? {
                Some(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) => {
                    if holder(&lease).is_none() {
                        return Ok(Seen::MayBeFree);
                    }
                    self.see(lease);
                }
                Some(WatchEvent::Deleted(lease)) if holder(&lease).is_none() => {
                    return Ok(Seen::MayBeFree);
                }
                Some(WatchEvent::Deleted(_) | WatchEvent::Bookmark(_)) => {}
                Some(WatchEvent::Error(status)) => return Err(kube::Error::Api(status)),
                None => return Ok(Seen::Nothing),
            }
        }
    }

    /// For how long the Lease is valid without renewal.
    fn left(&self) -> Duration {
        let left =
            |(lease, changed): &(Lease, Instant)| good_for(lease).saturating_sub(changed.elapsed());
        self.seen.as_ref().map(left).unwrap_or_default()
    }

    /// Releases the Lease, if this process holds it.
    ///
    /// # Errors
    /// The error of the API server, unless another process holds it.
    pub async fn release(&mut self) -> Result<(), kube::Error> {
        let Some(mut lease) = self.lock.get(&self.lease_config.name).await? else { return Ok(()) };
        if holder(&lease) != Some(self.identity()) {
            return Ok(());
        }
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = None;
        // As client-go does: clients that do not read the holder see an expired Lease.
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        let released = self.lock.replace(&self.lease_config.name, &lease).await;
        self.written(released).map(drop)
    }

    fn written(&mut self, answer: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
        match answer {
            Ok(lease) => {
                self.seen = Some((lease, Instant::now()));
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn see(&mut self, lease: Lease) {
        let known = self.seen.as_ref().map(|(known, _)| known.resource_version());
        if known != Some(lease.resource_version()) {
            self.seen = Some((lease, Instant::now()));
        }
    }

    /// The Lease with this process as holder, based on the existing one.
    fn claim(&self, before: Option<&Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let old = before.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = before.is_some_and(|lease| holder(lease) == Some(self.identity()));
        let transitions = old.lease_transitions.unwrap_or_default();
        let metadata = before.map_or_else(
            || ObjectMeta { name: Some(self.lease_config.name.clone()), ..ObjectMeta::default() },
            |lease| lease.metadata.clone(),
        );
        let spec = LeaseSpec {
            holder_identity: Some(self.lease_config.identity.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            acquire_time: if ours { old.acquire_time.clone() } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(if ours || before.is_none() {
                transitions
            } else {
                transitions + 1
            }),
            ..old
        };
        Lease { metadata, spec: Some(spec) }
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    Some(holder).filter(|holder| !holder.is_empty())
}

fn good_for(lease: &Lease) -> Duration {
    let seconds =
        lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
