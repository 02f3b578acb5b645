//! Hostile values.schema.json.

use crate::case::{Case, End, file, folder};
use serde_json::json;

pub fn cases() -> Vec<Case> {
    let chart = |name: &str, values: String, schema: String, end: End| {
        let files = [
            ("values.yaml", values),
            ("templates/a.yaml", "a: 1".into()),
            ("values.schema.json", schema),
        ];
        folder(name, files.map(|(path, text)| file(path, text)).into(), end)
    };
    let schema = |name: &str, text: String, end: End| {
        let (list, long) = ("1,".repeat(2000), "a".repeat(100_000));
        chart(name, format!("a: 1\nlist: [{list}]\ntext: {long}\n"), text, end)
    };
    let keys = (0..20_000).map(|n| format!("  k{n}: 1\n")).collect::<Vec<_>>().concat();
    let parts: Vec<_> = (0..2000).map(|n| json!({"properties": {format!("k{n}"): true}})).collect();
    let unevaluated = json!({"allOf": parts, "unevaluatedProperties": false});
    let mut doubled = json!({"$ref": "#/$defs/0", "$defs": {"30": {"type": "object"}}});
    let mut chain = json!({"$ref": "#/$defs/0", "$defs": {"9000": {}}});
    for level in 0..9000 {
        let next = format!("#/$defs/{}", level + 1);
        chain["$defs"][level.to_string()] = json!({"$ref": next});
        if level < 30 {
            doubled["$defs"][level.to_string()] = json!({"anyOf": [{"allOf": [{"$ref": next}, {"$ref": next}]}, {"not": {"$ref": next}}]});
        }
    }
    let many =
        |what: &str| (0..100_000).map(|n| format!("\"{what}{n}\"")).collect::<Vec<_>>().join(",");
    vec![
        schema("CVE-2022-23526: no JSON", "{".into(), End::Error("")),
        schema("CVE-2022-23526: no schema", "[1, 2]".into(), End::Error("")),
        schema("CVE-2022-23526: wrong types", r#"{"type": 1, "properties": []}"#.into(), End::Error("")),
        schema("CVE-2025-32387: a reference to itself", r##"{"$ref": "#"}"##.into(), End::Error("")),
        schema("CVE-2025-32387: references in a circle", r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}"##.into(), End::Error("")),
        schema("CVE-2025-32387: a dynamic reference to itself", r##"{"$dynamicAnchor": "x", "$dynamicRef": "#x"}"##.into(), End::Error("")),
        schema("CVE-2025-32387: a chain of references", chain.to_string(), End::Limit("too deep", "c/values.schema.json")),
        schema("references doubled at every level", doubled.to_string(), End::Limit("too many steps", "c/values.schema.json")),
        schema("CVE-2025-55199: a file without end", r#"{"$ref": "file:///dev/zero"}"#.into(), End::Error("not supported")),
        schema("a schema of somebody's server", r#"{"$ref": "http://127.0.0.1:1/x.json"}"#.into(), End::Error("not supported")),
        schema("a schema of a server that has no name", r#"{"$schema": "http://127.0.0.1:1/x.json"}"#.into(), End::Error("")),
        schema("a regular expression without end", r#"{"properties": {"text": {"pattern": "^((a{1,300}){1,300}){1,300}$"}}}"#.into(), End::Limit("regular expressions", "c/values.schema.json")),
        schema("a catastrophic regular expression", r#"{"properties": {"text": {"pattern": "^(a+)+b$"}}}"#.into(), End::Error("at '/text'")),
        schema("very many regular expressions", json!({"patternProperties": (0..3000).map(|n| (format!("(a|b|{n}){{1,200}}"), json!({}))).collect::<serde_json::Map<_, _>>()}).to_string(), End::Limit("regular expressions", "c/values.schema.json")),
        chart("very many parts that leave keys unevaluated", format!("map:\n{keys}"), json!({"properties": {"map": unevaluated}}).to_string(), End::Limit("too many steps", "c/values.schema.json")),
        schema("an enumeration for every item", format!("{{\"properties\": {{\"list\": {{\"items\": {{\"enum\": [{}]}}}}}}}}", many("e")), End::Limit("too many steps", "c/values.schema.json")),
        schema("very many schemas", format!("{{\"allOf\": [{}]}}", ["{}"; 500_000].join(",")), End::Limit("too large", "c/values.schema.json")),
        schema("ten thousand levels", format!("{}{{}}{}", "{\"not\":".repeat(10_000), "}".repeat(10_000)), End::Error("")),
        schema("lists of ten thousand levels", format!("{{\"enum\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000)), End::Error("")),
        schema("very many names required", format!("{{\"required\": [{}]}}", many("r")), End::Error("missing properties")),
        schema("alternatives of alternatives", {
            let mut inner = json!({"type": "string"});
            for _ in 0..12 {
                inner = json!({"anyOf": [inner, inner, {"oneOf": [inner]}]});
                if inner.to_string().len() > 300_000 { break; }
            }
            json!({"properties": {"a": inner}}).to_string()
        }, End::Somehow),
    ]
}
