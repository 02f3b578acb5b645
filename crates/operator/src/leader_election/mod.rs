//! Leader election: of several processes of an operator, one reconciles.
//!
//! The rules are those of client-go. Writes of the Lease have its resourceVersion as a precondition, so one
//! of two candidates fails. A candidate measures with its own clock how long the Lease has not changed, so
//! clocks need not agree. A leader that cannot renew in time gives up before others may take over. A process
//! that ends releases the Lease. In addition, candidates watch the Lease instead of polling it, and a
//! [`Fence`] prevents writes of a leader that does not know yet that it has lost the Lease.

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

/// How long a Lease is valid without renewal.
const LEASE: Duration = Duration::from_secs(15);
/// How long a leader tries to renew before it gives up; then it writes nothing. Requests that it has sent
/// have the rest of the Lease's time to arrive.
const RENEW_WITHIN: Duration = Duration::from_secs(10);
/// How often to try, to renew or, if the Lease cannot be watched, to acquire.
const RETRY: Duration = Duration::from_secs(2);
/// The deadline of one renewal. The next one uses a new connection, so that a half-open connection does not
/// cost the leadership.
const ATTEMPT: Duration = Duration::from_secs(3);

/// The Lease, and the identity of this process.
#[derive(Clone, Debug)]
pub(crate) struct LeaseConfig {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The identity, different for every process.
    pub identity: String,
}

/// Leadership: a task renews it until it is lost or [`Leadership::release`]d.
pub(crate) struct Leadership {
    record: Record,
    lost: CancellationToken,
    renewing: JoinHandle<()>,
    metrics: Arc<Metrics>,
}

impl Leadership {
    /// Waits until nobody else leads, then opens the fence. Logs errors and retries.
    ///
    /// Without the right to the Lease it uses a ConfigMap of the same name, as old Helm operators do. Without
    /// that right, too, nobody leads: two replicas must not reconcile at the same time.
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

    /// Releases the Lease, so that the next leader need not wait until it expires. The fence must be sealed
    /// before, because another process may write from now on.
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

/// The result of an attempt to lead.
enum ElectionResult {
    /// This process leads, and has to renew this lock.
    Leads(Box<Record>),
    /// Another process leads: by the Lease, which can be watched, or by the ConfigMap.
    By { leader: Option<String>, lease: bool },
    /// This process has the ConfigMap, and checks a little later whether another one has the Lease.
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

/// A candidate: it uses the Lease, or a ConfigMap without the right to Leases.
///
/// Two replicas may have different rights for a while: one starts before its role exists, or an API server
/// has not received it yet. So a candidate that takes one lock reads the other one afterwards: of two
/// candidates, at least one sees what the other wrote. A refused request for the Lease shows nothing, so it
/// counts only if it is refused again [`RETRY`] after the ConfigMap was taken.
struct LeaderElector {
    lease: Record,
    map: Record,
    namespace: String,
    /// Whether this process has the ConfigMap, but does not lead yet.
    claims: bool,
    /// How often requests for both were refused.
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

    /// Tries once. The ConfigMap comes first: an old operator may hold it, or a process that started before
    /// the right to the Lease existed.
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
                // Not at the first refusal: the role may be created after the manager.
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

    /// Releases the ConfigMap if it was taken, but not used to lead.
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
                // The time before the request: other candidates measure from the response, which is later.
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
