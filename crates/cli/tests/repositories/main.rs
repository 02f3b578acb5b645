//! Charts and dependencies of repositories and registries, beside the real helm: the same output,
//! the same error, the same files.
//!
//! The registry is Debian's `docker-registry`, where it is installed.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

mod signed;
mod world;

use std::fs;

use world::{BASIC, CREDENTIALS, Registry, World, catamaran, chart, content, same, serve};

#[test]
fn charts_of_repositories() {
    let world = World::new();
    let web = world.path("web");
    world.packages(&web);
    world.helm(&["repo", "index", "web"]);
    let address = serve(web, Some(BASIC));
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
    for registry in
        ["localhost:1", "localhost:1/x", "localhost:1/x/", "localhost:1/X", "a_b/x", "/x"]
    {
        world.equal(&["c", "--repo", &format!("oci://{registry}")]);
    }
    let url = address.replace("://", "://user:pass@");
    world.equal(&["r/c", "--set-file", &format!("a={url}/index.yaml")]);
    world.equal(&["r/c", "-f", &format!("{url}/index.yaml"), "--version", "1.1.0"]);
}

#[test]
fn dependencies_of_charts() {
    let world = World::new();
    let web = world.path("web");
    world.packages(&web);
    world.helm(&["repo", "index", "web"]);
    let address = serve(web, Some(BASIC));
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
        ("v2", "[]", ""),
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
            let wanted = match *first {
                "[]" => " []".to_owned(),
                _ => format!("\n- {}", all.join("\n- ")),
            };
            let more = format!("version: 1.0.0\ndependencies:{wanted}\n");
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
