//! A template that belongs to no chart, such as `--name-template` or a value in watches.yaml.

use std::sync::Arc;
use std::time::SystemTime;

use catamaran_gotemplate::{
    Budget, Ctx, Error, Func, Functions, MissingKey, Origin, RandomSeed, TemplateSet, Type, Value,
};

/// Runs a template without data, with all functions but those that need a chart.
///
/// # Errors
/// Go's text, with `name` as the template's name.
pub fn standalone(
    name: &str,
    text: &str,
    clock: SystemTime,
    seed: RandomSeed,
) -> Result<String, Error> {
    run(catamaran_sprig::registry(), name, text, clock, seed)
}

/// The same with `env` and `expandenv`, and without Helm's own functions, as in `--name-template`: for a
/// template of the person who runs the program, never for one of a chart.
///
/// # Errors
/// Go's text, with `name` as the template's name.
pub fn standalone_with_environment(
    name: &str,
    text: &str,
    clock: SystemTime,
    seed: RandomSeed,
) -> Result<String, Error> {
    let mut functions = catamaran_sprig::registry();
    for item in catamaran_sprig::items().filter(|item| item.origin == Origin::Helm) {
        functions.remove(item.func.name());
    }
    functions.extend([
        Func::new("env", &[Type::String], |_, args| Ok(of_environment(args, variable))),
        Func::new("expandenv", &[Type::String], |_, args| Ok(of_environment(args, expanded))),
    ]);
    run(functions, name, text, clock, seed)
}

fn run(
    functions: Functions,
    name: &str,
    text: &str,
    clock: SystemTime,
    seed: RandomSeed,
) -> Result<String, Error> {
    let mut ctx = Ctx::new(Budget::default(), clock, seed);
    let mut set = TemplateSet::new(Arc::new(functions), MissingKey::Invalid);
    set.parse(name, text)?;
    Ok(set.execute(&mut ctx, name, &Value::Nil)?.to_str_lossy().into_owned())
}

fn of_environment(args: &[Value], of: impl Fn(&str) -> String) -> Value {
    let text = args.first().and_then(Value::as_str).map(|text| text.to_str_lossy().into_owned());
    Value::string(of(&text.unwrap_or_default()))
}

fn variable(name: &str) -> String {
    std::env::var_os(name).map_or_else(String::new, |value| value.to_string_lossy().into_owned())
}

fn expanded(text: &str) -> String {
    expand(text, variable)
}

/// Go's `os.Expand`: `$NAME`, `${any name}`, `$1`; a `$` before anything else stays.
fn expand(text: &str, value: impl Fn(&str) -> String) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (name, length) = shell_name(after);
        match (name, length) {
            ("", 0) => expanded.push('$'),
            ("", _) => {}
            (name, _) => expanded.push_str(&value(name)),
        }
        rest = after.get(length..).unwrap_or_default();
    }
    expanded + rest
}

/// The name after a `$`, and how much of the text it takes.
fn shell_name(text: &str) -> (&str, usize) {
    let special = |c: char| c.is_ascii_digit() || "*#$@!?-".contains(c);
    if let Some(inside) = text.strip_prefix('{') {
        return match inside.find('}') {
            Some(0) => ("", 2),
            Some(end) => (inside.get(..end).unwrap_or_default(), end + 2),
            None => ("", 1),
        };
    }
    let end = match text.chars().next() {
        Some(c) if special(c) => 1,
        _ => text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len()),
    };
    (text.get(..end).unwrap_or_default(), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_expanded_as_in_go() {
        let value = |name: &str| format!("<{name}>");
        for (text, wanted) in [
            ("a $B_1.c", "a <B_1>.c"),
            ("${b c}$", "<b c>$"),
            ("$1x ${1} $$ ${} ${x", "<1>x <1> <$>  x"),
            ("$.", "$."),
        ] {
            assert_eq!(expand(text, value), wanted, "{text}");
        }
    }
}
