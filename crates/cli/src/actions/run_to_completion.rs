//! Carrying an action to its end: the driver never waits, so this does.

use std::time::{Duration, Instant};

use catamaran_release::{Driver, Error, Waiting};
use jiff::Timestamp;
use tokio::time::sleep;

use super::progress::Progress;

/// How often an object that is waited for is looked at.
const GLANCES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// After this time the action is called again whatever is seen: what is waited for may have changed
/// between the call and the first look, or be something else by now.
const ANYWAY: Duration = Duration::from_secs(3);
/// The pauses after what may pass by itself.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Why an action came to no good end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Interruption {
    /// It failed.
    #[error("{0}")]
    Failed(Error),
    /// A helm is, or may be, at work.
    #[error("{0}; it is taken over in {after} s unless it ends", after = .1.as_secs())]
    Busy(Box<Error>, Duration),
    /// The user, or the system, asked us to end.
    #[error("interrupted; what was begun is kept, and the same command goes on with it")]
    Interrupted,
    /// Somebody else has taken the release over.
    #[error(
        "somebody else works on this release at the same time: revision {0} is theirs, or was given up for another"
    )]
    Overtaken(u32),
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        match error {
            Error::Busy { retry_after, .. } => Self::Busy(Box::new(error), retry_after),
            error => Self::Failed(error),
        }
    }
}

/// The bounds within which an action is carried out.
pub(super) struct Within<'a> {
    pub(super) driver: &'a Driver,
    pub(super) until: Timestamp,
    pub(super) progress: &'a Progress,
}

impl Within<'_> {
    /// Calls until there is nothing to wait for. Can be cut short anywhere.
    pub(super) async fn run_to_completion<T>(
        &self,
        interrupts: &mut Interrupts,
        call: impl AsyncFnMut() -> Result<T, Interruption>,
    ) -> Result<T, Interruption> {
        tokio::select! {
            done = self.until_done(call) => done,
            () = interrupts.next() => Err(Interruption::Interrupted),
        }
    }

    async fn until_done<T>(
        &self,
        mut call: impl AsyncFnMut() -> Result<T, Interruption>,
    ) -> Result<T, Interruption> {
        let mut pause = PAUSES.0;
        loop {
            let error = match call().await {
                Err(Interruption::Failed(error)) => error,
                done => return done,
            };
            match error {
                Error::Waiting(waiting) => {
                    pause = PAUSES.0;
                    self.until_changed(&waiting).await;
                }
                error if error.is_transient() && Timestamp::now() < self.until => {
                    self.progress.print(&error.to_string());
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                error => return Err(error.into()),
            }
        }
    }

    /// Returns once an object that is waited for is not what it was, or some time is over.
    async fn until_changed(&self, waiting: &Waiting) {
        let begun = Instant::now();
        let told = format!("waiting for {} {}: {}", waiting.role, waiting.object, waiting.message);
        self.progress.print(&told);
        let mut before = Some(waiting.seen.clone()).filter(Option::is_some);
        let mut pause = GLANCES.0;
        while begun.elapsed() < ANYWAY && waiting.at_most.is_none_or(|most| begun.elapsed() < most)
        {
            if let Ok(now) = self.driver.object_state(waiting).await
                && *before.get_or_insert_with(|| now.clone()) != now
            {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(GLANCES.1);
            self.progress.print(&told);
        }
    }
}

/// Who wants us to end. Made once: what comes while nobody listens is heard later.
pub(super) struct Interrupts {
    #[cfg(unix)]
    signals: Option<[tokio::signal::unix::Signal; 2]>,
}

impl Interrupts {
    /// Must be called inside a runtime.
    pub(super) fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let of = |kind| signal(kind).ok();
            let signals = of(SignalKind::interrupt()).zip(of(SignalKind::terminate()));
            Self { signals: signals.map(Into::into) }
        }
        #[cfg(not(unix))]
        Self {}
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some([interrupt, terminate]) = &mut self.signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        // Without a handler the default is to end the process, and that is as good.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
