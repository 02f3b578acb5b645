//! A client of memcached: as much of its protocol as a test needs.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to one memcached.
pub struct Memcached(BufReader<TcpStream>);

impl Memcached {
    pub async fn connect(address: &str) -> io::Result<Self> {
        let stream = timeout(PATIENCE, TcpStream::connect(address)).await??;
        Ok(Self(BufReader::new(stream)))
    }

    /// Stores a value for ever.
    pub async fn set(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let head = format!("set {key} 0 0 {}\r\n", value.len());
        self.0.write_all(&[head.as_bytes(), value, b"\r\n"].concat()).await?;
        match self.line().await?.as_str() {
            "STORED" => Ok(()),
            other => Err(io::Error::other(format!("not stored: {other:?}"))),
        }
    }

    /// Reads a value.
    pub async fn get(&mut self, key: &str) -> io::Result<Vec<u8>> {
        self.0.write_all(format!("get {key}\r\n").as_bytes()).await?;
        let head = self.line().await?;
        let size = head.strip_prefix(&format!("VALUE {key} 0 ")).and_then(|size| size.parse().ok());
        let Some(size) = size else {
            return Err(io::Error::other(format!("no value: {head:?}")));
        };
        let mut value = vec![0; size];
        timeout(PATIENCE, self.0.read_exact(&mut value)).await??;
        for expected in ["", "END"] {
            assert_eq!(self.line().await?, expected, "after the value of {key}");
        }
        Ok(value)
    }

    /// A line, without its end.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match timeout(PATIENCE, self.0.read_line(&mut line)).await?? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end_matches("\r\n").to_owned()),
        }
    }
}
