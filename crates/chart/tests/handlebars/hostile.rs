//! What must end as an error: in time, within the budget, on a small stack.

use catamaran_chart::{Budget, Profile};

use super::{CHART, render_all};

/// Names and texts.
type Files = Vec<(String, String)>;

/// Renders what must end as an error, on a stack of tokio's size.
fn hostile(files: Files, budget: Budget) -> String {
    let render = move || {
        let mut all = vec![("Chart.yaml", CHART)];
        all.extend(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        render_all(&all, budget).map(|_| ()).unwrap_err().text(Profile::Helm43)
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(render).unwrap();
    thread.join().unwrap()
}

fn one(text: impl Into<String>) -> Files {
    vec![("templates/a.yaml.hbs".into(), text.into())]
}

fn with(text: &str, others: &[(&str, &str)]) -> Files {
    let others = others.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    one(text).into_iter().chain(others).collect()
}

/// A name, a chart, and what its error says.
type Case = (&'static str, Files, String);

const NESTED: &str = "exceeded the limit of nested blocks, partials and includes of Handlebars";

#[track_caller]
fn all(cases: Vec<Case>) {
    let small = Budget { steps: 100_000, output: 1 << 20, memory: 16 << 20, ..Budget::default() };
    for (what, files, expected) in cases {
        let error = hostile(files, small);
        assert!(error.contains(&expected), "{what}: {error}");
    }
}

#[test]
fn templates_that_run_themselves_end() {
    all(vec![
        (
            "a partial in itself",
            with("{{> p}}", &[("templates/_p.hbs", "\n {{> p}}")]),
            format!("c/templates/_p.hbs:2:5: {NESTED}"),
        ),
        (
            "a partial in itself, within blocks",
            with(
                "{{> p}}",
                &[(
                    "templates/_p.hbs",
                    &format!(
                        "{}{{{{> p}}}}{}",
                        "{{#with this}}".repeat(20),
                        "{{/with}}".repeat(20)
                    ),
                )],
            ),
            NESTED.into(),
        ),
        (
            "a partial that includes itself in parentheses",
            with(
                "{{> p}}",
                &[(
                    "templates/_p.hbs",
                    &format!(
                        "{{{{upper {}(include \"p\" this){}}}}}",
                        "(upper ".repeat(20),
                        ")".repeat(20)
                    ),
                )],
            ),
            NESTED.into(),
        ),
        (
            "Go and Handlebars in turn",
            with(
                "{{include \"g\" this}}",
                &[
                    ("templates/_g.tpl", "{{define \"g\"}}{{include \"p\" .}}{{end}}"),
                    ("templates/_p.hbs", "{{include \"g\" this}}"),
                ],
            ),
            NESTED.into(),
        ),
        (
            "Go and Handlebars in turn, through tpl",
            with(
                "{{include \"p\" this}}",
                &[(
                    "templates/_p.hbs",
                    "{{#each (list 1)}}{{tpl \"{{ include `p` . }}\" this}}{{/each}}",
                )],
            ),
            NESTED.into(),
        ),
        (
            "a partial block in itself",
            one("{{#*inline \"x\"}}{{#> x}}{{> @partial-block}}{{/x}}{{/inline}}{{#> x}}{{/x}}"),
            NESTED.into(),
        ),
    ]);
}

#[test]
fn templates_that_make_too_much_end() {
    all(vec![
        (
            "loops in loops",
            one(format!("{}{}", "{{#each (until 1000)}}".repeat(6), "{{/each}}".repeat(6))),
            "exceeded the limit of 100000 steps".into(),
        ),
        (
            "loops of text",
            one(format!(
                "{}{}{}",
                "{{#each (until 1000)}}".repeat(3),
                "x".repeat(100_000),
                "{{/each}}".repeat(3)
            )),
            "exceeded the output limit of 1048576 bytes".into(),
        ),
        (
            "loops of text into a partial block",
            one(format!(
                "{{{{#*inline \"l\"}}}}{{{{/inline}}}}{{{{#> l}}}}{}{}{}{{{{/l}}}}",
                "{{#each (until 1000)}}".repeat(3),
                "x".repeat(100_000),
                "{{/each}}".repeat(3)
            )),
            "exceeded the output limit of 1048576 bytes".into(),
        ),
        (
            "loops of text into a function",
            one(format!(
                "{{{{#upper}}}}{}{}{}{{{{/upper}}}}",
                "{{#each (until 1000)}}".repeat(3),
                "x".repeat(100_000),
                "{{/each}}".repeat(3)
            )),
            "exceeded the output limit of 1048576 bytes".into(),
        ),
        (
            "partial blocks that double",
            one(format!(
                "{{{{#*inline \"d\"}}}}{{{{> @partial-block}}}}{{{{> @partial-block}}}}{{{{/inline}}}}{}0123456789{}",
                "{{#> d}}".repeat(30),
                "{{/d}}".repeat(30)
            )),
            "exceeded the".into(),
        ),
        (
            "a function that makes much",
            one("{{#with (until 1000000000)}}{{/with}}"),
            "exceeded the".into(),
        ),
    ]);
}

#[test]
fn sources_that_nest_too_deep_or_are_too_large_are_errors() {
    let deep_block = |n: usize| format!("{}x{}", "{{#if a}}".repeat(n), "{{/if}}".repeat(n));
    let deep_call = |n: usize| format!("{{{{{}x{}}}}}", "(upper ".repeat(n), ")".repeat(n));
    all(vec![
        ("blocks in blocks", one(deep_block(10_000)), "blocks nest deeper than 30".into()),
        (
            "parentheses in parentheses",
            one(deep_call(10_000)),
            "brackets nest deeper than 30".into(),
        ),
        (
            "lists in lists",
            one(format!("{{{{upper {}}}}}", "[".repeat(10_000))),
            "brackets nest deeper than 30".into(),
        ),
        (
            "objects in objects",
            one(format!("{{{{upper {}}}}}", "{\"a\":".repeat(10_000))),
            "brackets nest deeper than 30".into(),
        ),
        (
            "a long else chain",
            one(format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if a}}".repeat(10_000))),
            "blocks nest deeper than 30".into(),
        ),
        (
            "as many tags as may be, and an error at the end",
            one(format!("{}{{{{fail \"end\"}}}}", "{{!a}}\n".repeat(4_000))),
            "a.yaml.hbs:4001:2): end".into(),
        ),
        ("very many tags", one("{{a}}".repeat(400_000)), "the template is too large".into()),
        (
            "partial blocks in partial blocks",
            one("{{#> a}}".repeat(10_000)),
            "blocks nest deeper than 30".into(),
        ),
        ("open strings", one("{{upper \"".repeat(10_000)), "parse error".into()),
    ]);
}

#[test]
fn maps_in_themselves_are_errors() {
    all(vec![
        (
            "a map in itself, deep down",
            with(
                "{{#with (set Values \"me\" Values)}}{{/with}}{{> p n=37}}",
                &[(
                    "templates/_p.hbs",
                    "{{#if (lt n 50)}}{{> p n=(int (add n 1))}}{{else}}{{toJson Values}}{{toYaml Values}}{{printf \"%v\" Values}}{{/if}}",
                )],
            ),
            "nested deeper than".into(),
        ),
        (
            "a map in itself",
            one("{{#with (set Values \"me\" Values)}}{{/with}}{{Values}}"),
            "nested deeper than 400 levels".into(),
        ),
    ]);
}
