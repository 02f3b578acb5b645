//! What can go wrong, told in the words of Go's YAML library, because Helm shows them to people.

use std::fmt;

/// Where in the conversion an error arose. It decides the words in front of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not YAML: a character, a token or its place.
    Syntax,
    /// The text is YAML, but cannot be decoded: an unknown anchor, a wrong tag, too many aliases.
    Decode,
    /// The document has no JSON form: an infinite number, a map as a key.
    Json,
    /// The document does not fit the Rust type that was asked for.
    Data,
    /// The value cannot be printed as YAML.
    Print,
    /// What is read or printed would take more memory than it may.
    Size,
}

/// An error of reading or printing YAML.
///
/// `Display` gives Go's text: the line in it is counted as the Go library counts (its parser
/// errors name the line before, and errors in the first line name none). [`Error::line`] and
/// [`Error::column`] are the true position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    kind: ErrorKind,
    line: usize,
    column: usize,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, line: 0, column: 0, message: message.into() }
    }

    pub(crate) fn at(mut self, line: usize, column: usize) -> Self {
        self.line = line;
        self.column = column;
        self
    }

    /// Of a document or a text that takes more than `room` bytes.
    pub(crate) fn too_large(room: usize) -> Self {
        Self::new(ErrorKind::Size, format!("exceeded the memory limit of {room} bytes"))
    }

    pub(crate) fn decode(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Decode, message)
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The line it points to, counted from 1; 0 if it is not about one place.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column it points to, in characters, counted from 1; 0 if it is not about one place.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The text without the words in front: for reading, what Go's `yaml.Unmarshal` returns.
    pub fn message(&self) -> String {
        match self.kind {
            ErrorKind::Syntax | ErrorKind::Decode | ErrorKind::Print | ErrorKind::Size => {
                format!("yaml: {}", self.message)
            }
            ErrorKind::Json | ErrorKind::Data => self.message.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Syntax | ErrorKind::Decode | ErrorKind::Size => {
                write!(f, "error converting YAML to JSON: yaml: {}", self.message)
            }
            ErrorKind::Json => write!(f, "error converting YAML to JSON: {}", self.message),
            ErrorKind::Data => {
                write!(f, "error unmarshaling JSON: while decoding JSON: {}", self.message)
            }
            ErrorKind::Print => f.write_str(&self.message),
        }
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(ErrorKind::Data, message.to_string())
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(ErrorKind::Print, message.to_string())
    }
}
