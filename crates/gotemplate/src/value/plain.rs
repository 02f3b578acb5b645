//! The border to plain data: serde in, serde out, with no tree in between.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Heap, Str, Type, Value};
use crate::MAX_VALUE_DEPTH;

/// Reads plain data into a heap: `Seed::new(&mut heap).deserialize(deserializer)`.
///
/// Integers become `int64` (as a resource's spec has them), unsigned ones above `i64::MAX` and
/// fractions `float64`; maps `map[string]interface {}`, lists `[]interface {}`.
#[derive(Debug)]
pub struct Seed<'h> {
    heap: &'h mut Heap,
    depth: usize,
    root: Type,
}

impl<'h> Seed<'h> {
    /// A seed that builds in `heap`.
    pub fn new(heap: &'h mut Heap) -> Self {
        Self { heap, depth: 0, root: Type::MAP }
    }

    /// Gives the outermost map a type of its own, such as `common.Values`.
    #[must_use]
    pub fn root_type(mut self, ty: Type) -> Self {
        self.root = ty;
        self
    }

    fn nested(&mut self) -> Seed<'_> {
        Seed { heap: self.heap, depth: self.depth + 1, root: Type::MAP }
    }

    fn check_depth<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth >= MAX_VALUE_DEPTH {
            return Err(E::custom("exceeded max depth"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plain data")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int64(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        // Go's decoders fall back to a float here, and so lose the same digits.
        #[allow(clippy::cast_precision_loss)]
        Ok(i64::try_from(value).map_or(Value::Float64(value as f64), Value::Int64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float64(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::string(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::string(value))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.nested())? {
            items.push(item);
        }
        Ok(Value::List(self.heap.new_list(items)))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let map = self.heap.new_map_of(self.root);
        self.heap.expect(map, access.size_hint().unwrap_or_default());
        while let Some(key) = access.next_key_seed(Key)? {
            let value = access.next_value_seed(self.nested())?;
            self.heap.set(map, key, value);
        }
        Ok(Value::Map(map))
    }
}

/// A key of a map.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Str, D::Error> {
        deserializer.deserialize_string(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, key: &str) -> Result<Str, E> {
        Ok(key.into())
    }
}

/// A value together with its heap, as something serde can serialize.
///
/// Integers serialize as integers and floats as floats; `[]uint8` as base64 text, as Go's JSON
/// does; a typed nil and nil as unit. Text that is no UTF-8 gets U+FFFD, as in Go's JSON.
/// A value nested deeper than [`MAX_VALUE_DEPTH`] (a map that contains itself) is an error.
#[derive(Clone, Copy, Debug)]
pub struct View<'h> {
    heap: &'h Heap,
    value: &'h Value,
    depth: usize,
    bad: char,
    yaml3: bool,
}

impl<'h> View<'h> {
    /// A view of a value.
    pub fn new(heap: &'h Heap, value: &'h Value) -> Self {
        Self { heap, value, depth: 0, bad: char::REPLACEMENT_CHARACTER, yaml3: false }
    }

    /// Puts another character in the place of each byte that is no UTF-8, so that a format that
    /// writes these in a way of its own finds them.
    #[must_use]
    pub fn marking(mut self, bad: char) -> Self {
        self.bad = bad;
        self
    }

    /// Shows bytes as a list of numbers and durations as text (`1m0s`), as yaml.v3 does where JSON
    /// has text in base64 and nanoseconds.
    #[must_use]
    pub fn as_yaml3(mut self) -> Self {
        self.yaml3 = true;
        self
    }

    fn nested<'v>(&'v self, value: &'v Value) -> View<'v> {
        View { heap: self.heap, value, depth: self.depth + 1, bad: self.bad, yaml3: self.yaml3 }
    }

    fn text<'t>(&self, text: &'t Str) -> Cow<'t, str> {
        if let Some(text) = text.as_str() {
            return Cow::Borrowed(text);
        }
        let mut marked = String::with_capacity(text.len());
        for chunk in text.as_bytes().utf8_chunks() {
            marked.push_str(chunk.valid());
            marked.extend(chunk.invalid().iter().map(|_| self.bad));
        }
        Cow::Owned(marked)
    }
}

impl Heap {
    /// A value of this heap as something serde can serialize.
    pub fn view<'h>(&'h self, value: &'h Value) -> View<'h> {
        View::new(self, value)
    }
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.depth > MAX_VALUE_DEPTH {
            return Err(S::Error::custom("exceeded max depth"));
        }
        match self.value {
            Value::Nil | Value::Func(_) => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(n) | Value::Int64(n) => serializer.serialize_i64(*n),
            Value::Uint8(n) => serializer.serialize_u8(*n),
            Value::Uint64(n) => serializer.serialize_u64(*n),
            Value::Float64(n) => serializer.serialize_f64(*n),
            Value::String(text) => serializer.serialize_str(&self.text(text)),
            Value::Bytes(bytes) if self.yaml3 => serializer.collect_seq(bytes.iter()),
            Value::Bytes(bytes) => serializer.serialize_str(&base64(bytes)),
            Value::List(list) => {
                let data = self.heap.list(*list);
                // To yaml.v3 a nil list, or map, is an empty one.
                if data.nil && !self.yaml3 {
                    return serializer.serialize_unit();
                }
                let mut seq = serializer.serialize_seq(Some(data.items.len()))?;
                for item in &data.items {
                    seq.serialize_element(&self.nested(item))?;
                }
                seq.end()
            }
            Value::Map(map) => {
                let data = self.heap.map(*map);
                if data.nil && !self.yaml3 {
                    return serializer.serialize_unit();
                }
                let mut access = serializer.serialize_map(Some(data.entries.len()))?;
                for (key, value) in &data.entries {
                    access.serialize_entry(&self.text(key), &self.nested(value))?;
                }
                access.end()
            }
            Value::Object(object) => {
                if let Some(text) = object.yaml3_text().filter(|_| self.yaml3) {
                    return serializer.serialize_str(&text);
                }
                if let Some(plain) = object.plain() {
                    return self.nested(&plain).serialize(serializer);
                }
                let fields = object.fields();
                let mut access = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in &fields {
                    access.serialize_entry(name, &self.nested(value))?;
                }
                access.end()
            }
        }
    }
}

/// Standard base64 with padding; written out here so that the engine needs no crate for it.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| chunk.get(i).copied().map_or(0, u32::from);
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            if i > chunk.len() {
                text.push('=');
            } else {
                let digit = (word >> (18 - 6 * i)) & 63;
                text.push(char::from(ALPHABET[digit as usize]));
            }
        }
    }
    text
}
