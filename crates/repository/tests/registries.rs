//! Registries: which chart is pulled, who is told the password, and what a malicious one gets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::format_push_string)]

mod support;

use std::sync::Arc;

use catamaran_chart::Chart;
use catamaran_repository::{Access, RepositoryError, Wanted};
use support::{Answer, Asked, BASIC, Home, Server, archive, sha256, user};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

fn manifest(layers: &[(&str, &[u8])]) -> String {
    let layers: Vec<String> = layers
        .iter()
        .map(|(kind, bytes)| {
            let (digest, size) = (sha256(bytes), bytes.len());
            format!(r#"{{"mediaType":"{kind}","digest":"sha256:{digest}","size":{size}}}"#)
        })
        .collect();
    let empty = sha256(b"{}");
    format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"{CONFIG}","digest":"sha256:{empty}","size":2}},"layers":[{}]}}"#,
        layers.join(",")
    )
}

/// What a registry with one chart in three versions says to those it lets in.
fn chart(asked: &Asked) -> Answer {
    let path = asked.path.strip_prefix("/v2/team/c/").unwrap_or_default();
    let versions = ["1.0.0", "1.1.0", "1.2.0_b"];
    let blob = |version: &str| archive("c", &version.replace('_', "+"));
    let described = |version: &str| {
        manifest(&[
            ("application/vnd.dev.cosign.simplesigning.v1+json", b"x"),
            (CHART, &blob(version)),
            ("application/vnd.cncf.helm.chart.provenance.v1.prov", b"y"),
        ])
    };
    if path == "tags/list" {
        let tags = r#"{"name":"team/c","tags":["1.0.0","latest","v9","sha256-00.sig"]}"#;
        return Answer::ok(tags).with("link", "</v2/team/c/tags/list?last=2>; rel=\"next\"");
    }
    if path == "tags/list?last=2" {
        return Answer::ok(r#"{"name":"team/c","tags":["1.2.0_b","1.1.0", "2.0.0-rc.1"]}"#);
    }
    if let Some(wanted) = path.strip_prefix("manifests/") {
        let found = versions.iter().find(|version| {
            **version == wanted
                || format!("sha256:{}", sha256(described(version).as_bytes())) == wanted
        });
        return found.map_or(Answer::status(404), |version| {
            Answer::ok(described(version)).with("content-type", MANIFEST)
        });
    }
    let digest = path.strip_prefix("blobs/sha256:").unwrap_or_default();
    let found = versions.iter().map(|version| blob(version)).find(|blob| sha256(blob) == digest);
    found.map_or(Answer::status(404), Answer::ok)
}

async fn pull(
    home: &Home,
    access: Access,
    name: &str,
    version: &str,
) -> Result<(String, Vec<String>), RepositoryError> {
    let access = Access { plain_http: true, ..access };
    let wanted = Wanted { name, version, repository: "" };
    let mut messages = Vec::new();
    let path = home.finder(access).locate(wanted, &mut messages).await?;
    Ok((Chart::load(&path)?.metadata.version, messages))
}

#[tokio::test]
async fn versions_are_chosen_among_the_tags() {
    let server = Server::start(chart).await;
    let (home, host) = (Home::new(), server.host());
    let digest = sha256(&{
        let asked = Asked {
            method: "GET".into(),
            path: "/v2/team/c/manifests/1.1.0".into(),
            authorization: None,
            body: String::new(),
        };
        chart(&asked).body
    });
    for (tail, version, expected) in [
        ("", "", "1.2.0+b"),
        ("", "1.1.0", "1.1.0"),
        ("", "~1.1", "1.1.0"),
        ("", "1.2.0+b", "1.2.0+b"),
        (":1.0.0", "", "1.0.0"),
        (":1.0.0", "1.0.0", "1.0.0"),
        (&format!("@sha256:{digest}"), "", "1.1.0"),
        (&format!(":1.1.0@sha256:{digest}"), "", "1.1.0"),
    ] {
        let name = format!("oci://{host}/team/c{tail}");
        let (found, messages) = pull(&home, Access::default(), &name, version).await.unwrap();
        assert_eq!(found, expected, "{name} {version}");
        assert!(messages.iter().any(|text| text.starts_with("Digest: sha256:")), "{messages:?}");
    }
    for (tail, version, expected) in [
        ("", "9", "HOST/team/c:9: not found"),
        ("", ">9", "could not locate a version matching provided version string >9"),
        (":1.0.0", "1.1.0", "chart reference and version mismatch: 1.1.0 is not 1.0.0"),
        (&format!(":1.0.0@sha256:{digest}"), "", "chart reference digest mismatch"),
        (&format!("@sha256:{}", "0".repeat(64)), "", "not found"),
        ("/../x", "1.0.0", "invalid repository"),
        ("@sha256:0", "", "invalid digest"),
    ] {
        let name = format!("oci://{host}/team/c{tail}");
        let error = pull(&home, Access::default(), &name, version).await.unwrap_err().to_string();
        assert!(error.contains(&expected.replace("HOST", host)), "{name} {version}: {error}");
    }
}

#[tokio::test]
async fn a_pulled_chart_is_not_pulled_again() {
    let server = Server::start(chart).await;
    let home = Home::new();
    let name = format!("oci://{}/team/c:1.0.0", server.host());
    for _ in 0..2 {
        pull(&home, Access::default(), &name, "").await.unwrap();
    }
    let blobs = server.asked().iter().filter(|asked| asked.path.contains("/blobs/")).count();
    assert_eq!(blobs, 1);
}

/// Lets in who has the password.
fn guarded(asked: &Asked) -> Answer {
    match asked.authorization.as_deref() {
        Some(BASIC) => chart(asked),
        _ => Answer::status(401).with("www-authenticate", "Basic realm=\"x\""),
    }
}

#[tokio::test]
async fn a_password_is_told_to_who_asks_for_it() {
    let server = Server::start(guarded).await;
    let home = Home::new();
    let name = format!("oci://{}/team/c:1.0.0", server.host());
    pull(&home, user(), &name, "").await.unwrap();
    let error = pull(&home, Access::default(), &name, "").await.unwrap_err().to_string();
    assert!(error.contains("basic credential not found"), "{error}");

    // As `helm registry login` keeps it, or docker.
    let auths = format!(r#"{{"auths": {{"{}": {{"auth": "dXNlcjpwYXNz"}}}}}}"#, server.host());
    for path in [&home.settings.registry_config, home.settings.docker_config.as_ref().unwrap()] {
        Home::write(path, &auths);
        pull(&home, Access::default(), &name, "").await.unwrap();
        std::fs::remove_file(path).unwrap();
    }
    let wrong = Access { password: "wrong-secret".into(), ..user() };
    let error = pull(&home, wrong, &name, "").await.unwrap_err().to_string();
    assert!(error.contains("response status code 401") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_token_comes_from_where_the_registry_says() {
    let tokens = Server::start(|asked| match asked.authorization.as_deref() {
        Some(BASIC) => Answer::ok(r#"{"token": "letmein"}"#),
        _ => Answer::status(401),
    })
    .await;
    let realm = tokens.address.clone();
    let server = Server::start(move |asked| match asked.authorization.as_deref() {
        Some("Bearer letmein") => chart(asked),
        _ => Answer::status(401).with(
            "www-authenticate",
            format!("Bearer realm=\"{realm}/t\",service=\"s s\",scope=\"repository:team/c:pull\""),
        ),
    })
    .await;
    let home = Home::new();
    let name = format!("oci://{}/team/c", server.host());
    pull(&home, user(), &name, "^1.0.0").await.unwrap();
    assert_eq!(
        tokens.credentials(),
        [("/t?service=s+s&scope=repository%3Ateam%2Fc%3Apull".into(), Some(BASIC.into()))]
    );
    assert!(server.asked().iter().all(|asked| asked.authorization.as_deref() != Some(BASIC)));
}

#[tokio::test]
async fn a_refresh_token_is_changed_into_one_that_opens() {
    let tokens = Server::start(|asked| {
        let sound = asked.method == "POST"
            && asked.body.contains("grant_type=refresh_token")
            && asked.body.contains("refresh_token=r+t");
        if sound { Answer::ok(r#"{"access_token": "letmein"}"#) } else { Answer::status(400) }
    })
    .await;
    let realm = tokens.address.clone();
    let server = Server::start(move |asked| match asked.authorization.as_deref() {
        Some("Bearer letmein") => chart(asked),
        _ => Answer::status(401).with("www-authenticate", format!("Bearer realm=\"{realm}/t\"")),
    })
    .await;
    let home = Home::new();
    let auths = format!(r#"{{"auths": {{"{}": {{"identitytoken": "r t"}}}}}}"#, server.host());
    Home::write(&home.settings.registry_config, auths);
    let name = format!("oci://{}/team/c:1.0.0", server.host());
    pull(&home, Access::default(), &name, "").await.unwrap();
}

#[tokio::test]
async fn blobs_elsewhere_are_fetched_without_credentials() {
    let store = Server::start(chart).await;
    let elsewhere = store.address.clone();
    let server = Server::start(move |asked| match guarded(asked) {
        answer if answer.status == 200 && asked.path.contains("/blobs/") => {
            Answer::to(format!("{elsewhere}{}", asked.path))
        }
        answer => answer,
    })
    .await;
    let name = format!("oci://{}/team/c:1.0.0", server.host());
    pull(&Home::new(), user(), &name, "").await.unwrap();
    assert_eq!(store.asked().len(), 1);
    assert_eq!(store.asked()[0].authorization, None);
}

#[tokio::test]
async fn a_challenge_of_another_server_is_not_answered() {
    let evil =
        Server::start(|_| Answer::status(401).with("www-authenticate", "Basic realm=\"x\"")).await;
    let elsewhere = evil.address.clone();
    let server = Server::start(move |_| Answer::to(format!("{elsewhere}/x"))).await;
    let name = format!("oci://{}/team/c:1.0.0", server.host());
    assert!(pull(&Home::new(), user(), &name, "").await.is_err());
    assert!(evil.asked().iter().all(|asked| asked.authorization.is_none()));

    // Nor is a page of tags that lies there.
    let next = evil.address.clone();
    let server = Server::start(move |_| {
        Answer::ok(r#"{"tags": ["1.0.0"]}"#).with("link", format!("<{next}/tags>; rel=\"next\""))
    })
    .await;
    let asked = evil.asked().len();
    let name = format!("oci://{}/team/c", server.host());
    assert!(pull(&Home::new(), user(), &name, "").await.is_err());
    assert_eq!(evil.asked().len(), asked);
}

#[tokio::test]
async fn malicious_registries_end_in_an_error() {
    let evil = Arc::new(archive("c", "1.0.0"));
    let endless = || Answer { endless: true, ..Answer::ok(vec![b' '; 1 << 16]) };
    let described =
        |layers: &[(&str, &[u8])]| Answer::ok(manifest(layers)).with("content-type", MANIFEST);
    let good = described(&[(CHART, &evil)]);
    let huge = manifest(&[(CHART, &evil)])
        .replace(&format!(r#""size":{}"#, evil.len()), r#""size":99999999999"#);
    let cases: Vec<(&str, Answer, Answer, &str)> = vec![
        ("an endless manifest", endless(), Answer::ok(""), "is larger than 4194304"),
        ("an endless layer", good.clone(), endless(), "is larger than"),
        ("another layer", good.clone(), Answer::ok(archive("d", "1.0.0")), "mismatch digest"),
        ("a changed layer", good.clone(), Answer::ok(vec![0; evil.len()]), "mismatch digest"),
        ("a short layer", good.clone(), Answer::ok(&evil[1..]), "mismatch digest"),
        ("a size that is a lie", Answer::ok(huge), Answer::ok(""), "is larger than"),
        ("no layers", described(&[]), Answer::ok(""), "does not contain a layer with mediatype"),
        (
            "other layers",
            described(&[("application/x", b"")]),
            Answer::ok(""),
            "does not contain a layer with mediatype",
        ),
        ("no manifest", Answer::ok("text"), Answer::ok(""), "the manifest is none"),
        (
            "an image",
            Answer::ok(manifest(&[(CHART, &evil)]).replace(CONFIG, "application/x")),
            Answer::ok(""),
            "could not load config",
        ),
        (
            "another digest",
            good.clone().with("docker-content-digest", format!("sha256:{}", "0".repeat(64))),
            Answer::ok(""),
            "mismatch digest",
        ),
        (
            "a digest that is a path",
            Answer::ok(manifest(&[(CHART, &evil)]).replace(&sha256(&evil), "../../../etc")),
            Answer::ok(""),
            "invalid digest",
        ),
        (
            "an index of itself",
            Answer::ok(format!(
                r#"{{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{{"mediaType":"{MANIFEST}","digest":"sha256:{}"}}]}}"#,
                "0".repeat(64)
            )),
            Answer::ok(""),
            "mismatch digest",
        ),
        ("a loop", Answer::to("?again"), Answer::ok(""), "stopped after 10 redirects"),
        (
            "words",
            Answer {
                body: format!(
                    r#"{{"errors":[{{"code":"X","message":"{}\u001b[2J"}}]}}"#,
                    "x".repeat(5000)
                )
                .into(),
                ..Answer::status(500)
            },
            Answer::ok(""),
            "response status code 500",
        ),
    ];
    for (what, first, second, expected) in cases {
        let server = Server::start(move |asked| {
            if asked.path.contains("/blobs/") { second.clone() } else { first.clone() }
        })
        .await;
        let name = format!("oci://{}/team/c:1.0.0", server.host());
        let error = pull(&Home::new(), user(), &name, "").await.unwrap_err().to_string();
        assert!(error.contains(expected), "{what}: {error}");
        assert!(error.len() < 2000 && !error.contains('\u{1b}'), "{what}: {error}");
    }
}

#[tokio::test]
async fn lists_of_tags_end() {
    for (what, answer, expected) in [
        ("endless", Answer { endless: true, ..Answer::ok(vec![b' '; 1 << 16]) }, "is larger than"),
        (
            "always one more",
            Answer::ok(r#"{"tags": ["1.0.0"]}"#).with("link", "<?n=1>; rel=\"next\""),
            "does not end",
        ),
        ("null", Answer::ok(r#"{"tags": null}"#), "unable to locate any tags"),
        ("wrong", Answer::ok(r#"{"tags": [1]}"#), "failed to decode response"),
    ] {
        let server = Server::start(move |_| answer.clone()).await;
        let name = format!("oci://{}/team/c", server.host());
        let error = pull(&Home::new(), Access::default(), &name, "").await.unwrap_err().to_string();
        assert!(error.contains(expected), "{what}: {error}");
    }
}

#[tokio::test]
async fn tokens_do_not_come_from_just_anywhere() {
    for (realm, expected) in [
        ("file:///etc/passwd", "unsupported scheme"),
        ("http://169.254.169.254/latest", "private, or unspecified address"),
        ("http://10.0.0.1/", "private, or unspecified address"),
    ] {
        let server = Server::start(move |_| {
            Answer::status(401).with("www-authenticate", format!("Bearer realm=\"{realm}\""))
        })
        .await;
        let name = format!("oci://{}/team/c:1.0.0", server.host());
        let error = pull(&Home::new(), user(), &name, "").await.unwrap_err().to_string();
        assert!(error.contains(expected), "{realm}: {error}");
    }
}
