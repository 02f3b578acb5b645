//! Documents of the plainest make, looked over without reading them.
//!
//! Nearly all that charts render is block mappings and sequences of scalars on one line. Such a
//! document is checked in one scan here, several times faster than it is parsed; whatever goes
//! beyond (anchors, tags, scalars over several lines, tabs, ...) and whatever could be an error is
//! left to the parser.

use crate::Dialect;
use crate::resolve::{Resolved, resolve};

/// What stands under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlined<'a> {
    /// A text.
    Text(&'a str),
    /// Nothing on the key's line: null, unless a mapping or sequence is told next.
    Open,
    /// A mapping begins; its entries follow.
    Mapping,
    /// A sequence begins; nothing of what is inside is told.
    Sequence,
    /// `{}`
    Empty,
    /// Any other value.
    Other,
}

/// How deep entries are told: top, and two levels of mappings below.
const TOLD: usize = 3;
/// No document of Kubernetes' own kinds is much deeper.
const EXPECTED_LEVELS: usize = 16;
/// Deeper ones are left to the parser.
const MAX_LEVELS: usize = 100;
/// Longer keys are left to the parser, which refuses them.
const MAX_KEY: usize = 1000;

/// Checks a document and tells the entries of its upper mappings: the keys on the way, and what
/// stands under the last of them. `tell` says of a mapping that begins whether its entries are wanted.
/// `None`: the document is not plain, and may be no YAML; what has been told until then counts for
/// nothing.
///
/// ```
/// use catamaran_yaml::{Outlined, outline};
/// let mut kind = "";
/// let plain = outline("kind: Pod\nspec:\n  a: [1, 2]\n", |path, value| {
///     if let (["kind"], Outlined::Text(text)) = (path, value) {
///         kind = text;
///     }
///     false
/// });
/// assert_eq!((plain, kind), (Some(()), "Pod"));
/// assert_eq!(outline("a: &b 1\n", |_, _| true), None);
/// ```
pub fn outline<'a>(
    text: &'a str,
    tell: impl FnMut(&[&'a str], Outlined<'a>) -> bool,
) -> Option<()> {
    let lines = Lines { text, at: 0 };
    // All are looked at, many at once.
    let plain = |byte: u8| (b' '..=b'~').contains(&byte) | matches!(byte, b'\n');
    let simple = text.bytes().fold(true, |all, byte| all & plain(byte));
    let (levels, path) = (Vec::with_capacity(EXPECTED_LEVELS), Vec::with_capacity(TOLD + 1));
    Outline { lines, simple, levels, started: false, open: false, path, tell }.run()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Mapping,
    Sequence,
}

/// A block collection that is not closed yet.
struct Level {
    form: Form,
    column: usize,
    /// Whether its entries are told: keys on the way to it are in the path.
    told: bool,
}

struct Outline<'a, F> {
    lines: Lines<'a>,
    /// All is printable ASCII: no line need be looked at for that.
    simple: bool,
    levels: Vec<Level>,
    started: bool,
    /// The last entry of the innermost collection has no value yet.
    open: bool,
    path: Vec<&'a str>,
    tell: F,
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    /// The next line without its break, left in place.
    fn peek(&self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        rest.get(..end)
    }

    fn take(&mut self, line: &str) {
        self.at = (self.at + line.len() + 1).min(self.text.len());
    }
}

impl<'a, F: FnMut(&[&'a str], Outlined<'a>) -> bool> Outline<'a, F> {
    fn run(mut self) -> Option<()> {
        while let Some(line) = self.lines.peek() {
            self.lines.take(line);
            if !self.simple && !is_simple(line) {
                return None;
            }
            let content = unindented(line);
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let column = line.len() - content.len();
            if column == 0 && (content.starts_with(['%', '.']) || content.starts_with("---")) {
                return None;
            }
            self.line(content, column)?;
        }
        Some(())
    }

