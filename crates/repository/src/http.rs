//! Fetching by HTTP: under limits, and with credentials for one server alone.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, USER_AGENT,
};
use reqwest::{Certificate, Client, Identity, Method, Response, StatusCode, redirect};
use url::Url;

use crate::address::{same_server, shown};
use crate::error::go_reason;
use crate::{Access, RepositoryError};

/// Helm's limit for one request, from the first byte sent to the last one read.
const TIMEOUT: Duration = Duration::from_mins(2);
/// As many hops as Go's client follows.
const MAX_REDIRECTS: usize = 10;
/// More is no certificate and no key.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// What a request asks for, and how much of it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// For errors: `index`, `chart`.
    pub what: &'static str,
    /// The most that is read, in bytes.
    pub limit: u64,
}

/// A client for the servers of one [`Access`].
pub(crate) struct Http {
    access: Access,
    by_proxy: OnceLock<Client>,
    direct: OnceLock<Client>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("access", &self.access).finish_non_exhaustive()
    }
}

/// One request; its credentials are for the server of its first address.
pub(crate) struct Request<'a> {
    pub method: Method,
    pub url: Url,
    /// Nothing asks for nothing in particular.
    pub accept: Option<&'a str>,
    /// The value of `Authorization`; a secret.
    pub authorization: Option<HeaderValue>,
}

impl Http {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, by_proxy: OnceLock::new(), direct: OnceLock::new() }
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Whether the certificates and keys can be used; nothing is read where there are none.
    pub(crate) fn check(&self) -> Result<(), RepositoryError> {
        let Access { cert_file, key_file, ca_file, .. } = &self.access;
        if ca_file.is_none() && (cert_file.is_none() || key_file.is_none()) {
            return Ok(());
        }
        build(&self.access, true).map(|_| ()).map_err(|error| match error {
            RepositoryError::Tls(why) => RepositoryError::NoClient(why),
            other => other,
        })
    }

    /// Fetches a file. User and password go along if the file lies on the server of `owner`, or
    /// wherever `pass_credentials` sends them; after a redirect to another server they do not.
    pub(crate) async fn get(
        &self,
        address: &str,
        owner: &str,
        accept: Option<&str>,
        kind: Kind,
    ) -> Result<Vec<u8>, RepositoryError> {
        let url = crate::address::parse(address)?;
        let owner = crate::address::parse(owner)?;
        let may = self.access.pass_credentials || same_server(&url, &owner);
        let authorization =
            self.access.basic().filter(|_| may).map(|(user, word)| basic(user, word));
        let request = Request { method: Method::GET, url, accept, authorization };
        let (url, reply) = self.send(request).await?;
        if reply.status() != StatusCode::OK {
            return Err(RepositoryError::Status {
                address: shown(url.as_str()),
                status: reply.status().to_string(),
            });
        }
        read(reply, &url, kind).await
    }

    /// Sends a request and follows redirects; the address is that of the last one.
    pub(crate) async fn send(
        &self,
        request: Request<'_>,
    ) -> Result<(Url, Response), RepositoryError> {
        let Request { method, url: mut at, accept, mut authorization } = request;
        for _ in 0..=MAX_REDIRECTS {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, agent());
            let accept = accept.and_then(|accept| HeaderValue::from_str(accept).ok());
            headers.extend(accept.map(|accept| (ACCEPT, accept)));
            let own = take_userinfo(&mut at);
            headers.extend(authorization.clone().or(own).map(|value| (AUTHORIZATION, value)));
            let reply = self.client(&at)?.request(method.clone(), at.clone()).headers(headers);
            let reply = reply.send().await.map_err(|error| transport(&at, &error))?;
            let Some(next) = next_hop(&at, &reply)? else { return Ok((at, reply)) };
            if !same_server(&at, &next) {
                authorization = None;
            }
            at = next;
        }
        Err(RepositoryError::Transport {
            address: shown(at.as_str()),
            message: format!("stopped after {MAX_REDIRECTS} redirects"),
        })
    }

    /// Sends a form, to this address alone: what is in it is a secret.
    pub(crate) async fn post_form(
        &self,
        url: Url,
        form: String,
    ) -> Result<(Url, Response), RepositoryError> {
        let reply = self
            .client(&url)?
            .post(url.clone())
            .header(USER_AGENT, agent())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let reply = reply.send().await.map_err(|error| transport(&url, &error))?;
        Ok((url, reply))
    }

    fn client(&self, url: &Url) -> Result<&Client, RepositoryError> {
        let host = url.host_str().unwrap_or_default();
        let local = host == "localhost" || host.starts_with("127.") || host == "[::1]";
        let place = if local { &self.direct } else { &self.by_proxy };
        if let Some(client) = place.get() {
            return Ok(client);
        }
        let client = build(&self.access, local)?;
        Ok(place.get_or_init(|| client))
    }
}

