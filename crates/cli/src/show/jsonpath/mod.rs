//! Kubernetes' JSONPath templates: text, and paths in braces.
//!
//! `{.a.b}`, `{.a['b']}`, `{.list[0:2]}`, `{.list[*].name}`, `{..name}`, `{.list[?(@.x=="y")].z}`,
//! `{range .list[*]}{.name}{"\n"}{end}`. Values of maps come in the order of their keys, where Go
//! takes any.

mod parse;

use std::fmt::Write as _;

use catamaran_chart::values::{go_float, json_float};
use serde_json::Value;

/// A parsed template.
#[derive(Debug)]
pub(super) struct Template(Vec<Node>);

/// What stands in a template.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String),
    /// What is in one pair of braces, or one operand of a filter.
    Steps(Vec<Step>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice([Bound; 3]),
    Union(Vec<Vec<Step>>),
    Filter {
        left: Vec<Step>,
        operator: String,
        right: Vec<Step>,
    },
    Literal(Value),
    /// `range`, `end`, or what is neither.
    Word(String),
}

/// One number of `[a:b:c]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bound {
    given: Option<i64>,
    /// The end of a single index: the number after it.
    derived: bool,
}

/// What kubectl says of a template or a path that leads nowhere.
type Fault = String;

/// How many values one `..` may find, each counted with all that is in it: some 30 MiB of them.
const MAX_FOUND: usize = 500_000;

/// How deep ranges and paths may nest.
const MAX_DEPTH: usize = 100;

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        parse::template(text, 0).map(Self)
    }

    /// All that is found. Nothing at all if a path leads nowhere, and no word about it, as in Helm.
    pub(super) fn print(&self, data: &Value) -> String {
        let mut text = String::new();
        let done = run(&self.0, data, 0, false, &mut |results| print_results(&results, &mut text));
        if done.is_ok() { text } else { String::new() }
    }
}

/// Runs nodes up to the end of the range they are in; returns how many there were, and nothing where
/// the range has no end: then what it holds is run once more behind it, as Go does.
fn run(
    nodes: &[Node],
    data: &Value,
    depth: usize,
    in_range: bool,
    print: &mut dyn FnMut(Vec<Value>),
) -> Result<Option<usize>, Fault> {
    if depth > MAX_DEPTH {
        return Err("too deep".to_owned());
    }
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        at += 1;
        let steps = match node {
            Node::Text(text) => {
                print(vec![text.clone().into()]);
                continue;
            }
            Node::Steps(steps) => steps,
        };
        match steps.first() {
            Some(Step::Word(word)) if word == "end" => {
                if in_range {
                    return Ok(Some(at));
                }
                return Err("not in range, nothing to end".to_owned());
            }
            Some(Step::Word(word)) if word == "range" => {
                let items = walk(vec![data.clone()], steps.get(1..).unwrap_or_default(), depth)?;
                let inner = nodes.get(at..).unwrap_or_default();
                let mut length = if items.is_empty() { run_nothing(inner) } else { None };
                for item in &items {
                    length = run(inner, item, depth + 1, true, print)?;
                }
                at += length.unwrap_or_default();
            }
            _ => print(walk(vec![data.clone()], steps, depth)?),
        }
    }
    Ok(None)
}

/// The length of a range that is run for no item.
fn run_nothing(nodes: &[Node]) -> Option<usize> {
    let mut open = 1;
    for (at, node) in nodes.iter().enumerate() {
        if let Node::Steps(steps) = node
            && let Some(Step::Word(word)) = steps.first()
        {
            match word.as_str() {
                "range" => open += 1,
                "end" => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Some(at + 1);
            }
        }
    }
    None
}

fn walk(mut found: Vec<Value>, steps: &[Step], depth: usize) -> Result<Vec<Value>, Fault> {
    for step in steps {
        found = match step {
            Step::Field(name) => field(&found, name)?,
            Step::Wildcard => found.iter().flat_map(children).collect(),
            Step::Recursive => descend(&found)?,
            Step::Slice(bounds) => slice(&found, bounds)?,
            Step::Union(paths) => {
                let all = paths.iter().map(|path| walk(found.clone(), path, depth + 1));
                all.collect::<Result<Vec<_>, _>>()?.concat()
            }
            Step::Filter { left, operator, right } => {
                filter(&found, left, operator, right, depth + 1)?
            }
            Step::Literal(value) => found.iter().map(|_| value.clone()).collect(),
            Step::Word(word) => return Err(format!("unrecognized identifier {word}")),
        };
    }
    Ok(found)
}

