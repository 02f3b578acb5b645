//! TOML's four kinds of strings.

use super::scan::{Scan, Scanner, is_newline, quoted_text};

const NEWLINE: &str = "strings cannot contain newlines";

impl Scanner<'_> {
    /// A string behind its `"`.
    pub fn basic_string(&mut self) -> Scan<String> {
        let start = self.pos;
        loop {
            match self.next()? {
                got @ None => return self.fail_at(got, r#"unexpected EOF; expected '"'"#),
                Some('\n' | '\r') => return self.fail_before(NEWLINE),
                Some('\\') => self.escape(start)?,
                Some('"') => return self.unescaped(&self.before(start, 1)),
                Some(_) => {}
            }
        }
    }

    /// A string behind its `'`.
    pub fn raw_string(&mut self) -> Scan<String> {
        let start = self.pos;
        loop {
            match self.next()? {
                got @ None => return self.fail_at(got, r#"unexpected EOF; expected "'""#),
                Some('\n' | '\r') => return self.fail_before(NEWLINE),
                Some('\'') => return Ok(self.before(start, 1)),
                Some(_) => {}
            }
        }
    }

    /// A string behind its `"""`.
    pub fn long_string(&mut self) -> Scan<String> {
        let start = self.pos;
        loop {
            match self.next()? {
                got @ None => return self.fail_at(got, r#"unexpected EOF; expected '"""'"#),
                Some('\\') => {
                    let next = self.peek()?;
                    if is_newline(next) {
                        self.take(next);
                    } else {
                        self.escape(start)?;
                    }
                }
                Some('"') => {
                    if self.closed(start, '"')? {
                        let body = self.before(start, 3);
                        return self.unescaped(&without_line_ends(without_newline(&body)));
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// A string behind its `'''`.
    pub fn long_raw_string(&mut self) -> Scan<String> {
        let start = self.pos;
        loop {
            match self.next()? {
                got @ None => return self.fail_at(got, r#"unexpected EOF; expected "'''""#),
                Some('\'') => {
                    if self.closed(start, '\'')? {
                        return Ok(without_newline(&self.before(start, 3)).to_owned());
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// The text from there to here, without the last so many bytes.
    fn before(&self, start: usize, marks: usize) -> String {
        let mut text = self.since(start);
        text.truncate(text.len().saturating_sub(marks));
        text
    }

    /// Behind one mark: whether it is the first of the three that end the string. Up to two more
    /// before them belong to the string.
    fn closed(&mut self, start: usize, mark: char) -> Scan<bool> {
        let behind_first = self.pos;
        if !self.accept(mark)? || !self.accept(mark)? {
            self.pos = behind_first;
            return Ok(false);
        }
        if self.peek()? != Some(mark) {
            return Ok(true);
        }
        let so_far = self.since(start);
        let five = String::from(mark).repeat(5);
        let escaped = mark == '"' && so_far.ends_with(&format!("\\{five}"));
        if so_far.ends_with(&five) && !escaped {
            let six = String::from(mark).repeat(6);
            let around = if mark == '"' { '\'' } else { '"' };
            return self.fail(format!("unexpected {around}{six}{around}"));
        }
        self.pos = behind_first;
        Ok(false)
    }

    /// Steps over what follows a backslash.
    fn escape(&mut self, start: usize) -> Scan<()> {
        let got = self.next()?;
        let (count, words) = match got {
            Some('e' | 'b' | 't' | 'n' | 'f' | 'r' | '"' | ' ' | '\t' | '\\') => return Ok(()),
            Some('x') => (2, "two hexadecimal digits after '\\x'"),
            Some('u') => (4, "four hexadecimal digits after '\\u'"),
            Some('U') => (8, "eight hexadecimal digits after '\\U'"),
            other => {
                let message = format!("invalid escape in string '\\{}'", other.unwrap_or('\0'));
                return if other.is_none() {
                    self.fail_before(message)
                } else {
                    self.fail(message)
                };
            }
        };
        for _ in 0..count {
            let digit = self.next()?;
            if !digit.is_some_and(|digit| digit.is_ascii_hexdigit()) {
                let so_far = quoted_text(&self.since(start));
                return self.fail_at(digit, format!("expected {words}, but got {so_far} instead"));
            }
        }
        Ok(())
    }

    /// A string with its escapes replaced; they are known to be complete.
    fn unescaped(&self, text: &str) -> Scan<String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('\\') {
            out.push_str(before);
            let kind = after.chars().next().unwrap_or('\\');
            rest = after.get(kind.len_utf8()..).unwrap_or_default();
            let digits = match kind {
                'x' => 2,
                'u' => 4,
                'U' => 8,
                _ => 0,
            };
            out.push(match kind {
                'b' => '\u{8}',
                't' => '\t',
                'n' => '\n',
                'f' => '\u{c}',
                'r' => '\r',
                'e' => '\u{1b}',
                'x' | 'u' | 'U' => {
                    let digits = rest.get(..digits).unwrap_or_default();
                    let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                    match code {
                        Some(c) => c,
                        None => {
                            return self.fail(format!(
                                "Escaped character '\\u{digits}' is not valid UTF-8."
                            ));
                        }
                    }
                }
                ' ' | '\t' => return self.fail(format!("invalid escape: '\\{kind}'")),
                other => other,
            });
            rest = rest.get(digits..).unwrap_or_default();
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// Without the newline right behind the opening marks.
fn without_newline(text: &str) -> &str {
    text.strip_prefix('\n').or_else(|| text.strip_prefix("\r\n")).unwrap_or(text)
}

/// Without backslashes that end a line, and all white space behind them.
fn without_line_ends(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let behind = after.trim_start_matches([' ', '\t', '\r', '\n']);
        let skipped = after.get(..after.len() - behind.len()).unwrap_or_default();
        if skipped.contains('\n') {
            rest = behind;
            continue;
        }
        out.push('\\');
        rest = after;
        // An escaped backslash escapes nothing.
        if let Some(after) = rest.strip_prefix('\\') {
            out.push('\\');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}
