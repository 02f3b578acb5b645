//! What ends a manager.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What ends a manager, and ends it at once if it comes again.
pub(super) enum Signals {
    /// SIGTERM and SIGINT.
    Process {
        /// SIGTERM.
        terminate: Signal,
        /// SIGINT.
        interrupt: Signal,
    },
    /// The program that it is a part of; comes once.
    Token(Option<CancellationToken>),
}

impl Signals {
    /// Takes the signals over from the system, which would end the process.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self::Process {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) {
        match self {
            Self::Process { terminate, interrupt } => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            Self::Token(stop) => {
                match stop {
                    Some(stop) => stop.cancelled().await,
                    None => std::future::pending().await,
                }
                *stop = None;
            }
        }
    }
}
