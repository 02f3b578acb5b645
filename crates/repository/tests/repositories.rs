//! Repositories over HTTP: what is found, and what never leaves for another server.

#![allow(clippy::unwrap_used, clippy::panic, clippy::format_push_string)]

mod support;

use std::sync::Arc;

use catamaran_chart::Chart;
use catamaran_repository::{Access, RepositoryError, Wanted};
use support::{Answer, Asked, BASIC, Home, Server, archive, sha256, user};

fn index(url: &str) -> String {
    let mut text = "apiVersion: v1\nentries:\n  c:\n".to_owned();
    for version in ["1.0.0", "1.2.0", "2.0.0-rc.1", "1.10.0"] {
        text += &format!(
            "  - apiVersion: v2\n    name: c\n    version: {version}\n    urls: [\"{url}c-{version}.tgz\"]\n"
        );
    }
    text
}

/// A repository whose charts lie at `charts`, and which tells anybody anything.
fn repository(charts: impl Into<String>) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    let charts = charts.into();
    move |asked| match asked.path.as_str() {
        "/index.yaml" => Answer::ok(index(&charts)),
        path if path.starts_with("/c-") => {
            Answer::ok(archive("c", path.trim_start_matches("/c-").trim_end_matches(".tgz")))
        }
        _ => Answer::status(404),
    }
}

async fn version_of(
    home: &Home,
    access: Access,
    wanted: Wanted<'_>,
) -> Result<String, RepositoryError> {
    let path = home.finder(access).locate(wanted, &mut Vec::new()).await?;
    Ok(Chart::load(&path)?.metadata.version)
}

#[tokio::test]
async fn versions_are_chosen_as_helm_chooses() {
    let server = Server::start(repository("")).await;
    let home = Home::new();
    for (version, expected) in [
        ("", "1.10.0"),
        ("1.2.0", "1.2.0"),
        ("~1.2", "1.2.0"),
        ("<1.2", "1.0.0"),
        (">0.0.0-0", "2.0.0-rc.1"),
        ("1", "1.10.0"),
    ] {
        let wanted = Wanted { name: "c", version, repository: &server.address };
        assert_eq!(
            version_of(&home, Access::default(), wanted).await.unwrap(),
            expected,
            "{version}"
        );
    }
    for (name, version, expected) in [
        ("c", "3", "chart \"c\" version \"3\" not found in ADDRESS repository"),
        ("d", "", "chart \"d\" not found in ADDRESS repository"),
        ("c", "nonsense", "chart \"c\" version \"nonsense\" not found in ADDRESS repository"),
    ] {
        let wanted = Wanted { name, version, repository: &server.address };
        let error = version_of(&home, Access::default(), wanted).await.unwrap_err().to_string();
        assert_eq!(error, expected.replace("ADDRESS", &server.address));
    }
}

