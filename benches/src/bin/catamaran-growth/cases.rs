//! What is measured. Every input is one that somebody with the rights of a tenant can write.

use std::hint::black_box;

use catamaran_chart::Chart;
use catamaran_chart::values::{merge, strvals};
use catamaran_cluster::bounds::measure;
use catamaran_cluster::budget::Budget as Steps;
use catamaran_cluster::cel::Program;
use catamaran_cluster::drift::changed;
use catamaran_cluster::fields::{compare, takeover};
use catamaran_cluster::readiness::assess;
use catamaran_cluster::redact::{Sensitive, printable, redacted};
use catamaran_release::Release;
use catamaran_release::objects::parse_manifest;
use catamaran_release::record::codec;
use catamaran_yaml::Numbers;
use serde_json::{Map, Value, json};

use crate::render::render;

/// A piece of work over an input of some size.
pub struct Case {
    pub name: &'static str,
    pub prepare: fn(usize) -> Box<dyn Fn()>,
}

pub fn all() -> Vec<Case> {
    vec![
        Case { name: "fields: compare a list with keys", prepare: compare_list },
        Case { name: "fields: compare a map", prepare: compare_map },
        Case { name: "fields: take over a former manager's", prepare: take_over },
        Case { name: "drift: changed lists", prepare: changed_lists },
        Case { name: "drift: changed managed fields", prepare: changed_managers },
        Case { name: "readiness: conditions", prepare: readiness },
        Case { name: "readiness: an expression over a list", prepare: expression },
        Case { name: "bounds: measure JSON", prepare: bounds },
        Case { name: "redact: many values in a text", prepare: redact_text },
        Case { name: "redact: an object", prepare: redact_object },
        Case { name: "values: merge maps", prepare: merge_values },
        Case { name: "values: --set with many paths", prepare: set_values },
        Case { name: "values: --set with many indices", prepare: set_indices },
        Case { name: "yaml: read", prepare: read_yaml },
        Case { name: "yaml: read anchors and aliases", prepare: read_aliases },
        Case { name: "yaml: write", prepare: write_yaml },
        Case { name: "manifest: many objects", prepare: manifest },
        Case { name: "record: pack and unpack", prepare: record },
        Case {
            name: "template: range and toYaml",
            prepare: |n| {
                template(n, "{{ range .Values.list }}{{ .name }}{{ end }}{{ toYaml .Values }}")
            },
        },
        Case { name: "template: uniq", prepare: |n| template(n, "{{ len (uniq .Values.words) }}") },
        Case {
            name: "template: sortAlpha",
            prepare: |n| template(n, "{{ len (sortAlpha .Values.words) }}"),
        },
        Case {
            name: "template: append in a loop",
            prepare: |n| {
                template(
                    n,
                    "{{ $l := list }}{{ range .Values.words }}{{ $l = append $l . }}{{ end }}{{ len $l }}",
                )
            },
        },
        Case {
            name: "template: set in a loop",
            prepare: |n| {
                template(
                    n,
                    "{{ $d := dict }}{{ range .Values.words }}{{ $_ := set $d . 1 }}{{ end }}{{ len $d }}",
                )
            },
        },
        Case {
            name: "template: regexReplaceAll",
            prepare: |n| template(n, "{{ regexReplaceAll \"(a*)*b\" .Values.text \"x\" | len }}"),
        },
        Case {
            name: "template: tpl of a long text",
            prepare: |n| template(n, "{{ tpl .Values.text . | len }}"),
        },
    ]
}

fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect::<Vec<_>>().concat()
}

fn items(n: usize) -> Vec<Value> {
    (0..n).map(|i| json!({ "name": format!("name-{i}"), "value": format!("v{i}") })).collect()
}

