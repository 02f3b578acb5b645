//! Charts that are signed, beside the real helm. The fixtures are those of crates/repository.

use std::fs;
use std::path::{Path, PathBuf};

use super::world::{CREDENTIALS, Registry, World, catamaran, chart, content, same, serve};

const ARCHIVE: &str = "signed-1.0.0.tgz";
/// What ours does not take, and Helm does; crates/repository tells what is said.
const REFUSED: [&str; 2] = ["brainpool", "sha224"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../repository/tests/provenance")
}

fn ring(name: &str) -> String {
    fixtures().join(name).display().to_string()
}

impl World {
    /// Puts the chart, and what is signed of it by this fixture, into a folder.
    fn sign(&self, folder: &str, provenance: &str) {
        let folder = self.path(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(fixtures().join(ARCHIVE), folder.join(ARCHIVE)).unwrap();
        let provenance = fixtures().join(format!("{provenance}.prov"));
        fs::copy(provenance, folder.join(format!("{ARCHIVE}.prov"))).unwrap();
    }

    /// `template` of Helm 4 and ours.
    #[track_caller]
    fn verifies(&self, arguments: &[&str]) {
        self.does(&[&["template", "--verify"], arguments].concat());
    }

    /// Any command of Helm 4 and ours, each for the first time.
    #[track_caller]
    fn does(&self, arguments: &[&str]) {
        let [helms, mine] = [&self.helms[0].0, catamaran()].map(|program| {
            let _ = fs::remove_dir_all(self.path("home/.cache/helm/content"));
            self.run(program, self.folder.path(), arguments)
        });
        same(&mine, &helms, &format!("{arguments:?}"));
    }
}

#[test]
fn signed_archives() {
    let world = World::new();
    let ring_of_all = ring("ring.gpg");
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_provenance = path.extension().is_some_and(|extension| extension == "prov");
        if is_provenance && !REFUSED.contains(&name) {
            world.sign("web", name);
            world.verifies(&["web/signed-1.0.0.tgz", "--keyring", &ring_of_all]);
        }
    }
    world.sign("web", "two");
    for name in ["ring.asc", "ring.kbx", "stranger.gpg", "stranger.asc", "two.prov"] {
        world.verifies(&["./web/signed-1.0.0.tgz", "--keyring", &ring(name)]);
    }
    for arguments in [
        &["web/signed-1.0.0.tgz", "--keyring", ""][..],
        &["web/signed-1.0.0.tgz", "--keyring", "web"],
        &["web/signed-1.0.0.tgz", "--keyring", "nowhere"],
        &["web/signed-1.0.0.tgz"],
        &["web", "--keyring", &ring_of_all],
        &["web/nothing.tgz", "--keyring", &ring_of_all],
    ] {
        world.verifies(arguments);
    }
    for home in ["home/.gnupg/pubring.kbx", "home/.gnupg/pubring.gpg"] {
        let place = world.path(home);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(fixtures().join("ring.kbx"), place).unwrap();
        world.verifies(&["web/signed-1.0.0.tgz"]);
        fs::write(world.path("home/.gnupg/pubring.kbx"), "").unwrap();
    }
    fs::copy(fixtures().join(ARCHIVE), world.path("signed.tar.gz")).unwrap();
    world.verifies(&["signed.tar.gz", "--keyring", &ring_of_all]);
    fs::remove_file(world.path("web").join(format!("{ARCHIVE}.prov"))).unwrap();
    for line in [
        "show values web/signed-1.0.0.tgz --verify",
        "show all web --verify",
        "install r web --verify",
        "upgrade r web/signed-1.0.0.tgz --verify",
    ] {
        world.does(&line.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn signed_charts_of_repositories() {
    let world = World::new();
    world.sign("web", "ed25519");
    world.packages(&world.path("web"));
    world.helm(&["repo", "index", "web"]);
    // Helm asks for what is signed without the password.
    let address = serve(world.path("web"), None);
    world.helm(&["repo", "add", "r", &address]);
    let keyring = ["--keyring", &ring("ring.gpg")];
    for name in ["r/signed", "r/c", "r/nothing", &format!("{address}/{ARCHIVE}")] {
        world.verifies(&[&[name], &keyring[..]].concat());
    }
    world.verifies(&[&["signed", "--repo", &address], &keyring[..]].concat());
    world.verifies(&["r/signed", "--keyring", "nowhere"]);

    for (number, name) in ["signed", "c"].into_iter().enumerate() {
        let more = format!(
            "version: 1.0.0\ndependencies:\n- {{name: {name}, version: ^1, repository: \"@r\"}}\n"
        );
        let [theirs, ours] = ["theirs", "ours"].map(|at| world.path(&format!("{at}-{number}")));
        for line in [
            "update p --verify --keyring RING",
            "build p --verify --keyring RING",
            "update p",
            "build p --verify --keyring RING --skip-refresh",
            "build p --verify --keyring nowhere",
            "update p --verify --keyring STRANGER",
        ] {
            let line = line.replace("RING", keyring[1]).replace("STRANGER", &ring("stranger.gpg"));
            let arguments: Vec<&str> = ["dependency"].into_iter().chain(line.split(' ')).collect();
            let outputs = [(&theirs, world.helms[0].0.as_path()), (&ours, catamaran())].map(
                |(folder, program)| {
                    chart(&folder.join("p"), "p", &more);
                    let output = world.run(program, folder, &arguments);
                    without_process(output)
                },
            );
            let [helms, mine] = outputs;
            same(&mine, &helms, &format!("{name} {line}"));
            assert_eq!(content(&ours, ""), content(&theirs, ""), "{name} {line}");
        }
    }
}

/// Without what is random in the name of a folder that is gone.
fn without_process(mut output: std::process::Output) -> std::process::Output {
    let text = String::from_utf8(output.stdout).unwrap();
    let mut parts = text.split("tmpcharts-");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| format!("tmpcharts{}", &part[part.find('/').unwrap()..]));
    output.stdout = (first + &rest.collect::<String>()).into_bytes();
    output
}

#[test]
fn signed_charts_of_registries() {
    let world = World::new();
    let Some(registry) = Registry::start(&world.path("registry")) else {
        println!("skipped: docker-registry is not installed");
        return;
    };
    world.sign("web", "ed25519");
    world.packages(&world.path("web"));
    let team = format!("oci://{}/team", registry.host);
    for entry in fs::read_dir(world.path("web")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tgz") {
            let archive = path.display().to_string();
            world.helm(&[&["push", &archive, &team, "--plain-http"], &CREDENTIALS[..]].concat());
        }
    }
    let keyring = ["--plain-http", "--keyring", &ring("ring.gpg")];
    let flags = [&keyring[..], &CREDENTIALS].concat();
    for line in ["signed", "signed:1.0.0", "c", "c --version 1.0.0+b1"] {
        let name = format!("{team}/{line}");
        world.verifies(&[&name.split(' ').collect::<Vec<_>>(), &flags[..]].concat());
    }
}
