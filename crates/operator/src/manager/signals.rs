//! What ends a manager, and ends it at once if it comes again.

use tokio_util::sync::CancellationToken;

/// Listens from when it is made.
pub(super) enum Signals {
    /// SIGTERM and SIGINT, one after the other.
    Process { terminate: tokio::signal::unix::Signal, interrupt: tokio::signal::unix::Signal },
    /// The word of the program that the manager is a part of; comes once.
    Program(Option<CancellationToken>),
}

impl Signals {
    /// Takes the signals over from the system, which would end the process.
    pub fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self::Process {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Leaves the system's alone.
    pub fn of(stop: CancellationToken) -> Self {
        Self::Program(Some(stop))
    }

    /// The next one.
    pub async fn next(&mut self) {
        match self {
            Self::Process { terminate, interrupt } => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            Self::Program(stop) => {
                match stop {
                    Some(stop) => stop.cancelled().await,
                    None => std::future::pending().await,
                }
                *stop = None;
            }
        }
    }
}
