//! Strings as text: cases, words, abbreviations, wrapping.

use catamaran_gotemplate::{Ctx, FuncError, Value};

use crate::args::{Outcome, announce, any, bytes, chars, int, slice_bounds, string, text};
use crate::strings::is_space;
use crate::words;

items! {
    /// The text in upper case.
    sprig "TEXT -> string", r#"{{ upper "web" }}"# => "WEB";
    "upper"(String) => |ctx, args| changed(ctx, args, |text| map_chars(text, upper));
    /// The text in lower case.
    sprig "TEXT -> string", r#"{{ lower "WEB" }}"# => "web";
    "lower"(String) => |ctx, args| changed(ctx, args, |text| map_chars(text, lower));
    /// The first letter of every word in upper case.
    sprig "TEXT -> string", r#"{{ title "hello world" }}"# => "Hello World";
    "title"(String) => |ctx, args| changed(ctx, args, title);
    /// The first letter of every word in lower case.
    sprig "TEXT -> string", r#"{{ untitle "Hello World" }}"# => "hello world";
    "untitle"(String) => |ctx, args| {
        charge_letters(ctx, text(args, 0).len())?;
        let mut at_start = true;
        let out: String = chars(args, 0).chars().map(|c| {
            let changed = if at_start && !is_space(c) { lower(c) } else { c };
            at_start = is_space(c);
            changed
        }).collect();
        string(ctx, out)
    };
    /// Upper case for lower case and the reverse; the first letter of a word becomes upper case.
    sprig "TEXT -> string", r#"{{ swapcase "Hello World" }}"# => "hELLO wORLD";
    "swapcase"(String) => |ctx, args| {
        charge_letters(ctx, text(args, 0).len())?;
        let mut after_space = true;
        let out: String = chars(args, 0).chars().map(|c| {
            if c.is_uppercase() {
                after_space = false;
                lower(c)
            } else if c.is_lowercase() {
                let title = std::mem::take(&mut after_space);
                if title { title_form(c) } else { upper(c) }
            } else {
                after_space = is_space(c);
                c
            }
        }).collect();
        string(ctx, out)
    };
    /// The first letters of all words.
    sprig "TEXT -> string", r#"{{ initials "Hello World" }}"# => "HW";
    "initials"(String) => |ctx, args| {
        charge_letters(ctx, text(args, 0).len())?;
        // Byte by byte, read as Latin-1, as in Helm.
        let mut after_gap = true;
        let out: String = bytes(args, 0).iter().map(|byte| char::from(*byte)).filter(|c| {
            let first = after_gap && !is_space(*c);
            after_gap = is_space(*c);
            first
        }).collect();
        string(ctx, out)
    };
    /// The words, which `_`, `-` and spaces part, as `CamelCase`.
    sprig "TEXT -> string", r#"{{ camelcase "http_server" }}"# => "HttpServer";
    "camelcase"(String) => |ctx, args| changed(ctx, args, words::pascal);
    /// The words as `snake_case`: in lower case with `_` between them.
    sprig "TEXT -> string", r#"{{ snakecase "HttpServer" }}"# => "http_server";
    "snakecase"(String) => |ctx, args| changed(ctx, args, |text| words::separate(text, '_'));
    /// The words as `kebab-case`: in lower case with `-` between them.
    sprig "TEXT -> string", r#"{{ kebabcase "HttpServer" }}"# => "http-server";
    "kebabcase"(String) => |ctx, args| changed(ctx, args, |text| words::separate(text, '-'));
    /// Cuts a string to a width, with `...` at the end.
    sprig "WIDTH TEXT -> string", r#"{{ abbrev 8 "hello world" }}"# => "hello...";
    "abbrev"(Int, String) => |ctx, args| {
        let width = int(args, 0);
        if width < 4 { return Ok(any(args, 1).clone()); }
        abbreviate(ctx, bytes(args, 1), 0, width)
    };
    /// Cuts a string at both ends, with `...` there.
    sprig "OFFSET WIDTH TEXT -> string",
        r#"{{ abbrevboth 5 10 "1234 5678 9123" }}"# => "...5678...";
    "abbrevboth"(Int, Int, String) => |ctx, args| {
        let (left, right) = (int(args, 0), int(args, 1));
        if right < 4 || (left > 0 && right < 7) { return Ok(any(args, 2).clone()); }
        abbreviate(ctx, bytes(args, 2), left, right)
    };
    /// Breaks text into lines at spaces; longer words stay whole.
    sprig "WIDTH TEXT -> string", r#"{{ wrap 5 "one two three" }}"# => "one\ntwo\nthree";
    "wrap"(Int, String) => |ctx, args| wrap(ctx, bytes(args, 1), int(args, 0), b"\n", false);
    /// As `wrap`, with a string between the lines, and longer words are cut.
    sprig "WIDTH SEPARATOR TEXT -> string",
        r#"{{ wrapWith 5 "/" "one two 12345678" }}"# => "one/two/12345/678";
    "wrapWith"(Int, String, String) => |ctx, args| {
        let between = if text(args, 1).is_empty() { b"\n" } else { bytes(args, 1) };
        wrap(ctx, bytes(args, 2), int(args, 0), between, true)
    };
}

