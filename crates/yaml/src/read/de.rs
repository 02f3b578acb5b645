//! From the tree to anything that serde can build.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::tree::{Composer, Document, NodeId, NodeKind};
use super::{go_syntax, tag};
use crate::error::{Error, ErrorKind};
use crate::number::{go_float32, json_float};
use crate::resolve::{Resolved, is_timestamp, resolve};
use crate::{Dialect, Numbers};

/// Text that aliases may repeat, in bytes, in one document.
const MAX_ALIASED_BYTES: usize = 32 << 20;
/// Up to as many values, 99 % may come from aliases; above, ever fewer, down to 10 %.
const ALIAS_FREE_VALUES: f64 = 400_000.0;
const ALIAS_STRICT_VALUES: f64 = 4_000_000.0;

/// A scalar, resolved.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar<'n> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(&'n str),
    Owned(String),
}

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
        let document = Composer::new(text)?.next_document()?.unwrap_or_default();
        Ok(Self::from_document(document, numbers))
    }

    fn from_document(document: Document<'a>, numbers: Numbers) -> Self {
        Self { reader: Reader { document, numbers, budget: Budget::default() } }
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
    Documents { composer: Composer::new(text).map_err(Some), numbers }
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Deserializer<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let numbers = self.numbers;
        match &mut self.composer {
            Ok(composer) => {
                let next = composer.next_document().transpose()?;
                Some(next.map(|document| Deserializer::from_document(document, numbers)))
            }
            Err(error) => error.take().map(Err),
        }
    }
}

/// Counts what aliases cost.
#[derive(Debug, Default)]
struct Budget {
    values: Cell<u32>,
    aliased: Cell<u32>,
    bytes: Cell<usize>,
    depth: Cell<u32>,
    /// The aliases that are being followed.
    active: RefCell<Vec<NodeId>>,
}

impl Budget {
    /// One more value was visited. Small documents may consist of aliases nearly altogether,
    /// large ones hardly (the same rule as Go's, so that the same documents pass).
    fn charge(&self) -> Result<(), Error> {
        self.values.set(self.values.get().saturating_add(1));
        if self.depth.get() == 0 {
            return Ok(());
        }
        self.aliased.set(self.aliased.get().saturating_add(1));
        let (aliased, values) = (f64::from(self.aliased.get()), f64::from(self.values.get()));
        let over = (values - ALIAS_FREE_VALUES) / (ALIAS_STRICT_VALUES - ALIAS_FREE_VALUES);
        let allowed = 0.99 - 0.89 * over.clamp(0.0, 1.0);
        if aliased > 100.0 && values > 1000.0 && aliased / values > allowed {
            return Err(Error::decode("document contains excessive aliasing"));
        }
        Ok(())
    }

    fn charge_bytes(&self, length: usize) -> Result<(), Error> {
        if self.depth.get() > 0 {
            self.bytes.set(self.bytes.get().saturating_add(length));
            if self.bytes.get() > MAX_ALIASED_BYTES {
                return Err(Error::decode("document contains excessive aliasing"));
            }
        }
        Ok(())
    }

    fn follow<T>(
        &self,
        alias: NodeId,
        name: &str,
        run: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.active.borrow().contains(&alias) {
            return Err(Error::decode(format!("anchor '{name}' value contains itself")));
        }
        self.active.borrow_mut().push(alias);
        self.depth.set(self.depth.get() + 1);
        let result = run();
        self.depth.set(self.depth.get() - 1);
        self.active.borrow_mut().pop();
        result
    }
}

/// A document and what it may cost.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    document: Document<'a>,
    numbers: Numbers,
    budget: Budget,
}

/// A pair of a mapping after merging. `merged`: it came through an alias.
struct Entry<'n> {
    key: Cow<'n, str>,
    value: NodeId,
    merged: bool,
}