fn field(found: &[Value], name: &str) -> Result<Vec<Value>, Fault> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    // `{.}` names a field without a name, and means the value itself.
    let fields: Vec<Value> = found.iter().filter_map(|value| value.get(name)).cloned().collect();
    if fields.is_empty() { Err(format!("{name} is not found")) } else { Ok(fields) }
}

fn children(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(map) => map.values().cloned().collect(),
        Value::Array(items) => items.clone(),
        // Go looks into the bytes of a text.
        Value::String(text) => text.bytes().map(Value::from).collect(),
        _ => Vec::new(),
    }
}

/// The values and everything in them that has something in it.
fn descend(found: &[Value]) -> Result<Vec<Value>, Fault> {
    let (mut all, mut left) = (Vec::new(), MAX_FOUND);
    found.iter().try_for_each(|value| descend_into(value, &mut all, &mut left))?;
    Ok(all)
}

fn descend_into(value: &Value, all: &mut Vec<Value>, left: &mut usize) -> Result<(), Fault> {
    *left = left.checked_sub(size(value)).ok_or_else(|| "too much is found".to_owned())?;
    let inner = children(value);
    if inner.is_empty() {
        return Ok(());
    }
    all.push(value.clone());
    inner.iter().try_for_each(|value| descend_into(value, all, left))
}

/// How many values there are in this one, itself among them.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(size).sum(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::String(text) => text.len(),
        _ => 0,
    }
}

fn slice(found: &[Value], bounds: &[Bound; 3]) -> Result<Vec<Value>, Fault> {
    let mut taken = Vec::new();
    for value in found.iter().filter(|value| !value.is_null()) {
        let Value::Array(items) = value else {
            return Err("not an array or slice".to_owned());
        };
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let [first, last, step] = bounds;
        let mut start = first.given.unwrap_or(0);
        if start < 0 {
            start += length;
        }
        let mut end = last.given.unwrap_or(length);
        if end < 0 || (end == 0 && last.derived) {
            end += length;
        }
        if start == end {
            return Ok(taken);
        }
        if start < 0 || start >= length || end < 0 || end > length || start > end {
            return Err("array index out of bounds".to_owned());
        }
        let step = match step.given {
            Some(step) if step <= 0 => return Err("step must be > 0".to_owned()),
            Some(step) => usize::try_from(step).unwrap_or(usize::MAX),
            None => 1,
        };
        let range = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
        taken.extend(items.get(range).unwrap_or_default().iter().step_by(step).cloned());
    }
    Ok(taken)
}

fn filter(
    found: &[Value],
    left: &[Step],
    operator: &str,
    right: &[Step],
    depth: usize,
) -> Result<Vec<Value>, Fault> {
    let mut kept = Vec::new();
    for value in found {
        let Value::Array(items) = value else {
            return Err("not an array or slice and cannot be filtered".to_owned());
        };
        for item in items {
            let lefts = walk(vec![item.clone()], left, depth);
            if operator == "exists" {
                if lefts.is_ok_and(|lefts| !lefts.is_empty()) {
                    kept.push(item.clone());
                }
                continue;
            }
            let Some(left) = only(lefts?)? else { continue };
            let Some(right) = only(walk(vec![item.clone()], right, depth)?)? else { continue };
            if compare(&left, operator, &right)? {
                kept.push(item.clone());
            }
        }
    }
    Ok(kept)
}

fn only(mut values: Vec<Value>) -> Result<Option<Value>, Fault> {
    if values.len() > 1 {
        return Err("can only compare one element at a time".to_owned());
    }
    Ok(values.pop())
}

