//! A record's payload: gzip of JSON. In Helm's Secret it is base64 text (which the API encodes as
//! base64 once more); in [`super::chunks`] it is cut into pieces as it is.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::model::{LARGEST_REVISION, Release};

/// A record that unpacks to more than this is refused: a Secret of 1 MiB can hold a gigabyte of
/// zeroes. The largest real records are a few MiB.
const LARGEST_UNPACKED: u64 = 64 * 1024 * 1024;

/// How much a record may unpack to.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    bytes: u64,
    /// Values, keys included: each takes far more memory than it has letters.
    nodes: usize,
}

impl Bounds {
    /// Of a record whose writer is known.
    pub const TRUSTED: Self = Self { bytes: LARGEST_UNPACKED, nodes: usize::MAX };
    /// Of any other. An operator reads several at once, in little memory.
    pub const CLAIMED: Self = Self { bytes: 8 * 1024 * 1024, nodes: 100_000 };
    /// Of all others of a release together, in bytes.
    const ALL_CLAIMED: u64 = 12 * 1024 * 1024;

    /// The bounds of a record after others of this size.
    pub(super) fn after(self, others: u64) -> Self {
        let bytes = self.bytes.min(Self::ALL_CLAIMED.saturating_sub(others));
        Self { bytes, ..self }
    }
}

/// The first bytes of every gzip stream.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Why a payload cannot be read or written. Never quotes the payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The Secret has no key `release`.
    #[error("it has no data.release")]
    Missing,
    /// It is not base64.
    #[error("it is not base64")]
    Base64,
    /// It is not gzip.
    #[error("it is not gzip")]
    Gzip,
    /// It unpacks to more than any release needs.
    #[error("it unpacks to more than {} KiB", limit / 1024)]
    Bomb {
        /// The most bytes that are read.
        limit: u64,
    },
    /// It has more values than any release needs.
    #[error("it has more than {limit} values")]
    Nodes {
        /// The most values that are read.
        limit: usize,
    },
    /// It is a record of something else than its Secret is named and placed for.
    #[error(
        "it is a record of another release, namespace or revision than its Secret is named for"
    )]
    Misplaced,
    /// Its revision is not one that a release has.
    #[error("its revision is none from 1 to {LARGEST_REVISION}")]
    Revision,
    /// Its index names more pieces than any record has.
    #[error("it names more than {limit} pieces")]
    Pieces {
        /// The most pieces that are read.
        limit: usize,
    },
    /// It is not the JSON of a release.
    #[error("it is not a release: line {line}, column {column}")]
    Json {
        /// Line of the JSON text, from 1.
        line: usize,
        /// Column of the JSON text, from 1.
        column: usize,
    },
    /// One of the Secrets that hold its pieces is missing, or holds something else.
    #[error("its piece {name:?} is missing or damaged")]
    Chunk {
        /// The name of that Secret.
        name: String,
    },
}

/// A release as gzip of JSON.
///
/// # Errors
///
/// [`CodecError::Bomb`] for what [`unpack`] would refuse.
pub fn pack(release: &Release) -> Result<Vec<u8>, CodecError> {
    // Writing to memory and serialising plain data cannot fail; the errors are there for the types.
    let json = serde_json::to_vec(release).map_err(|error| json_error(&error))?;
    if json.len() as u64 > LARGEST_UNPACKED {
        return Err(CodecError::Bomb { limit: LARGEST_UNPACKED });
    }
    // Helm packs as tightly as can be, which takes twice the time for a hundredth less.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&json).map_err(|_| CodecError::Gzip)?;
    gzip.finish().map_err(|_| CodecError::Gzip)
}

/// The value of the Secret's key `release` (before the API's own base64).
pub fn encode(packed: &[u8]) -> String {
    STANDARD.encode(packed)
}

/// Reads the value of the Secret's key `release` (after the API's own base64).
pub fn decode(payload: &[u8]) -> Result<Release, CodecError> {
    unpack(&packed(payload)?, Bounds::TRUSTED)
}

/// What [`pack`] made, out of the value of the Secret's key `release`.
pub fn packed(payload: &[u8]) -> Result<Vec<u8>, CodecError> {
    STANDARD.decode(payload.trim_ascii()).map_err(|_| CodecError::Base64)
}

/// Reads what [`pack`] made, or, as very old Helm wrote it, plain JSON.
pub fn unpack(packed: &[u8], bounds: Bounds) -> Result<Release, CodecError> {
    unpack_sized(packed, bounds).map(|(release, _)| release)
}

/// The same, with the size of its text in bytes.
pub(super) fn unpack_sized(packed: &[u8], bounds: Bounds) -> Result<(Release, u64), CodecError> {
    if !packed.starts_with(&GZIP) {
        return parse(packed, bounds);
    }
    let mut json = Vec::new();
    let mut unpack = GzDecoder::new(packed).take(bounds.bytes.saturating_add(1));
    unpack.read_to_end(&mut json).map_err(|_| CodecError::Gzip)?;
    parse(&json, bounds)
}

