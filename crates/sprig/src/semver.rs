//! Semantic versions and constraints on them, as Helm reads both: a version may lack its minor and
//! patch number, have leading zeros and a `v`; a constraint is `>=1.2 <2 || ^3.1`, `1.2 - 2.3`, `1.x`.
//!
//! A pre-release satisfies only a group of constraints in which one names a pre-release.

use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

use catamaran_gotemplate::{
    Ctx, Func, FuncError, Heap, Method, NamedType, Object, Str, Type, Value,
};
use regex::Regex;

use crate::args::{Outcome, any, chars};

/// Longer texts are no versions.
const MAX_VERSION: usize = 256;
/// Longer texts are no constraints.
const MAX_CONSTRAINT: usize = 512;
/// More alternatives are refused.
const MAX_GROUPS: usize = 32;

items! {
    /// A version, with `.Major`, `.Minor`, `.Patch`, `.Prerelease`, `.Metadata`, `.Compare` and more.
    sprig "TEXT -> version", r#"{{ (semver "v1.2.3-rc.1").Minor }}"# => "2";
    "semver"(String) => |_, args| semver(args, Edition::Helm4);
    /// Whether a version satisfies a constraint.
    sprig "CONSTRAINT VERSION -> bool", r#"{{ semverCompare ">=1.25-0" "v1.30.2" }}"# => "true";
    "semverCompare"(String, String) => |ctx, args| compare(ctx, args, Edition::Helm4);
}

/// Why a text is no version or no constraint. The texts are those Helm prints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SemverError {
    /// The text has not the form of a version.
    #[error("invalid semantic version")]
    Invalid,
    /// The version is longer than 256 bytes.
    #[error("version string is too long (max 256 bytes)")]
    VersionTooLong,
    /// A number is above 2^64.
    #[error("error parsing version segment: strconv.ParseUint: parsing {0:?}: value out of range")]
    NumberTooLarge(String),
    /// A number of the pre-release has a leading zero.
    #[error("version segment starts with 0")]
    LeadingZero,
    /// The text has not the form of a constraint.
    #[error("improper constraint: {0:?}")]
    Constraint(String),
    /// The constraint is longer than 512 bytes.
    #[error("constraint string is too long (max 512 bytes)")]
    ConstraintTooLong,
    /// The constraint has more than 32 alternatives.
    #[error("too many constraint groups (max 32)")]
    TooManyGroups,
}

/// Which generation of the library behind Helm is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// That of Helm 3.18.
    Helm3,
    /// That of Helm 4.
    Helm4,
}

impl SemverError {
    /// The text in an edition; `Display` is that of Helm 4.
    pub fn text(&self, edition: Edition) -> String {
        let text = self.to_string();
        match (edition, self) {
            (Edition::Helm3, Self::Constraint(what)) => format!("improper constraint: {what}"),
            (Edition::Helm3, Self::Invalid) => "Invalid Semantic Version".to_owned(),
            (Edition::Helm3, Self::NumberTooLarge(_) | Self::LeadingZero) => {
                format!(
                    "{}{}",
                    text.get(..1).unwrap_or_default().to_uppercase(),
                    text.get(1..).unwrap_or_default()
                )
            }
            _ => text,
        }
    }
}

/// The functions as they were in Helm 3.18.
pub(crate) const OF_HELM_3: &[Func] = &[
    Func::new("semver", &[Type::String], |_, args| semver(args, Edition::Helm3)),
    Func::new("semverCompare", &[Type::String, Type::String], |ctx, args| {
        compare(ctx, args, Edition::Helm3)
    }),
];

fn semver(args: &[Value], edition: Edition) -> Outcome {
    let version = Version::parse(&chars(args, 0));
    version.map(Value::object).map_err(|error| FuncError::new(error.text(edition)))
}

fn compare(ctx: &mut Ctx, args: &[Value], edition: Edition) -> Outcome {
    // Every condition is matched several times.
    let length = chars(args, 0).len().min(MAX_CONSTRAINT) as u64;
    ctx.meter.charge_steps(200 + length * 40)?;
    let failed = |error: SemverError| FuncError::new(error.text(edition));
    let constraint = Constraint::parse(&chars(args, 0)).map_err(failed)?;
    let version = Version::parse(&chars(args, 1)).map_err(failed)?;
    Ok(constraint.check_in(&version, edition).into())
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What stands behind `-`, without it.
    pub prerelease: String,
    /// What stands behind `+`, without it. It does not count in comparisons.
    pub metadata: String,
    original: String,
}

