//! How a string is written: which style it can have, which it gets.

use super::look::Look;
use crate::Dialect;
use crate::resolve::{Resolved, is_base60, resolve};

/// The ways to write a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// What the characters of a string allow.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // independent findings
pub(super) struct Analysis {
    pub multiline: bool,
    plain: bool,
    single_quoted: bool,
    block: bool,
}

/// Whether a character can be printed as it is. Beyond U+FFFF none can: so it is in Helm.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

impl Analysis {
    pub fn of(text: &str, look: Look, dialect: Dialect) -> Self {
        if look.is_plain() && !text.is_empty() {
            return Self::of_plain(text, look);
        }
        let Some(first) = text.chars().next() else {
            return Self { multiline: false, plain: true, single_quoted: true, block: false };
        };
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let mut found = Found::default();
        let mut before = ' ';
        let mut chars = text.chars().peekable();
        let mut at_start = true;
        while let Some(c) = chars.next() {
            let blank_follows = chars.peek().is_none_or(|next| is_blank(*next));
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"'
                | '%' | '@' | '`'
                    if at_start =>
                {
                    true
                }
                '?' | '-' if at_start => blank_follows,
                ':' => blank_follows,
                '#' => is_blank(before) || is_break(before) || before == '\0',
                _ => false,
            };
            if c == '\t' {
                found.tab = true;
            } else if !is_printable(c) {
                found.special = true;
            }
            found.break_space |= c == ' ' && !at_start && is_break(before);
            found.space_break |= is_break(c) && !at_start && before == ' ';
            found.breaks |= is_break(c);
            before = c;
            at_start = false;
        }
        let last = before;
        // Version 2 takes a tab for a special character, version 3 only as nothing for quotes.
        let special = found.special || (found.tab && dialect == Dialect::V2);
        let white_ends = [first, last].iter().any(|&c| c == ' ' || is_break(c));
        let closed = found.space_break || special;
        let unquotable = found.break_space || found.tab || closed;
        Self {
            multiline: found.breaks,
            plain: !(white_ends || unquotable || found.breaks || indicators),
            single_quoted: !unquotable,
            block: !(last == ' ' || closed),
        }
    }
}

impl Analysis {
    /// The same for printable ASCII and newlines.
    fn of_plain(text: &str, look: Look) -> Self {
        let bytes = text.as_bytes();
        let (first, last) = (bytes.first().copied(), bytes.last().copied());
        let mut indicators = match first {
            Some(
                b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
                | b'"' | b'%' | b'@' | b'`',
            ) => true,
            Some(b'?' | b'-') => matches!(bytes.get(1), None | Some(b' ')),
            _ => false,
        };
        indicators |= last == Some(b':') || text.starts_with("---") || text.starts_with("...");
        let (mut break_space, mut space_break) = (false, false);
        if look.has_newlines() || (look.has_indicators() && look.has_spaces()) {
            for pair in bytes.windows(2) {
                match pair {
                    [b'\n', b' '] => break_space = true,
                    [b' ', b'\n'] => space_break = true,
                    [b':', b' '] | [b' ' | b'\n', b'#'] => indicators = true,
                    _ => {}
                }
            }
        }
        let white_ends = [first, last].iter().any(|end| matches!(end, Some(b' ' | b'\n')));
        Self {
            multiline: look.has_newlines(),
            plain: !(white_ends || break_space || space_break || look.has_newlines() || indicators),
            single_quoted: !(break_space || space_break),
            block: !(last == Some(b' ') || space_break),
        }
    }
}

#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // independent findings
struct Found {
    breaks: bool,
    special: bool,
    tab: bool,
    break_space: bool,
    space_break: bool,
}

/// Whether the text, written plain, is read back as this text.
fn reads_as_text(text: &str, dialect: Dialect) -> bool {
    let old_bool =
        dialect == Dialect::V3 && matches!(resolve(text, Dialect::V2, false), Resolved::Bool(_));
    resolve(text, dialect, true) == Resolved::Text && !is_base60(text) && !old_bool
}

/// The style of a string; `key`: it is written as a key in front of `:`.
pub(super) fn choose(text: &str, analysis: &Analysis, key: bool, dialect: Dialect) -> Style {
    let mut style = if text.contains('\n') {
        Style::Literal
    } else if reads_as_text(text, dialect) {
        Style::Plain
    } else {
        Style::DoubleQuoted
    };
    if key && analysis.multiline {
        style = Style::DoubleQuoted;
    }
    if style == Style::Plain && !analysis.plain {
        style = Style::SingleQuoted;
    }
    let impossible = match style {
        Style::SingleQuoted => !analysis.single_quoted,
        Style::Literal => !analysis.block || key,
        Style::Plain | Style::DoubleQuoted => false,
    };
    if impossible { Style::DoubleQuoted } else { style }
}
