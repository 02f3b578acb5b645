//! Tokens of a template.

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
            b"true" | b"false" => Self::Bool,
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

/// A token, with its place in the source. Small, as it goes from hand to hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Whether there is white space before it, inside an action.
    pub spaced: bool,
    /// Byte offsets.
    pub start: u32,
    pub end: u32,
}

/// A place in a text, or a number of things in it: the room for code ends long before the numbers do.
pub(crate) fn index(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl Token {
    /// Its bytes in the source.
    pub fn text(self, source: &[u8]) -> &[u8] {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// As Go's error texts show a token that is no error itself.
    pub fn describe(self, source: &[u8]) -> String {
        let text = self.text(source);
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            kind if kind.is_keyword() => format!("<{}>", String::from_utf8_lossy(text)),
            _ if text.len() > 10 => {
                let end = chars(text).take(10).map(|c| c.map_or(1, char::len_utf8)).sum();
                let start = text.get(..end).unwrap_or(text);
                format!("{}...", quote_bytes(start, b'"', false))
            }
            _ => quote_bytes(text, b'"', false),
        }
    }
}
