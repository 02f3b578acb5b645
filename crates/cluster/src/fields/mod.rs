//! Which fields of an object are ours, and which of them an apply would change: told from the object
//! alone, without asking the API server.
//!
//! The API server keeps, in `metadata.managedFields`, one entry for what a manager applied: the tree of
//! its fields, with lists resolved by their keys. Whoever changes a value of ours takes the field out
//! of our entry. So walking that tree over what we want and over what is there answers the question:
//! a wanted field that is not in it was taken or is new, one in it that is not wanted would be
//! removed, and one in it whose value is another one is spelled differently by the API server, or
//! by a webhook: only a dry run can tell that from a change.

mod keys;
mod path;
mod quantity;
pub mod takeover;
mod value;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::apply::metadata;
use keys::{ItemKey, Keys};
pub use path::Path;
use path::Step;
pub(crate) use path::Trail;
use value::{is_blank, is_empty, same_value};

/// Fields of every object that the API server takes for nobody's.
const UNOWNED: [&str; 3] = ["apiVersion", "kind", "status"];
/// The same within `metadata`.
const UNOWNED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// What an apply would, or may, change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field.
    pub path: Path,
    /// What is the matter with it.
    pub kind: Kind,
}

/// Why a field differs from what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Our manager never applied this object, or under another version of its kind.
    NotApplied,
    /// It is wanted and not ours: somebody changed or removed it, or it was not wanted before.
    NotOurs,
    /// It is ours and not wanted any more.
    Surplus,
    /// It is ours and its value is another one: perhaps only in its spelling.
    Doubtful,
}

/// What an apply of `desired` as `manager` would or may change in `live`; nothing if it would be in
/// vain for certain.
///
/// Values that are null or empty, defaults, the spelling of quantities and what others added are no
/// differences.
pub fn compare(desired: &Value, live: &Value, manager: &str) -> Vec<Difference> {
    let mut walk = Walk::default();
    match applied_entry(live, manager) {
        Some(entry) if entry.get("apiVersion") == desired.get("apiVersion") => {
            let none = Map::new();
            let set = entry.get("fieldsV1").and_then(Value::as_object).unwrap_or(&none);
            if let Some(desired) = desired.as_object() {
                walk.fields(set, desired, Some(live));
            }
        }
        _ => walk.found(Kind::NotApplied),
    }
    walk.finish()
}

/// The entry of what a manager applied to an object, apart from subresources.
pub(crate) fn applied_entry<'a>(live: &'a Value, manager: &str) -> Option<&'a Value> {
    let is_ours = |entry: &&Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && is_main(entry)
    };
    managed_fields(live).iter().find(is_ours)
}

