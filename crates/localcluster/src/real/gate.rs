//! The way from the node to the API server, which keeps to loopback: nobody but the node comes in.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};

/// What to wait if no connection can be had, for want of descriptors most likely.
const PAUSE: Duration = Duration::from_millis(500);

/// Passes connections on until it is dropped.
pub(crate) struct Gate(JoinHandle<()>);

impl Gate {
    /// Listens at `outer`, on the host's end of the link to the node, for `inner`.
    pub(crate) async fn open(outer: SocketAddr, inner: SocketAddr) -> Result<Self> {
        let listener =
            TcpListener::bind(outer).await.map_err(Error::io(format!("listen on {outer}")))?;
        Ok(Self(tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::spawn(pass(stream, inner));
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        })))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Both ways, until either side has had enough. What goes wrong, both sides see as a connection that
/// ends.
async fn pass(mut from: TcpStream, to: SocketAddr) {
    let Ok(mut to) = TcpStream::connect(to).await else { return };
    for stream in [&from, &to] {
        let _ = stream.set_nodelay(true);
    }
    let _ = copy_bidirectional(&mut from, &mut to).await;
}
