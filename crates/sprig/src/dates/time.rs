//! Go's `time.Time`.

use catamaran_gotemplate::{Ctx, Heap, Method, NamedType, Object, Type, Value};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::args::{any, int};
use crate::dates::layout;
use crate::durations::{self, DURATION, Duration};

/// A time in a time zone.
#[derive(Debug, Clone)]
pub(crate) struct Time(pub(super) Zoned);

/// The type `time.Time`.
pub(crate) static TIME: NamedType =
    NamedType { name: "time.Time", underlying: Type::Struct, methods: &METHODS };

static MONTH: NamedType =
    NamedType { name: "time.Month", underlying: Type::Int, methods: &NAMED_METHODS };
static WEEKDAY: NamedType =
    NamedType { name: "time.Weekday", underlying: Type::Int, methods: &NAMED_METHODS };

impl Time {
    /// The rendering's clock, in the local time zone.
    pub fn now(ctx: &Ctx) -> Self {
        let instant = Timestamp::try_from(ctx.clock).unwrap_or(Timestamp::UNIX_EPOCH);
        Self(instant.to_zoned(TimeZone::system()))
    }

    /// Go's zero time: the first day of the year 1, in UTC.
    pub fn zero() -> Self {
        let start = DateTime::constant(1, 1, 1, 0, 0, 0, 0).to_zoned(TimeZone::UTC);
        Self(start.unwrap_or_else(|_| Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)))
    }

    /// So many seconds after 1970, as far as years have four digits.
    pub fn from_seconds(seconds: i64) -> Self {
        let instant = Timestamp::from_second(seconds);
        let edge = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Self(instant.unwrap_or(edge).to_zoned(TimeZone::system()))
    }

    pub fn in_zone(&self, zone: TimeZone) -> Self {
        Self(self.0.timestamp().to_zoned(zone))
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> i64 {
        // Go counts down to the second before, jiff cuts towards zero.
        let instant = self.0.timestamp();
        instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
    }

    /// Nanoseconds from another time to this one, as far as 64 bits reach.
    pub fn since(&self, other: &Self) -> i64 {
        let difference = self.0.timestamp().as_nanosecond() - other.0.timestamp().as_nanosecond();
        let edge = if difference < 0 { i64::MIN } else { i64::MAX };
        i64::try_from(difference).unwrap_or(edge)
    }

    /// The time so many nanoseconds later.
    pub fn plus(&self, nanoseconds: i64) -> Self {
        let sum = self.0.timestamp().as_nanosecond() + i128::from(nanoseconds);
        let edge = if nanoseconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Self(Timestamp::from_nanosecond(sum).unwrap_or(edge).to_zoned(self.0.time_zone().clone()))
    }

    fn is_zero(&self) -> bool {
        self.0.timestamp() == Self::zero().0.timestamp()
    }

    /// The date, with months and days that may be out of range.
    fn plus_date(&self, years: i64, months: i64, days: i64) -> Self {
        let limit = |number: i64, most: i64| number.clamp(-most, most);
        let date = self.0.datetime();
        let total = i64::from(date.year()) * 12 + i64::from(date.month()) - 1
            + limit(years, 20_000) * 12
            + limit(months, 240_000);
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        let first = i16::try_from(year).ok().zip(i8::try_from(month).ok());
        let first = first.and_then(|(year, month)| jiff::civil::Date::new(year, month, 1).ok());
        let shift = limit(days, 8_000_000) + i64::from(date.day()) - 1;
        let moved = first.and_then(|first| first.checked_add(jiff::Span::new().days(shift)).ok());
        let zoned = moved
            .and_then(|day| day.to_datetime(date.time()).to_zoned(self.0.time_zone().clone()).ok());
        zoned.map_or_else(|| self.clone(), Self)
    }

    fn text(&self) -> String {
        layout::format(self, "2006-01-02 15:04:05.999999999 -0700 MST")
    }
}

