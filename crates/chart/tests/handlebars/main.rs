//! Templates whose name ends in `.hbs`. Where a behaviour has a twin in Go's language, what the twin
//! makes is the expectation: fixtures.rs shows that this is what helm makes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod example;
mod functions;
mod hostile;
mod page;
mod soup;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::UNIX_EPOCH;

use catamaran_chart::{
    Budget, Capabilities, Chart, Lookups, Profile, ReleaseFacts, RenderError, RenderInput, Rendered,
};
use serde_json::Map;

/// A chart on disk, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catamaran-hbs-{}-{count}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        for (name, text) in files {
            let path = folder.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: \"2.1\"\nannotations:\n  catamaran.dev/handlebars: \"true\"\n";
const STRICT: &str =
    "apiVersion: v2\nname: c\nversion: 1.0.0\nannotations:\n  catamaran.dev/handlebars: strict\n";
const VALUES: &str = "
name: web
port: 8080
million: 1000000
half: 0.5
zero: 0
enabled: true
disabled: false
nothing: null
empty: ''
html: <a href=\"x\">'&'</a>
text: |
  one
  two
list: [a, b, c]
numbers: [1, 2.5]
none: []
bare: {}
map: {b: 2, a: 1, c: three}
deep: {er: {est: found}}
my-key: dashed
items:
- {name: x, tags: [p, q]}
- {name: y, tags: []}
";

fn render_all(files: &[(&str, &str)], budget: Budget) -> Result<Rendered, RenderError> {
    render_with(files, budget, &Lookups::offline())
}

fn render_with(
    files: &[(&str, &str)],
    budget: Budget,
    lookups: &Lookups,
) -> Result<Rendered, RenderError> {
    let folder = Folder::new(files);
    let chart = Chart::load(&folder.0).unwrap().compile()?;
    let values = Map::new();
    let release = ReleaseFacts {
        name: "demo".into(),
        namespace: "space".into(),
        revision: 1,
        is_install: true,
    };
    chart.render(&RenderInput {
        values: &values,
        release: &release,
        capabilities: &Capabilities::offline(Profile::Helm43),
        profile: Profile::Helm43,
        lookups,
        clock: UNIX_EPOCH,
        seed: 0_u64.into(),
        random_overrides: None,
        budget,
    })
}

/// What a notes file makes of a text: nothing is cut or sorted there.
fn notes(chart: &str, name: &str, text: &str, others: &[(&str, &str)]) -> Result<String, String> {
    notes_of(chart, VALUES, name, text, others)
}

fn notes_of(
    chart: &str,
    values: &str,
    name: &str,
    text: &str,
    others: &[(&str, &str)],
) -> Result<String, String> {
    let mut files = vec![("Chart.yaml", chart), ("values.yaml", values), (name, text)];
    files.push(("config/a.txt", "first\nsecond\n"));
    files.push(("config/b.txt", "b"));
    files.extend(others);
    let rendered = render_all(&files, Budget::default());
    rendered.map(|rendered| rendered.notes).map_err(|error| error.text(Profile::Helm43))
}

fn hbs(text: &str) -> Result<String, String> {
    notes(CHART, "templates/NOTES.txt.hbs", text, &[])
}