/// A Deployment with many variables, as somebody wants it, and as it is: in another order, and owned.
fn compare_list(n: usize) -> Box<dyn Fn()> {
    let object = |env: Vec<Value>| {
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" },
            "spec": { "template": { "spec": { "containers": [{ "name": "c", "env": env }] } } } })
    };
    let desired = object(items(n));
    let mut live = object(items(n).into_iter().rev().collect());
    let owned: Map<String, Value> = (0..n)
        .map(|i| {
            (
                format!("k:{{\"name\":\"name-{i}\"}}"),
                json!({ ".": {}, "f:name": {}, "f:value": {} }),
            )
        })
        .collect();
    live["metadata"]["managedFields"] = json!([{
        "manager": "helm", "operation": "Apply", "apiVersion": "apps/v1",
        "fieldsV1": { "f:spec": { "f:template": { "f:spec": { "f:containers": {
            "k:{\"name\":\"c\"}": { ".": {}, "f:name": {}, "f:env": owned } } } } } },
    }]);
    Box::new(move || drop(black_box(compare(&desired, &live, "helm"))))
}

fn map(n: usize) -> Map<String, Value> {
    (0..n).map(|i| (format!("key-{i}"), Value::from(format!("value {i}")))).collect()
}

fn compare_map(n: usize) -> Box<dyn Fn()> {
    let desired = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": map(n) });
    let mut live = desired.clone();
    let owned: Map<String, Value> = (0..n).map(|i| (format!("f:key-{i}"), json!({}))).collect();
    live["metadata"] = json!({ "managedFields": [{
        "manager": "helm", "operation": "Apply", "apiVersion": "v1",
        "fieldsV1": { "f:data": owned },
    }] });
    Box::new(move || drop(black_box(compare(&desired, &live, "helm"))))
}

fn take_over(n: usize) -> Box<dyn Fn()> {
    let owned: Map<String, Value> = (0..n).map(|i| (format!("f:key-{i}"), json!({}))).collect();
    let entry = |manager: &str, operation: &str| {
        json!({ "manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsV1": { "f:data": owned } })
    };
    let managers: Vec<Value> = ["helm", "helm-operator"]
        .iter()
        .flat_map(|it| [entry(it, "Update"), entry(it, "Apply")])
        .collect();
    let live = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": map(n),
        "metadata": { "managedFields": managers } });
    let former = ["helm".to_owned(), "helm-operator".to_owned()];
    Box::new(move || {
        if let Some(entries) = takeover::taken_over(&live, "helm", &former) {
            drop(black_box(takeover::takeover_patch(&live, &entries)));
        }
    })
}

fn changed_lists(n: usize) -> Box<dyn Fn()> {
    let before = json!({ "spec": { "list": items(n) } });
    let after = json!({ "spec": { "list": items(n).into_iter().rev().collect::<Vec<_>>() } });
    Box::new(move || drop(black_box(changed(&before, &after))))
}

fn changed_managers(n: usize) -> Box<dyn Fn()> {
    let object = |time: &str| {
        let entries: Vec<Value> = (0..n)
            .map(|i| json!({ "manager": format!("m{i}"), "time": time, "fieldsV1": { "f:a": {} } }))
            .collect();
        json!({ "metadata": { "managedFields": entries } })
    };
    let (before, after) = (object("2026-01-01T00:00:00Z"), object("2026-01-02T00:00:00Z"));
    Box::new(move || drop(black_box(changed(&before, &after))))
}

fn readiness(n: usize) -> Box<dyn Fn()> {
    let conditions: Vec<Value> =
        (0..n).map(|i| json!({ "type": format!("T{i}"), "status": "True" })).collect();
    let object = json!({ "apiVersion": "a.io/v1", "kind": "A", "metadata": { "name": "a" },
        "status": { "conditions": conditions } });
    Box::new(move || drop(black_box(assess(&object))))
}

fn expression(n: usize) -> Box<dyn Fn()> {
    let object = json!({ "list": items(n) });
    let program = Program::read("object.list.all(item, item.name != 'none')");
    Box::new(move || {
        let mut steps = Steps::new(usize::MAX);
        if let Ok(program) = &program {
            let _ = black_box(program.holds_of(&object, &mut steps));
        }
    })
}

fn bounds(n: usize) -> Box<dyn Fn()> {
    let text = json!({ "list": items(n) }).to_string();
    Box::new(move || _ = black_box(measure(text.as_bytes()).nodes))
}

