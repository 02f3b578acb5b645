//! A position in the text, and the classes of characters that YAML knows.
//!
//! Everything is looked at in bytes: all of YAML's indicators are ASCII, and the few line breaks
//! that are not (NEL, LS, PS) are recognized by their encoding.

use crate::error::{Error, ErrorKind};

/// A place in the text: all three counted from 0, `index` and `column` in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub index: usize,
    pub line: usize,
    pub column: usize,
}

/// Walks over the text. Reading past the end gives NUL bytes, which the text itself cannot hold.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    pub mark: Mark,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning, behind a byte order mark.
    ///
    /// # Errors
    /// The text holds a character that YAML forbids (most control characters).
    pub fn new(text: &'a str) -> Result<Self, Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.as_bytes().chunks(64).all(is_simple) {
            return Ok(Self { text, bytes: text.as_bytes(), pos: 0, mark: Mark::default() });
        }
        if let Some(at) = text.char_indices().find(|(_, c)| !is_allowed(*c)).map(|(i, _)| i) {
            let before = text.get(..at).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            return Err(Error::new(ErrorKind::Syntax, "control characters are not allowed")
                .at(line, column));
        }
        Ok(Self { text, bytes: text.as_bytes(), pos: 0, mark: Mark::default() })
    }

    pub fn pos(&self) -> usize {
        self.pos
    }

    /// The text between a former position and this one.
    pub fn since(&self, start: usize) -> &'a str {
        self.slice(start, self.pos)
    }

    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The byte `ahead` of here, NUL behind the end.
    pub fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    pub fn here(&self) -> u8 {
        self.peek(0)
    }

    pub fn at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    pub fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), b' ' | b'\t')
    }

    pub fn is_break(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            b'\n' | b'\r' => true,
            0xC2 => self.peek(ahead + 1) == 0x85,
            0xE2 => self.peek(ahead + 1) == 0x80 && matches!(self.peek(ahead + 2), 0xA8 | 0xA9),
            _ => false,
        }
    }

    pub fn is_break_or_end(&self, ahead: usize) -> bool {
        self.peek(ahead) == 0 || self.is_break(ahead)
    }

    pub fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// Whether `---` or `...` stands here at the start of a line, as a word of its own.
    pub fn at_document_indicator(&self) -> bool {
        self.mark.column == 0
            && (self.is_triple(b'-') || self.is_triple(b'.'))
            && self.is_blank_or_end(3)
    }

    fn is_triple(&self, byte: u8) -> bool {
        self.peek(0) == byte && self.peek(1) == byte && self.peek(2) == byte
    }

    /// Steps over one character that is not a line break.
    pub fn skip(&mut self) {
        if self.at_end() {
            return;
        }
        self.pos += width(self.here());
        self.mark.index += 1;
        self.mark.column += 1;
    }

    /// Steps over characters up to the next that is no ASCII or ends the line.
    pub fn skip_run(&mut self) {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r') || !byte.is_ascii();
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.pos += length;
        self.mark.index += length;
        self.mark.column += length;
    }

    /// Steps to a place further on in the same line.
    pub fn skip_to(&mut self, end: usize) {
        let count = self.slice(self.pos, end).chars().count();
        self.pos = end;
        self.mark.index += count;
        self.mark.column += count;
    }

    pub fn skip_many(&mut self, count: usize) {
        for _ in 0..count {
            self.skip();
        }
    }

    pub fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip();
        }
    }

    /// Steps to the end of the line if a comment starts here.
    pub fn skip_comment(&mut self) {
        if self.here() == b'#' {
            self.skip_run();
            while !self.is_break_or_end(0) {
                self.skip();
                self.skip_run();
            }
        }
    }

    /// Steps over one line break, if one is here.
    pub fn skip_line(&mut self) {
        if !self.is_break(0) {
            return;
        }
        if self.here() == b'\r' && self.peek(1) == b'\n' {
            self.pos += 2;
            self.mark.index += 2;
        } else {
            self.pos += width(self.here());
            self.mark.index += 1;
        }
        self.mark.column = 0;
        self.mark.line += 1;
    }

    /// Steps over one line break and appends what it means: `\n`, but LS and PS stay themselves.
    pub fn read_line(&mut self, into: &mut String) {
        if !self.is_break(0) {
            return;
        }
        if self.here() == 0xE2 {
            into.push(if self.peek(2) == 0xA8 { '\u{2028}' } else { '\u{2029}' });
        } else {
            into.push('\n');
        }
        self.skip_line();
    }

    /// Steps over one character and appends it.
    pub fn read(&mut self, into: &mut String) {
        let start = self.pos;
        self.skip();
        into.push_str(self.since(start));
    }
}

/// Whether all are ASCII and allowed; written so that many are looked at at once.
fn is_simple(bytes: &[u8]) -> bool {
    let allowed = |byte: u8| (b' '..=b'~').contains(&byte) | matches!(byte, b'\t' | b'\n' | b'\r');
    bytes.iter().fold(true, |all, byte| all & allowed(*byte))
}

/// Bytes of the character that starts with this byte.
fn width(first: u8) -> usize {
    match first {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
        _ => 1,
    }
}

/// Letters, digits, `_` and `-`: what names of anchors, tags and directives are made of.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The characters a YAML text may hold.
pub(crate) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}