impl Object for Time {
    fn go_type(&self) -> &'static NamedType {
        &TIME
    }

    fn text(&self) -> Option<String> {
        Some(Time::text(self))
    }

    fn go_string(&self) -> Option<String> {
        let (month, rest) = (self.0.month(), layout::format(self, "15, 4, 5"));
        let month = usize::try_from(month - 1).ok().and_then(|at| layout::MONTHS.get(at))?;
        let zone = self.0.time_zone();
        let zone = match Location(zone.clone()).text()?.as_str() {
            "UTC" if *zone == TimeZone::UTC => "time.UTC".to_owned(),
            "Local" => "time.Local".to_owned(),
            name => format!("time.Location({name:?})"),
        };
        let hour = layout::format(self, "15");
        let rest = rest.split_once(',').map_or("", |(_, rest)| rest);
        Some(format!(
            "time.Date({}, time.{month}, {}, {},{rest}, {}, {zone})",
            self.0.year(),
            self.0.day(),
            hour.trim_start_matches('0').parse::<u8>().unwrap_or(0),
            self.0.subsec_nanosecond()
        ))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other: &dyn std::any::Any = other;
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0 == other.0 && self.0.time_zone() == other.0.time_zone())
    }

    fn plain(&self) -> Option<Value> {
        Some(layout::format(self, "2006-01-02T15:04:05.999999999Z07:00").into())
    }
}

/// A month or a day of the week: a number that prints as its name.
#[derive(Debug)]
struct Named {
    ty: &'static NamedType,
    number: i64,
}

impl Object for Named {
    fn go_type(&self) -> &'static NamedType {
        self.ty
    }

    fn field(&self, _: &mut Heap, _: &str) -> Option<Value> {
        None
    }

    fn text(&self) -> Option<String> {
        let names = if self.ty == &MONTH { &layout::MONTHS[..] } else { &layout::WEEKDAYS[..] };
        let first = i64::from(self.ty == &MONTH);
        let name = usize::try_from(self.number - first).ok().and_then(|at| names.get(at));
        Some(name.map_or_else(|| self.number.to_string(), |name| (*name).to_owned()))
    }

    fn int(&self) -> Option<i64> {
        Some(self.number)
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.go_type() == self.ty && other.int() == Some(self.number)
    }

    fn plain(&self) -> Option<Value> {
        Some(Value::Int(self.number))
    }
}

static NAMED_METHODS: [Method; 1] =
    [Method::new("String", &[], |ctx, this, _| ctx.print(this).map(Value::String))];

static OTHER: [Type; 1] = [Type::Named(&TIME)];
static BY: [Type; 1] = [Type::Named(&DURATION)];

macro_rules! with {
    ($get:expr) => {
        |_, this, args| {
            let get: fn(&Time, &[Value]) -> Value = $get;
            Ok(this.downcast::<Time>().map(|time| get(time, args)).unwrap_or_default())
        }
    };
}

fn other(args: &[Value]) -> Time {
    any(args, 0).downcast::<Time>().cloned().unwrap_or_else(Time::zero)
}

fn number(number: impl Into<i64>) -> Value {
    Value::Int(number.into())
}

/// `*time.Location`; its text is the name.
#[derive(Debug)]
struct Location(TimeZone);

static LOCATION: NamedType =
    NamedType { name: "*time.Location", underlying: Type::Pointer, methods: &NAMED_METHODS };
static WHERE: [Type; 1] = [Type::Named(&LOCATION)];

impl Object for Location {
    fn go_type(&self) -> &'static NamedType {
        &LOCATION
    }

    fn text(&self) -> Option<String> {
        let zone = &self.0;
        // What comes from the clock is in the local zone, whatever that is.
        let is_local = *zone == TimeZone::system() && *zone != TimeZone::UTC;
        let name = if is_local { Some("Local") } else { zone.iana_name() };
        Some(name.unwrap_or_default().to_owned())
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other: &dyn std::any::Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }
}

fn bytes(text: String) -> Value {
    Value::Bytes(text.into_bytes().into())
}

const RFC_3339: &str = "2006-01-02T15:04:05.999999999Z07:00";