impl Version {
    /// Reads a version leniently.
    ///
    /// ```
    /// use catamaran_sprig::semver::Version;
    /// assert_eq!(Version::parse("v1.30")?.to_string(), "1.30.0");
    /// # Ok::<(), catamaran_sprig::semver::SemverError>(())
    /// ```
    ///
    /// # Errors
    /// The text is no version.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        if text.len() > MAX_VERSION {
            return Err(SemverError::VersionTooLong);
        }
        let (body, metadata) = match text.split_once('+') {
            Some((body, metadata)) => (body, Some(metadata)),
            None => (text, None),
        };
        let body = body.strip_prefix('v').unwrap_or(body);
        let (numbers, prerelease) = match body.split_once('-') {
            Some((numbers, prerelease)) => (numbers, Some(prerelease)),
            None => (body, None),
        };
        let sound = |part: Option<&str>| part.is_none_or(|part| part.split('.').all(is_identifier));
        let parts: Vec<&str> = numbers.split('.').collect();
        let digits =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() > 3 || !parts.iter().all(digits) || !sound(prerelease) || !sound(metadata) {
            return Err(SemverError::Invalid);
        }
        let number = |at: usize| match parts.get(at) {
            Some(part) => part.parse().map_err(|_| SemverError::NumberTooLarge((*part).to_owned())),
            None => Ok(0),
        };
        let zero = |part: &str| {
            part.len() > 1
                && part.starts_with('0')
                && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let version = Self {
            major: number(0)?,
            minor: number(1)?,
            patch: number(2)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        };
        if prerelease.is_some_and(|part| part.split('.').any(zero)) {
            return Err(SemverError::LeadingZero);
        }
        Ok(version)
    }

    /// The text it was read from.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The order of versions: a pre-release comes before its release.
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| compare_prerelease(&self.prerelease, &other.prerelease))
    }

    fn next(&self, major: u64, minor: u64, patch: u64) -> Self {
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        let original = format!("{prefix}{major}.{minor}.{patch}");
        Self { major, minor, patch, prerelease: String::new(), metadata: String::new(), original }
    }
}

fn is_identifier(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn compare_prerelease(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        _ => {}
    }
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// Alternatives of conditions that must hold together.
#[derive(Debug, Clone)]
pub struct Constraint {
    groups: Vec<Vec<Condition>>,
}

#[derive(Debug, Clone)]
struct Condition {
    operator: Operator,
    version: Version,
    /// Which part was left open (`1.x` leaves the minor number open).
    open: Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    All,
    Minor,
    Patch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    AtLeast,
    AtMost,
    Tilde,
    Caret,
}

/// The grammar of constraints, as far as it is regular.
struct Grammar {
    one: Regex,
    each: Regex,
    group: Regex,
    range: Regex,
}

static GRAMMAR: LazyLock<Option<Grammar>> = LazyLock::new(|| {
    let number = r"[0-9|xX*]+";
    let words = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*";
    let version = format!(r"v?({number})(\.{number})?(\.{number})?(-{words})?(\+{words})?");
    let operator = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
    let plain = version.replace('(', "(?:").replace("(?:?:", "(?:");
    Some(Grammar {
        one: Regex::new(&format!(r"^\s*({operator})\s*({version})\s*$")).ok()?,
        each: Regex::new(&format!(r"(?:{operator})\s*(?:{plain})")).ok()?,
        group: Regex::new(&format!(
            r"^(?:\s*(?:{operator})\s*(?:{plain})\s*)(?:(?:\s+|,\s*)(?:{operator})\s*(?:{plain})\s*)*$"
        ))
        .ok()?,
        range: Regex::new(&format!(r"\s*({plain})\s+-\s+({plain})\s*")).ok()?,
    })
});

impl Constraint {
    /// Reads a constraint.
    ///
    /// ```
    /// use catamaran_sprig::semver::{Constraint, Version};
    /// let constraint = Constraint::parse(">=1.21-0 <2")?;
    /// assert!(constraint.check(&Version::parse("v1.30.1-gke.100")?));
    /// # Ok::<(), catamaran_sprig::semver::SemverError>(())
    /// ```
    ///
    /// # Errors
    /// The text is no constraint.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        if text.len() > MAX_CONSTRAINT {
            return Err(SemverError::ConstraintTooLong);
        }
        let Some(grammar) = &*GRAMMAR else { return Err(SemverError::Constraint(text.to_owned())) };
        let text = grammar.range.replace_all(text, ">= $1, <= $2 ");
        let alternatives: Vec<&str> = text.split("||").collect();
        if alternatives.len() > MAX_GROUPS {
            return Err(SemverError::TooManyGroups);
        }
        let group = |text: &&str| {
            if !grammar.group.is_match(text) {
                return Err(SemverError::Constraint((*text).to_owned()));
            }
            grammar
                .each
                .find_iter(text)
                .map(|found| Condition::parse(grammar, found.as_str()))
                .collect()
        };
        Ok(Self { groups: alternatives.iter().map(group).collect::<Result<_, _>>()? })
    }

    /// Whether a version satisfies it. In the edition of Helm 3 each condition must name a
    /// pre-release for itself if it is to allow one.
    pub fn check_in(&self, version: &Version, edition: Edition) -> bool {
        if edition == Edition::Helm4 {
            return self.check(version);
        }
        let allows = |condition: &Condition| {
            let exact = condition.operator == Operator::NotEqual && condition.open == Open::Nothing;
            version.prerelease.is_empty() || !condition.version.prerelease.is_empty() || exact
        };
        self.groups.iter().any(|group| {
            group.iter().all(|condition| allows(condition) && condition.holds(version))
        })
    }

    /// Whether a version satisfies it, in the edition of Helm 4.
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            let prereleases =
                group.iter().any(|condition| !condition.version.prerelease.is_empty());
            (version.prerelease.is_empty() || prereleases)
                && group.iter().all(|condition| condition.holds(version))
        })
    }
}

