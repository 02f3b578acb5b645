//! Leadership: of several managers of one operator, one works at a time.
//!
//! The rules are client-go's: a Lease is written with its resourceVersion as a precondition, so that
//! of two who try one fails; whether somebody else's lease has run out is counted by our own clock
//! from when we last saw it change, so that clocks need not agree; who cannot renew in time gives up
//! before others may take over; who ends lets go. Beyond them: who stands by watches the lease and does
//! not poll, and a [`Fence`] keeps a leader from writing that does not know yet that it is none.

mod fence;
mod lease;
mod lock;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
pub(crate) use fence::{Fence, Moment};
use lease::{Record, Waited};
use lock::Lock;

/// How long a lease is good without being renewed.
const LEASE: Duration = Duration::from_secs(15);
/// How long a leader tries to renew before it gives up; after that it writes nothing. What it has sent
/// until then has the rest of the lease to arrive.
const RENEW_WITHIN: Duration = Duration::from_secs(10);
/// How often is tried, to renew or, where the lease cannot be watched, to acquire.
const RETRY: Duration = Duration::from_secs(2);

/// Which lease, and in whose name.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Who we are: another one for every process.
    pub identity: String,
}

/// Leadership that is held: renewed by a task of its own until it is lost or [`Leadership::release`]d.
pub(crate) struct Leadership {
    record: Record,
    lost: CancellationToken,
    renewing: JoinHandle<()>,
    metrics: Arc<Metrics>,
}

impl Leadership {
    /// Waits until nobody else leads, then opens the fence. Errors are logged and tried again.
    ///
    /// Where the right to the Lease is missing for as long as a lease is good, a ConfigMap of its name
    /// does, as projects of old Helm operators allow it. Where that is missing, too, nobody leads: two
    /// replicas must not both work. Whoever takes the Lease looks first whether somebody holds the
    /// ConfigMap: an old operator, or one of us from before the right was there.
    pub async fn acquire(client: Client, seat: Seat, fence: &Fence, metrics: Arc<Metrics>) -> Self {
        metrics.leads(&seat.name, false);
        let mut candidate = Candidate::new(&client, &seat);
        let mut told = None;
        let mut watches = true;
        let renewed = loop {
            let begun = Moment::now();
            match candidate.take().await {
                Ok(true) => break begun,
                Ok(false) => {
                    let holder = candidate.holder();
                    if holder != told {
                        tracing::info!(leader = holder, "standing by");
                        told = holder;
                    }
                }
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    candidate.refused(begun);
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read or write the lease; trying on");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            }
            if !watches || !candidate.is_held_by_lease() {
                tokio::time::sleep(RETRY).await;
            } else if let Waited::Forbidden = candidate.record.until_free(RETRY).await {
                tracing::info!("no right to watch the lease: asking for it every {RETRY:?}");
                watches = false;
            }
        };
        let record = candidate.record;
        fence.extend(renewed + RENEW_WITHIN);
        tracing::info!(identity = record.identity(), "leading");
        metrics.leads(record.name(), true);
        let lost = CancellationToken::new();
        let renewing = renew(record.clone(), renewed, fence.clone(), lost.clone());
        Self { record, lost, renewing: tokio::spawn(renewing), metrics }
    }

    /// Returns when leadership is lost.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
        self.metrics.leads(self.record.name(), false);
    }

    /// Lets go, so that the next one need not wait for the lease to run out. The fence must be sealed:
    /// from here on another one may write.
    pub async fn release(mut self) {
        self.renewing.abort();
        let _ = (&mut self.renewing).await;
        self.metrics.leads(self.record.name(), false);
        if !self.lost.is_cancelled()
            && let Err(error) = self.record.release().await
        {
            tracing::warn!(%error, "cannot release the lease; it runs out by itself");
        }
    }
}

/// Who stands for election: by a Lease, or by a ConfigMap where the right to Leases is missing.
struct Candidate {
    /// What is tried now.
    record: Record,
    other: Record,
    is_lease: bool,
    namespace: String,
    /// Since when the right is missing.
    since: Option<Moment>,
    told: bool,
}

impl Candidate {
    fn new(client: &Client, seat: &Seat) -> Self {
        let locks = [Lock::lease, Lock::config_map].map(|of| of(client.clone(), &seat.namespace));
        let [record, other] = locks.map(|lock| Record::new(lock, seat.clone(), LEASE));
        let namespace = seat.namespace.clone();
        Self { record, other, is_lease: true, namespace, since: None, told: false }
    }

    async fn take(&mut self) -> Result<bool, kube::Error> {
        if self.is_lease && !self.other.is_free().await? {
            return Ok(false);
        }
        self.record.take().await
    }

    fn holder(&self) -> Option<String> {
        self.record.holder().or(self.other.holder()).map(str::to_owned)
    }

    /// Whether a watch tells when it is free.
    fn is_held_by_lease(&self) -> bool {
        self.is_lease && self.record.holder().is_some()
    }

    /// The right is missing: after a while, in which it may still come, the other lock is tried, and so
    /// in turns.
    fn refused(&mut self, now: Moment) {
        if self.since.get_or_insert(now).elapsed() < LEASE {
            return;
        }
        let (right, namespace) = (self.record.right(), self.namespace.as_str());
        if self.is_lease && !self.told {
            tracing::warn!(right, namespace, "no right to the lease: trying a ConfigMap");
        } else if !self.told {
            self.told = true;
            tracing::error!(
                right,
                namespace,
                "no right to a lease, nor to a ConfigMap in its place: nobody leads; grant it, or run one replica with --leader-elect=false"
            );
        }
        std::mem::swap(&mut self.record, &mut self.other);
        self.is_lease = !self.is_lease;
    }
}

async fn renew(mut record: Record, mut renewed: Moment, fence: Fence, lost: CancellationToken) {
    loop {
        tokio::time::sleep(RETRY).await;
        let begun = Moment::now();
        let left = RENEW_WITHIN.saturating_sub(renewed.elapsed());
        match tokio::time::timeout(left, record.take()).await {
            Ok(Ok(true)) => {
                // From before it was asked for: whoever counts from the answer counts longer.
                renewed = begun;
                fence.extend(renewed + RENEW_WITHIN);
            }
            Ok(Ok(false)) => {
                tracing::error!(leader = record.holder(), "somebody else leads");
                break;
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot renew the lease; trying on"),
            Err(_) => tracing::warn!("no answer to the renewal of the lease"),
        }
        if renewed.elapsed() >= RENEW_WITHIN {
            break;
        }
    }
    fence.seal();
    lost.cancel();
}
