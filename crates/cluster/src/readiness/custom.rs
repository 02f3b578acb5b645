//! Rules of readiness that an object brings along, for kinds whose own sign is another one.
//!
//! An annotation holds lines such as `{.status.phase}=Running`: a path in the JSONPath of `kubectl wait`,
//! and the text that must be there. Without a text something must be there that is not empty. Lines that
//! begin otherwise are expressions ([`crate::cel`]) over `object`, or over its fields by themselves.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde_json::Value;

use super::{Readiness, failed, pending};
use crate::budget::{Budget, Spent};
use crate::cel::{CelError, Program};

/// All of its lines must hold.
const READY: &str = "catamaran.dev/ready-when";
/// One of its lines is enough.
const FAILED: &str = "catamaran.dev/failed-when";

/// A longer line is no rule: paths are read and followed by recursion.
const LONGEST: usize = 1024;
/// The rules of an object, both annotations together.
const MOST_RULES: usize = 64;
/// Their text, in bytes.
const MOST_TEXT: usize = 16 * 1024;
/// What all rules of an object may cost together: some milliseconds. An object is judged whenever it
/// changes.
const MOST_STEPS: usize = 100_000;
/// The text of rules that are kept as they were read, in bytes. Most objects share theirs.
const MOST_KEPT: usize = 256 * 1024;

/// The answer of an object's own rules; `None` if it brings none.
pub(super) fn assess(object: &Value) -> Option<Readiness> {
    let annotations = object.pointer("/metadata/annotations")?;
    let rules = |name: &str| annotations.get(name).and_then(Value::as_str);
    let (ready, failing) = (rules(READY), rules(FAILED));
    if ready.is_none() && failing.is_none() {
        return None;
    }
    let rules = Rules::known(ready.unwrap_or_default(), failing.unwrap_or_default());
    Some(match &*rules {
        Ok(rules) => rules.judge(object, &mut Budget::new(MOST_STEPS)).unwrap_or_else(|Spent| {
            let told = format!("its rules cost more than {MOST_STEPS} steps together");
            pending("RulesTooCostly", &told)
        }),
        Err(Unread::TooMany { rules, bytes }) => pending(
            "TooManyRules",
            &format!(
                "its annotations hold {rules} rules in {bytes} bytes; at most {MOST_RULES} rules in {MOST_TEXT} bytes are read"
            ),
        ),
        Err(Unread::NoRule(rule)) => {
            pending("InvalidRule", &format!("its annotation holds {rule:?}, which is no rule"))
        }
    })
}

/// The rules of an object.
struct Rules {
    ready: Vec<Rule>,
    failing: Vec<Rule>,
}

/// Why there are no rules.
enum Unread {
    TooMany {
        rules: usize,
        bytes: usize,
    },
    /// The line.
    NoRule(String),
}

type Read = Arc<Result<Rules, Unread>>;

/// Rules as they were read, by their text. It begins anew when it is full.
#[derive(Default)]
struct Kept {
    rules: HashMap<String, Read>,
    bytes: usize,
}

