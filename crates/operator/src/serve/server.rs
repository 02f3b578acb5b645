//! HTTP/1.1 on one port, within limits: a client that is slow, silent or greedy costs the process one
//! connection for a bounded time, and keeps no other client out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::certificate::Certificate;

/// The pause after a connection that the system did not hand out, for example for want of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// How long requests that are in progress may take when the server stops.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// What the clients of one port may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many connections are open at once. One more closes the oldest, so that a client that opens
    /// connections and keeps them cannot keep the kubelet out.
    pub connections: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a client may take to send the head of a request, or say nothing between two requests.
    pub head: Duration,
    /// How many bytes the head of a request may have.
    pub head_bytes: usize,
    /// How many headers a request may have.
    pub headers: usize,
    /// How long a connection may live, whatever happens on it.
    pub lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            head_bytes: 16 * 1024,
            headers: 64,
            lifetime: Duration::from_mins(2),
        }
    }
}

/// Serves `routes` on a bound listener until `stop`: over TLS if there is a certificate.
pub(super) async fn serve(
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    routes: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    let mut connections = Connections::new(limits.connections);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let acceptor = certificate.as_ref().map(|it| TlsAcceptor::from(it.config()));
        let (routes, stop) = (routes.clone(), stop.clone());
        connections.spawn(async move {
            let served = connection(stream, peer, acceptor, routes, limits, &stop);
            if tokio::time::timeout(limits.lifetime, served).await.is_err() {
                tracing::debug!(%peer, "closed a connection at the end of its lifetime");
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(SHUTDOWN, connections.ended()).await;
}

/// The open connections of a port, the oldest first.
struct Connections {
    most: usize,
    tasks: JoinSet<()>,
    order: VecDeque<AbortHandle>,
}

impl Connections {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), tasks: JoinSet::new(), order: VecDeque::new() }
    }

    fn spawn(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.order.retain(|open| !open.is_finished());
        while self.order.len() >= self.most {
            if let Some(oldest) = self.order.pop_front() {
                oldest.abort();
            }
        }
        self.order.push_back(self.tasks.spawn(connection));
    }

    async fn ended(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    routes: Router,
    limits: Limits,
    stop: &CancellationToken,
) {
    let Some(acceptor) = acceptor else {
        return exchange(stream, peer, routes, limits, stop).await;
    };
    match tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => exchange(stream, peer, routes, limits, stop).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "the TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
    }
}

async fn exchange<S>(
    stream: S,
    peer: SocketAddr,
    routes: Router,
    limits: Limits,
    stop: &CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.head_bytes)
        .max_headers(limits.headers)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// A server with these limits on a free port, for as long as the guard lives.
    async fn started(limits: Limits) -> (SocketAddr, tokio_util::sync::DropGuard) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let routes = Router::new().route("/", get(|| async { "ok" }));
        tokio::spawn(serve(listener, None, routes, limits, stop.clone()));
        (address, stop.drop_guard())
    }

    async fn answer(stream: &mut TcpStream) -> String {
        stream.write_all(REQUEST).await.unwrap();
        let mut answer = [0; 512];
        let length = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    /// Returns once the server has closed the connection; what it sent before does not matter.
    async fn closed(stream: &mut TcpStream) {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }

    #[tokio::test]
    async fn more_connections_than_the_limit_close_the_oldest_and_keep_no_client_out() {
        let (address, _server) = started(Limits { connections: 4, ..Limits::default() }).await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut client = TcpStream::connect(address).await.unwrap();
        assert!(answer(&mut client).await.starts_with("HTTP/1.1 200 OK"));
        for stream in &mut silent[..36] {
            closed(stream).await;
        }
    }

    #[tokio::test]
    async fn a_slow_head_an_idle_connection_and_a_long_life_end() {
        let short = Duration::from_millis(50);
        let limits = Limits { head: short, ..Limits::default() };
        let (address, _server) = started(limits).await;
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost").await.unwrap();
        closed(&mut slow).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        closed(&mut silent).await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        assert!(answer(&mut idle).await.starts_with("HTTP/1.1 200 OK"));
        closed(&mut idle).await;

        let limits = Limits { lifetime: short, ..Limits::default() };
        let (address, _server) = started(limits).await;
        closed(&mut TcpStream::connect(address).await.unwrap()).await;
    }

    #[tokio::test]
    async fn a_head_with_too_many_bytes_or_headers_is_refused() {
        let (address, _server) = started(Limits::default()).await;
        let long = format!("X: {}\r\n", "x".repeat(64 * 1024));
        let many = "X: x\r\n".repeat(100);
        for headers in [long, many] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
            let _ = stream.write_all(request.as_bytes()).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
        }
    }
}
