//! How a server is entered.

use std::fmt;
use std::path::PathBuf;

/// Credentials and TLS for one server, as Helm's flags and repositories.yaml have them.
#[derive(Clone, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub struct Access {
    /// Empty for none.
    pub username: String,
    /// Empty for none; a user without password is not sent either.
    pub password: String,
    /// Send them to any server that an index names, not only to the repository's.
    pub pass_credentials: bool,
    /// The client's certificate, PEM.
    pub cert_file: Option<PathBuf>,
    /// The client's key, PEM.
    pub key_file: Option<PathBuf>,
    /// The only authorities that a server's certificate may come from, PEM.
    pub ca_file: Option<PathBuf>,
    /// Take any certificate.
    pub insecure_skip_tls_verify: bool,
    /// Speak to registries without TLS.
    pub plain_http: bool,
}

impl Access {
    /// User and password, if there are both.
    pub(crate) fn basic(&self) -> Option<(&str, &str)> {
        let Self { username, password, .. } = self;
        (!username.is_empty() && !password.is_empty()).then_some((username, password))
    }

    /// The same without user and password.
    pub(crate) fn anonymous(&self) -> Self {
        Self { username: String::new(), password: String::new(), ..self.clone() }
    }

    /// What repositories.yaml says of the repository, over what was typed.
    pub(crate) fn overlaid(&self, by: &Self) -> Self {
        let mut access = self.clone();
        if by.cert_file.is_some() || by.key_file.is_some() || by.ca_file.is_some() {
            access.cert_file.clone_from(&by.cert_file);
            access.key_file.clone_from(&by.key_file);
            access.ca_file.clone_from(&by.ca_file);
        }
        if by.basic().is_some() {
            access.username.clone_from(&by.username);
            access.password.clone_from(&by.password);
            access.pass_credentials = by.pass_credentials;
        }
        access
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("username", &self.username)
            .field("pass_credentials", &self.pass_credentials)
            .field("cert_file", &self.cert_file)
            .field("ca_file", &self.ca_file)
            .field("insecure_skip_tls_verify", &self.insecure_skip_tls_verify)
            .field("plain_http", &self.plain_http)
            .finish_non_exhaustive()
    }
}
