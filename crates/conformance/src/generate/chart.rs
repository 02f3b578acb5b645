//! Whole charts: values from several places, subcharts, hooks, documents, schemas.

use catamaran_chart::Profile;

use super::document::{document, schema};
use super::expr::Library;
use super::yaml;
use crate::case::{Case, SetLine};
use crate::dice::Dice;

/// Values from files and flags, printed in several ways.
pub fn values(mut dice: Dice, profile: Profile) -> Case {
    let mut case = Case::new(profile);
    case.file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n");
    if dice.chance(80) {
        case.file("values.yaml", yaml::document(&mut dice));
    }
    for _ in 0..dice.below(3) {
        case.values.push(yaml::document(&mut dice));
    }
    for _ in 0..dice.below(3) {
        case.set.push(set_line(&mut dice));
    }
    let text = dice.pick(&[
        "{{ toYaml .Values }}",
        "{{ toJson .Values }}",
        "{{ .Values }}",
        "{{ toYamlPretty .Values }}",
        "{{ printf \"%#v\" .Values }}",
        "{{ range $k, $v := .Values }}{{ $k }}={{ $v | typeOf }}:{{ $v | quote }}\n{{ end }}",
        "{{ toPrettyJson .Values }}{{ .Values | deepCopy | toYaml }}",
        "{{ toToml .Values }}",
    ]);
    case.file("templates/NOTES.txt", text);
    case.sort();
    case
}

fn set_line(dice: &mut Dice) -> SetLine {
    const LINES: &[&str] = &[
        "a=1",
        "a.b=2",
        "a[0]=x",
        "a[1].b=y",
        "a={1,2,x}",
        "a={}",
        "a=",
        "a=null",
        "a.b=null",
        "a=1,b=2",
        "a=\\,x",
        "a\\.b=1",
        "a[0][1]=z",
        "a=true",
        "b=0123",
        "b=1e3",
        "b=1.5",
        "key=9223372036854775807",
        "key=9223372036854775808",
        "a",
        "=1",
        "a.",
        "a[x]=1",
        "a[-1]=1",
        "a={1,{2}}",
        "a={1",
        "a..b=1",
        "a,b",
        ".a=1",
        "a=b=c",
        "a[0]={1}",
        "a[70000]=1",
        "é=ü",
        "a= spaced ",
        "a.b[0].c.d=1",
        "a={null,true,\"q\"}",
        "a[2]=null",
        "10=x",
        "a[0].b=1,a[1].c=2",
        "a=\"x\"",
        "a='x'",
        "",
        "a[0]",
        "a[0]x=1",
        "c.d.e.f=1,c.d=2",
        "c=1,c.d=2",
        "a={a,b},a[1]=z",
        "a\\[0\\]=x",
        "a=[1]",
        "a=False",
        "a=NULL",
        "a=-1",
    ];
    const JSON: &[&str] = &[
        "a=1",
        "a={\"b\":[1,null]}",
        "{\"a\":{\"b\":2}}",
        "a=[1,2",
        "a=\"x\",b=true",
        "a.b[1]={\"c\":1.50}",
        "{\"a\"",
        "a=",
        "a",
        "a=1e3",
        "a=null",
        "{}",
        "[1]",
        "a={\"x\":1},a.y=2",
        "a=12345678901234567890",
    ];
    match dice.below(5) {
        0 => SetLine::Json(dice.pick(JSON).into()),
        1 => SetLine::Text(dice.pick(LINES).into()),
        2 => SetLine::Literal(dice.pick(LINES).into()),
        _ => SetLine::Typed(dice.pick(LINES).into()),
    }
}

