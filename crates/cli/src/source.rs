//! Where charts and files come from that do not lie on disk: flags, and what is done with them.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use catamaran_chart::Profile;
use catamaran_repository::{Access, Finder, RepositoryError, Settings, Wanted};
use clap::Args;

use crate::charts::flags::FilesArgs;
use crate::charts::slices;

/// Where a chart comes from.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Repositories")]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct SourceArgs {
    /// The address of a repository; CHART is then a chart's name in it
    #[arg(long, value_name = "URL")]
    pub repo: Option<String>,
    /// The chart's version, or a constraint: 1.2.3, ^1.2, ">=1 <3" [default: the latest]
    #[arg(long = "version", id = "chart_version", value_name = "VERSION")]
    pub version: Option<String>,
    /// Pre-releases too: as --version ">0.0.0-0"
    #[arg(long)]
    pub devel: bool,
    /// The user's name at the repository
    #[arg(long, value_name = "NAME")]
    pub username: Option<String>,
    /// The user's password at the repository
    #[arg(long, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// Send name and password to any server that the repository's index names
    #[arg(long)]
    pub pass_credentials: bool,
    /// The authorities that the server's certificate may come from
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The client's certificate
    #[arg(long, value_name = "FILE")]
    pub cert_file: Option<PathBuf>,
    /// The client's key
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    pub insecure_skip_tls_verify: bool,
    /// Speak to registries without TLS
    #[arg(long)]
    pub plain_http: bool,
    /// Take only an archive that a key of the keyring has signed: its provenance, NAME.tgz.prov,
    /// lies beside it
    #[arg(long)]
    pub verify: bool,
    /// The keys of those who sign charts, as packets, as armor or as GnuPG's keybox [default: GnuPG's
    /// own, pubring.gpg or pubring.kbx]
    #[arg(long, value_name = "FILE", value_parser = slices::path())]
    pub keyring: Option<PathBuf>,
}

impl SourceArgs {
    /// What finds charts, by the flags and the user's Helm.
    pub(crate) fn finder(&self, files: &FilesArgs, profile: Profile) -> Finder {
        let mut settings = Settings::from_env();
        for (place, flag) in [
            (&mut settings.registry_config, &files.registry_config),
            (&mut settings.repository_config, &files.repository_config),
            (&mut settings.repository_cache, &files.repository_cache),
            (&mut settings.content_cache, &files.content_cache),
        ] {
            if let Some(flag) = flag {
                place.clone_from(flag);
            }
        }
        let file =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let access = Access {
            username: self.username.clone().unwrap_or_default(),
            password: self.password.clone().unwrap_or_default(),
            pass_credentials: self.pass_credentials,
            cert_file: file(&self.cert_file),
            key_file: file(&self.key_file),
            ca_file: file(&self.ca_file),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            plain_http: self.plain_http,
        };
        let keyring = || self.keyring.clone().unwrap_or_else(|| settings.keyring());
        let keyring = self.verify.then(keyring);
        Finder { settings, access, profile, keyring }
    }

    /// The chart that was asked for, on disk: fetched, if it is not there.
    pub(crate) fn locate(&self, finder: &Finder, name: &str) -> Result<PathBuf> {
        let version = self.version.as_deref().unwrap_or_default();
        let version = if version.is_empty() && self.devel { ">0.0.0-0" } else { version };
        let repository = self.repo.as_deref().unwrap_or_default();
        let wanted = Wanted { name, version, repository };
        let said = |error: RepositoryError| anyhow!(error.text(finder.profile));
        if let Some(path) = finder.here(wanted).map_err(said)? {
            return Ok(path);
        }
        let mut messages = Vec::new();
        let path = wait(async { finder.locate(wanted, &mut messages).await.map_err(said) });
        for message in messages {
            eprintln!("{message}");
        }
        path
    }
}

/// Runs what is asynchronous in a command that is not.
pub(crate) fn wait<T, E: Into<anyhow::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work).map_err(Into::into)
}
