//! Go's layouts: a date is written as the reference time would be, Mon Jan 2 15:04:05 MST 2006.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::Time;

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A piece of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperHalf,
    LowerHalf,
    ZoneName,
    Offset {
        z: bool,
        colons: bool,
        parts: u8,
    },
    /// A separator and so many digits; `trim`: zeros at the end are left out.
    Fraction {
        separator: char,
        digits: usize,
        trim: bool,
    },
}

/// Cuts a layout at its first piece: the text in front, the piece, what is behind.
pub(super) fn next_piece(layout: &str) -> (&str, Option<Piece>, &str) {
    for (at, _) in layout.char_indices() {
        let rest = layout.get(at..).unwrap_or_default();
        if let Some((piece, length)) = piece_at(rest) {
            let skip = usize::from(piece == Piece::LongYear && rest.starts_with('_'));
            let before = layout.get(..at + skip).unwrap_or_default();
            return (before, Some(piece), rest.get(length + skip..).unwrap_or_default());
        }
        if let Some((piece, length)) = fraction_at(rest) {
            return (
                layout.get(..at).unwrap_or_default(),
                Some(piece),
                rest.get(length..).unwrap_or_default(),
            );
        }
    }
    (layout, None, "")
}

fn piece_at(rest: &str) -> Option<(Piece, usize)> {
    const OFFSETS: [(&str, bool, u8); 5] = [
        ("070000", false, 3),
        ("07:00:00", true, 3),
        ("0700", false, 2),
        ("07:00", true, 2),
        ("07", false, 1),
    ];
    const PIECES: [(&str, Piece); 25] = [
        ("January", Piece::LongMonth),
        ("Monday", Piece::LongWeekday),
        ("MST", Piece::ZoneName),
        ("01", Piece::ZeroMonth),
        ("002", Piece::ZeroYearDay),
        ("02", Piece::ZeroDay),
        ("03", Piece::ZeroHour12),
        ("04", Piece::ZeroMinute),
        ("05", Piece::ZeroSecond),
        ("06", Piece::Year),
        ("15", Piece::Hour),
        ("1", Piece::NumMonth),
        ("2006", Piece::LongYear),
        ("2", Piece::Day),
        ("_2006", Piece::LongYear),
        ("_2", Piece::UnderDay),
        ("__2", Piece::UnderYearDay),
        ("3", Piece::Hour12),
        ("4", Piece::Minute),
        ("5", Piece::Second),
        ("PM", Piece::UpperHalf),
        ("pm", Piece::LowerHalf),
        ("Jan", Piece::Month),
        ("Mon", Piece::Weekday),
        ("", Piece::Day),
    ];
    if let Some(offset) = rest.strip_prefix(['Z', '-']) {
        let found = OFFSETS.iter().find(|(text, ..)| offset.starts_with(text));
        let z = rest.starts_with('Z');
        return found.map(|(text, colons, parts)| {
            (Piece::Offset { z, colons: *colons, parts: *parts }, text.len() + 1)
        });
    }
    let (text, piece) =
        PIECES.iter().find(|(text, _)| !text.is_empty() && rest.starts_with(text))?;
    let short_name = matches!(piece, Piece::Month | Piece::Weekday);
    let behind = rest.get(text.len()..).unwrap_or_default();
    if short_name && behind.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let length = if *text == "_2006" { 4 } else { text.len() };
    Some((*piece, length))
}

fn fraction_at(rest: &str) -> Option<(Piece, usize)> {
    let separator = rest.chars().next().filter(|c| matches!(c, '.' | ','))?;
    let body = rest.get(1..)?;
    let digit = body.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let digits = body.chars().take_while(|c| *c == digit).count();
    let ends = !body.get(digits..)?.starts_with(|c: char| c.is_ascii_digit());
    ends.then_some((Piece::Fraction { separator, digits, trim: digit == '9' }, digits + 1))
}

/// The time in that layout.
pub(super) fn format(time: &Time, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    while !rest.is_empty() {
        let (before, piece, behind) = next_piece(rest);
        out.push_str(before);
        let Some(piece) = piece else { break };
        // Writing to a string cannot fail.
        let _ = write(&mut out, time, piece);
        rest = behind;
    }
    out
}

