//! Servers of charts, and what asks them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use catamaran_localcluster::free_port;

/// `user:pass`
pub const BASIC: &str = "Basic dXNlcjpwYXNz";
pub const CREDENTIALS: [&str; 4] = ["--username", "user", "--password", "pass"];

/// Serves a folder to who has the credentials, or to all; gives the address.
pub fn serve(folder: PathBuf, credentials: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let folder = folder.clone();
            thread::spawn(move || answer(stream, &folder, credentials));
        }
    });
    address
}

fn answer(mut stream: TcpStream, folder: &Path, credentials: Option<&str>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let first = lines.next()?;
    let path = first.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let mut values = head.iter().filter_map(|line| line.split_once(": "));
    let is_user = credentials.is_none_or(|basic| values.any(|(_, value)| value == basic));
    let (status, body) = match fs::read(folder.join(path)) {
        _ if !is_user => ("401 Unauthorized", Vec::new()),
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let reply =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(reply.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

pub struct World {
    pub folder: tempfile::TempDir,
    pub helms: [(PathBuf, &'static str); 2],
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn chart(folder: &Path, name: &str, more: &str) {
    write(folder.join("Chart.yaml"), &format!("apiVersion: v2\nname: {name}\n{more}"));
    let template = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: {{ .Chart.Name }}-{{ .Chart.Version }}\ndata:\n  values: {{ .Values | toJson | quote }}\n";
    write(folder.join("templates/a.yaml"), template);
    write(folder.join("values.yaml"), "a: 1 # one\n");
}

impl World {
    pub fn new() -> Self {
        let tools = catamaran_localcluster::tools().unwrap();
        let helms = [(tools.helm(), "4.3"), (tools.helm3(), "3.18")];
        Self { folder: tempfile::tempdir().unwrap(), helms }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn run(&self, program: &Path, at: &Path, arguments: &[&str]) -> Output {
        Command::new(program)
            .args(arguments)
            .current_dir(at)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("KUBECONFIG", "/nonexistent")
            .output()
            .unwrap()
    }

    pub fn helm(&self, arguments: &[&str]) -> Output {
        let output = self.run(&self.helms[0].0, self.folder.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}");
        output
    }

    /// Packages of a chart in three versions.
    pub fn packages(&self, folder: &Path) {
        for version in ["1.0.0+b1", "1.1.0", "2.0.0-rc1"] {
            let source = self.path("c");
            chart(&source, "c", &format!("version: {version}\n"));
            let (source, folder) = (source.display().to_string(), folder.display().to_string());
            self.helm(&["package", &source, "-d", &folder]);
        }
    }

    /// `template` of both generations, and ours with their profile.
    #[track_caller]
    pub fn equal(&self, arguments: &[&str]) {
        self.equal_to(&self.helms, arguments);
    }

    #[track_caller]
    pub fn equal_to(&self, helms: &[(PathBuf, &str)], arguments: &[&str]) {
        for (helm, profile) in helms {
            let theirs = self.run(helm, self.folder.path(), &[&["template"], arguments].concat());
            let flags = ["template", "--profile", profile];
            let ours = self.run(catamaran(), self.folder.path(), &[&flags, arguments].concat());
            same(&ours, &theirs, &format!("{profile} {arguments:?}"));
        }
    }
}

pub fn catamaran() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_catamaran"))
}

#[track_caller]
pub fn same(ours: &Output, theirs: &Output, what: &str) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("theirs-", "ours-");
    assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{what}: {}", text(&ours.stderr));
    assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{what}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{what}");
}

/// All files below a folder; of archives, what is in them.
pub fn content(folder: &Path, below: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{below}/{}", path.file_name().unwrap().display());
        if path.is_dir() {
            found.extend(content(&path, &name));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let text = if bytes.starts_with(b"\x1f\x8b") {
            let files = catamaran_chart::load::archive_files(&bytes).unwrap();
            format!("{files:?}")
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        };
        // When it was made is no part of what it says.
        let lines = text.lines().filter(|line| !line.starts_with("generated: "));
        found.insert(name, lines.collect::<Vec<_>>().join("\n"));
    }
    found
}

/// A registry that opens to `user:pass`.
pub struct Registry {
    process: Child,
    pub host: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    pub fn start(folder: &Path) -> Option<Self> {
        let port = free_port().unwrap();
        let at = folder.display();
        // The password is `pass`.
        let users = "user:$2y$05$9xxN3AjUm2UCEiLi9e/Du.0tLVCgqt4nRQzx8RiMQXVRjcyyJXsNm";
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("users"), users).unwrap();
        let config = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {at}/data}}}}\nhttp: {{addr: \"127.0.0.1:{port}\"}}\nauth: {{htpasswd: {{realm: r, path: {at}/users}}}}\n"
        );
        fs::write(folder.join("config.yml"), config).unwrap();
        let process = Command::new("docker-registry")
            .args(["serve", "config.yml"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let registry = Self { process, host: format!("127.0.0.1:{port}") };
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if let Ok(mut stream) = TcpStream::connect(&registry.host) {
                stream.write_all(b"GET /v2/ HTTP/1.0\r\n\r\n").unwrap();
                let mut reply = String::new();
                if stream.read_to_string(&mut reply).is_ok_and(|read| read > 0) {
                    return Some(registry);
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the registry does not answer")
    }
}
