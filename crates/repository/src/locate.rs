//! From what was typed to a chart on disk.

use std::path::{Path, PathBuf};

use catamaran_chart::{Profile, gopath};
use catamaran_sprig::check_url;

use crate::address::{self, is_http, is_oci, same_server};
use crate::cache::{self, Digest};
use crate::http::{Http, Kind};
use crate::oci::Registry;
use crate::{
    Access, ChartVersion, Entry, Index, RepositoryError, Settings, files, index, repositories,
};

/// What archives of charts are asked for as.
const ARCHIVE: &str = "application/gzip,application/octet-stream";
const CHART: Kind = Kind { what: "chart", limit: cache::MAX_CHART_BYTES };
const INDEX: Kind = Kind { what: "index", limit: index::MAX_BYTES };
/// Values and the like: 20 MiB.
const FILE: Kind = Kind { what: "file", limit: 20 << 20 };

/// Finds charts as the user's Helm does.
#[derive(Clone, Debug)]
pub struct Finder {
    /// Where Helm's files are.
    pub settings: Settings,
    /// What the command line says of the server.
    pub access: Access,
    /// Which Helm to follow.
    pub profile: Profile,
}

/// A chart that is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// A path, `repository/chart`, an address of an archive, `oci://…`; with a repository, the
    /// chart's name in it.
    pub name: &'a str,
    /// A version or a constraint; empty for the latest that is no pre-release.
    pub version: &'a str,
    /// The address of a repository; empty for none.
    pub repository: &'a str,
}

/// A chart on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The folder or the archive, absolute.
    pub path: PathBuf,
    /// What Helm would say on standard error.
    pub messages: Vec<String>,
}

/// An archive of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    pub bytes: Vec<u8>,
    /// The name of the file at its server.
    pub name: String,
}