impl Condition {
    fn parse(grammar: &Grammar, text: &str) -> Result<Self, SemverError> {
        let improper = || SemverError::Constraint(text.to_owned());
        let parts = grammar.one.captures(text).ok_or_else(improper)?;
        let part = |at: usize| parts.get(at).map(|part| part.as_str());
        let is_open = |at: usize| {
            part(at).is_none_or(|part| matches!(part.trim_start_matches('.'), "" | "x" | "X" | "*"))
        };
        let prerelease = part(6).unwrap_or_default();
        let (open, numbers) = if is_open(3) {
            (Open::All, format!("0.0.0{prerelease}"))
        } else if is_open(4) {
            (Open::Minor, format!("{}.0.0{prerelease}", part(3).unwrap_or_default()))
        } else if is_open(5) {
            let numbers = [part(3).unwrap_or_default(), part(4).unwrap_or_default()].concat();
            (Open::Patch, format!("{numbers}.0{prerelease}"))
        } else {
            (Open::Nothing, part(2).unwrap_or_default().to_owned())
        };
        let operator = match part(1).unwrap_or_default() {
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::AtLeast,
            "<=" | "=<" => Operator::AtMost,
            "~" | "~>" => Operator::Tilde,
            "^" => Operator::Caret,
            _ => Operator::Equal,
        };
        let version = Version::parse(&numbers)
            .map_err(|_| SemverError::Constraint("constraint parser error".into()))?;
        Ok(Self { operator, version, open })
    }

    fn holds(&self, v: &Version) -> bool {
        let order = v.compare(&self.version);
        match self.operator {
            Operator::Equal if self.open == Open::Nothing => order.is_eq(),
            Operator::Equal | Operator::Tilde => self.tilde(v),
            Operator::NotEqual => self.differs(v),
            Operator::Greater => self.exceeded_by(v),
            Operator::Less => order.is_lt(),
            Operator::AtLeast => order.is_ge(),
            Operator::AtMost if self.open == Open::Nothing => order.is_le(),
            Operator::AtMost => {
                let minor_above = v.minor > self.version.minor && self.open != Open::Minor;
                v.major < self.version.major || (v.major == self.version.major && !minor_above)
            }
            Operator::Caret => self.caret(v),
        }
    }

    fn differs(&self, v: &Version) -> bool {
        let bound = &self.version;
        if self.open == Open::Nothing {
            return v.compare(bound).is_ne();
        }
        if v.major != bound.major || (v.minor != bound.minor && self.open != Open::Minor) {
            return true;
        }
        match self.open {
            Open::Minor => false,
            Open::Patch => {
                let prereleases = !(v.prerelease.is_empty() && bound.prerelease.is_empty());
                prereleases && compare_prerelease(&v.prerelease, &bound.prerelease).is_ne()
            }
            _ => v.compare(bound).is_ne(),
        }
    }