#[tokio::test]
async fn charts_of_added_repositories_are_fetched_with_their_credentials() {
    let server = Server::start(repository("")).await;
    let home = Home::new();
    let more = "  username: user\n  password: pass\n";
    home.add("r", &server.address, more, &index(""));
    let wanted = Wanted { name: "r/c", version: "^1", repository: "" };
    assert_eq!(version_of(&home, Access::default(), wanted).await.unwrap(), "1.10.0");
    assert_eq!(server.credentials(), [("/c-1.10.0.tgz".into(), Some(BASIC.into()))]);

    for (name, expected) in [
        ("x/c", "repo x not found"),
        ("c", "non-absolute URLs should be in form of repo_name/path_to_chart, got: c"),
        ("./c", "path \"./c\" not found"),
        ("file:///c", "repo  not found"),
        ("git://h/c", "scheme \"git\" not supported"),
    ] {
        let wanted = Wanted { name, version: "", repository: "" };
        let error = version_of(&home, Access::default(), wanted).await.unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn an_address_in_a_known_index_is_fetched_with_the_repositorys_credentials() {
    let server = Server::start(repository("")).await;
    let stranger = Server::start(repository("")).await;
    let home = Home::new();
    let charts = format!("{}/", server.address);
    home.add("r", &server.address, "  username: user\n  password: pass\n", &index(&charts));
    for (address, expected) in
        [(&server.address, Some(BASIC.to_owned())), (&stranger.address, None)]
    {
        let name = format!("{address}/c-1.2.0.tgz");
        let wanted = Wanted { name: &name, version: "", repository: "" };
        assert_eq!(version_of(&home, Access::default(), wanted).await.unwrap(), "1.2.0");
        let from = if expected.is_some() { &server } else { &stranger };
        assert_eq!(from.credentials(), [("/c-1.2.0.tgz".into(), expected)]);
    }
}

#[tokio::test]
async fn cve_2021_32690_credentials_stay_with_their_server() {
    let other = Server::start(repository("")).await;
    let elsewhere = format!("{}/", other.address);
    let first = Server::start(repository(elsewhere)).await;
    let home = Home::new();
    let wanted = Wanted { name: "c", version: "", repository: &first.address };
    assert_eq!(version_of(&home, user(), wanted).await.unwrap(), "1.10.0");
    assert_eq!(first.credentials(), [("/index.yaml".into(), Some(BASIC.into()))]);
    assert_eq!(other.credentials(), [("/c-1.10.0.tgz".into(), None)]);

    // Unless they are meant for all.
    let access = Access { pass_credentials: true, ..user() };
    version_of(&home, access, wanted).await.unwrap();
    assert_eq!(other.credentials().last().unwrap().1.as_deref(), Some(BASIC));
}

#[tokio::test]
async fn cve_2021_32690_credentials_do_not_follow_a_redirect_to_another_server() {
    let other = Server::start(repository("")).await;
    let target = other.address.clone();
    let first = Server::start(move |asked| Answer::to(format!("{target}{}", asked.path))).await;
    let home = Home::new();
    for pass_credentials in [false, true] {
        let access = Access { pass_credentials, ..user() };
        let wanted = Wanted { name: "c", version: "1.0.0", repository: &first.address };
        version_of(&home, access, wanted).await.unwrap();
    }
    assert!(first.credentials().iter().all(|(_, sent)| sent.as_deref() == Some(BASIC)));
    assert_eq!(other.asked().len(), 4);
    assert!(other.credentials().iter().all(|(_, sent)| sent.is_none()), "{:?}", other.asked());
}

#[tokio::test]
async fn credentials_do_not_come_back_after_a_detour() {
    let back = Arc::new(std::sync::Mutex::new(String::new()));
    let target = back.clone();
    let other = Server::start(move |_| Answer::to(target.lock().unwrap().clone())).await;
    let detour = other.address.clone();
    let first = Server::start(move |asked| match asked.path.as_str() {
        "/index.yaml" => Answer::to(detour.clone()),
        _ => Answer::ok(index("")),
    })
    .await;
    *back.lock().unwrap() = format!("{}/back", first.address);
    let home = Home::new();
    let wanted = Wanted { name: "d", version: "", repository: &first.address };
    assert!(version_of(&home, user(), wanted).await.is_err());
    assert_eq!(
        first.credentials(),
        [("/index.yaml".into(), Some(BASIC.into())), ("/back".into(), None)]
    );
}

#[tokio::test]
async fn hostile_servers_end_in_an_error() {
    let home = Home::new();
    let endless = || Answer { endless: true, ..Answer::ok(vec![b'a'; 1 << 16]) };
    let cases: Vec<(&str, Answer, &str)> = vec![
        (
            "a length that is a lie",
            endless().with("content-length", "999999999999"),
            "is larger than",
        ),
        ("a loop", Answer::to("/index.yaml"), "stopped after 10 redirects"),
        ("a redirect to a file", Answer::to("file:///etc/passwd"), "unsupported protocol scheme"),
        ("a redirect to nowhere", Answer::status(302), "redirect without a Location"),
        ("an error", Answer::status(500), "500 Internal Server Error"),
        ("no index", Answer::ok(""), "empty index.yaml file"),
        ("a page", Answer::ok("<html>"), "cannot unmarshal"),
        (
            "a body cut short",
            Answer { body: Vec::new(), endless: false, ..Answer::status(200) }
                .with("content-length", "9"),
            "",
        ),
    ];
    for (what, answer, expected) in cases {
        let server = Server::start(move |_| answer.clone()).await;
        let repository = server.address.replace("://", "://user:secret@") + "?token=secret";
        let wanted = Wanted { name: "c", version: "", repository: &repository };
        let error = version_of(&home, user(), wanted).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{what}: {error}");
        assert!(!error.contains("secret"), "{what}: {error}");
    }
}

#[tokio::test]
async fn an_archive_beyond_the_limit_is_not_read() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/index.yaml" => Answer::ok(index("")),
        _ => Answer { endless: true, ..Answer::ok(vec![0; 1 << 20]) },
    })
    .await;
    let wanted = Wanted { name: "c", version: "", repository: &server.address };
    let error = version_of(&Home::new(), Access::default(), wanted).await.unwrap_err();
    assert!(matches!(error, RepositoryError::TooLarge { what: "chart", .. }), "{error}");
}

