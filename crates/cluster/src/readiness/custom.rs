//! Rules of readiness that an object brings along, for kinds whose own sign is another one.
//!
//! An annotation holds lines such as `{.status.phase}=Running`: a path in the JSONPath of `kubectl wait`,
//! and the text that must be there. Without a text something must be there that is not empty. Lines that
//! begin otherwise are expressions ([`crate::cel`]) over `object`, or over its fields by themselves.

use serde_json::Value;

use super::{Readiness, failed, pending};
use crate::cel::Program;

/// All of its lines must hold.
const READY: &str = "catamaran.dev/ready-when";
/// One of its lines is enough.
const FAILED: &str = "catamaran.dev/failed-when";

/// A longer line is no rule: paths are read and followed by recursion.
const LONGEST: usize = 1024;

/// The answer of an object's own rules; `None` if it brings none.
pub(super) fn assess(object: &Value) -> Option<Readiness> {
    let annotations = object.pointer("/metadata/annotations")?;
    let rules = |name: &str| annotations.get(name).and_then(Value::as_str);
    let (ready, failing) = (rules(READY), rules(FAILED));
    if ready.is_none() && failing.is_none() {
        return None;
    }
    Some(judge(object, ready.unwrap_or_default(), failing.unwrap_or_default()).unwrap_or_else(
        |rule| pending("InvalidRule", &format!("its annotation holds {rule:?}, which is no rule")),
    ))
}

/// The error is the line that is no rule.
fn judge(object: &Value, ready: &str, failing: &str) -> Result<Readiness, String> {
    let lines = |text: &str| -> Result<Vec<Rule>, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| Rule::read(line).ok_or_else(|| line.to_owned())).collect()
    };
    let (ready, failing) = (lines(ready)?, lines(failing)?);
    if let Some(rule) = failing.iter().find(|rule| rule.holds(object)) {
        return Ok(failed("FailedByRule", &format!("{} holds", rule.text)));
    }
    Ok(match ready.iter().find(|rule| !rule.holds(object)) {
        Some(rule) => pending("RuleNotMet", &format!("{} does not hold yet", rule.text)),
        None => Readiness::Ready,
    })
}

/// One line.
struct Rule {
    text: String,
    asks: Asks,
}

enum Asks {
    Path { path: Vec<Step>, wanted: Option<String> },
    Expression(Program),
}

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    /// Items in which the field at a path has this text.
    Where(Vec<Step>, String),
}

impl Rule {
    fn read(line: &str) -> Option<Self> {
        if line.len() > LONGEST {
            return None;
        }
        let rule = |asks| Self { text: line.to_owned(), asks };
        if !line.starts_with(['{', '.', '$', '[']) {
            return Program::read(line).ok().map(|it| rule(Asks::Expression(it)));
        }
        let (path, rest) = match line.strip_prefix('{') {
            Some(rest) => rest.rsplit_once('}')?,
            None => line.split_at(line.find('=').unwrap_or(line.len())),
        };
        let wanted = match rest {
            "" => None,
            rest => Some(rest.strip_prefix('=')?.trim_matches(['"', '\'']).to_owned()),
        };
        let path = steps(path.strip_prefix('$').unwrap_or(path))?;
        (!path.is_empty()).then(|| rule(Asks::Path { path, wanted }))
    }

    fn holds(&self, object: &Value) -> bool {
        let (path, wanted) = match &self.asks {
            Asks::Path { path, wanted } => (path, wanted),
            Asks::Expression(program) => {
                let fields = object.as_object().into_iter().flatten();
                let mut names: Vec<_> = fields.map(|(name, it)| (name.as_str(), it)).collect();
                names.push(("object", object));
                return program.holds(&names) == Ok(true);
            }
        };
        let found = follow(object, path);
        match wanted {
            Some(wanted) => found.iter().any(|value| plain(value) == *wanted),
            None => {
                found.iter().any(|value| !matches!(plain(value).as_str(), "" | "null" | "false"))
            }
        }
    }
}

