//! The way in: an address, whom to trust, and who one is; as a kubeconfig or as a client's settings.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::AuthInfo;

use crate::error::{Error, Result};
use crate::pki::{Identity, write_private};

/// What proves who one is.
pub(crate) enum Credential {
    Certificate(Identity),
    Token(String),
}

/// Everything a client needs.
pub(crate) struct Access<'a> {
    /// As `https://127.0.0.1:34567`.
    pub(crate) server: &'a str,
    /// The authority's certificate, PEM.
    pub(crate) authority: &'a str,
    /// For people who read the file.
    pub(crate) user: &'a str,
    pub(crate) credential: Credential,
}

impl Access<'_> {
    /// As a kubeconfig. All certificates are inside, so the file may be copied elsewhere.
    pub(crate) fn kubeconfig(&self) -> String {
        let user = serde_json::Value::from(self.user);
        // A service account is at home in its namespace, as in a pod.
        let account = self.user.strip_prefix("system:serviceaccount:");
        let home = account.and_then(|account| account.split_once(':'));
        let namespace = home.map(|(home, _)| format!(", namespace: {home}")).unwrap_or_default();
        let credential = match &self.credential {
            Credential::Certificate(identity) => format!(
                "client-certificate-data: {}\n    client-key-data: {}",
                STANDARD.encode(&identity.certificate),
                STANDARD.encode(&identity.key)
            ),
            Credential::Token(token) => format!("token: {token}"),
        };
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: localcluster\n\
             clusters:\n\
             - name: localcluster\n\
             \x20 cluster:\n\
             \x20   server: {server}\n\
             \x20   certificate-authority-data: {authority}\n\
             contexts:\n\
             - name: localcluster\n\
             \x20 context: {{cluster: localcluster, user: {user}{namespace}}}\n\
             users:\n\
             - name: {user}\n\
             \x20 user:\n\
             \x20   {credential}\n",
            server = self.server,
            authority = STANDARD.encode(self.authority),
        )
    }

    /// Writes the kubeconfig for its owner's eyes only.
    pub(crate) fn write(&self, path: PathBuf) -> Result<PathBuf> {
        write_private(&path, &self.kubeconfig())?;
        Ok(path)
    }

    /// As settings of a [`kube::Client`].
    pub(crate) fn config(&self) -> Result<kube::Config> {
        let uri = self
            .server
            .parse()
            .map_err(|_| Error::Invalid(format!("{} is not an address", self.server)))?;
        let mut config = kube::Config::new(uri);
        config.root_cert = Some(vec![der(self.authority)?]);
        let mut auth = AuthInfo::default();
        match &self.credential {
            Credential::Certificate(identity) => {
                auth.client_certificate_data = Some(STANDARD.encode(&identity.certificate));
                auth.client_key_data = Some(STANDARD.encode(&identity.key).into());
            }
            Credential::Token(token) => auth.token = Some(token.clone().into()),
        }
        config.auth_info = auth;
        Ok(config)
    }
}

/// A client that calls itself `user_agent`. (kube's own clients have no name.)
pub(crate) fn client(mut config: kube::Config, user_agent: &str) -> Result<kube::Client> {
    let invalid = || Error::Invalid(format!("{user_agent:?} cannot be a user agent"));
    let name = "user-agent".parse().map_err(|_| invalid())?;
    config.headers.push((name, user_agent.parse().map_err(|_| invalid())?));
    kube::Client::try_from(config).map_err(Error::api("make a client"))
}

/// The first block of a PEM file.
fn der(pem: &str) -> Result<Vec<u8>> {
    let body: String =
        pem.lines().skip(1).take_while(|line| !line.starts_with("-----END")).collect();
    STANDARD
        .decode(body.trim())
        .map_err(|error| Error::Invalid(format!("the authority's certificate is damaged: {error}")))
}

/// A file name that tells whose it is and does not collide: other characters than a file name should
/// have become dashes, and a digest of the whole follows.
pub(crate) fn file_name(folder: &Path, user: &str, groups: &[&str]) -> PathBuf {
    let clean: String =
        user.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    folder.join(format!("{clean}-{}.kubeconfig", digest(&(user, groups))))
}

/// Ten characters that stand for a value. No secret, and no promise beyond this build.
pub(crate) fn digest(value: &impl std::hash::Hash) -> String {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish()).chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::Authority;

    fn access(authority: &Authority, credential: Credential) -> Access<'_> {
        Access {
            server: "https://127.0.0.1:1",
            authority: &authority.certificate,
            user: "system:serviceaccount:a:b",
            credential,
        }
    }

    #[test]
    fn a_kubeconfig_is_read_as_it_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::create(folder.path()).unwrap();
        let identity = authority.client("x", &[]).unwrap();
        for credential in [Credential::Certificate(identity), Credential::Token("t0ken".into())] {
            let text = access(&authority, credential).kubeconfig();
            let read = kube::config::Kubeconfig::from_yaml(&text).unwrap();
            assert_eq!(read.current_context.as_deref(), Some("localcluster"));
            let user = &read.auth_infos[0];
            assert_eq!(user.name, "system:serviceaccount:a:b");
            let user = user.auth_info.as_ref().unwrap();
            assert!(user.token.is_some() || user.client_key_data.is_some());
        }
    }

    #[test]
    fn users_who_differ_have_files_that_differ() {
        let names = [
            file_name(Path::new("/x"), "a:b", &[]),
            file_name(Path::new("/x"), "a-b", &[]),
            file_name(Path::new("/x"), "a-b", &["g"]),
        ];
        assert_ne!(names[0], names[1]);
        assert_ne!(names[1], names[2]);
    }
}