fn parse(json: &[u8], bounds: Bounds) -> Result<(Release, u64), CodecError> {
    if json.len() as u64 > bounds.bytes {
        return Err(CodecError::Bomb { limit: bounds.bytes });
    }
    if bounds.nodes < json.len() && nodes(json) > bounds.nodes {
        return Err(CodecError::Nodes { limit: bounds.nodes });
    }
    let release = serde_json::from_slice(json).map_err(|error| json_error(&error))?;
    Ok((release, json.len() as u64))
}

/// How many values a JSON text has at most, told by its punctuation.
fn nodes(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => count = count.saturating_add(1),
            _ => {}
        }
    }
    count
}

/// Serde's own messages quote what they found.
fn json_error(error: &serde_json::Error) -> CodecError {
    CodecError::Json { line: error.line(), column: error.column() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;
    use serde_json::{Value, json};

    fn plain(json: &Value) -> Vec<u8> {
        STANDARD.encode(json.to_string()).into_bytes()
    }

    #[test]
    fn a_record_of_an_unknown_writer_is_bounded_before_it_becomes_a_tree() {
        let limit = Bounds::CLAIMED.nodes;
        let with = |values: String| format!("{{\"name\":\"a\",\"x\":[{values}]}}").into_bytes();
        let many = with(vec!["0"; limit].join(","));
        assert_eq!(unpack(&many, Bounds::CLAIMED), Err(CodecError::Nodes { limit }));
        let nested = with(format!("{}{}", "[".repeat(limit), "]".repeat(limit)));
        assert_eq!(unpack(&nested, Bounds::CLAIMED), Err(CodecError::Nodes { limit }));
        // Depth alone, and punctuation within a string.
        let deep = with(format!("{}{}", "[".repeat(1000), "]".repeat(1000)));
        assert!(matches!(unpack(&deep, Bounds::CLAIMED), Err(CodecError::Json { .. })));
        let text = with(format!("\"\\\"{}\"", ",".repeat(limit)));
        assert!(unpack(&text, Bounds::CLAIMED).is_ok());
        let limit = Bounds::CLAIMED.bytes;
        let large = with(format!("\"{}\"", "a".repeat(usize::try_from(limit).expect("fits"))));
        assert_eq!(unpack(&large, Bounds::CLAIMED), Err(CodecError::Bomb { limit }));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let release = Release {
            name: "rel".into(),
            version: 3,
            manifest: "---\n# Source: a\nb: c\n".into(),
            chart: json!({"metadata": {"name": "demo"}}),
            ..Release::default()
        };
        let text = encode(&pack(&release).expect("packed"));
        assert_eq!(decode(text.as_bytes()), Ok(release));
    }

    #[test]
    fn a_record_of_helm_keeps_what_we_do_not_know() {
        let written = json!({
            "name": "rel", "version": 1, "namespace": "ns", "apply_method": "ssa", "newer": {"field": 1},
            "info": {
                "first_deployed": "2026-11-21T12:00:00.123456789+02:00", "last_deployed": "", "deleted": "",
                "status": "pending-install", "rollback_revision": 4,
            },
            "chart": {"metadata": {"name": "demo", "version": "1.2.3"}, "templates": [{"name": "a", "data": "eA=="}]},
            "config": null,
            "hooks": [{"name": "h", "events": ["test"], "last_run": {"started_at": "", "phase": ""}, "weight": -5}],
        });
        let release = decode(&plain(&written)).expect("decoded");
        assert_eq!(release.info.status, Status::PendingInstall);
        let first = release.info.first_deployed.0.expect("a time");
        assert_eq!(first.to_string(), "2026-11-21T10:00:00.123456789Z");
        assert_eq!(release.info.last_deployed.0, None);
        assert_eq!((release.chart_name(), release.chart_version()), ("demo", "1.2.3"));
        assert!(release.hooks.iter().all(|hook| hook.is_test() && hook.weight == -5));
        let again = serde_json::to_value(&release).expect("json");
        assert_eq!(again["newer"], written["newer"]);
        assert_eq!(again["info"]["rollback_revision"], 4);
        assert_eq!(again["info"].get("deleted"), None);
        assert_eq!(again["chart"], written["chart"]);
    }

    #[test]
    fn rubbish_is_told_apart_and_never_quoted() {
        let gzip = |bytes: &[u8]| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(bytes).expect("written");
            STANDARD.encode(packed.finish().expect("packed")).into_bytes()
        };
        let bomb = gzip(&vec![b' '; usize::try_from(LARGEST_UNPACKED).expect("fits") + 1]);
        let cut = gzip(b"{}").into_iter().take(16).collect::<Vec<u8>>();
        for (payload, expected) in [
            (b"canary!".to_vec(), CodecError::Base64),
            (cut, CodecError::Gzip),
            (bomb, CodecError::Bomb { limit: LARGEST_UNPACKED }),
            (plain(&json!("canary")), CodecError::Json { line: 1, column: 8 }),
            (plain(&json!({"version": "canary"})), CodecError::Json { line: 1, column: 19 }),
        ] {
            let error = decode(&payload).expect_err("an error");
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("canary"));
        }
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let bytes = usize::try_from(LARGEST_UNPACKED).expect("fits");
        let release = Release { manifest: " ".repeat(bytes), ..Release::default() };
        assert_eq!(pack(&release), Err(CodecError::Bomb { limit: LARGEST_UNPACKED }));
    }
}