/// Changes case letter by letter: a letter may take up to three bytes where it took one, and as many
/// steps to look up.
fn charge_letters(ctx: &mut Ctx, length: usize) -> Result<(), FuncError> {
    announce(ctx, length.saturating_mul(3))?;
    ctx.meter.charge_steps(length as u64 * 2)
}

fn changed(ctx: &mut Ctx, args: &[Value], change: impl Fn(&str) -> String) -> Outcome {
    charge_letters(ctx, text(args, 0).len())?;
    string(ctx, change(&chars(args, 0)))
}

fn map_chars(text: &str, change: fn(char) -> char) -> String {
    text.chars().map(change).collect()
}

/// One character to one, as Go does: what would become several stays as it is.
pub(crate) fn upper(c: char) -> char {
    // Greek letters over an iota, whose capital is two characters beside one of its own.
    let shift = match c {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => return single(c, c.to_uppercase()),
    };
    char::from_u32(u32::from(c) + shift).unwrap_or(c)
}

/// The form that begins a word: of a few pairs in one character it is not the capital one.
fn title_form(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => c,
        c => upper(c),
    }
}

/// One character to one, as Go does.
pub(crate) fn lower(c: char) -> char {
    // The only character whose small form is several: Go has `i` for it.
    if c == '\u{130}' { 'i' } else { single(c, c.to_lowercase()) }
}

fn single(c: char, mut changed: impl Iterator<Item = char>) -> char {
    match (changed.next(), changed.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

fn title(text: &str) -> String {
    let mut before = ' ';
    text.chars()
        .map(|c| {
            let starts = is_separator(before);
            before = c;
            if starts { title_form(c) } else { c }
        })
        .collect()
}

/// What Go's `strings.Title` takes for the end of a word.
fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        !(c.is_ascii_alphanumeric() || c == '_')
    } else {
        !c.is_alphanumeric() && is_space(c)
    }
}

fn slice(whole: &[u8], start: i64, end: i64) -> Result<&[u8], FuncError> {
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| whole.get(start..end));
    part.ok_or_else(|| slice_bounds(start, end, whole.len(), true))
}

fn abbreviate(ctx: &mut Ctx, whole: &[u8], offset: i64, width: i64) -> Outcome {
    let length = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    if length <= width {
        return string(ctx, whole);
    }
    let mut offset = offset.min(length);
    // Wraps, as in Go.
    if length.wrapping_sub(offset) < width - 3 {
        offset = length - (width - 3);
    }
    let dots = b"...".as_slice();
    let out = if offset <= 4 {
        [slice(whole, 0, width - 3)?, dots].concat()
    } else if width < 7 {
        Vec::new()
    } else if offset + width - 3 < length {
        // What is left is cut once more from the left edge.
        [dots, slice(whole, offset, offset + width - 6)?, dots].concat()
    } else {
        [dots, slice(whole, length - (width - 3), length)?].concat()
    };
    string(ctx, out)
}

fn wrap(ctx: &mut Ctx, whole: &[u8], width: i64, between: &[u8], cut: bool) -> Outcome {
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let breaks = whole.len() / width.min(whole.len().max(1)) + 1;
    announce(ctx, whole.len().saturating_add(breaks.saturating_mul(between.len())))?;
    ctx.meter.charge_scan(whole.len())?;
    let mut out = Vec::with_capacity(whole.len());
    let mut rest = whole;
    while rest.len() > width {
        if let Some(after) = rest.strip_prefix(b" ") {
            rest = after;
            continue;
        }
        let (line, after) = rest.split_at(width);
        let space = rest.get(..=width).and_then(|part| memchr::memrchr(b' ', part));
        let end =
            space.or_else(|| memchr::memchr(b' ', after).filter(|_| !cut).map(|at| width + at));
        match end {
            Some(end) => {
                out.extend_from_slice(rest.get(..end).unwrap_or_default());
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            None if cut => {
                out.extend_from_slice(line);
                rest = after;
            }
            None => break,
        }
        out.extend_from_slice(between);
    }
    out.extend_from_slice(rest);
    string(ctx, out)
}
