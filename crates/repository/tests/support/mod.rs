//! A server for one test: answers by a function, and remembers what it was asked.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Arc, Mutex};

use catamaran_chart::Profile;
use catamaran_repository::{Access, Finder, Settings};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a server was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub authorization: Option<String>,
    pub body: String,
}

/// What a server answers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The body is repeated until nobody listens any more.
    pub endless: bool,
}

impl Answer {
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, body: body.into(), ..Self::default() }
    }

    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn to(place: impl Into<String>) -> Self {
        Self::status(302).with("location", place)
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub struct Server {
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(None, answer).await
    }

    pub async fn start_with(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (all, answer) = (asked.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (all, answer, tls) = (all.clone(), answer.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &all, &*answer).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &all, &*answer).await,
                            Err(_) => Some(()),
                        },
                    }
                });
            }
        });
        Self { address: format!("{scheme}://127.0.0.1:{port}"), asked, task }
    }

    pub fn host(&self) -> &str {
        self.address.split_once("://").unwrap().1
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The credentials that arrived, path by path.
    pub fn credentials(&self) -> Vec<(String, Option<String>)> {
        self.asked().into_iter().map(|asked| (asked.path, asked.authorization)).collect()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    all: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked) -> Answer + Send + Sync),
) -> Option<()> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|part| part == b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let header = |name: &str| {
        head.lines().skip(1).filter_map(|line| line.split_once(':')).find_map(|(key, value)| {
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length: usize = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = body.as_bytes().to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split(' ');
    let asked = Asked {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        authorization: header("authorization"),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    all.lock().unwrap().push(asked.clone());
    let Answer { status, headers, body, endless } = answer(&asked);
    let mut reply = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n");
    for (name, value) in headers {
        reply += &format!("{name}: {value}\r\n");
    }
    if !endless {
        reply += &format!("content-length: {}\r\n", body.len());
    }
    stream.write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
    stream.write_all(&body).await.ok()?;
    if endless {
        loop {
            stream.write_all(&body).await.ok()?;
        }
    }
    stream.shutdown().await.ok()
}

/// A packaged chart.
pub fn archive(name: &str, version: &str) -> Vec<u8> {
    let mut tar =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (file, text) in [
        ("Chart.yaml", format!("apiVersion: v2\nname: {name}\nversion: {version}\n")),
        ("templates/a.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\n".to_owned()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("{name}/{file}"), text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// In hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(bytes);
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A user with an empty home.
pub struct Home {
    pub folder: tempfile::TempDir,
    pub settings: Settings,
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        let settings = Settings::from_variables(|name| (name == "HOME").then(|| home.clone()));
        Self { folder, settings }
    }

    pub fn write(path: &std::path::Path, text: impl AsRef<[u8]>) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Adds a repository with its index, as `helm repo add` does.
    pub fn add(&self, name: &str, url: &str, more: &str, index: &str) {
        let text = format!("repositories:\n- name: {name}\n  url: {url}\n{more}");
        Self::write(&self.settings.repository_config, text);
        Self::write(&self.settings.repository_cache.join(format!("{name}-index.yaml")), index);
    }

    pub fn finder(&self, access: Access) -> Finder {
        Finder { settings: self.settings.clone(), access, profile: Profile::Helm43, keyring: None }
    }
}

pub fn user() -> Access {
    Access { username: "user".into(), password: "pass".into(), ..Access::default() }
}

/// `user:pass`, as it arrives.
pub const BASIC: &str = "Basic dXNlcjpwYXNz";
