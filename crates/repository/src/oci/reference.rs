//! Names of charts in registries: `host[:port]/path[:tag][@digest]`.

use std::fmt;
use std::net::IpAddr;

use crate::RepositoryError;
use crate::address::shown;

/// A chart in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// `ghcr.io`, `localhost:5000`.
    pub registry: String,
    /// `team/charts/memcached`.
    pub repository: String,
    /// The version, `+` written as `_`; empty if there is none.
    pub tag: String,
    /// `sha256:…`; empty if there is none.
    pub digest: String,
}

impl Reference {
    /// Reads a name, with or without `oci://`. User and query of an address are no part of it.
    pub(crate) fn parse(text: &str) -> Result<Self, RepositoryError> {
        let invalid = |why: String| RepositoryError::Registry(format!("invalid reference: {why}"));
        let text = text.strip_prefix("oci://").unwrap_or(text);
        let (text, digest) = match text.rsplit_once('@') {
            Some((text, digest)) => (text, digest),
            None => (text, ""),
        };
        let Some((registry, path)) = text.split_once('/') else {
            return Err(invalid("missing registry or repository".into()));
        };
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag.replace('+', "_")),
            _ => (path, String::new()),
        };
        if !is_host(registry) {
            return Err(invalid(format!("invalid registry {:?}", shown(registry))));
        }
        if !is_repository(repository) {
            return Err(invalid(format!("invalid repository {repository:?}")));
        }
        if path.ends_with(':') || !(tag.is_empty() || is_tag(&tag)) {
            return Err(invalid(format!("invalid tag {tag:?}")));
        }
        if !digest.is_empty() {
            check_digest(digest)
                .map_err(|why| invalid(format!("invalid digest {digest:?}: {why}")))?;
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag,
            digest: digest.to_owned(),
        })
    }

    /// The server behind the name.
    pub(crate) fn host(&self) -> &str {
        match self.registry.as_str() {
            "docker.io" => "registry-1.docker.io",
            other => other,
        }
    }

    /// With the digest even if there is a tag.
    pub(crate) fn to_string_with_digest(&self) -> String {
        format!("{}/{}@{}", self.registry, self.repository, self.digest)
    }

    /// What the manifest is asked for by.
    pub(crate) fn version(&self) -> &str {
        if self.digest.is_empty() { &self.tag } else { &self.digest }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registry, repository, tag, digest } = self;
        write!(f, "{registry}/{repository}")?;
        match (tag.is_empty(), digest.is_empty()) {
            (false, _) => write!(f, ":{tag}"),
            (true, false) => write!(f, "@{digest}"),
            (true, true) => Ok(()),
        }
    }
}

/// A host name or an address, with or without port; no user.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.parse::<u16>().is_ok();
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_name = match bracketed {
        Some(address) => address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
        None => {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        }
    };
    is_name && port.is_none_or(is_port)
}

/// Lower-case words, joined by one dot, one or two underscores or dashes, in folders.
fn is_repository(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_joint = |joint: &str| {
        matches!(joint, "." | "_" | "__") || (!joint.is_empty() && joint.bytes().all(|b| b == b'-'))
    };
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let edges = [bytes.first(), bytes.last()];
        edges.iter().all(|edge| edge.is_some_and(|byte| is_word(*byte)))
            && part
                .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                .filter(|joint| !joint.is_empty())
                .all(is_joint)
    };
    text.split('/').all(is_part)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// Whether [`check_digest`] takes it.
pub(crate) fn is_digest(text: &str) -> bool {
    check_digest(text).is_ok()
}

/// Only SHA-256 is checked, so only it is taken; the error is the text of Helm's library, which would
/// take sound ones of other algorithms, too.
fn check_digest(text: &str) -> Result<(), &'static str> {
    const MALFORMED: &str = "invalid checksum digest format";
    const UNSUPPORTED: &str = "unsupported digest algorithm";
    let digest = text.split_once(':').filter(|(_, digits)| !digits.is_empty());
    let (algorithm, digits) = digest.ok_or(MALFORMED)?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(UNSUPPORTED),
    };
    if digits.len() != length {
        return Err("invalid checksum digest length");
    }
    if !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(MALFORMED);
    }
    if algorithm == "sha256" { Ok(()) } else { Err(UNSUPPORTED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, expected) in [
            ("oci://h/a/b".to_owned(), ["h", "a/b", "", ""]),
            ("h:5000/a:1.0+x".to_owned(), ["h:5000", "a", "1.0_x", ""]),
            (format!("h/a:1@{digest}"), ["h", "a", "1", &digest]),
            (format!("[::1]:5000/a__b-c.d@{digest}"), ["[::1]:5000", "a__b-c.d", "", &digest]),
        ] {
            let Reference { registry, repository, tag, digest } = Reference::parse(&text).unwrap();
            assert_eq!([registry, repository, tag, digest], expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in [
            "",
            "h",
            "h/",
            "/a",
            "h/A",
            "h/a//b",
            "h/../a",
            "h/a:",
            "h/a:.x",
            "h/a b",
            "u:p@h/a",
            "h/a@sha512:00",
            "h/a@sha256:xyz",
            "h:99999/a",
            "h:/a",
            "h/a?x=1",
            "h/-a",
            "h/a..b",
        ] {
            assert!(Reference::parse(bad).is_err(), "{bad}");
        }
    }
}