impl Finder {
    /// Finds a chart, and fetches it if it is not on this machine.
    ///
    /// # Errors
    ///
    /// See [`RepositoryError`].
    pub async fn locate(&self, wanted: Wanted<'_>) -> Result<Located, RepositoryError> {
        if let Some(located) = self.here(wanted)? {
            return Ok(located);
        }
        let (name, version) = (wanted.name.trim(), wanted.version.trim());
        let mut messages = Vec::new();
        let archive = if wanted.repository.is_empty() {
            self.archive(name, version, &self.access, &mut messages).await?
        } else {
            let repository = Entry::unknown(String::new(), wanted.repository.to_owned());
            let http = Http::new(self.access.clone());
            let place = self.find_at(&http, &repository, name, version, &mut messages).await?;
            let access = self.access_to(wanted.repository, &place);
            self.archive(&place, version, &access, &mut messages).await?
        };
        let path = cache::put(&self.settings.content_cache, &archive.bytes)?;
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Located { path, messages })
    }

    /// Finds a chart on this machine, without waiting for anything; `None` if it has to be fetched.
    ///
    /// # Errors
    ///
    /// See [`RepositoryError`].
    pub fn here(&self, wanted: Wanted<'_>) -> Result<Option<Located>, RepositoryError> {
        Http::new(self.access.clone()).check()?;
        if !wanted.repository.is_empty() && self.profile != Profile::Helm318 {
            return Ok(None);
        }
        let name = wanted.name.trim();
        let path = Path::new(name);
        if path.exists() {
            let path = std::path::absolute(path)
                .map_err(|error| RepositoryError::io("stat", path, &error))?;
            let path = path.to_str().map(gopath::clean).map_or(path.clone(), PathBuf::from);
            return Ok(Some(Located { path, messages: Vec::new() }));
        }
        if path.is_absolute() || name.starts_with('.') {
            return Err(RepositoryError::NoPath(name.to_owned()));
        }
        Ok(None)
    }

    /// Fetches a file of values, or any other that is named by an `http(s)://` or `oci://` address;
    /// `None` for what is a path.
    ///
    /// # Errors
    ///
    /// See [`RepositoryError`].
    pub async fn file(&self, place: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        if is_oci(place) {
            let registry = Registry::new(self.settings.clone(), Access::default());
            let mut messages = Vec::new();
            return Ok(Some(registry.pull(place, &mut messages).await?.bytes));
        }
        if !is_http(place) {
            return Ok(None);
        }
        // As in Helm, what the flags say is for the chart alone.
        let http = Http::new(Access::default());
        http.get(place, place, None, FILE).await.map(Some)
    }

    /// Credentials go from a repository to a chart on the same server only.
    fn access_to(&self, repository: &str, place: &str) -> Access {
        let same = match (address::parse(repository), address::parse(place)) {
            (Ok(a), Ok(b)) => same_server(&a, &b),
            _ => false,
        };
        if same || self.access.pass_credentials {
            self.access.clone()
        } else {
            self.access.anonymous()
        }
    }

    /// The address of a chart in a repository that is named by its address.
    pub(crate) async fn find_at(
        &self,
        http: &Http,
        repository: &Entry,
        name: &str,
        version: &str,
        messages: &mut Vec<String>,
    ) -> Result<String, RepositoryError> {
        check_url(&repository.url)
            .map_err(|_| RepositoryError::Address(address::shown(&repository.url)))?;
        let index = self.fetch_index(http, repository).await.map(|(index, _)| index);
        let index = index.map_err(|source| match source {
            RepositoryError::RepositoryScheme(_) => source,
            source => RepositoryError::NotARepository {
                address: address::shown(&repository.url),
                source: Box::new(source),
            },
        })?;
        messages.extend(index.warnings.iter().cloned());
        let chart = match version {
            "" => format!("chart {name:?}"),
            version => format!("chart {name:?} version {version:?}"),
        };
        let found = index.get(name, version).map_err(|_| RepositoryError::NoChartAt {
            chart: chart.clone(),
            repository: address::shown(&repository.url),
        })?;
        if found.is_other && self.profile == Profile::Helm43 {
            messages.push(other_version(name, version, found.chart));
        }
        let url = found.chart.urls.first().ok_or(RepositoryError::NoDownload(chart))?;
        address::resolve(&repository.url, url)
    }

    /// Fetches the index of a repository; with it, the bytes as they are.
    pub(crate) async fn fetch_index(
        &self,
        http: &Http,
        repository: &Entry,
    ) -> Result<(Index, Vec<u8>), RepositoryError> {
        let base = &repository.url;
        if !is_http(base) {
            let scheme = address::scheme(base).unwrap_or_default();
            return Err(RepositoryError::RepositoryScheme(scheme));
        }
        let place = address::resolve(base, "index.yaml")?;
        let bytes = http.get(&place, base, None, INDEX).await?;
        let index = Index::parse(&bytes, &address::shown(base))?;
        Ok((index, bytes))
    }

    /// Reads the cached index of a repository that the user added.
    pub(crate) fn cached_index(&self, repository: &Entry) -> Result<Index, RepositoryError> {
        let (path, bytes) = self.cached_index_bytes(repository)?;
        Self::parse_cached(&path, &bytes)
    }

    fn parse_cached(path: &Path, bytes: &[u8]) -> Result<Index, RepositoryError> {
        let place = path.display().to_string();
        Index::parse(bytes, &place).map_err(|source| RepositoryError::BadIndex { place, source })
    }

    fn cached_index_bytes(&self, entry: &Entry) -> Result<(PathBuf, Vec<u8>), RepositoryError> {
        let path = self
            .settings
            .cached_index(&entry.name)
            .ok_or_else(|| RepositoryError::NoRepository(entry.name.clone()))?;
        let bytes = files::read(&path, index::MAX_BYTES)
            .map_err(|error| RepositoryError::io("open", &path, &error))?;
        Ok((path, bytes))
    }

    /// Fetches a chart that is no path, or takes it from the cache.
    pub(crate) async fn archive(
        &self,
        reference: &str,
        version: &str,
        access: &Access,
        messages: &mut Vec<String>,
    ) -> Result<Archive, RepositoryError> {
        if is_oci(reference) && reference.len() > "oci://".len() {
            let registry = Registry::new(self.settings.clone(), access.clone());
            let place = registry.resolve(reference, version).await?;
            return registry.pull(&place, messages).await;
        }
        let known = repositories(&self.settings.repository_config)?;
        if let Some(url) = full_address(reference) {
            let owner = self.owner_of(reference, &known)?;
            let scheme = url.scheme();
            if !matches!(scheme, "http" | "https") {
                return Err(RepositoryError::Scheme(scheme.to_owned()));
            }
            let (base, access) = match owner {
                Some(owner) => (owner.url.as_str(), access.overlaid(&owner.access())),
                None => (reference, access.clone()),
            };
            return self.download(&Http::new(access), reference, base, "", messages).await;
        }
        let (entry, chart) = named(reference, &known)?;
        let index = self
            .cached_index(entry)
            .map_err(|error| RepositoryError::NoCachedIndex(Box::new(error)))?;
        messages.extend(index.warnings.iter().cloned());
        let found = index.get(chart, version).map_err(|source| RepositoryError::NoChart {
            chart: chart.to_owned(),
            version: version.to_owned(),
            repository: entry.name.clone(),
            source,
        })?;
        if found.is_other && self.profile == Profile::Helm43 {
            messages.push(other_version(chart, version, found.chart));
        }
        let ChartVersion { urls, digest, .. } = found.chart;
        let none = || RepositoryError::NoDownload(format!("chart {reference:?}"));
        let place = address::resolve(&entry.url, urls.first().ok_or_else(none)?)?;
        if is_oci(&place) {
            let registry = Registry::new(self.settings.clone(), access.anonymous());
            return registry.pull(&place, messages).await;
        }
        let http = Http::new(access.overlaid(&entry.access()));
        self.download(&http, &place, &entry.url, digest, messages).await
    }

    /// Fetches an archive, unless the cache has one with the digest.
    pub(crate) async fn download(
        &self,
        http: &Http,
        place: &str,
        owner: &str,
        digest: &str,
        messages: &mut Vec<String>,
    ) -> Result<Archive, RepositoryError> {
        let name = file_name(place);
        let claimed = Digest::parse(digest)?;
        if let Some((_, bytes)) =
            claimed.and_then(|digest| cache::find(&self.settings.content_cache, digest))
        {
            return Ok(Archive { bytes, name });
        }
        if !is_http(place) {
            return Err(RepositoryError::Scheme(address::scheme(place).unwrap_or_default()));
        }
        let bytes = http.get(place, owner, Some(ARCHIVE), CHART).await?;
        let actual = Digest::of(&bytes);
        if let Some(claimed) = claimed.filter(|claimed| *claimed != actual) {
            messages.push(format!(
                "level=WARN msg=\"the chart is not the one that its repository's index tells of\" chart={} digest={actual} index={claimed}",
                address::shown(place)
            ));
        }
        Ok(Archive { bytes, name })
    }

    /// The repository among the user's whose index has this address: its credentials are for it.
    fn owner_of<'e>(
        &self,
        place: &str,
        known: &'e [Entry],
    ) -> Result<Option<&'e Entry>, RepositoryError> {
        let file = place.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
        for entry in known {
            let missing = |error| RepositoryError::NoCachedIndex(Box::new(error));
            let (path, bytes) = self.cached_index_bytes(entry).map_err(missing)?;
            // Reading all indexes takes seconds; most hold nothing of the kind.
            if !contains(&bytes, file.as_bytes()) {
                continue;
            }
            if Self::parse_cached(&path, &bytes).map_err(missing)?.has_address(place) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    let Some(&first) = part.first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(part) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

/// An address with host and path, as Helm tells one from `repository/chart`.
fn full_address(reference: &str) -> Option<url::Url> {
    address::scheme(reference)?;
    let (_, rest) = reference.split_once("://")?;
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if host.is_empty() || !path.starts_with('/') {
        return None;
    }
    url::Url::parse(reference).ok()
}

/// `repository/chart`, by the user's repositories.
fn named<'e, 'r>(
    reference: &'r str,
    known: &'e [Entry],
) -> Result<(&'e Entry, &'r str), RepositoryError> {
    let not_one =
        || RepositoryError::NotAReference(address::shown(reference.trim_end_matches('/')));
    let path = match address::scheme(reference) {
        // An address without host, or without path: what is left is a path for Helm.
        Some(_) => {
            let rest = reference.split_once("://").map_or("", |(_, rest)| rest);
            rest.find('/').and_then(|at| rest.get(at..)).ok_or_else(not_one)?
        }
        None => reference,
    };
    let (name, chart) = path.split_once('/').ok_or_else(not_one)?;
    let entry = known.iter().find(|entry| entry.name == name && !name.is_empty());
    let entry = entry.ok_or_else(|| RepositoryError::NoRepository(name.to_owned()))?;
    if entry.url.is_empty() {
        return Err(RepositoryError::NoAddress(name.to_owned()));
    }
    Ok((entry, chart))
}

/// The last part of an address's path.
fn file_name(place: &str) -> String {
    let path = place.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}

fn other_version(name: &str, version: &str, chart: &ChartVersion) -> String {
    format!(
        "level=WARN msg=\"unable to find exact version requested; falling back to closest available version\" chart={name} requested={version} selected={}",
        chart.version
    )
}