#[test]
fn what_a_twin_in_go_prints_is_printed() {
    let cases = include!("twins.rs");
    let mut wrong = Vec::new();
    for (handlebars, go) in cases {
        let expected = match notes(CHART, "templates/NOTES.txt", go, &[]) {
            Ok(expected) => expected,
            Err(error) => panic!("{go}: {error}"),
        };
        let got = hbs(handlebars);
        if got.as_ref() != Ok(&expected) {
            wrong.push(format!("{handlebars}\n  expected {expected:?}\n  got      {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn strict(text: &str) -> Result<String, String> {
    notes(STRICT, "templates/NOTES.txt.hbs", text, &[])
}

#[test]
fn what_is_missing_is_an_error_in_strict_mode() {
    for text in [
        "{{#if Values.missing}}a{{else}}b{{/if}}",
        "{{#unless Values.missing}}b{{/unless}}",
        "{{#each Values.missing}}a{{else}}b{{/each}}",
        "{{#with Values.missing}}a{{else}}b{{/with}}",
        "{{default \"b\" Values.missing}}",
        "{{#if (empty Values.missing)}}b{{/if}}",
        "{{coalesce Values.missing \"b\"}}",
    ] {
        assert_eq!(strict(text), Ok("b".into()), "{text}");
    }
    for (text, message) in [
        ("{{Values.missing}}", "map has no entry for key \"missing\""),
        ("{{Values.missing.deeper}}", "map has no entry for key \"missing\""),
        (
            "{{#with (dict \"n\" null)}}{{n.deeper}}{{/with}}",
            "nil pointer evaluating interface {}.deeper",
        ),
        ("{{Values.name.x}}", "can't evaluate field x in type string"),
        ("{{Values.list.7}}", "list has no element 7"),
        ("{{quote Values.missing}}", "map has no entry for key \"missing\""),
        ("{{#each Values.items}}{{kind}}{{/each}}", "map has no entry for key \"kind\""),
    ] {
        let error = strict(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
        assert!(hbs(text).is_ok(), "{text}");
    }
}

#[test]
fn errors_name_file_line_and_column() {
    let at = "c/templates/NOTES.txt.hbs";
    for (text, expected) in [
        ("a\n b {{fail \"no\"}}", format!("execution error at ({at}:2:5): no")),
        (
            "{{#if Values.enabled}}\n{{required \"give it\" Values.missing}}{{/if}}",
            format!("execution error at ({at}:2:2): give it"),
        ),
        (
            "\n{{ quote }}{{int64 Values.x y=1}}",
            format!("parse error at ({at}:2): int64 takes no argument by name (y=)"),
        ),
        ("{{nope Values.a}}", format!("parse error at ({at}:1): function \"nope\" not defined")),
        (
            "a\n{{#nope a}}{{/nope}}",
            format!(
                "parse error at ({at}:2): there is no block \"nope\": the blocks are if, unless, each, with and functions"
            ),
        ),
        ("{{#if}}{{/if}}", format!("parse error at ({at}:1): if takes one argument, not 0")),
        ("{{upper (if a)}}", format!("parse error at ({at}:1): if is a block: {{{{#if ...}}}}")),
        (
            "a\n{{#if a}}\n{{/each}}",
            format!("parse error at ({at}:3): helper \"if\" was opened, but \"each\" is closing"),
        ),
        (
            "{{> nowhere}}",
            format!("{at}:1:4\n  executing \"{at}\" at <nowhere>:\n    Partial not found nowhere"),
        ),
        (
            "{{add \"x\"}}{{trunc \"a\" \"b\"}}",
            format!(
                "{at}:1:13\n  executing \"{at}\" at <trunc \"a\" \"b\">:\n    expected integer; found \"a\""
            ),
        ),
        (
            "{{quote (trunc Values.name \"b\")}}",
            format!(
                "{at}:1:2\n  executing \"{at}\" at <quote (trunc Values.name \"b\")>:\n    wrong type for value; expected int; got string"
            ),
        ),
    ] {
        assert_eq!(hbs(text), Err(expected), "{text}");
    }
    let error = hbs("ok\n{{#each Values.list}}").unwrap_err();
    assert!(error.starts_with(&format!("parse error at ({at}:")), "{error}");
}

#[test]
fn both_kinds_include_each_other() {
    let labels = "{{- define \"c.labels\" -}}\napp: {{ .Values.name }}\n{{- end -}}";
    let others = [
        ("templates/_helpers.tpl", labels),
        ("templates/_ports.yaml.hbs", "port: {{Values.port}}"),
        ("templates/_name.hbs", "{{Release.Name}}-{{upper Values.name}}"),
        ("templates/_back.hbs", "[{{{include \"c.labels\" this}}}]"),
        ("templates/_fails.hbs", "a\n{{fail \"on purpose\"}}"),
        ("templates/_types.hbs", "{{kindOf a}} {{kindOf b}} {{typeOf c}}"),
        ("templates/_sets.hbs", "{{#with (set this \"seen\" \"yes\")}}{{/with}}"),
        ("templates/a.yaml.hbs", "a: {{Values.name}}\n"),
        ("templates/b.yaml", "b: {{ .Values.name }}\n"),
    ];
    let from_go = |text| notes(CHART, "templates/NOTES.txt", text, &others);
    let from_hbs = |text| notes(CHART, "templates/NOTES.txt.hbs", text, &others);
    for (text, expected) in [
        ("{{{include \"c.labels\" this}}}", "app: web"),
        ("{{> name}} {{> c.name}} {{include \"name\" this}}", "demo-WEB demo-WEB demo-WEB"),
        ("{{> (printf \"%s\" \"name\")}} {{> 'ports.yaml'}}", "demo-WEB port: 8080"),
        ("{{> back}}", "[app: web]"),
        ("  {{> back}}\n", "  [app: web]"),
        ("{{sha256sum (include (print Template.BasePath \"/b.yaml\") this)}}", "8b4a4dd4f0f3a4f0"),
        ("{{include (print Template.BasePath \"/a.yaml\") this}}", "a: web\n"),
    ] {
        let got = from_hbs(text).unwrap();
        if text.contains("sha256") {
            assert_eq!(got.len(), 64);
        } else {
            assert_eq!(got, expected, "{text}");
        }
    }
    for (text, expected) in [
        ("{{ include \"name\" . }} {{ include \"c.name\" . }}", "demo-WEB demo-WEB"),
        ("{{ include \"back\" . | upper }}", "[APP: WEB]"),
        ("{{ include \"c.ports.yaml\" . | nindent 2 }}", "\n  port: 8080"),
        // Values cross as they are: types, and maps by reference.
        (
            "{{ include \"types\" (dict \"a\" 1 \"b\" 1.5 \"c\" (list \"x\")) }}",
            "int float64 []interface {}",
        ),
        ("{{ $d := dict \"a\" 1 }}{{ include \"sets\" $d }}{{ $d.seen }}", "yes"),
    ] {
        assert_eq!(from_go(text).as_deref(), Ok(expected), "{text}");
    }
    assert_eq!(
        from_go("x {{ include \"fails\" . }}").unwrap_err(),
        "execution error at (c/templates/NOTES.txt:1:5): on purpose"
    );
    assert!(from_go("{{ include \"nope\" . }}").unwrap_err().contains("no template \"nope\""));
}

#[test]
fn errors_show_the_way_through_both_kinds() {
    let others = [
        ("templates/_helpers.tpl", "{{define \"go\"}}\n{{ index (list) 1 }}{{end}}"),
        ("templates/_p.hbs", "\n\n{{include \"go\" this}}"),
    ];
    let error = notes(CHART, "templates/NOTES.txt.hbs", "{{> p}}", &others).unwrap_err();
    for part in [
        "template: c/templates/_p.hbs:3:2: executing \"c/templates/_p.hbs\" at <include \"go\" this>: error calling include",
        "template: c/templates/_helpers.tpl:2:3: executing \"go\" at <index (list) 1>: error calling index",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_lookup_asks_for_what_is_not_known() {
    let define =
        ("templates/_h.tpl", "{{define \"l\"}}{{lookup \"v1\" \"Secret\" \"a\" \"b\"}}{{end}}");
    for text in ["{{lookup \"v1\" \"Secret\" \"a\" \"b\"}}", "{{#if (include \"l\" this)}}{{/if}}"]
    {
        let files = [("Chart.yaml", CHART), define, ("templates/NOTES.txt.hbs", text)];
        let error = render_with(&files, Budget::default(), &Lookups::online()).unwrap_err();
        let RenderError::Needs(keys) = error else { panic!("{text}: {error}") };
        let [key] = keys.as_slice() else { panic!("{text}: {keys:?}") };
        assert_eq!((key.kind.as_str(), key.name.as_str()), ("Secret", "b"));
    }
}

#[test]
fn a_compiled_chart_is_shared_by_threads() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let folder =
        Folder::new(&[("Chart.yaml", CHART), ("templates/a.yaml.hbs", "a: {{Chart.Name}}")]);
    is_shared(&Chart::load(&folder.0).unwrap().compile().unwrap());
}

#[test]
fn a_partial_is_indented_where_it_stands_alone() {
    let others = [(
        "templates/_p.hbs",
        "a: 1\n{{#if Values.enabled}}\nb: {{Values.name}}\n{{/if}}\n{{{toYaml Values.map}}}\n",
    )];
    let got = notes(CHART, "templates/NOTES.txt.hbs", "top:\n  {{> p}}\nend\n", &others);
    assert_eq!(got.unwrap(), "top:\n  a: 1\n  b: web\n  a: 1\n  b: 2\n  c: three\nend\n");
}

#[test]
fn each_chart_has_its_own_partials() {
    let sub = |name: &str| {
        format!(
            "apiVersion: v2\nname: {name}\nversion: 1.0.0\nannotations:\n  catamaran.dev/handlebars: \"true\"\n"
        )
    };
    let parent = format!(
        "{CHART}dependencies:\n- {{name: s, version: 1.0.0}}\n- {{name: plain, version: 1.0.0}}\n- {{name: lib, version: 1.0.0}}\n"
    );
    let lib = format!("{}type: library\n", sub("lib"));
    let files = [
        ("Chart.yaml", parent.as_str()),
        ("templates/_name.hbs", "parent"),
        ("templates/_only.hbs", "only"),
        ("templates/a.yaml.hbs", "a: {{> name}} {{> s.name}} {{> lib.tool}} {{> tool}}\n"),
        ("charts/s/Chart.yaml", &sub("s")),
        ("charts/s/templates/_name.hbs", "sub"),
        ("charts/s/templates/b.yaml.hbs", "b: {{> name}} {{> c.name}} {{> only}}\n"),
        ("charts/s/templates/c.yaml", "c: {{ include \"name\" . }} {{ include \"c.name\" . }}\n"),
        // It did not ask: to Helm this is a Go template.
        ("charts/plain/Chart.yaml", "apiVersion: v2\nname: plain\nversion: 1.0.0\n"),
        ("charts/plain/templates/d.yaml.hbs", "d: {{ .Chart.Name }}\n"),
        ("charts/lib/Chart.yaml", &lib),
        ("charts/lib/templates/_tool.hbs", "tool"),
        ("charts/lib/templates/x.yaml.hbs", "never: {{fail \"a library renders nothing\"}}"),
    ];
    let text = render_all(&files, Budget::default()).unwrap().template_text();
    assert_eq!(
        text,
        "---\n# Source: c/charts/plain/templates/d.yaml.hbs\nd: plain\n\n\
         ---\n# Source: c/charts/s/templates/b.yaml\nb: sub parent only\n\n\
         ---\n# Source: c/charts/s/templates/c.yaml\nc: sub parent\n\n\
         ---\n# Source: c/templates/a.yaml\na: parent sub tool tool\n"
    );
}

#[test]
fn a_chart_asks_for_handlebars() {
    let without = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
    let go = notes(without, "templates/NOTES.txt.hbs", "{{ .Release.Name }}", &[]);
    assert!(go.unwrap_err().starts_with("YAML parse error on c/templates/NOTES.txt.hbs: "));
    let wrong = CHART.replace("\"true\"", "maybe");
    let error = notes(&wrong, "templates/NOTES.txt.hbs", "", &[]).unwrap_err();
    assert_eq!(
        error,
        "annotation catamaran.dev/handlebars of chart c must be true, strict or false, not \"maybe\""
    );
    let twice = [("templates/NOTES.txt", "a")];
    let error = notes(CHART, "templates/NOTES.txt.hbs", "b", &twice).unwrap_err();
    assert_eq!(
        error,
        "parse error at (c/templates/NOTES.txt.hbs:1): c/templates/NOTES.txt is there too: one of them has to go"
    );
}

#[test]
fn what_may_nest_does() {
    let deep = format!(
        "{}{{{{{}Values.name{}}}}}{}",
        "{{#if Values.name}}".repeat(30),
        "(upper ".repeat(15),
        ")".repeat(15),
        "{{/if}}".repeat(30)
    );
    assert_eq!(hbs(&deep).as_deref(), Ok("WEB"));
    let tree = "{{name}}{{#each children}}({{> tree}}){{/each}}";
    let mut value = "name: x".to_owned();
    for _ in 0..12 {
        value = format!("name: x, children: [{{{value}}}]");
    }
    let text = format!("{{{{#with (fromYaml \"{{{value}}}\")}}}}{{{{> tree}}}}{{{{/with}}}}");
    let got = notes(CHART, "templates/NOTES.txt.hbs", &text, &[("templates/_tree.hbs", tree)]);
    assert_eq!(got.unwrap(), format!("{}x{}", "x(".repeat(12), ")".repeat(12)));
}
