//! Bounds on JSON that others wrote, measured on its bytes before a tree is built from it.
//!
//! A tree takes up to a hundred times the room of its text (`{"a":1}` is 7 bytes, and more than 600 in
//! memory), and a deep one overflows the stack of whoever walks it. [`measure`] needs neither recursion
//! nor memory.

use std::fmt;

/// How large a JSON text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Length of the text.
    pub bytes: usize,
    /// Number of values: objects, arrays, strings, numbers, booleans and nulls. Keys do not count.
    pub nodes: usize,
    /// Number of objects and arrays that lie within each other: `[{}]` has 2, a plain string 0.
    pub depth: usize,
}

/// How large a JSON text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits(Size);

/// What is over its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {found} {quantity}, the bound is {bound}")]
pub struct TooLarge {
    /// What was measured.
    pub quantity: Quantity,
    /// How much there is; at least this much where reading ended before the end of the text.
    pub found: usize,
    /// How much there may be.
    pub bound: usize,
}

/// What [`Limits`] bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// [`Size::bytes`].
    Bytes,
    /// [`Size::nodes`].
    Nodes,
    /// [`Size::depth`].
    Depth,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes of JSON",
            Self::Nodes => "values (objects, lists, strings, numbers)",
            Self::Depth => "levels of nesting",
        })
    }
}

impl Limits {
    /// The bounds of a resource whose spec is worked on. etcd takes objects of up to 1.5 MiB, serde's
    /// readers 127 levels; the number of values keeps a reconcile, which holds many copies of the tree,
    /// within the memory of the operator.
    pub const RESOURCE: Self = Self::new(3 << 20, 25_000, 100);

    /// The bounds of any other object, of which a small part is kept. Some definitions of kinds have
    /// tens of thousands of values.
    pub const OBJECT: Self = Self::new(6 << 20, 60_000, 110);

    /// The bounds of an answer with many objects of this process's own choice.
    pub(crate) const LIST: Self = Self::new(64 << 20, 1_000_000, 110);

    /// Bounds of so many bytes, values and levels.
    pub const fn new(bytes: usize, nodes: usize, depth: usize) -> Self {
        Self(Size { bytes, nodes, depth })
    }

    /// The same with so many bytes.
    #[must_use]
    pub const fn with_bytes(self, bytes: usize) -> Self {
        Self(Size { bytes, ..self.0 })
    }

    /// The same for an object together with its `managedFields`, which repeat its fields.
    #[must_use]
    pub const fn with_managed_fields(self) -> Self {
        let Size { bytes, nodes, depth } = self.0;
        Self(Size { bytes: bytes * 2, nodes: nodes * 2, depth: depth + 10 })
    }

    /// How many bytes there may be.
    pub const fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Compares a size with these bounds.
    ///
    /// # Errors
    /// What is over its bound; of several the depth, then the number of values.
    pub const fn admit(&self, size: Size) -> Result<(), TooLarge> {
        let (quantity, found, bound) = if size.depth > self.0.depth {
            (Quantity::Depth, size.depth, self.0.depth)
        } else if size.nodes > self.0.nodes {
            (Quantity::Nodes, size.nodes, self.0.nodes)
        } else if size.bytes > self.0.bytes {
            (Quantity::Bytes, size.bytes, self.0.bytes)
        } else {
            return Ok(());
        };
        Err(TooLarge { quantity, found, bound })
    }

    /// Measures a text and compares it with these bounds. Whether it is valid JSON is not checked.
    ///
    /// # Errors
    /// See [`Limits::admit`].
    pub fn check(&self, json: &[u8]) -> Result<Size, TooLarge> {
        let size = measure(json);
        self.admit(size).map(|()| size)
    }
}

/// Measures a text in one pass, without recursion. What is not valid JSON has a size as well: deciding
/// that it is invalid is left to the parser.
pub fn measure(json: &[u8]) -> Size {
    let (mut meter, mut lexer, mut rest) = (Meter::default(), Lexer::default(), json);
    while !rest.is_empty() {
        let (read, token) = lexer.next(rest);
        if let Some(token) = token {
            meter.count(token);
        }
        rest = rest.get(read..).unwrap_or_default();
    }
    Size { bytes: json.len(), ..meter.size }
}

/// Counts values and levels of nesting.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    size: Size,
    depth: usize,
}

impl Meter {
    pub fn count(&mut self, token: Token) {
        match token {
            Token::Open => {
                self.depth = self.depth.saturating_add(1);
                self.size.depth = self.size.depth.max(self.depth);
                self.size.nodes = self.size.nodes.saturating_add(1);
            }
            Token::Close => self.depth = self.depth.saturating_sub(1),
            Token::Text | Token::Scalar => self.size.nodes = self.size.nodes.saturating_add(1),
            // The text before it was a key.
            Token::Colon => self.size.nodes = self.size.nodes.saturating_sub(1),
            Token::Comma | Token::TextEnd => {}
        }
    }

    pub fn add_bytes(&mut self, bytes: usize) {
        self.size.bytes = self.size.bytes.saturating_add(bytes);
    }

    pub fn size(&self) -> Size {
        self.size
    }
}

