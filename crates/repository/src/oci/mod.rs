//! Charts in registries (OCI): tags, manifests and layers, as `helm push` puts them there.

mod auth;
mod credentials;
mod manifest;
mod reference;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use catamaran_sprig::semver::{Constraint, Version};
use reqwest::header::{HeaderValue, LINK};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::address::{resolve, same_server, shown};
use crate::cache::Digest;
use crate::http::{self, Http, Kind, Request};
use crate::origin::Archive;
use crate::{Access, RepositoryError, Settings, cache};
use auth::Challenge;
use credentials::Credential;
pub(crate) use manifest::Layer;
use manifest::{CONFIG, Descriptor, Manifest, OLD_CHART};
use reference::Reference;

const MANIFEST: Kind = Kind { what: "manifest", limit: 4 << 20 };
const TAGS: Kind = Kind { what: "list of tags", limit: 4 << 20 };
const REASON: Kind = Kind { what: "error", limit: 8 << 10 };
/// A registry that still has more pages is making them up.
const MAX_PAGES: usize = 1000;
/// An index of manifests holds one per platform.
const MAX_MANIFESTS: usize = 32;

const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const ACCEPTED: &str = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, application/vnd.oci.artifact.manifest.v1+json";

/// Why `+` became `_`, as Helm tells it after a pull.
const UNDERSCORE: &str = "OCI artifact references (e.g. tags) do not support the plus sign (+). To support\nstoring semantic versions, Helm adopts the convention of changing plus (+) to\nan underscore (_) in chart version tags when pushing to a registry and back to\na plus (+) when pulling from a registry.";

/// The registries, seen with one set of credentials.
#[derive(Debug)]
pub(crate) struct Registry {
    settings: Settings,
    http: Http,
    /// What opened a server for a scope; secrets.
    opened: Mutex<BTreeMap<(String, String), HeaderValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tags {
    tags: Option<Vec<String>>,
}

impl Registry {
    pub(crate) fn new(settings: Settings, access: Access) -> Self {
        Self { settings, http: Http::new(access), opened: Mutex::default() }
    }

    /// Chooses the tag for a version that is asked for; gives the full name of the chart.
    pub(crate) async fn resolve(
        &self,
        name: &str,
        version: &str,
    ) -> Result<String, RepositoryError> {
        let mut reference = Reference::parse(without_extras(name))?;
        let version = match (version, reference.tag.as_str()) {
            ("", tag) => tag.to_owned(),
            (version, tag) if !tag.is_empty() && tag != version => {
                return Err(RepositoryError::Registry(format!(
                    "chart reference and version mismatch: {version} is not {tag}"
                )));
            }
            (version, _) => version.to_owned(),
        };
        if !reference.digest.is_empty() {
            if !version.is_empty() {
                self.check_tag(&reference, &version).await?;
            }
            return Ok(reference.to_string_with_digest());
        }
        if Version::parse(&version).is_ok() {
            reference.tag = version.replace('+', "_");
        } else {
            let tags = self.tags(&reference).await?;
            if tags.is_empty() {
                return Err(RepositoryError::Registry(format!(
                    "unable to locate any tags in provided repository: {}",
                    shown(name)
                )));
            }
            reference.tag = matching(&tags, &version)?.replace('+', "_");
        }
        Ok(reference.to_string())
    }

    /// Where name, version and digest are given, they must mean the same. A digest needs no tag.
    async fn check_tag(&self, reference: &Reference, version: &str) -> Result<(), RepositoryError> {
        let mut tagged = reference.clone();
        tagged.tag = version.replace('+', "_");
        tagged.digest = String::new();
        let Ok((_, bytes)) = self.manifest(&tagged).await else { return Ok(()) };
        let actual = format!("{:?}", Digest::of(&bytes));
        if actual == reference.digest {
            return Ok(());
        }
        Err(RepositoryError::Registry(format!(
            "chart reference digest mismatch: {actual} is not {}",
            reference.digest
        )))
    }

    /// The versions of a chart by its name.
    pub(crate) async fn tags_of(&self, name: &str) -> Result<Vec<String>, RepositoryError> {
        self.tags(&Reference::parse(without_extras(name))?).await
    }

