//! The format language of `printf`.

use super::print::Printer;
use super::scalar::Flags;
use crate::error::FuncError;
use crate::value::Value;

/// Widths, precisions and argument numbers beyond this are refused, as in Go.
const MAX_NUMBER: usize = 1_000_000;

/// A walk through a format string.
pub(super) struct Format<'f, 'h> {
    pub printer: Printer<'h>,
    text: &'f [u8],
    args: &'f [Value],
    at: usize,
    arg: usize,
    /// An explicit index was used somewhere: no complaint about extra arguments.
    reordered: bool,
    good_index: bool,
    after_index: bool,
}

impl<'f, 'h> Format<'f, 'h> {
    pub fn new(printer: Printer<'h>, text: &'f [u8], args: &'f [Value]) -> Self {
        let (at, arg) = (0, 0);
        let (reordered, good_index, after_index) = (false, true, false);
        Self { printer, text, args, at, arg, reordered, good_index, after_index }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'f [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub fn run(&mut self) -> Result<(), FuncError> {
        while self.at < self.text.len() {
            self.good_index = true;
            let rest = self.rest();
            let text = rest.split(|byte| *byte == b'%').next().unwrap_or_default();
            self.printer.w.out.extend_from_slice(text);
            self.at += text.len();
            if self.peek().is_none() {
                break;
            }
            self.at += 1;
            if !self.string() {
                self.directive()?;
            }
            self.printer.check()?;
        }
        self.extra()
    }

    /// `%s` and `%v` of a string, which nearly all are; `false` if it is not that.
    fn string(&mut self) -> bool {
        let (Some(b's' | b'v'), Some(Value::String(text))) = (self.peek(), self.args.get(self.arg))
        else {
            return false;
        };
        self.printer.w.out.extend_from_slice(text.as_bytes());
        (self.at, self.arg) = (self.at + 1, self.arg + 1);
        true
    }

    /// What stands behind one percent sign.
    fn directive(&mut self) -> Result<(), FuncError> {
        self.after_index = false;
        self.flags();
        if self.peek().is_some_and(|c| c.is_ascii_lowercase()) && self.arg < self.args.len() {
            return self.verb();
        }
        self.index();
        self.width();
        self.precision();
        if !self.after_index {
            self.index();
        }
        if self.peek().is_none() {
            self.printer.w.push_str("%!(NOVERB)");
            return Ok(());
        }
        self.verb()
    }

    fn flags(&mut self) {
        let flags = &mut self.printer.w.flags;
        *flags = Flags::default();
        while let Some(c) = self.text.get(self.at) {
            match c {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
    }

    fn width(&mut self) {
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.number_from_args() {
                Some(width) => {
                    self.printer.w.flags.width = Some(width.unsigned_abs());
                    if width < 0 {
                        self.printer.w.flags.minus = true;
                        self.printer.w.flags.zero = false;
                    }
                }
                None => self.printer.w.push_str("%!(BADWIDTH)"),
            }
            self.after_index = false;
            return;
        }
        let width = self.number();
        self.printer.w.flags.width = width;
        if self.after_index && width.is_some() {
            self.good_index = false;
        }
    }

    fn precision(&mut self) {
        // A point at the very end is taken for the verb.
        if self.peek() != Some(b'.') || self.at + 1 >= self.text.len() {
            return;
        }
        self.at += 1;
        if self.after_index {
            self.good_index = false;
        }
        self.index();
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.number_from_args() {
                Some(precision) if precision >= 0 => {
                    self.printer.w.flags.precision = Some(precision.unsigned_abs());
                }
                _ => self.printer.w.push_str("%!(BADPREC)"),
            }
            self.after_index = false;
        } else {
            self.printer.w.flags.precision = Some(self.number().unwrap_or(0));
        }
    }

    /// `[n]`
    fn index(&mut self) {
        self.after_index = false;
        if self.peek() != Some(b'[') {
            return;
        }
        self.reordered = true;
        let rest = self.rest();
        let Some(end) = rest.iter().position(|c| *c == b']').filter(|_| rest.len() >= 3) else {
            self.good_index = false;
            self.at += 1;
            return;
        };
        let digits = rest.get(1..end).unwrap_or_default();
        self.at += end + 1;
        let number = parse_number(digits).filter(|(_, used)| *used == digits.len());
        self.after_index = number.is_some();
        match number.and_then(|(number, _)| number.checked_sub(1)) {
            Some(index) if index < self.args.len() => self.arg = index,
            _ => self.good_index = false,
        }
    }

    fn number(&mut self) -> Option<usize> {
        let rest = self.rest();
        if let Some((number, used)) = parse_number(rest) {
            self.at += used;
            return Some(number);
        }
        if rest.first().is_some_and(u8::is_ascii_digit) {
            // Too large a number swallows the rest of the format.
            self.at = self.text.len();
        }
        None
    }

    fn number_from_args(&mut self) -> Option<isize> {
        let value = self.args.get(self.arg)?;
        self.arg += 1;
        let number = value.as_int().or_else(|| i64::try_from(value.as_uint()?).ok())?;
        let number = isize::try_from(number).ok()?;
        (number.unsigned_abs() <= MAX_NUMBER).then_some(number)
    }

    fn verb(&mut self) -> Result<(), FuncError> {
        let rest = self.rest();
        let (verb, size) = first_char(rest);
        self.at += size;
        let printer = &mut self.printer;
        if verb == '%' {
            printer.w.push_str("%");
        } else if !self.good_index {
            printer.w.push_str(&format!("%!{verb}(BADINDEX)"));
        } else if let Some(arg) = self.args.get(self.arg) {
            self.arg += 1;
            if verb == 'v' {
                let flags = &mut printer.w.flags;
                flags.sharp_v = std::mem::take(&mut flags.sharp);
                flags.plus_v = std::mem::take(&mut flags.plus);
            }
            printer.operand(arg, verb)?;
        } else {
            printer.w.push_str(&format!("%!{verb}(MISSING)"));
        }
        Ok(())
    }

    /// `%!(EXTRA int=2)`
    fn extra(&mut self) -> Result<(), FuncError> {
        if self.reordered || self.arg >= self.args.len() {
            return Ok(());
        }
        self.printer.w.flags = Flags::default();
        self.printer.w.push_str("%!(EXTRA ");
        for (i, arg) in self.args.iter().skip(self.arg).enumerate() {
            if i > 0 {
                self.printer.w.push_str(", ");
            }
            if arg.is_nil() {
                self.printer.w.push_str("<nil>");
            } else {
                self.printer.typed(arg)?;
            }
        }
        self.printer.w.push_str(")");
        Ok(())
    }
}

/// Leading digits as a number, and how many there were.
fn parse_number(text: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    let mut used = 0;
    for digit in text.iter().take_while(|c| c.is_ascii_digit()) {
        if number > MAX_NUMBER {
            return None;
        }
        number = number * 10 + usize::from(digit - b'0');
        used += 1;
    }
    (used > 0).then_some((number, used))
}

fn first_char(text: &[u8]) -> (char, usize) {
    match super::quote::chars(text.get(..4.min(text.len())).unwrap_or_default()).next() {
        Some(Ok(c)) => (c, c.len_utf8()),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}
