//! repositories.yaml: the repositories that the user added.

use std::path::Path;

use catamaran_yaml::Numbers;
use serde::Deserialize;

use crate::error::go_reason;
use crate::{Access, RepositoryError};

/// More is no list of repositories.
const MAX_BYTES: u64 = 10 << 20;

/// A repository, as `helm repo add` writes it down.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Entry {
    /// The name that stands before the slash of `name/chart`.
    pub name: String,
    /// The address of the folder of index.yaml.
    pub url: String,
    username: String,
    password: String,
    cert_file: String,
    key_file: String,
    ca_file: String,
    #[serde(rename = "insecure_skip_tls_verify")]
    insecure_skip_tls_verify: bool,
    #[serde(rename = "pass_credentials_all")]
    pass_credentials_all: bool,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = crate::address::shown(&self.url);
        f.debug_struct("Entry").field("name", &self.name).field("url", &url).finish_non_exhaustive()
    }
}

impl Entry {
    /// One that is not in repositories.yaml.
    pub(crate) fn unknown(name: String, url: String) -> Self {
        Self { name, url, ..Self::default() }
    }

    /// How the repository is entered.
    pub fn access(&self) -> Access {
        let file = |path: &str| (!path.is_empty()).then(|| path.into());
        Access {
            username: self.username.clone(),
            password: self.password.clone(),
            pass_credentials: self.pass_credentials_all,
            cert_file: file(&self.cert_file),
            key_file: file(&self.key_file),
            ca_file: file(&self.ca_file),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            plain_http: false,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    repositories: Vec<Option<Entry>>,
}

/// Reads repositories.yaml. A file that is not there has no repositories.
///
/// # Errors
///
/// It cannot be read, or is not shaped like one.
pub fn repositories(path: &Path) -> Result<Vec<Entry>, RepositoryError> {
    let fault = |message| RepositoryError::Config { path: path.to_owned(), message };
    let text = match crate::files::read(path, MAX_BYTES) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| fault("invalid UTF-8".into()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(fault(format!("open {}: {}", path.display(), go_reason(&error))));
        }
    };
    // A text of an entry may be a password: only the place of a mistake is told.
    let config: Config = catamaran_yaml::from_str(&text, Numbers::Exact).map_err(|error| {
        fault(match error.line() {
            0 => "not shaped like a list of repositories".to_owned(),
            line => format!("not shaped like a list of repositories (line {line})"),
        })
    })?;
    Ok(config.repositories.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Entry>, RepositoryError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        repositories(file.path())
    }

    #[test]
    fn reads_what_helm_writes() {
        let text = "apiVersion: \"\"\ngenerated: \"0001-01-01T00:00:00Z\"\nrepositories:\n- caFile: /ca\n  certFile: \"\"\n  insecure_skip_tls_verify: false\n  keyFile: \"\"\n  name: a\n  pass_credentials_all: true\n  password: p\n  url: http://h\n  username: u\n- null\n";
        let entries = read(text).unwrap();
        let [entry] = entries.as_slice() else { panic!("{entries:?}") };
        let access = entry.access();
        assert_eq!((entry.name.as_str(), access.username.as_str()), ("a", "u"));
        assert!(access.pass_credentials && access.cert_file.is_none());
        assert!(!format!("{entry:?} {access:?}").contains("\"p\""));
        assert!(read("").unwrap().is_empty());
        assert!(repositories(Path::new("/nowhere/at/all")).unwrap().is_empty());
    }

    #[test]
    fn a_mistake_tells_no_password() {
        for text in [
            "repositories: secret",
            "repositories:\n- secret",
            "repositories:\n- password: [secret]",
            ": :\n- secret",
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
