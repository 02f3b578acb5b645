//! Connections over TLS, for axum.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate::Certificate;

/// How long greetings may take: who is silent holds nothing up.
const GREETING: Duration = Duration::from_secs(10);
/// How many connections may wait to be served, or be greeted, at once.
const WAITING: usize = 64;

type Greeted = (TlsStream<TcpStream>, SocketAddr);

/// Hands out connections whose greetings are done; ends with whoever takes them.
pub(super) struct TlsListener {
    greeted: Receiver<Greeted>,
    address: std::io::Result<SocketAddr>,
}

impl TlsListener {
    /// Greets whoever comes to a bound listener.
    pub fn new(listener: TcpListener, certificate: Arc<Certificate>) -> Self {
        let (sender, greeted) = channel(WAITING);
        let address = listener.local_addr();
        tokio::spawn(greet(listener, certificate, sender));
        Self { greeted, address }
    }
}

async fn greet(listener: TcpListener, certificate: Arc<Certificate>, sender: Sender<Greeted>) {
    loop {
        // A place in the line first: connections beyond it wait in the kernel.
        let Ok(place) = sender.clone().reserve_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let acceptor = TlsAcceptor::from(certificate.config());
        tokio::spawn(async move {
            match tokio::time::timeout(GREETING, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => drop(place.send((stream, from))),
                Ok(Err(error)) => tracing::debug!(%from, %error, "no TLS connection"),
                Err(_) => tracing::debug!(%from, "no TLS connection in time"),
            }
        });
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Greeted {
        match self.greeted.recv().await {
            Some(greeted) => greeted,
            None => std::future::pending().await, // the runtime ends
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        match &self.address {
            Ok(address) => Ok(*address),
            Err(error) => Err(error.kind().into()),
        }
    }
}