/// A piece of JSON's grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// `{` or `[`.
    Open,
    /// `}` or `]`.
    Close,
    /// `:`.
    Colon,
    /// `,`.
    Comma,
    /// The quote at the begin of a string.
    Text,
    /// The quote at its end.
    TextEnd,
    /// The first byte of a number, a boolean or null.
    Scalar,
}

/// Splits JSON into tokens; the text may come in pieces that end anywhere.
#[derive(Debug, Default)]
pub(crate) struct Lexer {
    in_text: bool,
    is_escaped: bool,
    in_scalar: bool,
}

impl Lexer {
    /// Reads up to the end of the next token: how many bytes, and the token unless the input ended before.
    pub fn next(&mut self, input: &[u8]) -> (usize, Option<Token>) {
        if self.in_text { self.text(input) } else { self.between(input) }
    }

    fn text(&mut self, input: &[u8]) -> (usize, Option<Token>) {
        let mut at = 0;
        loop {
            if self.is_escaped && at < input.len() {
                self.is_escaped = false;
                at += 1;
            }
            let rest = input.get(at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return (input.len(), None);
            };
            at += found + 1;
            if rest.get(found) == Some(&b'"') {
                self.in_text = false;
                return (at, Some(Token::TextEnd));
            }
            self.is_escaped = true;
        }
    }

    fn between(&mut self, input: &[u8]) -> (usize, Option<Token>) {
        for (at, byte) in input.iter().enumerate() {
            let was_in_scalar = std::mem::take(&mut self.in_scalar);
            let token = match byte {
                b'{' | b'[' => Token::Open,
                b'}' | b']' => Token::Close,
                b':' => Token::Colon,
                b',' => Token::Comma,
                b'"' => {
                    self.in_text = true;
                    Token::Text
                }
                b' ' | b'\t' | b'\n' | b'\r' => continue,
                _ => {
                    self.in_scalar = true;
                    if was_in_scalar {
                        continue;
                    }
                    Token::Scalar
                }
            };
            return (at + 1, Some(token));
        }
        (input.len(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The size of a tree, counted by walking it.
    fn walked(value: &Value) -> (usize, usize) {
        let below: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => return (1, 0),
        };
        let sizes = below.into_iter().map(walked);
        sizes.fold((1, 1), |(nodes, depth), (n, d)| (nodes + n, depth.max(d + 1)))
    }

    /// A tree that is different for every seed.
    fn tree(seed: &mut u64, depth: usize) -> Value {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (kind, count) = ((*seed >> 33) % 8, (*seed >> 40) % 4);
        let texts = ["", "a\"b", "\\", "}{][,:", "ü\n\u{1}", "\\\"", "null", "a\\"];
        let text = |at: u64| texts[usize::try_from(at % 8).unwrap()];
        match kind {
            0 => json!(null),
            1 => json!(-1.5e-7),
            2 => json!(*seed),
            3 => json!(text(*seed >> 50)),
            _ if depth == 0 => json!(true),
            4 | 5 => (0..count).map(|_| tree(seed, depth - 1)).collect(),
            _ => {
                let fields = (0..count)
                    .map(|at| (format!("{}{at}", text(*seed >> 45)), tree(seed, depth - 1)));
                Value::Object(fields.collect())
            }
        }
    }

    #[test]
    fn the_size_of_a_text_is_that_of_its_tree() {
        let mut seed = 7;
        for _ in 0..2000 {
            let tree = tree(&mut seed, 6);
            let (nodes, depth) = walked(&tree);
            for text in [tree.to_string(), serde_json::to_string_pretty(&tree).unwrap()] {
                let expected = Size { bytes: text.len(), nodes, depth };
                assert_eq!(measure(text.as_bytes()), expected, "{text}");
            }
        }
    }

    #[test]
    fn tokens_do_not_depend_on_where_the_text_is_cut() {
        let text = r#"{"a\\\"":[1,-2.5e3,"x",true],"b":{"c":null}}"#;
        let tokens = |pieces: &[&[u8]]| {
            let (mut lexer, mut tokens) = (Lexer::default(), Vec::new());
            for piece in pieces {
                let mut rest = *piece;
                while !rest.is_empty() {
                    let (read, token) = lexer.next(rest);
                    tokens.extend(token);
                    rest = &rest[read..];
                }
            }
            tokens
        };
        let whole = tokens(&[text.as_bytes()]);
        for cut in 0..text.len() {
            let (one, two) = text.as_bytes().split_at(cut);
            assert_eq!(tokens(&[one, two]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(tokens(&bytes), whole);
    }

    #[test]
    fn limits_name_the_quantity_the_number_and_the_bound() {
        let limits = Limits::new(20, 4, 3);
        for (text, expected) in [
            (r#"{"a":{"b":{}}}"#, None),
            ("[[[[]]]]", Some("it has 4 levels of nesting, the bound is 3")),
            ("[1,2,3]", None),
            (
                "[1,2,3,4]",
                Some("it has 5 values (objects, lists, strings, numbers), the bound is 4"),
            ),
            (r#""0123456789012345678""#, Some("it has 21 bytes of JSON, the bound is 20")),
        ] {
            let told = limits.check(text.as_bytes()).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), expected, "{text}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(measure(deep.as_bytes()).depth, 1_000_000);
    }
}
