//! Durations: Go's `time.Duration`, as text and as a number of nanoseconds.

use catamaran_gotemplate::{Ctx, FuncError, Kind, Method, NamedType, Object, Type, Value};

use crate::args::{any, string};
use crate::casts::{float_to_int, parse_float, parse_int};
use crate::dates::Time;

const SECOND: i64 = 1_000_000_000;

items! {
    /// A number of seconds as a duration's text, `1m35s`. Only text and `int64` are understood.
    sprig "SECONDS -> string", r#"{{ duration "95" }}"# => "1m35s";
    "duration"(Any) => |ctx, args| {
        let seconds = match any(args, 0) {
            Value::Int64(seconds) => *seconds,
            Value::String(text) => text.as_str().and_then(|text| parse_int(text, 10)).unwrap_or(0),
            _ => 0,
        };
        string(ctx, format(seconds.wrapping_mul(SECOND)))
    };
    /// The largest unit of a duration, or of the time since a date: `2y`, `3mo`, `5h`.
    sprig "DURATION -> string", r#"{{ durationRound "2h10m5s" }}"# => "2h";
    "durationRound"(Any) => |ctx, args| {
        let nanoseconds = match any(args, 0) {
            Value::Int64(nanoseconds) => *nanoseconds,
            Value::String(text) => text.as_str().and_then(|text| parse(text).ok()).unwrap_or(0),
            value => value.downcast::<Time>().map_or(0, |time| Time::now(ctx).since(time)),
        };
        string(ctx, largest_unit(nanoseconds.unsigned_abs()))
    };
    /// A duration of anything: a text such as `1h30m`, or a number of seconds.
    helm "DURATION -> duration", r#"{{ mustToDuration "90m" }}"# => "1h30m0s";
    "mustToDuration"(Any) => |ctx, args| as_duration(ctx, any(args, 0)).map(|d| Value::object(Duration(d)));
    /// A duration in seconds; 0 if it is none.
    helm "DURATION -> float64", r#"{{ durationSeconds "1m30s" }}"# => "90";
    "durationSeconds"(Any) => |ctx, args| Ok(in_units(ctx, any(args, 0), SECOND));
    /// A duration in whole milliseconds; 0 if it is none.
    helm "DURATION -> int64", r#"{{ durationMilliseconds "1.5s" }}"# => "1500";
    "durationMilliseconds"(Any) => |ctx, args| Ok(whole_units(ctx, any(args, 0), 1_000_000));
    /// A duration in whole microseconds; 0 if it is none.
    helm "DURATION -> int64", r#"{{ durationMicroseconds "2ms" }}"# => "2000";
    "durationMicroseconds"(Any) => |ctx, args| Ok(whole_units(ctx, any(args, 0), 1000));
    /// A duration in nanoseconds; 0 if it is none.
    helm "DURATION -> int64", r#"{{ durationNanoseconds "2us" }}"# => "2000";
    "durationNanoseconds"(Any) => |ctx, args| Ok(whole_units(ctx, any(args, 0), 1));
    /// A duration in minutes; 0 if it is none.
    helm "DURATION -> float64", r#"{{ durationMinutes "1h30m" }}"# => "90";
    "durationMinutes"(Any) => |ctx, args| Ok(in_units(ctx, any(args, 0), 60 * SECOND));
    /// A duration in hours; 0 if it is none.
    helm "DURATION -> float64", r#"{{ durationHours "90m" }}"# => "1.5";
    "durationHours"(Any) => |ctx, args| Ok(in_units(ctx, any(args, 0), 3600 * SECOND));
    /// A duration in days; 0 if it is none.
    helm "DURATION -> float64", r#"{{ durationDays "36h" }}"# => "1.5";
    "durationDays"(Any) => |ctx, args| {
        let hours = as_duration(ctx, any(args, 0)).map_or(0.0, |d| units(d, 3600 * SECOND));
        Ok((hours / 24.0).into())
    };
    /// A duration in weeks; 0 if it is none.
    helm "DURATION -> float64", r#"{{ durationWeeks "84h" }}"# => "0.5";
    "durationWeeks"(Any) => |ctx, args| {
        let hours = as_duration(ctx, any(args, 0)).map_or(0.0, |d| units(d, 3600 * SECOND));
        Ok((hours / 24.0 / 7.0).into())
    };
    /// A duration rounded to a multiple of another.
    helm "DURATION MULTIPLE -> duration", r#"{{ durationRoundTo "1h40m" "1h" }}"# => "2h0m0s";
    "durationRoundTo"(Any, Any) => |ctx, args| Ok(by_multiple(ctx, args, round));
    /// A duration cut to a multiple of another.
    helm "DURATION MULTIPLE -> duration", r#"{{ durationTruncateTo "1h40m" "1h" }}"# => "1h0m0s";
    "durationTruncateTo"(Any, Any) => |ctx, args| Ok(by_multiple(ctx, args, truncate));
}

