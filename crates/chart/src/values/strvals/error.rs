//! What may be wrong with a line, and how far a line may go.

/// The largest index of a list, as in Helm.
pub const MAX_INDEX: i64 = 65536;
/// How many names may be joined by dots, as in Helm.
pub const MAX_NAMES: usize = 30;
/// How deep lists and names may nest in all. Helm has no such limit; its stack grows.
pub(super) const MAX_DEPTH: usize = 200;
/// So many items may lists be filled up with. Helm has no such limit: a short line takes gigabytes.
pub(super) const MAX_FILLED: usize = 1_000_000;

/// Why a line is not understood; Helm's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrvalsError {
    /// The line ends where a `=` should be.
    #[error("key {0} has no value")]
    NoValue(String),
    /// A comma where a `=` should be.
    #[error("key {0} has no value (cannot end with ,)")]
    Comma(String),
    /// A dot that no name follows.
    #[error("key map {0} has no value")]
    EmptyMap(String),
    /// A value list that is never closed.
    #[error("list must terminate with '}}'")]
    OpenList,
    /// What stands in brackets is no number.
    #[error("error parsing index: strconv.Atoi: parsing {text}: {fault}")]
    Index {
        /// What stands there, quoted.
        text: String,
        /// `invalid syntax` or `value out of range`.
        fault: &'static str,
    },
    /// A bracket that is not closed, to Helm 3; Helm 4 then sets nothing.
    #[error("error parsing index: EOF")]
    OpenIndex,
    /// An index below zero.
    #[error("negative {0} index not allowed")]
    NegativeIndex(i64),
    /// An index beyond [`MAX_INDEX`].
    #[error("index of {0} is greater than maximum supported index of {MAX_INDEX}")]
    LargeIndex(i64),
    /// Text between `]` and what may follow it.
    #[error("unexpected data at end of array index: {0}")]
    AfterIndex(String),
    /// More than [`MAX_NAMES`] names.
    #[error(
        "value name nested level is greater than maximum supported nested level of {MAX_NAMES}"
    )]
    Names,
    /// Deeper than this implementation goes.
    #[error("the line nests more than {MAX_DEPTH} levels deep")]
    Depth,
    /// Larger than this implementation goes.
    #[error("the lists of the line have more than {MAX_FILLED} items in all")]
    Large,
    /// The name stands for a value of another type already.
    #[error("unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}")]
    Type {
        /// Go's type of what is there.
        found: &'static str,
        /// Go's type of what it would have to be.
        wanted: &'static str,
    },
    /// A value of `--set-json` is no JSON.
    #[error("invalid JSON value")]
    Json,
    /// A file of `--set-file` cannot be read.
    #[error("{0}")]
    File(String),
}
