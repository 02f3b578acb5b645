//! TOML's four kinds of dates. Those without a zone are local ones, told by the zone's name.

use catamaran_gotemplate::Ctx;
use jiff::tz::TimeZone;

use super::Time;
use super::{layout, parse};

const DATE_TIME: &str = "2006-01-02T15:04:05.999999999";
const ZONED: &str = "2006-01-02T15:04:05.999999999Z07:00";
const DATE: &str = "2006-01-02";
const TIME: &str = "15:04:05.999999999";

/// The layouts that are tried, and the zone of those that have none.
const LAYOUTS: [(&str, Option<&str>); 7] = [
    (ZONED, None),
    (DATE_TIME, Some("datetime-local")),
    (DATE, Some("date-local")),
    (TIME, Some("time-local")),
    ("2006-01-02T15:04Z07:00", None),
    ("2006-01-02T15:04", Some("datetime-local")),
    ("15:04", Some("time-local")),
];

/// How far the local time zone is from UTC now, in seconds.
pub(crate) fn local_offset(ctx: &Ctx) -> i32 {
    Time::now(ctx).0.offset().seconds()
}

/// The time that a text names; `None` if it is not in one of TOML's forms. `offset` is what
/// [`local_offset`] gives.
pub(crate) fn read(text: &str, offset: i32) -> Option<Time> {
    let found = LAYOUTS.iter().find_map(|(layout, zone)| {
        parse::parse(layout, text).ok().map(|time| (time, *layout, *zone))
    });
    let (time, layout, zone) = found?;
    if lacks_zeros(text, layout) {
        return None;
    }
    let Some(zone) = zone else { return Some(time) };
    // Here a zone east of UTC is negative.
    let (sign, offset) = (if offset > 0 { "-" } else { "" }, offset.unsigned_abs());
    let rule =
        format!("<{zone}>{sign}{}:{:02}:{:02}", offset / 3600, offset / 60 % 60, offset % 60);
    let zone = TimeZone::posix(&rule).ok()?;
    time.0.datetime().to_zoned(zone).ok().map(Time)
}

/// Whether some number has fewer digits than the layout: the separators are not in their places.
fn lacks_zeros(text: &str, layout: &str) -> bool {
    let mut pairs = layout
        .bytes()
        .zip(text.bytes())
        .take_while(|(in_layout, _)| !matches!(in_layout, b'.' | b'Z'));
    pairs.any(|(in_layout, byte)| !in_layout.is_ascii_digit() && in_layout != byte)
}

/// The text of a time.
pub(crate) fn write(time: &Time) -> String {
    let info = time.0.time_zone().to_offset_info(time.0.timestamp());
    let layout = match info.abbreviation() {
        "datetime-local" => DATE_TIME,
        "date-local" => DATE,
        "time-local" => TIME,
        _ => ZONED,
    };
    layout::format(time, layout)
}
