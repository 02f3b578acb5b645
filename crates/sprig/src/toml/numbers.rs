//! TOML's numbers and dates: first by their characters, then by their rules.

use catamaran_gotemplate::Value;

use super::scan::{Scan, Scanner, quoted, quoted_text};
use crate::casts::parse_int;
use crate::dates::toml_date;

/// What the characters of a number look like.
#[derive(Clone, Copy)]
enum Form {
    Integer,
    Float,
    Date,
}

impl Scanner<'_> {
    /// A number or a date that begins here, with a digit.
    pub fn number_or_date(&mut self) -> Scan<Value> {
        let start = self.pos;
        let first = self.next()?;
        let form =
            if first == Some('0') { self.after_zero(start)? } else { self.digits_or_date()? };
        self.value(start, form)
    }

    /// A number behind its sign, which began there.
    pub fn signed_number(&mut self, start: usize) -> Scan<Value> {
        let got = self.next()?;
        for (first, second, third) in [('i', 'n', 'f'), ('n', 'a', 'n')] {
            if got == Some(first) {
                if !self.accept(second)? || !self.accept(third)? {
                    return self.fail(format!("invalid float: '{}'", self.since(start)));
                }
                return self.value(start, Form::Float);
            }
        }
        match got {
            Some('0') => {
                if let Some(base @ ('b' | 'o' | 'x')) = self.peek()? {
                    let so_far = self.since(start);
                    return self.fail(format!(
                        "cannot use sign with non-decimal numbers: '{so_far}{base}'"
                    ));
                }
            }
            Some('.') => return self.fail("floats must start with a digit, not '.'"),
            Some('1'..='9') => {}
            other => {
                return self.fail_at(other, format!("expected a digit but got {}", quoted(other)));
            }
        }
        let form = self.decimal()?;
        self.value(start, form)
    }

    /// Digits that may turn out to be a date's.
    fn digits_or_date(&mut self) -> Scan<Form> {
        self.skip(|c| c.is_ascii_digit())?;
        let next = self.peek()?;
        match next {
            Some('-' | ':') => {
                self.skip(|c| c.is_ascii_digit() || "-:Tt .Zz+".contains(c))?;
                Ok(Form::Date)
            }
            Some('_' | '.' | 'e' | 'E') => self.decimal(),
            _ => Ok(Form::Integer),
        }
    }

    fn decimal(&mut self) -> Scan<Form> {
        self.skip(|c| c.is_ascii_digit() || c == '_')?;
        if !matches!(self.peek()?, Some('.' | 'e' | 'E')) {
            return Ok(Form::Integer);
        }
        self.skip(|c| c.is_ascii_digit() || "_.-+eE".contains(c))?;
        Ok(Form::Float)
    }

    /// Behind a zero, which may announce another base.
    fn after_zero(&mut self, start: usize) -> Scan<Form> {
        let next = self.peek()?;
        let (base, words) = match next {
            Some('0'..='9') => return self.digits_or_date(),
            Some('_' | '.' | 'e' | 'E') => return self.decimal(),
            Some('b') => (2, "a binary"),
            Some('o') => (8, "an octal"),
            Some('x') => (16, "a hexadecimal"),
            _ => return Ok(Form::Integer),
        };
        self.take(next);
        let digit = self.peek()?;
        if !digit.is_some_and(|digit| digit.is_digit(base)) {
            let (so_far, got) = (self.since(start), digit.unwrap_or('\0'));
            return self.fail(format!("not {words} number: '{so_far}{got}'"));
        }
        self.skip(|c| c.is_digit(base) || c == '_')?;
        Ok(Form::Integer)
    }

    fn value(&self, start: usize, form: Form) -> Scan<Value> {
        let text = self.since(start);
        match form {
            Form::Integer => self.integer(&text),
            Form::Float => self.float(&text),
            Form::Date => {
                let text = text.trim().replace('z', "Z").replace([' ', 't'], "T");
                match toml_date::read(&text, self.offset) {
                    Some(time) => Ok(Value::object(time)),
                    None => self.fail(format!("invalid datetime: {}", quoted_text(&text))),
                }
            }
        }
    }

    fn integer(&self, text: &str) -> Scan<Value> {
        let invalid =
            |why: &str| self.fail(format!("Invalid integer {}: {why}", quoted_text(text)));
        if !underscores_fit(text) {
            return invalid("underscores must be surrounded by digits");
        }
        if has_leading_zero(text) {
            return invalid("cannot have leading zeroes");
        }
        match parse_int(text, 0) {
            Some(number) => Ok(Value::Int64(number)),
            None => self.fail(format!("{text} is out of range for int64")),
        }
    }

    /// Also for `inf` and `nan`.
    pub fn float(&self, text: &str) -> Scan<Value> {
        let invalid = |why: &str| self.fail(format!("Invalid float {}: {why}", quoted_text(text)));
        let parts = || text.split(['.', 'e', 'E']).filter(|part| !part.is_empty());
        if !parts().all(underscores_fit) {
            return invalid("underscores must be surrounded by digits");
        }
        if parts().next().is_some_and(has_leading_zero) {
            return invalid("cannot have leading zeroes");
        }
        let behind_periods = text.split('.').skip(1);
        if !behind_periods.into_iter().all(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
            return invalid("'.' must be followed by one or more digits");
        }
        let digits = text.replace('_', "");
        let named = digits.ends_with("inf") || digits.ends_with("nan");
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() || named => Ok(Value::Float64(number)),
            Ok(_) => self.fail(format!("{text} is out of range for float64")),
            Err(_) => self.fail(format!("Invalid float value: {}", quoted_text(text))),
        }
    }
}

/// Whether every underscore stands behind a digit, and the last character is one.
fn underscores_fit(text: &str) -> bool {
    if matches!(text.trim_start_matches(['+', '-']), "nan" | "inf") {
        return true;
    }
    let mut behind_digit = false;
    for c in text.chars() {
        if c == '_' && !behind_digit {
            return false;
        }
        behind_digit = c.is_ascii_hexdigit();
    }
    behind_digit
}

fn has_leading_zero(text: &str) -> bool {
    match text.as_bytes() {
        [b'0', b'b' | b'o' | b'x', ..] => false,
        [b'0', _, ..] | [b'-' | b'+', b'0', _, ..] => true,
        _ => false,
    }
}