    /// The versions of a chart, the latest first. Tags that are no full version are none.
    async fn tags(&self, reference: &Reference) -> Result<Vec<String>, RepositoryError> {
        let path = format!("{}/tags/list", reference.repository);
        let mut url = self.url(reference, &path)?;
        let mut versions: Vec<Version> = Vec::new();
        for _ in 0..MAX_PAGES {
            let (at, reply) = self.ask(&url, reference, None).await?;
            if reply.status() != StatusCode::OK {
                return Err(failure(&Method::GET, &at, reply).await);
            }
            let next = next_page(&url, &reply)?;
            let bytes = http::read(reply, &at, TAGS).await?;
            let page: Tags = serde_json::from_slice(&bytes).map_err(|_| {
                let place = shown(at.as_str());
                RepositoryError::Registry(format!("GET {place:?}: failed to decode response"))
            })?;
            let tags = page.tags.unwrap_or_default().into_iter();
            versions.extend(tags.filter_map(|tag| strict(&tag.replace('_', "+"))));
            let Some(next) = next else {
                versions.sort_by(|a, b| b.compare(a));
                return Ok(versions.iter().map(ToString::to_string).collect());
            };
            url = next;
        }
        Err(RepositoryError::Registry(format!("{reference}: the list of tags does not end")))
    }

    /// Fetches a chart by its full name, or what is signed of it.
    pub(crate) async fn pull(
        &self,
        name: &str,
        layer: Layer,
        messages: &mut Vec<String>,
    ) -> Result<Archive, RepositoryError> {
        let reference = Reference::parse(without_extras(name))?;
        if reference.version().is_empty() {
            return Err(no_version());
        }
        let (manifest, bytes) = self.manifest(&reference).await?;
        let manifest = self.chart_of(&reference, manifest).await?;
        let descriptor = layer.of(&manifest)?;
        let bytes_digest = format!("{:?}", Digest::of(&bytes));
        let archive = Archive {
            bytes: self.blob(&reference, layer, &descriptor, messages).await?,
            name: archive_name(&reference),
        };
        messages.push(format!("Pulled: {reference}"));
        messages.push(format!("Digest: {bytes_digest}"));
        if reference.to_string().contains('_') {
            messages.push(format!("{reference} contains an underscore.\n\n{UNDERSCORE}"));
        }
        Ok(archive)
    }

    async fn manifest(
        &self,
        reference: &Reference,
    ) -> Result<(Manifest, Vec<u8>), RepositoryError> {
        let path = format!("{}/manifests/{}", reference.repository, reference.version());
        let url = self.url(reference, &path)?;
        let (at, reply) = self.ask(&url, reference, Some(ACCEPTED)).await?;
        if reply.status() == StatusCode::NOT_FOUND {
            return Err(RepositoryError::Registry(format!(
                "failed to perform \"FetchReference\" on source: {reference}: not found"
            )));
        }
        if reply.status() != StatusCode::OK {
            return Err(failure(&Method::GET, &at, reply).await);
        }
        let told = reply.headers().get("docker-content-digest").and_then(|v| v.to_str().ok());
        let told = told.map(str::to_owned);
        let kind = reply.headers().get("content-type").and_then(|v| v.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_owned();
        let bytes = http::read(reply, &at, MANIFEST).await?;
        let actual = format!("{:?}", Digest::of(&bytes));
        let asked = Some(&reference.digest).filter(|digest| !digest.is_empty());
        let told = told.filter(|told| told.starts_with("sha256:"));
        if let Some(expected) = asked.or(told.as_ref()).filter(|expected| **expected != actual) {
            return Err(mismatch(reference, expected, &actual));
        }
        let mut manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| {
            RepositoryError::Registry(format!("{reference}: the manifest is none: {error}"))
        })?;
        if manifest.media_type.is_empty() {
            manifest.media_type = kind;
        }
        Ok((manifest, bytes))
    }