impl Reader<'_> {
    pub(super) fn document(&self) -> &Document<'_> {
        &self.document
    }

    fn kind(&self, id: NodeId) -> Option<&NodeKind<'_>> {
        self.document.node(id).map(|node| &node.kind)
    }

    fn place(&self, id: NodeId, error: Error) -> Error {
        let (line, column) = self.document.node(id).map_or((0, 0), |node| node.mark);
        if error.line() == 0 { error.at(line, column) } else { error }
    }

    /// What the scalar means; a node that is not a scalar is null.
    pub(super) fn scalar(&self, id: NodeId) -> Result<Scalar<'_>, Error> {
        let Some(NodeKind::Scalar { value, tag, implicit }) = self.kind(id) else {
            return Ok(Scalar::Null);
        };
        let scalar = match tag.as_deref() {
            None if !implicit => Ok(Scalar::Text(value)),
            None => Ok(from_resolved(resolve(value, Dialect::V2, false), value)),
            Some(tag) => tagged(tag, value),
        };
        scalar.map_err(|error| self.place(id, error))
    }

    /// The key as JSON has it: always a string.
    fn key(&self, id: NodeId, value: NodeId) -> Result<Cow<'_, str>, Error> {
        match self.kind(id) {
            Some(NodeKind::Alias { target, name }) => {
                return self.budget.follow(id, name, || self.key(*target, value));
            }
            Some(NodeKind::Scalar { .. }) => {}
            _ => {
                // What is wrong inside the key comes first.
                self.check_keys(id)?;
                let message = format!("invalid map key: {}", go_syntax::format(self, id)?);
                return Err(self.place(id, Error::decode(message)));
            }
        }
        Ok(match self.scalar(id)? {
            Scalar::Text(text) => Cow::Borrowed(text),
            Scalar::Owned(text) => Cow::Owned(text),
            Scalar::Int(number) => Cow::Owned(number.to_string()),
            Scalar::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
            Scalar::Float(number) => Cow::Owned(float_key(number)),
            Scalar::Null => return Err(self.bad_key(id, value, "%!s(<nil>)", "<nil>")),
            Scalar::Uint(number) => {
                return Err(self.bad_key(id, value, "uint64", &format!("{number:#x}")));
            }
        })
    }

    fn check_keys(&self, id: NodeId) -> Result<(), Error> {
        match self.kind(id) {
            Some(NodeKind::Sequence(items)) => {
                items.iter().try_for_each(|&item| self.check_keys(item))
            }
            Some(NodeKind::Mapping(pairs)) => pairs.iter().try_for_each(|&(key, value)| {
                if self.is_merge(key) {
                    return self.merge(value, &mut Entries::default());
                }
                if !matches!(self.kind(key), Some(NodeKind::Scalar { .. })) {
                    self.key(key, value)?;
                }
                self.check_keys(value)
            }),
            _ => Ok(()),
        }
    }

    fn bad_key(&self, id: NodeId, value: NodeId, go_type: &str, key: &str) -> Error {
        let value = go_syntax::format(self, value).unwrap_or_default();
        let message = format!("unsupported map key of type: {go_type}, key: {key}, value: {value}");
        self.place(id, Error::new(ErrorKind::Json, message))
    }

    /// The pairs of a mapping: merges done, of equal keys the last.
    fn entries(&self, id: NodeId) -> Result<Vec<Entry<'_>>, Error> {
        let mut entries = Entries::default();
        self.collect(id, &mut entries)?;
        Ok(entries.list)
    }

    fn collect<'n>(&'n self, id: NodeId, into: &mut Entries<'n>) -> Result<(), Error> {
        let Some(NodeKind::Mapping(pairs)) = self.kind(id) else { return Ok(()) };
        for &(key, value) in pairs {
            if self.is_merge(key) {
                self.merge(value, into)?;
                continue;
            }
            self.budget.charge()?;
            let merged = self.budget.depth.get() > 0;
            let name = self.key(key, value)?;
            self.budget.charge_bytes(name.len())?;
            into.set(Entry { key: name, value, merged });
        }
        Ok(())
    }

    fn is_merge(&self, id: NodeId) -> bool {
        matches!(self.kind(id), Some(NodeKind::Scalar { value, tag, implicit })
            if value == "<<" && (*implicit || tag.as_deref() == Some("tag:yaml.org,2002:merge")))
    }

    fn merge<'n>(&'n self, id: NodeId, into: &mut Entries<'n>) -> Result<(), Error> {
        match self.kind(id) {
            Some(NodeKind::Sequence(items)) => {
                // The first of them wins, so it comes last.
                items.iter().rev().try_for_each(|&item| self.merge_one(item, into))
            }
            _ => self.merge_one(id, into),
        }
    }

    fn merge_one<'n>(&'n self, id: NodeId, into: &mut Entries<'n>) -> Result<(), Error> {
        match self.kind(id) {
            Some(NodeKind::Mapping(_)) => self.collect(id, into),
            Some(NodeKind::Alias { target, name })
                if matches!(self.kind(*target), Some(NodeKind::Mapping(_))) =>
            {
                self.budget.charge()?;
                self.budget.follow(id, name, || self.collect(*target, into))
            }
            _ => {
                let message = "map merge requires map or sequence of maps as the value";
                Err(self.place(id, Error::decode(message)))
            }
        }
    }
}