    /// A line that is neither empty nor a comment.
    fn line(&mut self, content: &'a str, column: usize) -> Option<()> {
        if self.open
            && content.starts_with(['{', '['])
            && self.levels.last().is_some_and(|level| level.column < column)
        {
            return self.lone_flow(content);
        }
        while self.levels.last().is_some_and(|level| level.column > column) {
            self.close();
        }
        let dash = content == "-" || content.starts_with("- ");
        let wanted = if dash { Form::Sequence } else { Form::Mapping };
        // A sequence may stand in the column of the key it belongs to; a key there ends it.
        if let [.., outer, inner] = self.levels.as_slice()
            && inner.form == Form::Sequence
            && wanted == Form::Mapping
            && (outer.form, outer.column) == (Form::Mapping, inner.column)
            && inner.column == column
        {
            self.close();
        }
        let opens = match self.levels.last() {
            None if self.started => return None,
            None => true,
            Some(level) if level.column < column => {
                // Else it is more of a scalar, or an error.
                self.open.then_some(true)?
            }
            Some(level) if level.form == wanted => false,
            Some(_) => (self.open && dash).then_some(true)?,
        };
        self.started = true;
        if opens {
            self.begin(wanted, column)?;
        }
        self.entry(content, column)
    }

    /// A flow collection on the line after its key or dash, such as what `toYaml` makes of nothing.
    fn lone_flow(&mut self, content: &'a str) -> Option<()> {
        self.open = false;
        let found = match self.value(content)? {
            Outlined::Empty => Outlined::Mapping,
            other => other,
        };
        if self.levels.last().is_some_and(|level| level.told) {
            (self.tell)(&self.path, found);
        }
        Some(())
    }

    fn begin(&mut self, form: Form, column: usize) -> Option<()> {
        if self.levels.len() >= MAX_LEVELS {
            return None;
        }
        let above = self.levels.last().is_none_or(|level| level.told);
        let mut told = above && form == Form::Mapping && self.path.len() < TOLD;
        if above && !self.path.is_empty() && self.path.len() <= TOLD {
            let begun = if form == Form::Mapping { Outlined::Mapping } else { Outlined::Sequence };
            told &= (self.tell)(&self.path, begun);
        } else if self.path.is_empty() && form == Form::Sequence {
            return None; // no object
        }
        self.levels.push(Level { form, column, told });
        if told {
            self.path.push("");
        }
        self.open = false;
        Some(())
    }

    fn close(&mut self) {
        if self.levels.pop().is_some_and(|level| level.told) {
            self.path.pop();
        }
        self.open = false;
    }

    /// An entry of the innermost collection, at its place.
    fn entry(&mut self, content: &'a str, column: usize) -> Option<()> {
        let (mut content, mut column) = (content, column);
        // `- - key: value`: collections that begin on one line.
        while self.levels.last().is_some_and(|level| level.form == Form::Sequence) {
            let rest = content.strip_prefix('-')?;
            let inner = unindented(rest);
            if inner.is_empty() || inner.starts_with('#') && inner.len() < rest.len() {
                self.open = true;
                return Some(());
            }
            if inner.len() == rest.len() {
                return None;
            }
            column += content.len() - inner.len();
            content = inner;
            self.open = true;
            if content == "-" || content.starts_with("- ") {
                self.begin(Form::Sequence, column)?;
            } else if key(content)?.is_some() {
                self.begin(Form::Mapping, column)?;
            } else {
                self.open = false;
                return self.value(content).map(drop);
            }
        }
        let (name, rest) = key(content)??;
        let told = self.levels.last().is_some_and(|level| level.told);
        if told && let Some(last) = self.path.last_mut() {
            *last = name;
        }
        let value = unindented(rest);
        let found = if value.is_empty() || value.starts_with('#') {
            self.open = true;
            Outlined::Open
        } else {
            self.open = false;
            self.value(value)?
        };
        if told {
            (self.tell)(&self.path, found);
        }
        Some(())
    }

