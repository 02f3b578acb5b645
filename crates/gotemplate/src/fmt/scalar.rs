//! Single numbers, strings and characters under flags, width and precision.

use super::float::format_float;
use super::quote::{can_backquote, chars, is_print, quote_bytes, quote_char};

/// The flags of one verb.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Flags {
    pub plus: bool,
    pub minus: bool,
    pub sharp: bool,
    pub space: bool,
    pub zero: bool,
    /// `%+v`
    pub plus_v: bool,
    /// `%#v`
    pub sharp_v: bool,
    pub width: Option<usize>,
    pub precision: Option<usize>,
}

/// A buffer with the flags of the verb at work.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub out: Vec<u8>,
    pub flags: Flags,
}

impl Writer {
    pub fn push_str(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub fn push_char(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }

    fn padding(&mut self, count: usize) {
        let fill = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        self.out.resize(self.out.len() + count, fill);
    }

    /// Writes a text, padded to the width.
    pub fn pad(&mut self, text: &[u8]) {
        let Some(width) = self.flags.width else {
            return self.out.extend_from_slice(text);
        };
        let missing = width.saturating_sub(rune_count(text));
        if self.flags.minus {
            self.out.extend_from_slice(text);
            self.padding(missing);
        } else {
            self.padding(missing);
            self.out.extend_from_slice(text);
        }
    }

    fn pad_with_spaces(&mut self, text: &[u8]) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }

