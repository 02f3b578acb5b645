//! Every function is a helper and a subexpression: the examples of the reference, in Handlebars.

use catamaran_chart::reference::functions;

use super::{CHART, notes};

/// Examples that no single tag of Handlebars says (definitions, variables, fields of a call) are few;
/// twins.rs has some of them in blocks.
const LEFT_OUT: usize = 25;

/// A tag of Go in Handlebars; nothing if it needs more than functions.
fn translate(template: &str) -> Option<String> {
    let mut made = String::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once("{{") {
        made.push_str(text);
        let end = end_of_tag(after)?;
        let mut tokens = tokens(after.get(..end)?)?;
        tokens.reverse();
        let value = pipeline(&mut tokens)?;
        if !tokens.is_empty() {
            return None;
        }
        made.extend(["{{", &value, "}}"]);
        rest = after.get(end + 2..)?;
    }
    made.push_str(rest);
    Some(made)
}

fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open && !escaped => quote = None,
            None if c == '"' || c == '`' => quote = Some(c),
            None if text[at..].starts_with("}}") => return Some(at),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

fn tokens(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim();
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '(' | ')' | '|' => 1,
            '`' => rest[1..].find('`')? + 2,
            '"' => {
                let mut escaped = false;
                let end = |c: char| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                };
                rest[1..].find(end)? + 2
            }
            _ => rest.find([' ', '(', ')', '|']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(len);
        tokens.push(token.to_owned());
        if after.starts_with('.') {
            return None;
        }
        rest = after.trim_start();
    }
    Some(tokens)
}

fn is_function(name: &str) -> bool {
    functions().any(|item| item.func.name() == name)
}

/// Tokens come from the end of the list. Gives `f a b`, or a single operand.
fn pipeline(tokens: &mut Vec<String>) -> Option<String> {
    let mut value = String::new();
    loop {
        let mut words = Vec::new();
        while let Some(token) = tokens.last().filter(|token| *token != "|" && *token != ")") {
            let token = token.clone();
            tokens.pop();
            words.push(match token.as_str() {
                "(" => {
                    let inner = pipeline(tokens)?;
                    tokens.pop().filter(|token| token == ")")?;
                    format!("({inner})")
                }
                "nil" => "null".to_owned(),
                "." => "this".to_owned(),
                raw if raw.starts_with('`') => {
                    serde_json::Value::from(raw.trim_matches('`')).to_string()
                }
                name if name.starts_with(['$', '\'']) => return None,
                "define" | "range" | "end" | "if" | "else" | ":=" => return None,
                // An argument that is a name alone is a path.
                name if !words.is_empty() && is_function(name) => {
                    format!("({name})")
                }
                other => other.strip_prefix('.').unwrap_or(other).to_owned(),
            });
        }
        if !value.is_empty() {
            let call = value.contains(' ') || is_function(&value);
            words.push(if call { format!("({value})") } else { value });
        }
        value = words.join(" ");
        if tokens.last().is_none_or(|token| token != "|") {
            return Some(value);
        }
        tokens.pop();
    }
}

#[test]
fn every_function_is_a_helper() {
    let (mut left_out, mut wrong) = (Vec::new(), Vec::new());
    for item in functions() {
        for example in item.examples() {
            let Some(text) = translate(&example.template) else {
                left_out.push(example.template.clone());
                continue;
            };
            let got = notes(CHART, "templates/NOTES.txt.hbs", &text, &[]);
            let same = match (&got, &example.output) {
                (Ok(output), Ok(expected)) => output == expected,
                (Err(error), Err(expected)) => error.ends_with(*expected),
                _ => false,
            };
            if !same {
                wrong.push(format!("{text}\n  {got:?}, not {:?}", example.output));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(left_out.len() < LEFT_OUT, "{left_out:#?}");
}
