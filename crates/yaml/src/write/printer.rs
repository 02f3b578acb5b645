//! Text on its way out: columns, indentation, folding, escapes.

use super::look::Look;
use super::scalar::{Analysis, Style, choose, is_break, is_printable};
use crate::Dialect;
use crate::error::Error;

/// Behind this column a space may become a line break (version 2 only).
const WIDTH: usize = 80;

/// Where lines may be broken, and where they go on.
#[derive(Debug, Clone, Copy)]
struct Fold {
    width: usize,
    indent: usize,
}

/// The text so far.
#[derive(Debug)]
pub(super) struct Printer {
    pub out: String,
    pub dialect: Dialect,
    /// Bytes the text may take.
    room: usize,
}

impl Printer {
    pub fn new(dialect: Dialect, room: usize) -> Self {
        Self { out: String::new(), dialect, room }
    }

    /// Whether so many bytes more may be written.
    pub fn check(&self, more: usize) -> Result<(), Error> {
        if self.out.len().saturating_add(more) > self.room {
            return Err(Error::too_large(self.room));
        }
        Ok(())
    }

    /// Whether a text may be written, with all its lines indented and all its escapes.
    pub fn check_text(&self, text: &str, look: Look, indent: usize) -> Result<(), Error> {
        if self.room == usize::MAX {
            return Ok(());
        }
        let breaks = if look.has_newlines() { count(b'\n', text) } else { 0 };
        let lines = breaks + text.len() / WIDTH + 1;
        let length = text.len().saturating_mul(if look.is_plain() { 2 } else { 4 });
        self.check(lines.saturating_mul(indent).saturating_add(length))
    }

    pub fn at_line_start(&self) -> bool {
        self.out.is_empty() || self.out.ends_with(is_break)
    }

    /// Ends the line, unless it is ended.
    pub fn end_line(&mut self) {
        if !self.at_line_start() {
            self.out.push('\n');
        }
    }

    pub fn indent(&mut self, columns: usize) {
        const SPACES: &str = "                                ";
        let mut left = columns;
        while left > 0 {
            let some = left.min(SPACES.len());
            self.out.push_str(SPACES.get(..some).unwrap_or(SPACES));
            left -= some;
        }
    }

    fn column(&self) -> usize {
        let bytes = self.out.as_bytes();
        let start = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let line = bytes.get(start..).unwrap_or_default();
        if line.is_ascii() && !line.contains(&b'\r') {
            return line.len();
        }
        let line = self.out.rsplit(is_break).next().unwrap_or_default();
        line.chars().count()
    }

    fn break_line(&mut self, indent: usize) {
        self.out.push('\n');
        self.indent(indent);
    }

    /// Writes a string as a value; lines that it needs are indented by `indent`.
    pub fn string(&mut self, text: &str, look: Look, indent: usize) {
        let analysis = Analysis::of(text, look, self.dialect);
        self.styled(text, look, choose(text, &analysis, false, self.dialect), Some(indent));
    }

    /// Writes a string as a key on one line. False, and nothing, if it cannot be one.
    pub fn simple_key(&mut self, text: &str, look: Look) -> bool {
        let analysis = Analysis::of(text, look, self.dialect);
        if analysis.multiline || text.len() > 128 {
            return false;
        }
        self.styled(text, look, choose(text, &analysis, true, self.dialect), None);
        true
    }

    /// `indent` of none: the text must stay on its line.
    fn styled(&mut self, text: &str, look: Look, style: Style, indent: Option<usize>) {
        let fold = Fold {
            width: if self.dialect == Dialect::V2 && indent.is_some() { WIDTH } else { usize::MAX },
            indent: indent.unwrap_or(0),
        };
        match style {
            Style::Plain => self.flow(text, look, fold, false),
            Style::SingleQuoted => {
                self.out.push('\'');
                self.flow(text, look, fold, true);
                self.out.push('\'');
            }
            Style::DoubleQuoted => self.double_quoted(text, fold),
            Style::Literal => self.literal(text, look, indent.unwrap_or(0)),
        }
    }

    /// The text of a plain or single-quoted scalar.
    fn flow(&mut self, text: &str, look: Look, fold: Fold, quoted: bool) {
        let as_it_is = look.is_plain_line() && !(quoted && look.has_quotes());
        if as_it_is && (!look.has_spaces() || fold.width == usize::MAX) {
            return self.out.push_str(text);
        }
        let mut column = self.column();
        if as_it_is && column + text.len() <= fold.width {
            return self.out.push_str(text);
        }
        let mut after_space = false;
        let mut after_break = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let space_follows = chars.peek().is_some_and(|(_, next)| *next == ' ');
            if c == ' ' {
                let inner = !quoted || (at > 0 && chars.peek().is_some());
                if !after_space && column > fold.width && inner && !space_follows {
                    self.break_line(fold.indent);
                    column = fold.indent;
                } else {
                    self.out.push(' ');
                    column += 1;
                }
                after_space = true;
                continue;
            }
            if is_break(c) {
                if !after_break && c == '\n' {
                    self.out.push('\n');
                }
                self.out.push(c);
                after_break = true;
                continue;
            }
            if after_break {
                self.indent(fold.indent);
                column = fold.indent;
            }
            if quoted && c == '\'' {
                self.out.push('\'');
                column += 1;
            }
            self.out.push(c);
            column += 1;
            after_space = false;
            after_break = false;
        }
    }

    fn double_quoted(&mut self, text: &str, fold: Fold) {
        self.out.push('"');
        // Go asks at every character whether the *text* begins with a byte order mark.
        let escape_all = text.starts_with('\u{feff}');
        let mut column = self.column();
        let mut after_space = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c != ' ' || escape_all {
                let before = self.out.len();
                if !escape_all && is_printable(c) && !is_break(c) && !matches!(c, '"' | '\\') {
                    self.out.push(c);
                } else {
                    self.escape(c);
                }
                column += self.out.get(before..).map_or(0, |written| written.chars().count());
                after_space = false;
                continue;
            }
            match chars.peek() {
                Some(&(_, next)) if !after_space && column > fold.width && at > 0 => {
                    self.break_line(fold.indent);
                    column = fold.indent;
                    if next == ' ' {
                        self.out.push('\\');
                        column += 1;
                    }
                }
                _ => {
                    self.out.push(' ');
                    column += 1;
                }
            }
            after_space = true;
        }
        self.out.push('"');
    }

    fn escape(&mut self, c: char) {
        self.out.push('\\');
        let letter = match c {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let written = match code {
                    0..=0xFF => format!("x{code:02X}"),
                    0x100..=0xFFFF => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                self.out.push_str(&written);
                return;
            }
        };
        self.out.push(letter);
    }

    fn literal(&mut self, text: &str, look: Look, indent: usize) {
        self.out.push('|');
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.out.push('2');
        }
        let mut ends = text.chars().rev().map(is_break);
        match (ends.next(), ends.next()) {
            (Some(true), None | Some(true)) => self.out.push('+'),
            (Some(true), Some(false)) => {}
            _ => self.out.push('-'),
        }
        self.out.push('\n');
        if look.is_plain() {
            for line in text.split_inclusive('\n') {
                if line != "\n" {
                    self.indent(indent);
                }
                self.out.push_str(line);
            }
            return;
        }
        let mut after_break = true;
        for c in text.chars() {
            if !is_break(c) && after_break {
                self.indent(indent);
            }
            after_break = is_break(c);
            self.out.push(c);
        }
    }
}

fn count(byte: u8, text: &str) -> usize {
    memchr::memchr_iter(byte, text.as_bytes()).count()
}
