//! Source text to tokens, with Go's rules for delimiters, trim markers and comments.

use memchr::{memchr, memchr3};

use super::token::{Kind, Token, index};
use crate::fmt::{chars, is_print, quote_bytes};

/// The scanner. Feeds the parser one token at a time; after an error there is only EOF.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    input: &'t [u8],
    pos: usize,
    start: usize,
    /// The line of `start`.
    line: u32,
    inside: bool,
    /// Whether there is white space before `start`, inside an action.
    spaced: bool,
    parens: usize,
    /// Keywords that are none: functions bear their names.
    pub functions: Vec<Kind>,
    /// What is wrong, once there was an error.
    pub fault: String,
}

const LEFT: &[u8] = b"{{";
const RIGHT: &[u8] = b"}}";
const TRIM: usize = 2;

impl<'t> Lexer<'t> {
    pub fn new(input: &'t [u8]) -> Self {
        Self {
            input,
            pos: 0,
            start: 0,
            line: 1,
            inside: false,
            spaced: false,
            parens: 0,
            functions: Vec::new(),
            fault: String::new(),
        }
    }

    pub fn next_token(&mut self) -> Token {
        if self.inside { self.in_action() } else { self.in_text() }
    }

    fn rest(&self) -> &'t [u8] {
        self.input.get(self.pos..).unwrap_or_default()
    }

    /// The next character; U+FFFD for what is no UTF-8.
    fn peek(&self) -> Option<char> {
        let rest = self.rest();
        match rest.first() {
            None => None,
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => {
                let head = rest.get(..rest.len().min(4)).unwrap_or(rest);
                chars(head).next().map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        let invalid =
            c == char::REPLACEMENT_CHARACTER && !self.rest().starts_with("\u{fffd}".as_bytes());
        self.pos += if invalid { 1 } else { c.len_utf8() };
        Some(c)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let ok = self.peek().is_some_and(|c| valid.contains(c));
        if ok {
            self.pos += 1;
        }
        ok
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn pending(&self) -> &'t [u8] {
        self.input.get(self.start..self.pos).unwrap_or_default()
    }

    /// Drops what was scanned since the last token.
    fn ignore(&mut self) {
        self.line += lines(self.pending());
        self.start = self.pos;
    }

    /// A token within one line.
    fn emit(&mut self, kind: Kind) -> Token {
        let (start, end, line, spaced) = (self.start, self.pos, self.line, self.spaced);
        self.start = end;
        Token { kind, spaced, start: index(start), end: index(end), line }
    }

    /// A token that may go over several.
    fn emit_lines(&mut self, kind: Kind) -> Token {
        let further = lines(self.pending());
        let token = self.emit(kind);
        self.line += further;
        token
    }

    fn error(&mut self, message: impl Into<String>) -> Token {
        self.fault = message.into();
        self.pos = self.start;
        let token = self.emit(Kind::Error);
        self.input = &[];
        (self.pos, self.start, self.inside) = (0, 0, false);
        token
    }

    fn in_text(&mut self) -> Token {
        self.spaced = false;
        loop {
            let Some(len) = find(self.rest(), LEFT) else {
                self.pos = self.input.len();
                let kind = if self.pos > self.start { Kind::Text } else { Kind::Eof };
                return self.emit_lines(kind);
            };
            let text_end = self.pos + len;
            let after = self.input.get(text_end + LEFT.len()..).unwrap_or_default();
            let trim = starts_with_trim(after);
            let text = self.input.get(self.start..text_end).unwrap_or_default();
            let kept = if trim { trim_end(text).len() } else { text.len() };
            self.pos = self.start + kept;
            let token = (kept > 0).then(|| self.emit_lines(Kind::Text));
            self.pos = text_end;
            self.ignore();
            if let Some(token) = token {
                return token;
            }
            let marker = if trim { TRIM } else { 0 };
            if !after.get(marker..).unwrap_or_default().starts_with(b"/*") {
                return self.left_delim(marker);
            }
            self.pos += LEFT.len() + marker;
            self.ignore();
            if let Err(message) = self.comment() {
                return self.error(message);
            }
        }
    }

    fn left_delim(&mut self, marker: usize) -> Token {
        self.pos += LEFT.len();
        let token = self.emit(Kind::LeftDelim);
        self.inside = true;
        self.parens = 0;
        self.pos += marker;
        self.ignore();
        token
    }

    fn comment(&mut self) -> Result<(), &'static str> {
        let body = self.rest().get(2..).unwrap_or_default();
        let len = find(body, b"*/").ok_or("unclosed comment")?;
        self.pos += 2 + len + 2;
        let trim = self.right_delim_ahead().ok_or("comment ends before closing delimiter")?;
        self.pos += RIGHT.len();
        if trim {
            self.pos += TRIM;
            self.skip_space();
        }
        self.ignore();
        Ok(())
    }

    fn skip_space(&mut self) {
        while self.rest().first().is_some_and(|byte| is_space(*byte)) {
            self.pos += 1;
        }
    }

    /// Whether a right delimiter stands here, and if so, whether with a trim marker.
    fn right_delim_ahead(&self) -> Option<bool> {
        let rest = self.rest();
        if ends_with_trim(rest) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn in_action(&mut self) -> Token {
        let mut rest = self.rest();
        self.spaced = false;
        while let [space, behind @ ..] = rest
            && is_space(*space)
        {
            if behind.starts_with(b"-}}") {
                self.start_at(rest);
                return self.closing(true);
            }
            self.line += u32::from(*space == b'\n');
            self.spaced = true;
            rest = behind;
        }
        self.start_at(rest);
        match rest {
            [] => self.error("unclosed action"),
            [b'}', b'}', ..] => self.closing(false),
            [byte, ..] if is_word(*byte) && !byte.is_ascii_digit() => self.identifier(),
            [byte, ..] if byte.is_ascii() => {
                self.pos += 1;
                self.mark(char::from(*byte))
            }
            _ => {
                let c = self.bump().unwrap_or_default();
                self.mark(c)
            }
        }
    }

    /// Lets the next token start where this rest of the input does.
    fn start_at(&mut self, rest: &[u8]) {
        self.pos = self.input.len() - rest.len();
        self.start = self.pos;
    }

    /// What begins with neither an ASCII letter nor white space, but with this, which is scanned.
    fn mark(&mut self, first: char) -> Token {
        match first {
            '=' => self.emit(Kind::Assign),
            ':' => match self.bump() {
                Some('=') => self.emit(Kind::Declare),
                _ => self.error("expected :="),
            },
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted(b'"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted(b'\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw_string(),
            '$' => self.name(Kind::Variable, Kind::Variable),
            '.' if self.rest().first().is_some_and(|next| !next.is_ascii_digit()) => {
                self.name(Kind::Field, Kind::Dot)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.pos = self.start;
                self.number()
            }
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            c if is_alphanumeric(c) => self.identifier(),
            ' '..='~' => self.emit(Kind::Char),
            c => self.error(format!("unrecognized character in action: {}", code_point(c))),
        }
    }

    /// A right delimiter that stands here.
    fn closing(&mut self, trim: bool) -> Token {
        if self.parens > 0 {
            return self.error("unclosed left paren");
        }
        if trim {
            self.pos += TRIM;
            self.ignore();
        }
        self.pos += RIGHT.len();
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.skip_space();
            self.ignore();
        }
        self.inside = false;
        token
    }

    fn quoted(&mut self, mark: u8, kind: Kind, unterminated: &str) -> Token {
        // All three are ASCII, and no byte of another character is.
        loop {
            let Some(at) = memchr3(mark, b'\\', b'\n', self.rest()) else {
                return self.error(unterminated);
            };
            match self.rest().get(at..) {
                Some([b'\\', next, ..]) if *next != b'\n' => self.pos += at + 2,
                Some([found, ..]) if *found == mark => {
                    self.pos += at + 1;
                    return self.emit(kind);
                }
                _ => return self.error(unterminated),
            }
        }
    }

    fn raw_string(&mut self) -> Token {
        match memchr(b'`', self.rest()) {
            Some(len) => {
                self.pos += len + 1;
                self.emit_lines(Kind::RawString)
            }
            None => self.error("unterminated raw quoted string"),
        }
    }

    /// A field or variable whose mark has been scanned; `bare` is the mark alone.
    fn name(&mut self, kind: Kind, bare: Kind) -> Token {
        let bare_end = self.pos;
        if !self.word() {
            return self.bad_character();
        }
        self.emit(if self.pos == bare_end { bare } else { kind })
    }

    /// Scans the rest of a name; whether what follows may follow one.
    fn word(&mut self) -> bool {
        loop {
            let rest = self.rest();
            let length = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
            self.pos += length;
            match rest.get(length..).unwrap_or_default() {
                [byte, ..] if !byte.is_ascii() => {
                    if !self.peek().is_some_and(is_alphanumeric) {
                        return false;
                    }
                    self.bump();
                }
                rest => return may_follow_name(rest),
            }
        }
    }

    fn bad_character(&mut self) -> Token {
        let c = self.peek().map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), code_point);
        self.error(format!("bad character {c}"))
    }

    fn identifier(&mut self) -> Token {
        if !self.word() {
            return self.bad_character();
        }
        let word = self.pending();
        let kind = match Kind::keyword(word) {
            Some(kind) if !self.functions.contains(&kind) => kind,
            _ => Kind::Identifier,
        };
        self.emit(kind)
    }

    fn number(&mut self) -> Token {
        if !self.scan_number() {
            return self.bad_number();
        }
        if !matches!(self.peek(), Some('+' | '-')) {
            return self.emit(Kind::Number);
        }
        // A complex number such as 1+2i: no spaces, must end in i.
        if !self.scan_number() || !self.pending().ends_with(b"i") {
            return self.bad_number();
        }
        self.emit(Kind::Complex)
    }

    fn bad_number(&mut self) -> Token {
        let text = quote_bytes(self.pending(), b'"', false);
        self.error(format!("bad number syntax: {text}"))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if (digits.len() == 11 && self.accept("eE")) || (digits.len() == 23 && self.accept("pP")) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.bump();
            return false;
        }
        true
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether an ASCII character may be part of a name: looked up, as there are very many of them.
fn is_word(byte: u8) -> bool {
    WORD.get(usize::from(byte)).is_some_and(|is| *is)
}

