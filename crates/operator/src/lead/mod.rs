//! Leadership: of several managers of one operator, one works at a time.
//!
//! The rules are client-go's: a Lease is written with its resourceVersion as a precondition, so that
//! of two who try one fails; whether somebody else's lease has run out is counted by our own clock
//! from when we last saw it change, so that clocks need not agree; who cannot renew in time gives up
//! before others may take over; who ends lets go.

mod lease;

use std::time::{Duration, Instant};

use kube::{Api, Client};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use lease::Record;

/// How long a lease is good without being renewed.
const LEASE: Duration = Duration::from_secs(15);
/// How long a leader tries to renew before it gives up.
const RENEW_WITHIN: Duration = Duration::from_secs(10);
/// How often is tried, to acquire or to renew.
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
}

impl Leadership {
    /// Waits until nobody else leads. Errors are logged and tried again.
    pub async fn acquire(client: Client, seat: Seat) -> Self {
        let api = Api::namespaced(client, &seat.namespace);
        let mut record = Record::new(api, seat, LEASE);
        let mut told = None;
        loop {
            match record.take().await {
                Ok(true) => break,
                Ok(false) => {
                    let holder = record.holder().map(str::to_owned);
                    if holder != told {
                        tracing::info!(leader = holder, "standing by");
                        told = holder;
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot read or write the lease; trying on"),
            }
            tokio::time::sleep(RETRY).await;
        }
        tracing::info!(identity = record.identity(), "leading");
        let lost = CancellationToken::new();
        let renewing = tokio::spawn(renew(record.clone(), lost.clone()));
        Self { record, lost, renewing }
    }

    /// Returns when leadership is lost.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Lets go, so that the next one need not wait for the lease to run out.
    pub async fn release(mut self) {
        self.renewing.abort();
        let _ = (&mut self.renewing).await;
        if !self.lost.is_cancelled()
            && let Err(error) = self.record.release().await
        {
            tracing::warn!(%error, "cannot release the lease; it runs out by itself");
        }
    }
}

async fn renew(mut record: Record, lost: CancellationToken) {
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(RETRY).await;
        let begun = Instant::now();
        match tokio::time::timeout(RENEW_WITHIN.saturating_sub(renewed.elapsed()), record.take())
            .await
        {
            Ok(Ok(true)) => renewed = begun,
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
    lost.cancel();
}
