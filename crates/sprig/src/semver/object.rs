//! Versions as templates see them: their fields and methods.

use std::cmp::Ordering;

use catamaran_gotemplate::{FuncError, Heap, Method, NamedType, Object, Str, Type, Value};

use super::{SemverError, Version, is_identifier};
use crate::args::{any, chars};

/// `*semver.Version`
static VERSION: NamedType =
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
