//! Which fields Chart.yaml has: what else stands in it is an error where Helm reads strictly.

use serde_json::{Map, Value};

use crate::Metadata;

/// The fields of an object, and those of the objects in its lists.
struct Known {
    fields: &'static [&'static str],
    lists: &'static [(&'static str, Known)],
}

const METADATA: Known = Known {
    fields: &[
        "name",
        "home",
        "sources",
        "version",
        "description",
        "keywords",
        "maintainers",
        "icon",
        "apiVersion",
        "condition",
        "tags",
        "appVersion",
        "deprecated",
        "annotations",
        "kubeVersion",
        "dependencies",
        "type",
    ],
    lists: &[
        ("maintainers", Known { fields: &["name", "email", "url"], lists: &[] }),
        (
            "dependencies",
            Known {
                fields: &[
                    "name",
                    "version",
                    "repository",
                    "condition",
                    "tags",
                    "enabled",
                    "import-values",
                    "alias",
                ],
                lists: &[],
            },
        ),
    ],
};

impl Metadata {
    /// The first key that is no field of Chart.yaml, outer or inner, in byte order, as Go meets
    /// them. What holds more beside such fields, as an index does, names those in `also`.
    pub fn unknown_field<'o>(object: &'o Map<String, Value>, also: &[&str]) -> Option<&'o str> {
        unknown(object, &METADATA, also)
    }
}

fn unknown<'o>(object: &'o Map<String, Value>, known: &Known, also: &[&str]) -> Option<&'o str> {
    let mut keys: Vec<_> = object.iter().collect();
    keys.sort_unstable_by_key(|(key, _)| key.as_str());
    keys.into_iter().find_map(|(key, value)| {
        if !known.fields.iter().chain(also).any(|field| field.eq_ignore_ascii_case(key)) {
            return Some(key.as_str());
        }
        let (_, inner) = known.lists.iter().find(|(list, _)| list.eq_ignore_ascii_case(key))?;
        let mut items = value.as_array()?.iter().filter_map(Value::as_object);
        items.find_map(|item| unknown(item, inner, &[]))
    })
}
