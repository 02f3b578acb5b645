//! What came of a case, on either side.

use std::fmt::Write as _;

/// What a rendering ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The chart was rendered.
    Success {
        /// What `helm template` prints.
        stdout: Vec<u8>,
        /// The rendered NOTES.txt.
        notes: Vec<u8>,
    },
    /// What `helm template` prints behind `Error: `.
    Error(Vec<u8>),
    /// The process would have died, or did.
    Crash(String),
}

impl Outcome {
    /// Whether the chart was rendered.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success { .. })
    }

    /// The error's text, bytes that are no UTF-8 shown as such.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Error(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }

    /// For people.
    pub fn show(&self) -> String {
        match self {
            Self::Success { stdout, notes } => {
                let mut text = show(stdout);
                if !notes.is_empty() {
                    let _ = write!(text, "NOTES:\n{}", show(notes));
                }
                text
            }
            Self::Error(text) => format!("Error: {}\n", show(text)),
            Self::Crash(text) => format!("CRASH: {text}\n"),
        }
    }
}

fn show(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("(no UTF-8) {}", bytes.escape_ascii()),
    }
}
