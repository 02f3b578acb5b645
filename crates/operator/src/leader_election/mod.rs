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
/// How long one renewal may take: the next one goes by a new connection, so that one that is half open does not
/// cost the leadership.
const ATTEMPT: Duration = Duration::from_secs(3);

/// Which lease, and in whose name.
#[derive(Clone, Debug)]
pub(crate) struct LeaseConfig {
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
    /// Where the right to the Lease is missing a ConfigMap of its name does, as projects of old Helm
    /// operators allow it. Where that is missing, too, nobody leads: two replicas must not both work.
    pub async fn acquire(
        client: Client,
        lease_config: LeaseConfig,
        fence: &Fence,
        metrics: Arc<Metrics>,
    ) -> Self {
        metrics.leads(&lease_config.name, false);
        let mut candidate = LeaderElector::new(&client, &lease_config);
        let mut told = None;
        let mut watches = true;
        let (record, renewed) = loop {
            let begun = Moment::now();
            let can_be_watched = match candidate.try_acquire().await {
                Ok(ElectionResult::Leads(record)) => break (*record, begun),
                Ok(ElectionResult::By { leader, lease }) => {
                    if leader != told {
                        tracing::info!(leader, "standing by");
                        told = leader;
                    }
                    lease
                }
                Ok(ElectionResult::Claims | ElectionResult::Refused) => false,
                Err(error) => {
                    tracing::warn!(%error, "cannot read or write the lease; trying on");
                    false
                }
            };
            if !watches || !can_be_watched {
                tokio::time::sleep(RETRY).await;
            } else if let Waited::Forbidden = candidate.lease.until_free(RETRY).await {
                tracing::info!("no right to watch the lease: asking for it every {RETRY:?}");
                watches = false;
            }
        };
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

/// How one attempt to lead ended.
enum ElectionResult {
    /// We lead, and this is to be renewed.
    Leads(Box<Record>),
    /// Somebody else leads: by the Lease, which can be watched, or by the ConfigMap.
    By { leader: Option<String>, lease: bool },
    /// The ConfigMap is ours; whether nobody leads by the Lease is looked at once more, a little later.
    Claims,
    /// There is no right to either.
    Refused,
}

impl ElectionResult {
    fn by(record: &Record, lease: bool) -> Self {
        let leader = record.holder().map(str::to_owned);
        Self::By { lease: lease && leader.is_some(), leader }
    }
}

/// Who stands for election: by a Lease, or by a ConfigMap where the right to Leases is missing.
///
/// Two replicas may find different rights: one starts before a role is there, or an API server has not
/// heard of it yet. So whoever takes one lock looks at the other one after that: of two at least one sees
/// what the other wrote. A refused Lease shows nothing, so it counts only if it is refused again
/// [`RETRY`] after the ConfigMap was taken.
struct LeaderElector {
    lease: Record,
    map: Record,
    namespace: String,
    /// Whether the ConfigMap is ours, without being led by yet.
    claims: bool,
    /// How often both were refused.
    refusals: u32,
    told: bool,
}

impl LeaderElector {
    fn new(client: &Client, lease_config: &LeaseConfig) -> Self {
        let locks =
            [Lock::lease, Lock::config_map].map(|of| of(client.clone(), &lease_config.namespace));
        let [lease, map] = locks.map(|lock| Record::new(lock, lease_config.clone(), LEASE));
        let namespace = lease_config.namespace.clone();
        Self { lease, map, namespace, claims: false, refusals: 0, told: false }
    }

    /// Tries once. The ConfigMap comes first: an old operator may hold it, or one of us from before the
    /// right to the Lease was there.
    async fn try_acquire(&mut self) -> Result<ElectionResult, kube::Error> {
        if !self.map.is_free().await? {
            self.claims = false;
            return Ok(ElectionResult::by(&self.map, false));
        }
        match self.lease.take().await {
            Ok(true) if self.map.is_free().await? => {
                self.unclaim().await?;
                Ok(ElectionResult::Leads(Box::new(self.lease.clone())))
            }
            Ok(true) => {
                self.lease.release().await?;
                Ok(ElectionResult::by(&self.map, false))
            }
            Ok(false) => {
                self.unclaim().await?;
                Ok(ElectionResult::by(&self.lease, true))
            }
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                self.try_acquire_config_map().await
            }
            Err(error) => Err(error),
        }
    }

    /// The same without the right to the Lease.
    async fn try_acquire_config_map(&mut self) -> Result<ElectionResult, kube::Error> {
        let namespace = self.namespace.as_str();
        if !std::mem::replace(&mut self.told, true) {
            let right = self.lease.right();
            tracing::warn!(right, namespace, "no right to the lease: trying a ConfigMap");
        }
        let claimed = std::mem::take(&mut self.claims);
        match self.map.take().await {
            Ok(true) if claimed => Ok(ElectionResult::Leads(Box::new(self.map.clone()))),
            Ok(taken) => {
                self.claims = taken;
                Ok(if taken {
                    ElectionResult::Claims
                } else {
                    ElectionResult::by(&self.map, false)
                })
            }
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                self.refusals += 1;
                // Not at the first one: the role may come right after the manager.
                if self.refusals == 2 {
                    let right = self.map.right();
                    tracing::error!(
                        right,
                        namespace,
                        "no right to a lease, nor to a ConfigMap in its place: nobody leads; grant it, or run one replica with --leader-elect=false"
                    );
                }
                Ok(ElectionResult::Refused)
            }
            Err(error) => Err(error),
        }
    }

    /// Lets the ConfigMap go if it was taken, and not led by.
    async fn unclaim(&mut self) -> Result<(), kube::Error> {
        if self.claims {
            self.map.release().await?;
            self.claims = false;
        }
        Ok(())
    }
}

async fn renew(mut record: Record, mut renewed: Moment, fence: Fence, lost: CancellationToken) {
    loop {
        tokio::time::sleep(RETRY).await;
        let begun = Moment::now();
        let left = RENEW_WITHIN.saturating_sub(renewed.elapsed());
        match tokio::time::timeout(left.min(ATTEMPT), record.take()).await {
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
