//! Keys as text: as in JSON, a key is a string, or something that prints as one.

use serde::ser::{Error as _, Impossible, Serialize, Serializer};

use crate::error::Error;

/// Writes a key's text behind others.
pub(super) struct KeyText<'k>(pub &'k mut String);

macro_rules! as_text {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, v: $type) -> Result<(), Error> {
            self.0.push_str(&v.to_string());
            Ok(())
        })*
    };
}

fn no_key<T>() -> Result<T, Error> {
    Err(Error::custom("a key must be a string"))
}

impl Serializer for KeyText<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    as_text! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_char: char
    }

    fn serialize_str(self, v: &str) -> Result<(), Error> {
        self.0.push_str(v);
        Ok(())
    }

    fn serialize_f32(self, _: f32) -> Result<(), Error> {
        no_key()
    }

    fn serialize_f64(self, _: f64) -> Result<(), Error> {
        no_key()
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Error> {
        no_key()
    }

    fn serialize_none(self) -> Result<(), Error> {
        no_key()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        no_key()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        no_key()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
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
