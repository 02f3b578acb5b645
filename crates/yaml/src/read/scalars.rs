//! Scanning of scalars: plain, quoted, block.
//!
//! A scalar on one line without escapes is a slice of the text; only others are built.

use std::borrow::Cow;

use super::cursor::Mark;
use super::scanner::Scanner;
use super::token::{Kind, Token};
use crate::error::Error;

/// White space between two words of a scalar, which may be folded.
#[derive(Debug, Default)]
struct Gap {
    blanks: String,
    first_break: String,
    more_breaks: String,
    broken: bool,
}

impl Gap {
    /// Appends what the gap means: the blanks as they are, one line break as a space, more of
    /// them as one less.
    fn flush(&mut self, into: &mut String) {
        if self.broken {
            if self.first_break.starts_with('\n') {
                if self.more_breaks.is_empty() {
                    into.push(' ');
                }
            } else {
                into.push_str(&self.first_break);
            }
            into.push_str(&self.more_breaks);
            self.first_break.clear();
            self.more_breaks.clear();
            self.broken = false;
        } else {
            into.push_str(&self.blanks);
        }
        self.blanks.clear();
    }
}

impl<'a> Scanner<'a> {
    /// Steps over blanks and breaks. `tab_limit` is the column left of which no tab may stand.
    fn read_gap(&mut self, gap: &mut Gap, tab_limit: Option<isize>) -> Result<(), Error> {
        loop {
            if self.cursor.is_blank(0) {
                let column = isize::try_from(self.cursor.mark.column).unwrap_or(isize::MAX);
                if gap.broken
                    && self.cursor.here() == b'\t'
                    && tab_limit.is_some_and(|limit| column < limit)
                {
                    return self.fail("found a tab character that violates indentation");
                }
                if gap.broken {
                    self.cursor.skip();
                } else {
                    self.cursor.read(&mut gap.blanks);
                }
            } else if self.cursor.is_break(0) {
                if gap.broken {
                    self.cursor.read_line(&mut gap.more_breaks);
                } else {
                    gap.blanks.clear();
                    self.cursor.read_line(&mut gap.first_break);
                    gap.broken = true;
                }
            } else {
                return Ok(());
            }
        }
    }

    fn plain_ends_here(&self) -> bool {
        match self.cursor.here() {
            b':' => self.cursor.is_blank_or_end(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.flow_level > 0,
            _ => false,
        }
    }

    pub(super) fn scan_plain_scalar(&mut self) -> Result<Token<'a>, Error> {
        let start = self.cursor.mark;
        let first = self.cursor.pos();
        let limit = self.indent + 1;
        let mut end = start;
        let mut text: Cow<'a, str> = Cow::Borrowed("");
        let mut gap = Gap::default();
        loop {
            if self.cursor.at_document_indicator() || self.cursor.here() == b'#' {
                break;
            }
            let word = self.cursor.pos();
            while !self.cursor.is_blank_or_end(0) && !self.plain_ends_here() {
                self.cursor.skip();
            }
            if self.cursor.pos() > word {
                end = self.cursor.mark;
                if gap.broken || matches!(text, Cow::Owned(_)) {
                    let owned = text.to_mut();
                    gap.flush(owned);
                    owned.push_str(self.cursor.since(word));
                } else {
                    gap.blanks.clear();
                    text = Cow::Borrowed(self.cursor.since(first));
                }
            }
            if !(self.cursor.is_blank(0) || self.cursor.is_break(0)) {
                break;
            }
            self.read_gap(&mut gap, Some(limit))?;
            let column = isize::try_from(self.cursor.mark.column).unwrap_or(isize::MAX);
            if self.flow_level == 0 && column < limit {
                break;
            }
        }
        if gap.broken {
            self.simple_key_allowed = true;
        }
        Ok(Token { kind: Kind::Scalar { value: text, plain: true }, start, end })
    }

