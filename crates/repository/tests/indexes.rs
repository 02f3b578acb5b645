//! Indexes that are broken, huge or malicious. Texts are those of the real helm.

#![allow(clippy::unwrap_used, clippy::panic, clippy::format_push_string)]

use catamaran_repository::{Index, IndexError};

fn parse(text: &str) -> Result<Index, IndexError> {
    Index::parse(text.as_bytes(), "here")
}

fn with(entries: &str) -> String {
    format!("apiVersion: v1\nentries:\n{entries}")
}

fn versions(index: &Index, name: &str) -> Vec<String> {
    index.versions(name).unwrap().iter().map(|chart| chart.version.clone()).collect()
}

#[test]
fn entries_that_are_no_charts_are_left_out() {
    let text = with(
        "  a:\n  - null\n  - {name: a, version: 1.0.0}\n  - {name: a}\n  - {version: 1.0.0}\n  - {name: a, version: x}\n  - {name: ../../x, version: 1.0.0}\n  - {name: a, version: 2.0.0, type: odd}\n  - {name: a, version: v3, apiVersion: v9}\n  - {name: a, version: 1.0.0, maintainers: [null]}\n  b: null\n  c: []\n  d: [null]\n",
    );
    let index = parse(&text).unwrap();
    assert_eq!(versions(&index, "a"), ["v3", "1.0.0"]);
    assert_eq!(index.warnings.len(), 8, "{:#?}", index.warnings);
    for name in ["b", "c", "d"] {
        assert_eq!(index.get(name, "").unwrap_err(), IndexError::NoVersions);
    }
    assert_eq!(index.get("e", "").unwrap_err(), IndexError::NoName);
}

#[test]
fn versions_are_in_order_and_pre_releases_are_asked_for() {
    let text = with(
        "  a:\n  - {name: a, version: 1.9.0}\n  - {name: a, version: 1.10.0}\n  - {name: a, version: 2.0.0-rc.1}\n  - {name: a, version: 1.10.0+b}\n",
    );
    let index = parse(&text).unwrap();
    assert_eq!(versions(&index, "a"), ["2.0.0-rc.1", "1.10.0", "1.10.0+b", "1.9.0"]);
    for (version, expected, is_other) in [
        ("", "1.10.0", false),
        ("1.10.0+b", "1.10.0+b", false),
        ("1.9", "1.9.0", true),
        ("1.x", "1.10.0", false),
        (">0.0.0-0", "2.0.0-rc.1", false),
    ] {
        let found = index.get("a", version).unwrap();
        assert_eq!(
            (found.chart.version.as_str(), found.is_other),
            (expected, is_other),
            "{version}"
        );
    }
    assert_eq!(index.get("a", "=3").unwrap_err().to_string(), "no chart version found for a-=3");
}

