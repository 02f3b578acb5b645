//! Repositories over TLS: whom we trust, and who we say we are.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::unnecessary_wraps,
    clippy::format_push_string,
    reason = "a test"
)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamaran_chart::Chart;
use catamaran_repository::{Access, RepositoryError, Wanted};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use support::{Answer, Home, Server, archive};
use tokio_rustls::TlsAcceptor;

/// An authority, and files of what it has signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, pem: &str) -> Option<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        Some(path)
    }

    fn file(&self) -> Option<PathBuf> {
        self.write("ca.pem", &self.issuer.pem())
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// The files of a client's certificate and key.
    fn client(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        let (certificate, key) = self.sign("client");
        (self.write("client.pem", &certificate.pem()), self.write("key.pem", &key.serialize_pem()))
    }

    /// What a server named so needs; clients too must then come with a certificate, where asked for.
    fn acceptor(&self, name: &str, clients: bool) -> TlsAcceptor {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (certificate, key) = self.sign(name);
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let config = if clients {
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
            ServerConfig::builder().with_client_cert_verifier(verifier)
        } else {
            ServerConfig::builder().with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    async fn server(&self, name: &str, clients: bool) -> Server {
        let index = "apiVersion: v1\nentries:\n  c:\n  - {apiVersion: v2, name: c, version: 1.0.0, urls: [c-1.0.0.tgz]}\n";
        Server::start_with(Some(self.acceptor(name, clients)), move |asked| {
            match asked.path.as_str() {
                "/index.yaml" => Answer::ok(index),
                "/c-1.0.0.tgz" => Answer::ok(archive("c", "1.0.0")),
                _ => Answer::status(404),
            }
        })
        .await
    }
}

async fn fetch(server: &Server, access: Access) -> Result<String, RepositoryError> {
    let home = Home::new();
    let wanted = Wanted { name: "c", version: "", repository: &server.address };
    let path = home.finder(access).locate(wanted, &mut Vec::new()).await?;
    Ok(Chart::load(&path)?.metadata.version)
}

fn trusting(ca_file: Option<PathBuf>) -> Access {
    Access { ca_file, ..Access::default() }
}

#[tokio::test]
async fn cve_2019_1010275_a_server_is_believed_by_its_authority_alone_unless_told_otherwise() {
    let (ours, other) = (Authority::new(), Authority::new());
    let server = ours.server("127.0.0.1", false).await;
    assert_eq!(fetch(&server, trusting(ours.file())).await.unwrap(), "1.0.0");
    for access in [Access::default(), trusting(other.file())] {
        let error = fetch(&server, access).await.unwrap_err().to_string();
        assert!(error.contains("x509: certificate signed by unknown authority"), "{error}");
    }
    let reckless = Access { insecure_skip_tls_verify: true, ..Access::default() };
    assert_eq!(fetch(&server, reckless).await.unwrap(), "1.0.0");
}

#[tokio::test]
async fn cve_2019_1010275_a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let server = authority.server("elsewhere.example", false).await;
    let error = fetch(&server, trusting(authority.file())).await.unwrap_err().to_string();
    assert!(error.contains("tls: failed to verify certificate"), "{error}");
    assert!(server.asked().is_empty(), "nothing was sent to a stranger");
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_the_one_of_the_flags() {
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", true).await;
    fetch(&server, trusting(authority.file())).await.unwrap_err();
    let (cert_file, key_file) = authority.client();
    let access = Access { cert_file, key_file, ..trusting(authority.file()) };
    assert_eq!(fetch(&server, access).await.unwrap(), "1.0.0");
}

#[tokio::test]
async fn files_that_hold_no_certificate_are_told_before_anything_is_sent() {
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", false).await;
    let junk = authority.write("junk.pem", "junk");
    let nowhere = Some(Path::new("/nowhere.pem").to_owned());
    let (cert_file, key_file) = authority.client();
    for (access, expected) in [
        (trusting(junk.clone()), "failed to append certificates from pem block"),
        (trusting(nowhere.clone()), "can't read CA file: \"/nowhere.pem\""),
        (
            Access { cert_file, key_file: junk, ..trusting(authority.file()) },
            "unable to load cert from key pair",
        ),
        (
            Access { cert_file: nowhere, key_file, ..trusting(authority.file()) },
            "unable to read cert file: \"/nowhere.pem\"",
        ),
    ] {
        let error = fetch(&server, access).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(server.asked().is_empty());
}