    pub(super) fn scan_quoted_scalar(&mut self) -> Result<Token<'a>, Error> {
        let start = self.cursor.mark;
        let quote = self.cursor.here();
        self.cursor.skip();
        if let Some(value) = self.scan_simple_quoted(quote) {
            return Ok(self.quoted(value, start));
        }
        let mut text = String::new();
        let mut gap = Gap::default();
        loop {
            if self.cursor.at_document_indicator() {
                return self.fail("found unexpected document indicator");
            }
            if self.cursor.at_end() {
                return self.fail("found unexpected end of stream");
            }
            gap.broken = self.scan_quoted_word(quote, &mut text)?;
            if self.cursor.here() == quote {
                break;
            }
            self.read_gap(&mut gap, None)?;
            gap.flush_quoted(&mut text);
        }
        self.cursor.skip();
        Ok(self.quoted(Cow::Owned(text), start))
    }

    fn quoted(&self, value: Cow<'a, str>, start: Mark) -> Token<'a> {
        Token { kind: Kind::Scalar { value, plain: false }, start, end: self.cursor.mark }
    }

    /// A quoted scalar without escapes on one line, if this is one; else nothing is consumed.
    fn scan_simple_quoted(&mut self, quote: u8) -> Option<Cow<'a, str>> {
        let first = self.cursor.pos();
        let mut length = 0;
        loop {
            match self.cursor.peek(length) {
                byte if byte == quote => break,
                0 | b'\\' if quote == b'"' || self.cursor.peek(length) == 0 => return None,
                0xC2 | 0xE2 | b'\n' | b'\r' if self.cursor.is_break(length) => return None,
                _ => length += 1,
            }
        }
        if quote == b'\'' && self.cursor.peek(length + 1) == b'\'' {
            return None;
        }
        let value = self.cursor.slice(first, first + length);
        self.cursor.skip_to(first + length);
        self.cursor.skip();
        Some(Cow::Borrowed(value))
    }

    /// Reads up to white space or the end quote. True if it ended in an escaped line break.
    fn scan_quoted_word(&mut self, quote: u8, text: &mut String) -> Result<bool, Error> {
        while !self.cursor.is_blank_or_end(0) {
            match self.cursor.here() {
                b'\'' if quote == b'\'' && self.cursor.peek(1) == b'\'' => {
                    text.push('\'');
                    self.cursor.skip_many(2);
                }
                byte if byte == quote => break,
                b'\\' if quote == b'"' && self.cursor.is_break(1) => {
                    self.cursor.skip();
                    self.cursor.skip_line();
                    return Ok(true);
                }
                b'\\' if quote == b'"' => self.scan_escape(text)?,
                _ => self.cursor.read(text),
            }
        }
        Ok(false)
    }

    fn scan_escape(&mut self, text: &mut String) -> Result<(), Error> {
        let digits = match self.cursor.peek(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            other => {
                let Some(c) = escaped(other) else {
                    return self.fail("found unknown escape character");
                };
                text.push(c);
                0
            }
        };
        self.cursor.skip_many(2);
        if digits == 0 {
            return Ok(());
        }
        let mut code: u32 = 0;
        for ahead in 0..digits {
            let Some(digit) = char::from(self.cursor.peek(ahead)).to_digit(16) else {
                return self.fail("did not find expected hexdecimal number");
            };
            code = code.wrapping_shl(4) | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return self.fail("found invalid Unicode character escape code");
        };
        text.push(c);
        self.cursor.skip_many(digits);
        Ok(())
    }

    pub(super) fn scan_block_scalar(&mut self) -> Result<Token<'a>, Error> {
        let start = self.cursor.mark;
        let literal = self.cursor.here() == b'|';
        self.cursor.skip();
        let (keep, increment) = self.scan_block_header()?;
        let mut end = self.cursor.mark;
        let mut indent = match increment {
            0 => 0,
            more => self.indent.max(0).unsigned_abs() + more,
        };
        let mut text = String::new();
        let mut first_break = String::new();
        let mut more_breaks = String::new();
        let mut after_blank = false;
        self.scan_block_breaks(&mut indent, &mut more_breaks, &mut end)?;
        while self.cursor.mark.column == indent && !self.cursor.at_end() {
            let blank = self.cursor.is_blank(0);
            if !literal && !after_blank && !blank && first_break.starts_with('\n') {
                if more_breaks.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&first_break);
            }
            first_break.clear();
            text.push_str(&more_breaks);
            more_breaks.clear();
            after_blank = blank;
            let line = self.cursor.pos();
            self.cursor.skip_run();
            while !self.cursor.is_break_or_end(0) {
                self.cursor.skip();
                self.cursor.skip_run();
            }
            text.push_str(self.cursor.since(line));
            self.cursor.read_line(&mut first_break);
            self.scan_block_breaks(&mut indent, &mut more_breaks, &mut end)?;
        }
        if keep != Keep::Nothing {
            text.push_str(&first_break);
        }
        if keep == Keep::All {
            text.push_str(&more_breaks);
        }
        Ok(Token { kind: Kind::Scalar { value: Cow::Owned(text), plain: false }, start, end })
    }

    /// The indicators behind `|` or `>`, in either order, and the rest of that line.
    fn scan_block_header(&mut self) -> Result<(Keep, usize), Error> {
        let mut keep = None;
        let mut increment = 0;
        for _ in 0..2 {
            match self.cursor.here() {
                b'+' if keep.is_none() => keep = Some(Keep::All),
                b'-' if keep.is_none() => keep = Some(Keep::Nothing),
                b'0' if increment == 0 => {
                    return self.fail("found an indentation indicator equal to 0");
                }
                digit @ b'1'..=b'9' if increment == 0 => increment = usize::from(digit - b'0'),
                _ => break,
            }
            self.cursor.skip();
        }
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_break_or_end(0) {
            return self.fail("did not find expected comment or line break");
        }
        self.cursor.skip_line();
        Ok((keep.unwrap_or(Keep::One), increment))
    }

    /// Reads indentation and empty lines; finds the indentation out if it is not known (0).
    fn scan_block_breaks(
        &mut self,
        indent: &mut usize,
        breaks: &mut String,
        end: &mut Mark,
    ) -> Result<(), Error> {
        *end = self.cursor.mark;
        let mut deepest = 0;
        loop {
            while (*indent == 0 || self.cursor.mark.column < *indent) && self.cursor.here() == b' '
            {
                self.cursor.skip();
            }
            deepest = deepest.max(self.cursor.mark.column);
            if (*indent == 0 || self.cursor.mark.column < *indent) && self.cursor.here() == b'\t' {
                return self.fail("found a tab character where an indentation space is expected");
            }
            if !self.cursor.is_break(0) {
                break;
            }
            self.cursor.read_line(breaks);
            *end = self.cursor.mark;
        }
        if *indent == 0 {
            *indent = deepest.max((self.indent + 1).max(1).unsigned_abs());
        }
        Ok(())
    }
}

impl Gap {
    /// As [`Gap::flush`]; but an escaped line break leaves no trace of itself.
    fn flush_quoted(&mut self, into: &mut String) {
        if self.broken && self.first_break.is_empty() {
            into.push_str(&self.more_breaks);
            self.more_breaks.clear();
            self.blanks.clear();
            self.broken = false;
        } else {
            self.flush(into);
        }
    }
}

/// Which of its final line breaks a block scalar keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    One,
    All,
}

/// The character that a one-letter escape stands for.
fn escaped(letter: u8) -> Option<char> {
    Some(match letter {
        b'0' => '\0',
        b'a' => '\x07',
        b'b' => '\x08',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\x0b',
        b'f' => '\x0c',
        b'r' => '\r',
        b'e' => '\x1b',
        b' ' => ' ',
        b'"' => '"',
        b'\'' => '\'',
        b'\\' => '\\',
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
