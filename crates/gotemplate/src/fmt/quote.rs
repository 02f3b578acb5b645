//! Go's quoting of text (strconv), both ways.

use std::borrow::Cow;

use crate::value::Str;

/// Go's `strconv.Quote`: double quotes, escapes for what does not print or is no UTF-8.
pub fn quote(text: &Str) -> String {
    quote_bytes(text.as_bytes(), b'"', false)
}

pub(crate) fn quote_str(text: &str) -> String {
    quote_bytes(text.as_bytes(), b'"', false)
}

/// Whether Go's `unicode.IsPrint` holds: letters, marks, numbers, punctuation, symbols, and the
/// ASCII space.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    // The standard library knows the same set, but tells it only through `escape_debug`; behind
    // another character combining marks are left alone there.
    let mut text = [b'a', 0, 0, 0, 0];
    let len = c.encode_utf8(&mut text[1..]).len();
    std::str::from_utf8(&text[..=len]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

/// Splits bytes into characters; what is no UTF-8 comes byte by byte.
pub(crate) fn chars(bytes: &[u8]) -> impl Iterator<Item = Result<char, u8>> + '_ {
    bytes.utf8_chunks().flat_map(|chunk| {
        chunk.valid().chars().map(Ok).chain(chunk.invalid().iter().copied().map(Err))
    })
}

pub(crate) fn quote_bytes(bytes: &[u8], mark: u8, ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(char::from(mark));
    for c in chars(bytes) {
        match c {
            Ok(c) => escape(&mut out, c, mark, ascii),
            Err(byte) => push_hex(&mut out, 'x', u32::from(byte), 2),
        }
    }
    out.push(char::from(mark));
    out
}

/// Go's `strconv.QuoteRune`.
pub(crate) fn quote_char(c: char, ascii: bool) -> String {
    let mut out = String::from('\'');
    escape(&mut out, c, b'\'', ascii);
    out.push('\'');
    out
}

fn escape(out: &mut String, c: char, mark: u8, ascii: bool) {
    if c == char::from(mark) || c == '\\' {
        out.push('\\');
        out.push(c);
        return;
    }
    if is_print(c) && (c.is_ascii() || !ascii) {
        out.push(c);
        return;
    }
    let short = match c {
        '\x07' => 'a',
        '\x08' => 'b',
        '\x0c' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\x0b' => 'v',
        _ => {
            let code = u32::from(c);
            match code {
                0..=0x1f | 0x7f => push_hex(out, 'x', code, 2),
                0x80..=0xffff => push_hex(out, 'u', code, 4),
                _ => push_hex(out, 'U', code, 8),
            }
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

fn push_hex(out: &mut String, letter: char, code: u32, width: usize) {
    use std::fmt::Write as _;
    let _ = write!(out, "\\{letter}{code:0width$x}");
}

/// Whether the text can stand between back quotes: one line, no control characters but tab.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    chars(bytes).all(|c| match c {
        Ok('\t') => true,
        Ok('\u{feff}' | '`' | '\x7f') | Err(_) => false,
        Ok(c) => c >= ' ',
    })
}

/// Go's `strconv.Unquote` of a literal in double or back quotes; `None` = invalid syntax.
pub(crate) fn unquote(literal: &[u8]) -> Option<Cow<'_, [u8]>> {
    if let [b'`', raw @ .., b'`'] = literal {
        if memchr::memchr(b'\r', raw).is_none() {
            return Some(raw.into());
        }
        return Some(raw.iter().copied().filter(|byte| *byte != b'\r').collect());
    }
    if let [b'"', plain @ .., b'"'] = literal
        && plain.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'"'))
    {
        return Some(plain.into());
    }
    let literal = String::from_utf8_lossy(literal);
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (unit, tail) = unquote_char(rest, '"')?;
        match unit {
            Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => out.push(byte),
        }
        rest = tail;
    }
    Some(out.into())
}

/// One unit of a quoted literal: `\x` and octal escapes give bytes, all else characters.
#[derive(Debug, PartialEq)]
pub(crate) enum Unit {
    Char(char),
    Byte(u8),
}

/// The first unit of a quoted text and what follows it; `None` = invalid syntax.
pub(crate) fn unquote_char(text: &str, mark: char) -> Option<(Unit, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == mark || first == '\n' {
        return None;
    }
    if first != '\\' {
        return Some((Unit::Char(first), chars.as_str()));
    }
    let letter = chars.next()?;
    let rest = chars.as_str();
    let simple = |c: char| Some((Unit::Char(c), rest));
    match letter {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' => simple('\\'),
        '\'' | '"' if letter == mark => simple(letter),
        'x' => numeric(rest, 2, 16).and_then(|(n, rest)| Some((byte(n)?, rest))),
        'u' => numeric(rest, 4, 16).and_then(|(n, rest)| Some((character(n)?, rest))),
        'U' => numeric(rest, 8, 16).and_then(|(n, rest)| Some((character(n)?, rest))),
        '0'..='7' => {
            let digits = text.get(1..)?;
            numeric(digits, 3, 8).and_then(|(n, rest)| Some((byte(n)?, rest)))
        }
        _ => None,
    }
}

fn numeric(text: &str, width: usize, radix: u32) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(width)?;
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some((u32::from_str_radix(digits, radix).ok()?, rest))
}

fn byte(n: u32) -> Option<Unit> {
    u8::try_from(n).ok().map(Unit::Byte)
}

fn character(n: u32) -> Option<Unit> {
    char::from_u32(n).map(Unit::Char)
}