    /// A value on the line of its key or dash.
    fn value(&mut self, text: &'a str) -> Option<Outlined<'a>> {
        match text.as_bytes().first()? {
            b'|' | b'>' => self.block_scalar(text).map(|()| Outlined::Other),
            b'"' | b'\'' => {
                let (inner, rest, escaped) = quoted(text)?;
                ends(rest)?;
                Some(if escaped { Outlined::Other } else { Outlined::Text(inner) })
            }
            b'[' | b'{' => {
                let rest = flow(text)?;
                ends(rest)?;
                Some(if text.starts_with("{}") { Outlined::Empty } else { Outlined::Other })
            }
            _ => plain(text),
        }
    }

    fn block_scalar(&mut self, header: &str) -> Option<()> {
        if !matches!(header.get(1..)?, "" | "-" | "+") {
            return None;
        }
        let parent = self.levels.last()?.column;
        let mut indent = None;
        let mut deepest_blank = 0;
        while let Some(line) = self.lines.peek() {
            let content = unindented(line);
            let column = line.len() - content.len();
            if content.is_empty() {
                if indent.is_none() {
                    deepest_blank = deepest_blank.max(column);
                }
            } else if column <= parent {
                break;
            } else if let Some(indent) = indent {
                if column < indent {
                    break;
                }
            } else if content.starts_with('\t') {
                return None;
            } else {
                indent = Some(column);
            }
            if !self.simple && !is_simple_or_tab(line) {
                return None;
            }
            self.lines.take(line);
        }
        // Blanks may be deeper than what follows them, and then count for the indentation.
        let fine = indent.map_or(deepest_blank <= parent, |indent| deepest_blank <= indent);
        fine.then_some(())
    }
}

/// What a text holds behind the spaces at its start.
fn unindented(line: &str) -> &str {
    let spaces = line.bytes().take_while(|byte| *byte == b' ').count();
    line.get(spaces..).unwrap_or_default()
}

fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// Whether a line holds only characters that mean nothing but themselves.
fn is_simple(line: &str) -> bool {
    line.bytes().all(is_printable) || are_letters(line, false)
}

fn is_simple_or_tab(line: &str) -> bool {
    line.bytes().all(is_printable) || are_letters(line, true)
}

/// The same with letters of other scripts, but no control characters, breaks and marks of Unicode.
fn are_letters(line: &str, tabs: bool) -> bool {
    line.chars().all(|c| {
        matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{10000}'..)
            || tabs && c == '\t'
    })
}

/// A key and what follows its colon; `Some(None)` if a value begins here.
#[allow(clippy::option_option, reason = "outside: whether it is plain at all")]
fn key(text: &str) -> Option<Option<(&str, &str)>> {
    let first = *text.as_bytes().first()?;
    if matches!(first, b'"' | b'\'') {
        let (inner, rest, escaped) = quoted(text)?;
        let Some(rest) = rest.strip_prefix(':') else {
            return ends(rest).map(|()| None);
        };
        let fits = !escaped && inner.len() <= MAX_KEY && (rest.is_empty() || rest.starts_with(' '));
        return if fits { Some(Some((inner, rest))) } else { None };
    }
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|byte| !is_key_byte(*byte)).unwrap_or(bytes.len());
    if !matches!(bytes.get(end..)?, [b':'] | [b':', b' ', ..]) {
        return Some(None);
    }
    let (name, rest) = (text.get(..end)?, text.get(end + 1..)?);
    let fits = first.is_ascii_alphabetic() && name.len() <= MAX_KEY;
    // A null is no key.
    (fits && !name.eq_ignore_ascii_case("null")).then_some(Some((name, rest)))
}

fn is_key_byte(byte: u8) -> bool {
    static ARE: [bool; 256] = {
        let mut are = [false; 256];
        let mut byte: u8 = 0;
        while byte < 128 {
            are[byte as usize] =
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'$');
            byte += 1;
        }
        are
    };
    ARE.get(usize::from(byte)).copied().unwrap_or_default()
}

