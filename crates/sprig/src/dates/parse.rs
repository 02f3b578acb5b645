//! Reading a time in a layout.

use std::fmt::Write as _;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use super::layout::{MONTHS, Piece, WEEKDAYS, next_piece};
use super::{Time, find_zone};

/// What has been read so far.
#[derive(Default)]
struct Found {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i64,
    afternoon: Option<bool>,
    offset: Option<i32>,
    zone_name: Option<String>,
}

/// Why a piece does not fit: not at all, or a number out of its range.
enum Misfit {
    Form,
    Range(&'static str),
}

/// Go's own way of quoting in these errors: all that is not ASCII byte by byte.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..0x80 => quoted.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(quoted, "\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// The time that `value` names in `layout`; without a zone it is a local one. The error is Go's text.
pub(super) fn parse(layout: &str, value: &str) -> Result<Time, String> {
    let fail = |value_left: &str, wanted: &str| {
        Err(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(value),
            quote(layout),
            quote(value_left),
            quote(wanted)
        ))
    };
    let mut found = Found::default();
    let (mut rest, mut left) = (layout, value);
    loop {
        let (before, piece, behind) = next_piece(rest);
        let Some(after) = skip_text(left, before) else { return fail(left, before) };
        left = after;
        let Some(piece) = piece else {
            if !left.is_empty() {
                return Err(format!("parsing time {}: extra text: {}", quote(value), quote(left)));
            }
            break;
        };
        let shown = rest.get(before.len()..rest.len() - behind.len()).unwrap_or_default();
        match found.read(piece, left, behind) {
            Ok(after) => left = after,
            Err(Misfit::Form) => return fail(left, shown),
            Err(Misfit::Range(what)) => {
                return Err(format!("parsing time {value:?}: {what} out of range"));
            }
        }
        rest = behind;
    }
    found.time().map_err(|what| format!("parsing time {value:?}: {what} out of range"))
}

/// Steps over the literal text; spaces in it stand for any number of them.
fn skip_text<'v>(mut value: &'v str, mut text: &str) -> Option<&'v str> {
    while let Some(c) = text.chars().next() {
        if c == ' ' {
            if !value.is_empty() && !value.starts_with(' ') {
                return None;
            }
            text = text.trim_start_matches(' ');
            value = value.trim_start_matches(' ');
            continue;
        }
        value = value.strip_prefix(c)?;
        text = text.get(c.len_utf8()..)?;
    }
    Some(value)
}

/// One or two digits; `fixed`: exactly two.
fn two_digits(value: &str, fixed: bool) -> Result<(i64, &str), Misfit> {
    let count = value.bytes().take(2).take_while(u8::is_ascii_digit).count();
    if count == 0 || (fixed && count < 2) {
        return Err(Misfit::Form);
    }
    digits(value, count)
}

fn digits(value: &str, count: usize) -> Result<(i64, &str), Misfit> {
    let (head, tail) = value.split_at_checked(count).ok_or(Misfit::Form)?;
    if !head.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misfit::Form);
    }
    Ok((head.parse().map_err(|_| Misfit::Form)?, tail))
}

/// A name of a list, long or cut to three letters, in any case.
fn name<'v>(value: &'v str, names: &[&str], long: bool) -> Result<(i64, &'v str), Misfit> {
    for (index, name) in names.iter().enumerate() {
        let name = if long { name } else { name.get(..3).unwrap_or(name) };
        if let Some((head, tail)) = value.split_at_checked(name.len())
            && head.eq_ignore_ascii_case(name)
        {
            return Ok((i64::try_from(index).unwrap_or(0), tail));
        }
    }
    Err(Misfit::Form)
}

fn ranged(number: i64, low: i64, high: i64, what: &'static str) -> Result<i64, Misfit> {
    if (low..=high).contains(&number) { Ok(number) } else { Err(Misfit::Range(what)) }
}

