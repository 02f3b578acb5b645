//! Text to tokens.

use std::iter::Peekable;
use std::str::CharIndices;

use super::CelError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    /// Without its sign.
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// The longer ones first.
const SIGNS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", "[?", ".?", ".", "?", "<", ">", "+", "-", "*", "/", "%",
    "!", "(", ")", "[", "]", "{", "}", ",", ":",
];

type Chars<'a> = Peekable<CharIndices<'a>>;

/// The tokens, each with where it begins.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, CelError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        let second = rest.chars().nth(1).unwrap_or(' ');
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
            let length = number_length(rest);
            tokens.push((at, number(rest.get(..length).unwrap_or(rest), at)?));
            length
        } else if matches!(first, '"' | '\'')
            || (matches!(first, 'r' | 'R') && matches!(second, '"' | '\''))
        {
            let (value, length) = string(rest, at)?;
            tokens.push((at, Token::Text(value)));
            length
        } else if first == '_' || first.is_ascii_alphabetic() {
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            let name = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
            tokens.push((at, Token::Name(name.to_owned())));
            name.len()
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| syntax(at, &format!("unexpected {first:?}")))?;
            tokens.push((at, Token::Sign(sign)));
            sign.len()
        };
        at += length;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

pub(super) fn syntax(at: usize, message: &str) -> CelError {
    CelError::Syntax { at: at.saturating_add(1), message: message.to_owned() }
}

fn number_length(text: &str) -> usize {
    let hex = text.starts_with("0x") || text.starts_with("0X");
    let mut before = ' ';
    let end = text.char_indices().position(|(at, c)| {
        let belongs = if hex {
            c.is_ascii_hexdigit() || at == 1 || c == 'u' || c == 'U'
        } else {
            c.is_ascii_digit()
                || matches!(c, '.' | 'e' | 'E' | 'u' | 'U')
                || (matches!(c, '+' | '-') && matches!(before, 'e' | 'E'))
        };
        before = c;
        !belongs
    });
    end.unwrap_or(text.len())
}

fn number(text: &str, at: usize) -> Result<Token, CelError> {
    let wrong = || syntax(at, "not a number");
    let (digits, unsigned) = match text.strip_suffix(['u', 'U']) {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let whole = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => Some(u64::from_str_radix(hex, 16).map_err(|_| wrong())?),
        None if digits.chars().all(|c| c.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| wrong())?)
        }
        None => None,
    };
    match (whole, unsigned) {
        (Some(whole), true) => Ok(Token::Uint(whole)),
        (Some(whole), false) => Ok(Token::Int(whole)),
        (None, true) => Err(wrong()),
        (None, false) => digits.parse().map(Token::Double).map_err(|_| wrong()),
    }
}

/// A string and its length in the text, quotes included.
fn string(text: &str, at: usize) -> Result<(String, usize), CelError> {
    let raw = text.starts_with(['r', 'R']);
    let open = usize::from(raw);
    let body = text.get(open..).unwrap_or_default();
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote));
    let quote = quote.ok_or_else(|| syntax(at, "a string without quotes"))?;
    let inside = body.get(quote.len()..).unwrap_or_default();
    let mut value = String::new();
    let mut chars: Chars<'_> = inside.char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        if inside.get(offset..).is_some_and(|rest| rest.starts_with(quote)) {
            return Ok((value, open + quote.len() + offset + quote.len()));
        }
        match c {
            '\n' if quote.len() == 1 => break,
            '\\' if !raw => {
                let escaped = escape(&mut chars);
                value.push(escaped.ok_or_else(|| syntax(at, "an escape that is none"))?);
            }
            c => value.push(c),
        }
    }
    Err(syntax(at, "a string that does not end"))
}

fn escape(chars: &mut Chars<'_>) -> Option<char> {
    let (_, c) = chars.next()?;
    let mut digits = |count: usize, radix: u32, first: u32| {
        (0..count).try_fold(first, |number, _| {
            let (_, digit) = chars.next()?;
            number.checked_mul(radix)?.checked_add(digit.to_digit(radix)?)
        })
    };
    let code = match c {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => u32::from(c),
        'x' | 'X' => digits(2, 16, 0)?,
        'u' => digits(4, 16, 0)?,
        'U' => digits(8, 16, 0)?,
        '0'..='3' => digits(2, 8, c.to_digit(8)?)?,
        _ => return None,
    };
    char::from_u32(code)
}
