//! The dependencies of a chart of somebody else's: nothing is read from or written to a place of
//! its choice.

#![allow(clippy::unwrap_used, clippy::panic, clippy::format_push_string)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use catamaran_repository::{Access, Dependencies, RepositoryError, dependencies};
use support::{Answer, BASIC, Home, Server, archive};

fn chart(home: &Home, dependencies: &str) -> PathBuf {
    let folder = home.folder.path().join("charts-of-mine/p");
    let text = format!("apiVersion: v2\nname: p\nversion: 1.0.0\ndependencies:\n{dependencies}\n");
    Home::write(&folder.join("Chart.yaml"), text);
    folder
}

async fn update(home: &Home, folder: &Path) -> Result<String, RepositoryError> {
    let (mut out, mut pulled) = (Vec::new(), Vec::new());
    let finder = home.finder(Access { plain_http: true, ..Access::default() });
    Dependencies::new(&finder, folder, false, &mut out, &mut pulled).update().await?;
    Ok(String::from_utf8(out).unwrap())
}

fn index(name: &str, url: &str) -> String {
    format!(
        "apiVersion: v1\nentries:\n  {name}:\n  - {{name: {name}, version: 1.0.0, urls: [\"{url}\"]}}\n"
    )
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn charts_are_fetched_with_the_credentials_of_their_repository() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/index.yaml" => Answer::ok(index("c", "c-1.0.0.tgz")),
        _ => Answer::ok(archive("c", "1.0.0")),
    })
    .await;
    let home = Home::new();
    home.add("r", &server.address, "  username: user\n  password: pass\n", &index("c", "x"));
    let folder = chart(&home, "- {name: c, version: ^1, repository: \"@r\"}");
    let said = update(&home, &folder).await.unwrap();
    assert!(said.contains("Successfully got an update from the \"r\""), "{said}");
    assert!(server.credentials().iter().all(|(_, sent)| sent.as_deref() == Some(BASIC)));
    assert!(folder.join("charts/c-1.0.0.tgz").is_file());
    let lock = fs::read_to_string(folder.join("Chart.lock")).unwrap();
    assert!(
        lock.contains(&format!(
            "repository: {}\n  version: 1.0.0\ndigest: sha256:",
            server.address
        ))
    );
    let list = dependencies::list(&folder, 80).unwrap();
    assert!(list.contains("ok    "), "{list}");
}