/// The entries of all managers.
pub(crate) fn managed_fields(live: &Value) -> &[Value] {
    metadata(live).get("managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether an entry is about the object itself and not about a subresource.
pub(crate) fn is_main(entry: &Value) -> bool {
    entry.get("subresource").and_then(Value::as_str).unwrap_or_default().is_empty()
}

/// Whether the horizontal autoscaler last set an object's `spec.replicas`: it alone has the
/// controller manager write through the subresource `scale`.
pub fn is_autoscaled(live: &Value) -> bool {
    managed_fields(live).iter().any(|entry| {
        entry["manager"] == "kube-controller-manager"
            && entry["subresource"] == "scale"
            && entry.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    })
}

#[derive(Default)]
struct Walk {
    trail: Trail,
    found: Vec<Difference>,
}

impl Walk {
    fn found(&mut self, kind: Kind) {
        self.found.extend(self.trail.here().map(|path| Difference { path, kind }));
    }

    /// The differences; of more than can be told one more, which stands for the whole object.
    fn finish(mut self) -> Vec<Difference> {
        if self.trail.is_full() {
            self.found.push(Difference { path: Path::default(), kind: Kind::NotOurs });
        }
        self.found
    }

    fn at(&mut self, step: Step, look: impl FnOnce(&mut Self)) {
        self.trail.push(step);
        look(self);
        self.trail.pop();
    }

    /// A field that is ours and that is wanted.
    fn node(&mut self, set: &Value, desired: &Value, live: Option<&Value>) {
        let set = set.as_object().filter(|set| set.keys().any(|key| key != "."));
        match (set, desired) {
            (Some(set), Value::Object(desired)) => self.fields(set, desired, live),
            (Some(set), Value::Array(desired)) => self.items(set, desired, live),
            // Once there was something in it.
            (Some(_), desired) if is_blank(desired) => self.found(Kind::Surplus),
            _ if same_value(desired, live) => {}
            _ => self.found(Kind::Doubtful),
        }
    }

    fn fields(
        &mut self,
        set: &Map<String, Value>,
        desired: &Map<String, Value>,
        live: Option<&Value>,
    ) {
        for (key, below) in set.iter().filter(|(key, _)| *key != ".") {
            let Some(name) = key.strip_prefix("f:") else {
                return self.found(Kind::Doubtful); // a list before, a map now
            };
            let there = live.and_then(|live| live.get(name));
            self.at(Step::Field(name.into()), |walk| match desired.get(name) {
                Some(wanted) => walk.node(below, wanted, there),
                None => walk.found(Kind::Surplus),
            });
        }
        for (name, wanted) in desired {
            let there = live.and_then(|live| live.get(name));
            if set.contains_key(&format!("f:{name}"))
                || (is_empty(wanted) && same_value(wanted, there))
            {
                continue;
            }
            self.at(Step::Field(name.as_str().into()), |walk| {
                if is_blank(wanted) && same_value(wanted, there) {
                    walk.found(Kind::Doubtful); // removed, if nothing does not mean the same
                } else {
                    walk.unowned(name, wanted, there);
                }
            });
        }
    }

    /// A wanted field that is not ours. A map stops being ours when the last field in it does, so
    /// those that differ are told.
    fn unowned(&mut self, name: &str, wanted: &Value, there: Option<&Value>) {
        match self.trail.steps() {
            [_] if UNOWNED.contains(&name) => return,
            [Step::Field(parent), _]
                if &**parent == "metadata" && UNOWNED_METADATA.contains(&name) =>
            {
                return;
            }
            [_] if name == "metadata" => {
                let fields = wanted.as_object();
                return fields.into_iter().for_each(|f| self.fields(&Map::new(), f, there));
            }
            _ => {}
        }
        let before = self.found.len();
        if let (Value::Object(wanted), Some(Value::Object(there))) = (wanted, there) {
            for (name, wanted) in wanted {
                if !same_value(wanted, there.get(name)) {
                    let below = there.get(name);
                    self.at(Step::Field(name.as_str().into()), |walk| {
                        walk.unowned(name, wanted, below);
                    });
                }
            }
        }
        if self.found.len() == before {
            self.found(Kind::NotOurs);
        }
    }

    fn items(&mut self, set: &Map<String, Value>, desired: &[Value], live: Option<&Value>) {
        let members: Vec<(&str, &Value)> = set
            .iter()
            .filter(|(key, _)| *key != ".")
            .map(|(key, set)| (key.as_str(), set))
            .collect();
        let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if members.iter().all(|(key, _)| key.starts_with("v:")) {
            self.scalars(&members, desired);
        } else if let Some(keys) =
            members.iter().map(|(key, _)| item_key(key)).collect::<Option<Vec<_>>>()
        {
            self.keyed(&members, &keys, desired, live);
        } else {
            self.found(Kind::Doubtful);
        }
    }

    /// A list that is a set of scalars, such as finalizers.
    fn scalars(&mut self, members: &[(&str, &Value)], desired: &[Value]) {
        let ours: Vec<Value> = members
            .iter()
            .filter_map(|(key, _)| serde_json::from_str(key.strip_prefix("v:")?).ok())
            .collect();
        let wanted: HashSet<&Value> = desired.iter().collect();
        for value in ours.iter().filter(|value| !wanted.contains(value)) {
            self.at(Step::member(value, None), |walk| walk.found(Kind::Surplus));
        }
        let ours: HashSet<&Value> = ours.iter().collect();
        for (at, value) in desired.iter().enumerate().filter(|(_, value)| !ours.contains(value)) {
            self.at(Step::member(value, Some(at)), |walk| walk.found(Kind::NotOurs));
        }
    }

    /// A list whose items have keys, such as containers.
    fn keyed(
        &mut self,
        members: &[(&str, &Value)],
        keys: &[ItemKey],
        desired: &[Value],
        live: &[Value],
    ) {
        let Some(known) = Keys::new(keys) else { return self.found(Kind::Doubtful) };
        let assigned = known.assign(desired);
        let mut places = vec![None; keys.len()];
        for (at, index) in assigned.iter().enumerate() {
            if let Some(place) = index.and_then(|index| places.get_mut(index)) {
                *place = Some(at);
            }
        }
        let there = known.find(live);
        for (((key, (_, below)), at), there) in keys.iter().zip(members).zip(places).zip(there) {
            self.at(Step::item(key, at), |walk| match (at.and_then(|at| desired.get(at)), there) {
                (None, _) => walk.found(Kind::Surplus),
                (Some(_), None) => walk.found(Kind::Doubtful),
                (Some(wanted), there) => walk.node(below, wanted, there),
            });
        }
        let names: Vec<&String> = keys.first().map(|key| key.keys().collect()).unwrap_or_default();
        for (at, (wanted, index)) in desired.iter().zip(&assigned).enumerate() {
            if index.is_none() {
                let key = names
                    .iter()
                    .filter_map(|name| Some(((*name).clone(), wanted.get(name.as_str())?.clone())));
                self.at(Step::item(&key.collect(), Some(at)), |walk| walk.found(Kind::NotOurs));
            }
        }
    }
}

/// The fields that tell an item from others, from `k:{"name":"a"}`.
fn item_key(key: &str) -> Option<ItemKey> {
    serde_json::from_str(key.strip_prefix("k:")?).ok()
}

#[cfg(test)]
mod tests;