impl Found {
    fn read<'v>(&mut self, piece: Piece, value: &'v str, behind: &str) -> Result<&'v str, Misfit> {
        let fixed = matches!(
            piece,
            Piece::ZeroMonth
                | Piece::ZeroDay
                | Piece::ZeroHour12
                | Piece::ZeroMinute
                | Piece::ZeroSecond
        );
        let rest;
        match piece {
            Piece::LongMonth | Piece::Month => {
                let (month, tail) = name(value, &MONTHS, piece == Piece::LongMonth)?;
                (self.month, rest) = (Some(month + 1), tail);
            }
            Piece::NumMonth | Piece::ZeroMonth => {
                let (month, tail) = two_digits(value, fixed)?;
                (self.month, rest) = (Some(ranged(month, 1, 12, "month")?), tail);
            }
            Piece::LongWeekday | Piece::Weekday => {
                rest = name(value, &WEEKDAYS, piece == Piece::LongWeekday)?.1;
            }
            Piece::Day | Piece::UnderDay | Piece::ZeroDay => {
                let value = if piece == Piece::UnderDay {
                    value.strip_prefix(' ').unwrap_or(value)
                } else {
                    value
                };
                let (day, tail) = two_digits(value, fixed)?;
                (self.day, rest) = (Some(day), tail);
            }
            Piece::UnderYearDay | Piece::ZeroYearDay => {
                let mut value = value;
                if piece == Piece::UnderYearDay {
                    value = value.strip_prefix(' ').unwrap_or(value);
                    value = value.strip_prefix(' ').unwrap_or(value);
                }
                let count = value.bytes().take(3).take_while(u8::is_ascii_digit).count();
                if count == 0 || (count < 3 && piece == Piece::ZeroYearDay) {
                    return Err(Misfit::Form);
                }
                let (day, tail) = digits(value, count)?;
                (self.year_day, rest) = (Some(day), tail);
            }
            Piece::Hour => {
                let (hour, tail) = two_digits(value, false)?;
                (self.hour, rest) = (ranged(hour, 0, 23, "hour")?, tail);
            }
            Piece::Hour12 | Piece::ZeroHour12 => {
                let (hour, tail) = two_digits(value, fixed)?;
                (self.hour, rest) = (ranged(hour, 0, 12, "hour")?, tail);
            }
            Piece::Minute | Piece::ZeroMinute => {
                let (minute, tail) = two_digits(value, fixed)?;
                (self.minute, rest) = (ranged(minute, 0, 59, "minute")?, tail);
            }
            Piece::Second | Piece::ZeroSecond => {
                let (second, tail) = two_digits(value, fixed)?;
                self.second = ranged(second, 0, 59, "second")?;
                rest = self.read_unasked_fraction(tail, behind)?;
            }
            Piece::LongYear => (self.year, rest) = digits(value, 4)?,
            Piece::Year => {
                let (year, tail) = digits(value, 2)?;
                (self.year, rest) = (if year >= 69 { 1900 + year } else { 2000 + year }, tail);
            }
            Piece::UpperHalf | Piece::LowerHalf => {
                let (half, tail) = value.split_at_checked(2).ok_or(Misfit::Form)?;
                self.afternoon = Some(match (piece, half) {
                    (Piece::UpperHalf, "PM") | (Piece::LowerHalf, "pm") => true,
                    (Piece::UpperHalf, "AM") | (Piece::LowerHalf, "am") => false,
                    _ => return Err(Misfit::Form),
                });
                rest = tail;
            }
            Piece::ZoneName => rest = self.read_zone_name(value)?,
            Piece::Offset { z, colons, parts } => {
                rest = self.read_offset(value, z, colons, parts)?;
            }
            Piece::Fraction { digits, trim, .. } => {
                rest = self.read_fraction(value, digits, trim)?;
            }
        }
        Ok(rest)
    }

    /// Seconds may have a fraction that the layout does not mention.
    fn read_unasked_fraction<'v>(
        &mut self,
        value: &'v str,
        behind: &str,
    ) -> Result<&'v str, Misfit> {
        let asked = matches!(next_piece(behind).1, Some(Piece::Fraction { .. }))
            && next_piece(behind).0.is_empty();
        let body = value.strip_prefix(['.', ',']).unwrap_or_default();
        let count = body.bytes().take_while(u8::is_ascii_digit).count();
        if asked || count == 0 {
            return Ok(value);
        }
        self.read_fraction(value, count, false)
    }

    fn read_fraction<'v>(
        &mut self,
        value: &'v str,
        digits: usize,
        optional: bool,
    ) -> Result<&'v str, Misfit> {
        let body = value.strip_prefix(['.', ',']);
        let count = body.map_or(0, |body| body.bytes().take_while(u8::is_ascii_digit).count());
        if optional && count == 0 {
            return Ok(value);
        }
        let used = if optional { count } else { digits };
        let (head, tail) = body.and_then(|body| body.split_at_checked(used)).ok_or(Misfit::Form)?;
        if used > count {
            return Err(Misfit::Form);
        }
        let nine: String = head.chars().chain(std::iter::repeat('0')).take(9).collect();
        self.nanosecond = nine.parse().map_err(|_| Misfit::Form)?;
        Ok(tail)
    }

    fn read_zone_name<'v>(&mut self, value: &'v str) -> Result<&'v str, Misfit> {
        let letters = value.bytes().take_while(u8::is_ascii_uppercase).count();
        if !(3..=5).contains(&letters) {
            return Err(Misfit::Form);
        }
        let (name, tail) = value.split_at(letters);
        self.zone_name = Some(name.to_owned());
        Ok(tail)
    }

    fn read_offset<'v>(
        &mut self,
        value: &'v str,
        z: bool,
        colons: bool,
        parts: u8,
    ) -> Result<&'v str, Misfit> {
        if let Some(tail) = value.strip_prefix('Z').filter(|_| z) {
            self.offset = Some(0);
            return Ok(tail);
        }
        let (sign, mut rest) = match value.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, value.strip_prefix('+').ok_or(Misfit::Form)?),
        };
        let mut seconds = 0;
        for (part, size) in [3600, 60, 1].into_iter().enumerate().take(usize::from(parts)) {
            if part > 0 && colons {
                rest = rest.strip_prefix(':').ok_or(Misfit::Form)?;
            }
            let (number, tail) = digits(rest, 2)?;
            let most = if part == 0 { 24 } else { 60 };
            seconds += ranged(number, 0, most, "time zone offset")? * size;
            rest = tail;
        }
        self.offset = i32::try_from(sign * seconds).ok();
        Ok(rest)
    }

    fn time(self) -> Result<Time, &'static str> {
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let small = |number: i64| i8::try_from(number).unwrap_or(-1);
        let year = i16::try_from(self.year).map_err(|_| "year")?;
        let (month, day) = match self.year_day {
            Some(day) => {
                let first = jiff::civil::Date::new(year, 1, 1).map_err(|_| "year")?;
                if !(1..=i64::from(first.days_in_year())).contains(&day) {
                    return Err("day-of-year");
                }
                let date = first
                    .checked_add(jiff::Span::new().days(day - 1))
                    .map_err(|_| "day-of-year")?;
                (i64::from(date.month()), i64::from(date.day()))
            }
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
        };
        let nanosecond = i32::try_from(self.nanosecond).unwrap_or(0);
        let civil = DateTime::new(
            year,
            small(month),
            small(day),
            small(hour),
            small(self.minute),
            small(self.second),
            nanosecond,
        )
        .map_err(|_| "day")?;
        let zone = match (self.offset, self.zone_name.as_deref()) {
            (Some(0), None) | (None, Some("UTC")) => TimeZone::UTC,
            (None | Some(0), Some(name)) => named_zone(name),
            (Some(seconds), _) => {
                Offset::from_seconds(seconds).map_or(TimeZone::UTC, TimeZone::fixed)
            }
            _ => find_zone("Local"),
        };
        civil.to_zoned(zone).map(Time).map_err(|_| "year")
    }
}

/// A zone that is known by its abbreviation alone: Go takes it for one without an offset, but for
/// the hours of `GMT+3`.
fn named_zone(name: &str) -> TimeZone {
    let hours = name.strip_prefix("GMT").and_then(|hours| hours.parse::<i32>().ok()).unwrap_or(0);
    // POSIX counts to the west.
    TimeZone::posix(&format!("<{name}>{}", -hours)).unwrap_or(TimeZone::UTC)
}
