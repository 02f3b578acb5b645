//! What fixtures cannot show: lookups, budgets, archives, limits of loading.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use catamaran_chart::{
    Budget, Capabilities, Chart, CompiledChart, KubeVersion, LoadError, LookupKey, Lookups,
    Profile, ReleaseFacts, RenderError, RenderInput, Rendered, coalesce,
};
use serde_json::{Map, Value, json};

/// A folder of its own for a test, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("catamaran-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn chart(name: &str, template: &str) -> Self {
        let folder = Self::new(name);
        folder.write("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
        folder.write("templates/a.yaml", template);
        folder
    }

    fn compile(&self) -> CompiledChart {
        Chart::load(&self.0).unwrap().compile().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn render_with(
    chart: &CompiledChart,
    values: &Value,
    lookups: &Lookups,
    budget: Budget,
) -> Result<Rendered, RenderError> {
    let values: Map<String, Value> = values.as_object().unwrap().clone();
    let release = ReleaseFacts {
        name: "demo".into(),
        namespace: "default".into(),
        revision: 1,
        is_install: true,
    };
    chart.render(&RenderInput {
        values: &values,
        release: &release,
        capabilities: &Capabilities::offline(Profile::Helm318),
        profile: Profile::Helm318,
        lookups,
        clock: UNIX_EPOCH,
        seed: 7.into(),
        random_overrides: None,
        budget,
    })
}

fn render(chart: &CompiledChart, values: &Value) -> Result<Rendered, RenderError> {
    render_with(chart, values, &Lookups::offline(), Budget::default())
}

fn secret(name: &str) -> LookupKey {
    LookupKey {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: "ns".into(),
        name: name.into(),
    }
}

#[test]
fn an_unknown_lookup_asks_for_the_object_and_goes_on_once_it_is_there() {
    let chart = Folder::chart(
        "lookup",
        "{{ $a := lookup \"v1\" \"Secret\" \"ns\" \"a\" }}\
         {{ $b := lookup \"v1\" \"Secret\" \"ns\" $a.next }}\
         a: {{ $a.count }} {{ printf \"%T\" $a.count }} {{ len $b }}\n",
    );
    let chart = chart.compile();
    let mut lookups = Lookups::online();
    let needs =
        |lookups: &Lookups| match render_with(&chart, &json!({}), lookups, Budget::default()) {
            Err(RenderError::Needs(keys)) => keys,
            other => panic!("{other:?}"),
        };
    assert_eq!(needs(&lookups), [secret("a")]);
    lookups.insert(secret("a"), json!({"next": "b", "count": 5}));
    assert_eq!(needs(&lookups), [secret("b")]);
    lookups.insert(secret("b"), json!({}));
    let rendered = render_with(&chart, &json!({}), &lookups, Budget::default()).unwrap();
    assert_eq!(rendered.manifests[0].content, "a: 5 int64 0");
}

#[test]
fn integers_of_a_resource_stay_integers_and_those_of_a_chart_are_floats() {
    let folder = Folder::chart("integers", "a: {{ .Values.mine }} {{ .Values.theirs }}\n");
    folder.write("values.yaml", "theirs: 1000000\n");
    let rendered = render(&folder.compile(), &json!({"mine": 1_000_000})).unwrap();
    assert_eq!(rendered.manifests[0].content, "a: 1000000 1e+06");
}

#[test]
fn the_same_input_gives_the_same_output_and_nothing_leaks_between_renderings() {
    let folder = Folder::chart("pure", "a: {{ .Values.n }}\nb: {{ .Release.Name }}\n");
    let chart = Arc::new(folder.compile());
    let first = render(&chart, &json!({"n": 1})).unwrap();
    assert_ne!(render(&chart, &json!({"n": 2})).unwrap(), first);
    assert_eq!(render(&chart, &json!({"n": 1})).unwrap(), first);
    shared(&chart);
}

#[test]
fn a_chart_that_never_ends_ends_with_an_error_that_names_the_place() {
    let cases = [
        ("self", "{{ define \"r\" }}{{ template \"r\" . }}{{ end }}{{ template \"r\" . }}"),
        (
            "tpl",
            "{{ define \"t\" }}{{ tpl \"{{ include `t` . }}\" . }}{{ end }}{{ include \"t\" . }}",
        ),
        ("range", "{{ range 1000000000 }}{{ range 1000000000 }}{{ end }}{{ end }}"),
        ("output", "{{ range 100000000 }}0123456789{{ end }}"),
    ];
    for (name, template) in cases {
        let chart = Folder::chart(&format!("endless-{name}"), template);
        let budget = Budget {
            steps: 2_000_000,
            output: 1 << 20,
            depth: 1500,
            time: Duration::from_secs(20),
            ..Budget::default()
        };
        let error =
            render_with(&chart.compile(), &json!({}), &Lookups::offline(), budget).unwrap_err();
        match error {
            RenderError::Budget { at, .. } => assert_eq!(at.file, "c/templates/a.yaml", "{name}"),
            // Helm's own limit comes first.
            RenderError::Execute { text, .. } => {
                assert!(text.contains("nested reference name"), "{name}: {text}");
            }
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn a_mistake_in_a_template_is_found_before_anything_is_rendered() {
    let chart = Folder::chart("check", "a: 1\n{{ if }}\n").compile();
    let error = chart.check(Profile::Helm43).unwrap_err();
    let RenderError::Parse { at, .. } = &error else { panic!("{error:?}") };
    assert_eq!((at.file.as_str(), at.line), ("c/templates/a.yaml", 2));
    assert_eq!(error.to_string(), "parse error at (c/templates/a.yaml:2): missing value for if");
}

/// Large enough that threads share the work on it: 400 templates of 2 KiB, and a file of 1 MiB.
#[test]
fn the_parts_of_a_large_chart_count_in_helms_order() {
    let folder = Folder::new("large");
    folder.write("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    folder.write("crds/large.txt", "\u{feff}".to_owned() + &"x".repeat(1 << 20));
    let padding = format!("# {}\n", "y".repeat(2 << 10));
    let template = |number: usize, more: &str| {
        let text = format!(
            "kind: A\nmetadata:\n  name: a{number}\nwho: {{{{ include \"who\" . }}}}\n\
             {{{{ define \"who\" }}}}{number}{{{{ end }}}}\n{padding}{more}\n"
        );
        folder.write(&format!("templates/{number:03}.yaml"), text);
    };
    for number in 1..400 {
        template(number, "");
    }
    template(0, r#"size: {{ .Files.Get "crds/large.txt" | len }}"#);
    let rendered = render(&folder.compile(), &json!({})).unwrap();
    let names: Vec<_> = rendered.manifests.iter().map(|manifest| manifest.name.clone()).collect();
    assert_eq!(names, (0..400).map(|number| format!("a{number}")).collect::<Vec<_>>());
    // Parsed last, the first one's definition counts.
    assert!(rendered.manifests.iter().all(|manifest| manifest.content.contains("who: 0\n")));
    assert!(rendered.manifests.first().unwrap().content.contains("size: 1048576"));

    let fault = || render(&folder.compile(), &json!({})).unwrap_err().to_string();
    for number in [300, 20] {
        template(number, "a: &b [c");
    }
    assert!(fault().contains("c/templates/020.yaml"), "{}", fault());
    for number in [100, 200] {
        template(number, "{{ if }}");
    }
    assert!(fault().contains("c/templates/200.yaml"), "{}", fault());
}

#[test]
fn hooks_of_an_event_run_by_weight_then_name() {
    let job = |name: &str, weight: &str| {
        format!(
            "kind: Job\nmetadata:\n  name: {name}\n  annotations:\n    \
             helm.sh/hook: pre-install\n    helm.sh/hook-weight: \"{weight}\"\n---\n"
        )
    };
    let template = job("b", "5") + &job("z", "-1") + &job("a", "5");
    let rendered = render(&Folder::chart("hooks", &template).compile(), &json!({})).unwrap();
    let names: Vec<_> = rendered.hooks_of("pre-install").iter().map(|hook| &hook.name).collect();
    assert_eq!(names, ["z", "a", "b"]);
    assert!(rendered.hooks_of("post-install").is_empty());
}

#[test]
fn manifests_are_read_as_kubernetes_objects() {
    let folder = Folder::chart(
        "objects",
        "apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {n: 5, f: 1.5}\n",
    );
    let rendered = render(&folder.compile(), &json!({})).unwrap();
    let manifest = &rendered.manifests[0];
    assert_eq!((&*manifest.api_version, &*manifest.kind, &*manifest.name), ("v1", "X", "a"));
    assert_eq!(manifest.object().unwrap()["spec"], json!({"false": 5, "f": 1.5}));
}

#[test]
fn values_are_merged_without_rendering() {
    let folder = Folder::chart("coalesce", "");
    folder.write("values.yaml", "a: {b: 1, c: 2}\n");
    let chart = Chart::load(&folder.0).unwrap();
    let user = json!({"a": {"b": null, "d": 3}});
    let merged = coalesce(&chart, user.as_object().unwrap(), Profile::Helm43).unwrap();
    assert_eq!(Value::Object(merged), json!({"a": {"c": 2.0, "d": 3}}));
}

#[test]
fn the_crds_of_all_charts_are_listed() {
    let folder = Folder::chart("crds", "");
    folder.write("crds/a.yaml", "kind: A\n").write("crds/README.md", "no");
    folder.write("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n");
    folder.write("charts/s/crds/deep/b.YML", "kind: B\n");
    let crds = Chart::load(&folder.0).unwrap().crds();
    let sources: Vec<_> = crds.iter().map(|crd| crd.source.as_str()).collect();
    assert_eq!(sources, ["c/crds/a.yaml", "c/charts/s/crds/deep/b.YML"]);
}

fn shared<T: Send + Sync>(_: &T) {}

#[test]
fn what_is_random_in_helm_is_the_same_in_each_rendering() {
    let folder = Folder::chart(
        "random",
        "a: '{{ keys .Values }} {{ values .Values }} {{ printf \"%p\" .Values }}'\n",
    );
    let text = render(&folder.compile(), &json!({"b": 2, "c": 3, "a": 1})).unwrap();
    let text = text.manifest_text();
    assert!(text.contains("a: '[a b c] [1 2 3] 0xc000000000'"), "{text}");
    let version = KubeVersion::of_cluster("v1.36.3", "1", "36");
    let told = ["v1", "apps/v1/Deployment", "apps/v1"].map(str::to_owned);
    let capabilities = Capabilities::of_cluster(version, told);
    let sorted: Vec<_> = capabilities.api_versions.iter().collect();
    assert_eq!(sorted, ["apps/v1", "apps/v1/Deployment", "v1"]);
}

// ---- archives

/// Names and contents.
type Entries<'a> = &'a [(&'a str, &'a [u8])];

fn pack(entries: Entries<'_>) -> Vec<u8> {
    let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(packed);
    for (name, data) in entries {
        let mut header = tar::Header::new_gnu();
        // Written by hand: the builder refuses the names that a hostile archive has.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, *data).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

const CHART_YAML: &[u8] = b"apiVersion: v2\nname: c\nversion: 1.0.0\n";

#[test]
fn an_archive_loads_like_its_folder() {
    let inner = pack(&[
        ("s/Chart.yaml", b"apiVersion: v2\nname: s\nversion: 1.0.0\n"),
        ("s/values.yaml", b"a: 1\n"),
    ]);
    let archive = pack(&[
        ("c/Chart.yaml", CHART_YAML),
        ("c/values.yaml", b"\xef\xbb\xbfb: 2\n"),
        ("c/templates/a.yaml", b"a: {{ .Values.b }}\n"),
        ("c/charts/s-1.0.0.tgz", &inner),
    ]);
    let folder = Folder::new("archive");
    folder.write("c.tgz", &archive);
    let chart = Chart::load(&folder.0.join("c.tgz")).unwrap();
    assert_eq!(chart, Chart::load_archive(&archive).unwrap());
    assert_eq!(chart.dependencies[0].name(), "s");
    let rendered = render(&chart.compile().unwrap(), &json!({})).unwrap();
    assert_eq!(rendered.manifest_text(), "---\n# Source: c/templates/a.yaml\na: 2\n");
}

#[test]
fn archives_that_reach_out_or_burst_are_refused() {
    let big = vec![0; 6 << 20];
    let some = vec![0; 4 << 20];
    let many: Vec<(String, &[u8])> = (0..30).map(|i| (format!("c/f{i}"), &some[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(n, d)| (n.as_str(), *d)).collect();
    let cases: [(Entries<'_>, &str); 6] = [
        (
            &[("c/Chart.yaml", CHART_YAML), ("c/../../x", b"")],
            "chart illegally references parent directory",
        ),
        (&[("c//etc/passwd", b"")], "chart illegally contains absolute paths"),
        (
            &[("Chart.yaml", CHART_YAML)],
            "chart illegally contains content outside the base directory: \"Chart.yaml\"",
        ),
        (
            &[("c/Chart.yaml", CHART_YAML), ("c/big", &big)],
            "chart file \"big\" is larger than the maximum file size 5242880",
        ),
        (&many, "decompressed chart is larger than the maximum size 104857600"),
        (&[], "no files in chart archive"),
    ];
    for (entries, message) in cases {
        assert_eq!(Chart::load_archive(&pack(entries)).unwrap_err().to_string(), message);
    }
    let folder = Folder::new("no-archive");
    folder.write("values.yaml", "a: 1\n").write("text", "x");
    let load = |name: &str| Chart::load(&folder.0.join(name)).unwrap_err().to_string();
    assert!(
        load("values.yaml").ends_with("seems to be a YAML file, but expected a gzipped archive")
    );
    assert!(load("text").ends_with("a gzipped archive; got 'application/octet-stream'"));
}

// ---- renderings again

#[test]
fn what_templates_change_is_forgotten_with_their_rendering() {
    let changing = r#"
{{- $seen := .Values.seen | default list }}
{{- range $key, $map := dict "dot" . "values" .Values "nested" .Values.a.b "release" .Release "sub" .Subcharts.lib }}
{{ $key }}: {{ hasKey $map "changed" }} {{ hasKey $map "Template" }} {{ len $map }}
{{- $_ := set $map "changed" $.Template.Name }}
{{- end }}
{{- $_ := set .Values "seen" (append $seen .Template) }}
{{- $_ := unset .Values.a "c" }}
{{- $_ := set .Values.a.b "c" (add 1 .Values.a.b.c) }}
counted: {{ .Values.a.b.c }} {{ .Values.a.c }}
names: {{ range .Values.seen }}{{ .Name }} {{ end }}
"#;
    let folder = Folder::chart("changing", changing);
    folder.write("templates/b.yaml", changing).write("values.yaml", "a: {b: {c: 1}, c: 2}\n");
    folder.write(
        "charts/lib/Chart.yaml",
        "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
    );
    let chart = folder.compile();
    let texts = |rendered: Rendered| rendered.manifests.into_iter().map(|m| m.content);
    let first: Vec<_> = texts(render(&chart, &json!({})).unwrap()).collect();
    let all = first.concat();
    for expected in ["dot: false true", "dot: true true", "sub: false false", "counted: 3"] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    // From the third time on, values are as the second has kept them.
    for _ in 0..4 {
        let again: Vec<_> = texts(render(&chart, &json!({})).unwrap()).collect();
        assert_eq!(again, first);
    }
}

// ---- folders

#[test]
fn links_in_a_circle_end() {
    let folder = Folder::chart("circle", "a: 1\n");
    // One link would end at the system's limit; two stand for 2^40 folders.
    for name in ["again", "and-again"] {
        std::os::unix::fs::symlink(".", folder.0.join(name)).unwrap();
    }
    let error = Chart::load(&folder.0).unwrap_err();
    assert!(matches!(error, LoadError::Link { .. } | LoadError::TooManyFiles { .. }), "{error}");
}

#[test]
fn what_is_no_file_or_too_big_is_refused() {
    let folder = Folder::chart("irregular", "a: 1\n");
    folder.write("big", vec![0; (5 << 20) + 1]);
    assert!(matches!(Chart::load(&folder.0), Err(LoadError::FileTooLarge { .. })));
    fs::remove_file(folder.0.join("big")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(folder.0.join("socket")).unwrap();
    assert!(matches!(Chart::load(&folder.0), Err(LoadError::Irregular(_))));
    let missing = Chart::load(Path::new("/nonexistent")).unwrap_err();
    assert!(matches!(missing, LoadError::Io { .. }), "{missing}");
}

#[test]
fn a_schema_that_points_elsewhere_is_refused_and_never_fetched() {
    let folder = Folder::chart("schema", "a: 1\n");
    for reference in ["https://example.com/s.json", "file:///etc/hostname", "other.json"] {
        folder.write("values.schema.json", json!({"$ref": reference}).to_string());
        let error = render(&folder.compile(), &json!({})).unwrap_err();
        assert!(matches!(error, RenderError::Unsupported { .. }), "{reference}: {error}");
    }
}

#[test]
fn a_schema_may_name_files_of_its_own_chart() {
    // As charts of operators do, whose working directory holds `helm-charts`.
    let folder = Folder::chart("c", "a: 1\n");
    let parts = json!({"definitions": {"text": {"type": "string"}}});
    folder.write("v1/parts.json", parts.to_string());
    let schema = |name: &str| {
        let reference = format!("file://./helm-charts/{name}/v1/parts.json#/definitions/text");
        json!({"properties": {"a": {"$ref": reference}}}).to_string()
    };
    folder.write("values.schema.json", schema("c"));
    let error = render(&folder.compile(), &json!({"a": 1})).unwrap_err().to_string();
    assert!(error.contains("/a"), "it is no text: {error}");
    render(&folder.compile(), &json!({"a": "x"})).unwrap();
    for outside in ["other", "c/../../etc"] {
        folder.write("values.schema.json", schema(outside));
        let error = render(&folder.compile(), &json!({})).unwrap_err();
        assert!(matches!(error, RenderError::Unsupported { .. }), "{outside}: {error}");
    }
}

#[test]
fn imported_values_that_contain_themselves_are_an_error() {
    // Helm shares the imported table, lays it under itself, and loops until its memory is gone.
    let folder = Folder::new("imports");
    folder.write(
        "Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- name: s\n  version: 1.0.0\n  \
         import-values: [{child: a, parent: .}, {child: a, parent: k}]\n",
    );
    folder.write("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n");
    folder.write("charts/s/values.yaml", "a: {k: {x: 1}}\n");
    for profile in [Profile::Helm318, Profile::Helm43] {
        let chart = Chart::load(&folder.0).unwrap();
        let error = coalesce(&chart, &Map::new(), profile).unwrap_err().to_string();
        assert!(error.ends_with("values nest too deep, or a table contains itself"), "{error}");
    }
}