fn redact_text(n: usize) -> Box<dyn Fn()> {
    // As many values as are looked for at most.
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "stringData": (0..n.min(4000)).map(|i| (i.to_string(), json!(format!("s{i:05}")))).collect::<Map<_, _>>() });
    let text = lines(n, |i| format!("s{i:05} aaaaaaaaaa\n"));
    Box::new(move || drop(black_box(printable(&Sensitive::of([&secret].into_iter()).hide(&text)))))
}

fn redact_object(n: usize) -> Box<dyn Fn()> {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "data": map(n) });
    Box::new(move || drop(black_box(redacted(&secret))))
}

fn merge_values(n: usize) -> Box<dyn Fn()> {
    Box::new(move || {
        let mut under = map(n);
        merge(&mut under, map(n));
        drop(black_box(under));
    })
}

fn set_values(n: usize) -> Box<dyn Fn()> {
    let line: Vec<String> = (0..n).map(|i| format!("a.key{i}={i}")).collect();
    let line = line.join(",");
    Box::new(move || {
        let mut values = Map::new();
        let _ = black_box(strvals::parse_into(&line, &mut values));
    })
}

fn set_indices(n: usize) -> Box<dyn Fn()> {
    let line: Vec<String> = (0..n).map(|i| format!("a[{i}]={i}")).collect();
    let line = line.join(",");
    Box::new(move || {
        let mut values = Map::new();
        let _ = black_box(strvals::parse_into(&line, &mut values));
    })
}

fn read_yaml(n: usize) -> Box<dyn Fn()> {
    let text = catamaran_yaml::to_string(&json!({ "list": items(n) })).unwrap_or_default();
    Box::new(move || drop(black_box(catamaran_yaml::from_str::<Value>(&text, Numbers::Exact))))
}

fn read_aliases(n: usize) -> Box<dyn Fn()> {
    let anchors = lines(n, |i| format!("k{i}: &a{i} [1, 2]\n"));
    let aliases = lines(n, |i| format!("l{i}: *a{i}\n"));
    let text = anchors + &aliases;
    Box::new(move || drop(black_box(catamaran_yaml::from_str::<Value>(&text, Numbers::Exact))))
}

fn write_yaml(n: usize) -> Box<dyn Fn()> {
    let value = json!({ "list": items(n) });
    Box::new(move || drop(black_box(catamaran_yaml::to_string(&value))))
}

fn many_objects(n: usize) -> String {
    let object = |i: usize| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{i}\ndata:\n  a: b\n")
    };
    lines(n, object)
}

fn manifest(n: usize) -> Box<dyn Fn()> {
    let text = many_objects(n);
    Box::new(move || drop(black_box(parse_manifest(&text))))
}

fn record(n: usize) -> Box<dyn Fn()> {
    let release = Release {
        name: "a".to_owned(),
        manifest: many_objects(n),
        config: map(n),
        ..Release::default()
    };
    Box::new(move || {
        if let Ok(packed) = codec::pack(&release) {
            drop(black_box(codec::decode(codec::encode(&packed).as_bytes())));
        }
    })
}

/// Renders a template with lists and texts that a resource's spec holds.
fn template(n: usize, text: &str) -> Box<dyn Fn()> {
    let chart = Chart::from_files([
        ("Chart.yaml".to_owned(), b"apiVersion: v2\nname: growth\nversion: 0.1.0\n".to_vec()),
        ("templates/a.txt".to_owned(), text.as_bytes().to_vec()),
    ]);
    let chart = chart.ok().and_then(|chart| chart.compile().ok());
    let words: Vec<String> = (0..n).map(|i| format!("word-{i}")).collect();
    let Value::Object(values) =
        json!({ "list": items(n), "words": words, "text": "aaaaaaaaab".repeat(n) })
    else {
        return Box::new(|| {});
    };
    Box::new(move || {
        if let Some(chart) = &chart {
            drop(black_box(render(chart, &values)));
        }
    })
}
