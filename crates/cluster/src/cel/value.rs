//! What an expression and its parts are worth.

use std::cmp::Ordering;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::CelError;
use super::eval::Scope;

/// A text; cheap to clone, however long.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    /// Of a variable, or of the expression.
    Borrowed(&'a str),
    /// Made by the expression.
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

/// A value; cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    /// Of a variable.
    Array(&'a [Value]),
    /// Of a variable.
    Object(&'a Map<String, Value>),
    /// Made by the expression.
    List(Rc<[Val<'a>]>),
    /// Made by the expression.
    Map(Rc<[(Val<'a>, Val<'a>)]>),
    Optional(Option<Rc<Val<'a>>>),
}

impl<'a> Val<'a> {
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number),
                (None, Some(number)) => Self::Uint(number),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::borrowed(text),
            Value::Array(items) => Self::Array(items),
            Value::Object(fields) => Self::Object(fields),
        }
    }

    pub fn text(text: String) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub fn borrowed(text: &'a str) -> Self {
        Self::Text(Text::Borrowed(text))
    }

    pub fn list(items: Vec<Self>) -> Self {
        Self::List(items.into())
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Uint(_) => "an integer",
            Self::Double(_) => "a double",
            Self::Text(_) => "a string",
            Self::Array(_) | Self::List(_) => "a list",
            Self::Object(_) | Self::Map(_) => "a map",
            Self::Optional(_) => "an optional value",
        }
    }

    /// The items of a list.
    pub fn items(&self, scope: &mut Scope<'a>) -> Result<Option<Vec<Self>>, CelError> {
        Ok(match self {
            Self::Array(items) => {
                scope.spend(items.len())?;
                Some(items.iter().map(Self::of).collect())
            }
            Self::List(items) => {
                scope.spend(items.len())?;
                Some(items.to_vec())
            }
            _ => None,
        })
    }

    /// The keys of a map.
    pub fn keys(&self, scope: &mut Scope<'a>) -> Result<Option<Vec<Self>>, CelError> {
        Ok(match self {
            Self::Object(fields) => {
                scope.spend(fields.len())?;
                Some(fields.keys().map(|key| Self::borrowed(key)).collect())
            }
            Self::Map(entries) => {
                scope.spend(entries.len())?;
                Some(entries.iter().map(|(key, _)| key.clone()).collect())
            }
            _ => None,
        })
    }

    /// What a map has under a key; `Err` where this is no map.
    pub fn get(&self, key: &Self, scope: &mut Scope<'a>) -> Result<Option<Self>, CelError> {
        match (self, key) {
            (Self::Object(fields), Self::Text(key)) => {
                scope.spend(key.len() / 16)?;
                Ok(fields.get(&**key).map(Self::of))
            }
            (Self::Object(_), _) => Ok(None),
            (Self::Map(entries), key) => {
                for (name, value) in entries.iter() {
                    if name.equals(key, scope)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
            _ => Err(CelError::Unfit(format!("{} has no fields", self.kind()))),
        }
    }

    /// A whole number, whatever it is written as.
    fn whole(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some((*number).into()),
            Self::Uint(number) => Some((*number).into()),
            _ => None,
        }
    }

    /// The item that a list has at a place.
    pub fn item(&self, at: &Self) -> Result<Option<Self>, CelError> {
        let place = match at {
            Self::Double(number) if number.fract() == 0.0 => exact(*number),
            at => at.whole(),
        };
        let place =
            place.ok_or_else(|| CelError::Unfit(format!("{} is no place in a list", at.kind())))?;
        let place = usize::try_from(place).ok();
        match self {
            Self::Array(items) => Ok(place.and_then(|at| items.get(at)).map(Self::of)),
            Self::List(items) => Ok(place.and_then(|at| items.get(at)).cloned()),
            _ => Err(CelError::Unfit(format!("{} has no items", self.kind()))),
        }
    }

    /// Values of different kinds are different, but for numbers.
    pub fn equals(&self, other: &Self, scope: &mut Scope<'a>) -> Result<bool, CelError> {
        scope.spend(1)?;
        match (self, other) {
            (Self::Null, Self::Null) => Ok(true),
            (Self::Bool(one), Self::Bool(other)) => Ok(one == other),
            (Self::Text(one), Self::Text(other)) => {
                scope.spend(one.len().min(other.len()) / 16)?;
                Ok(**one == **other)
            }
            (Self::Array(_) | Self::List(_), Self::Array(_) | Self::List(_)) => {
                let (Some(one), Some(other)) = (self.items(scope)?, other.items(scope)?) else {
                    return Ok(false);
                };
                if one.len() != other.len() {
                    return Ok(false);
                }
                for (one, other) in one.iter().zip(&other) {
                    if !one.equals(other, scope)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Self::Object(_) | Self::Map(_), Self::Object(_) | Self::Map(_)) => {
                let (Some(keys), Some(others)) = (self.keys(scope)?, other.keys(scope)?) else {
                    return Ok(false);
                };
                if keys.len() != others.len() {
                    return Ok(false);
                }
                for key in &keys {
                    let (Some(one), Some(other)) = (self.get(key, scope)?, other.get(key, scope)?)
                    else {
                        return Ok(false);
                    };
                    if !one.equals(&other, scope)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Self::Optional(one), Self::Optional(other)) => match (one, other) {
                (Some(one), Some(other)) => one.equals(other, scope),
                (one, other) => Ok(one.is_none() && other.is_none()),
            },
            (one, other) => Ok(compare_numbers(one, other) == Some(Ordering::Equal)),
        }
    }

    /// Which is the greater; `None` for what has no order, as NaN.
    pub fn order(&self, other: &Self, scope: &mut Scope<'a>) -> Result<Option<Ordering>, CelError> {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => Ok(Some(one.cmp(other))),
            (Self::Text(one), Self::Text(other)) => {
                scope.spend(one.len().min(other.len()) / 16)?;
                Ok(Some((**one).cmp(&**other)))
            }
            (
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
            ) => Ok(compare_numbers(self, other)),
            _ => {
                Err(CelError::Unfit(format!("{} and {} have no order", self.kind(), other.kind())))
            }
        }
    }

    pub fn json(&self, scope: &mut Scope<'a>) -> Result<Value, CelError> {
        scope.spend(1)?;
        Ok(match self {
            Self::Null | Self::Optional(None) => Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(number) => (*number).into(),
            Self::Uint(number) => (*number).into(),
            Self::Double(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
            Self::Text(text) => (&**text).into(),
            Self::Array(items) => Value::Array(items.to_vec()),
            Self::Object(fields) => Value::Object((*fields).clone()),
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.json(scope)).collect::<Result<_, _>>()?)
            }
            Self::Map(entries) => {
                let mut fields = Map::new();
                for (key, value) in entries.iter() {
                    let name = match key.json(scope)? {
                        Value::String(name) => name,
                        other => other.to_string(),
                    };
                    fields.insert(name, value.json(scope)?);
                }
                Value::Object(fields)
            }
            Self::Optional(Some(value)) => value.json(scope)?,
        })
    }
}

/// A double's whole part; `None` beyond what integers reach.
#[expect(clippy::cast_possible_truncation, reason = "within 96 bits")]
pub(super) fn exact(number: f64) -> Option<i128> {
    (number.abs() < 1e28).then(|| number.trunc() as i128)
}

fn compare_numbers(one: &Val<'_>, other: &Val<'_>) -> Option<Ordering> {
    match (one, other) {
        (Val::Double(one), Val::Double(other)) => one.partial_cmp(other),
        (Val::Double(double), whole) => {
            compare_with_double(whole.whole()?, *double).map(Ordering::reverse)
        }
        (whole, Val::Double(double)) => compare_with_double(whole.whole()?, *double),
        (one, other) => Some(one.whole()?.cmp(&other.whole()?)),
    }
}

fn compare_with_double(whole: i128, double: f64) -> Option<Ordering> {
    match exact(double) {
        Some(near) => Some(whole.cmp(&near).then(0.0.partial_cmp(&double.fract())?)),
        None if double.is_nan() => None,
        None if double > 0.0 => Some(Ordering::Less),
        None => Some(Ordering::Greater),
    }
}
