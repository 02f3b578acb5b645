//! Hostile YAML: in values.yaml, Chart.yaml, templates and what they print.

use crate::case::{Case, End, Input, chart_yaml, file, folder, template};

/// Nine levels of nine aliases each.
fn laughs() -> String {
    let mut text = String::from("a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (before, name) in ('a'..'i').zip('b'..='i') {
        let all = format!("*{before}, ").repeat(9);
        text.push_str(&format!("{name}: &{name} [{}]\n", all.trim_end_matches(", ")));
    }
    text
}

/// A text that is repeated by aliases, without nesting.
fn copies() -> String {
    format!("a: &a {}\nb: [{}0]\n", "x".repeat(100_000), "*a, ".repeat(100_000))
}

fn merges() -> String {
    let mut text = String::from("m0: &m0 {a: 1}\n");
    for n in 0..60 {
        text.push_str(&format!("m{}: &m{} {{<<: [*m{n}, *m{n}], k{n}: *m{n}}}\n", n + 1, n + 1));
    }
    text
}

pub fn cases() -> Vec<Case> {
    const ALIASES: End = End::Error("document contains excessive aliasing");
    let values =
        |name: &str, text: String, end: End| folder(name, vec![file("values.yaml", text)], end);
    let metadata = |name: &str, text: &str, end: End| {
        let content = [chart_yaml().1, text.as_bytes().to_vec()].concat();
        Case { name: name.to_owned(), input: Input::Folder(vec![file("Chart.yaml", content)]), end }
    };
    vec![
        values("a billion laughs in values", laughs(), ALIASES),
        values("copies in values", copies(), ALIASES),
        values("merges of merges in values", merges(), End::Error("")),
        metadata("a billion laughs in Chart.yaml", &laughs(), ALIASES),
        template("a billion laughs in a manifest", laughs(), ALIASES),
        template("copies in a manifest", copies(), ALIASES),
        template(
            "a billion laughs for fromYaml",
            format!("{{{{ $x := fromYaml {:?} }}}}a: {{{{ $x.Error | quote }}}}", laughs()),
            End::Prints("excessive aliasing"),
        ),
        values("an alias of itself", "a: &a [*a]".into(), End::Error("contains itself")),
        values(
            "maps and maps in values",
            "- {a: {}}\n".repeat(450_000),
            End::Error("memory limit"),
        ),
        values(
            "maps in a map of values",
            (0..300_000).map(|n| format!("k{n}: {{a: 1}}\n")).collect(),
            End::Error("memory limit"),
        ),
        values(
            "lists and lists in values",
            format!("a: [{}]", "[],".repeat(1_500_000)),
            End::Error("memory limit"),
        ),
        values(
            "many small texts in values",
            format!("a: [{}]", "b,".repeat(2_000_000)),
            End::Error("memory limit"),
        ),
        values(
            "many documents in values",
            "a: 1\n---\n".repeat(500_000),
            End::Error("more than 1000 documents"),
        ),
        values("one long key", format!("{}: 1", "k".repeat(4_000_000)), End::Somehow),
        values("a huge integer", format!("a: {}", "9".repeat(4_000_000)), End::Somehow),
        values("a number with a huge exponent", "a: 1e999999999999999999999".into(), End::Somehow),
        values("an endless number", "a: .inf".into(), End::Error("")),
        values("no UTF-8", "a: 1".into(), End::Somehow),
        template(
            "maps and maps in a manifest",
            "{{ range until 150000 }}- {a: {}}\n{{ end }}",
            End::Error(""),
        ),
        template(
            "a manifest of anchors",
            (0..100_000).map(|n| format!("- &a{n} x\n")).collect::<String>(),
            End::Somehow,
        ),
        template("a manifest of tags", "%TAG ! tag:x,2000:\n".repeat(10_000), End::Error("")),
        template("a manifest of question marks", "? ".repeat(100_000), End::Error("")),
        template("an unclosed quote", format!("a: \"{}", "x\n".repeat(1_000_000)), End::Error("")),
        template("endless indentation", format!("a:\n{}b: 1", " ".repeat(4_000_000)), End::Somehow),
    ]
}
