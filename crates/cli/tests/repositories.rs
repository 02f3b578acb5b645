//! Charts and dependencies of repositories and registries, beside the real helm: the same output,
//! the same error, the same files.
//!
//! The registry is Debian's `docker-registry`, where it is installed.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

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
const BASIC: &str = "Basic dXNlcjpwYXNz";
const CREDENTIALS: [&str; 4] = ["--username", "user", "--password", "pass"];

/// Serves a folder to who has the password; gives the address.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let folder = folder.clone();
            thread::spawn(move || answer(stream, &folder));
        }
    });
    address
}

fn answer(mut stream: TcpStream, folder: &Path) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let first = lines.next()?;
    let path = first.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let is_user = head.iter().any(|line| line.split_once(": ").is_some_and(|(_, v)| v == BASIC));
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

struct World {
    folder: tempfile::TempDir,
    helms: [(PathBuf, &'static str); 2],
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn chart(folder: &Path, name: &str, more: &str) {
    write(folder.join("Chart.yaml"), &format!("apiVersion: v2\nname: {name}\n{more}"));
    let template = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: {{ .Chart.Name }}-{{ .Chart.Version }}\ndata:\n  values: {{ .Values | toJson | quote }}\n";
    write(folder.join("templates/a.yaml"), template);
    write(folder.join("values.yaml"), "a: 1 # one\n");
}

impl World {
    fn new() -> Self {
        let tools = catamaran_localcluster::tools().unwrap();
        let helms = [(tools.helm(), "4.3"), (tools.helm3(), "3.18")];
        Self { folder: tempfile::tempdir().unwrap(), helms }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, program: &Path, at: &Path, arguments: &[&str]) -> Output {
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

    fn helm(&self, arguments: &[&str]) -> Output {
        let output = self.run(&self.helms[0].0, self.folder.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}");
        output
    }

    /// Packages of a chart in three versions.
    fn packages(&self, folder: &Path) {
        for version in ["1.0.0+b1", "1.1.0", "2.0.0-rc1"] {
            let source = self.path("c");
            chart(&source, "c", &format!("version: {version}\n"));
            let (source, folder) = (source.display().to_string(), folder.display().to_string());
            self.helm(&["package", &source, "-d", &folder]);
        }
    }

    /// `template` of both generations, and ours with their profile.
    #[track_caller]
    fn equal(&self, arguments: &[&str]) {
        self.equal_to(&self.helms, arguments);
    }

    #[track_caller]
    fn equal_to(&self, helms: &[(PathBuf, &str)], arguments: &[&str]) {
        for (helm, profile) in helms {
            let theirs = self.run(helm, self.folder.path(), &[&["template"], arguments].concat());
            let flags = ["template", "--profile", profile];
            let ours = self.run(catamaran(), self.folder.path(), &[&flags, arguments].concat());
            same(&ours, &theirs, &format!("{profile} {arguments:?}"));
        }
    }
}

fn catamaran() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_catamaran"))
}

#[track_caller]
fn same(ours: &Output, theirs: &Output, what: &str) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("theirs-", "ours-");
    assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{what}: {}", text(&ours.stderr));
    assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{what}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{what}");
}

#[test]
fn charts_of_repositories() {
    let world = World::new();
    let web = world.path("web");
    world.packages(&web);
    world.helm(&["repo", "index", "web"]);
    let address = serve(web);
    let added = ["repo", "add", "r", &address, "--username", "user", "--password", "pass"];
    world.helm(&added);
    for line in [
        "r/c",
        "r/c --version 1.0.0+b1",
        "r/c --version ^1",
        "r/c --version >3",
        "r/c --devel",
        "r/nope",
        "nope/c",
        "nope",
        "./nope",
        "/nope",
        "file:///nope",
        "git://h/c",
        "oci://",
        "x --repo ADDRESS --username user --password pass",
        "c --repo file:///x --version 1",
        "ADDRESS/c-1.1.0.tgz",
        "ADDRESS/nope.tgz",
        "ADDRESS/c-1.1.0.tgz --username user --password pass",
        "ADDRESS/nope.tgz --username user --password pass",
        "r/c -f ADDRESS/index.yaml",
        "r/c --set-file a=ADDRESS/index.yaml",
    ] {
        let line = line.replace("ADDRESS", &address);
        let arguments: Vec<&str> = line.split(' ').collect();
        world.equal(&arguments);
    }
    fs::rename(world.path("c"), world.path("elsewhere")).unwrap();
    for more in [&[][..], &["--devel"], &["--version", "7"]] {
        world.equal(&[&["c", "--repo", &address], &CREDENTIALS[..], more].concat());
        world.equal(&[&["c", "--repo", &address], more].concat());
    }
    let url = address.replace("://", "://user:pass@");
    world.equal(&["r/c", "--set-file", &format!("a={url}/index.yaml")]);
    world.equal(&["r/c", "-f", &format!("{url}/index.yaml"), "--version", "1.1.0"]);
}

/// All files below a folder; of archives, what is in them.
fn content(folder: &Path, below: &str) -> BTreeMap<String, String> {
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

#[test]
fn dependencies_of_charts() {
    let world = World::new();
    let web = world.path("web");
    world.packages(&web);
    world.helm(&["repo", "index", "web"]);
    let address = serve(web);
    world.helm(&["repo", "add", "r", &address, "--username", "user", "--password", "pass"]);
    let cases = [
        ("v2", "{name: c, version: ^1, repository: \"@r\"}", ""),
        (
            "v2",
            "{name: c, version: \"~1.0.0-0\", repository: ADDRESS/, alias: b, condition: x.y, tags: [t], import-values: [a, {child: x, parent: y}]}",
            "{name: l, version: \">=0.1 <2\", repository: \"file://../l\"}",
        ),
        ("v2", "{name: l, version: \"*\"}", ""),
        ("v2", "{name: l, version: \"9\", repository: \"file://../l\"}", ""),
        ("v2", "{name: l, version: \"0\", repository: \"file://../nope\"}", ""),
        ("v2", "{name: c, version: \"9\", repository: \"@r\"}", ""),
        ("v2", "{name: nope, version: \"1\", repository: \"@r\"}", ""),
        ("v2", "{name: c, version: \"1\", repository: \"@nope\"}", ""),
        ("v2", "{name: c, version: \"1\", repository: nope}", ""),
        ("v2", "{name: c, repository: \"@r\"}", ""),
    ];
    for (number, (version, first, second)) in cases.iter().enumerate() {
        let make = |at: &str| {
            let folder = world.path(&format!("{at}-{number}"));
            chart(&folder.join("l"), "l", "version: 0.1.0\nappVersion: 1.10\n");
            chart(&folder.join("p/charts/zz"), "zz", "version: 1.0.0\n");
            fs::copy(world.path("web/c-2.0.0-rc1.tgz"), folder.join("p/charts/c-2.0.0-rc1.tgz"))
                .unwrap();
            let all = [first, second].into_iter().filter(|text| !text.is_empty());
            let all = all.map(|text| text.replace("ADDRESS", &address)).collect::<Vec<_>>();
            let more = format!("version: 1.0.0\ndependencies:\n- {}\n", all.join("\n- "));
            chart(&folder.join("p"), "p", &more.replace("v2", version));
            folder
        };
        let (theirs, ours) = (make("theirs"), make("ours"));
        for line in ["list p", "update p", "list p", "update p --skip-refresh", "build p"] {
            let arguments: Vec<&str> = ["dependency"].into_iter().chain(line.split(' ')).collect();
            let helms = world.run(&world.helms[0].0, &theirs, &arguments);
            let mine = world.run(catamaran(), &ours, &arguments);
            same(&mine, &helms, &format!("{first} {line}"));
            assert_eq!(content(&ours, ""), content(&theirs, ""), "{first} {line}");
        }
        if first.contains("import-values") {
            // Its warnings are in other words.
            continue;
        }
        let template = ["template", "p", "--dependency-update"];
        let helms = world.run(&world.helms[0].0, &theirs, &template);
        same(&world.run(catamaran(), &ours, &template), &helms, first);
    }
}

/// A registry that opens to `user:pass`.
struct Registry {
    process: Child,
    host: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    fn start(folder: &Path) -> Option<Self> {
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

#[test]
fn charts_of_registries() {
    let world = World::new();
    let Some(registry) = Registry::start(&world.path("registry")) else {
        println!("skipped: docker-registry is not installed");
        return;
    };
    let (web, host) = (world.path("web"), &registry.host);
    world.packages(&web);
    let team = format!("oci://{host}/team");
    for entry in fs::read_dir(&web).unwrap() {
        let archive = entry.unwrap().path().display().to_string();
        world.helm(&[&["push", &archive, &team, "--plain-http"], &CREDENTIALS[..]].concat());
    }
    let name = format!("{team}/c");
    for more in
        ["", "--version 1.0.0+b1", "--version ^1", "--version >9", "--version 9.0.0", "--devel"]
    {
        let more: Vec<&str> = more.split_whitespace().collect();
        let arguments = [&[&name, "--plain-http"], &CREDENTIALS[..], &more].concat();
        // Helm 3.18 does not send these to a registry.
        world.equal_to(&world.helms[..1], &arguments);
    }
    world.equal(&[&name, "--plain-http"]);
    let login = ["registry", "login", host, "--plain-http", "-u", "user", "-p", "pass"];
    world.helm(&login);
    let pulled = world.helm(&["pull", &name, "--plain-http", "--version", "1.1.0"]);
    let said = String::from_utf8_lossy(&pulled.stdout).into_owned()
        + &String::from_utf8_lossy(&pulled.stderr);
    let digest = said.lines().find_map(|line| line.strip_prefix("Digest: ")).unwrap().to_owned();
    for tail in [
        "",
        ":1.1.0",
        ":latest",
        ":7.0.0",
        &format!("@{digest}"),
        &format!(":1.1.0@{digest}"),
        &format!("@sha256:{}", "0".repeat(64)),
        "C",
        "/nope:1.0.0",
    ] {
        world.equal(&[&format!("{name}{tail}"), "--plain-http"]);
    }
    world.equal(&[&format!("{name}:1.1.0"), "--plain-http", "--version", "1.0.0"]);
    // Helm 3.18 takes a tag and a digest that contradict each other.
    world.equal_to(&world.helms[..1], &[&format!("{name}:2.0.0-rc1@{digest}"), "--plain-http"]);

    let dependency = format!(
        "version: 1.0.0\ndependencies:\n- {{name: c, version: ^1, repository: \"{team}\"}}\n"
    );
    for at in ["theirs", "ours"] {
        chart(&world.path(at).join("p"), "p", &dependency);
    }
    for line in ["dependency update p --plain-http", "dependency build p --plain-http"] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let helms = world.run(&world.helms[0].0, &world.path("theirs"), &arguments);
        let mine = world.run(catamaran(), &world.path("ours"), &arguments);
        same(&mine, &helms, line);
        assert_eq!(content(&world.path("ours"), ""), content(&world.path("theirs"), ""), "{line}");
    }
}