/// `Authorization: Basic …`, never shown.
pub(crate) fn basic(user: &str, password: &str) -> HeaderValue {
    secret(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

/// A header that is a secret; one that cannot be sent is empty.
pub(crate) fn secret(text: &str) -> HeaderValue {
    let mut value = HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

fn agent() -> HeaderValue {
    HeaderValue::from_static(concat!("catamaran/", env!("CARGO_PKG_VERSION")))
}

/// User and password of an address itself, for the server it names.
fn take_userinfo(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let user = decoded(url.username());
    let password = decoded(url.password().unwrap_or_default());
    // Cannot fail for an address that has a user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(basic(&user, &password))
}

fn decoded(text: &str) -> String {
    let pairs = format!("x={}", text.replace('+', "%2B"));
    url::form_urlencoded::parse(pairs.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

fn next_hop(at: &Url, reply: &Response) -> Result<Option<Url>, RepositoryError> {
    if !matches!(reply.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let broken = |message: &str| RepositoryError::Transport {
        address: shown(at.as_str()),
        message: message.to_owned(),
    };
    let Some(place) = reply.headers().get(LOCATION) else {
        return Err(broken("redirect without a Location"));
    };
    let place = place.to_str().map_err(|_| broken("redirect to no address"))?;
    let next = at.join(place).map_err(|_| broken("redirect to no address"))?;
    match next.scheme() {
        "http" | "https" => Ok(Some(next)),
        other => Err(broken(&format!("redirect to unsupported protocol scheme {other:?}"))),
    }
}

/// Reads a reply up to the limit of its kind, whatever length it claims.
pub(crate) async fn read(
    mut reply: Response,
    url: &Url,
    kind: Kind,
) -> Result<Vec<u8>, RepositoryError> {
    let Kind { what, limit } = kind;
    let too_large = || RepositoryError::TooLarge { what, address: shown(url.as_str()), limit };
    if reply.content_length().is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = reply.chunk().await.map_err(|error| transport(url, &error))? {
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn build(access: &Access, local: bool) -> Result<Client, RepositoryError> {
    // Fails where a provider is there already; it is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT)
        .referer(false)
        .tls_danger_accept_invalid_certs(access.insecure_skip_tls_verify);
    if local {
        builder = builder.no_proxy();
    }
    if let Some(path) = &access.ca_file {
        let pem = pem("can't read CA file", path)?;
        let certificates = Certificate::from_pem_bundle(&pem).ok().filter(|all| !all.is_empty());
        builder = builder.tls_certs_only(certificates.ok_or_else(|| {
            RepositoryError::Tls("failed to append certificates from pem block".into())
        })?);
    }
    if access.cert_file.is_some() || access.key_file.is_some() {
        let none = Path::new("");
        let of = |file: &Option<_>, why| pem(why, file.as_deref().unwrap_or(none));
        let mut pair = of(&access.cert_file, "unable to read cert file")?;
        pair.push(b'\n');
        pair.extend(of(&access.key_file, "unable to read key file")?);
        builder = builder.identity(Identity::from_pem(&pair).map_err(|_| {
            RepositoryError::Tls(
                "unable to load cert from key pair: not a certificate and its key".into(),
            )
        })?);
    }
    builder.build().map_err(|error| RepositoryError::Tls(root(&error)))
}

fn pem(why: &str, path: &Path) -> Result<Vec<u8>, RepositoryError> {
    crate::files::read(path, MAX_PEM_BYTES).map_err(|error| {
        let (path, reason) = (path.display(), go_reason(&error));
        RepositoryError::Tls(format!("{why}: \"{path}\": open {path}: {reason}"))
    })
}

fn transport(url: &Url, error: &reqwest::Error) -> RepositoryError {
    let message = match refused(error) {
        true => {
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or_default();
            format!("dial tcp {host}:{port}: connect: connection refused")
        }
        false if error.is_timeout() => "context deadline exceeded".to_owned(),
        false => match root(error) {
            text if text.contains("InvalidContentType") => {
                "http: server gave HTTP response to HTTPS client".to_owned()
            }
            text => text,
        },
    };
    RepositoryError::Transport { address: shown(url.as_str()), message }
}

/// The innermost cause. The outer ones repeat the address, with its query.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match within(cause).downcast_ref::<rustls::Error>() {
        Some(rustls::Error::InvalidCertificate(why)) => untrusted(why),
        _ if cause.is::<reqwest::Error>() => "the request failed".to_owned(),
        _ => cause.to_string(),
    }
}

/// What an error of input and output holds: [`io::Error`] does not name it as its source.
fn within<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => within(inner),
        None => error,
    }
}

/// Go's words where the cause has some of its own.
fn untrusted(why: &rustls::CertificateError) -> String {
    use rustls::CertificateError::{BadSignature, UnknownIssuer};
    let reason = match why {
        UnknownIssuer | BadSignature => "certificate signed by unknown authority".to_owned(),
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {reason}")
}

fn refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let io = cause.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        next = cause.source();
    }
    false
}
