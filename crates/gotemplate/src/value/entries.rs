//! The entries of a map, in byte order of the keys.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{slice, vec};

use super::{Str, Value};

/// More entries than this are kept in a tree.
const FEW: usize = 32;

/// The entries of a map in byte order of the keys: nearly all maps are small, and for those a plain
/// list takes less room and time than a tree.
#[derive(Clone, Debug)]
pub struct Entries(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Own(Table),
    /// Copied when it is changed.
    Shared(Arc<Table>),
}

#[derive(Clone, Debug)]
enum Table {
    Few(Vec<(Str, Value)>),
    Many(BTreeMap<Str, Value>),
}

/// Whether two keys are the same. Keys of one length mostly differ, and most are short: comparing them
/// in words takes less time than a call.
#[inline]
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.split_first_chunk::<8>(), b.split_first_chunk::<8>()) {
        (Some((x, a_rest)), Some((y, b_rest))) => {
            x == y
                && a.last_chunk::<8>() == b.last_chunk::<8>()
                && (a.len() <= 16 || a_rest == b_rest)
        }
        _ => match (a.first_chunk::<4>(), b.first_chunk::<4>()) {
            (Some(x), Some(y)) => x == y && a.last_chunk::<4>() == b.last_chunk::<4>(),
            _ => a.iter().eq(b),
        },
    }
}

impl Entries {
    /// None.
    pub const fn new() -> Self {
        Self(Repr::Own(Table::Few(Vec::new())))
    }

    fn table(&self) -> &Table {
        match &self.0 {
            Repr::Own(table) => table,
            Repr::Shared(table) => table,
        }
    }

    fn table_mut(&mut self) -> &mut Table {
        match &mut self.0 {
            Repr::Own(table) => table,
            Repr::Shared(table) => Arc::make_mut(table),
        }
    }

