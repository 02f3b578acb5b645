//! Keys as text: as in JSON, a key is a string, or something that prints as one.

use serde::ser::{Error as _, Impossible, Serialize, Serializer};

use crate::error::Error;

/// Turns a key into its text.
pub(super) struct KeyText;

macro_rules! as_text {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, v: $type) -> Result<String, Error> {
            Ok(v.to_string())
        })*
    };
}

fn no_key<T>() -> Result<T, Error> {
    Err(Error::custom("a key must be a string"))
}

impl Serializer for KeyText {
    type Ok = String;
    type Error = Error;
    type SerializeSeq = Impossible<String, Error>;
    type SerializeTuple = Impossible<String, Error>;
    type SerializeTupleStruct = Impossible<String, Error>;
    type SerializeTupleVariant = Impossible<String, Error>;
    type SerializeMap = Impossible<String, Error>;
    type SerializeStruct = Impossible<String, Error>;
    type SerializeStructVariant = Impossible<String, Error>;

    as_text! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_char: char,
        serialize_str: &str
    }

    fn serialize_f32(self, _: f32) -> Result<String, Error> {
        no_key()
    }

    fn serialize_f64(self, _: f64) -> Result<String, Error> {
        no_key()
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<String, Error> {
        no_key()
    }

    fn serialize_none(self) -> Result<String, Error> {
        no_key()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<String, Error> {
        no_key()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<String, Error> {
        no_key()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<String, Error> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<String, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, Error> {
        no_key()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        no_key()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        no_key()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        no_key()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        no_key()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        no_key()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Error> {
        no_key()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        no_key()
    }
}
