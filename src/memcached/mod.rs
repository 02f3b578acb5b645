//! What memcached holds, written to a file and read back: `memcached-operator backup` and `restore`,
//! which the CronJob and the Jobs of a MemcachedBackup run.
//!
//! A backup is as much as the protocol lets one read: the keys of one moment (`lru_crawler metadump`),
//! each with the value that it has when its turn comes. What is stored meanwhile may be missing.

mod client;
mod file;

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use client::{Client, Stored};
use file::{Reader, Writer};

/// What the program does besides being a manager.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write what a memcached server holds to a file
    Backup(Backup),
    /// Store what a backup holds in a memcached server
    Restore(Restore),
}

/// Where a server is.
#[derive(Args, Debug)]
struct Server {
    /// The server
    #[arg(long)]
    host: String,
    /// Its port
    #[arg(long, default_value_t = 11211)]
    port: u16,
    /// Where what was done is told as JSON, too; in a pod: /dev/termination-log
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Flags of `backup`.
#[derive(Args, Debug)]
pub struct Backup {
    #[command(flatten)]
    server: Server,
    /// The folder that the file is written to; it is called after the time
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// How many backups are kept in the folder; older ones are deleted
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
}

/// Flags of `restore`.
#[derive(Args, Debug)]
pub struct Restore {
    #[command(flatten)]
    server: Server,
    /// The folder with the backups
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// Which one: the name of a file, or latest
    #[arg(long, value_name = "NAME", default_value = "latest")]
    backup: String,
    /// Also where the server has a value already, which may be newer
    #[arg(long)]
    overwrite: bool,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The name of the backup.
    pub file: String,
    /// How many items were written, or stored.
    pub items: u64,
    /// How many bytes their values have.
    pub bytes: u64,
    /// How many were not: gone or expired meanwhile, too large, or there already.
    pub skipped: u64,
    /// What went wrong; empty if nothing did.
    pub error: String,
}

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection, or a file.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The server answers something else than the protocol has.
    #[error("memcached says {0:?}")]
    Protocol(String),
    /// A file is no backup, or not all of one.
    #[error("{0}")]
    File(String),
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl Command {
    /// Does it, and reports.
    ///
    /// # Errors
    /// What went wrong; it is in the report, too.
    pub fn run(&self) -> Result<Report, Error> {
        let (done, server) = match self {
            Self::Backup(backup) => (backup.run(), &backup.server),
            Self::Restore(restore) => (restore.run(), &restore.server),
        };
        if let Some(path) = &server.report {
            let report = match &done {
                Ok(report) => report.clone(),
                Err(error) => Report { error: error.to_string(), ..Report::default() },
            };
            let text = serde_json::to_string(&report).unwrap_or_default();
            fs::write(path, text).map_err(Error::io(path.display().to_string()))?;
        }
        done
    }
}

impl Backup {
    fn run(&self) -> Result<Report, Error> {
        let mut client = Client::connect(&self.server.host, self.server.port)?;
        let now = Timestamp::now();
        let mut writer = Writer::create(&self.to, now)?;
        let mut report = Report::default();
        for key in client.keys()? {
            match client.get(&key, now)? {
                Some(item) => {
                    report.items += 1;
                    report.bytes += item.value.len() as u64;
                    writer.item(&item)?;
                }
                None => report.skipped += 1,
            }
        }
        report.file = writer.finish(report.items)?;
        file::prune(&self.to, self.keep)?;
        Ok(report)
    }
}

impl Restore {
    fn run(&self) -> Result<Report, Error> {
        let path = file::find(&self.from, &self.backup)?;
        // Read to its end first: of a backup that is cut off nothing is stored.
        for item in Reader::open(&path)? {
            item?;
        }
        let mut client = Client::connect(&self.server.host, self.server.port)?;
        let now = Timestamp::now();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut report = Report { file, ..Report::default() };
        for item in Reader::open(&path)? {
            let item = item?;
            match client.set(&item, now, self.overwrite)? {
                Stored::Yes => {
                    report.items += 1;
                    report.bytes += item.value.len() as u64;
                }
                Stored::No => report.skipped += 1,
            }
        }
        Ok(report)
    }
}
