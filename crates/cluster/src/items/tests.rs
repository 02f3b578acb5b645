use serde_json::{Value, json};

use super::*;
use crate::bounds::Limits;

/// What a reader hands over of an answer that comes in pieces of this length.
fn read(kind: Kind, limits: Limits, answer: &[u8], piece: usize) -> (Vec<Item>, Vec<Value>) {
    let (mut items, mut envelopes) = (Vec::new(), Vec::new());
    let mut reader = Reader::new(kind, limits, false);
    for bytes in answer.chunks(piece) {
        let mut keep = |read| match read {
            Read::Item(item) => items.push(*item),
            Read::Envelope(text) => envelopes.push(serde_json::from_slice(&text).unwrap()),
        };
        reader.push(bytes, &mut keep).unwrap();
    }
    (items, envelopes)
}

fn list(items: &[String]) -> String {
    let items = items.join(", ");
    format!(
        r#"{{"kind":"L","metadata":{{"resourceVersion":"9","continue":"t"}},"items":[{items}]}}"#
    )
}

fn named(name: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"g/v1","kind":"K","metadata":{{"finalizers":["a/b","c"],"generation":3,
        "labels":{{"managedFields":"x","name":"wrong"}},"managedFields":[{{"a":[{{}}]}}],
        "name":"{name}","namespace":"ns","resourceVersion":"7","uid":"u-{name}"}},"spec":{spec},
        "status":{{"a":1,"conditions":[{{"type":"Theirs","status":"True"}}],"name":"wrong"}}}}"#
    )
}

fn nested(depth: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

#[test]
fn one_bad_object_of_a_list_hides_no_other() {
    let maps = format!("[{}]", vec![r#"{"a":1}"#; 500].join(","));
    let long = format!("{:?}", "x".repeat(9_000));
    let bad: [(&str, &str, &str); 8] = [
        (
            "deep",
            &nested(140),
            "the object is too large: it has 141 levels of nesting, the bound is 100",
        ),
        ("deeper", &nested(9_000), "9001 levels of nesting"),
        ("maps", &maps, "values (objects, lists, strings, numbers), the bound is 800"),
        ("long", &long, "bytes of JSON, the bound is 8192"),
        ("number", "1e400", "the object cannot be decoded: it is not valid JSON"),
        ("surrogate", r#""\ud800""#, "the object cannot be decoded: it is not valid JSON"),
        ("word", "nil", "the object cannot be decoded: it is not valid JSON"),
        ("comma", "[1,,2]", "the object cannot be decoded: it is not valid JSON"),
    ];
    let good = named("good", r#"{"a":["}","\"{",{"metadata":{"name":"inner"}}]}"#);
    let limits = Limits::new(8_192, 800, 100);
    for (name, spec, told) in bad {
        let answer = list(&[named("first", "1"), named(name, spec), good.clone()]);
        for piece in [1, 7, 4_096, answer.len()] {
            let (items, envelopes) = read(Kind::List, limits, answer.as_bytes(), piece);
            let names: Vec<_> =
                items.iter().map(|item| item.object.metadata.name.as_deref().unwrap()).collect();
            assert_eq!(names, ["first", name, "good"], "in pieces of {piece}");
            let refusal = items[1].refusal.as_ref().unwrap().to_string();
            assert!(refusal.contains(told), "{name}: {refusal}");
            let expected = json!({ "kind": "L",
                "metadata": { "resourceVersion": "9", "continue": "t" }, "items": [null, null, null] });
            assert_eq!(envelopes, [expected]);
            for good in [&items[0], &items[2]] {
                assert_eq!(good.refusal, None);
            }
        }
    }
}

#[test]
fn bytes_that_are_no_utf8_are_the_trouble_of_their_object() {
    let mut answer = list(&[named("bad", r#""@""#), named("good", "1")]).into_bytes();
    let at = answer.iter().position(|byte| *byte == b'@').unwrap();
    answer[at] = 0xff;
    let (items, _) = read(Kind::List, Limits::RESOURCE, &answer, 64);
    let refused: Vec<bool> = items.iter().map(|item| item.refusal.is_some()).collect();
    assert_eq!(refused, [true, false]);
}

#[test]
fn of_a_refused_object_its_metadata_and_conditions_are_read() {
    let text = named("deep", &nested(5_000));
    let (items, _) = read(Kind::Object, Limits::RESOURCE, text.as_bytes(), 100);
    let object = &items[0].object;
    let meta = &object.metadata;
    assert_eq!(
        (meta.name.as_deref(), meta.namespace.as_deref(), meta.uid.as_deref(), meta.generation),
        (Some("deep"), Some("ns"), Some("u-deep"), Some(3))
    );
    assert_eq!(meta.resource_version.as_deref(), Some("7"));
    assert_eq!(meta.finalizers, Some(vec!["a/b".to_owned(), "c".to_owned()]));
    assert_eq!(meta.labels.as_ref().unwrap()["name"], "wrong");
    let conditions =
        json!({ "status": { "conditions": [{ "type": "Theirs", "status": "True" }] } });
    assert_eq!(object.data, conditions);
}

#[test]
fn an_object_without_metadata_is_the_trouble_of_nobody_else() {
    let bad = [
        r#"{"metadata":null}"#,
        r#"{"metadata":[1,{"name":"x"}]}"#,
        "{}",
        r#"{"metadata":{"name":5}}"#,
    ];
    let items: Vec<String> =
        bad.iter().map(|bad| (*bad).to_owned()).chain([named("good", "1")]).collect();
    let (items, _) = read(Kind::List, Limits::RESOURCE, list(&items).as_bytes(), 10);
    assert_eq!(items.len(), 5);
    assert_eq!(items[4].object.metadata.name.as_deref(), Some("good"));
}

#[test]
fn events_are_told_apart() {
    let text = format!(
        "{}\n{}\n{}\n",
        json!({ "type": "ADDED", "object": { "metadata": { "name": "a" } } }),
        json!({ "object": { "metadata": { "name": "b" }, "object": { "type": "x" } }, "type": "DELETED" }),
        json!({ "kind": "Status", "code": 410 }),
    );
    for piece in [1, 30, 1_000] {
        let (items, envelopes) = read(Kind::Events, Limits::RESOURCE, text.as_bytes(), piece);
        let names: Vec<_> = items.iter().map(|item| item.object.metadata.name.as_deref()).collect();
        assert_eq!(names, [Some("a"), Some("b")]);
        assert_eq!(envelopes[0], json!({ "type": "ADDED", "object": null }));
        assert_eq!(envelopes[1]["type"], "DELETED");
        assert_eq!(envelopes[2]["code"], 410);
    }
}

#[test]
fn an_object_is_what_serde_reads_without_its_managed_fields() {
    let text = named("a", r#"{"é\n":[[],{},null,-0.5,"\\"],"metadata":{"managedFields":[1]}}"#);
    let mut expected: Value = serde_json::from_str(&text).unwrap();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    for piece in 1..40 {
        let (items, _) = read(Kind::Object, Limits::RESOURCE, text.as_bytes(), piece);
        assert_eq!(serde_json::to_value(&items[0].object).unwrap(), expected);
    }
}

#[test]
fn a_stream_that_is_no_json_ends() {
    let mut reader = Reader::new(Kind::Events, Limits::RESOURCE, false);
    assert!(reader.push(b"{\"type\":1}}", &mut |_| ()).is_err());
    let mut reader = Reader::new(Kind::Events, Limits::RESOURCE, false);
    let endless = vec![b'x'; 1 << 20];
    assert!(reader.push(&endless, &mut |_| ()).is_err());
}
