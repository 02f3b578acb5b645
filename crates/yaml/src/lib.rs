//! YAML exactly as Helm reads and prints it.
//!
//! Helm reads with `sigs.k8s.io/yaml`: YAML 1.1 by go-yaml 2, turned into JSON. Prints `toYaml` by
//! the same library, and `toYamlPretty` by go-yaml 3. This crate does the same, for any type that
//! serde knows, and knows nothing of templates or charts.
//!
//! ```
//! use catamaran_yaml::{Numbers, from_str, to_string};
//! let values: serde_json::Value = from_str("on: yes\nmode: 0755", Numbers::Exact)?;
//! assert_eq!(values, serde_json::json!({"true": true, "mode": 493}));
//! assert_eq!(to_string(&values)?, "mode: 493\n\"true\": true\n");
//! # Ok::<(), catamaran_yaml::Error>(())
//! ```
//!
//! What is read is bounded: nesting by [`MAX_DEPTH`], size by [`MAX_SIZE`], aliases by a budget. What differs from Go:
//! control characters are reported even where an earlier error would hide them, and documents
//! deeper than [`MAX_DEPTH`] are refused.

mod error;
mod number;
mod read;
mod resolve;
mod write;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::{Error, ErrorKind};
pub use number::{go_float, json_float};
pub use read::{
    Deserializer, Documents, MAX_DEPTH, Outlined, check_repeated_keys, documents, outline, text_of,
};

/// What one document may take, in bytes, together with what is usually made of it: some fifty thousand
/// mappings, or a quarter of a million texts. Helm has no such limit.
pub const MAX_SIZE: usize = 32 << 20;

/// What becomes of numbers that are read into a type which leaves that open (like
/// `serde_json::Value`). A type that asks for an integer or a string gets it either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Every number is a float, as in Helm's values: integers above 2^53 lose their last digits.
    Float64,
    /// Integers stay integers, and whole floats (`1.0`) become some, as in Kubernetes objects.
    Exact,
}

/// Which of Go's libraries is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    V2,
    V3,
}

/// Reads the first document of `text`. An empty text, or one of comments, is null.
///
/// # Errors
/// The text is not YAML, has no JSON form, or does not fit `T`; the [`Error`] prints Go's text.
pub fn from_str<T: DeserializeOwned>(text: &str, numbers: Numbers) -> Result<T, Error> {
    T::deserialize(Deserializer::new(text, numbers)?)
}

/// Prints a value as `toYaml` does, with the newline at the end (which `toYaml` cuts off).
///
/// Keys come in natural order (`a9` before `a10`), lists are not indented under their key, text
/// with spaces folds at 80 columns. Bytes print as base64.
///
/// # Errors
/// The value holds an infinite number, a control character that the reader would refuse, or it
/// nests deeper than [`MAX_DEPTH`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    write::print(value, Dialect::V2, usize::MAX)
}

/// As [`to_string`], into no more than about `room` bytes.
///
/// # Errors
/// Besides the others, one of kind [`ErrorKind::Size`].
pub fn to_string_within<T: Serialize + ?Sized>(value: &T, room: usize) -> Result<String, Error> {
    write::print(value, Dialect::V2, room)
}

/// Prints a value as `toYamlPretty` does, with the newline at the end: lists are indented under
/// their key, nothing is folded, floats are printed as Go prints them (`1e+06`).
///
/// # Errors
/// The value nests deeper than [`MAX_DEPTH`].
pub fn to_string_pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    write::print(value, Dialect::V3, usize::MAX)
}

/// As [`to_string_pretty`], into no more than about `room` bytes.
///
/// # Errors
/// Besides the others, one of kind [`ErrorKind::Size`].
pub fn to_string_pretty_within<T: Serialize + ?Sized>(
    value: &T,
    room: usize,
) -> Result<String, Error> {
    write::print(value, Dialect::V3, room)
}
