//! The dependencies of a chart on disk: `charts/` and Chart.lock, brought up to Chart.yaml.
//!
//! Helm's own rules and words; its output goes to a writer. Nothing is written outside of the
//! chart's folder and the caches, whatever names the chart and its repositories use.

mod list;
mod lock;
mod pack;
mod store;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use catamaran_chart::{Chart, Dependency};
use catamaran_sprig::semver::{Constraint, Version};

use crate::address::{is_oci, same};
use crate::cache::Digest;
use crate::http::Http;
use crate::oci::Registry;
use crate::settings::is_file_name;
use crate::{Entry, Finder, RepositoryError, files, repositories};

pub use list::list;

/// What stands before the names of cached indexes of repositories that the user did not add.
const UNMANAGED: &str = "helm-manager-";

/// The dependencies of one chart.
pub struct Dependencies<'a> {
    finder: &'a Finder,
    /// The chart's folder.
    folder: &'a Path,
    /// Whether cached indexes are taken as they are.
    skip_refresh: bool,
    /// Whether a chart without provenance is refused, where the finder has a keyring; else it is
    /// told.
    must_be_signed: bool,
    out: &'a mut (dyn Write + Send),
    /// Where the registry's words go.
    pulled: &'a mut (dyn Write + Send),
}

fn fault<T>(text: impl Into<String>) -> Result<T, RepositoryError> {
    Err(RepositoryError::Dependency(text.into()))
}

impl<'a> Dependencies<'a> {
    /// Those of the chart in `folder`. What Helm would print goes to `out`, what it would say of
    /// pulled charts to `pulled`.
    pub fn new(
        finder: &'a Finder,
        folder: &'a Path,
        skip_refresh: bool,
        out: &'a mut (dyn Write + Send),
        pulled: &'a mut (dyn Write + Send),
    ) -> Self {
        Self { finder, folder, skip_refresh, must_be_signed: true, out, pulled }
    }

    fn tell(&mut self, messages: &mut Vec<String>) {
        for message in messages.drain(..) {
            let _ = writeln!(self.pulled, "{message}");
        }
    }

    fn say(&mut self, text: &str) {
        // Whoever does not listen does not keep us from it.
        let _ = writeln!(self.out, "{text}");
    }

    fn load(&self) -> Result<Chart, RepositoryError> {
        let place = self.folder.display();
        match std::fs::metadata(self.folder) {
            Err(error) => {
                let why = crate::error::go_reason(&error);
                fault(format!("could not find {place}: stat {place}: {why}"))
            }
            Ok(found) if !found.is_dir() => fault("only unpacked charts can be updated"),
            Ok(_) => Ok(Chart::load(self.folder)?),
        }
    }

    /// Chooses versions by Chart.yaml, fetches them into `charts/` and writes the lock.
    ///
    /// # Errors
    ///
    /// See [`RepositoryError`]; `charts/` and the lock are as they were, unless the last step
    /// failed.
    pub async fn update(mut self) -> Result<(), RepositoryError> {
        let chart = self.load()?;
        let Some(mut wanted) = chart.metadata.dependencies.clone() else { return Ok(()) };
        let known = repositories(&self.finder.settings.repository_config)?;
        let mut names = self.names(&mut wanted, &known)?;
        self.fetch_unmanaged(&wanted, &mut names).await;
        self.refresh(&known).await?;
        let mut locked = self.choose(&wanted, &names).await?;
        self.store(&mut locked, &known).await?;
        let digest = lock::digest(&wanted, &locked)?;
        if chart.lock.is_some_and(|old| old.digest == digest) {
            return Ok(());
        }
        lock::write(self.folder, &chart.metadata.api_version, &digest, &locked)
    }

    /// Fetches into `charts/` what the lock says; without one, as [`Self::update`].
    ///
    /// # Errors
    ///
    /// As [`Self::update`]; also a lock that does not fit Chart.yaml. As in Helm, a chart without
    /// provenance is taken, and told.
    pub async fn build(mut self) -> Result<(), RepositoryError> {
        self.must_be_signed = false;
        let chart = self.load()?;
        let Some(lock) = chart.lock else { return self.update().await };
        let mut wanted = chart.metadata.dependencies.clone().unwrap_or_default();
        let is_v1 = chart.metadata.api_version == "v1";
        let old_digest = lock::digest_of_helm_2(&wanted)?;
        let known = repositories(&self.finder.settings.repository_config)?;
        self.names(&mut wanted, &known)?;
        if lock::digest(&wanted, &lock.dependencies)? != lock.digest {
            if !is_v1 {
                return fault(
                    "the lock file (Chart.lock) is out of sync with the dependencies file (Chart.yaml). Please update the dependencies with 'helm dependency update'",
                );
            }
            if old_digest != lock.digest {
                return fault(
                    "the lock file (requirements.lock) is out of sync with the dependencies file (requirements.yaml). Please update the dependencies",
                );
            }
        }
        let is_unknown = |place: &&str| {
            let place = place.trim_end_matches('/');
            let is_local = place.is_empty() || place.starts_with("file://") || is_oci(place);
            !is_local && !known.iter().any(|entry| same(&entry.url, place))
        };
        let places = lock.dependencies.iter().map(|dependency| dependency.repository.as_str());
        let missing: Vec<&str> = places.filter(is_unknown).collect();
        if !missing.is_empty() {
            return fault(format!(
                "no repository definition for {}. Please add the missing repos via 'helm repo add'",
                missing.join(", ")
            ));
        }
        self.refresh(&known).await?;
        let mut locked = lock.dependencies;
        self.store(&mut locked, &known).await
    }

