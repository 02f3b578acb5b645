//! Hostile Chart.yaml: the rows of Helm's advisories.

use crate::case::{Case, End, Input, file};

fn chart(name: &str, text: &str, end: End) -> Case {
    let template = file("templates/a.yaml", "a: {{ .Chart.Name | quote }}");
    let input = Input::Folder(vec![file("Chart.yaml", text), template]);
    Case { name: name.to_owned(), input, end }
}

/// A sound Chart.yaml and more.
fn with(name: &str, rest: &str, end: End) -> Case {
    chart(name, &format!("apiVersion: v2\nname: c\nversion: 1.0.0\n{rest}\n"), end)
}

fn named(name: &str, end: End) -> Case {
    let text = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    chart(&format!("CVE-2024-25620, CVE-2026-35206: the name {name}"), &text, end)
}

fn version(version: &str, end: End) -> Case {
    let text = format!("apiVersion: v2\nname: c\nversion: {version}\n");
    chart(&format!("CVE-2021-21303: the version {version}"), &text, end)
}

pub fn cases() -> Vec<Case> {
    [names_and_versions(), wrong_types(), dependencies()].into_iter().flatten().collect()
}

fn names_and_versions() -> Vec<Case> {
    vec![
        named(".", End::Error("is not allowed")),
        named("..", End::Error("is not allowed")),
        named("../../x", End::Error("is invalid")),
        named("a/b", End::Error("is invalid")),
        named("\"\"", End::Error("chart.metadata.name is required")),
        named("[a]", End::Error("cannot unmarshal array")),
        named("{a: b}", End::Error("cannot unmarshal object")),
        chart(
            "CVE-2021-21303: a name with control characters",
            "apiVersion: v2\nname: \"c\\u0000\\u001b[31m\"\nversion: 1.0.0\n",
            End::Prints("a: \"c[31m\""),
        ),
        with(
            "CVE-2021-21303: control characters",
            "description: \"\\u001b]0;x\\u0007\"\nkeywords: [\"\\u0000\"]\nmaintainers: [{name: \"\\u0008\"}]",
            End::Prints("a: \"c\""),
        ),
        version("1.0.0.0", End::Error("is invalid")),
        version("not", End::Error("is invalid")),
        version("\"1.0.0\\u0007\"", End::Error("is invalid")),
        version("99999999999999999999.0.0", End::Error("is invalid")),
        version(&"1".repeat(1_000_000), End::Error("")),
        version("[1]", End::Error("cannot unmarshal array")),
    ]
}

fn wrong_types() -> Vec<Case> {
    let mut cases = vec![
        chart("a list", "- a\n", End::Error("cannot unmarshal array")),
        chart("a text", "a", End::Error("cannot unmarshal string")),
        chart("nothing", "", End::Error("")),
        chart("zeros", "\0\0\0\0", End::Error("")),
        with(
            "dependencies that are a text",
            "dependencies: x",
            End::Error("cannot unmarshal string"),
        ),
        with(
            "a dependency that is null",
            "dependencies: [null]",
            End::Error("must not contain empty or null nodes"),
        ),
        with(
            "a dependency that is a list",
            "dependencies: [[]]",
            End::Error("cannot unmarshal array"),
        ),
        with(
            "maintainers with a null",
            "maintainers: [~]",
            End::Error("must not contain empty or null nodes"),
        ),
        with(
            "annotations that are a list",
            "annotations: [a]",
            End::Error("cannot unmarshal array"),
        ),
        with(
            "annotations of maps",
            "annotations: {a: {b: c}}",
            End::Error("cannot unmarshal object"),
        ),
        with("keywords that are a map", "keywords: {a: b}", End::Error("cannot unmarshal object")),
        with("an unknown type", "type: [application]", End::Error("cannot unmarshal array")),
        with(
            "a huge version of Kubernetes",
            &format!("kubeVersion: \"{}\"", ">=1 ".repeat(100_000)),
            End::Error(""),
        ),
    ];
    for case in &mut cases {
        case.name.insert_str(0, "CVE-2025-55198: ");
    }
    cases
}

/// Aliases, names and numbers of dependencies.
fn dependencies() -> Vec<Case> {
    vec![
        with(
            "CVE-2020-15184: an alias that is a path",
            "dependencies: [{name: a, version: 1.0.0, alias: ../../x}]",
            End::Error("disallowed characters in the alias"),
        ),
        with(
            "CVE-2020-15184: an alias with control characters",
            "dependencies: [{name: a, version: 1.0.0, alias: \"x\\u0007\"}]",
            End::Error("disallowed characters in the alias"),
        ),
        with(
            "CVE-2020-15184: an alias of a dot",
            "dependencies: [{name: a, version: 1.0.0, alias: .}]",
            End::Error("disallowed characters in the alias"),
        ),
        with(
            "two dependencies of one name",
            "dependencies: [{name: a, version: 1.0.0}, {name: a, version: 1.0.0}]",
            End::Error("more than one dependency with name or alias"),
        ),
        with(
            "CVE-2024-25620: a dependency with the name of a path",
            "dependencies: [{name: ../../x, version: 1.0.0}]",
            End::Error(""),
        ),
        with("a key twice", "name: d", End::Prints("a: \"d\"")),
        with(
            "very many dependencies",
            &format!(
                "dependencies: [{}]",
                (0..100_000).map(|n| format!("{{name: a{n}}},")).collect::<String>()
            ),
            End::Error(""),
        ),
    ]
}
