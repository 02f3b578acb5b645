//! The grammar of `--set` and its kin: `a.b[0]=c,d={e,f}`.
//!
//! ```
//! use catamaran_chart::values::strvals;
//! let mut values = serde_json::Map::new();
//! strvals::parse_into("image.tag=v1,ports[0]=80,args={-v,--fast}", &mut values)?;
//! assert_eq!(
//!     serde_json::Value::from(values),
//!     serde_json::json!({"image": {"tag": "v1"}, "ports": [80], "args": ["-v", "--fast"]})
//! );
//! # Ok::<(), strvals::StrvalsError>(())
//! ```
//!
//! Everything follows Helm, what it lets pass included: a line that ends inside a name or an index
//! (`a[`, `a.`) sets nothing and is no error.

mod error;
mod parser;
mod scalar;

use serde_json::{Map, Value};

use crate::Profile;
pub use error::{MAX_INDEX, MAX_NAMES, StrvalsError};
use parser::Parser;
pub(super) use scalar::floats;

/// Reads a line of `--set` over what is there: `true`, `null` and whole numbers get their types.
///
/// # Errors
/// The line is not understood. What came before the fault is set.
pub fn parse_into(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Typed).run(values)
}

/// Reads a line of `--set-string`: every value is a text.
///
/// # Errors
/// As [`parse_into`].
pub fn parse_into_text(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Text).run(values)
}

/// Reads a line of `--set-json`: every value is JSON; an empty one is null.
///
/// # Errors
/// As [`parse_into`].
pub fn parse_into_json(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Json).run(values)
}

/// Reads a line of `--set-literal`: everything after the first `=` is the value.
///
/// # Errors
/// As [`parse_into`].
pub fn parse_into_literal(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Literal).run(values)
}

/// Reads a line of `--set-file`: every value is a path, which `read` turns into a text.
///
/// # Errors
/// As [`parse_into`], and [`StrvalsError::File`] with what `read` says.
pub fn parse_into_files(
    line: &str,
    values: &mut Map<String, Value>,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Files(read)).run(values)
}

/// Reads a line as the Helm of a profile does.
pub(super) fn set_line<'a>(
    line: &'a str,
    mode: Mode<'a>,
    values: &mut Map<String, Value>,
    profile: Profile,
) -> Result<(), StrvalsError> {
    Parser::new(line, mode).with_strict_brackets(profile == Profile::Helm318).run(values)
}

/// What becomes of the text after `=`.
pub(super) enum Mode<'r> {
    Typed,
    Text,
    Json,
    Literal,
    Files(&'r mut dyn FnMut(&str) -> Result<String, String>),
}

#[cfg(test)]
mod tests;