    /// `>11` is not satisfied by 11.1, and `>11.1` not by 11.1.1.
    fn exceeded_by(&self, v: &Version) -> bool {
        let bound = &self.version;
        match self.open {
            Open::Nothing => v.compare(bound).is_gt(),
            _ if v.major != bound.major => v.major > bound.major,
            Open::Minor => false,
            Open::Patch => v.minor > bound.minor,
            Open::All => v.compare(bound).is_gt(),
        }
    }

    fn tilde(&self, v: &Version) -> bool {
        let bound = &self.version;
        if v.compare(bound).is_lt() {
            return false;
        }
        let zero = (bound.major, bound.minor, bound.patch) == (0, 0, 0);
        if zero && matches!(self.open, Open::All | Open::Nothing) {
            return true;
        }
        v.major == bound.major && (v.minor == bound.minor || self.open == Open::Minor)
    }

    fn caret(&self, v: &Version) -> bool {
        let bound = &self.version;
        if v.compare(bound).is_lt() {
            return false;
        }
        if bound.major > 0 || self.open == Open::Minor {
            return v.major == bound.major;
        }
        if v.major > 0 {
            return false;
        }
        if bound.minor > 0 || self.open == Open::Patch {
            return v.minor == bound.minor;
        }
        v.minor == 0 && v.patch == bound.patch
    }
}

/// `*semver.Version`
pub(crate) static VERSION: NamedType =
    NamedType { name: "*semver.Version", underlying: Type::Pointer, methods: &POINTER };

static OTHER: [Type; 1] = [Type::Named(&VERSION)];

/// `semver.Version`, which methods give that make a version of another; without the methods of
/// pointers.
#[derive(Debug)]
struct Plain(Version);

static PLAIN: NamedType =
    NamedType { name: "semver.Version", underlying: Type::Struct, methods: &SHARED };

/// What both have.
static SHARED: [Method; 14] = shared();

const fn shared() -> [Method; 14] {
    [
        Method::new("Major", &[], |_, this, _| with(this, |v| Value::Uint64(v.major))),
        Method::new("Minor", &[], |_, this, _| with(this, |v| Value::Uint64(v.minor))),
        Method::new("Patch", &[], |_, this, _| with(this, |v| Value::Uint64(v.patch))),
        Method::new("Prerelease", &[], |_, this, _| with(this, |v| v.prerelease.as_str().into())),
        Method::new("Metadata", &[], |_, this, _| with(this, |v| v.metadata.as_str().into())),
        Method::new("String", &[], |_, this, _| with(this, |v| v.to_string().into())),
        Method::new("IncMajor", &[], |_, this, _| incremented(this, 0)),
        Method::new("IncMinor", &[], |_, this, _| incremented(this, 1)),
        Method::new("IncPatch", &[], |_, this, _| incremented(this, 2)),
        Method::new("SetPrerelease", &[Type::String], |_, this, args| {
            changed(this, "prerelease", &chars(args, 0))
        }),
        Method::new("SetMetadata", &[Type::String], |_, this, args| {
            changed(this, "metadata", &chars(args, 0))
        }),
        Method::new("MarshalText", &[], |_, this, _| {
            with(this, |v| Value::Bytes(v.to_string().into_bytes().into()))
        }),
        Method::new("MarshalJSON", &[], |_, this, _| {
            with(this, |v| Value::Bytes(format!("\"{v}\"").into_bytes().into()))
        }),
        Method::new("Value", &[], |_, this, _| with(this, |v| v.to_string().into())),
    ]
}

static POINTER: [Method; 21] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = shared();
    let [o, p, q, r, s, t, u] = of_pointers();
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u]
};

const fn of_pointers() -> [Method; 7] {
    [
        Method::new("Original", &[], |_, this, _| with(this, |v| v.original.as_str().into())),
        Method::new("Compare", &OTHER, |_, this, args| {
            order(this, args).map(|order| Value::Int(order as i64))
        }),
        Method::new("Equal", &OTHER, |_, this, args| {
            order(this, args).map(|order| order.is_eq().into())
        }),
        Method::new("LessThan", &OTHER, |_, this, args| {
            order(this, args).map(|order| order.is_lt().into())
        }),
        Method::new("LessThanEqual", &OTHER, |_, this, args| {
            order(this, args).map(|order| order.is_le().into())
        }),
        Method::new("GreaterThan", &OTHER, |_, this, args| {
            order(this, args).map(|order| order.is_gt().into())
        }),
        Method::new("GreaterThanEqual", &OTHER, |_, this, args| {
            order(this, args).map(|order| order.is_ge().into())
        }),
    ]
}

