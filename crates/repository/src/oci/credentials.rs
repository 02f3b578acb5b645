//! The user's credentials for registries: Helm's file, docker's file, and docker's helpers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::{RepositoryError, Settings, files};

/// More is no such file.
const MAX_CONFIG_BYTES: u64 = 10 << 20;
/// How long a helper may take; people type passwords of key rings.
const HELPER_TIMEOUT: Duration = Duration::from_mins(1);
/// More is no answer of a helper.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// What opens a registry.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) enum Credential {
    /// Nothing is known.
    #[default]
    None,
    /// A user and a password.
    Basic { user: String, password: String },
    /// To be changed into an access token.
    Refresh(String),
    /// A token for the registry itself.
    Access(String),
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Config {
    auths: BTreeMap<String, Auth>,
    creds_store: String,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Auth {
    #[serde(rename = "auth")]
    pair: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

/// The credential for a host: Helm's, or else docker's.
pub(crate) async fn find(settings: &Settings, host: &str) -> Result<Credential, RepositoryError> {
    let server = match host {
        "registry-1.docker.io" | "docker.io" => "https://index.docker.io/v1/",
        other => other,
    };
    for path in [Some(&settings.registry_config), settings.docker_config.as_ref()] {
        let Some(config) = path.map(|path| read(path)).transpose()? else { continue };
        let found = in_config(&config, server).await?;
        if found != Credential::None {
            return Ok(found);
        }
    }
    Ok(Credential::None)
}

fn read(path: &Path) -> Result<Config, RepositoryError> {
    let fault = |why: &str| {
        // What is wrong in it may be a password: it is not told.
        RepositoryError::Credentials(format!(
            "cannot read credentials of {}: {why}",
            path.display()
        ))
    };
    match files::read(path, MAX_CONFIG_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| fault(&format!("invalid config format (line {})", error.line()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
        Err(error) => Err(fault(&crate::error::go_reason(&error))),
    }
}

async fn in_config(config: &Config, server: &str) -> Result<Credential, RepositoryError> {
    let Config { auths, creds_store, cred_helpers } = config;
    let helper = cred_helpers.get(server).or(Some(creds_store)).filter(|name| !name.is_empty());
    if let Some(helper) = helper {
        return ask(helper, server).await;
    }
    if auths.is_empty()
        && cred_helpers.is_empty()
        && let Some(helper) = default_helper()
    {
        return ask(helper, server).await;
    }
    let known = auths.get(server).or_else(|| {
        let mut all = auths.iter();
        all.find(|(key, _)| host_of(key) == server).map(|(_, auth)| auth)
    });
    known.map_or(Ok(Credential::None), decode)
}

/// Old files have addresses where hosts are meant.
fn host_of(key: &str) -> &str {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    key.split('/').next().unwrap_or_default()
}

fn decode(auth: &Auth) -> Result<Credential, RepositoryError> {
    let Auth { pair, username, password, identitytoken, registrytoken } = auth.clone();
    if !identitytoken.is_empty() {
        return Ok(Credential::Refresh(identitytoken));
    }
    if !registrytoken.is_empty() {
        return Ok(Credential::Access(registrytoken));
    }
    if pair.is_empty() {
        let is_none = username.is_empty() && password.is_empty();
        return Ok(if is_none {
            Credential::None
        } else {
            Credential::Basic { user: username, password }
        });
    }
    let broken =
        || RepositoryError::Credentials("invalid config format: auth is no user:password".into());
    let text = STANDARD.decode(pair.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(broken)?;
    let (user, password) = text.split_once(':').ok_or_else(broken)?;
    let password = password.trim_matches('\0').to_owned();
    Ok(Credential::Basic { user: user.to_owned(), password })
}

/// What docker uses where nothing is configured.
fn default_helper() -> Option<&'static str> {
    let names: &[&str] = match std::env::consts::OS {
        "macos" => &["osxkeychain"],
        "windows" => &["wincred"],
        _ => &["pass", "secretservice"],
    };
    let name = names.iter().find(|name| **name != "pass" || in_path("pass"))?;
    in_path(&format!("docker-credential-{name}")).then_some(name)
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// Runs `docker-credential-NAME get`, without a shell and with nothing but the server's name.
async fn ask(helper: &str, server: &str) -> Result<Credential, RepositoryError> {
    if helper.contains(['/', '\\']) {
        let why = format!("credential helper {helper:?}: not the name of one");
        return Err(RepositoryError::Credentials(why));
    }
    run(&format!("docker-credential-{helper}"), server).await
}

async fn run(program: &str, server: &str) -> Result<Credential, RepositoryError> {
    let fault = |why: String| RepositoryError::Credentials(format!("{program}: {why}"));
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| fault(crate::error::go_reason(&error)))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let talk = async {
        if let Some(mut stdin) = stdin {
            // A helper may end without reading.
            let _ = stdin.write_all(server.as_bytes()).await;
        }
        let mut answer = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await?;
        }
        Ok::<_, std::io::Error>((child.wait().await?, answer))
    };
    let ended = tokio::time::timeout(HELPER_TIMEOUT, talk).await;
    let ended = ended.map_err(|_| fault("no answer in time".into()))?;
    let (status, answer) = ended.map_err(|error| fault(crate::error::go_reason(&error)))?;
    if !status.success() {
        // Helpers tell errors on standard output.
        let text = String::from_utf8_lossy(&answer);
        return match text.trim() {
            "credentials not found in native keychain" => Ok(Credential::None),
            _ => Err(fault(format!("ended with {status}"))),
        };
    }
    let Answer { username, secret } =
        serde_json::from_slice(&answer).map_err(|_| fault("no such answer is known".into()))?;
    Ok(match (username.as_str(), secret.is_empty()) {
        ("", true) => Credential::None,
        ("<token>", _) => Credential::Refresh(secret),
        _ => Credential::Basic { user: username, password: secret },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(helm: &str, docker: &str) -> (tempfile::TempDir, Settings) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let settings = Settings {
            registry_config: write("helm.json", helm),
            docker_config: Some(write("docker.json", docker)),
            ..Settings::from_variables(|_| None)
        };
        (folder, settings)
    }

    fn basic(user: &str, password: &str) -> Credential {
        Credential::Basic { user: user.into(), password: password.into() }
    }

    #[tokio::test]
    async fn helms_file_comes_before_dockers() {
        let auth = |text: &str| format!(r#"{{"auth": "{}"}}"#, STANDARD.encode(text));
        let helm = format!(
            r#"{{"auths": {{"a:5000": {}, "https://old.io/v1/": {}}}}}"#,
            auth("u:p"),
            auth("o:o:o")
        );
        let docker = format!(
            r#"{{"auths": {{"a:5000": {}, "b": {}, "https://index.docker.io/v1/": {{"identitytoken": "t"}}}}}}"#,
            auth("x:y"),
            auth("d:d")
        );
        let (_folder, settings) = settings(&helm, &docker);
        for (host, expected) in [
            ("a:5000", basic("u", "p")),
            ("b", basic("d", "d")),
            ("old.io", basic("o", "o:o")),
            ("registry-1.docker.io", Credential::Refresh("t".into())),
            ("a", Credential::None),
            ("evil.b", Credential::None),
        ] {
            assert!(find(&settings, host).await.unwrap() == expected, "{host}");
        }
    }

    #[tokio::test]
    async fn a_broken_file_tells_no_secret() {
        for text in
            [r#"{"auths": {"a": "secret"}}"#, r#"{"auths": {"a": {"auth": "c2VjcmV0"}}}"#, "secret"]
        {
            let (_folder, settings) = settings(text, "{}");
            let error = find(&settings, "a").await.err().unwrap().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let (_folder, settings) = settings(r#"{"credHelpers": {"a": "../../x"}}"#, "{}");
        assert!(find(&settings, "a").await.is_err());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn helpers_are_asked_for_one_server() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let helper = folder.path().join("docker-credential-test");
        let script = r#"#!/bin/sh
read server
case "$1 $server" in
"get known") echo '{"Username": "u", "Secret": "p"}' ;;
"get token") echo '{"Username": "<token>", "Secret": "t"}' ;;
"get odd") echo 'secret' ;;
"get fault") echo 'secret'; exit 1 ;;
*) echo 'credentials not found in native keychain'; exit 1 ;;
esac
"#;
        std::fs::write(&helper, script).unwrap();
        std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = helper.to_str().unwrap();
        assert!(run(program, "known\n").await.unwrap() == basic("u", "p"));
        assert!(run(program, "token\n").await.unwrap() == Credential::Refresh("t".into()));
        assert!(run(program, "other\n").await.unwrap() == Credential::None);
        for server in ["odd\n", "fault\n"] {
            let error = run(program, server).await.err().unwrap().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(run("/nowhere/docker-credential-x", "a").await.is_err());
    }
}