    /// The manifest itself, or the one of a chart in an index of manifests.
    async fn chart_of(
        &self,
        reference: &Reference,
        manifest: Manifest,
    ) -> Result<Manifest, RepositoryError> {
        if manifest.media_type != OCI_INDEX {
            return Ok(manifest);
        }
        for inner in manifest.manifests.iter().take(MAX_MANIFESTS) {
            if inner.media_type != OCI_MANIFEST || !reference::is_digest(&inner.digest) {
                continue;
            }
            let place = Reference { digest: inner.digest.clone(), ..reference.clone() };
            let (manifest, _) = self.manifest(&place).await?;
            if manifest.config.media_type == CONFIG {
                return Ok(manifest);
            }
        }
        Ok(manifest)
    }

    /// A layer; a chart is taken from the cache if it is there. The digest is checked either way.
    async fn blob(
        &self,
        reference: &Reference,
        layer: Layer,
        descriptor: &Descriptor,
        messages: &mut Vec<String>,
    ) -> Result<Vec<u8>, RepositoryError> {
        if descriptor.media_type == OLD_CHART {
            messages.push(format!("Warning: chart media type {OLD_CHART} is deprecated"));
        }
        if !reference::is_digest(&descriptor.digest) {
            let digest = shown(&descriptor.digest);
            return Err(RepositoryError::Digest(format!("{reference}: invalid digest {digest:?}")));
        }
        if layer == Layer::Chart
            && let Some(digest) = Digest::parse(&descriptor.digest)?
            && let Some(bytes) = cache::find_chart(&self.settings.content_cache, digest)
        {
            return Ok(bytes);
        }
        let path = format!("{}/blobs/{}", reference.repository, descriptor.digest);
        let url = self.url(reference, &path)?;
        let Kind { what, limit } = layer.kind();
        if descriptor.size > limit {
            let address = shown(url.as_str());
            return Err(RepositoryError::TooLarge { what, address, limit });
        }
        let (at, reply) = self.ask(&url, reference, None).await?;
        if reply.status() != StatusCode::OK {
            return Err(failure(&Method::GET, &at, reply).await);
        }
        let bytes = http::read(reply, &at, Kind { what, limit: descriptor.size }).await?;
        let actual = format!("{:?}", Digest::of(&bytes));
        if bytes.len() as u64 != descriptor.size || actual != descriptor.digest {
            return Err(mismatch(reference, &descriptor.digest, &actual));
        }
        Ok(bytes)
    }

    /// Asks the registry; if it wants to know who asks, tells it.
    async fn ask(
        &self,
        url: &Url,
        reference: &Reference,
        accept: Option<&str>,
    ) -> Result<(Url, Response), RepositoryError> {
        let scope = format!("repository:{}:pull", reference.repository);
        let key = (reference.host().to_owned(), scope.clone());
        let opened = self.opened().get(&key).cloned();
        let request = |authorization| {
            let method = Method::GET;
            self.http.send(Request { method, url: url.clone(), accept, authorization })
        };
        let (at, reply) = request(opened).await?;
        if reply.status() != StatusCode::UNAUTHORIZED || !auth::is_own(url, &at) {
            return Ok((at, reply));
        }
        let Some(challenge) = Challenge::of(&reply) else { return Ok((at, reply)) };
        let opens = self.answer(challenge, url, reference, &scope).await?;
        self.opened().insert(key, opens.clone());
        request(Some(opens)).await
    }

