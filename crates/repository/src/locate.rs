//! From what was typed to a chart on disk.

use std::path::{Path, PathBuf};

use catamaran_chart::{Profile, gopath};
use catamaran_sprig::check_url;

use crate::address::{self, is_http, is_oci, same_server};
use crate::cache;
use crate::http::{Http, Kind};
use crate::oci::{Layer, Registry};
use crate::origin::Origin;
use crate::{
    Access, ChartVersion, Entry, Index, RepositoryError, Settings, files, index, provenance,
    repositories,
};

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
    /// The keys of those whose charts are taken, `--verify`; `None` takes anybody's.
    pub keyring: Option<PathBuf>,
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

impl Finder {
    /// Finds a chart, and fetches it if it is not on this machine: the folder or the archive, as
    /// an absolute path. `messages` is what Helm would say on standard error, errors or not.
    ///
    /// # Errors
    ///
    /// See [`RepositoryError`].
    pub async fn locate(
        &self,
        wanted: Wanted<'_>,
        messages: &mut Vec<String>,
    ) -> Result<PathBuf, RepositoryError> {
        if let Some(path) = self.here(wanted)? {
            return Ok(path);
        }
        let (name, version) = (wanted.name.trim(), wanted.version.trim());
        let origin = if wanted.repository.is_empty() {
            self.origin(name, version, self.access.clone(), messages).await?
        } else {
            let repository = Entry::unknown(String::new(), wanted.repository.to_owned());
            let http = Http::new(self.access.clone());
            let place = self.find_at(&http, &repository, name, version, messages).await?;
            let access = self.access_to(wanted.repository, &place);
            self.origin(&place, version, access, messages).await?
        };
        let cache = &self.settings.content_cache;
        let archive = match &self.keyring {
            Some(keyring) => origin.signed_archive(cache, keyring, messages).await?,
            None => origin.archive(cache, messages).await?,
        };
        let path = cache::put_chart(cache, &archive.bytes)?;
        Ok(std::path::absolute(&path).unwrap_or(path))
    }

    /// Finds a chart on this machine, without waiting for anything; `None` if it has to be fetched.
    ///
    /// # Errors
    ///
    /// See [`RepositoryError`].
    pub fn here(&self, wanted: Wanted<'_>) -> Result<Option<PathBuf>, RepositoryError> {
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
            if let Some(keyring) = &self.keyring {
                provenance::check_file(&path, keyring)?;
            }
            return Ok(Some(path));
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
            return Ok(Some(registry.pull(place, Layer::Chart, &mut messages).await?.bytes));
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
            return Err(match scheme.as_str() {
                "oci" => crate::oci::no_index(base),
                _ => RepositoryError::RepositoryScheme(scheme),
            });
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

    /// Where a chart lies that is no path.
    async fn origin(
        &self,
        reference: &str,
        version: &str,
        access: Access,
        messages: &mut Vec<String>,
    ) -> Result<Origin, RepositoryError> {
        if is_oci(reference) && reference.len() > "oci://".len() {
            let registry = Registry::new(self.settings.clone(), access);
            let place = registry.resolve(reference, version).await?;
            return Ok(Origin::Registry { registry, place });
        }
        let known = repositories(&self.settings.repository_config)?;
        if let Some(url) = full_address(reference) {
            let owner = self.owner_of(reference, &known)?;
            let scheme = url.scheme();
            if !matches!(scheme, "http" | "https") {
                return Err(RepositoryError::Scheme(scheme.to_owned()));
            }
            let (owner, access) = match owner {
                Some(owner) => (owner.url.as_str(), access.overlaid(&owner.access())),
                None => (reference, access),
            };
            return Ok(Origin::Server {
                http: Http::new(access),
                place: reference.to_owned(),
                owner: owner.to_owned(),
                digest: String::new(),
            });
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
            return Ok(Origin::Registry { registry, place });
        }
        Ok(Origin::Server {
            http: Http::new(access.overlaid(&entry.access())),
            place,
            owner: entry.url.clone(),
            digest: digest.clone(),
        })
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

fn other_version(name: &str, version: &str, chart: &ChartVersion) -> String {
    format!(
        "level=WARN msg=\"unable to find exact version requested; falling back to closest available version\" chart={name} requested={version} selected={}",
        chart.version
    )
}