#[tokio::test]
async fn what_the_cache_has_is_not_fetched_and_poison_is_not_used() {
    let server = Server::start(repository("")).await;
    let good = archive("c", "1.0.0");
    let digest = sha256(&good);
    let home = Home::new();
    let index = |digest: &str| {
        format!(
            "apiVersion: v1\nentries:\n  c:\n  - name: c\n    version: 1.0.0\n    digest: \"{digest}\"\n    urls: [c-1.0.0.tgz]\n"
        )
    };
    home.add("r", &server.address, "", &index(&digest));
    let wanted = Wanted { name: "r/c", version: "", repository: "" };
    let cached = home.settings.content_cache.join(&digest[..2]).join(format!("{digest}.chart"));
    Home::write(&cached, "poison");
    for fetched in [1, 1] {
        version_of(&home, Access::default(), wanted).await.unwrap();
        assert_eq!(server.asked().len(), fetched);
    }
    assert_eq!(std::fs::read(&cached).unwrap(), good);

    // An index that claims the digest of another chart does not take its place.
    home.add("r", &server.address, "", &index(&"0".repeat(64)));
    let mut messages = Vec::new();
    let path = home.finder(Access::default()).locate(wanted, &mut messages).await.unwrap();
    assert_eq!(path, cached);
    assert!(messages.iter().any(|text| text.contains("is not the one")), "{messages:?}");
    home.add("r", &server.address, "", &index("nonsense"));
    assert!(home.finder(Access::default()).locate(wanted, &mut messages).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_fetch_at_once() {
    let server = Server::start(repository("")).await;
    let home = Arc::new(Home::new());
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (home, address) = (home.clone(), server.address.clone());
            tokio::spawn(async move {
                let wanted = Wanted { name: "c", version: "", repository: &address };
                version_of(&home, Access::default(), wanted).await.unwrap()
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), "1.10.0");
    }
    let left = std::fs::read_dir(&home.settings.content_cache).unwrap();
    let files = left.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    assert_eq!(files.count(), 1);
}

#[tokio::test]
async fn files_of_values_are_fetched_without_the_flags_credentials() {
    let server = Server::start(|_| Answer::ok("a: 1")).await;
    let finder = Home::new().finder(user());
    let address = format!("{}/values.yaml", server.address);
    assert_eq!(finder.file(&address).await.unwrap().as_deref(), Some(&b"a: 1"[..]));
    assert_eq!(server.credentials(), [("/values.yaml".into(), None)]);
    assert_eq!(finder.file("values.yaml").await.unwrap(), None);
    assert_eq!(finder.file("ftp://x/values.yaml").await.unwrap(), None);
}
