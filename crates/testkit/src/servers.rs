//! Real servers of Debian's packages on loopback, in temporary folders: a world outside of Kubernetes
//! that a test starts, stops and starts again.

use std::fs::{File, Permissions};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use catamaran_localcluster::free_port;
use tempfile::TempDir;

use crate::bench::DEADLINE;
use crate::certificates::Identity;

/// Whom PostgreSQL runs as where the test is root, which it refuses to be: a user of every Debian.
const NOBODY: u32 = 65534;

/// A server of its own on loopback; ends with the test.
#[derive(Debug)]
pub struct Server {
    /// Where it listens on 127.0.0.1, also after a stop and a start.
    pub port: u16,
    /// What the user [`Server::USER`] (of Redis: everybody) has to say.
    pub password: String,
    command: Vec<String>,
    folder: TempDir,
    child: Option<Child>,
    /// Ends it without waiting for clients, as SIGTERM of PostgreSQL would.
    signal: &'static str,
    /// What it logs when it serves: some listen before they do.
    ready: &'static str,
}

impl Server {
    /// The administrator of PostgreSQL.
    pub const USER: &'static str = "postgres";

    /// PostgreSQL, in which [`Server::USER`] may do everything; others log in by their passwords.
    pub fn postgres() -> Self {
        Self::new_postgres(None)
    }

    /// The same that takes connections over TLS alone, and shows this certificate.
    pub fn postgres_with_tls(identity: &Identity) -> Self {
        Self::new_postgres(Some(identity))
    }

    fn new_postgres(identity: Option<&Identity>) -> Self {
        let folder = folder();
        let password = "it's \"the\" administrator".to_owned();
        let secret = folder.path().join("password");
        std::fs::write(&secret, &password).unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
        let data = folder.path().join("data").display().to_string();
        let mut initdb = unprivileged();
        initdb.push(postgres_program("initdb"));
        initdb.extend(["--auth=scram-sha-256", "--no-sync", "--encoding=UTF8"].map(String::from));
        initdb.push(format!("--pgdata={data}"));
        initdb.push(format!("--username={}", Self::USER));
        initdb.push(format!("--pwfile={}", secret.display()));
        let made = command(&initdb).current_dir("/").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let Some(identity) = identity else { return Self::over(folder, &data, &[], password) };
        let files = TlsFiles::write(&folder, identity);
        let access = Path::new(&data).join("pg_hba.conf");
        std::fs::write(access, "hostssl all all 127.0.0.1/32 scram-sha-256\n").unwrap();
        let settings = [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", files.certificate.display()),
            format!("ssl_key_file={}", files.key.display()),
        ];
        Self::over(folder, &data, &settings, password)
    }

    /// PostgreSQL over files that are there, such as a copy of another server's: they are its own from
    /// here on.
    pub fn postgres_over(data: &Path, password: &str) -> Self {
        let folder = folder();
        let own = folder.path().join("data").display().to_string();
        let mut copy = Command::new("cp");
        assert!(copy.args(["-a", &data.display().to_string(), &own]).status().unwrap().success());
        if is_root(folder.path()) || is_root(data) {
            let owner = format!("{NOBODY}:{NOBODY}");
            assert!(Command::new("chown").args(["-R", &owner, &own]).status().unwrap().success());
        }
        Self::over(folder, &own, &[], password.to_owned())
    }

