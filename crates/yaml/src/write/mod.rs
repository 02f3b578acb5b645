//! The writer: serde to text in one pass, without a tree in between.

mod key_text;
mod keys;
mod look;
mod printer;
mod scalar;
mod ser;

pub(crate) use ser::print;
