//! Errors with Go's text, and beside it the chain of places they came through.

use std::fmt;

/// What kind of trouble ended parsing or execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is no template.
    Parse,
    /// Execution failed: a wrong type, a missing entry, a function's error.
    Exec,
    /// The step budget is used up.
    Steps,
    /// The output budget is used up.
    Output,
    /// The memory budget is used up.
    Memory,
    /// The budget of keys is used up.
    Keys,
    /// Templates nest too deep.
    Depth,
    /// The deadline has passed.
    Deadline,
}

impl ErrorKind {
    /// Whether a budget ended the rendering: no function may catch such an error.
    pub fn is_budget(self) -> bool {
        !matches!(self, Self::Parse | Self::Exec)
    }
}

/// Where in a template something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name under which the text was parsed: a file's path, `gotpl` for `tpl`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes as Go counts it: from 0, of the node's own position. 0 in parse errors.
    pub column: usize,
    /// The template that was executing; empty in parse errors.
    pub template: String,
    /// The expression as Go prints it; empty in parse errors.
    pub expression: String,
    /// What went wrong here; what the places further in say is left out.
    pub message: String,
}

/// A parse or execution error. `Display` prints exactly Go's text, on one line.
#[derive(Clone, Debug)]
pub struct Error(Box<Repr>);

#[derive(Clone, Debug)]
struct Repr {
    kind: ErrorKind,
    text: String,
    tag: Option<&'static str>,
    places: Vec<Place>,
}

impl Error {
    pub(crate) fn parse(file: &str, line: usize, message: String) -> Self {
        let text = format!("template: {file}:{line}: {message}");
        let place = Place {
            file: file.to_owned(),
            line,
            column: 0,
            template: String::new(),
            expression: String::new(),
            message,
        };
        Self(Box::new(Repr { kind: ErrorKind::Parse, text, tag: None, places: vec![place] }))
    }

    /// A text that takes more than there is room for once it is compiled.
    pub(crate) fn too_large(file: &str, line: usize) -> Self {
        let message = "exceeded the memory limit of compiled templates".to_owned();
        let Self(mut repr) = Self::parse(file, line, message);
        repr.kind = ErrorKind::Memory;
        Self(repr)
    }

    pub(crate) fn plain(text: String) -> Self {
        Self(Box::new(Repr { kind: ErrorKind::Exec, text, tag: None, places: Vec::new() }))
    }

    /// A function's error that has no place of its own.
    pub(crate) fn unplaced(cause: FuncError) -> Self {
        let places = cause.inner.map(|inner| inner.0.places).unwrap_or_default();
        Self(Box::new(Repr { kind: cause.kind, text: cause.text, tag: cause.tag, places }))
    }

    /// An execution error at a place, with what a function had to say: Go's text of both.
    pub fn exec(mut place: Place, cause: FuncError) -> Self {
        let text = format!(
            "template: {}:{}:{}: executing {} at <{}>: {}",
            place.file,
            place.line,
            place.column,
            crate::fmt::quote_str(&place.template),
            place.expression,
            cause.text
        );
        // A text that does not parse is, to who has it executed, a failed execution.
        let kind = if cause.kind.is_budget() { cause.kind } else { ErrorKind::Exec };
        let mut places = Vec::new();
        place.message = cause.text;
        if let Some(inner) = cause.inner {
            // The inner text stands at its own place; each level repeating it would add up.
            if let Some(before) = place.message.strip_suffix(&inner.0.text) {
                place.message = String::from(before.trim_end_matches(": "));
            }
            places = inner.0.places;
        }
        places.insert(0, place);
        Self(Box::new(Repr { kind, text, tag: cause.tag, places }))
    }

    /// What kind of trouble it is; [`ErrorKind::Parse`] only if nothing was executed.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub(crate) fn text_len(&self) -> usize {
        self.0.text.len()
    }

    /// The places on the way, outermost first: a template, the template it included, and so on.
    pub fn places(&self) -> &[Place] {
        &self.0.places
    }

    /// The mark the function gave with [`FuncError::tagged`], if one did.
    pub fn tag(&self) -> Option<&'static str> {
        self.0.tag
    }

    /// The innermost message, without any place.
    pub fn root_message(&self) -> &str {
        self.0.places.last().map_or(self.0.text.as_str(), |place| &place.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Error {}

/// What a function returns when it fails: Go's error text, without `error calling X: `.
#[derive(Clone, Debug)]
pub struct FuncError {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
    pub(crate) tag: Option<&'static str>,
    pub(crate) inner: Option<Error>,
}

impl FuncError {
    /// An error with Go's text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Exec, text: text.into(), tag: None, inner: None }
    }

    /// An error that callers can recognize by [`Error::tag`]: `required`, `fail`, `lookup`.
    pub fn tagged(tag: &'static str, text: impl Into<String>) -> Self {
        Self { tag: Some(tag), ..Self::new(text) }
    }

    /// An error around that of an inner template: Go's `fmt.Errorf("{prefix}%w", inner)`.
    pub fn wrap(prefix: impl Into<String>, inner: Error) -> Self {
        let text = format!("{}{inner}", prefix.into());
        Self { kind: inner.kind(), text, tag: inner.tag(), inner: Some(inner) }
    }

    /// A used-up depth: what nests on the native stack is too deep.
    pub fn too_deep(text: impl Into<String>) -> Self {
        Self::budget(ErrorKind::Depth, text)
    }

    pub(crate) fn budget(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, ..Self::new(text) }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a budget is used up; such an error must be handed on.
    pub fn is_budget(&self) -> bool {
        self.kind.is_budget()
    }
}

impl fmt::Display for FuncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FuncError {}

impl From<Error> for FuncError {
    fn from(inner: Error) -> Self {
        Self::wrap("", inner)
    }
}

impl From<String> for FuncError {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for FuncError {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