#[test]
fn shapes_that_are_wrong_are_errors() {
    let data = "error unmarshaling JSON: while decoding JSON: ";
    for (text, expected) in [
        (String::new(), "empty index.yaml file"),
        ("entries: {}".into(), "no API version specified"),
        (
            "apiVersion: v1\nentries: {}\nodd: 1".into(),
            &format!("{data}json: unknown field \"odd\""),
        ),
        (
            with("  a: [{name: a, version: 1.0.0, odd: 1}]"),
            &format!("{data}json: unknown field \"odd\""),
        ),
        (
            with("  a: [{name: a, version: 1.0.0, dependencies: [{odd: 1}]}]"),
            &format!("{data}json: unknown field \"odd\""),
        ),
        (
            with("  a: []\n  a: []"),
            "error converting YAML to JSON: yaml: unmarshal errors:\n  line 4: key \"a\" already set in map",
        ),
        (
            with("  a: text"),
            "json: cannot unmarshal string into Go struct field IndexFile.entries of type repo.ChartVersions",
        ),
        (
            with("  a: {name: a}"),
            "json: cannot unmarshal object into Go struct field IndexFile.entries",
        ),
        (with("  a: [text]"), "json: cannot unmarshal string into Go struct field"),
        (with("  a: [{name: [a]}]"), "json: cannot unmarshal array into Go struct field"),
        (with("  a: [{name: a, version: 1.0.0, urls: text}]"), "json: cannot unmarshal string"),
        (with("  a: [{name: a, version: 1.0.0, urls: [{}]}]"), "json: cannot unmarshal object"),
        (
            with("  a: [{name: a, version: 1.0.0, created: yesterday}]"),
            "parsing time \"yesterday\"",
        ),
        (with("  a: [{name: a, version: 1.0.0, removed: 3}]"), "json: cannot unmarshal number"),
        (with("  - a"), "json: cannot unmarshal array into Go struct field IndexFile.entries"),
        (
            "- a".into(),
            &format!("{data}json: cannot unmarshal array into Go value of type repo.IndexFile"),
        ),
        (
            "text".into(),
            &format!("{data}json: cannot unmarshal string into Go value of type repo.IndexFile"),
        ),
        ("apiVersion: [v1]".into(), "json: cannot unmarshal array"),
        ("{".into(), "yaml: line"),
        ("a: &a [*a]".into(), "unknown field"),
        ("\u{1}".into(), "control characters are not allowed"),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    assert!(Index::parse(b"apiVersion: \xff", "here").is_err());
}

#[test]
fn json_is_read_with_less_care() {
    let index = parse(
        r#"{"apiVersion": "v1", "odd": 1, "entries": {"a": [{"name": "a", "version": "1.0.0", "odd": 1}]}}"#,
    );
    assert_eq!(versions(&index.unwrap(), "a"), ["1.0.0"]);
}

#[test]
fn aliases_are_under_a_budget() {
    let mut text =
        "apiVersion: v1\nannotations: &a0 {x: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}\n".to_owned();
    text += "entries:\n";
    for level in 1..40 {
        let below = format!("*a{}", level - 1);
        text += &format!("  a{level}: &a{level} [{below}, {below}, {below}]\n");
    }
    assert!(parse(&text).is_err());
    let deep = with(&format!("  a: {}", "[".repeat(100_000)));
    assert!(parse(&deep).is_err());
}

/// Rows of Helm's advisories: what stands in the index, what the error says, or `Ok` and how many
/// entries are left out.
#[test]
fn advisories_on_indexes() {
    let sound = "{name: a, version: 1.0.0}";
    for (id, text, expected) in [
        (
            "CVE-2020-15185",
            with(&format!("  a: [{sound}]\n  a: [{sound}]")),
            Err("already set in map"),
        ),
        (
            "CVE-2020-15185",
            with("  a: [{name: a, name: b, version: 1.0.0}]"),
            Err("already set in map"),
        ),
        (
            "CVE-2020-15185",
            format!("{}\nentries: {{}}", with(&format!("  a: [{sound}]"))),
            Err("already set in map"),
        ),
        ("CVE-2021-21303", with("  a: [{name: a, version: \"1.0.0\\u001b[31m\"}]"), Ok(1)),
        (
            "CVE-2021-21303",
            with("  \"a\\u001b]0;x\\u0007\": [{name: a, version: \"x\\nb\"}]"),
            Ok(1),
        ),
        ("CVE-2021-21303", with("  \"a\\u001b[31m\": [null]"), Ok(1)),
        ("CVE-2021-21303", with("  a: [{name: \"\\u0007\", version: 1.0.0}]"), Ok(1)),
        (
            "CVE-2021-21303",
            with("  a: [{name: a, version: 1.0.0, created: \"\\u001b[31m\"}]"),
            Err("parsing time"),
        ),
        (
            "CVE-2021-21303",
            with("  a: [{name: a, version: 1.0.0, \"odd\\u001b[31m\": 1}]"),
            Err("unknown field"),
        ),
        ("CVE-2022-23525", with("  a: [null]"), Ok(1)),
        ("CVE-2022-23525", with("  a: null"), Ok(0)),
        ("CVE-2022-23525", "apiVersion: v1\nentries: null".into(), Ok(0)),
        ("CVE-2024-26147", String::new(), Err("empty index.yaml file")),
        ("CVE-2024-26147", "# nothing".into(), Err("")),
        ("CVE-2024-26147", with("  a: [{}]"), Ok(1)),
        ("CVE-2025-55198", with("  a: [{name: [a]}]"), Err("cannot unmarshal array")),
        ("CVE-2025-55198", with("  a: {name: a}"), Err("cannot unmarshal object")),
        ("CVE-2025-55198", "- a".into(), Err("cannot unmarshal array")),
    ] {
        let said = match (parse(&text), expected) {
            (Ok(index), Ok(skipped)) => {
                assert_eq!(index.warnings.len(), skipped, "{id}: {text:?}: {:?}", index.warnings);
                index.warnings.join("")
            }
            (Err(error), Err(expected)) => {
                let error = error.to_string();
                assert!(error.contains(expected), "{id}: {text:?}: {error}");
                error
            }
            (found, _) => panic!("{id}: {text:?}: {found:?}"),
        };
        let odd = |c: char| c.is_control() && c != '\n';
        assert!(!said.contains(odd), "{id}: {text:?}: control characters are shown: {said:?}");
    }
}

/// Not even where a server answers with an index that names an address like that.
#[test]
fn cve_2021_21303_addresses_and_digests_with_control_characters_are_left_out() {
    for field in ["urls: [\"x\\u001b[31m.tgz\"]", "digest: \"\\u001b[31m\""] {
        let text = with(&format!("  a: [{{name: a, version: 1.0.0, {field}}}]"));
        let index = parse(&text).unwrap();
        assert_eq!(versions(&index, "a"), [""; 0], "{field}");
        assert_eq!(index.warnings.len(), 1, "{field}");
    }
}

#[test]
fn warnings_do_not_flood() {
    let text = with(&format!("  a:\n{}", "  - null\n".repeat(10_000)));
    let index = parse(&text).unwrap();
    assert!(index.warnings.len() < 30);
    assert!(index.warnings.last().unwrap().contains("9980 more"), "{:?}", index.warnings.last());
}
