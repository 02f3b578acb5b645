//! The words of YAML.

use std::borrow::Cow;

use super::cursor::Mark;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    StreamStart,
    StreamEnd,
    Version { major: u8, minor: u8 },
    TagDirective { handle: &'a str, prefix: Cow<'a, str> },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag { handle: &'a str, suffix: Cow<'a, str> },
    Scalar { value: Cow<'a, str>, plain: bool },
}

/// A token and where it begins and ends.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub start: Mark,
    pub end: Mark,
}