    fn over(folder: TempDir, data: &str, settings: &[String], password: String) -> Self {
        let port = free_port().unwrap();
        let mut command = unprivileged();
        command.push(postgres_program("postgres"));
        command.extend(["-D".to_owned(), data.to_owned(), format!("--port={port}")]);
        let common = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "lc_messages=C",
        ];
        for setting in common.map(String::from).iter().chain(settings) {
            command.extend(["-c".to_owned(), setting.clone()]);
        }
        Self { port, password, command, folder, child: None, signal: "INT", ready: SERVES }
            .started()
    }

    /// Redis that asks for the password.
    pub fn redis() -> Self {
        Self::new_redis(|port, _| format!("port {port}"))
    }

    /// The same that takes connections over TLS alone, and shows this certificate.
    pub fn redis_with_tls(identity: &Identity) -> Self {
        Self::new_redis(|port, folder| {
            let files = TlsFiles::write(folder, identity);
            let (certificate, key) = (files.certificate.display(), files.key.display());
            format!(
                "port 0\ntls-port {port}\ntls-cert-file {certificate}\ntls-key-file {key}\n\
                 tls-ca-cert-file {certificate}\ntls-auth-clients no"
            )
        })
    }

    fn new_redis(listener: impl FnOnce(u16, &TempDir) -> String) -> Self {
        let (folder, port, password) = (folder(), free_port().unwrap(), "redis s3cret".to_owned());
        let config = folder.path().join("redis.conf");
        let (dir, listener) = (folder.path().display(), listener(port, &folder));
        let text = format!(
            "bind 127.0.0.1\n{listener}\nrequirepass \"{password}\"\nsave \"\"\ndir {dir}\n"
        );
        std::fs::write(&config, text).unwrap();
        let command = vec![program("redis-server"), config.display().to_string()];
        let (signal, ready) = ("TERM", "Ready to accept connections");
        Self { port, password, command, folder, child: None, signal, ready }.started()
    }

    /// memcached, which asks nobody for anything.
    pub fn memcached() -> Self {
        let (folder, port) = (folder(), free_port().unwrap());
        let mut command = vec![program("memcached")];
        command.extend(["-l", "127.0.0.1", "-U", "0", "-u", "nobody", "-p"].map(String::from));
        command.push(port.to_string());
        let (password, signal) = (String::new(), "TERM");
        Self { port, password, command, folder, child: None, signal, ready: "" }.started()
    }

    /// Ends it; what PostgreSQL holds stays.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = child.id().to_string();
        let asked = Command::new("kill").args([&format!("-{}", self.signal), &pid]).status();
        assert!(asked.unwrap().success());
        child.wait().unwrap();
    }

    /// Starts it again, on the same port.
    pub fn start(&mut self) {
        let before = self.log().len();
        let log = File::options().create(true).append(true).open(self.log_file()).unwrap();
        let child = command(&self.command)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
        let begun = Instant::now();
        let serves = || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
                && self.log().get(before..).is_some_and(|log| log.contains(self.ready))
        };
        while !serves() {
            assert!(begun.elapsed() < DEADLINE, "no server after {DEADLINE:?}: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn started(mut self) -> Self {
        self.start();
        self
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = self.child.as_mut() {
            // PostgreSQL's children end when it is gone, and its folder is not needed any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where a server finds its certificate and key.
struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl TlsFiles {
    /// The files, readable by the server alone: PostgreSQL refuses a key that others may read.
    fn write(folder: &TempDir, identity: &Identity) -> Self {
        let write = |name: &str, pem: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, pem).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            if is_root(&path) {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            path
        };
        Self {
            certificate: write("server.crt", &identity.certificate),
            key: write("server.key", &identity.key),
        }
    }
}

/// A folder that an unprivileged server may write to.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    if is_root(folder.path()) {
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    folder
}

/// Whether whoever makes files here is root.
fn is_root(made: &Path) -> bool {
    made.metadata().unwrap().uid() == 0
}

/// What comes before a command that refuses to be root.
fn unprivileged() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    if !is_root(folder.path()) {
        return Vec::new();
    }
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    vec![program("setpriv"), user, group, "--clear-groups".to_owned()]
}

fn command(line: &[String]) -> Command {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    command
}

/// A program by its name. Administrators' programs are not on everybody's PATH.
fn program(name: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let mut found = folders.map(|folder| folder.join(name)).filter(|file| file.is_file());
    let found = found.next().unwrap_or_else(|| panic!("{name} is missing: {INSTALL}"));
    found.display().to_string()
}

/// Debian keeps PostgreSQL's programs in a folder for each version: the newest one's.
fn postgres_program(name: &str) -> String {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut versions: Vec<_> = versions.map(|entry| entry.path()).collect();
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    let mut programs = versions.iter().map(|version| version.join("bin").join(name));
    let found = programs.find(|program| program.is_file());
    found.map_or_else(|| program(name), |found| found.display().to_string())
}

/// What PostgreSQL says when it does.
const SERVES: &str = "database system is ready to accept ";
const INSTALL: &str = "it is in one of Debian's packages that `hack/node.sh install` installs";