    /// The same, shared by all copies that are made from now on until they are changed.
    #[must_use]
    pub fn shared(self) -> Self {
        match self.0 {
            Repr::Own(table) => Self(Repr::Shared(Arc::new(table))),
            Repr::Shared(_) => self,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self.table() {
            Table::Few(list) => list.len(),
            Table::Many(tree) => tree.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Value> {
        match self.table() {
            // Looking at all lengths finds a key of so few sooner than halving does.
            Table::Few(list) => {
                list.iter().find(|(known, _)| same(known.as_bytes(), key)).map(|(_, value)| value)
            }
            Table::Many(tree) => tree.get(key),
        }
    }

    /// The value of a key that was at a place when it was looked for last, in this map or in one like
    /// it; notes where it is now.
    pub(crate) fn get_near(&self, key: &[u8], place: &AtomicU32) -> Option<&Value> {
        let Table::Few(list) = self.table() else { return self.get(key) };
        let is = |(known, _): &(Str, Value)| same(known.as_bytes(), key);
        if let Some(entry) = list.get(place.load(Ordering::Relaxed) as usize).filter(|e| is(e)) {
            return Some(&entry.1);
        }
        let at = list.iter().position(is)?;
        place.store(u32::try_from(at).unwrap_or_default(), Ordering::Relaxed);
        list.get(at).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut Value> {
        match self.table_mut() {
            Table::Few(list) => {
                let mut entries = list.iter_mut();
                entries.find(|(known, _)| same(known.as_bytes(), key)).map(|(_, value)| value)
            }
            Table::Many(tree) => tree.get_mut(key),
        }
    }

    /// Sets a key; gives the value it had.
    pub fn insert(&mut self, key: Str, value: Value) -> Option<Value> {
        let table = self.table_mut();
        let list = match table {
            Table::Many(tree) => return tree.insert(key, value),
            Table::Few(list) => list,
        };
        // Keys mostly come in their order.
        let at = match list.last() {
            None => 0,
            Some((last, _)) if *last < key => list.len(),
            Some(_) => match list.binary_search_by(|(known, _)| known.cmp(&key)) {
                Ok(at) => {
                    let (_, known) = list.get_mut(at)?;
                    return Some(std::mem::replace(known, value));
                }
                Err(at) => at,
            },
        };
        if list.len() < FEW {
            list.insert(at, (key, value));
        } else {
            let mut tree: BTreeMap<_, _> = std::mem::take(list).into_iter().collect();
            tree.insert(key, value);
            *table = Table::Many(tree);
        }
        None
    }

    /// Makes room for so many, if they are few.
    pub(super) fn expect(&mut self, entries: usize) {
        if let Table::Few(list) = self.table_mut() {
            list.reserve_exact(entries.min(FEW));
        }
    }

    /// Takes a key away; gives the value it had.
    pub fn remove(&mut self, key: &[u8]) -> Option<Value> {
        match self.table_mut() {
            Table::Few(list) => {
                let at = list.binary_search_by(|(known, _)| known.as_bytes().cmp(key)).ok()?;
                Some(list.remove(at).1)
            }
            Table::Many(tree) => tree.remove(key),
        }
    }

    /// Keys and values.
    pub fn iter(&self) -> Iter<'_> {
        match self.table() {
            Table::Few(list) => Iter::Few(list.iter()),
            Table::Many(tree) => Iter::Many(tree.iter()),
        }
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &Str> {
        self.iter().map(|(key, _)| key)
    }

    /// The values.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(_, value)| value)
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        let (few, many) = match self.table_mut() {
            Table::Few(list) => (Some(list.iter_mut().map(|(_, value)| value)), None),
            Table::Many(tree) => (None, Some(tree.values_mut())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<(Str, Value)> for Entries {
    fn from_iter<I: IntoIterator<Item = (Str, Value)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let mut all = Self::new();
        all.expect(entries.size_hint().0);
        for (key, value) in entries {
            all.insert(key, value);
        }
        all
    }
}

impl<'e> IntoIterator for &'e Entries {
    type Item = (&'e Str, &'e Value);
    type IntoIter = Iter<'e>;

    fn into_iter(self) -> Iter<'e> {
        self.iter()
    }
}

impl IntoIterator for Entries {
    type Item = (Str, Value);
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        let table = match self.0 {
            Repr::Own(table) => table,
            Repr::Shared(table) => Arc::unwrap_or_clone(table),
        };
        match table {
            Table::Few(list) => IntoIter::Few(list.into_iter()),
            Table::Many(tree) => IntoIter::Many(tree.into_iter()),
        }
    }
}

/// See [`Entries::iter`].
#[derive(Clone, Debug)]
pub enum Iter<'e> {
    /// Of a list.
    Few(slice::Iter<'e, (Str, Value)>),
    /// Of a tree.
    Many(btree_map::Iter<'e, Str, Value>),
}

impl<'e> Iterator for Iter<'e> {
    type Item = (&'e Str, &'e Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(list) => list.next().map(|(key, value)| (key, value)),
            Self::Many(tree) => tree.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Few(list) => list.size_hint(),
            Self::Many(tree) => tree.size_hint(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// The entries themselves.
#[derive(Debug)]
pub enum IntoIter {
    /// Of a list.
    Few(vec::IntoIter<(Str, Value)>),
    /// Of a tree.
    Many(btree_map::IntoIter<Str, Value>),
}

impl Iterator for IntoIter {
    type Item = (Str, Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(list) => list.next(),
            Self::Many(tree) => tree.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Few(list) => list.size_hint(),
            Self::Many(tree) => tree.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_shared_is_copied_when_it_is_changed() {
        for count in [0, 1, 5, 33] {
            let make = |n| (Str::from(format!("key{n}")), Value::Int(n));
            let ready = (0..count).map(make).collect::<Entries>().shared();
            let keys = |entries: &Entries| entries.keys().cloned().collect::<Vec<_>>();
            let (mut other, before) = (ready.clone(), keys(&ready));
            other.insert("new".into(), Value::Nil);
            other.remove(b"key0");
            if let Some(value) = other.get_mut(b"key3") {
                *value = Value::Nil;
            }
            assert_eq!(keys(&ready), before);
            assert_eq!(other.len(), if count == 0 { 1 } else { before.len() });
            assert!(ready.values().all(|value| !value.is_nil()));
        }
    }

    #[test]
    fn entries_are_those_of_a_sorted_map_however_many() {
        for count in [0, 1, 5, 12, 13, 32, 33, 200] {
            let (mut ours, mut plain) = (Entries::new(), BTreeMap::new());
            // Scattered, some twice.
            for n in (0..count).map(|n| n * 7919 % 211).chain(0..count / 3) {
                let key = Str::from(format!("key{n}"));
                let (old, known) =
                    (ours.insert(key.clone(), Value::Int(n)), plain.insert(key, Value::Int(n)));
                assert_eq!(old.is_some(), known.is_some());
            }
            for n in 0..count / 2 {
                let key = format!("key{}", n * 3);
                let (old, known) = (ours.remove(key.as_bytes()), plain.remove(key.as_bytes()));
                assert_eq!(old.is_some(), known.is_some());
                assert!(ours.get(key.as_bytes()).is_none());
            }
            assert_eq!(ours.len(), plain.len());
            assert!(ours.keys().eq(plain.keys()), "{count}");
            for (key, value) in &plain {
                assert_eq!(ours.get(key.as_bytes()).and_then(Value::as_int), value.as_int());
                // Wherever it is looked for first.
                let place = AtomicU32::new(7);
                for _ in 0..2 {
                    let found = ours.get_near(key.as_bytes(), &place);
                    assert_eq!(found.and_then(Value::as_int), value.as_int());
                }
                assert!(ours.get_near(b"none", &place).is_none());
            }
            let again: Entries = ours.clone().into_iter().collect();
            assert!(again.keys().eq(ours.keys()));
        }
    }
}
