//! TOML character by character, with the faults that `BurntSushi/toml` finds, where it finds them.

use catamaran_gotemplate::Str;
use catamaran_gotemplate::fmt::quote;

/// What is wrong, and in which line (from 1).
#[derive(Debug)]
pub(super) struct Fault {
    pub line: usize,
    pub message: String,
}

pub(super) type Scan<T> = Result<T, Fault>;

/// The text and how far it is read.
#[derive(Debug)]
pub(super) struct Scanner<'t> {
    input: &'t [u8],
    pub pos: usize,
    pub line: usize,
    /// Of dates without a zone, in seconds east of UTC.
    pub offset: i32,
}

/// A character as Go's `%q` prints it; the end of the text counts as character 0.
pub(super) fn quoted(got: Option<char>) -> String {
    match got.unwrap_or('\0') {
        '"' => r#"'"'"#.to_owned(),
        '\'' => r"'\''".to_owned(),
        other => {
            let text = quoted_text(&other.to_string());
            format!("'{}'", text.get(1..text.len() - 1).unwrap_or_default())
        }
    }
}

/// A text as Go's `%q` prints it.
pub(super) fn quoted_text(text: &str) -> String {
    quote(&Str::from(text))
}

/// A character, or that there is none.
fn plain(got: Option<char>) -> String {
    got.map_or_else(|| "end of file".to_owned(), |c| format!("'{c}'"))
}

pub(super) fn is_space(c: Option<char>) -> bool {
    matches!(c, Some(' ' | '\t'))
}

