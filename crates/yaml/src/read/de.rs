//! From the tree to anything that serde can build.

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::reader::{Budget, Entry, Reader, Scalar};
use super::tree::{Composer, Document, NodeId, NodeKind};
use crate::Numbers;
use crate::error::{Error, ErrorKind};
use crate::number::{go_float32, json_float};

/// One document, ready to be read into a value of any type.
///
/// It is made from text once and consumed by one read:
/// ```
/// use catamaran_yaml::{Deserializer, Numbers};
/// use serde::Deserialize as _;
/// let de = Deserializer::new("a: yes", Numbers::Exact)?;
/// let value = serde_json::Value::deserialize(de)?;
/// assert_eq!(value, serde_json::json!({"a": true}));
/// # Ok::<(), catamaran_yaml::Error>(())
/// ```
#[derive(Debug)]
pub struct Deserializer<'a> {
    reader: Reader<'a>,
}

impl<'a> Deserializer<'a> {
    /// Reads the first document of `text`; an empty text is null. What follows it is not looked
    /// at, as in Go.
    ///
    /// # Errors
    /// The text is not YAML, or nests deeper than [`crate::MAX_DEPTH`].
    pub fn new(text: &'a str, numbers: Numbers) -> Result<Self, Error> {
        Self::within(text, numbers, crate::MAX_SIZE)
    }

    /// A key that comes twice in a mapping is an error; without this, the last one wins.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.reader.strict = true;
        self
    }

    /// As [`Deserializer::new`], into no more than `room` bytes, counting what is usually made of it.
    ///
    /// # Errors
    /// Besides the others, one of kind [`ErrorKind::Size`].
    pub fn within(text: &'a str, numbers: Numbers, room: usize) -> Result<Self, Error> {
        let document = Composer::new(text, room)?.next_document()?.unwrap_or_default();
        Ok(Self::from_document(document, numbers, room))
    }

    /// What the document takes in bytes, together with what is usually made of it; an estimate.
    pub fn size(&self) -> usize {
        self.reader.document.size
    }

    fn from_document(document: Document<'a>, numbers: Numbers, room: usize) -> Self {
        let budget = Budget::new(room.saturating_sub(document.size));
        Self { reader: Reader { document, numbers, strict: false, budget } }
    }
}

/// The documents of a text, one after the other; see [`documents`].
#[derive(Debug)]
pub struct Documents<'a> {
    composer: Result<Composer<'a>, Option<Error>>,
    numbers: Numbers,
}

/// All documents of `text`. The first error ends it.
///
/// ```
/// use serde::Deserialize as _;
/// let texts: Vec<String> = catamaran_yaml::documents("a\n--- b\n", catamaran_yaml::Numbers::Exact)
///     .map(|document| String::deserialize(document?))
///     .collect::<Result<_, _>>()?;
/// assert_eq!(texts, ["a", "b"]);
/// # Ok::<(), catamaran_yaml::Error>(())
/// ```
pub fn documents(text: &str, numbers: Numbers) -> Documents<'_> {
    Documents { composer: Composer::new(text, crate::MAX_SIZE).map_err(Some), numbers }
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Deserializer<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let numbers = self.numbers;
        match &mut self.composer {
            Ok(composer) => {
                let next = composer.next_document().transpose()?;
                let room = crate::MAX_SIZE;
                Some(next.map(|document| Deserializer::from_document(document, numbers, room)))
            }
            Err(error) => error.take().map(Err),
        }
    }
}

/// A node of the tree, on its way into a value.
struct NodeDeserializer<'n, 'a> {
    reader: &'n Reader<'a>,
    id: NodeId,
}

impl NodeDeserializer<'_, '_> {
    /// Follows aliases, then hands over the node.
    fn resolved<T>(self, run: impl FnOnce(Self) -> Result<T, Error>) -> Result<T, Error> {
        self.reader.budget.charge()?;
        let Some(NodeKind::Alias { target, name }) = self.reader.kind(self.id) else {
            return run(self);
        };
        let target = Self { reader: self.reader, id: *target };
        self.reader.budget.follow(self.id, name, || target.resolved(run))
    }