fn steps(mut path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !path.is_empty() {
        if let Some(rest) = path.strip_prefix("[?(@") {
            let (condition, rest) = rest.split_once(")]")?;
            let (below, text) = condition.split_once("==")?;
            let text = text.trim().trim_matches(['"', '\'']).to_owned();
            steps.push(Step::Where(self::steps(below.trim())?, text));
            path = rest;
        } else if let Some(rest) = path.strip_prefix('[') {
            let (inside, rest) = rest.split_once(']')?;
            let quoted =
                inside.strip_prefix(['\'', '"']).and_then(|name| name.strip_suffix(['\'', '"']));
            steps.push(match (inside, quoted) {
                ("*", _) => Step::All,
                (_, Some(name)) => Step::Field(name.to_owned()),
                (index, None) => Step::Index(index.parse().ok()?),
            });
            path = rest;
        } else {
            let rest = path.strip_prefix('.')?;
            let (name, rest) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            steps.push(match name {
                "" => return None,
                "*" => Step::All,
                name => Step::Field(name.to_owned()),
            });
            path = rest;
        }
    }
    Some(steps)
}

fn follow<'a>(value: &'a Value, path: &[Step]) -> Vec<&'a Value> {
    let Some((step, rest)) = path.split_first() else { return vec![value] };
    let next: Vec<&Value> = match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(at) => value.get(at).into_iter().collect(),
        Step::All => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        },
        Step::Where(below, text) => {
            let items = value.as_array().into_iter().flatten();
            items.filter(|item| follow(item, below).iter().any(|it| plain(it) == *text)).collect()
        }
    };
    next.into_iter().flat_map(|value| follow(value, rest)).collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(ready: &str, failing: &str) -> String {
        let object = json!({
            "metadata": { "annotations": { READY: ready, FAILED: failing } },
            "status": {
                "phase": "Running", "healthy": true, "nodes": 3, "none": "", "a.b": {"c": "d"},
                "conditions": [{"type": "Up", "status": "True"}, {"type": "Safe", "status": "False"}],
            },
        });
        match assess(&object) {
            None => "none".to_owned(),
            Some(Readiness::Ready) => "ready".to_owned(),
            Some(Readiness::Pending { reason, message }) => format!("{reason}: {message}"),
            Some(Readiness::Failed { reason, message }) => format!("failed {reason}: {message}"),
        }
    }

    #[test]
    fn an_object_says_itself_when_it_is_ready() {
        for rule in [
            "{.status.phase}=Running",
            ".status.phase=Running",
            "{$.status.phase}='Running'",
            "{.status.healthy}",
            "{.status.nodes}=3",
            "{.status['a.b'].c}=d",
            "{.status.conditions[0].status}=True",
            "{.status.conditions[*].type}=Safe",
            "{.status.conditions[?(@.type==\"Up\")].status}=True",
            "{.status.phase}=Running\n\n{.status.nodes}",
            "object.status.phase == 'Running' && object.status.nodes >= 3",
            "status.conditions.exists(c, c.type == 'Up' && c.status == 'True')\n{.status.nodes}",
        ] {
            assert_eq!(told(rule, ""), "ready", "{rule}");
        }
        for rule in [
            "{.status.phase}=Pending",
            "{.status.none}",
            "{.status.absent.deeper}",
            "{.status.conditions[?(@.type==\"Safe\")].status}=True",
            "{.status.conditions[9].status}=True",
            "object.status.nodes > 3",
            "object.spec.absent == 1",
            "object.status.phase",
        ] {
            let expected = format!("RuleNotMet: {rule} does not hold yet");
            assert_eq!(told(rule, ""), expected);
        }
    }

    #[test]
    fn and_when_it_has_failed() {
        let rule = "{.status.conditions[?(@.type=='Safe')].status}=False";
        assert_eq!(
            told("{.status.phase}=Running", rule),
            format!("failed FailedByRule: {rule} holds")
        );
        assert_eq!(told("", "{.status.phase}=Failed"), "ready");
        let rule = "status.phase.startsWith('Run')";
        assert_eq!(told("", rule), format!("failed FailedByRule: {rule} holds"));
    }

    #[test]
    fn what_is_no_rule_is_told() {
        for rule in
            ["status.phase=x", "{.a", "{.a}x", "{}", "{.a..b}", "{.a[b]}", "=", "{.a[?(@.b)]}"]
        {
            let expected = format!("InvalidRule: its annotation holds {rule:?}, which is no rule");
            assert_eq!(told(rule, ""), expected);
        }
        assert_eq!(super::assess(&json!({"metadata": {"annotations": {"a": "b"}}})), None);
    }
}
