//! The certificate under which metrics are served: from files, or made up.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// How often the files are looked at.
const FRESH: Duration = Duration::from_secs(5);

/// Where a certificate comes from.
pub(super) enum Certificate {
    /// One that nobody vouches for: it keeps the token of who asks from those who listen.
    MadeUp(Arc<ServerConfig>),
    /// Files that may change, as cert-manager changes them.
    Files { certificate: PathBuf, key: PathBuf, read: Mutex<Read> },
}

/// Files as they were read.
pub(super) struct Read {
    config: Arc<ServerConfig>,
    changed: Option<SystemTime>,
    looked: Instant,
}

impl Certificate {
    /// A certificate for these names, made up and kept in memory.
    ///
    /// # Errors
    /// A message for people.
    pub fn self_signed(names: Vec<String>) -> Result<Self, String> {
        let made = rcgen::generate_simple_self_signed(names);
        let made = made.map_err(|error| format!("cannot make a certificate: {error}"))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self::MadeUp(config(vec![made.cert.der().clone()], key.into())?))
    }

    /// The certificate of these PEM files.
    ///
    /// # Errors
    /// A message for people.
    pub fn of_files(certificate: PathBuf, key: PathBuf) -> Result<Self, String> {
        let read = Read {
            changed: changed(&certificate),
            config: load(&certificate, &key)?,
            looked: Instant::now(),
        };
        Ok(Self::Files { certificate, key, read: Mutex::new(read) })
    }

    /// How the next connection is served. Files that became unreadable leave what was read before.
    pub fn config(&self) -> Arc<ServerConfig> {
        let (certificate, key, read) = match self {
            Self::MadeUp(config) => return config.clone(),
            Self::Files { certificate, key, read } => (certificate, key, read),
        };
        let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.looked.elapsed() >= FRESH {
            read.looked = Instant::now();
            let now = changed(certificate);
            if now != read.changed {
                match load(certificate, key) {
                    Ok(config) => {
                        tracing::info!(file = %certificate.display(), "the certificate was read anew");
                        (read.config, read.changed) = (config, now);
                    }
                    Err(error) => tracing::warn!(error, "the certificate stays as it was"),
                }
            }
        }
        read.config.clone()
    }
}

fn changed(file: &PathBuf) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}

fn load(certificate: &PathBuf, key: &PathBuf) -> Result<Arc<ServerConfig>, String> {
    let of = |file: &PathBuf, error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| of(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| of(key, &error))?;
    config(chain, secret).map_err(|error| of(certificate, &error))
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_what_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let made = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        let missing = Certificate::of_files(certificate.clone(), key.clone());
        assert!(missing.err().unwrap().contains("tls.key"));
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        assert!(Certificate::of_files(certificate.clone(), key.clone()).is_ok());
        std::fs::write(&certificate, "none").unwrap();
        assert!(Certificate::of_files(certificate, key).err().unwrap().contains("tls.crt"));
    }
}
