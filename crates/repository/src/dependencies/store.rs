//! What was chosen, put into `charts/`; what is not needed any more goes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use catamaran_chart::{Chart, Dependency};
use catamaran_sprig::semver::{Constraint, Version};

use super::{Dependencies, check_name, fault, pack};
use crate::address::{is_oci, resolve, same};
use crate::http::Http;
use crate::oci::Registry;
use crate::origin::{Archive, Origin};
use crate::settings::is_file_name;
use crate::{Access, Entry, RepositoryError, files, provenance};

impl Dependencies<'_> {
    /// Fetches all into a folder beside `charts/`, and moves them only when all are there.
    pub(super) async fn store(
        &mut self,
        locked: &mut [Dependency],
        known: &[Entry],
    ) -> Result<(), RepositoryError> {
        let charts = self.folder.join("charts");
        make_folder(&charts)?;
        let beside = tempfile::Builder::new().prefix("tmpcharts-").tempdir_in(self.folder);
        let beside = beside.map_err(|error| RepositoryError::io("mkdir", self.folder, &error))?;
        // As people named the chart, since the name may be told.
        let new = self.folder.join(beside.path().file_name().unwrap_or_default());
        self.say(&format!("Saving {} charts", locked.len()));
        let mut done = BTreeSet::new();
        for dependency in locked.iter_mut() {
            let stored = self.fetch_into(dependency, known, &new, &mut done).await;
            if let Err(error) = stored {
                self.say(&format!("Save error occurred:  {error}"));
                return Err(error);
            }
        }
        self.swap(locked, &new, &charts)
    }

    async fn fetch_into(
        &mut self,
        dependency: &mut Dependency,
        known: &[Entry],
        folder: &Path,
        done: &mut BTreeSet<String>,
    ) -> Result<(), RepositoryError> {
        let Dependency { name, version, repository, .. } = dependency;
        if repository.is_empty() {
            self.say(&format!("Dependency {name} did not declare a repository. Assuming it exists in the charts directory"));
            check_name(name)?;
            let chart = Chart::load(&self.folder.join("charts").join(&*name))?;
            let found = &chart.metadata.version;
            if satisfies(name, version, found)? {
                return Ok(());
            }
            return fault(format!(
                "dependency {name} at version {found} does not satisfy the constraint {version}"
            ));
        }
        if repository.starts_with("file://") {
            let source = self.local(repository)?;
            let chart = Chart::load(&source)?;
            let found = chart.metadata.version;
            if !satisfies(name, version, &found)? {
                return fault(format!("can't get a valid version for dependency {name}"));
            }
            let (file, bytes) = pack::folder(&source)?;
            write(folder, &file, &bytes)?;
            *version = found;
            return Ok(());
        }
        if is_oci(repository) {
            let place = format!("{repository}/{name}:{version}");
            if self.is_done(&place, done, name, repository) {
                return Ok(());
            }
            let registry = Registry::new(self.finder.settings.clone(), self.finder.access.clone());
            let reference = format!("{repository}/{name}");
            let fetched = match registry.resolve(&reference, version).await {
                Ok(place) => {
                    let origin = Origin::Registry { registry, place };
                    self.fetch(&origin, &reference, folder).await
                }
                Err(error) => Err(error),
            };
            return fetched.map_err(|error| could_not_download(&reference, &error));
        }
        let found = self.place(name, version, repository, known).await;
        let (place, digest, http) = found
            .map_err(|error| RepositoryError::Dependency(format!("could not find : {error}")))?;
        if self.is_done(&place, done, name, repository) {
            return Ok(());
        }
        let shown = crate::address::shown(&place);
        let origin = if is_oci(&place) {
            let registry = Registry::new(self.finder.settings.clone(), Access::default());
            Origin::Registry { registry, place }
        } else {
            Origin::Server { http, place, owner: repository.clone(), digest }
        };
        let fetched = self.fetch(&origin, &shown, folder).await;
        fetched.map_err(|error| could_not_download(&shown, &error))
    }

    /// Fetches a chart into a folder; where charts are to be signed, what is signed of it too.
    async fn fetch(
        &mut self,
        origin: &Origin,
        shown: &str,
        folder: &Path,
    ) -> Result<(), RepositoryError> {
        let cache = &self.finder.settings.content_cache;
        let mut messages = Vec::new();
        let archive = origin.archive(cache, &mut messages).await;
        self.tell(&mut messages);
        let Archive { name, bytes } = &archive?;
        write(folder, name, bytes)?;
        let Some(keyring) = &self.finder.keyring else { return Ok(()) };
        let signed = origin.provenance(cache, bytes, &mut messages).await;
        self.tell(&mut messages);
        let signed = match signed {
            Ok(signed) => signed,
            Err(_) if self.must_be_signed => return Err(origin.without_provenance()),
            Err(error) => {
                self.say(&format!("WARNING: Verification not found for {shown}: {error}"));
                return Ok(());
            }
        };
        write(folder, &format!("{name}.prov"), &signed)?;
        Ok(provenance::check(name, bytes, &signed, keyring)?)
    }

    /// Whether the same was fetched already; says which it is.
    fn is_done(
        &mut self,
        place: &str,
        done: &mut BTreeSet<String>,
        name: &str,
        repository: &str,
    ) -> bool {
        let is_new = done.insert(place.to_owned());
        let what = if is_new { "Downloading" } else { "Already downloaded" };
        self.say(&format!("{what} {name} from repo {}", crate::address::shown(repository)));
        !is_new
    }

    /// The address of a chart in a repository, its digest, and who may fetch it.
    async fn place(
        &self,
        name: &str,
        version: &str,
        repository: &str,
        known: &[Entry],
    ) -> Result<(String, String, Http), RepositoryError> {
        let Some(entry) = known.iter().find(|entry| same(&entry.url, repository)) else {
            let entry = Entry::unknown(String::new(), repository.to_owned());
            let http = Http::new(Access::default());
            let mut unheard = Vec::new();
            let place = self.finder.find_at(&http, &entry, name, version, &mut unheard).await;
            let place = place.map_err(|error| {
                RepositoryError::Dependency(format!(
                    "chart {name} not found in {repository}: {error}"
                ))
            })?;
            return Ok((place, String::new(), http));
        };
        let index = self.finder.cached_index(entry)?;
        let Some(versions) = index.versions(name) else { return fault("entry not found") };
        let wanted = Version::parse(version);
        let is_it = |found: &str| match (&wanted, Version::parse(found)) {
            (Ok(wanted), Ok(found)) => wanted.compare(&found).is_eq(),
            (Err(_), _) => version == found,
            _ => false,
        };
        let mut versions = versions.iter().filter(|chart| !chart.urls.is_empty());
        let Some(chart) = versions.find(|chart| version.is_empty() || is_it(&chart.version)) else {
            return fault("no matching version");
        };
        let url = chart.urls.first().map(String::as_str).unwrap_or_default();
        Ok((resolve(repository, url)?, chart.digest.clone(), Http::new(entry.access())))
    }

    /// Moves the new charts to their place, then removes those that nothing needs.
    fn swap(
        &mut self,
        locked: &[Dependency],
        from: &Path,
        to: &Path,
    ) -> Result<(), RepositoryError> {
        let old = names_in(to)?;
        let new = names_in(from)?;
        for name in &new {
            let (source, target) = (from.join(name), to.join(name));
            if let Err(error) = Chart::load(&source) {
                let _ = write!(
                    self.out,
                    "Could not verify {} for moving: {error} (Skipping)",
                    source.display()
                );
                continue;
            }
            if let Err(error) = fs::rename(&source, &target) {
                let _ = write!(
                    self.out,
                    "Unable to move {} to charts dir {error} (Skipping)",
                    source.display()
                );
            }
        }
        self.say("Deleting outdated charts");
        let is_local = |name: &str| {
            locked
                .iter()
                .any(|dependency| dependency.repository.is_empty() && dependency.name == name)
        };
        for name in old.difference(&new) {
            let path = to.join(name);
            match Chart::load(&path) {
                Ok(chart) if is_local(chart.name()) => {}
                Ok(_) => {
                    if let Err(error) = fs::remove_file(&path) {
                        let _ = write!(
                            self.out,
                            "Could not delete {}: {error} (Skipping)",
                            path.display()
                        );
                    }
                }
                Err(error) => {
                    let place = path.display();
                    self.say(&format!("Could not verify {place} for deletion: {error} (Skipping)"));
                }
            }
        }
        Ok(())
    }
}

