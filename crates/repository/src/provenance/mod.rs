//! Whether a packaged chart is what somebody signed: `--verify`.
//!
//! Beside an archive lies its provenance, `NAME.tgz.prov`: Chart.yaml and the archive's digest,
//! signed by a key of the user's keyring.

mod openpgp;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_yaml::Numbers;
use serde_json::Value;

use crate::cache::Digest;
use crate::error::go_reason;
use crate::{RepositoryError, files, index};

pub use openpgp::OpenPgpError;
use openpgp::{Keyring, Message};

/// A provenance is a Chart.yaml and some lines; more than 2 MiB is none.
pub(crate) const MAX_BYTES: u64 = 2 << 20;
/// The keys of thousands of people.
const MAX_KEYRING_BYTES: u64 = 64 << 20;

/// Why a chart does not count as signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProvenanceError {
    /// The chart is a folder.
    #[error("unpacked charts cannot be verified")]
    Folder,
    /// The chart's name does not end in `.tgz`.
    #[error("chart must be a tgz file")]
    NoArchive,
    /// There is no provenance beside the chart.
    #[error("could not load provenance file {0}: stat {0}: {1}")]
    NoProvenance(String, String),
    /// There is none at the chart's server.
    #[error("failed to fetch provenance {0:?}")]
    NotFetched(String),
    /// The keyring cannot be read.
    #[error("failed to load keyring: {0}")]
    Keyring(String),
    /// The provenance is not signed.
    #[error("signature block not found")]
    NotSigned,
    /// The signature does not count.
    #[error(transparent)]
    Signature(#[from] OpenPgpError),
    /// What is signed names no digests.
    #[error("message block must have at least two parts")]
    NoDigests,
    /// What is signed cannot be read.
    #[error("{0}")]
    Shape(String),
    /// What is signed is another file.
    #[error("provenance does not contain a SHA for a file named {0:?}")]
    OtherFile(String),
    /// The archive is not the one that was signed.
    #[error("sha256 sum does not match for {name}: {signed:?} != {actual:?}")]
    OtherDigest {
        /// The archive's name.
        name: String,
        /// The digest that was signed.
        signed: String,
        /// The digest of the archive.
        actual: String,
    },
}

/// Checks a chart on this machine by the provenance beside it.
pub(crate) fn check_file(path: &Path, keyring: &Path) -> Result<(), RepositoryError> {
    if path.is_dir() {
        return Err(ProvenanceError::Folder.into());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    check_name(&name)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".prov");
    let beside = PathBuf::from(beside);
    std::fs::metadata(&beside).map_err(|error| {
        let why = go_reason(&error);
        ProvenanceError::NoProvenance(beside.display().to_string(), why)
    })?;
    let keyring = load(keyring)?;
    let read = |path: &Path, limit| {
        files::read(path, limit).map_err(|error| RepositoryError::io("open", path, &error))
    };
    let archive = read(path, crate::cache::MAX_CHART_BYTES)?;
    Ok(verify(&keyring, &name, &archive, &read(&beside, MAX_BYTES)?)?)
}

/// Checks an archive that was fetched, by the provenance that was fetched with it.
pub(crate) fn check(
    name: &str,
    archive: &[u8],
    provenance: &[u8],
    keyring: &Path,
) -> Result<(), ProvenanceError> {
    check_name(name)?;
    verify(&load(keyring)?, name, archive, provenance)
}

/// Checks an archive by a provenance and a keyring that are at hand; `place` is what errors call the
/// keyring.
///
/// # Errors
/// Why the archive does not count as signed by a key of the keyring.
pub fn verify_signed(
    name: &str,
    archive: &[u8],
    provenance: &[u8],
    (keyring, place): (&[u8], &str),
) -> Result<(), ProvenanceError> {
    verify(&read_keyring(keyring, place)?, name, archive, provenance)
}

fn check_name(name: &str) -> Result<(), ProvenanceError> {
    let extension = Path::new(name).extension();
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("tgz")) {
        return Ok(());
    }
    Err(ProvenanceError::NoArchive)
}

fn load(keyring: &Path) -> Result<Keyring, ProvenanceError> {
    let place = keyring.display().to_string();
    let data = files::read(keyring, MAX_KEYRING_BYTES).map_err(|error| {
        // A folder opens, and is not read.
        let verb = if error.kind() == ErrorKind::IsADirectory { "read" } else { "open" };
        ProvenanceError::Keyring(format!("{verb} {place}: {}", go_reason(&error)))
    })?;
    read_keyring(&data, &place)
}

fn read_keyring(data: &[u8], place: &str) -> Result<Keyring, ProvenanceError> {
    openpgp::keyring(data, place).map_err(ProvenanceError::Keyring)
}

fn verify(
    keyring: &Keyring,
    name: &str,
    archive: &[u8],
    provenance: &[u8],
) -> Result<(), ProvenanceError> {
    let message = Message::find(provenance).ok_or(ProvenanceError::NotSigned)?;
    // A clock before 1970 is one by which nothing holds yet.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    keyring.check(&message, now)?;
    let actual = format!("{:?}", Digest::of(archive));
    let signed = sums(&message.text)?.remove(name);
    let signed = signed.ok_or_else(|| ProvenanceError::OtherFile(name.to_owned()))?;
    if signed == actual {
        return Ok(());
    }
    Err(ProvenanceError::OtherDigest { name: name.to_owned(), signed, actual })
}

/// The digests of files in what is signed: they stand after Chart.yaml, and what ends it.
fn sums(text: &[u8]) -> Result<BTreeMap<String, String>, ProvenanceError> {
    let text = String::from_utf8_lossy(text);
    let part = text.split("\n...\n").nth(1).ok_or(ProvenanceError::NoDigests)?;
    let sums: Value = catamaran_yaml::from_str(part, Numbers::Exact)
        .map_err(|error| ProvenanceError::Shape(error.to_string()))?;
    let wrong = |value: &Value, go_type| {
        let why = index::wrong(value, "SumCollection.files", go_type);
        ProvenanceError::Shape(format!("error unmarshaling JSON: while decoding JSON: {why}"))
    };
    match sums.get("files") {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(files)) => {
            let sum = |(name, sum): (&String, &Value)| match sum {
                Value::String(sum) => Ok((name.clone(), sum.clone())),
                other => Err(wrong(other, "string")),
            };
            files.iter().map(sum).collect()
        }
        Some(other) => Err(wrong(other, "map[string]string")),
    }
}
