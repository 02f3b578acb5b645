//! Source text to tokens, with Go's rules for delimiters, trim markers and comments.

use memchr::{memchr, memchr3};

use super::token::{Kind, Token, index};
use crate::fmt::{chars, is_print, quote_bytes};

/// The scanner. Feeds the parser one token at a time; after an error there is only EOF.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t [u8],
    /// What is not scanned yet of it.
    rest: &'t [u8],
    /// Where the token at work starts.
    start: usize,
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
    pub fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            rest: text,
            start: 0,
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

    fn pos(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn go_to(&mut self, pos: usize) {
        self.rest = self.text.get(pos..).unwrap_or_default();
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// The next character; U+FFFD for what is no UTF-8.
    fn peek(&self) -> Option<char> {
        match self.rest.first() {
            None => None,
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => {
                let head = self.rest.get(..4).unwrap_or(self.rest);
                chars(head).next().map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        let invalid =
            c == char::REPLACEMENT_CHARACTER && !self.rest.starts_with("\u{fffd}".as_bytes());
        self.advance(if invalid { 1 } else { c.len_utf8() });
        Some(c)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let ok = self.rest.first().is_some_and(|byte| valid.as_bytes().contains(byte));
        if ok {
            self.advance(1);
        }
        ok
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn pending(&self) -> &'t [u8] {
        self.text.get(self.start..self.pos()).unwrap_or_default()
    }

    /// Drops what was scanned since the last token.
    fn ignore(&mut self) {
        self.start = self.pos();
    }

    fn emit(&mut self, kind: Kind) -> Token {
        let (start, end) = (index(self.start), index(self.pos()));
        self.ignore();
        Token { kind, spaced: self.spaced, start, end }
    }

    fn error(&mut self, message: impl Into<String>) -> Token {
        self.fault = message.into();
        self.go_to(self.start);
        let token = self.emit(Kind::Error);
        self.text = self.text.get(..self.start).unwrap_or_default();
        self.rest = &[];
        self.inside = false;
        token
    }

    fn in_text(&mut self) -> Token {
        self.spaced = false;
        loop {
            let Some(len) = find(self.rest, LEFT) else {
                self.rest = &[];
                let kind = if self.pos() > self.start { Kind::Text } else { Kind::Eof };
                return self.emit(kind);
            };
            let (text, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, &[]));
            let after = rest.get(LEFT.len()..).unwrap_or_default();
            let trim = starts_with_trim(after);
            let kept = if trim { trim_end(text) } else { text };
            self.advance(kept.len());
            let token = (!kept.is_empty()).then(|| self.emit(Kind::Text));
            self.rest = rest;
            self.ignore();
            if let Some(token) = token {
                return token;
            }
            let marker = if trim { TRIM } else { 0 };
            if !after.get(marker..).unwrap_or_default().starts_with(b"/*") {
                return self.left_delim(marker);
            }
            self.advance(LEFT.len() + marker);
            self.ignore();
            if let Err(message) = self.comment() {
                return self.error(message);
            }
        }
    }

    fn left_delim(&mut self, marker: usize) -> Token {
        self.advance(LEFT.len());
        let token = self.emit(Kind::LeftDelim);
        self.inside = true;
        self.parens = 0;
        self.advance(marker);
        self.ignore();
        token
    }

    fn comment(&mut self) -> Result<(), &'static str> {
        let body = self.rest.get(2..).unwrap_or_default();
        let len = find(body, b"*/").ok_or("unclosed comment")?;
        self.advance(2 + len + 2);
        let trim = self.right_delim_ahead().ok_or("comment ends before closing delimiter")?;
        self.advance(RIGHT.len());
        if trim {
            self.advance(TRIM);
            self.skip_space();
        }
        self.ignore();
        Ok(())
    }

    fn skip_space(&mut self) {
        self.advance(leading(self.rest, SPACE));
    }

    /// Whether a right delimiter stands here, and if so, whether with a trim marker.
    fn right_delim_ahead(&self) -> Option<bool> {
        if ends_with_trim(self.rest) {
            return Some(true);
        }
        self.rest.starts_with(RIGHT).then_some(false)
    }

    fn in_action(&mut self) -> Token {
        let spaces = leading(self.rest, SPACE);
        self.spaced = spaces > 0;
        self.advance(spaces);
        self.ignore();
        match self.rest {
            [] => self.error("unclosed action"),
            [b'}', b'}', ..] => self.closing(false),
            [b'-', b'}', b'}', ..] if self.spaced => {
                // The marker begins with the last space.
                self.go_to(self.start - 1);
                self.ignore();
                self.closing(true)
            }
            [byte, ..] if is(*byte, WORD) && !byte.is_ascii_digit() => self.identifier(),
            [b'$', ..] => self.name(Kind::Variable, Kind::Variable),
            [b'.', next, ..] if !next.is_ascii_digit() => self.name(Kind::Field, Kind::Dot),
            [byte, ..] if byte.is_ascii() => {
                self.advance(1);
                self.mark(char::from(*byte))
            }
            _ => {
                let c = self.bump().unwrap_or_default();
                self.mark(c)
            }
        }
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
            '.' | '+' | '-' | '0'..='9' => {
                self.go_to(self.start);
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
            self.advance(TRIM);
            self.ignore();
        }
        self.advance(RIGHT.len());
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
            let Some(at) = memchr3(mark, b'\\', b'\n', self.rest) else {
                return self.error(unterminated);
            };
            match self.rest.get(at..) {
                Some([b'\\', next, ..]) if *next != b'\n' => self.advance(at + 2),
                Some([found, ..]) if *found == mark => {
                    self.advance(at + 1);
                    return self.emit(kind);
                }
                _ => return self.error(unterminated),
            }
        }
    }

    fn raw_string(&mut self) -> Token {
        match memchr(b'`', self.rest) {
            Some(len) => {
                self.advance(len + 1);
                self.emit(Kind::RawString)
            }
            None => self.error("unterminated raw quoted string"),
        }
    }

    /// A field or variable, which begins with a mark; `bare` is the mark alone.
    fn name(&mut self, kind: Kind, bare: Kind) -> Token {
        self.advance(1);
        let behind = self.rest.len();
        if !self.word() {
            return self.bad_character();
        }
        self.emit(if self.rest.len() == behind { bare } else { kind })
    }

    /// Scans the rest of a name; whether what follows may follow one.
    fn word(&mut self) -> bool {
        loop {
            self.advance(leading(self.rest, WORD));
            match self.rest {
                [] | [b'}', b'}', ..] => return true,
                [byte, ..] if byte.is_ascii() => return is(*byte, BEHIND_NAME),
                _ if self.peek().is_some_and(is_alphanumeric) => {
                    self.bump();
                }
                _ => return false,
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

const SPACE: u8 = 1;
/// May be part of a name.
const WORD: u8 = 2;
/// May stand behind one.
const BEHIND_NAME: u8 = 4;

/// What each ASCII character is: looked up, as there are very many of them.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        classes[byte as usize] = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => SPACE | BEHIND_NAME,
            b'.' | b',' | b'|' | b':' | b')' | b'(' => BEHIND_NAME,
            b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => WORD,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// Whether a byte is an ASCII character of a class.
fn is(byte: u8, class: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & class != 0)
}

/// How many characters of a class a text begins with.
fn leading(text: &[u8], class: u8) -> usize {
    text.iter().position(|byte| !is(*byte, class)).unwrap_or(text.len())
}

fn is_space(byte: u8) -> bool {
    is(byte, SPACE)
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