/// A quoted scalar on one line: what is inside, what follows, and whether there are escapes.
fn quoted(text: &str) -> Option<(&str, &str, bool)> {
    let quote = *text.as_bytes().first()?;
    let mut escaped = false;
    let mut at = 1;
    loop {
        let found = text.get(at..)?.bytes().position(|byte| byte == quote || byte == b'\\')?;
        at += found;
        let next = text.as_bytes().get(at + 1).copied();
        match text.as_bytes().get(at)? {
            b'\\' if quote == b'\'' => at += 1,
            b'\\' if matches!(next, Some(b'"' | b'\\' | b'n' | b't')) => {
                escaped = true;
                at += 2;
            }
            b'\\' => return None,
            _ if quote == b'\'' && next == Some(b'\'') => {
                escaped = true;
                at += 2;
            }
            _ => return Some((text.get(1..at)?, text.get(at + 1..)?, escaped)),
        }
    }
}

/// Nothing but a comment may follow.
fn ends(rest: &str) -> Option<()> {
    let after = unindented(rest);
    (after.is_empty() || after.starts_with('#') && after.len() < rest.len()).then_some(())
}

fn plain(text: &str) -> Option<Outlined<'_>> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'-' if !matches!(bytes.get(1), Some(b'!'..=b'~')) => return None,
        b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|'
        | b'>' | b'\'' | b'"' | b'%' | b'@' | b'`' => return None,
        _ => {}
    }
    let mut end = text.len();
    for at in memchr::memchr2_iter(b':', b'#', bytes) {
        if bytes.get(at) == Some(&b':') {
            if matches!(bytes.get(at + 1), None | Some(b' ')) {
                return None;
            }
        } else if at > 0 && bytes.get(at - 1) == Some(&b' ') {
            end = at;
            break;
        }
    }
    let spaces = bytes.get(..end)?.iter().rev().take_while(|byte| **byte == b' ').count();
    let text = text.get(..end - spaces)?;
    // Ports, counts and users are the most of what is no text.
    if matches!(text.as_bytes(), [b'1'..=b'9', rest @ ..] if rest.len() < 9 && rest.iter().all(u8::is_ascii_digit))
    {
        return Some(Outlined::Other);
    }
    match resolve(text, Dialect::V2, false) {
        Resolved::Text => Some(Outlined::Text(text)),
        Resolved::Float(number) if !number.is_finite() => None,
        _ => Some(Outlined::Other),
    }
}

/// A flow collection of plain words and quoted texts, and no collections; what follows it.
fn flow(text: &str) -> Option<&str> {
    let is_list = text.starts_with('[');
    let close = if is_list { ']' } else { '}' };
    let mut rest = unindented(text.get(1..)?);
    if let Some(after) = rest.strip_prefix(close) {
        return Some(after);
    }
    loop {
        rest = word(rest)?;
        if !is_list {
            rest = word(unindented(rest.strip_prefix(": ")?))?;
        }
        rest = unindented(rest);
        if let Some(after) = rest.strip_prefix(close) {
            return Some(after);
        }
        rest = unindented(rest.strip_prefix(',')?);
    }
}

/// One scalar inside a flow collection; what follows it.
fn word(text: &str) -> Option<&str> {
    let first = *text.as_bytes().first()?;
    if matches!(first, b'"' | b'\'') {
        let (inner, rest, _) = quoted(text)?;
        return (inner.len() <= MAX_KEY).then_some(rest);
    }
    let end = text.bytes().position(|byte| !is_key_byte(byte))?;
    let (word, rest) = text.split_at_checked(end)?;
    let fits = first.is_ascii_alphabetic() && word.len() <= MAX_KEY;
    // A number could be no key, and neither could null.
    let digits = word.len() < 18 && word.bytes().all(|byte| byte.is_ascii_digit());
    ((fits && !word.eq_ignore_ascii_case("null")) || (digits && !word.is_empty())).then_some(rest)
}
