//! What Go's strict reading finds, and the lenient one passes over: keys that come twice.

use std::collections::HashSet;

use super::reader::{Budget, Reader, Scalar};
use super::tree::{Composer, NodeId, NodeKind};
use crate::Numbers;
use crate::error::Error;

/// Looks for keys that come twice in one mapping of the first document, as `UnmarshalStrict` does.
///
/// # Errors
/// The text is not YAML, or has such keys: Go's text, one line for each.
pub fn check_repeated_keys(text: &str) -> Result<(), Error> {
    let document = Composer::new(text, crate::MAX_SIZE)?.next_document()?.unwrap_or_default();
    let reader =
        Reader { document, numbers: Numbers::Exact, budget: Budget::default(), strict: false };
    let mut search = Search { reader: &reader, found: Vec::new() };
    if !reader.document().nodes.is_empty() {
        search.node(0)?;
    }
    if search.found.is_empty() {
        return Ok(());
    }
    Err(Error::decode(format!("unmarshal errors:\n  {}", search.found.join("\n  "))))
}

struct Search<'r, 'a> {
    reader: &'r Reader<'a>,
    found: Vec<String>,
}

impl Search<'_, '_> {
    fn node(&mut self, id: NodeId) -> Result<(), Error> {
        self.reader.budget.charge()?;
        match self.reader.kind(id) {
            Some(NodeKind::Alias { name, target }) => {
                let (reader, target) = (self.reader, *target);
                reader.budget.follow(id, name, || self.node(target))
            }
            Some(NodeKind::Sequence(items)) => items.iter().try_for_each(|item| self.node(*item)),
            Some(NodeKind::Mapping(_)) => self.mapping(id, &mut HashSet::new()),
            _ => Ok(()),
        }
    }

    fn mapping(&mut self, id: NodeId, keys: &mut HashSet<String>) -> Result<(), Error> {
        let Some(NodeKind::Mapping(pairs)) = self.reader.kind(id) else { return Ok(()) };
        for &(key, value) in pairs {
            if self.reader.is_merge(key) {
                self.merge(value, keys)?;
                continue;
            }
            self.node(value)?;
            let Some(shown) = self.shown(key)? else { continue };
            let line = self.reader.document().node(value).map_or(0, |node| node.mark.0);
            if !keys.insert(shown.clone()) {
                self.found.push(format!("line {line}: key {shown} already set in map"));
            }
        }
        Ok(())
    }

    /// What is merged counts as keys of the mapping that takes it.
    fn merge(&mut self, id: NodeId, keys: &mut HashSet<String>) -> Result<(), Error> {
        self.reader.budget.charge()?;
        match self.reader.kind(id) {
            Some(NodeKind::Alias { name, target }) => {
                let (reader, target) = (self.reader, *target);
                reader.budget.follow(id, name, || self.merge(target, keys))
            }
            Some(NodeKind::Sequence(items)) => {
                items.iter().rev().try_for_each(|item| self.merge(*item, keys))
            }
            _ => self.mapping(id, keys),
        }
    }

    /// A key as Go's `%#v` shows it: keys of different types are different keys.
    fn shown(&self, id: NodeId) -> Result<Option<String>, Error> {
        let id = match self.reader.kind(id) {
            Some(NodeKind::Alias { target, .. }) => *target,
            Some(NodeKind::Scalar { .. }) => id,
            _ => return Ok(None),
        };
        Ok(Some(match self.reader.scalar(id)? {
            Scalar::Null => "<nil>".to_owned(),
            Scalar::Bool(value) => value.to_string(),
            Scalar::Int(value) => value.to_string(),
            Scalar::Uint(value) => format!("{value:#x}"),
            Scalar::Float(value) => crate::number::go_float(value),
            Scalar::Text(text) => format!("{text:?}"),
            Scalar::Owned(text) => format!("{text:?}"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_come_twice_are_told_in_order() {
        let text = "a: 1\nb:\n  c: {d: 1, d: 2}\n  1: x\n  '1': y\n  1: z\na: 2\n";
        assert_eq!(
            check_repeated_keys(text).unwrap_err().to_string(),
            "error converting YAML to JSON: yaml: unmarshal errors:\n  \
             line 3: key \"d\" already set in map\n  line 6: key 1 already set in map\n  \
             line 7: key \"a\" already set in map"
        );
        assert_eq!(check_repeated_keys("a: {a: 1}\nb: [{a: 1}, {a: 1}]\n"), Ok(()));
        assert_eq!(check_repeated_keys(""), Ok(()));
    }
}