    /// The user's repository for each dependency; aliases become addresses.
    fn names(
        &self,
        wanted: &mut [Dependency],
        known: &[Entry],
    ) -> Result<BTreeMap<String, String>, RepositoryError> {
        let mut names = BTreeMap::new();
        let mut missing = Vec::new();
        for dependency in wanted {
            let place = dependency.repository.clone();
            if place.is_empty() {
                continue;
            }
            if place.starts_with("file://") {
                self.local(&place)?;
            }
            if place.starts_with("file://") || is_oci(&place) {
                names.insert(dependency.name.clone(), place);
                continue;
            }
            let alias = place.strip_prefix('@').or_else(|| place.strip_prefix("alias:"));
            let is_it = |entry: &&Entry| alias == Some(&entry.name) || same(&entry.url, &place);
            match known.iter().find(is_it) {
                Some(entry) => {
                    if alias.is_some() {
                        dependency.repository.clone_from(&entry.url);
                    }
                    names.insert(dependency.name.clone(), entry.name.clone());
                }
                None if crate::address::scheme(&place).is_some() => {}
                None => missing.push(place),
            }
        }
        if missing.is_empty() {
            return Ok(names);
        }
        let is_name = |place: &String| {
            !place.contains("//") && !place.starts_with('@') && !place.starts_with("alias:")
        };
        let hint = if missing.iter().any(is_name) {
            "\nNote that repositories must be URLs or aliases. For example, to refer to the \"example\"\nrepository, use \"https://charts.example.com/\" or \"@example\" instead of\n\"example\". Don't forget to add the repo, too ('helm repo add')."
        } else {
            ""
        };
        fault(format!(
            "no repository definition for {}. Please add them via 'helm repo add'{hint}",
            missing.join(", ")
        ))
    }

    /// A folder that a dependency names by `file://`, seen from the chart.
    fn local(&self, place: &str) -> Result<PathBuf, RepositoryError> {
        let path = self.folder.join(place.strip_prefix("file://").unwrap_or(place));
        if path.exists() {
            return Ok(path);
        }
        fault(format!("directory {} not found", lexical(&path).display()))
    }

    /// Fetches the indexes of repositories that the user did not add.
    async fn fetch_unmanaged(
        &mut self,
        wanted: &[Dependency],
        names: &mut BTreeMap<String, String>,
    ) {
        let mut entries = Vec::new();
        for dependency in wanted {
            let place = &dependency.repository;
            if place.is_empty() || names.contains_key(&dependency.name) {
                continue;
            }
            let name = format!("{UNMANAGED}{}", Digest::of(place.as_bytes()));
            names.insert(dependency.name.clone(), name.clone());
            entries.push(Entry::unknown(name, place.clone()));
        }
        if !self.skip_refresh && !entries.is_empty() {
            self.say("Getting updates for unmanaged Helm repositories...");
            self.fetch_indexes(&entries).await;
        }
    }

    /// Fetches the indexes of all repositories that the user added.
    async fn refresh(&mut self, known: &[Entry]) -> Result<(), RepositoryError> {
        if self.skip_refresh || known.is_empty() {
            return Ok(());
        }
        self.say("Hang tight while we grab the latest from your chart repositories...");
        self.fetch_indexes(known).await;
        self.say("Update Complete. ⎈Happy Helming!⎈");
        Ok(())
    }

    async fn fetch_indexes(&mut self, entries: &[Entry]) {
        let mut unique: Vec<&Entry> = Vec::new();
        for entry in entries {
            let is_same =
                |other: &&Entry| other.url.trim_end_matches('/') == entry.url.trim_end_matches('/');
            match unique.iter().position(is_same) {
                Some(at) => unique.splice(at..=at, [entry]).for_each(drop),
                None => unique.push(entry),
            }
        }
        let finder = self.finder;
        let fetched = unique.iter().map(|entry| fetch_index(finder, entry));
        let fetched = futures::future::join_all(fetched).await;
        for (entry, fetched) in unique.iter().zip(fetched) {
            let shown = crate::address::shown(&entry.url);
            let is_unmanaged = entry.name.starts_with(UNMANAGED);
            let name = if is_unmanaged { &shown } else { &entry.name };
            self.say(&match fetched {
                Ok(()) => {
                    format!("...Successfully got an update from the {name:?} chart repository")
                }
                Err(error) => {
                    let place =
                        if is_unmanaged { String::new() } else { format!(" ({shown})") };
                    format!("...Unable to get an update from the {name:?} chart repository{place}:\n\t{error}")
                }
            });
        }
    }

