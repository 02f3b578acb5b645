//! Where the user's Helm keeps its files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The places of Helm's configuration and caches; the same ones that `helm env` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// repositories.yaml.
    pub repository_config: PathBuf,
    /// The folder of cached indexes.
    pub repository_cache: PathBuf,
    /// The folder of cached charts, by digest.
    pub content_cache: PathBuf,
    /// Credentials of registries, as `helm registry login` writes them.
    pub registry_config: PathBuf,
    /// Credentials of registries, as docker writes them; read if Helm's file has none.
    pub docker_config: Option<PathBuf>,
    /// The folders of plugins.
    pub plugins: Vec<PathBuf>,
    /// The folder of GnuPG, which keeps the keys of others.
    pub gnupg: PathBuf,
}

impl Settings {
    /// The places that the environment of this process names.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The same for variables from anywhere. `HELM_REPOSITORY_CONFIG` and its kin name a place
    /// itself; `HELM_CONFIG_HOME`, `HELM_CACHE_HOME`, `HELM_DATA_HOME` the folder of several; the
    /// XDG variables the folder around `helm/`; at last all is below `HOME`.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = set("HOME").map_or_else(PathBuf::new, PathBuf::from);
        let folder = |helm: &str, xdg: &str, below_home: &str| {
            set(helm).map_or_else(
                || set(xdg).map_or_else(|| home.join(below_home), PathBuf::from).join("helm"),
                PathBuf::from,
            )
        };
        let config = folder("HELM_CONFIG_HOME", "XDG_CONFIG_HOME", ".config");
        let cache = folder("HELM_CACHE_HOME", "XDG_CACHE_HOME", ".cache");
        let data = folder("HELM_DATA_HOME", "XDG_DATA_HOME", ".local/share");
        // As in Helm, one of these counts even if it is empty.
        let place = |name: &str, default: PathBuf| variable(name).map_or(default, PathBuf::from);
        let docker = set("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| (!home.as_os_str().is_empty()).then(|| home.join(".docker")));
        let plugins = place("HELM_PLUGINS", data.join("plugins"));
        Self {
            repository_config: place("HELM_REPOSITORY_CONFIG", config.join("repositories.yaml")),
            repository_cache: place("HELM_REPOSITORY_CACHE", cache.join("repository")),
            content_cache: place("HELM_CONTENT_CACHE", cache.join("content")),
            registry_config: place("HELM_REGISTRY_CONFIG", config.join("registry/config.json")),
            docker_config: docker.map(|folder| folder.join("config.json")),
            plugins: std::env::split_paths(&plugins).collect(),
            gnupg: place("GNUPGHOME", home.join(".gnupg")),
        }
    }

    /// The user's keyring, if none is named: GnuPG's older file, or else the one of GnuPG 2.1.
    pub fn keyring(&self) -> PathBuf {
        let is_missing = |path: &PathBuf| {
            std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        let (old, new) = (self.gnupg.join("pubring.gpg"), self.gnupg.join("pubring.kbx"));
        if is_missing(&old) && !is_missing(&new) { new } else { old }
    }

    /// The cached index of a repository. A name that would leave the folder is none.
    pub(crate) fn cached_index(&self, repository: &str) -> Option<PathBuf> {
        is_file_name(repository)
            .then(|| self.repository_cache.join(format!("{repository}-index.yaml")))
    }
}

/// Whether a text names a file in a folder, and nothing outside of it.
pub(crate) fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.contains(['/', '\\', '\0'])
        && Path::new(name).file_name().is_some_and(|file| file == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        Settings::from_variables(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn places_are_those_of_helm() {
        let home = settings(&[("HOME", "/h")]);
        assert_eq!(home.repository_config, Path::new("/h/.config/helm/repositories.yaml"));
        assert_eq!(home.repository_cache, Path::new("/h/.cache/helm/repository"));
        assert_eq!(home.content_cache, Path::new("/h/.cache/helm/content"));
        assert_eq!(home.registry_config, Path::new("/h/.config/helm/registry/config.json"));
        assert_eq!(home.docker_config.as_deref(), Some(Path::new("/h/.docker/config.json")));
        assert_eq!(home.plugins, [Path::new("/h/.local/share/helm/plugins")]);

        let xdg = settings(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x"), ("HELM_CACHE_HOME", "/c")]);
        assert_eq!(xdg.repository_config, Path::new("/x/helm/repositories.yaml"));
        assert_eq!(xdg.repository_cache, Path::new("/c/repository"));

        let own = settings(&[("HELM_REPOSITORY_CONFIG", "/r.yaml"), ("HELM_PLUGINS", "/a:/b")]);
        assert_eq!(own.repository_config, Path::new("/r.yaml"));
        assert_eq!(own.plugins, [Path::new("/a"), Path::new("/b")]);
    }

    #[test]
    fn names_of_repositories_stay_in_the_cache() {
        let settings = settings(&[("HELM_REPOSITORY_CACHE", "/c")]);
        assert_eq!(settings.cached_index("a").unwrap(), Path::new("/c/a-index.yaml"));
        for bad in ["", ".", "..", "../a", "a/b", "a\\b", "/etc/passwd", "a\0"] {
            assert_eq!(settings.cached_index(bad), None, "{bad:?}");
        }
    }
}
