//! Fields that the same program once set by updates, before it applied: moved into its apply entry, so
//! that what is not wanted any more goes away with the next apply.

use serde_json::{Map, Value, json};

use super::{is_main, managed_fields};
use crate::apply::metadata_str;

/// `metadata.managedFields` once the entries of updates by `former` managers are part of what
/// `manager` applied; `None` if there are none.
///
/// The same that client-go's csaupgrade does: the trees are united, whichever version they are of,
/// and entries about subresources are left alone.
pub fn taken_over(live: &Value, manager: &str, former: &[String]) -> Option<Vec<Value>> {
    let is_former = |entry: &Value| {
        entry["operation"] == "Update"
            && is_main(entry)
            && entry["manager"]
                .as_str()
                .is_some_and(|name| former.iter().any(|former| former == name))
    };
    let is_ours = |entry: &Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && is_main(entry)
    };
    let entries = managed_fields(live);
    if !entries.iter().any(is_former) {
        return None;
    }
    let mut ours = entries.iter().find(|entry| is_ours(entry)).cloned();
    for old in entries.iter().filter(|entry| is_former(entry)) {
        if let Some(ours) = &mut ours {
            let fields = ours["fieldsV1"].take();
            ours["fieldsV1"] = union(fields, &old["fieldsV1"]);
        } else {
            let mut first = old.clone();
            first["manager"] = manager.into();
            first["operation"] = "Apply".into();
            ours = Some(first);
        }
    }
    let others = entries.iter().filter(|entry| !is_former(entry) && !is_ours(entry)).cloned();
    Some(ours.into_iter().chain(others).collect())
}

/// A merge patch that writes these entries unless the object has changed meanwhile.
pub fn takeover_patch(live: &Value, entries: &[Value]) -> Value {
    json!({ "metadata": {
        "resourceVersion": metadata_str(live, "resourceVersion"), "managedFields": entries,
    } })
}

/// All fields of two trees. An empty node is a field itself; one with fields below is only if it says
/// so by a dot.
fn union(one: Value, other: &Value) -> Value {
    let none = Map::new();
    let mut all = match one {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let other = other.as_object().unwrap_or(&none);
    let is_whole = all.is_empty() != other.is_empty();
    for (key, below) in other {
        let both = match all.get_mut(key) {
            Some(mine) => union(mine.take(), below),
            None => below.clone(),
        };
        all.insert(key.clone(), both);
    }
    if is_whole {
        all.entry(".").or_insert_with(|| json!({}));
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn object(entries: &[Value]) -> Value {
        json!({ "metadata": { "resourceVersion": "7", "managedFields": entries } })
    }

    fn names(managers: &[&str]) -> Vec<String> {
        managers.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn entries_of_updates_become_part_of_ours_and_others_stay() {
        let data = |keys: &[&str]| {
            let keys: Map<String, Value> =
                keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
            json!({ "f:data": keys })
        };
        let theirs = entry("kubectl-edit", "Update", &data(&["x"]));
        let mut status = entry("helm", "Update", &json!({ "f:status": {} }));
        status["subresource"] = "status".into();
        let live = object(&[
            entry("helm", "Update", &data(&["a", "b"])),
            theirs.clone(),
            status.clone(),
            entry("helm", "Apply", &data(&["b", "c"])),
            entry("helm-operator", "Update", &data(&["d"])),
        ]);
        let ours = entry("helm", "Apply", &data(&["b", "c", "a", "d"]));
        let all = taken_over(&live, "helm", &names(&["helm", "helm-operator"]));
        assert_eq!(all, Some(vec![ours, theirs, status]));
    }

    #[test]
    fn without_an_entry_of_ours_the_first_becomes_it() {
        let live = object(&[entry("helm", "Update", &json!({ "f:data": { ".": {} } }))]);
        let ours = entry("helm", "Apply", &json!({ "f:data": { ".": {} } }));
        assert_eq!(taken_over(&live, "helm", &names(&["helm"])), Some(vec![ours.clone()]));
        assert_eq!(taken_over(&object(&[ours]), "helm", &names(&["helm"])), None);
    }

    #[test]
    fn a_field_that_was_owned_whole_still_is() {
        let whole = json!({ "f:labels": {} });
        let parts = json!({ "f:labels": { "f:a": {} } });
        let both = json!({ "f:labels": { ".": {}, "f:a": {} } });
        assert_eq!(union(whole.clone(), &parts), both);
        assert_eq!(union(parts, &whole), both);
        assert_eq!(union(whole.clone(), &whole), whole);
    }
}
