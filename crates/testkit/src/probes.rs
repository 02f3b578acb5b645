//! What a kubelet would ask an operator.

use catamaran_localcluster::free_port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An address at which an operator can answer probes.
#[derive(Clone, Debug)]
pub struct Probes(String);

impl Probes {
    /// One that nobody uses.
    pub fn free() -> Self {
        Self(format!("127.0.0.1:{}", free_port().unwrap()))
    }

    /// For `--health-probe-bind-address`.
    pub fn address(&self) -> &str {
        &self.0
    }

    /// The code of an answer, such as to `/readyz`; `None` where nobody listens.
    pub async fn answer(&self, path: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(&self.0).await.ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        answer.split_whitespace().nth(1)?.parse().ok()
    }

    /// Waits until a path is answered with this code.
    pub async fn answers(&self, path: &str, code: u16) {
        crate::eventually(&format!("{path} answers {code}"), async || {
            match self.answer(path).await {
                Some(answer) if answer == code => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}
