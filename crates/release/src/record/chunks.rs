//! Records that no single Secret can hold, cut into pieces.
//!
//! The pieces are Secrets of their own, named by revision and content, and written first. Then the
//! index, which names them in their order: it has the name that Helm's Secret would have, so that
//! creating it is the claim of the revision for all who write, whatever the size of their records.
//! Its type and label `owner` are not Helm's: the helm CLI would take it for a release without
//! objects, "uninstall" nothing, and drop the record. So it does not see such a release at all.
//!
//! helm-operator-plugins cuts in its own way: its index (type [`PLUGIN_INDEX`]) holds the first piece
//! itself and names the others. Those are read, never written.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_cluster::apply::metadata_str;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::codec::CodecError;
use super::model::Release;

/// The value of the label `owner` of an index and its pieces.
pub const OWNER: &str = "catamaran";
/// The type of an index.
pub const INDEX: &str = "catamaran/release-index.v1";
/// The type of a piece.
pub const CHUNK: &str = "catamaran/release-chunk.v1";
/// The type of an index of helm-operator-plugins.
pub const PLUGIN_INDEX: &str = "operatorframework.io/index.v1";
/// The type of a piece of helm-operator-plugins.
pub const PLUGIN_CHUNK: &str = "operatorframework.io/chunk.v1";

/// What a Secret may hold (`MaxSecretSize` of the API server).
const LARGEST_SECRET: usize = 1024 * 1024;

/// A new record larger than this is cut: the rest is for what its later states say more, since a
/// Secret's type cannot be changed.
const LARGEST_WHOLE: usize = LARGEST_SECRET - 64 * 1024;

/// Size of a piece, in bytes: far enough below the limit of a request, where it is base64.
const PIECE: usize = 768 * 1024;

/// As many pieces has a record at most.
pub const MOST_PIECES: usize = 128;

/// Whether a new record with this payload has to be cut.
pub fn is_needed(packed: &[u8]) -> bool {
    packed.len().div_ceil(3) * 4 > LARGEST_WHOLE
}

/// The names of the pieces, in order, with their content.
pub fn cut<'a>(release: &Release, packed: &'a [u8]) -> Vec<(String, &'a [u8])> {
    let named = |piece: &'a [u8]| {
        let half = Sha256::digest(piece)
            .iter()
            .take(16)
            .fold(0, |hash: u128, byte| hash << 8 | u128::from(*byte));
        (format!("{}-{half:032x}", release.secret_name()), piece)
    };
    packed.chunks(PIECE).map(named).collect()
}

/// The Secret of a piece.
pub fn secret(release: &Release, name: &str, piece: &[u8]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": CHUNK, "immutable": true,
        "metadata": {
            "name": name, "namespace": release.namespace,
            "labels": {
                "name": release.name, "owner": OWNER, "status": "chunk", "version": release.version.to_string(),
            },
        },
        "data": { "chunk": STANDARD.encode(piece) },
    })
}

/// The data of an index.
pub fn index(pieces: &[(String, &[u8])]) -> Value {
    let names: Vec<&str> = pieces.iter().map(|(name, _)| name.as_str()).collect();
    json!({ "chunks": STANDARD.encode(json!(names).to_string()) })
}

/// The names of the Secrets that an index needs besides itself. Empty for Helm's own records.
///
/// # Errors
///
/// [`CodecError::Missing`] if it names none in a way that can be read.
pub fn names(index: &Value) -> Result<Vec<String>, CodecError> {
    let key = match index.get("type").and_then(Value::as_str) {
        Some(INDEX) => "chunks",
        Some(PLUGIN_INDEX) => "extraChunks",
        _ => return Ok(Vec::new()),
    };
    let names: Vec<String> =
        serde_json::from_slice(&data(index, key)?).map_err(|_| CodecError::Missing)?;
    match names.len() {
        0..=MOST_PIECES => Ok(names),
        _ => Err(CodecError::Pieces { limit: MOST_PIECES }),
    }
}