impl Rules {
    /// The rules of these texts; read once for all objects that share them.
    fn known(ready: &str, failing: &str) -> Read {
        static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);
        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = ready.len().saturating_add(failing.len());
        if bytes > MOST_TEXT {
            let rules = lines(ready).count() + lines(failing).count();
            return Arc::new(Err(Unread::TooMany { rules, bytes }));
        }
        let text = format!("{ready}\0{failing}");
        if let Some(known) = kept().rules.get(&text) {
            return known.clone();
        }
        let read = Arc::new(Self::read(ready, failing));
        let mut kept = kept();
        if kept.bytes.saturating_add(text.len()) > MOST_KEPT {
            *kept = Kept::default();
        }
        kept.bytes += text.len();
        kept.rules.insert(text, read.clone());
        read
    }

    fn read(ready: &str, failing: &str) -> Result<Self, Unread> {
        let rules = lines(ready).chain(lines(failing)).count();
        if rules > MOST_RULES {
            return Err(Unread::TooMany { rules, bytes: ready.len() + failing.len() });
        }
        let read = |text: &str| -> Result<Vec<Rule>, Unread> {
            lines(text)
                .map(|line| Rule::read(line).ok_or_else(|| Unread::NoRule(line.to_owned())))
                .collect()
        };
        Ok(Self { ready: read(ready)?, failing: read(failing)? })
    }

    fn judge(&self, object: &Value, budget: &mut Budget) -> Result<Readiness, Spent> {
        for rule in &self.failing {
            if rule.holds(object, budget)? {
                return Ok(failed("FailedByRule", &format!("{} holds", rule.text)));
            }
        }
        for rule in &self.ready {
            if !rule.holds(object, budget)? {
                let told = format!("{} does not hold yet", rule.text);
                return Ok(pending("RuleNotMet", &told));
            }
        }
        Ok(Readiness::Ready)
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
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

    fn holds(&self, object: &Value, budget: &mut Budget) -> Result<bool, Spent> {
        match &self.asks {
            Asks::Path { path, wanted } => {
                reaches(object, path, budget, &mut |value, budget| match wanted {
                    Some(wanted) => is_text(value, wanted, budget),
                    None => Ok(is_something(value)),
                })
            }
            Asks::Expression(program) => match program.holds_of(object, budget) {
                Err(CelError::TooCostly) => Err(Spent),
                answer => Ok(answer == Ok(true)),
            },
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

/// Whether a path leads to a value that passes a test.
fn reaches(
    value: &Value,
    path: &[Step],
    budget: &mut Budget,
    test: &mut dyn FnMut(&Value, &mut Budget) -> Result<bool, Spent>,
) -> Result<bool, Spent> {
    budget.spend(1)?;
    let Some((step, rest)) = path.split_first() else { return test(value, budget) };
    let mut any = |values: &mut dyn Iterator<Item = &Value>, budget: &mut Budget| {
        for value in values {
            if reaches(value, rest, budget, test)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match (step, value) {
        (Step::Field(name), _) => any(&mut value.get(name).into_iter(), budget),
        (Step::Index(at), _) => any(&mut value.get(at).into_iter(), budget),
        (Step::All, Value::Array(items)) => any(&mut items.iter(), budget),
        (Step::All, Value::Object(fields)) => any(&mut fields.values(), budget),
        (Step::Where(below, text), Value::Array(items)) => {
            for item in items {
                let is_it =
                    reaches(item, below, budget, &mut |it, budget| is_text(it, text, budget));
                if is_it? && any(&mut std::iter::once(item), budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Step::All | Step::Where(..), _) => Ok(false),
    }
}

/// Whether a value is written like this; of what is no text it is JSON.
fn is_text(value: &Value, text: &str, budget: &mut Budget) -> Result<bool, Spent> {
    budget.spend(text.len() / 16)?;
    match value {
        Value::String(value) => Ok(value == text),
        value => {
            let mut rest = Rest(text.as_bytes());
            Ok(serde_json::to_writer(&mut rest, value).is_ok() && rest.0.is_empty())
        }
    }
}

/// Whether there is anything: no text that is empty, or says that there is nothing.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !matches!(text.as_str(), "" | "null" | "false"),
        _ => true,
    }
}

/// What is still to be written. What differs from it ends the writing: nobody needs the rest.
struct Rest<'a>(&'a [u8]);

impl std::io::Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(std::io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
    fn too_many_rules_are_told_and_none_is_read() {
        let rules = |count: usize| vec!["{.status.phase}=Running"; count].join("\n");
        assert_eq!(told(&rules(64), ""), "ready");
        assert_eq!(
            told(&rules(32), &rules(33)),
            "TooManyRules: its annotations hold 65 rules in 1558 bytes; at most 64 rules in 16384 bytes are read"
        );
        assert_eq!(
            told("", &rules(30_000)),
            "TooManyRules: its annotations hold 30000 rules in 719999 bytes; at most 64 rules in 16384 bytes are read"
        );
    }

    /// Items of a list, and rules of which each looks at all of them.
    fn costly(items: usize, rule: &str, rules: usize) -> String {
        let list: Vec<Value> = (0..items).map(|at| json!({"host": format!("h{at}")})).collect();
        let object = json!({
            "metadata": {"annotations": {FAILED: vec![rule; rules].join("\n")}},
            "spec": {"rules": list},
        });
        match assess(&object) {
            Some(Readiness::Pending { reason, message }) => format!("{reason}: {message}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn all_rules_of_an_object_share_one_budget() {
        for rule in ["{.spec.rules[*].host}=none", "spec.rules.exists(r, r.host == 'none')"] {
            assert_eq!(costly(2_000, rule, 1), "Some(Ready)", "{rule}");
            let expected = "RulesTooCostly: its rules cost more than 100000 steps together";
            assert_eq!(costly(2_000, rule, 60), expected, "{rule}");
            assert_eq!(costly(60_000, rule, 1), expected, "{rule}");
        }
    }

    #[test]
    fn long_texts_cost_steps_whatever_is_done_with_them() {
        let long = "x".repeat(400_000);
        let object = |rule: &str| {
            json!({
                "metadata": {"annotations": {READY: rule}},
                "spec": {"text": long, "list": vec![1; 100]},
            })
        };
        for rule in [
            "spec.list.all(i, spec.text <= spec.text)",
            "spec.list.all(i, spec.text == spec.text)",
            "spec.list.all(i, spec.text.contains('y') || true)",
            "spec.list.all(i, !(spec.text + 'x' in spec))",
            "spec.text.matches('^(x{1,50}){1,50}$')",
        ] {
            match assess(&object(rule)) {
                Some(Readiness::Pending { reason, .. }) => {
                    assert_eq!(reason, "RulesTooCostly", "{rule}");
                }
                other => panic!("{rule}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_path_that_ends_at_a_tree_compares_its_json() {
        assert_eq!(
            told(".status.conditions[0]={\"status\":\"True\",\"type\":\"Up\"}", ""),
            "ready"
        );
        assert_eq!(told("{.status.conditions}", ""), "ready");
        let rule = ".status.conditions[0]={\"status\":\"True\"}";
        assert_eq!(told(rule, ""), format!("RuleNotMet: {rule} does not hold yet"));
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
