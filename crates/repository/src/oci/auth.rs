//! How a registry lets us in: Basic, or a token from the server that it names.

use std::net::IpAddr;

use reqwest::header::{HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use url::{Host, Url};

use super::credentials::Credential;
use crate::RepositoryError;
use crate::address::{same_server, shown};
use crate::http::{self, Http, Kind, Request};

/// The largest answer of a token server.
const TOKEN: Kind = Kind { what: "token", limit: 1 << 20 };

/// What a registry asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    Basic,
    Bearer { realm: String, service: String, scope: String },
}

impl Challenge {
    /// The first of a reply's challenges that is understood.
    pub(crate) fn of(reply: &Response) -> Option<Self> {
        let all = reply.headers().get_all(WWW_AUTHENTICATE).iter();
        all.filter_map(|value| value.to_str().ok()).find_map(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => Some(Self::Basic),
            "bearer" => {
                let [mut realm, mut service, mut scope] = [const { String::new() }; 3];
                for (name, value) in parameters(rest) {
                    match name.to_ascii_lowercase().as_str() {
                        "realm" => realm = value,
                        "service" => service = value,
                        "scope" => scope = value,
                        _ => {}
                    }
                }
                (!realm.is_empty()).then_some(Self::Bearer { realm, service, scope })
            }
            _ => None,
        }
    }
}

/// `a="b, c",d=e`
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_owned();
        let value = if let Some(quoted) = after.strip_prefix('"') {
            let Some((value, after)) = quoted.split_once('"') else { break };
            rest = after;
            value
        } else {
            let (value, after) = after.split_at(after.find(',').unwrap_or(after.len()));
            rest = after;
            value.trim()
        };
        found.push((name, value.to_owned()));
    }
    found
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Token {
    token: String,
    access_token: String,
}

/// Gets a token for a registry from the server that the registry names.
pub(crate) async fn token(
    http: &Http,
    registry: &Url,
    challenge: (&str, &str, &str),
    credential: &Credential,
) -> Result<HeaderValue, RepositoryError> {
    let (realm, service, scope) = challenge;
    let bearer = |token: &str| http::secret(&format!("Bearer {token}"));
    if let Credential::Access(token) = credential {
        return Ok(bearer(token));
    }
    let mut url = sound_realm(realm, registry)?;
    let request = |refresh: Option<&str>| {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        if let Some(refresh) = refresh {
            form.append_pair("grant_type", "refresh_token");
            form.append_pair("client_id", "catamaran");
            form.append_pair("refresh_token", refresh);
        }
        if !service.is_empty() {
            form.append_pair("service", service);
        }
        match refresh {
            Some(_) => form.append_pair("scope", scope),
            None => form.extend_pairs(scope.split_whitespace().map(|scope| ("scope", scope))),
        };
        form.finish()
    };
    let (url, reply) = match credential {
        Credential::Refresh(refresh) => http.post_form(url, request(Some(refresh))).await?,
        other => {
            let query = request(None);
            let joined = url.query().map_or(query.clone(), |own| format!("{own}&{query}"));
            url.set_query(Some(&joined));
            let authorization = match other {
                Credential::Basic { user, password } => Some(http::basic(user, password)),
                _ => None,
            };
            http.send(Request { method: Method::GET, url, accept: None, authorization }).await?
        }
    };
    if reply.status() != StatusCode::OK {
        return Err(super::failure(&Method::GET, &url, reply).await);
    }
    let answer = http::read(reply, &url, TOKEN).await?;
    let broken =
        |why: &str| RepositoryError::Registry(format!("GET {:?}: {why}", shown(url.as_str())));
    let Token { token, access_token } =
        serde_json::from_slice(&answer).map_err(|_| broken("failed to decode response"))?;
    match [access_token, token].iter().find(|token| !token.is_empty()) {
        Some(token) => Ok(bearer(token)),
        None => Err(broken("empty token returned")),
    }
}

/// A registry may name another server for its tokens, and the user's password goes there; but not
/// in the clear if the registry itself was asked by TLS, and not to a machine inside.
fn sound_realm(realm: &str, registry: &Url) -> Result<Url, RepositoryError> {
    let refuse = |why: &str| {
        Err(RepositoryError::Registry(format!("bearer realm {:?} {why}", shown(realm))))
    };
    let Ok(url) = Url::parse(realm) else { return refuse("is no address") };
    match url.scheme() {
        "http" if registry.scheme() == "https" => {
            return refuse("uses http but registry was contacted over https");
        }
        "http" | "https" => {}
        _ => return refuse("uses an unsupported scheme"),
    }
    let address: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => {
            Some(address.to_ipv4_mapped().map_or(address.into(), Into::into))
        }
        _ => None,
    };
    if address.is_some_and(is_inside) && url.host_str() != registry.host_str() {
        return refuse("is a loopback, link-local, private, or unspecified address");
    }
    Ok(url)
}

fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_link_local() || v4.is_private() || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unicast_link_local()
                || v6.is_unique_local()
                || v6.is_unspecified()
        }
    }
}

/// Whether a reply is the registry's own: after a redirect to another server, its challenge is not.
pub(crate) fn is_own(asked: &Url, answered: &Url) -> bool {
    same_server(asked, answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: &str, scope: &str| Challenge::Bearer {
            realm: realm.into(),
            service: service.into(),
            scope: scope.into(),
        };
        for (text, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:x:pull,push\"",
                Some(bearer("https://a/t", "s", "repository:x:pull,push")),
            ),
            ("bearer realm=https://a/t, service=s", Some(bearer("https://a/t", "s", ""))),
            ("Bearer service=\"s\"", None),
            ("Bearer realm=\"never ends", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn tokens_come_from_no_machine_inside() {
        let registry = Url::parse("https://registry.example").unwrap();
        assert!(sound_realm("https://auth.example/token", &registry).is_ok());
        for bad in [
            "http://auth.example/token",
            "ftp://a/",
            "nonsense",
            "https://127.0.0.1/t",
            "https://169.254.169.254/t",
            "https://10.0.0.1/",
            "https://[::1]/",
            "https://0.0.0.0/",
            "https://[::ffff:127.0.0.1]/",
            "https://2130706433/",
            "https://[fd00::1]/",
        ] {
            assert!(sound_realm(bad, &registry).is_err(), "{bad}");
        }
        let local = Url::parse("http://127.0.0.1:5000").unwrap();
        assert!(sound_realm("http://127.0.0.1:5001/token", &local).is_ok());
    }
}