static METHODS: [Method; 31] = [
    Method::new(
        "Location",
        &[],
        with!(|time, _| Value::object(Location(time.0.time_zone().clone()))),
    ),
    Method::new(
        "In",
        &WHERE,
        with!(|time, args| {
            let zone = any(args, 0).downcast::<Location>().map(|zone| zone.0.clone());
            Value::object(time.in_zone(zone.unwrap_or(TimeZone::UTC)))
        }),
    ),
    Method::new("MarshalText", &[], with!(|time, _| bytes(layout::format(time, RFC_3339)))),
    Method::new(
        "MarshalJSON",
        &[],
        with!(|time, _| bytes(format!("\"{}\"", layout::format(time, RFC_3339)))),
    ),
    Method::new("Format", &[Type::String], |ctx, this, args| {
        let format = crate::args::chars(args, 0);
        ctx.meter.charge_bytes(format.len().saturating_mul(4))?;
        Ok(this
            .downcast::<Time>()
            .map(|time| layout::format(time, &format).into())
            .unwrap_or_default())
    }),
    Method::new("String", &[], with!(|time, _| Time::text(time).into())),
    Method::new("Unix", &[], with!(|time, _| Value::Int64(time.seconds()))),
    Method::new(
        "UnixMilli",
        &[],
        with!(|time, _| Value::Int64(time.0.timestamp().as_millisecond())),
    ),
    Method::new(
        "UnixMicro",
        &[],
        with!(|time, _| Value::Int64(time.0.timestamp().as_microsecond())),
    ),
    Method::new(
        "UnixNano",
        &[],
        with!(|time, _| Value::Int64(
            i64::try_from(time.0.timestamp().as_nanosecond()).unwrap_or(0)
        )),
    ),
    Method::new("Year", &[], with!(|time, _| number(time.0.year()))),
    Method::new(
        "Month",
        &[],
        with!(|time, _| Value::object(Named { ty: &MONTH, number: time.0.month().into() })),
    ),
    Method::new("Day", &[], with!(|time, _| number(time.0.day()))),
    Method::new("Hour", &[], with!(|time, _| number(time.0.hour()))),
    Method::new("Minute", &[], with!(|time, _| number(time.0.minute()))),
    Method::new("Second", &[], with!(|time, _| number(time.0.second()))),
    Method::new("Nanosecond", &[], with!(|time, _| number(time.0.subsec_nanosecond()))),
    Method::new("YearDay", &[], with!(|time, _| number(time.0.day_of_year()))),
    Method::new(
        "Weekday",
        &[],
        with!(|time, _| {
            Value::object(Named {
                ty: &WEEKDAY,
                number: time.0.weekday().to_sunday_zero_offset().into(),
            })
        }),
    ),
    Method::new("IsZero", &[], with!(|time, _| time.is_zero().into())),
    Method::new("UTC", &[], with!(|time, _| Value::object(time.in_zone(TimeZone::UTC)))),
    Method::new("Local", &[], with!(|time, _| Value::object(time.in_zone(TimeZone::system())))),
    Method::new(
        "Add",
        &BY,
        with!(|time, args| Value::object(time.plus(any(args, 0).as_int().unwrap_or(0)))),
    ),
    Method::new(
        "AddDate",
        &[Type::Int, Type::Int, Type::Int],
        with!(|time, args| {
            Value::object(time.plus_date(int(args, 0), int(args, 1), int(args, 2)))
        }),
    ),
    Method::new(
        "Sub",
        &OTHER,
        with!(|time, args| Value::object(Duration(time.since(&other(args))))),
    ),
    Method::new("Before", &OTHER, with!(|time, args| (time.0 < other(args).0).into())),
    Method::new("After", &OTHER, with!(|time, args| (time.0 > other(args).0).into())),
    Method::new("Equal", &OTHER, with!(|time, args| (time.0 == other(args).0).into())),
    Method::new("Compare", &OTHER, with!(|time, args| number(time.0.cmp(&other(args).0) as i8))),
    Method::new("Round", &BY, with!(|time, args| Value::object(to_multiple(time, args, true)))),
    Method::new("Truncate", &BY, with!(|time, args| Value::object(to_multiple(time, args, false)))),
];

/// Rounds or cuts to a multiple of a duration, counted from the zero time.
fn to_multiple(time: &Time, args: &[Value], round: bool) -> Time {
    let multiple = any(args, 0).as_int().unwrap_or(0);
    if multiple <= 0 {
        return time.clone();
    }
    let start = Time::zero().0.timestamp().as_nanosecond();
    let rest = (time.0.timestamp().as_nanosecond() - start).rem_euclid(i128::from(multiple));
    let rest = i64::try_from(rest).unwrap_or(0);
    let up = round && durations::round(rest, multiple) > 0;
    time.plus(if up { multiple - rest } else { -rest })
}
