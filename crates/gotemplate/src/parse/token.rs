//! Tokens of a template.

use std::borrow::Cow;

use crate::fmt::{chars, quote_bytes};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What is wrong is the scanner's [`fault`](super::lex::Lexer::fault).
    Error,
    Eof,
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Pipe,
    LeftParen,
    RightParen,
    Assign,
    Declare,
    Char,
    Identifier,
    Field,
    Variable,
    Bool,
    Number,
    Complex,
    CharConstant,
    String,
    RawString,
    Dot,
    Nil,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

impl Kind {
    /// The keyword of that spelling.
    pub fn keyword(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"nil" => Self::Nil,
            b"block" => Self::Block,
            b"break" => Self::Break,
            b"continue" => Self::Continue,
            b"define" => Self::Define,
            b"else" => Self::Else,
            b"end" => Self::End,
            b"if" => Self::If,
            b"range" => Self::Range,
            b"template" => Self::Template,
            b"with" => Self::With,
            _ => return None,
        })
    }

    fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Dot
                | Self::Nil
                | Self::Block
                | Self::Break
                | Self::Continue
                | Self::Define
                | Self::Else
                | Self::End
                | Self::If
                | Self::Range
                | Self::Template
                | Self::With
        )
    }

    /// Whether an operand can start with it.
    pub fn starts_operand(self) -> bool {
        matches!(
            self,
            Self::Bool
                | Self::CharConstant
                | Self::Complex
                | Self::Dot
                | Self::Field
                | Self::Identifier
                | Self::Number
                | Self::Nil
                | Self::RawString
                | Self::String
                | Self::Variable
                | Self::LeftParen
        )
    }
}

/// A token, with its place in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub kind: Kind,
    /// Byte offset.
    pub pos: usize,
    /// From 1.
    pub line: usize,
    pub text: &'t [u8],
}

impl<'t> Token<'t> {
    /// The text of a name; names are always UTF-8.
    pub fn name(&self) -> &'t str {
        std::str::from_utf8(self.text).unwrap_or_default()
    }

    /// The text, U+FFFD for what is no UTF-8.
    pub fn lossy(&self) -> Cow<'t, str> {
        String::from_utf8_lossy(self.text)
    }

    /// As Go's error texts show a token that is no error itself.
    pub fn describe(&self) -> String {
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            kind if kind.is_keyword() => format!("<{}>", self.lossy()),
            _ if self.text.len() > 10 => {
                let end = chars(self.text).take(10).map(|c| c.map_or(1, char::len_utf8)).sum();
                let start = self.text.get(..end).unwrap_or(self.text);
                format!("{}...", quote_bytes(start, b'"', false))
            }
            _ => quote_bytes(self.text, b'"', false),
        }
    }
}