/// Whether a Secret is a piece of a record, so that it may be deleted with it.
pub fn is_piece_of(release: &Release, piece: &Value) -> bool {
    let named = metadata_str(piece, "name").strip_prefix(&release.secret_name());
    piece.get("type").and_then(Value::as_str) == Some(CHUNK)
        && named.is_some_and(|rest| rest.starts_with('-'))
}

/// Puts the payload of a record together from its index and the pieces that were read with it.
pub fn join(index: &Value, pieces: &[&Value]) -> Result<Vec<u8>, CodecError> {
    let mut packed = match index.get("type").and_then(Value::as_str) {
        Some(PLUGIN_INDEX) => data(index, "chunk")?,
        _ => Vec::new(),
    };
    for name in names(index)? {
        let piece = pieces.iter().find(|piece| metadata_str(piece, "name") == name);
        match piece.map(|piece| data(piece, "chunk")) {
            Some(Ok(bytes)) => packed.extend(bytes),
            _ => return Err(CodecError::Chunk { name }),
        }
    }
    Ok(packed)
}

fn data(secret: &Value, key: &str) -> Result<Vec<u8>, CodecError> {
    let text = secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
    STANDARD.decode(text.ok_or(CodecError::Missing)?).map_err(|_| CodecError::Base64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::codec::{self, Bounds};

    fn unpacked(packed: Result<Vec<u8>, CodecError>) -> Result<Release, CodecError> {
        codec::unpack(&packed?, Bounds::TRUSTED)
    }

    /// Noise, as gzip makes nothing of repetition.
    fn large() -> Release {
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + u8::try_from(state >> 58).expect("six bits"))
        });
        Release {
            name: "rel".into(),
            namespace: "ns".into(),
            version: 7,
            manifest: noise.take(3_000_000).collect(),
            ..Release::default()
        }
    }

    #[test]
    fn what_is_cut_can_be_joined_from_any_heap_of_pieces() {
        let release = large();
        let packed = codec::pack(&release).expect("packed");
        assert!(is_needed(&packed));
        let cut = cut(&release, &packed);
        assert!(cut.len() > 1 && cut.iter().all(|(_, piece)| piece.len() <= PIECE));
        let mut secrets: Vec<Value> =
            cut.iter().map(|(name, piece)| secret(&release, name, piece)).collect();
        secrets.reverse();
        let index = json!({ "type": INDEX, "data": index(&cut) });
        let pieces: Vec<&Value> = secrets.iter().collect();
        assert_eq!(unpacked(join(&index, &pieces)), Ok(release));
        let (name, _) = cut.into_iter().next_back().expect("a piece");
        assert_eq!(join(&index, &pieces[1..]), Err(CodecError::Chunk { name }));
    }

    #[test]
    fn pieces_are_named_by_revision_and_content() {
        let (release, other) = (large(), Release { version: 8, ..large() });
        let names = |release: &Release, bytes: &[u8]| cut(release, bytes)[0].0.clone();
        assert_eq!(names(&release, b"a"), names(&release, b"a"));
        assert_ne!(names(&release, b"a"), names(&release, b"b"));
        assert_ne!(names(&release, b"a"), names(&other, b"a"));
        assert!(names(&release, b"a").starts_with("sh.helm.release.v1.rel.v7-"));
    }

    #[test]
    fn the_pieces_of_helm_operator_plugins_are_read() {
        let release = large();
        let packed = codec::pack(&release).expect("packed");
        let (first, rest) = packed.split_at(1000);
        let index = json!({ "type": PLUGIN_INDEX, "data": {
            "chunk": STANDARD.encode(first), "extraChunks": STANDARD.encode(r#"["k-abc"]"#),
        }});
        let rest =
            json!({ "metadata": { "name": "k-abc" }, "data": { "chunk": STANDARD.encode(rest) } });
        assert_eq!(unpacked(join(&index, &[&rest])), Ok(release));
        let broken =
            json!({ "type": PLUGIN_INDEX, "data": { "chunk": "", "extraChunks": "bm8=" } });
        assert_eq!(join(&broken, &[]), Err(CodecError::Missing));
    }
}
