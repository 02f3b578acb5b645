//! How connections to servers are protected: TLS that verifies the server, or none on request.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use catamaran_operator::native::{Context, Error, Managed};
use k8s_openapi::api::core::v1::Secret;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::api::{Tls, TlsMode};
use crate::manifest::text;

/// The key of a Secret with the certificates of authorities.
pub(crate) const CA_KEY: &str = "ca.crt";

/// How a connection is protected.
#[derive(Clone)]
pub enum Encryption {
    /// By nothing.
    Disabled,
    /// By TLS. The server's certificate is for the host that is connected to, and signed by one of these
    /// authorities (PEM).
    Verified(String),
}

/// An authority's certificate is public, and long.
impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "Disabled",
            Self::Verified(_) => "Verified",
        })
    }
}

impl Encryption {
    /// What a connection's spec asks for; `namespace` is the connection's.
    ///
    /// # Errors
    /// [`Error::Waiting`] with the reason `TlsNotConfigured`, `MissingDependency` or `IncompleteSecret`.
    pub(crate) async fn of<K: Managed>(
        ctx: &Context<'_, K>,
        namespace: Option<&str>,
        tls: Option<&Tls>,
    ) -> Result<Self, Error> {
        let tls = tls.cloned().unwrap_or_default();
        match (tls.mode, tls.ca_secret) {
            (TlsMode::Disable, _) => Ok(Self::Disabled),
            (TlsMode::Verify, Some(name)) => {
                let secret = ctx.reference::<Secret>(namespace, &name).await?.found()?;
                Ok(Self::Verified(text(&secret, CA_KEY)?))
            }
            (TlsMode::Verify, None) => Err(Error::waiting(
                "TlsNotConfigured",
                "spec.tls.caSecret names no Secret with the server's authority; an unencrypted \
                 connection needs spec.tls.mode: Disable",
            )),
        }
    }

    /// The configuration of a TLS client; `None` if there is no TLS.
    ///
    /// # Errors
    /// [`Error::Waiting`] with the reason `IncompleteSecret` if there is no certificate in the PEM.
    pub fn client_config(&self) -> Result<Option<ClientConfig>, Error> {
        let Self::Verified(pem) = self else { return Ok(None) };
        let unusable = |why: String| {
            Error::waiting("IncompleteSecret", format!("{CA_KEY} of spec.tls.caSecret: {why}"))
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(unusable("it holds no certificate in PEM".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Permanent(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Some(config))
    }
}

/// What TLS has against a server, if that is why a connection failed.
pub(crate) fn tls_failure(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls.to_string());
        }
        // The source of these two is that of what they wrap, and not what they wrap.
        let shared = error.downcast_ref::<Arc<dyn StdError + Send + Sync>>();
        let io = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match (shared, io) {
            (Some(shared), _) => Some(shared.as_ref()),
            (None, Some(inner)) => Some(inner),
            (None, None) => error.source(),
        };
    }
    None
}