fn could_not_download(place: &str, error: &RepositoryError) -> RepositoryError {
    RepositoryError::Dependency(format!("could not download {place}: {error}"))
}

/// Whether a version is one of those that are wanted.
fn satisfies(name: &str, wanted: &str, found: &str) -> Result<bool, RepositoryError> {
    let constraint = Constraint::parse(wanted).map_err(|error| {
        RepositoryError::Dependency(format!(
            "dependency {name} has an invalid version/constraint format: {error}"
        ))
    })?;
    Ok(constraint.check(&Version::parse(found)?))
}

/// `charts/` must be a folder of the chart itself: what a link names would be written to.
fn make_folder(path: &Path) -> Result<(), RepositoryError> {
    let place = path.display().to_string();
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(found) if found.is_symlink() => fault(format!("{place:?} is a symbolic link")),
        Ok(_) => fault(format!("{place:?} is not a directory")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(path).map_err(|error| RepositoryError::io("mkdir", path, &error))
        }
        Err(error) => {
            let why = crate::error::go_reason(&error);
            fault(format!("unable to retrieve file info for '{place}': {why}"))
        }
    }
}

/// The names of all that is no folder.
fn names_in(folder: &Path) -> Result<BTreeSet<String>, RepositoryError> {
    let fault = |error: io::Error| RepositoryError::io("open", folder, &error);
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if entry.file_type().map_err(fault)?.is_dir() {
            continue;
        }
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), RepositoryError> {
    if !is_file_name(name) {
        return fault(format!("{name:?} is not the name of a chart's file"));
    }
    let path = folder.join(name);
    files::write(&path, bytes).map_err(|error| RepositoryError::io("open", &path, &error))
}