fn write(out: &mut String, Time(time): &Time, piece: Piece) -> std::fmt::Result {
    let hour12 = match time.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let month = usize::try_from(time.month() - 1)
        .ok()
        .and_then(|at| MONTHS.get(at))
        .copied()
        .unwrap_or_default();
    let weekday = usize::try_from(time.weekday().to_sunday_zero_offset()).ok();
    let weekday = weekday.and_then(|at| WEEKDAYS.get(at)).copied().unwrap_or_default();
    match piece {
        Piece::LongMonth => out.write_str(month),
        Piece::Month => out.write_str(month.get(..3).unwrap_or_default()),
        Piece::NumMonth => write!(out, "{}", time.month()),
        Piece::ZeroMonth => write!(out, "{:02}", time.month()),
        Piece::LongWeekday => out.write_str(weekday),
        Piece::Weekday => out.write_str(weekday.get(..3).unwrap_or_default()),
        Piece::Day => write!(out, "{}", time.day()),
        Piece::UnderDay => write!(out, "{:2}", time.day()),
        Piece::ZeroDay => write!(out, "{:02}", time.day()),
        Piece::UnderYearDay => write!(out, "{:3}", time.day_of_year()),
        Piece::ZeroYearDay => write!(out, "{:03}", time.day_of_year()),
        Piece::Hour => write!(out, "{:02}", time.hour()),
        Piece::Hour12 => write!(out, "{hour12}"),
        Piece::ZeroHour12 => write!(out, "{hour12:02}"),
        Piece::Minute => write!(out, "{}", time.minute()),
        Piece::ZeroMinute => write!(out, "{:02}", time.minute()),
        Piece::Second => write!(out, "{}", time.second()),
        Piece::ZeroSecond => write!(out, "{:02}", time.second()),
        Piece::LongYear => write!(out, "{:04}", time.year()),
        Piece::Year => write!(out, "{:02}", time.year().rem_euclid(100)),
        Piece::UpperHalf => out.write_str(if time.hour() < 12 { "AM" } else { "PM" }),
        Piece::LowerHalf => out.write_str(if time.hour() < 12 { "am" } else { "pm" }),
        Piece::ZoneName => out.write_str(&zone_name(time)),
        Piece::Offset { z, colons, parts } => {
            write_offset(out, time.offset().seconds(), z, colons, parts)
        }
        Piece::Fraction { separator, digits, trim } => {
            let all = format!("{:09}", time.subsec_nanosecond());
            let mut shown =
                all.chars().chain(std::iter::repeat('0')).take(digits).collect::<String>();
            if trim {
                shown.truncate(shown.trim_end_matches('0').len());
                if shown.is_empty() {
                    return Ok(());
                }
            }
            write!(out, "{separator}{shown}")
        }
    }
}

/// The abbreviation of the zone; without one, its offset.
fn zone_name(time: &jiff::Zoned) -> String {
    let info = time.time_zone().to_offset_info(time.timestamp());
    let zone = time.time_zone();
    let named = zone.iana_name().is_some()
        || zone.to_fixed_offset().is_err()
        || info.abbreviation().ends_with("-local");
    if named || zone == &TimeZone::UTC || zone == &TimeZone::system() {
        return info.abbreviation().to_owned();
    }
    let seconds = time.offset().seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    let (hours, rest) = (minutes / 60, minutes % 60);
    format!("{sign}{hours:02}{rest:02}")
}

fn write_offset(
    out: &mut String,
    seconds: i32,
    z: bool,
    colons: bool,
    parts: u8,
) -> std::fmt::Result {
    if z && seconds == 0 {
        return out.write_char('Z');
    }
    let between = if colons { ":" } else { "" };
    let all = seconds.abs();
    write!(out, "{}{:02}", if seconds < 0 { '-' } else { '+' }, all / 3600)?;
    if parts > 1 {
        write!(out, "{between}{:02}", all / 60 % 60)?;
    }
    if parts > 2 {
        write!(out, "{between}{:02}", all % 60)?;
    }
    Ok(())
}
