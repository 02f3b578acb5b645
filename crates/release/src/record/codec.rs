//! A record's payload: gzip of JSON. In Helm's Secret it is base64 text (which the API encodes as
//! base64 once more); in [`super::chunks`] it is cut into pieces as it is.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::model::Release;

/// A record that unpacks to more than this is refused: a Secret of 1 MiB can hold a gigabyte of
/// zeroes. The largest real records are a few MiB.
const LARGEST_UNPACKED: u64 = 64 * 1024 * 1024;

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
    #[error("it unpacks to more than {} MiB", LARGEST_UNPACKED / 1024 / 1024)]
    Bomb,
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
        return Err(CodecError::Bomb);
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
    unpack(&STANDARD.decode(payload.trim_ascii()).map_err(|_| CodecError::Base64)?)
}

/// Reads what [`pack`] made, or, as very old Helm wrote it, plain JSON.
pub fn unpack(packed: &[u8]) -> Result<Release, CodecError> {
    if !packed.starts_with(&GZIP) {
        return parse(packed);
    }
    let mut json = Vec::new();
    let mut unpack = GzDecoder::new(packed).take(LARGEST_UNPACKED + 1);
    unpack.read_to_end(&mut json).map_err(|_| CodecError::Gzip)?;
    if json.len() as u64 > LARGEST_UNPACKED {
        return Err(CodecError::Bomb);
    }
    parse(&json)
}

fn parse(json: &[u8]) -> Result<Release, CodecError> {
    serde_json::from_slice(json).map_err(|error| json_error(&error))
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
            (bomb, CodecError::Bomb),
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
        assert_eq!(pack(&release), Err(CodecError::Bomb));
    }
}
