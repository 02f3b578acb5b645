//! Charts that were fetched, by their SHA-256: Helm 4's own cache.

use std::fmt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::{RepositoryError, files, provenance};

/// The largest archive of a chart: 100 MiB, as much as may come out of it.
pub const MAX_CHART_BYTES: u64 = catamaran_chart::load::MAX_CHART_BYTES;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads hexadecimal digits, whatever algorithm stands before a colon; `None` for an empty text.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, RepositoryError> {
        let digits = text.split_once(':').map_or(text, |(_, digits)| digits);
        if digits.is_empty() {
            return Ok(None);
        }
        let bad = |why: String| RepositoryError::Digest(format!("unable to decode digest: {why}"));
        if let Some(odd) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(bad(format!("encoding/hex: invalid byte: {odd:?}")));
        }
        if digits.len() != 64 {
            let length = digits.len() / 2;
            return Err(RepositoryError::Digest(format!("invalid digest length: {length}")));
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
        }
        Ok(Some(Self(bytes)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

/// The cached chart with this digest. What lies in its place and is something else is not it:
/// Helm itself trusts the digest that an index claims.
pub(crate) fn find_chart(root: &Path, digest: Digest) -> Option<Vec<u8>> {
    let bytes = files::read(&place(root, digest, "chart"), MAX_CHART_BYTES).ok()?;
    (Digest::of(&bytes) == digest).then_some(bytes)
}

/// Keeps a chart.
pub(crate) fn put_chart(root: &Path, bytes: &[u8]) -> Result<PathBuf, RepositoryError> {
    put(place(root, Digest::of(bytes), "chart"), bytes)
}

/// What is signed of the chart with this digest. Whether it is signed well is seen every time.
pub(crate) fn find_provenance(root: &Path, digest: Digest) -> Option<Vec<u8>> {
    files::read(&place(root, digest, "prov"), provenance::MAX_BYTES).ok()
}

/// Keeps what is signed of a chart.
pub(crate) fn put_provenance(
    root: &Path,
    digest: Digest,
    bytes: &[u8],
) -> Result<(), RepositoryError> {
    put(place(root, digest, "prov"), bytes).map(|_| ())
}

fn put(path: PathBuf, bytes: &[u8]) -> Result<PathBuf, RepositoryError> {
    files::write(&path, bytes).map_err(|error| RepositoryError::io("open", &path, &error))?;
    Ok(path)
}

fn place(root: &Path, digest: Digest, kind: &str) -> PathBuf {
    let name = digest.to_string();
    root.join(name.get(..2).unwrap_or_default()).join(format!("{name}.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_what_was_put() {
        let root = tempfile::tempdir().unwrap();
        let path = put_chart(root.path(), b"chart").unwrap();
        let digest = Digest::of(b"chart");
        assert_eq!(find_chart(root.path(), digest), Some(b"chart".to_vec()));
        std::fs::write(path, b"poison").unwrap();
        assert_eq!(find_chart(root.path(), digest), None);
    }

    #[test]
    fn digests_are_read_with_and_without_algorithm() {
        let hex = Digest::of(b"x").to_string();
        for text in [hex.clone(), format!("sha256:{hex}"), hex.to_uppercase()] {
            assert_eq!(Digest::parse(&text).unwrap(), Some(Digest::of(b"x")));
        }
        assert_eq!(Digest::parse("").unwrap(), None);
        for bad in ["zz", "sha256:ab", "é", &format!("{hex}00")] {
            assert!(Digest::parse(bad).is_err(), "{bad}");
        }
    }
}
