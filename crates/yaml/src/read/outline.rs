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
    let lines = Lines { rest: text.as_bytes() };
    // All are looked at, many at once.
    let plain = |byte: u8| is_printable(byte) | matches!(byte, b'\n');
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

/// Bytes of UTF-8, as all that is cut out of them here: the cuts are at ASCII characters.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    /// The next line without its break, left in place.
    fn peek(&self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        self.rest.get(..end)
    }

    fn take(&mut self, line: &[u8]) {
        self.rest = self.rest.get(line.len() + 1..).unwrap_or_default();
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
            if matches!(content, [] | [b'#', ..]) {
                continue;
            }
            let column = line.len() - content.len();
            if column == 0 && matches!(content, [b'%' | b'.', ..] | [b'-', b'-', b'-', ..]) {
                return None;
            }
            self.line(content, column)?;
        }
        Some(())
    }

    /// A line that is neither empty nor a comment.
    fn line(&mut self, content: &'a [u8], column: usize) -> Option<()> {
        if self.open
            && matches!(content, [b'{' | b'[', ..])
            && self.levels.last().is_some_and(|level| level.column < column)
        {
            return self.lone_flow(content);
        }
        while self.levels.last().is_some_and(|level| level.column > column) {
            self.close();
        }
        let dash = is_dash(content);
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
    fn lone_flow(&mut self, content: &'a [u8]) -> Option<()> {
        self.open = false;
        let told = self.tells();
        let found = match self.value(content, told)? {
            Outlined::Empty => Outlined::Mapping,
            other => other,
        };
        if told {
            (self.tell)(&self.path, found);
        }
        Some(())
    }

    /// Whether the entries of the innermost collection are told.
    fn tells(&self) -> bool {
        self.levels.last().is_some_and(|level| level.told)
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
    fn entry(&mut self, content: &'a [u8], column: usize) -> Option<()> {
        let (mut content, mut column) = (content, column);
        // `- - key: value`: collections that begin on one line.
        while self.levels.last().is_some_and(|level| level.form == Form::Sequence) {
            let rest = content.strip_prefix(b"-")?;
            let inner = unindented(rest);
            if is_comment(inner, rest) {
                self.open = true;
                return Some(());
            }
            if inner.len() == rest.len() {
                return None;
            }
            column += content.len() - inner.len();
            content = inner;
            self.open = true;
            if is_dash(content) {
                self.begin(Form::Sequence, column)?;
            } else if key(content)?.is_some() {
                self.begin(Form::Mapping, column)?;
            } else {
                self.open = false;
                return self.value(content, false).map(drop);
            }
        }
        let (name, rest) = key(content)??;
        let told = self.tells();
        if told && let Some(last) = self.path.last_mut() {
            *last = std::str::from_utf8(name).ok()?;
        }
        let value = unindented(rest);
        let found = if matches!(value, [] | [b'#', ..]) {
            self.open = true;
            Outlined::Open
        } else {
            self.open = false;
            self.value(value, told)?
        };
        if told {
            (self.tell)(&self.path, found);
        }
        Some(())
    }

    /// A value on the line of its key or dash; what is not told need not be known.
    #[inline]
    fn value(&mut self, text: &'a [u8], told: bool) -> Option<Outlined<'a>> {
        match text.first()? {
            b'|' | b'>' => self.block_scalar(text).map(|()| Outlined::Other),
            b'"' | b'\'' => {
                let (inner, rest, escaped) = quoted(text)?;
                ends(rest)?;
                if !told || escaped {
                    return Some(Outlined::Other);
                }
                std::str::from_utf8(inner).ok().map(Outlined::Text)
            }
            b'[' | b'{' => {
                let rest = flow(text)?;
                ends(rest)?;
                Some(if text.starts_with(b"{}") { Outlined::Empty } else { Outlined::Other })
            }
            _ => plain(text, told),
        }
    }

    fn block_scalar(&mut self, header: &[u8]) -> Option<()> {
        if !matches!(header.get(1..)?, [] | [b'-' | b'+']) {
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
            } else if content.starts_with(b"\t") {
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
fn unindented(line: &[u8]) -> &[u8] {
    let spaces = line.iter().take_while(|byte| **byte == b' ').count();
    line.get(spaces..).unwrap_or_default()
}

/// Whether an item of a sequence begins.
fn is_dash(content: &[u8]) -> bool {
    matches!(content, [b'-'] | [b'-', b' ', ..])
}

/// Whether what stands behind the spaces of a rest is nothing, or a comment.
fn is_comment(after: &[u8], rest: &[u8]) -> bool {
    after.is_empty() || after.starts_with(b"#") && after.len() < rest.len()
}

fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// Whether a line holds only characters that mean nothing but themselves.
fn is_simple(line: &[u8]) -> bool {
    line.iter().copied().all(is_printable) || are_letters(line, false)
}

fn is_simple_or_tab(line: &[u8]) -> bool {
    line.iter().copied().all(is_printable) || are_letters(line, true)
}

/// The same with letters of other scripts, but no control characters, breaks and marks of Unicode.
fn are_letters(line: &[u8], tabs: bool) -> bool {
    let is_letter = |c: char| {
        matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{10000}'..)
            || tabs && c == '\t'
    };
    std::str::from_utf8(line).is_ok_and(|line| line.chars().all(is_letter))
}

/// A key and what follows its colon; `Some(None)` if a value begins here.
#[allow(clippy::option_option, reason = "outside: whether it is plain at all")]
#[inline]
fn key(text: &[u8]) -> Option<Option<(&[u8], &[u8])>> {
    let first = *text.first()?;
    if matches!(first, b'"' | b'\'') {
        let (inner, rest, escaped) = quoted(text)?;
        let Some(rest) = rest.strip_prefix(b":") else {
            return ends(rest).map(|()| None);
        };
        let fits = !escaped && inner.len() <= MAX_KEY && matches!(rest, [] | [b' ', ..]);
        return fits.then_some(Some((inner, rest)));
    }
    let end = text.iter().position(|byte| !is_key_byte(*byte)).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    if !matches!(rest, [b':'] | [b':', b' ', ..]) {
        return Some(None);
    }
    let fits = first.is_ascii_alphabetic() && name.len() <= MAX_KEY;
    // A null is no key.
    (fits && !name.eq_ignore_ascii_case(b"null")).then_some(Some((name, rest.get(1..)?)))
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
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let quote = *text.first()?;
    let mut escaped = false;
    let mut at = 1;
    loop {
        let found = text.get(at..)?.iter().position(|byte| *byte == quote || *byte == b'\\')?;
        at += found;
        let next = text.get(at + 1).copied();
        match text.get(at)? {
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
fn ends(rest: &[u8]) -> Option<()> {
    is_comment(unindented(rest), rest).then_some(())
}

#[inline]
fn plain(text: &[u8], told: bool) -> Option<Outlined<'_>> {
    let first = text.first()?;
    match first {
        b'-' if !matches!(text.get(1), Some(b'!'..=b'~')) => return None,
        b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|'
        | b'>' | b'\'' | b'"' | b'%' | b'@' | b'`' => return None,
        _ => {}
    }
    let mut end = text.len();
    for at in memchr::memchr2_iter(b':', b'#', text) {
        if text.get(at) == Some(&b':') {
            if matches!(text.get(at + 1), None | Some(b' ')) {
                return None;
            }
        } else if at > 0 && text.get(at - 1) == Some(&b' ') {
            end = at;
            break;
        }
    }
    // No number begins with a letter.
    if !told && first.is_ascii_alphabetic() {
        return Some(Outlined::Other);
    }
    let text = text.get(..end)?.trim_ascii_end();
    // Ports, counts and users are the most of what is no text.
    if matches!(text, [b'1'..=b'9', rest @ ..] if rest.len() < 9 && rest.iter().all(u8::is_ascii_digit))
    {
        return Some(Outlined::Other);
    }
    let text = std::str::from_utf8(text).ok()?;
    match resolve(text, Dialect::V2, false) {
        Resolved::Text => Some(Outlined::Text(text)),
        Resolved::Float(number) if !number.is_finite() => None,
        _ => Some(Outlined::Other),
    }
}

/// A flow collection of plain words and quoted texts, and no collections; what follows it.
fn flow(text: &[u8]) -> Option<&[u8]> {
    let is_list = text.starts_with(b"[");
    let close = if is_list { b"]" } else { b"}" };
    let mut rest = unindented(text.get(1..)?);
    if let Some(after) = rest.strip_prefix(close) {
        return Some(after);
    }
    loop {
        rest = word(rest)?;
        if !is_list {
            rest = word(unindented(rest.strip_prefix(b": ")?))?;
        }
        rest = unindented(rest);
        if let Some(after) = rest.strip_prefix(close) {
            return Some(after);
        }
        rest = unindented(rest.strip_prefix(b",")?);
    }
}

/// One scalar inside a flow collection; what follows it.
fn word(text: &[u8]) -> Option<&[u8]> {
    let first = *text.first()?;
    if matches!(first, b'"' | b'\'') {
        let (inner, rest, _) = quoted(text)?;
        return (inner.len() <= MAX_KEY).then_some(rest);
    }
    let end = text.iter().position(|byte| !is_key_byte(*byte))?;
    let (word, rest) = text.split_at_checked(end)?;
    let fits = first.is_ascii_alphabetic() && word.len() <= MAX_KEY;
    // A number could be no key, and neither could null.
    let digits = word.len() < 18 && word.iter().all(u8::is_ascii_digit);
    ((fits && !word.eq_ignore_ascii_case(b"null")) || (digits && !word.is_empty())).then_some(rest)
}