    /// The versions that satisfy Chart.yaml best.
    async fn choose(
        &self,
        wanted: &[Dependency],
        names: &BTreeMap<String, String>,
    ) -> Result<Vec<Dependency>, RepositoryError> {
        let mut locked = Vec::new();
        let mut missing = Vec::new();
        for dependency in wanted {
            let Dependency { name, version, repository, .. } = dependency;
            let constraint = Constraint::parse(version).map_err(|error| {
                RepositoryError::Dependency(format!(
                    "dependency {name:?} has an invalid version/constraint format: {error}"
                ))
            })?;
            let found = if repository.is_empty() {
                check_name(name)?;
                self.local(&format!("charts/{name}"))?;
                Some(version.clone())
            } else if repository.starts_with("file://") {
                let chart = Chart::load(&self.local(repository)?)?;
                let fits = Version::parse(&chart.metadata.version)
                    .is_ok_and(|version| constraint.check(&version));
                fits.then_some(chart.metadata.version)
            } else if is_oci(repository) {
                self.tag(repository, name, version, &constraint).await?
            } else {
                self.entry(dependency, names, &constraint)?
            };
            match found {
                Some(version) => locked.push(Dependency {
                    name: name.clone(),
                    version,
                    repository: repository.clone(),
                    ..Dependency::default()
                }),
                None => missing
                    .push(format!("{name:?} (repository {repository:?}, version {version:?})")),
            }
        }
        if missing.is_empty() {
            return Ok(locked);
        }
        fault(format!(
            "can't get a valid version for {} subchart(s): {}. Make sure a matching chart version exists in the repo, or change the version constraint in Chart.yaml",
            missing.len(),
            missing.join(", ")
        ))
    }

    /// The latest version in a registry; one that is named is not asked for.
    async fn tag(
        &self,
        repository: &str,
        name: &str,
        version: &str,
        constraint: &Constraint,
    ) -> Result<Option<String>, RepositoryError> {
        if Version::parse(version).is_ok() {
            return Ok(Some(version.to_owned()));
        }
        let registry = Registry::new(self.finder.settings.clone(), self.finder.access.clone());
        let tags = registry.tags_of(&format!("{repository}/{name}")).await.map_err(|error| {
            RepositoryError::Dependency(format!(
                "could not retrieve list of tags for repository {repository}: {error}"
            ))
        })?;
        let fits = |tag: &String| Version::parse(tag).is_ok_and(|tag| constraint.check(&tag));
        // As in Helm: what no tag satisfies is found missing when it is fetched.
        Ok(Some(tags.into_iter().find(fits).unwrap_or_else(|| version.to_owned())))
    }

    /// The latest version in a repository.
    fn entry(
        &self,
        dependency: &Dependency,
        names: &BTreeMap<String, String>,
        constraint: &Constraint,
    ) -> Result<Option<String>, RepositoryError> {
        let Dependency { name, repository, .. } = dependency;
        let named = names.get(name).cloned().unwrap_or_default();
        let entry = Entry::unknown(named.clone(), repository.clone());
        let index = self.finder.cached_index(&entry).map_err(|error| {
            RepositoryError::Dependency(format!(
                "no cached repository for {named} found. (try 'helm repo update'): {error}"
            ))
        })?;
        let Some(versions) = index.versions(name) else {
            return fault(format!("{name} chart not found in repo {repository}"));
        };
        let fits = |version: &str| Version::parse(version).is_ok_and(|v| constraint.check(&v));
        let found = versions.iter().find(|chart| !chart.urls.is_empty() && fits(&chart.version));
        Ok(found.map(|chart| chart.version.clone()))
    }
}

async fn fetch_index(finder: &Finder, entry: &Entry) -> Result<(), RepositoryError> {
    let http = Http::new(entry.access());
    let (index, bytes) = finder.fetch_index(&http, entry).await?;
    let path = finder
        .settings
        .cached_index(&entry.name)
        .ok_or_else(|| RepositoryError::NoRepository(entry.name.clone()))?;
    let names: String = index.names().flat_map(|name| [name, "\n"]).collect();
    let list = path.with_file_name(format!("{}-charts.txt", entry.name));
    for (path, bytes) in [(&list, names.as_bytes()), (&path, &bytes)] {
        files::write(path, bytes).map_err(|error| RepositoryError::io("open", path, &error))?;
    }
    Ok(())
}

/// A dependency's name is the name of a file in `charts/`.
fn check_name(name: &str) -> Result<(), RepositoryError> {
    if is_file_name(name) {
        return Ok(());
    }
    fault(format!("dependency name {name:?} is not the name of a chart"))
}

/// Without `.` and `..`, as Go joins paths.
fn lexical(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if clean.file_name().is_some() => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}
