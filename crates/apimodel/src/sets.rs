//! Sets of fields, as `managedFields` has them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A tree of fields. A node may be a field of the set itself, and have others below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub member: bool,
    pub below: BTreeMap<String, Set>,
}

impl Set {
    /// From `fieldsV1`.
    pub fn read(fields: &Value) -> Self {
        let mut set = Self::default();
        for (key, value) in fields.as_object().into_iter().flatten() {
            if key == "." {
                set.member = true;
            } else {
                let mut below = Self::read(value);
                below.member |= below.below.is_empty();
                set.below.insert(key.clone(), below);
            }
        }
        set
    }

    /// As `fieldsV1`.
    pub fn write(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.below.is_empty() {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        fields.extend(self.below.iter().map(|(key, set)| (key.clone(), set.write())));
        Value::Object(fields)
    }

    pub fn is_empty(&self) -> bool {
        !self.member && self.below.values().all(Self::is_empty)
    }

    /// The node of a field; it is made if there is none.
    pub fn at(&mut self, key: &str) -> &mut Self {
        self.below.entry(key.to_owned()).or_default()
    }

    /// The fields that are in one of the two.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.member |= other.member;
        for (key, below) in &other.below {
            let both = all.below.get(key).map_or_else(|| below.clone(), |own| own.with(below));
            all.below.insert(key.clone(), both);
        }
        all
    }

    /// The fields that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Self { member: self.member && !other.member, below: BTreeMap::default() };
        for (key, own) in &self.below {
            let left = other.below.get(key).map_or_else(|| own.clone(), |set| own.without(set));
            if !left.is_empty() {
                rest.below.insert(key.clone(), left);
            }
        }
        rest
    }

    /// The fields that are in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }

    /// Every field of it, as a path.
    pub fn paths(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
        if self.member {
            found.push(path.clone());
        }
        for (key, below) in &self.below {
            path.push(key.clone());
            below.collect(path, found);
            path.pop();
        }
    }
}