/// A chart with all there may be.
pub fn whole(library: &Library, mut dice: Dice, profile: Profile) -> Case {
    let mut case = Case::new(profile);
    let children = dice.below(3);
    let mut chart = Metadata { name: "top".into(), ..Metadata::default() };
    chart.write(&mut dice, children);
    case.file("Chart.yaml", chart.text);
    fill(&mut case, "", library, &mut dice);
    for at in 0..children {
        subchart(&mut case, &mut dice, library, at);
    }
    let mut parent = yaml_of_parent(&mut dice, children);
    if dice.chance(15) {
        parent.push_str(&yaml::document(&mut dice));
    }
    case.file("values.yaml", parent);
    if dice.chance(60) {
        case.values.push(yaml_of_parent(&mut dice, children));
    }
    if dice.chance(20) {
        case.set.push(SetLine::Typed(
            dice.pick(&[
                "sub0.enabled=false",
                "tags.front=true",
                "global.g=7",
                "sub0.a=null",
                "sub1=null",
                "sub0=1",
            ])
            .into(),
        ));
    }
    if dice.chance(12) {
        case.file("values.schema.json", schema(&mut dice));
    }
    if dice.chance(25) {
        case.file(
            "crds/x.yaml",
            "kind: CustomResourceDefinition\nmetadata:\n  name: xs.y\n---\n# more\n",
        );
        case.include_crds = dice.chance(50);
    }
    case.is_upgrade = dice.chance(20);
    if dice.chance(15) {
        case.kube_version = dice.pick(&["1.30", "v1.25.3", "1.31.0-gke.1", "1.30.1+k3s1"]).into();
    }
    if dice.chance(15) {
        case.api_versions = vec!["example.com/v1/Thing".into(), "a/b".into()];
    }
    if dice.chance(20) {
        case.namespace = "other".into();
    }
    case.sort();
    // A child may have said the same file twice.
    case.files.dedup_by(|a, b| a.name == b.name);
    case
}

#[derive(Default)]
struct Metadata {
    name: String,
    text: String,
}

impl Metadata {
    fn write(&mut self, dice: &mut Dice, children: usize) {
        let version =
            dice.pick(&["0.1.0", "1.2.3-rc.1+b", "v2.0.0", "1.0", "1", "01.2.3", "x", "\"\""]);
        let version = if dice.chance(85) { "0.1.0" } else { version };
        let api = if dice.chance(92) { "v2" } else { dice.pick(&["v1", "v1", "\"\"", "2", "v2 "]) };
        self.text = format!("apiVersion: {api}\nname: {}\nversion: {version}\n", self.name);
        for line in [
            "kubeVersion: \">=1.20.0-0\"",
            "kubeVersion: \"<1.0\"",
            "description: \"d \\u00e9\"",
            "type: application",
            "type: library",
            "appVersion: 1.10",
            "appVersion: \"2\"",
            "icon: http://x/y.png",
            "keywords:\n- a\n- b",
            "sources: [s]",
            "maintainers:\n- name: m\n  email: e\n- name: n\n  url: u",
            "annotations:\n  k: v\n  n: \"1\"",
            "deprecated: true",
            "unknown: field",
            "tags: a,b",
            "condition: x.enabled",
            "home: \"\"",
            "keywords: x",
            "annotations: {k: 1}",
            "maintainers: [null]",
        ] {
            let rare = line.contains("<1.0") || line.contains("library") || line.contains("x]");
            if dice.chance(if rare { 2 } else { 7 }) {
                self.text.push_str(line);
                self.text.push('\n');
            }
        }
        if children > 0 && dice.chance(85) {
            self.text.push_str("dependencies:\n");
            for at in 0..children {
                self.text.push_str(&dependency(dice, at));
            }
        }
    }
}

fn dependency(dice: &mut Dice, at: usize) -> String {
    let mut text = format!("- name: sub{at}\n");
    let version = dice.pick(&["0.1.0", ">=0.0.1", "~0.1", "*", "9.9.9", "\"\"", "x.y.z.w"]);
    let version = if dice.chance(70) { "0.1.0" } else { version };
    text.push_str(&format!("  version: \"{}\"\n", version.trim_matches('"')));
    for (chance, line) in [
        (25, "  condition: sub0.enabled".to_owned()),
        (8, "  condition: global.on,sub0.enabled".to_owned()),
        (15, "  tags: [front]".to_owned()),
        (8, "  tags: [front, back]".to_owned()),
        (15, "  alias: other".to_owned()),
        (15, "  import-values: [data]".to_owned()),
        (10, "  import-values:\n  - child: inner\n    parent: imported".to_owned()),
        (6, "  import-values:\n  - child: inner.deep\n    parent: .\n  - nothere".to_owned()),
        (6, "  repository: file://../sub".to_owned()),
        (2, "  enabled: false".to_owned()),
        (2, "  import-values: x".to_owned()),
    ] {
        let key = line.split(':').next().unwrap_or_default().to_owned();
        if dice.chance(chance) && !text.contains(&format!("{key}:")) {
            text.push_str(&line.replace("sub0", &format!("sub{at}")));
            text.push('\n');
        }
    }
    text
}

