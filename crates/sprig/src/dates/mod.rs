//! Dates: Go's `time.Time` with its layouts (`2006-01-02 15:04:05`). "Now" is the rendering's clock.

mod layout;
mod parse;
mod time;
pub(crate) mod toml_date;

pub(crate) use time::{TIME, Time};

use catamaran_gotemplate::{Ctx, FuncError, Str, Value};
use jiff::tz::TimeZone;

use crate::args::{Outcome, announce, any, chars, string, text};
use crate::durations;

/// Whether a text is a time in one of Go's layouts.
///
/// # Errors
/// It is none; Go's text.
pub fn check_time(layout: &str, text: &str) -> Result<(), String> {
    parse::parse(layout, text).map(|_| ())
}

items! {
    /// The time of the rendering: the same wherever one rendering asks.
    sprig "-> time", "{{ now | typeOf }}" => "time.Time";
    "now"() => |ctx, _| Ok(Value::object(Time::now(ctx)));
    /// A date in a layout, in the local time zone. Numbers are seconds since 1970; what is no date
    /// is now.
    sprig "LAYOUT DATE -> string",
        r#"{{ toDate "2006-01-02" "2026-11-21" | date "02 Jan 2006" }}"# => "21 Nov 2026";
    "date"(String, Any) => |ctx, args| in_zone(ctx, &chars(args, 0), any(args, 1), "Local");
    /// As `date`, in a time zone.
    sprig "LAYOUT DATE ZONE -> string",
        r#"{{ dateInZone "2006-01-02 15:04" (int64 1000000000) "UTC" }}"# => "2001-09-09 01:46";
    "dateInZone" | "date_in_zone"(String, Any, String) => |ctx, args| in_zone(ctx, &chars(args, 0), any(args, 1), &chars(args, 2));
    /// A date as HTML's inputs have it: `2006-01-02`.
    sprig "DATE -> string", r#"{{ toDate "02.01.2006" "21.11.2026" | htmlDate }}"# => "2026-11-21";
    "htmlDate"(Any) => |ctx, args| in_zone(ctx, "2006-01-02", any(args, 0), "Local");
    /// As `htmlDate`, in a time zone.
    sprig "DATE ZONE -> string", r#"{{ htmlDateInZone (int64 1000000000) "UTC" }}"# => "2001-09-09";
    "htmlDateInZone"(Any, String) => |ctx, args| in_zone(ctx, "2006-01-02", any(args, 0), &chars(args, 1));
    /// A time moved by a duration such as `-1.5h`; unchanged if that is none.
    sprig "DURATION TIME -> time",
        r#"{{ toDate "15:04" "10:00" | dateModify "-1.5h" | date "15:04" }}"# => "08:30";
    "dateModify" | "date_modify"(String, Time) => |_, args| Ok(match durations::parse(&chars(args, 0)) {
        Ok(by) => moved(any(args, 1), by),
        Err(_) => any(args, 1).clone(),
    });
    /// As `dateModify`; what is no duration ends the rendering.
    sprig "DURATION TIME -> time",
        r#"{{ toDate "15:04" "10:00" | mustDateModify "-1.5h" | date "15:04" }}"# => "08:30";
    "mustDateModify" | "must_date_modify"(String, Time) => |_, args| {
        let by = durations::parse(&chars(args, 0)).map_err(FuncError::new)?;
        Ok(moved(any(args, 1), by))
    };
    /// A time from a text in a layout; the year 1 if it is none.
    sprig "LAYOUT TEXT -> time",
        r#"{{ (toDate "2006-01-02" "2026-11-21").Weekday }}"# => "Saturday";
    "toDate"(String, String) => |ctx, args| {
        charge_reading(ctx, args)?;
        Ok(Value::object(read(text(args, 0), text(args, 1)).unwrap_or_else(|_| Time::zero())))
    };
    /// As `toDate`; what is no time ends the rendering.
    sprig "LAYOUT TEXT -> time", r#"{{ (mustToDate "2006-01-02" "2026-11-21").YearDay }}"# => "325";
    "mustToDate"(String, String) => |ctx, args| {
        charge_reading(ctx, args)?;
        read(text(args, 0), text(args, 1)).map(Value::object).map_err(FuncError::new)
    };
    /// A time as the text of the whole seconds since 1970.
    sprig "TIME -> string",
        r#"{{ mustToDate "2006-01-02 MST" "2026-11-21 UTC" | unixEpoch }}"# => "1795219200";
    "unixEpoch"(Time) => |ctx, args| {
        let seconds = any(args, 0).downcast::<Time>().map_or(0, Time::seconds);
        string(ctx, seconds.to_string())
    };
    /// How long ago a time was, in whole seconds: `1h2m3s`.
    sprig "TIME -> string", "{{ ago now }}" => "0s";
    "ago"(Any) => |ctx, args| {
        let then = from_value(ctx, any(args, 0));
        let since = Time::now(ctx).since(&then);
        string(ctx, durations::format(durations::round(since, 1_000_000_000)))
    };
}

fn from_value(ctx: &Ctx, value: &Value) -> Time {
    match value {
        Value::Int(seconds) | Value::Int64(seconds) => Time::from_seconds(*seconds),
        value => value.downcast::<Time>().cloned().unwrap_or_else(|| Time::now(ctx)),
    }
}

fn in_zone(ctx: &mut Ctx, format: &str, value: &Value, zone: &str) -> Outcome {
    let time = from_value(ctx, value).in_zone(find_zone(zone));
    // One digit of a layout becomes two, or a name of nine letters of three.
    announce(ctx, format.len().saturating_mul(4))?;
    ctx.meter.charge_steps(format.len() as u64 * 20 + 100)?;
    string(ctx, layout::format(&time, format))
}

/// A time zone by name; UTC if there is none of that name.
fn find_zone(name: &str) -> TimeZone {
    match name {
        "" | "UTC" => TimeZone::UTC,
        "Local" => TimeZone::system(),
        name => TimeZone::get(name).unwrap_or(TimeZone::UTC),
    }
}

/// Reading goes through layout and text piece by piece; its errors quote both.
fn charge_reading(ctx: &mut Ctx, args: &[Value]) -> Result<(), FuncError> {
    let length = text(args, 0).len().saturating_add(text(args, 1).len());
    announce(ctx, length.saturating_mul(8))?;
    ctx.meter.charge_steps(length as u64 * 20 + 100)
}

fn moved(time: &Value, by: i64) -> Value {
    time.downcast::<Time>().map(|time| Value::object(time.plus(by))).unwrap_or_default()
}

fn read(format: &Str, value: &Str) -> Result<Time, String> {
    parse::parse(&format.to_str_lossy(), &value.to_str_lossy())
}