/// The entries of a mapping by key.
#[derive(Default)]
struct Entries<'n> {
    list: Vec<Entry<'n>>,
    /// Only for large mappings: a few keys are compared faster than hashed.
    index: HashMap<Cow<'n, str>, usize>,
}

impl<'n> Entries<'n> {
    const SMALL: usize = 16;

    fn set(&mut self, entry: Entry<'n>) {
        let known = if self.list.len() <= Self::SMALL {
            self.list.iter().position(|known| known.key == entry.key)
        } else {
            if self.index.is_empty() {
                self.index = self
                    .list
                    .iter()
                    .enumerate()
                    .map(|(at, entry)| (entry.key.clone(), at))
                    .collect();
            }
            self.index.get(&entry.key).copied()
        };
        if let Some(known) = known.and_then(|at| self.list.get_mut(at)) {
            *known = entry;
            return;
        }
        if !self.index.is_empty() {
            self.index.insert(entry.key.clone(), self.list.len());
        }
        self.list.push(entry);
    }
}

fn from_resolved(resolved: Resolved, text: &str) -> Scalar<'_> {
    match resolved {
        Resolved::Null => Scalar::Null,
        Resolved::Bool(value) => Scalar::Bool(value),
        Resolved::Int(value) => Scalar::Int(value),
        Resolved::Uint(value) => Scalar::Uint(value),
        Resolved::Float(value) => Scalar::Float(value),
        Resolved::Timestamp | Resolved::Text => Scalar::Text(text),
    }
}

/// A scalar with an explicit tag. Unknown tags mean text.
fn tagged<'n>(tag: &str, value: &'n str) -> Result<Scalar<'n>, Error> {
    let wanted = match tag::short(tag) {
        short if short.starts_with("!!") => short,
        _ => return Ok(Scalar::Text(value)),
    };
    match wanted.as_str() {
        "!!binary" => {
            let packed: String = value.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            let bytes = STANDARD
                .decode(packed)
                .map_err(|_| Error::decode("!!binary value contains invalid base64 data"))?;
            Ok(Scalar::Owned(lossy(&bytes)))
        }
        "!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp" => {
            let resolved = if wanted == "!!timestamp" && is_timestamp(value) {
                Resolved::Timestamp
            } else {
                resolve(value, Dialect::V2, false)
            };
            match (resolved, wanted.as_str()) {
                // A number is a float if it is told to be.
                #[allow(clippy::cast_precision_loss)] // as Go does
                (Resolved::Int(number), "!!float") => Ok(Scalar::Float(number as f64)),
                _ if resolved.tag() == wanted => Ok(from_resolved(resolved, value)),
                _ => Err(Error::decode(format!(
                    "cannot decode {} `{value}` as a {wanted}",
                    resolved.tag()
                ))),
            }
        }
        _ => Ok(Scalar::Text(value)),
    }
}

/// Bytes as JSON would carry them: each one that is not UTF-8 becomes U+FFFD.
fn lossy(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

fn float_key(number: f64) -> String {
    match go_float32(number).as_str() {
        "+Inf" => ".inf".into(),
        "-Inf" => "-.inf".into(),
        "NaN" => ".nan".into(),
        text => text.to_owned(),
    }
}

/// A node of the tree, on its way into a value.
struct NodeDeserializer<'n, 'a> {
    reader: &'n Reader<'a>,
    id: NodeId,
}

impl<'n, 'a> NodeDeserializer<'n, 'a> {
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
        let result = match reader.kind(id) {
            Some(NodeKind::Sequence(items)) => {
                visitor.visit_seq(Items { reader, items: items.iter() })
            }
            Some(NodeKind::Mapping(_)) => {
                let entries = reader.entries(id)?;
                visitor.visit_map(Pairs { reader, entries: entries.into_iter(), value: None })
            }
            _ => visitor.visit_unit(),
        };
        result.map_err(|error| reader.place(id, error))
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

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_text(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_text(visitor)
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

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_number(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_number(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_number(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_number(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_number(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_number(visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

impl<'de> de::Deserializer<'de> for Deserializer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.root().deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.root().deserialize_option(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.root().deserialize_string(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.root().deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.root().deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.root().deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.root().deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.root().deserialize_i64(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct
        tuple tuple_struct identifier ignored_any
    }
}

impl<'a> Deserializer<'a> {
    fn root(&self) -> NodeDeserializer<'_, 'a> {
        NodeDeserializer { reader: &self.reader, id: 0 }
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