#[tokio::test]
async fn cve_2024_25620_names_do_not_leave_the_charts_folder() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/index.yaml" => Answer::ok(index("c", "/a/..%2f..%2fx.tgz")),
        "/dots/index.yaml" => Answer::ok(index("c", "http://127.0.0.1:1/..")),
        _ => Answer::ok(archive("c", "1.0.0")),
    })
    .await;
    let home = Home::new();
    for name in ["../../x", "..", ".", "/etc", "a/b"] {
        let folder = chart(&home, &format!("- {{name: \"{name}\", version: \"*\"}}"));
        assert!(update(&home, &folder).await.is_err(), "{name}");
    }
    for place in [server.address.clone(), format!("{}/dots", server.address)] {
        let folder = chart(&home, &format!("- {{name: c, version: ^1, repository: \"{place}\"}}"));
        let before = files(home.folder.path());
        let _ = update(&home, &folder).await;
        let inside = |path: &PathBuf| {
            path.starts_with(folder.join("charts"))
                || path == &folder.join("Chart.lock")
                || path.starts_with(home.folder.path().join(".cache"))
        };
        for path in files(home.folder.path()) {
            assert!(before.contains(&path) || inside(&path), "{}", path.display());
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn cve_2025_53547_links_in_a_chart_are_not_written_through() {
    use std::os::unix::fs::symlink;
    let server = Server::start(|asked| match asked.path.as_str() {
        "/index.yaml" => Answer::ok(index("c", "c-1.0.0.tgz")),
        _ => Answer::ok(archive("c", "1.0.0")),
    })
    .await;
    let home = Home::new();
    let victim = home.folder.path().join("victim");
    fs::create_dir_all(&victim).unwrap();
    fs::write(victim.join("file"), "mine").unwrap();
    fs::write(victim.join("old-1.0.0.tgz"), archive("old", "1.0.0")).unwrap();
    let dependency = format!("- {{name: c, version: ^1, repository: \"{}\"}}", server.address);
    let folder = chart(&home, &dependency);

    symlink(victim.join("file"), folder.join("Chart.lock")).unwrap();
    let error = update(&home, &folder).await.unwrap_err().to_string();
    // The content of the file is no lock, or it is not written to.
    assert!(error.contains("Chart.lock"), "{error}");
    fs::remove_file(folder.join("Chart.lock")).unwrap();
    fs::remove_dir_all(folder.join("charts")).ok();
    symlink(victim.join("nothing-yet"), folder.join("Chart.lock")).unwrap();
    assert!(update(&home, &folder).await.is_err());
    fs::remove_file(folder.join("Chart.lock")).unwrap();
    fs::remove_dir_all(folder.join("charts")).ok();

    symlink(&victim, folder.join("charts")).unwrap();
    assert!(update(&home, &folder).await.is_err());
    fs::remove_file(folder.join("charts")).unwrap();
    fs::create_dir(folder.join("charts")).unwrap();
    symlink(victim.join("old-1.0.0.tgz"), folder.join("charts/c-1.0.0.tgz")).unwrap();
    update(&home, &folder).await.unwrap();
    assert!(!folder.join("charts/c-1.0.0.tgz").is_symlink());
    assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "mine");
    assert_eq!(fs::read(victim.join("old-1.0.0.tgz")).unwrap(), archive("old", "1.0.0"));
    assert_eq!(files(&victim).len(), 2);
}

/// The archive goes to others; what a link names would go with it.
#[cfg(unix)]
#[tokio::test]
async fn cve_2019_18658_a_link_that_leads_out_of_a_chart_is_not_packed() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    let folder = chart(&home, "- {name: c, version: ^1, repository: \"file://../c\"}");
    let local = home.folder.path().join("charts-of-mine/c");
    Home::write(&local.join("Chart.yaml"), "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    Home::write(&local.join("files/own"), "own");
    symlink("own", local.join("files/inside")).unwrap();
    update(&home, &folder).await.unwrap();
    assert_eq!(
        packed(&folder, "c/files/inside").as_deref(),
        Some("own"),
        "a link within the chart"
    );

    let secrets = home.folder.path().join("secrets");
    Home::write(&secrets.join("id"), "key: private");
    Home::write(&secrets.join("Chart.yaml"), "apiVersion: v2\nname: d\nversion: 1.0.0\n");
    for (link, target) in [
        ("files/x", secrets.join("id")),
        ("files/y", "../../../secrets/id".into()),
        ("folder", secrets.clone()),
        ("charts/d", secrets.clone()),
        ("values.yaml", secrets.join("id")),
    ] {
        fs::create_dir_all(local.join("charts")).unwrap();
        fs::remove_file(folder.join("charts/c-1.0.0.tgz")).ok();
        symlink(&target, local.join(link)).unwrap();
        let error = update(&home, &folder).await.unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{link}: {error}");
        assert!(!error.contains("private"), "{link}: {error}");
        assert!(files(&folder.join("charts")).is_empty(), "{link}");
        fs::remove_file(local.join(link)).unwrap();
    }
}

/// A file of the packed chart `c`.
fn packed(folder: &Path, name: &str) -> Option<String> {
    let bytes = fs::read(folder.join("charts/c-1.0.0.tgz")).unwrap();
    let files = catamaran_chart::load::archive_files(&bytes).unwrap();
    let file = files.iter().find(|file| format!("c/{}", file.name) == name)?;
    Some(String::from_utf8(file.data.to_vec()).unwrap())
}

#[tokio::test]
async fn a_fetch_that_fails_leaves_what_was_there() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/index.yaml" => Answer::ok(index("c", "c-1.0.0.tgz")),
        _ => Answer::status(500),
    })
    .await;
    let home = Home::new();
    let folder =
        chart(&home, &format!("- {{name: c, version: ^1, repository: \"{}\"}}", server.address));
    let old = folder.join("charts/old-1.0.0.tgz");
    Home::write(&old, archive("old", "1.0.0"));
    assert!(update(&home, &folder).await.is_err());
    assert!(old.is_file());
    assert_eq!(files(&folder).len(), 2);
}
