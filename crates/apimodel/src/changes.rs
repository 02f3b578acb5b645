//! Whose fields are whose after a write.

use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::apply::{merge, remove, value_at};
use crate::sets::Set;
use crate::shape::{Shape, fields_of, is_unowned, item_key, shape};

/// Who writes, and when.
#[derive(Clone)]
pub(crate) struct Writer {
    pub manager: String,
    pub api_version: String,
    pub time: String,
}

fn entries(object: &Value) -> Vec<Value> {
    let found = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    found.cloned().unwrap_or_default()
}

fn fields(entry: &Value) -> Set {
    Set::read(&entry["fieldsV1"])
}

impl Writer {
    fn is_mine(&self, entry: &Value, operation: &str) -> bool {
        entry["manager"] == self.manager.as_str()
            && entry["operation"] == operation
            && entry.get("subresource").is_none()
            && (operation == "Apply" || entry["apiVersion"] == self.api_version.as_str())
    }

    fn entry(&self, operation: &str, set: &Set) -> Value {
        json!({
            "manager": self.manager, "operation": operation, "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": set.write(),
        })
    }

    /// The object after an apply of `wanted` over `live`, which is null if there is none.
    pub fn apply(&self, live: &Value, wanted: &Value, force: bool) -> Result<Value, Refusal> {
        let mut before = entries(live);
        if before.is_empty() && !live.is_null() {
            // Whoever set it was forgotten: then it belongs to nobody in particular.
            let manager = "before-first-apply".to_owned();
            let nobody = Self { manager, ..self.clone() };
            before = entries(&nobody.update(&Value::Null, live.clone()));
        }
        let (mine, mut others): (Vec<Value>, Vec<Value>) =
            before.iter().cloned().partition(|entry| self.is_mine(entry, "Apply"));
        let new = fields_of(wanted);
        let old = mine.first().map(fields).unwrap_or_default();
        let mut conflicts = Vec::new();
        for entry in &mut others {
            let theirs = fields(entry);
            for path in theirs.and(&new).paths() {
                let (is, shall) = (value_at(live, &path), value_at(wanted, &path));
                let inner = |value: Option<&Value>| value.is_some_and(is_inner);
                if is != shall && !(inner(is) && inner(shall)) {
                    conflicts.push((entry.clone(), path));
                }
            }
        }
        if !force && !conflicts.is_empty() {
            let told = |(entry, path): &(Value, Vec<String>)| {
                let manager = entry["manager"].as_str().unwrap_or_default().to_owned();
                (manager, path.join("."))
            };
            return Err(Refusal::managers(&conflicts.iter().map(told).collect::<Vec<_>>()));
        }
        for (entry, path) in &conflicts {
            let taken = single(path);
            if let Some(theirs) = others.iter_mut().find(|other| same_entry(other, entry)) {
                theirs["fieldsV1"] = fields(theirs).without(&taken).write();
            }
        }
        others.retain(|entry| !fields(entry).is_empty());
        let stay = others.iter().map(fields).fold(new.clone(), |all, set| all.with(&set));
        let mut object = merge("", "", live, wanted);
        remove(&mut object, &old.without(&stay), &stay);
        let own = match mine.into_iter().next() {
            Some(entry)
                if fields(&entry) == new && entry["apiVersion"] == self.api_version.as_str() =>
            {
                entry
            }
            _ => self.entry("Apply", &new),
        };
        let own = Some(own).filter(|_| !new.is_empty());
        put_entries(&mut object, own.into_iter().chain(others).collect());
        Ok(object)
    }

    /// An object after an update from `live`, which is null if there was none.
    pub fn update(&self, live: &Value, mut object: Value) -> Value {
        let mut found = entries(&object);
        if found.is_empty() {
            found = entries(live);
        }
        if found.is_empty() && !live.is_null() {
            return object; // not tracked until somebody applies
        }
        let (mut set, mut gone) = (Set::default(), Set::default());
        differences(&mut Vec::new(), live, &object, &mut set, &mut gone);
        (set.member, gone.member) = (false, false);
        let changed = set.with(&gone);
        if changed.is_empty() {
            put_entries(&mut object, found);
            return object;
        }
        let mut own = None;
        let mut all = Vec::new();
        for mut entry in found {
            if self.is_mine(&entry, "Update") {
                own = Some(fields(&entry));
                continue;
            }
            let left = fields(&entry).without(&changed);
            if left.is_empty() {
                continue;
            }
            if left != fields(&entry) {
                entry["fieldsV1"] = left.write();
                entry["time"] = self.time.clone().into();
            }
            all.push(entry);
        }
        let own = own.unwrap_or_default().with(&set).without(&gone);
        if !own.is_empty() {
            all.push(self.entry("Update", &own));
        }
        put_entries(&mut object, all);
        object
    }
}

