//! A document as values: scalars resolved, keys as text, merges done, aliases under a budget.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::tree::{Document, NodeId, NodeKind};
use super::{go_syntax, tag};
use crate::error::{Error, ErrorKind};
use crate::number::go_float32;
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

/// Counts what aliases cost.
#[derive(Debug, Default)]
pub(super) struct Budget {
    values: Cell<u32>,
    aliased: Cell<u32>,
    bytes: Cell<usize>,
    pub(super) depth: Cell<u32>,
    /// The aliases that are being followed.
    active: RefCell<Vec<NodeId>>,
}

impl Budget {
    /// One more value was visited. Small documents may consist of aliases nearly altogether,
    /// large ones hardly (the same rule as Go's, so that the same documents pass).
    pub(super) fn charge(&self) -> Result<(), Error> {
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

    pub(super) fn charge_bytes(&self, length: usize) -> Result<(), Error> {
        if self.depth.get() > 0 {
            self.bytes.set(self.bytes.get().saturating_add(length));
            if self.bytes.get() > MAX_ALIASED_BYTES {
                return Err(Error::decode("document contains excessive aliasing"));
            }
        }
        Ok(())
    }

    pub(super) fn follow<T>(
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
    pub(super) document: Document<'a>,
    pub(super) numbers: Numbers,
    pub(super) budget: Budget,
}

/// A pair of a mapping after merging. `merged`: it came through an alias.
pub(super) struct Entry<'n> {
    pub(super) key: Cow<'n, str>,
    pub(super) value: NodeId,
    pub(super) merged: bool,
}

impl Reader<'_> {
    pub(super) fn document(&self) -> &Document<'_> {
        &self.document
    }

    pub(super) fn kind(&self, id: NodeId) -> Option<&NodeKind<'_>> {
        self.document.node(id).map(|node| &node.kind)
    }

    pub(super) fn place(&self, id: NodeId, error: Error) -> Error {
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

    /// Of several faults the one that Go meets first: it decodes the whole document before it looks
    /// at what JSON allows.
    pub(super) fn first(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Json | ErrorKind::Decode => self.check(0).err().unwrap_or(error),
            _ => error,
        }
    }

    /// Whether a node can be decoded, aliases apart.
    fn check(&self, id: NodeId) -> Result<(), Error> {
        match self.kind(id) {
            Some(NodeKind::Sequence(items)) => items.iter().try_for_each(|&item| self.check(item)),
            Some(NodeKind::Mapping(pairs)) => pairs.iter().try_for_each(|&(key, value)| {
                if self.is_merge(key) {
                    return self.merge(value, &mut Entries::default()).or_else(not_of_json);
                }
                match self.kind(key) {
                    Some(NodeKind::Scalar { .. }) => self.scalar(key).map(drop)?,
                    _ => self.key(key, value).map(drop).or_else(not_of_json)?,
                }
                self.check(value)
            }),
            Some(NodeKind::Scalar { .. }) => self.scalar(id).map(drop),
            _ => Ok(()),
        }
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
    pub(super) fn entries(&self, id: NodeId) -> Result<Vec<Entry<'_>>, Error> {
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
            let name = match self.key(key, value) {
                Err(error) if error.kind() == ErrorKind::Json => {
                    return Err(self
                        .key(key, self.last_of(pairs, key, value))
                        .err()
                        .unwrap_or(error));
                }
                name => name?,
            };
            self.budget.charge_bytes(name.len())?;
            if let Some(replaced) = into.set(Entry { key: name, value, merged }) {
                // Gone, but it must have been right.
                self.check(replaced)?;
            }
        }
        Ok(())
    }

    /// The value that a key without a text has in the end.
    fn last_of(&self, pairs: &[(NodeId, NodeId)], key: NodeId, value: NodeId) -> NodeId {
        let wanted = self.scalar(key).ok();
        let same = |other: NodeId| {
            matches!(self.kind(other), Some(NodeKind::Scalar { .. }))
                && self.scalar(other).ok() == wanted
        };
        pairs.iter().rev().find(|(other, _)| same(*other)).map_or(value, |(_, value)| *value)
    }

    pub(super) fn is_merge(&self, id: NodeId) -> bool {
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

    /// Gives the value that had the key before.
    fn set(&mut self, entry: Entry<'n>) -> Option<NodeId> {
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
            return Some(std::mem::replace(known, entry).value);
        }
        if !self.index.is_empty() {
            self.index.insert(entry.key.clone(), self.list.len());
        }
        self.list.push(entry);
        None
    }
}

/// Errors of the step after decoding do not count yet.
fn not_of_json(error: Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::Json { Ok(()) } else { Err(error) }
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
