//! The objects in an answer of the API server, one by one, as the answer arrives.
//!
//! A list that is decoded whole fails whole: one object that is nested too deep hides all others, and one
//! that is large takes its room many times. A [`Reader`] cuts an answer into its objects without building
//! trees and holds one of them at a time. An object within its [`Limits`] is decoded; of any other one
//! its metadata is read, and what is wrong with it ([`Refusal`]).

mod fields;
mod reader;
mod request;
#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, TypeMeta};
use serde_json::Value;

use crate::bounds::{Size, TooLarge};

use fields::Fields;
pub(crate) use reader::{Kind, Malformed, Read, Reader};
pub(crate) use request::tree;
pub use request::{Part, get, patch};

/// An object of an answer.
#[derive(Debug)]
pub struct Item {
    /// The object without its `managedFields`, unless they were asked for. Of a refused one its metadata
    /// and its conditions, as far as they can be read.
    pub object: DynamicObject,
    /// How large its text is.
    pub size: Size,
    /// Why it is not decoded, if it is not.
    pub refusal: Option<Refusal>,
}

/// Why an object is not decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is over one of the bounds.
    #[error("the object is too large: {0}")]
    TooLarge(#[from] TooLarge),
    /// It is not what an object has to be. The message quotes nothing of it.
    #[error("the object cannot be decoded: {0}")]
    Undecodable(String),
}

impl From<DynamicObject> for Item {
    fn from(object: DynamicObject) -> Self {
        Self { object, size: Size::default(), refusal: None }
    }
}

impl Item {
    /// Decodes an object from its text, or reads its metadata alone where the text is over a bound.
    fn decode(text: Result<&[u8], TooLarge>, size: Size, fields: &Fields) -> Self {
        let decoded = text.map_err(Refusal::from).and_then(|text| {
            let value = serde_json::from_slice(text).map_err(|error| undecodable(&error))?;
            object(value)
        });
        match decoded {
            Ok(object) => Self { object, size, refusal: None },
            Err(refusal) => Self { object: fields.object(), size, refusal: Some(refusal) },
        }
    }
}

/// Splits a tree into metadata and the rest: `DynamicObject`'s own decoding copies it twice.
fn object(value: Value) -> Result<DynamicObject, Refusal> {
    let Value::Object(mut fields) = value else {
        return Err(Refusal::Undecodable("it is not an object".to_owned()));
    };
    let mut text = |field: &str| match fields.remove(field) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let types = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
    let types = Some(types).filter(|types| !types.kind.is_empty());
    let metadata = match fields.remove("metadata") {
        Some(metadata) => serde_json::from_value::<ObjectMeta>(metadata)
            .map_err(|_| Refusal::Undecodable("its metadata has another form".to_owned()))?,
        None => ObjectMeta::default(),
    };
    Ok(DynamicObject { types, metadata, data: Value::Object(fields) })
}

/// Says where a text is wrong, without quoting it.
fn undecodable(error: &serde_json::Error) -> Refusal {
    let what = match error.classify() {
        serde_json::error::Category::Data => "a value has another form",
        _ => "it is not valid JSON",
    };
    Refusal::Undecodable(format!("{what} (line {}, column {})", error.line(), error.column()))
}