/// A map or an item that others may have parts in.
fn is_inner(value: &Value) -> bool {
    value.is_object()
}

fn single(path: &[String]) -> Set {
    let mut set = Set::default();
    let mut at = &mut set;
    for key in path {
        at = at.at(key);
    }
    at.member = true;
    set
}

fn same_entry(one: &Value, other: &Value) -> bool {
    ["manager", "operation", "apiVersion", "subresource"]
        .iter()
        .all(|field| one.get(field) == other.get(field))
}

fn put_entries(object: &mut Value, entries: Vec<Value>) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if !entries.is_empty() {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }
}

/// Which fields another value has, and which it does not have any more.
fn differences<'a>(
    path: &mut Vec<&'a str>,
    before: &'a Value,
    after: &'a Value,
    set: &mut Set,
    gone: &mut Set,
) {
    if before == after {
        return;
    }
    let field = path.last().copied().unwrap_or_default();
    let around = path.len().checked_sub(2).and_then(|at| path.get(at)).copied().unwrap_or_default();
    let model = if after.is_null() { before } else { after };
    match shape(around, field, model) {
        Shape::Members if model.is_object() => {
            set.member |= before.is_null() && !is_struct(field);
            gone.member |= after.is_null();
            for name in names(before, after) {
                path.push(name);
                if !is_unowned(path) {
                    let key = format!("f:{name}");
                    let (was, is) = (field_of(before, name), field_of(after, name));
                    differences(path, was, is, set.at(&key), gone.at(&key));
                }
                path.pop();
            }
        }
        Shape::Members => members(before, after, set, gone),
        Shape::Keyed(names) => {
            set.member |= before.is_null() && !is_struct(field);
            gone.member |= after.is_null();
            let (old, new) = (items(before), items(after));
            for item in old.iter().chain(new) {
                let key = item_key(names, item);
                let find = |items: &'a [Value]| {
                    items.iter().find(|item| item_key(names, item) == key).unwrap_or(&Value::Null)
                };
                let (was, is) = (find(old), find(new));
                set.at(&key).member |= was.is_null();
                gone.at(&key).member |= is.is_null();
                path.push("");
                differences(path, was, is, set.at(&key), gone.at(&key));
                path.pop();
            }
        }
        Shape::Whole => {
            set.member |= !after.is_null();
            gone.member |= after.is_null();
        }
    }
    set.below.retain(|_, below| !below.is_empty());
    gone.below.retain(|_, below| !below.is_empty());
}

fn field_of<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The fields that two maps have between them.
fn names<'a>(one: &'a Value, other: &'a Value) -> Vec<&'a str> {
    let of = |value: &'a Value| value.as_object().into_iter().flat_map(serde_json::Map::keys);
    let mut all: Vec<&str> = of(one).chain(of(other)).map(String::as_str).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A list that is a set of scalars.
fn members(before: &Value, after: &Value, set: &mut Set, gone: &mut Set) {
    set.member |= before.is_null();
    gone.member |= after.is_null();
    let (old, new) = (items(before), items(after));
    for item in new.iter().filter(|item| !old.contains(item)) {
        set.at(&format!("v:{item}")).member = true;
    }
    for item in old.iter().filter(|item| !new.contains(item)) {
        gone.at(&format!("v:{item}")).member = true;
    }
}

/// Fields that every object of its kind has, at least empty: they are nobody's as a whole.
fn is_struct(field: &str) -> bool {
    matches!(
        field,
        "" | "metadata" | "spec" | "template" | "strategy" | "containers" | "jobTemplate"
    )
}