const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        word[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    word
};

/// Whether a text may follow a name.
fn may_follow_name(text: &[u8]) -> bool {
    matches!(
        text,
        [] | [b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(', ..]
            | [b'}', b'}', ..]
    )
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphabetic() || c.is_numeric()
}

/// `- ` right behind `{{`.
fn starts_with_trim(text: &[u8]) -> bool {
    matches!(text, [b'-', space, ..] if is_space(*space))
}

/// ` -}}`
fn ends_with_trim(text: &[u8]) -> bool {
    matches!(text, [space, b'-', b'}', b'}', ..] if is_space(*space))
}

fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !is_space(*byte)).map_or(0, |last| last + 1);
    text.get(..end).unwrap_or(text)
}

/// Up to as many bytes are looked at sooner than a faster search begins.
const SHORT: usize = 16;

/// Ends of lines in a text.
fn lines(text: &[u8]) -> u32 {
    index(count_newlines(text))
}

pub(crate) fn count_newlines(text: &[u8]) -> usize {
    if text.len() < SHORT {
        return text.iter().map(|byte| usize::from(*byte == b'\n')).sum();
    }
    memchr::memchr_iter(b'\n', text).count()
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    // Both patterns searched for are two bytes long; scanning for the first one is fast.
    let [first, second] = pattern else { return None };
    let mut from = 0;
    loop {
        let at = from + memchr(*first, text.get(from..)?)?;
        if text.get(at + 1) == Some(second) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Go's `%#U`.
fn code_point(c: char) -> String {
    let code = u32::from(c);
    if is_print(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}