fn with(this: &Value, get: impl FnOnce(&Version) -> Value) -> Result<Value, FuncError> {
    let plain = this.downcast::<Plain>().map(|plain| &plain.0);
    let version = this.downcast::<Version>().or(plain);
    version.map(get).ok_or_else(|| FuncError::new(crate::args::NIL_DEREFERENCE))
}

fn incremented(this: &Value, part: usize) -> Result<Value, FuncError> {
    let mut overflow = false;
    let next = with(this, |version| {
        let number = [version.major, version.minor, version.patch];
        overflow = number.get(part) == Some(&u64::MAX);
        if overflow { Value::Nil } else { Value::object(Plain(version.incremented(part))) }
    })?;
    if overflow {
        let part = ["major", "minor", "patch"].get(part).unwrap_or(&"");
        return Err(FuncError::new(format!("{part} version increment would overflow uint64")));
    }
    Ok(next)
}

/// The version with another pre-release or other metadata.
fn changed(this: &Value, part: &str, text: &str) -> Result<Value, FuncError> {
    let sound = text.is_empty() || text.split('.').all(is_identifier);
    if !sound {
        return Err(FuncError::new(format!("invalid {part} string")));
    }
    let zero = |part: &str| {
        part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit())
    };
    if part == "prerelease" && text.split('.').any(zero) {
        return Err(FuncError::new(SemverError::LeadingZero.to_string()));
    }
    with(this, |version| {
        let mut version = version.clone();
        let field =
            if part == "prerelease" { &mut version.prerelease } else { &mut version.metadata };
        text.clone_into(field);
        let prefix = if version.original.starts_with('v') { "v" } else { "" };
        version.original = format!("{prefix}{version}");
        Value::object(Plain(version))
    })
}

fn order(this: &Value, args: &[Value]) -> Result<Ordering, FuncError> {
    match (this.downcast::<Version>(), any(args, 0).downcast::<Version>()) {
        (Some(this), Some(other)) => Ok(this.compare(other)),
        _ => Err(FuncError::new(crate::args::NIL_DEREFERENCE)),
    }
}

impl Version {
    /// The next major, minor or patch version, as the methods of that name give it.
    #[must_use]
    pub fn incremented(&self, part: usize) -> Self {
        match part {
            0 => self.next(self.major.wrapping_add(1), 0, 0),
            1 => self.next(self.major, self.minor.wrapping_add(1), 0),
            _ if self.prerelease.is_empty() => {
                self.next(self.major, self.minor, self.patch.wrapping_add(1))
            }
            _ => self.next(self.major, self.minor, self.patch),
        }
    }
}

impl Object for Plain {
    fn go_type(&self) -> &'static NamedType {
        &PLAIN
    }

    fn text(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other: &dyn std::any::Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn exported(&self) -> Option<Value> {
        let nothing = self.0.exported()?;
        nothing.downcast::<Version>().cloned().map(|nothing| Value::object(Self(nothing)))
    }

    fn plain(&self) -> Option<Value> {
        Some(self.0.to_string().into())
    }
}

impl Object for Version {
    fn go_type(&self) -> &'static NamedType {
        &VERSION
    }

    fn field(&self, _: &mut Heap, _: &str) -> Option<Value> {
        None
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let Self { major, minor, patch, prerelease, metadata, original } = self;
        vec![
            ("major", Value::Uint64(*major)),
            ("minor", Value::Uint64(*minor)),
            ("patch", Value::Uint64(*patch)),
            ("pre", prerelease.as_str().into()),
            ("metadata", metadata.as_str().into()),
            ("original", original.as_str().into()),
        ]
    }

    fn exported(&self) -> Option<Value> {
        let [prerelease, metadata, original] = [const { String::new() }; 3];
        let nothing = Self { major: 0, minor: 0, patch: 0, prerelease, metadata, original };
        Some(Value::object(nothing))
    }

    fn plain(&self) -> Option<Value> {
        Some(Value::String(Str::from(self.to_string())))
    }
}
