//! The reader: text, tokens, events, a tree, and from there anything serde can build.

mod bytes;
mod cursor;
mod de;
mod go_syntax;
mod outline;
mod parser;
mod properties;
mod reader;
mod scalars;
mod scanner;
mod strict;
mod tag;
mod token;
mod tree;

pub use bytes::text_of;
pub(crate) use cursor::is_allowed;
pub use de::{Deserializer, Documents, documents};
pub use outline::{Outlined, outline};
pub use strict::check_repeated_keys;
pub use tree::MAX_DEPTH;