    fn truncate<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let Some(precision) = self.flags.precision else { return text };
        let end = chars(text).take(precision).map(|c| c.map_or(1, char::len_utf8)).sum::<usize>();
        text.get(..end).unwrap_or(text)
    }

    pub fn text(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        self.pad(text);
    }

    pub fn quoted(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        if self.flags.sharp && can_backquote(text) {
            let mut raw = Vec::with_capacity(text.len() + 2);
            raw.push(b'`');
            raw.extend_from_slice(text);
            raw.push(b'`');
            self.pad(&raw);
            return;
        }
        let quoted = quote_bytes(text, b'"', self.flags.plus);
        self.pad(quoted.as_bytes());
    }

    /// `%x` of a text or of bytes.
    pub fn hex_text(&mut self, text: &[u8], upper: bool) {
        let length = self.flags.precision.map_or(text.len(), |p| p.min(text.len()));
        let text = text.get(..length).unwrap_or(text);
        if text.is_empty() {
            self.padding(self.flags.width.unwrap_or(0));
            return;
        }
        let prefix = if upper { "0X" } else { "0x" };
        let mut hex = String::with_capacity(text.len() * 2 + 2);
        for (i, byte) in text.iter().enumerate() {
            if self.flags.space && i > 0 {
                hex.push(' ');
            }
            if self.flags.sharp && (i == 0 || self.flags.space) {
                hex.push_str(prefix);
            }
            let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
            for nibble in [byte >> 4, byte & 15] {
                hex.extend(digits.get(usize::from(nibble)).copied().map(char::from));
            }
        }
        self.pad(hex.as_bytes());
    }

    pub fn integer(&mut self, magnitude: u64, negative: bool, base: u32, verb: char) {
        let flags = self.flags;
        let mut least = 0;
        if let Some(precision) = flags.precision {
            least = precision;
            if precision == 0 && magnitude == 0 {
                let zero = std::mem::take(&mut self.flags.zero);
                self.padding(flags.width.unwrap_or(0));
                self.flags.zero = zero;
                return;
            }
        } else if let Some(width) = flags.width.filter(|_| flags.zero && !flags.minus) {
            least = width.saturating_sub(usize::from(negative || flags.plus || flags.space));
        }
        let digits = digits(magnitude, base, verb == 'X');
        let mut text = String::with_capacity(least.max(digits.len()) + 4);
        if negative {
            text.push('-');
        } else if flags.plus {
            text.push('+');
        } else if flags.space {
            text.push(' ');
        }
        if verb == 'O' {
            text.push_str("0o");
        }
        if flags.sharp {
            match base {
                2 => text.push_str("0b"),
                8 if least <= digits.len() && !digits.starts_with('0') => text.push('0'),
                16 => text.push_str(if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        text.extend(std::iter::repeat_n('0', least.saturating_sub(digits.len())));
        text.push_str(&digits);
        self.pad_with_spaces(text.as_bytes());
    }

    /// `%U`; negative numbers wrap as in Go.
    pub fn unicode(&mut self, code: u64) {
        let least = self.flags.precision.map_or(4, |p| p.max(4));
        let digits = format!("{code:X}");
        let missing = least.saturating_sub(digits.len());
        let mut text = format!("U+{}{digits}", "0".repeat(missing));
        if self.flags.sharp {
            let c = u32::try_from(code).ok().and_then(char::from_u32).filter(|c| is_print(*c));
            text.extend(c.map(|c| format!(" '{c}'")));
        }
        self.pad_with_spaces(text.as_bytes());
    }

    /// `%c`
    pub fn character(&mut self, code: u64) {
        self.pad(rune(code).encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// `%q` of a number
    pub fn quoted_character(&mut self, code: u64) {
        let text = quote_char(rune(code), self.flags.plus);
        self.pad(text.as_bytes());
    }

    pub fn float(&mut self, value: f64, verb: u8, precision: Option<usize>) {
        let precision = self.flags.precision.or(precision);
        let flags = self.flags;
        let mut text = format_float(value, verb, precision);
        if !text.starts_with(['-', '+']) {
            text.insert(0, '+');
        }
        if flags.space && text.starts_with('+') && !flags.plus {
            text.replace_range(..1, " ");
        }
        if !value.is_finite() {
            let start = usize::from(value.is_nan() && !flags.space && !flags.plus);
            self.pad_with_spaces(text.as_bytes().get(start..).unwrap_or_default());
            return;
        }
        if flags.sharp && verb != b'b' {
            text = with_point(&text, verb, precision);
        }
        if flags.plus || !text.starts_with('+') {
            if let Some(width) = flags.width.filter(|_| flags.zero && !flags.minus)
                && width > text.len()
            {
                self.out.extend(text.bytes().take(1));
                self.padding(width - text.len());
                self.out.extend(text.bytes().skip(1));
                return;
            }
            self.pad(text.as_bytes());
            return;
        }
        self.pad(text.as_bytes().get(1..).unwrap_or_default());
    }
}

/// The `#` flag: a decimal point always, and trailing zeros for `%g`.
fn with_point(text: &str, verb: u8, precision: Option<usize>) -> String {
    let mut digits = match verb {
        b'g' | b'G' | b'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let marks: &[char] = if matches!(verb, b'x' | b'X') { &['p', 'P'] } else { &['e', 'E'] };
    let (number, tail) = text.split_at(text.find(marks).unwrap_or(text.len()));
    let mut number = number.to_owned();
    let mut seen = false;
    for c in number.chars().skip(1).filter(|c| *c != '.') {
        seen |= c != '0';
        if seen {
            digits = digits.saturating_sub(1);
        }
    }
    if !number.contains('.') {
        if number.len() == 2 && number.ends_with('0') {
            digits = digits.saturating_sub(1);
        }
        number.push('.');
    }
    number.extend(std::iter::repeat_n('0', digits));
    number + tail
}

fn digits(magnitude: u64, base: u32, upper: bool) -> String {
    match (base, upper) {
        (2, _) => format!("{magnitude:b}"),
        (8, _) => format!("{magnitude:o}"),
        (16, false) => format!("{magnitude:x}"),
        (16, true) => format!("{magnitude:X}"),
        _ => magnitude.to_string(),
    }
}

fn rune(code: u64) -> char {
    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn rune_count(text: &[u8]) -> usize {
    if text.is_ascii() { text.len() } else { chars(text).count() }
}
