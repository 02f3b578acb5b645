//! One real node per machine at a time: its link has a name, and its networks routes, of which a
//! machine has one set.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::readiness::POLL;

/// The name that only one process can have. It is no file: the kernel forgets it with its holder,
/// however that ends. Like routes and links it is per network namespace, so that what is kept apart
/// there need not wait here.
const NAME: &[u8] = b"catamaran-real-node";

/// How long to wait for another one's real node. Most are held by tests, which take a minute.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// The right to have a real node on this machine, until it is dropped.
pub(crate) struct Claim {
    _name: UnixListener,
}

impl Claim {
    /// Waits until nobody else has a real node, and says once who has.
    ///
    /// # Errors
    /// If that takes longer than [`PATIENCE`].
    pub(crate) async fn wait(report: impl Fn(&str)) -> Result<Self> {
        let begun = Instant::now();
        let mut reported = false;
        loop {
            if let Some(claim) = take(NAME).map_err(Error::io("claim this machine's real node"))? {
                return Ok(claim);
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Deadline {
                    waiting_for: format!("the end of the real node of {}", holder(NAME)),
                    after: PATIENCE,
                });
            }
            if !std::mem::replace(&mut reported, true) {
                report(&format!(
                    "one machine has room for one real node: waiting for the end of that of {}",
                    holder(NAME)
                ));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// `None`: somebody else has it.
fn take(name: &[u8]) -> io::Result<Option<Claim>> {
    match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?) {
        Ok(listener) => Ok(Some(Claim { _name: listener })),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

/// Who has it, for a person: the process, and the folder of its cluster.
fn holder(name: &[u8]) -> String {
    let process = || -> io::Result<i32> {
        // Nobody accepts, and nobody needs to: the kernel knows who listens.
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        Ok(rustix::net::sockopt::socket_peercred(&stream)?.pid.as_raw_nonzero().get())
    };
    let Ok(pid) = process() else { return "another cluster".into() };
    match std::fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(folder) => format!("process {pid} ({})", folder.display()),
        Err(_) => format!("process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_the_claim_and_others_learn_who() {
        let name = format!("catamaran-test-{}", std::process::id());
        let claim = take(name.as_bytes()).unwrap();
        assert!(claim.is_some());
        assert!(take(name.as_bytes()).unwrap().is_none());
        let who = holder(name.as_bytes());
        assert!(who.starts_with(&format!("process {} (/", std::process::id())), "{who}");
        drop(claim);
        assert!(take(name.as_bytes()).unwrap().is_some(), "it goes with its holder");
    }
}
