//! The reader: text, tokens, events, a tree, and from there anything serde can build.

mod cursor;
mod de;
mod go_syntax;
mod outline;
mod parser;
mod properties;
mod reader;
mod scalars;
mod scanner;
mod tag;
mod token;
mod tree;

pub(crate) use cursor::is_allowed;
pub use de::{Deserializer, Documents, documents};
pub use outline::{Outlined, outline};
pub use tree::MAX_DEPTH;