fn yaml_of_parent(dice: &mut Dice, children: usize) -> String {
    let mut text = String::from("str: top\nint: 1\nlist: [1, {a: b}]\nmap: {a: 1, b: {c: d}}\n");
    for at in 0..children {
        text.push_str(
            dice.pick(&[
                "subN:\n  a: over\n  inner:\n    deep: null\n",
                "subN: {enabled: false}\n",
                "subN: {enabled: true, a: {b: c}}\n",
                "subN: {}\n",
                "subN: null\n",
                "subN: {a: null, inner: null}\n",
                "subN: {list: [9], map: {x: null, new: 1}}\n",
                "subN: 3\n",
                "",
                "",
            ])
            .replace('N', &at.to_string())
            .as_str(),
        );
    }
    for line in [
        "other: {a: aliased}",
        "tags: {front: false}",
        "tags: {front: true, back: false}",
        "global: {g: 1, m: {x: 1, y: {z: 2}}}",
        "global: {g: null, on: false}",
        "global: null",
        "global: 5",
        "imported: {mine: 1}",
        "map: null",
        "data: {p: 1}",
        "exports: {data: {e: 1}}",
    ] {
        if dice.chance(12) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn subchart(case: &mut Case, dice: &mut Dice, library: &Library, at: usize) {
    let prefix = format!("charts/sub{at}/");
    let mut chart = Metadata { name: format!("sub{at}"), ..Metadata::default() };
    let grandchild = dice.chance(20);
    chart.write(dice, 0);
    if grandchild && dice.chance(60) {
        chart
            .text
            .push_str("dependencies:\n- name: leaf\n  version: \"*\"\n  condition: leaf.enabled\n");
    }
    case.file(format!("{prefix}Chart.yaml"), chart.text);
    let mut text = String::from("a: 1\nlist: [1, 2]\nmap: {x: 1, y: {z: w}}\n");
    for line in [
        "inner: {deep: {q: 1}, s: t}",
        "exports: {data: {fromchild: 1, map: {c: 3}}}",
        "enabled: true",
        "global: {g: child, m: {y: {own: 1}}}",
        "nothing: null",
        "leaf: {v: from-sub, enabled: false}",
        "leaf: {v: null}",
        "str: sub",
    ] {
        if dice.chance(35) {
            text.push_str(line);
            text.push('\n');
        }
    }
    case.file(format!("{prefix}values.yaml"), text);
    fill(case, &prefix, library, dice);
    if grandchild {
        let prefix = format!("{prefix}charts/leaf/");
        case.file(format!("{prefix}Chart.yaml"), "apiVersion: v2\nname: leaf\nversion: 1.0.0\n");
        case.file(format!("{prefix}values.yaml"), "v: leaf\nempty: null\nglobal: {leaf: 1}\n");
        fill(case, &prefix, library, dice);
    }
}

/// Templates and files of one chart.
fn fill(case: &mut Case, prefix: &str, library: &Library, dice: &mut Dice) {
    if dice.chance(45) {
        case.file(
            format!("{prefix}templates/_helpers.tpl"),
            format!("{{{{ define \"lib.hello\" }}}}from {prefix}{{{{ end }}}}{{{{ define \"lib.{}\" }}}}{{{{ .Values | toJson }}}}{{{{ end }}}}", dice.below(3)),
        );
    }
    for at in 0..=dice.below(3) {
        let mut text = String::new();
        for _ in 0..=dice.below(3) {
            text.push_str(&document(dice, library));
        }
        let folder = dice.pick(&["", "", "", "tests/", "b/", "_x/"]);
        let name = dice.pick(&["a", "b", "z", "10", "9", "_p", "A"]);
        let extension = dice.pick(&[".yaml", ".yaml", ".yml", ".txt", ".tpl", ".json"]);
        let _ = at;
        case.file(format!("{prefix}templates/{folder}{name}{extension}"), text);
    }
    if dice.chance(30) {
        case.file(
            format!("{prefix}templates/NOTES.txt"),
            "notes of {{ .Chart.Name }} {{ .Release.Name }}\n",
        );
    }
    if dice.chance(20) {
        case.file(format!("{prefix}conf/x.txt"), "x: {{ 1 }}\n");
    }
}