    fn visit_collection<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { reader, id } = self;
        let visit = || match reader.kind(id) {
            Some(NodeKind::Sequence(items)) => {
                visitor.visit_seq(Items { reader, items: items.iter() })
            }
            Some(NodeKind::Mapping(_)) => {
                let entries = reader.entries(id)?;
                visitor.visit_map(Pairs { reader, entries: entries.into_iter(), value: None })
            }
            _ => visitor.visit_unit(),
        };
        visit().map_err(|error| {
            let error = if id == 0 { reader.first(error) } else { error };
            reader.place(id, error)
        })
    }

    fn is_scalar(&self) -> bool {
        matches!(self.reader.kind(self.id), None | Some(NodeKind::Scalar { .. }))
    }

    #[allow(clippy::cast_precision_loss)] // what Numbers::Float64 asks for
    fn visit_scalar<'de, V: Visitor<'de>>(
        &self,
        scalar: Scalar<'_>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let exact = self.reader.numbers == Numbers::Exact;
        match scalar {
            Scalar::Null => visitor.visit_unit(),
            Scalar::Bool(value) => visitor.visit_bool(value),
            Scalar::Int(value) if exact => visitor.visit_i64(value),
            Scalar::Int(value) => visitor.visit_f64(value as f64),
            Scalar::Uint(value) if exact => visitor.visit_u64(value),
            Scalar::Uint(value) => visitor.visit_f64(value as f64),
            Scalar::Float(value) if !value.is_finite() => Err(self.unsupported(value)),
            Scalar::Float(value) => match whole(value) {
                Some(whole) if exact => visitor.visit_i64(whole),
                _ => visitor.visit_f64(value),
            },
            Scalar::Text(text) => {
                self.reader.budget.charge_bytes(text.len())?;
                visitor.visit_str(text)
            }
            Scalar::Owned(text) => {
                self.reader.budget.charge_bytes(text.len())?;
                visitor.visit_string(text)
            }
        }
        .map_err(|error: Error| self.reader.place(self.id, error))
    }

    fn unsupported(&self, value: f64) -> Error {
        let message = format!("json: unsupported value: {}", crate::number::go_float(value));
        self.reader.place(self.id, Error::new(ErrorKind::Json, message))
    }

    fn deserialize_number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.resolved(|node| {
            if !node.is_scalar() {
                return node.visit_collection(visitor);
            }
            match node.reader.scalar(node.id)? {
                Scalar::Null => visitor.visit_i64(0),
                Scalar::Int(value) => visitor.visit_i64(value),
                Scalar::Uint(value) => visitor.visit_u64(value),
                Scalar::Float(value) if whole(value).is_some() => {
                    visitor.visit_i64(whole(value).unwrap_or(0))
                }
                scalar => node.visit_scalar(scalar, visitor),
            }
        })
    }

    fn deserialize_text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.resolved(|node| {
            if !node.is_scalar() {
                return node.visit_collection(visitor);
            }
            let text = match node.reader.scalar(node.id)? {
                Scalar::Null => String::new(),
                Scalar::Bool(value) => value.to_string(),
                Scalar::Int(value) => value.to_string(),
                Scalar::Uint(value) => value.to_string(),
                Scalar::Float(value) => go_float32(value),
                scalar => return node.visit_scalar(scalar, visitor),
            };
            visitor.visit_string(text)
        })
    }
}

/// The integer that JSON makes of a whole float (`1.0` is written as `1`).
#[allow(clippy::cast_possible_truncation)] // checked by the comparison
fn whole(value: f64) -> Option<i64> {
    let fits = value.fract() == 0.0 && value.abs() < 9_223_372_036_854_775_808.0;
    fits.then_some(value as i64)
}

/// Methods of a deserializer that all do the same.
macro_rules! forward {
    ($to:ident: $($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.$to(visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for NodeDeserializer<'_, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.resolved(|node| {
            if node.is_scalar() {
                let scalar = node.reader.scalar(node.id)?;
                return node.visit_scalar(scalar, visitor);
            }
            node.visit_collection(visitor)
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_scalar() && self.reader.scalar(self.id)? == Scalar::Null {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_scalar() && self.reader.scalar(self.id)? == Scalar::Null {
            return visitor.visit_bool(false);
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_scalar() && self.reader.scalar(self.id)? == Scalar::Null {
            return visitor.visit_seq(SeqDeserializer::<_, Error>::new(std::iter::empty::<u8>()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_scalar() && self.reader.scalar(self.id)? == Scalar::Null {
            return visitor
                .visit_map(MapDeserializer::<_, Error>::new(std::iter::empty::<(&str, &str)>()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let reader = self.reader;
        self.resolved(|node| {
            if node.is_scalar() {
                let text = match reader.scalar(node.id)? {
                    Scalar::Text(text) => text.to_owned(),
                    Scalar::Owned(text) => text,
                    Scalar::Bool(value) => value.to_string(),
                    Scalar::Int(value) => value.to_string(),
                    Scalar::Uint(value) => value.to_string(),
                    Scalar::Float(value) => json_float(value),
                    Scalar::Null => String::new(),
                };
                return visitor.visit_enum(text.into_deserializer());
            }
            let entries = reader.entries(node.id)?;
            let access = Pairs { reader, entries: entries.into_iter(), value: None };
            de::value::MapAccessDeserializer::new(access).deserialize_enum(name, variants, visitor)
        })
    }

    forward! { deserialize_text: deserialize_str deserialize_string }

    forward! {
        deserialize_number:
        deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

/// Methods of a deserializer that the root of the tree has.
macro_rules! at_root {
    ($($method:ident($($argument:ident: $ty:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $ty,)*
            visitor: V,
        ) -> Result<V::Value, Error> {
            let root = NodeDeserializer { reader: &self.reader, id: 0 };
            root.$method($($argument,)* visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Deserializer<'_> {
    type Error = Error;

    at_root! {
        deserialize_any();
        deserialize_bool();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_i32();
        deserialize_i64();
        deserialize_map();
        deserialize_newtype_struct(name: &'static str);
        deserialize_option();
        deserialize_seq();
        deserialize_str();
        deserialize_string();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u8();
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

struct Items<'n, 'a> {
    reader: &'n Reader<'a>,
    items: std::slice::Iter<'n, NodeId>,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(&id) = self.items.next() else { return Ok(None) };
        seed.deserialize(NodeDeserializer { reader: self.reader, id }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Pairs<'n, 'a> {
    reader: &'n Reader<'a>,
    entries: std::vec::IntoIter<Entry<'n>>,
    value: Option<Entry<'n>>,
}

impl<'de> MapAccess<'de> for Pairs<'_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        let key = seed.deserialize(StrDeserializer::<Error>::new(&entry.key))?;
        self.value = Some(entry);
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some(Entry { value: id, merged, .. }) = self.value.take() else {
            return Err(de::Error::custom("value asked for before its key"));
        };
        let depth = &self.reader.budget.depth;
        depth.set(depth.get() + u32::from(merged));
        let value = seed.deserialize(NodeDeserializer { reader: self.reader, id });
        depth.set(depth.get() - u32::from(merged));
        value
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