    /// What the registry wants to see.
    async fn answer(
        &self,
        challenge: Challenge,
        url: &Url,
        reference: &Reference,
        scope: &str,
    ) -> Result<HeaderValue, RepositoryError> {
        let credential = match self.http.access().basic() {
            Some((user, password)) => {
                Credential::Basic { user: user.to_owned(), password: password.to_owned() }
            }
            None => credentials::find(&self.settings, reference.host()).await?,
        };
        match (challenge, &credential) {
            (Challenge::Basic, Credential::Basic { user, password }) => {
                Ok(http::basic(user, password))
            }
            (Challenge::Basic, _) => {
                let place = shown(url.as_str());
                let text = format!("GET {place:?}: basic credential not found");
                Err(RepositoryError::Registry(text))
            }
            (Challenge::Bearer { realm, service, scope: asked }, credential) => {
                let scope = if asked.is_empty() { scope } else { &asked };
                auth::token(&self.http, url, (&realm, &service, scope), credential).await
            }
        }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<(String, String), HeaderValue>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn url(&self, reference: &Reference, path: &str) -> Result<Url, RepositoryError> {
        let scheme = if self.http.access().plain_http { "http" } else { "https" };
        crate::address::parse(&format!("{scheme}://{}/v2/{path}", reference.host()))
    }
}

/// Why a registry has no index: Helm asks it for one as for a chart without a version.
pub(crate) fn no_index(registry: &str) -> RepositoryError {
    let place = resolve(registry, "index.yaml");
    place.and_then(|place| Reference::parse(&place)).err().unwrap_or_else(no_version)
}

fn no_version() -> RepositoryError {
    let text = "failed to perform \"FetchReference\" on source: invalid reference";
    RepositoryError::Registry(text.into())
}

/// Of an address, Helm looks at host and path alone; a user in it is not sent.
fn without_extras(name: &str) -> &str {
    name.split(['?', '#']).next().unwrap_or_default()
}

/// The name that Helm gives a chart's file. Tags write `+` as `_`, and a version has no other `_`.
fn archive_name(reference: &Reference) -> String {
    let name = reference.repository.rsplit('/').next().unwrap_or_default();
    match reference.digest.as_str() {
        "" => format!("{name}-{}.tgz", reference.tag.replace('_', "+")),
        digest => format!("{name}@{}.tgz", digest.replace(':', "-")),
    }
}

fn mismatch(reference: &Reference, expected: &str, actual: &str) -> RepositoryError {
    RepositoryError::Digest(format!(
        "{reference}: mismatch digest: expected {}, got {actual}",
        shown(expected)
    ))
}

/// A version in full, as tags must have it.
fn strict(text: &str) -> Option<Version> {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    (numbers.split('.').count() == 3 && numbers.split('.').all(is_number))
        .then(|| Version::parse(text).ok())
        .flatten()
}

/// The tag for a version: the very one, or the latest that satisfies the constraint.
fn matching<'t>(tags: &'t [String], version: &str) -> Result<&'t str, RepositoryError> {
    if let Some(tag) = tags.iter().find(|tag| !version.is_empty() && *tag == version) {
        return Ok(tag);
    }
    let constraint = Constraint::parse(if version.is_empty() { "*" } else { version })?;
    let fits = |tag: &&String| Version::parse(tag).is_ok_and(|tag| constraint.check(&tag));
    tags.iter().find(fits).map(String::as_str).ok_or_else(|| {
        RepositoryError::Registry(format!(
            "could not locate a version matching provided version string {version}"
        ))
    })
}

/// The next page of a list: `Link: </v2/…>; rel="next"`. It must lie on the same server.
fn next_page(url: &Url, reply: &Response) -> Result<Option<Url>, RepositoryError> {
    let Some(link) = reply.headers().get(LINK).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    let Some((target, rest)) = link.trim().strip_prefix('<').and_then(|l| l.split_once('>')) else {
        return Ok(None);
    };
    if !rest.replace('"', "").contains("rel=next") {
        return Ok(None);
    }
    match url.join(target) {
        Ok(next) if same_server(url, &next) => Ok(Some(next)),
        _ => Err(RepositoryError::Registry(format!(
            "GET {:?}: the next page lies elsewhere",
            shown(url.as_str())
        ))),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reasons {
    errors: Vec<Reason>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reason {
    code: String,
    message: String,
}

/// What a registry says when it does not do what was asked.
async fn failure(method: &Method, url: &Url, reply: Response) -> RepositoryError {
    let status = reply.status().as_u16();
    let body = http::read(reply, url, REASON).await.unwrap_or_default();
    let reasons: Reasons = serde_json::from_slice(&body).unwrap_or_default();
    let readable = |reason: &Reason| {
        let code = reason.code.replace('_', " ").to_lowercase();
        match reason.message.as_str() {
            "" => code,
            message => format!("{code}: {message}"),
        }
    };
    let texts: Vec<String> = reasons.errors.iter().map(readable).collect();
    let text = match texts.as_slice() {
        [] => StatusCode::from_u16(status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .unwrap_or_default()
            .to_owned(),
        texts => texts.join("; "),
    };
    let text: String = text.chars().filter(|c| !c.is_control()).take(500).collect();
    let place = shown(url.as_str());
    RepositoryError::Registry(format!("{method} {place:?}: response status code {status}: {text}"))
}