/// `time.Duration`: nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duration(pub i64);

/// The type `time.Duration`.
pub(crate) static DURATION: NamedType =
    NamedType { name: "time.Duration", underlying: Type::Int64, methods: &METHODS };

static OTHER: [Type; 1] = [Type::Named(&DURATION)];

static METHODS: [Method; 10] = [
    Method::new("String", &[], |_, this, _| Ok(format(of(this)).into())),
    Method::new("Hours", &[], |_, this, _| Ok(units(of(this), 3600 * SECOND).into())),
    Method::new("Minutes", &[], |_, this, _| Ok(units(of(this), 60 * SECOND).into())),
    Method::new("Seconds", &[], |_, this, _| Ok(units(of(this), SECOND).into())),
    Method::new("Milliseconds", &[], |_, this, _| Ok(Value::Int64(of(this) / 1_000_000))),
    Method::new("Microseconds", &[], |_, this, _| Ok(Value::Int64(of(this) / 1000))),
    Method::new("Nanoseconds", &[], |_, this, _| Ok(Value::Int64(of(this)))),
    Method::new("Abs", &[], |_, this, _| Ok(Value::object(Duration(of(this).saturating_abs())))),
    Method::new("Round", &OTHER, |_, this, args| {
        Ok(Value::object(Duration(round(of(this), of(any(args, 0))))))
    }),
    Method::new("Truncate", &OTHER, |_, this, args| {
        Ok(Value::object(Duration(truncate(of(this), of(any(args, 0))))))
    }),
];

fn of(value: &Value) -> i64 {
    value.as_int().unwrap_or(0)
}

impl Object for Duration {
    fn go_type(&self) -> &'static NamedType {
        &DURATION
    }

    fn text(&self) -> Option<String> {
        Some(format(self.0))
    }

    fn int(&self) -> Option<i64> {
        Some(self.0)
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.go_type() == &DURATION && other.int() == Some(self.0)
    }

    fn plain(&self) -> Option<Value> {
        Some(Value::Int64(self.0))
    }

    fn yaml3_text(&self) -> Option<String> {
        self.text()
    }
}

/// Anything as nanoseconds: a duration, its text, or a number of seconds.
fn as_duration(ctx: &mut Ctx, value: &Value) -> Result<i64, FuncError> {
    match value {
        Value::Object(object) if object.go_type() == &DURATION => {
            return Ok(object.int().unwrap_or(0));
        }
        Value::Nil => return Err(FuncError::new("invalid duration")),
        Value::String(text) => {
            let whole = text.to_str_lossy();
            let text_only = whole.trim();
            if text_only.is_empty() {
                return Err(FuncError::new("empty duration"));
            }
            if let Ok(nanoseconds) = parse(text_only) {
                return Ok(nanoseconds);
            }
            if let Some(seconds) = parse_float(text_only) {
                return from_seconds(ctx, seconds);
            }
            let shown = catamaran_gotemplate::fmt::quote(text);
            return Err(FuncError::new(format!("could not parse duration {shown}")));
        }
        Value::Float64(seconds) => return from_seconds(ctx, *seconds),
        _ => {}
    }
    let seconds = match (ctx.heap.kind_of(value), value.as_int(), value.as_uint()) {
        (Kind::Int | Kind::Int64, Some(seconds), _) => Ok(seconds),
        (_, _, Some(seconds)) => i64::try_from(seconds).map_err(|_| seconds.to_string()),
        _ => {
            let name = ctx.heap.type_name(value);
            return Err(FuncError::new(format!("unsupported duration type {name}")));
        }
    };
    let whole =
        seconds.and_then(|seconds| seconds.checked_mul(SECOND).ok_or_else(|| seconds.to_string()));
    whole.map_err(|shown| FuncError::new(format!("duration seconds overflow: {shown}")))
}

fn from_seconds(ctx: &mut Ctx, seconds: f64) -> Result<i64, FuncError> {
    let shown = ctx.print(&Value::Float64(seconds))?;
    if !seconds.is_finite() {
        return Err(FuncError::new(format!("invalid duration seconds: {shown}")));
    }
    if seconds.abs() > 9_223_372_036.854_776 {
        return Err(FuncError::new(format!("duration seconds overflow: {shown}")));
    }
    Ok(float_to_int(seconds * 1e9))
}

