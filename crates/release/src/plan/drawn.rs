//! What a chart draws anew in each rendering: passwords, certificates, times.

use catamaran_chart::Rendered;
use catamaran_chart::manifest::parse_objects;
use serde_json::Value;

use crate::record::Release;

/// Whether a record is what `one` is, but for what a chart draws: it differs from `one` at most where
/// `other`, a rendering of the same that drew something else, does.
///
/// False where nothing is drawn at all, or where something cannot be read.
pub fn is_drawn_alike(record: &Release, one: &Rendered, other: &Rendered) -> bool {
    let texts = |rendered: &Rendered| -> Vec<String> {
        let hooks = rendered.hooks.iter().map(|hook| hook.manifest.clone());
        [rendered.manifest_text()].into_iter().chain(hooks).collect()
    };
    let hooks = record.hooks.iter().map(|hook| hook.manifest.as_str());
    let old: Vec<&str> = [record.manifest.as_str()].into_iter().chain(hooks).collect();
    let (one, other) = (texts(one), texts(other));
    if one == other || old.len() != one.len() || old.len() != other.len() {
        return false;
    }
    let read = |text: &str| parse_objects(text).ok().map(Value::Array);
    old.iter().zip(one.iter().zip(&other)).all(|(old, (one, other))| {
        match (read(old), read(one), read(other)) {
            (Some(old), Some(one), Some(other)) => agrees(&old, &one, &other),
            _ => false,
        }
    })
}

/// Whether a value is `one` wherever that is the same as `other`.
fn agrees(old: &Value, one: &Value, other: &Value) -> bool {
    if one == other {
        return old == one;
    }
    match (old, one, other) {
        (Value::Array(old), Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other);
            old.len() == one.len()
                && old.iter().zip(pairs).all(|(old, (one, other))| agrees(old, one, other))
        }
        (Value::Object(old), Value::Object(one), Value::Object(other)) => {
            let drawn = |key: &String| one.contains_key(key) != other.contains_key(key);
            let both = |key: &String| one.get(key).zip(other.get(key));
            one.keys().filter(|key| !drawn(key)).all(|key| {
                let agreed = |old| both(key).is_some_and(|(one, other)| agrees(old, one, other));
                old.get(key).is_some_and(agreed)
            }) && old.keys().all(|key| one.contains_key(key) || other.contains_key(key))
        }
        // Drawn, as a whole.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::rendered;
    use serde_json::json;

    fn secret(password: &str, more: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
            "data": {"password": password, "more": more},
        })
    }

    #[test]
    fn only_what_is_drawn_may_differ() {
        let (one, other) = (rendered(&[secret("x", "1")]), rendered(&[secret("y", "1")]));
        let record = |object: Value| Release {
            manifest: rendered(&[object]).manifest_text(),
            ..Release::default()
        };
        assert!(is_drawn_alike(&record(secret("z", "1")), &one, &other));
        assert!(!is_drawn_alike(&record(secret("z", "2")), &one, &other), "it was changed, too");
        let mut longer = secret("z", "1");
        longer["data"]["third"] = "3".into();
        assert!(!is_drawn_alike(&record(longer), &one, &other));
        let mut renamed = secret("z", "1");
        renamed["metadata"]["name"] = "b".into();
        assert!(!is_drawn_alike(&record(renamed), &one, &other));
        assert!(!is_drawn_alike(&record(secret("z", "1")), &one, &one), "nothing is drawn");
    }

    #[test]
    fn a_drawn_key_may_be_another() {
        let with = |key: &str| json!({"a": 1, key: 2});
        assert!(agrees(&with("x"), &with("x"), &with("y")));
        assert!(!agrees(&with("z"), &with("x"), &with("y")), "better once more than wrong");
        assert!(agrees(&json!([1, "z"]), &json!([1, "x"]), &json!([1, "y"])));
        assert!(!agrees(&json!([2, "z"]), &json!([1, "x"]), &json!([1, "y"])));
    }
}
