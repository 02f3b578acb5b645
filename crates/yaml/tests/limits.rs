//! What the table cannot show: exact numbers, types other than plain values, limits.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use catamaran_yaml::{ErrorKind, MAX_DEPTH, Numbers, documents, from_str, to_string};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[test]
fn exact_numbers_keep_their_digits_and_float64_loses_them() {
    let cases = [
        ("9007199254740993", json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0)),
        ("18446744073709551615", json!(u64::MAX), json!(18_446_744_073_709_552_000.0)),
        ("1.0", json!(1), json!(1.0)),
        ("1e3", json!(1000), json!(1000.0)),
        ("1.5", json!(1.5), json!(1.5)),
        ("0x10", json!(16), json!(16.0)),
    ];
    for (text, exact, float) in cases {
        assert_eq!(from_str::<Value>(text, Numbers::Exact).unwrap(), exact, "{text}");
        assert_eq!(from_str::<Value>(text, Numbers::Float64).unwrap(), float, "{text}");
    }
}

#[derive(Debug, PartialEq, Deserialize, Serialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    app_version: String,
    name: String,
    keywords: Vec<String>,
    count: u32,
    deprecated: bool,
    annotations: BTreeMap<String, String>,
    icon: Option<String>,
}

#[test]
fn numbers_become_text_where_text_is_wanted_and_null_is_the_zero_value() {
    let text = "appVersion: 1.10\nname: 1e3\nkeywords: [yes, 3, x]\ncount: 2.0\ndeprecated: on\nannotations: {a: 1}\n";
    let metadata: Metadata = from_str(text, Numbers::Float64).unwrap();
    assert_eq!(metadata.app_version, "1.1");
    assert_eq!(metadata.name, "1000");
    assert_eq!(metadata.keywords, ["true", "3", "x"]);
    assert_eq!((metadata.count, metadata.deprecated), (2, true));
    assert_eq!(metadata.annotations["a"], "1");
    let nulls = "appVersion:\nname: ~\nkeywords:\ncount:\ndeprecated: null\nannotations:\nicon:\n";
    assert_eq!(from_str::<Metadata>(nulls, Numbers::Exact).unwrap(), Metadata::default());
}

#[test]
fn an_error_has_the_true_place_besides_gos_text() {
    let error = from_str::<Value>("a: 1\nb: c: d\n", Numbers::Exact).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context"
    );
    assert_eq!((error.kind(), error.line(), error.column()), (ErrorKind::Syntax, 2, 5));
    let error = from_str::<Metadata>("name: x\ncount: many\n", Numbers::Exact).unwrap_err();
    assert_eq!((error.kind(), error.line()), (ErrorKind::Data, 2), "{error}");
}

#[test]
fn documents_come_one_after_the_other_and_end_at_an_error() {
    let texts: Vec<_> = documents("a: 1\n---\n# nothing\n---\n- b\n--- [\n", Numbers::Exact)
        .map(|document| document.and_then(Value::deserialize).map_err(|error| error.line()))
        .collect();
    assert_eq!(texts, [Ok(json!({"a": 1})), Ok(Value::Null), Ok(json!(["b"])), Err(7)]);
    assert_eq!(documents("", Numbers::Exact).count(), 0);
}

#[test]
fn laughing_aliases_are_refused() {
    let mut text = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (of, name) in ('a'..'i').zip('b'..='i') {
        let line = format!(
            "{name}: &{name} [*{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}]\n"
        );
        text.push_str(&line);
    }
    let error = from_str::<Value>(&text, Numbers::Exact).unwrap_err();
    assert_eq!(error.message(), "yaml: document contains excessive aliasing");
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
    assert!(from_str::<Value>(&long, Numbers::Exact).is_err());
    let merges = format!("a: &a {{{}}}\nb:\n{}", "k: v, ".repeat(10), "  <<: *a\n".repeat(100));
    assert!(from_str::<Value>(&merges, Numbers::Exact).is_ok());
}

#[test]
fn deep_nesting_is_an_error_on_the_way_in_and_out() {
    let deep = MAX_DEPTH - 1;
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")] {
        let text = |depth: usize| open.repeat(depth) + "x" + &close.repeat(depth);
        for depth in [MAX_DEPTH + 1, 10_001, 200_000] {
            assert!(from_str::<Value>(&text(depth), Numbers::Exact).is_err(), "{open}{depth}");
        }
        if open != "? " {
            let value: Value = from_str(&text(deep), Numbers::Exact).unwrap();
            assert!(to_string(&value).is_ok());
        }
    }
    let nested = (0..=MAX_DEPTH).fold(Value::Null, |inner, _| json!([inner]));
    assert!(to_string(&nested).is_err());
}

struct Pairs<'a>(&'a [(&'a str, usize)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[test]
fn keys_in_any_order_and_odd_ones_print_without_panic() {
    let keys = [
        "0a",
        "00",
        "0",
        "a",
        "a-1",
        "a1",
        "é",
        "",
        "1é",
        "01",
        "1-",
        "-",
        "9223372036854775808",
        "0-",
        "a01",
    ];
    for rotation in 0..keys.len() {
        let rotated = keys.iter().cycle().skip(rotation).take(keys.len());
        let pairs: Vec<(&str, usize)> = rotated.map(|key| (*key, rotation)).collect();
        let text = to_string(&Pairs(&pairs)).unwrap();
        assert_eq!(text.lines().count(), keys.len());
    }
}

#[test]
fn an_error_that_shows_a_value_shows_so_much_of_it_however_often_aliases_repeat_it() {
    let mut text = "l0: &a0 {x: y}\n".to_owned();
    for level in 1..9 {
        let aliases = ["a", "b", "c", "d", "e", "f"].map(|key| format!("{key}: *a{}", level - 1));
        writeln!(text, "l{level}: &a{level} {{{}}}", aliases.join(", ")).unwrap();
    }
    text.push_str("bad: {~: *a8}\n");
    let itself = "a: &a {~: *a, b: *a, c: *a, d: *a, e: *a, f: *a, g: *a}\n";
    for text in [text.as_str(), itself] {
        let error = from_str::<Value>(text, Numbers::Exact).unwrap_err().to_string();
        assert!(error.len() < 64 << 10, "{} bytes", error.len());
    }
}