pub(super) fn is_newline(c: Option<char>) -> bool {
    matches!(c, Some('\n' | '\r'))
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl<'t> Scanner<'t> {
    pub fn new(input: &'t [u8], offset: i32) -> Self {
        Self { input, pos: 0, line: 1, offset }
    }

    /// The text from there to here.
    pub fn since(&self, start: usize) -> String {
        String::from_utf8_lossy(self.input.get(start..self.pos).unwrap_or_default()).into_owned()
    }

    /// The next character, without taking it. What may not stand in TOML at all is a fault.
    pub fn peek(&self) -> Scan<Option<char>> {
        let rest = self.input.get(self.pos..).unwrap_or_default();
        let Some(first) = rest.first() else { return Ok(None) };
        let longest = rest.get(..4).unwrap_or(rest);
        let valid = longest.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let Some(c) = valid.chars().next() else {
            return self.fail(format!("invalid UTF-8 byte: 0x{first:02x}"));
        };
        let lone_return = c == '\r' && rest.get(1) != Some(&b'\n');
        if lone_return || (c.is_ascii_control() && !matches!(c, '\t' | '\r' | '\n')) {
            let code = u32::from(c);
            return self
                .fail(format!("TOML files cannot contain control characters: '0x{code:02x}'"));
        }
        Ok(Some(c))
    }

    /// Takes the next character.
    pub fn next(&mut self) -> Scan<Option<char>> {
        let c = self.peek()?;
        self.take(c);
        Ok(c)
    }

    /// Takes a character that was peeked.
    pub fn take(&mut self, c: Option<char>) {
        self.line += usize::from(c == Some('\n'));
        self.pos += c.map_or(0, char::len_utf8);
    }

    /// Takes the next character if it is that one.
    pub fn accept(&mut self, wanted: char) -> Scan<bool> {
        let c = self.peek()?;
        if c == Some(wanted) {
            self.take(c);
        }
        Ok(c == Some(wanted))
    }

    /// Takes characters as long as they are of a kind.
    pub fn skip(&mut self, kind: impl Fn(char) -> bool) -> Scan<()> {
        loop {
            let c = self.peek()?;
            if !c.is_some_and(&kind) {
                return Ok(());
            }
            self.take(c);
        }
    }

    pub fn skip_spaces(&mut self) -> Scan<()> {
        self.skip(|c| is_space(Some(c)))
    }

    /// The rest of a line, behind `#`.
    pub fn comment(&mut self) -> Scan<()> {
        self.skip(|c| !is_newline(Some(c)))
    }

    /// A fault in this line.
    pub fn fail<T>(&self, message: impl Into<String>) -> Scan<T> {
        Err(Fault { line: self.line, message: message.into() })
    }

    /// A fault that is told of the line before.
    pub fn fail_before<T>(&self, message: impl Into<String>) -> Scan<T> {
        Err(Fault { line: self.line.saturating_sub(1), message: message.into() })
    }

    /// A fault about what was just taken; the end of the text counts to the last line with any.
    pub fn fail_at<T>(&self, got: Option<char>, message: impl Into<String>) -> Scan<T> {
        let at_end = got.is_none() && self.pos > 0 && self.input.get(self.pos - 1) == Some(&b'\n');
        if at_end { self.fail_before(message) } else { self.fail(message) }
    }

    /// One part of a key or of a table's name that is not quoted; may be empty.
    fn bare(&mut self) -> Scan<String> {
        let start = self.pos;
        self.skip(is_bare)?;
        Ok(self.since(start))
    }

    fn key_part(&mut self) -> Scan<String> {
        match self.peek()? {
            quote @ Some('"') => {
                self.take(quote);
                self.basic_string()
            }
            quote @ Some('\'') => {
                self.take(quote);
                self.raw_string()
            }
            _ => self.bare(),
        }
    }

    /// A key up to and with its `=`.
    pub fn key(&mut self) -> Scan<Vec<String>> {
        self.skip_spaces()?;
        match self.peek()? {
            None | Some('=') => return self.fail("unexpected '=': key name appears blank"),
            Some('.') => return self.fail("unexpected '.': keys cannot start with a '.'"),
            _ => {}
        }
        let mut parts = Vec::new();
        loop {
            self.skip_spaces()?;
            match self.peek()? {
                None | Some('=') => return self.fail("unexpected '='"),
                Some('.') => return self.fail("unexpected '.'"),
                _ => parts.push(self.key_part()?),
            }
            self.skip_spaces()?;
            let got = self.next()?;
            let message = || format!("expected '.' or '=', but got {} instead", quoted(got));
            match got {
                Some('.') => {}
                Some('=') => return Ok(parts),
                None => return self.fail_at(got, "unexpected EOF; expected key separator '='"),
                Some('\n') => return self.fail_before(message()),
                _ => return self.fail(message()),
            }
        }
    }

    /// A table's name behind `[`, up to and with its end: whether it is that of an array, the name.
    pub fn header(&mut self) -> Scan<(bool, Vec<String>)> {
        let array = self.accept('[')?;
        let mut parts = Vec::new();
        loop {
            self.skip_spaces()?;
            match self.peek()? {
                None | Some(']') => {
                    return self.fail("unexpected end of table name (table names cannot be empty)");
                }
                Some('.') => {
                    return self.fail("unexpected table separator (table names cannot be empty)");
                }
                _ => parts.push(self.key_part()?),
            }
            self.skip_spaces()?;
            match self.next()? {
                Some('.') => {}
                Some(']') => break,
                got => {
                    let got_text = quoted(got);
                    let message = format!(
                        "expected '.' or ']' to end table name, but got {got_text} instead"
                    );
                    return self.fail_at(got, message);
                }
            }
        }
        if array {
            let got = self.next()?;
            if got != Some(']') {
                let got_text = quoted(got);
                let message = format!(
                    "expected end of table array name delimiter ']', but got {got_text} instead"
                );
                return self.fail_at(got, message);
            }
        }
        Ok((array, parts))
    }

    /// The end of a top-level item: a comment, a newline, the end (then `false`).
    pub fn end_of_item(&mut self) -> Scan<bool> {
        self.skip_spaces()?;
        match self.next()? {
            Some('#') => self.comment().map(|()| true),
            Some('\n' | '\r') => Ok(true),
            None => Ok(false),
            got => {
                let got = quoted(got);
                self.fail(format!(
                    "expected a top-level item to end with a newline, comment, or EOF, but got {got} instead"
                ))
            }
        }
    }

    /// Skips blanks, newlines and comments inside brackets, and looks at what comes then.
    pub fn skip_to_element(&mut self) -> Scan<Option<char>> {
        loop {
            self.skip(|c| is_space(Some(c)) || is_newline(Some(c)))?;
            match self.peek()? {
                hash @ Some('#') => {
                    self.take(hash);
                    self.comment()?;
                }
                other => return Ok(other),
            }
        }
    }

    /// Behind an element of an array: whether another may follow.
    pub fn comma_or_bracket(&mut self) -> Scan<bool> {
        self.skip_to_element()?;
        match self.next()? {
            Some(',') => Ok(true),
            Some(']') => Ok(false),
            got => {
                let got_text = plain(got);
                self.fail_at(
                    got,
                    format!("expected a comma (',') or array terminator (']'), but got {got_text}"),
                )
            }
        }
    }

    /// Behind a pair of an inline table: whether another may follow.
    pub fn comma_or_brace(&mut self) -> Scan<bool> {
        loop {
            self.skip_to_element()?;
            match self.next()? {
                Some(',') => {
                    self.skip_spaces()?;
                    if self.peek()? != Some('}') {
                        return Ok(true);
                    }
                }
                Some('}') => return Ok(false),
                got => {
                    let got_text = plain(got);
                    let message = format!(
                        "expected a comma or an inline table terminator '}}', but got {got_text} instead"
                    );
                    return self.fail_at(got, message);
                }
            }
        }
    }
}