/// As Go compares: a whole number of the template is no float of the values.
fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, Fault> {
    let (equal, less) = match (left, right) {
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, "==" | "!=") => (a == b, false),
        (Value::String(a), Value::String(b)) => (a == b, a < b),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => (a == b, a < b),
            (None, None) => (a.as_f64() == b.as_f64(), a.as_f64() < b.as_f64()),
            _ => return Err("incompatible types for comparison".to_owned()),
        },
        _ => return Err("invalid type for comparison".to_owned()),
    };
    match operator {
        "==" => Ok(equal),
        "!=" => Ok(!equal),
        "<" => Ok(less),
        "<=" => Ok(less || equal),
        ">" => Ok(!less && !equal),
        ">=" => Ok(!less),
        other => Err(format!("unrecognized filter operator {other}")),
    }
}

fn print_results(results: &[Value], text: &mut String) {
    for (at, value) in results.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        match value {
            Value::String(plain) => text.push_str(plain),
            Value::Number(number) if number.is_f64() => {
                text.push_str(&go_float(number.as_f64().unwrap_or_default()));
            }
            other => print_json(other, text),
        }
    }
}

/// JSON as Go prints it.
fn print_json(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                print_json(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (at, (key, item)) in entries.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                print_text(key, text);
                text.push(':');
                print_json(item, text);
            }
            text.push('}');
        }
        Value::String(plain) => print_text(plain, text),
        Value::Number(number) if number.is_f64() => {
            text.push_str(&json_float(number.as_f64().unwrap_or_default()));
        }
        other => {
            // Writing to a text does not fail.
            let _ = write!(text, "{other}");
        }
    }
}

fn print_text(plain: &str, text: &mut String) {
    for c in Value::from(plain).to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(template: &str) -> String {
        let data = json!({
            "a": {"b": "x", "c.d": 1.5, "n": null, "t": "<&>"},
            "list": [{"name": "one", "port": 80.0}, {"name": "two"}, {"name": "three"}],
            "big": 1_000_000.0,
        });
        Template::parse(template).unwrap().print(&data)
    }

    /// Wanted: what the real helm prints of the same values.
    #[test]
    fn paths_find_what_kubectl_finds() {
        for (template, wanted) in [
            ("plain", "plain"),
            ("{.a.b}", "x"),
            ("b is {.a.b}!", "b is x!"),
            ("{$.a.b} {@.a.b}", "x x"),
            ("{.a['b']}{.a.c\\.d}", "x1.5"),
            ("{.a.n}", "null"),
            (
                "{.big} {.a}",
                "1e+06 {\"b\":\"x\",\"c.d\":1.5,\"n\":null,\"t\":\"\\u003c\\u0026\\u003e\"}",
            ),
            ("{.list[*].name}", "one two three"),
            ("{.list[0].name} {.list[-1].name}", "one three"),
            ("{.list[0:2].name} {.list[::2].name}", "one two one three"),
            ("{.list[0,2].name}", "one three"),
            ("{.list[?(@.name==\"two\")].name}", "two"),
            ("{.list[?(@.port)].name}", "one"),
            ("{..name}", "one two three"),
            ("{range .list[*]}{.name}{\"\\n\"}{end}.", "one\ntwo\nthree\n."),
            ("{range .list[5:5]}{.name}{end}done", "done"),
            ("{range .list[*]}{.name}", ""),
            ("{range .list[*]}x", "xxxx"),
            ("{.missing}", ""),
            ("{.a.b}{.missing}", ""),
            ("{.list[9]}", ""),
            ("{end}", ""),
        ] {
            assert_eq!(found(template), wanted, "{template}");
        }
    }

    #[test]
    fn descents_into_descents_end() {
        let deep = (0..300).fold(json!("x"), |inner, _| json!({ "a": inner }));
        assert_eq!(Template::parse("{..a..a..a..a}").unwrap().print(&deep), "");
        assert_ne!(Template::parse("{..a}").unwrap().print(&deep), "");
    }

    #[test]
    fn what_does_not_parse_is_told() {
        for (template, wanted) in [
            ("{.a", "unclosed action"),
            ("{.a[}", "unterminated array"),
            ("{.a[x]}", "invalid array index x"),
            ("{%}", "unrecognized character in action: U+0025 '%'"),
            ("{.a[?(@.b]}", "unterminated filter"),
        ] {
            assert_eq!(Template::parse(template).unwrap_err(), wanted, "{template}");
        }
    }
}