#[allow(clippy::cast_precision_loss)] // as Go converts
fn units(nanoseconds: i64, unit: i64) -> f64 {
    (nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64
}

fn in_units(ctx: &mut Ctx, value: &Value, unit: i64) -> Value {
    as_duration(ctx, value).map_or(0.0, |d| units(d, unit)).into()
}

fn whole_units(ctx: &mut Ctx, value: &Value, unit: i64) -> Value {
    Value::Int64(as_duration(ctx, value).map_or(0, |d| d / unit))
}

fn by_multiple(ctx: &mut Ctx, args: &[Value], operation: fn(i64, i64) -> i64) -> Value {
    let Ok(duration) = as_duration(ctx, any(args, 0)) else {
        return Value::object(Duration(0));
    };
    let result =
        as_duration(ctx, any(args, 1)).map_or(duration, |multiple| operation(duration, multiple));
    Value::object(Duration(result))
}

fn truncate(duration: i64, multiple: i64) -> i64 {
    if multiple <= 0 { duration } else { duration - duration % multiple }
}

/// To the nearest multiple, halves away from zero; what does not fit is the largest duration.
pub(crate) fn round(duration: i64, multiple: i64) -> i64 {
    if multiple <= 0 {
        return duration;
    }
    let rest = duration % multiple;
    if rest.unsigned_abs() < multiple.unsigned_abs() - rest.unsigned_abs() {
        return duration - rest;
    }
    let down = duration - rest;
    if duration < 0 { down.saturating_sub(multiple) } else { down.saturating_add(multiple) }
}

fn largest_unit(nanoseconds: u64) -> String {
    let hour = 3600 * SECOND.unsigned_abs();
    let sizes = [
        (hour * 24 * 365, "y"),
        (hour * 24 * 30, "mo"),
        (hour * 24, "d"),
        (hour, "h"),
        (60 * SECOND.unsigned_abs(), "m"),
        (SECOND.unsigned_abs(), "s"),
    ];
    let found = sizes.iter().find(|(size, _)| nanoseconds > *size);
    found.map_or_else(|| "0s".to_owned(), |(size, name)| format!("{}{name}", nanoseconds / size))
}

/// Go's text of a duration: `1h30m0s`, `1.5s`, `2ms`, `0s`.
pub(crate) fn format(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let all = nanoseconds.unsigned_abs();
    let fraction = |whole: u64, rest: u64, digits: usize| {
        let text = format!("{rest:0digits$}");
        let text = text.trim_end_matches('0');
        if text.is_empty() { whole.to_string() } else { format!("{whole}.{text}") }
    };
    match all {
        0 => "0s".to_owned(),
        1..1000 => format!("{sign}{all}ns"),
        1000..1_000_000 => format!("{sign}{}µs", fraction(all / 1000, all % 1000, 3)),
        1_000_000..1_000_000_000 => {
            format!("{sign}{}ms", fraction(all / 1_000_000, all % 1_000_000, 6))
        }
        _ => {
            let seconds = all / 1_000_000_000;
            let rest = fraction(seconds % 60, all % 1_000_000_000, 9);
            match seconds / 60 {
                0 => format!("{sign}{rest}s"),
                minutes if minutes < 60 => format!("{sign}{minutes}m{rest}s"),
                minutes => format!("{sign}{}h{}m{rest}s", minutes / 60, minutes % 60),
            }
        }
    }
}

/// Reads how long something takes as Go's `time.ParseDuration` does: `1h30m`, `1.5s`, `100ms`.
///
/// # Errors
/// Go's text for what is no duration; a negative one is none either.
pub fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    let nanoseconds = u64::try_from(parse(text)?);
    let nanoseconds = nanoseconds.map_err(|_| format!("time: invalid duration {text:?}"))?;
    Ok(std::time::Duration::from_nanos(nanoseconds))
}

/// `time.ParseDuration`: `1h30m`, `-1.5s`, `100ms`. The error is Go's text.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (name, next) = after.split_at(end);
        if name.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let Some(unit) = unit(name) else {
            return Err(format!("time: unknown unit {name:?} in duration {text:?}"));
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let part =
            whole.checked_mul(unit).and_then(|part| part.checked_add(fraction_of(fraction, unit)));
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|sum| *sum <= 1 << 63)
            .ok_or_else(invalid)?;
        rest = next;
    }
    if negative {
        return 0_i64.checked_sub_unsigned(total).ok_or_else(invalid);
    }
    i64::try_from(total).map_err(|_| invalid())
}

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        "us" | "µs" | "μs" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as Go computes it
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let digits = digits.get(..digits.len().min(18)).unwrap_or_default();
    let Ok(number) = digits.parse::<u64>() else { return 0 };
    let scale = 10.0_f64.powi(i32::try_from(digits.len()).unwrap_or(0));
    (number as f64 * (unit as f64 / scale)) as u64
}
