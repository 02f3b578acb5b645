//! Semantic versions and constraints on them, as Helm reads both: a version may lack its minor and
//! patch number, have leading zeros and a `v`; a constraint is `>=1.2 <2 || ^3.1`, `1.2 - 2.3`, `1.x`.
//!
//! A pre-release satisfies only a group of constraints in which one names a pre-release.

mod constraint;
mod object;

use std::cmp::Ordering;
use std::fmt;

use catamaran_gotemplate::{Ctx, Func, FuncError, Type, Value};

use crate::args::{Outcome, chars};

pub use constraint::Constraint;

/// Longer texts are no versions.
const MAX_VERSION: usize = 256;
/// Longer texts are no constraints.
const MAX_CONSTRAINT: usize = 512;
/// More alternatives are refused.
const MAX_GROUPS: usize = 32;

items! {
    /// A version, with `.Major`, `.Minor`, `.Patch`, `.Prerelease`, `.Metadata`, `.Compare` and more.
    sprig "TEXT -> version", r#"{{ (semver "v1.2.3-rc.1").Minor }}"# => "2";
    "semver"(String) => |ctx, args| semver(ctx, args, Edition::Helm4);
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
    Func::new("semver", &[Type::String], |ctx, args| semver(ctx, args, Edition::Helm3)),
    Func::new("semverCompare", &[Type::String, Type::String], |ctx, args| {
        compare(ctx, args, Edition::Helm3)
    }),
];

fn semver(ctx: &mut Ctx, args: &[Value], edition: Edition) -> Outcome {
    ctx.meter.charge_steps(60)?;
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
