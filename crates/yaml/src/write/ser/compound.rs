//! serde's names for sequences and mappings that are being written.

use serde::ser::{self, Serialize};

use super::Collection;
use crate::error::Error;

/// A sequence that is being written.
pub(super) struct Sequence<'p>(pub(super) Collection<'p>);

impl ser::SerializeSeq for Sequence<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.0.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.0.finish("[]");
        Ok(())
    }
}

impl ser::SerializeTuple for Sequence<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.0.item(value)
    }

    fn end(self) -> Result<(), Error> {
        ser::SerializeSeq::end(self)
    }
}

impl ser::SerializeTupleStruct for Sequence<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.0.item(value)
    }

    fn end(self) -> Result<(), Error> {
        ser::SerializeSeq::end(self)
    }
}

/// A mapping that is being written.
pub(super) struct Mapping<'p>(pub(super) Collection<'p>);

impl ser::SerializeMap for Mapping<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.0.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.0.value(value)
    }

    fn end(self) -> Result<(), Error> {
        self.0.finish("{}");
        Ok(())
    }
}

impl ser::SerializeStruct for Mapping<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.0.key(key)?;
        self.0.value(value)
    }

    fn end(self) -> Result<(), Error> {
        ser::SerializeMap::end(self)
    }
}
