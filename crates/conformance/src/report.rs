//! What was compared, counted by function and type of argument.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use catamaran_gotemplate::{Functions, Type};
use regex::Regex;
use serde::Serialize;

use crate::generate::Probe;
use crate::outcome::Outcome;

/// How many comparisons were equal.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Count {
    /// Renderings that succeed.
    pub successes: u64,
    /// Renderings that fail.
    pub errors: u64,
}

/// What is known of one function.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// All calls.
    #[serde(flatten)]
    pub all: Count,
    /// By the Go type of an argument; a call counts once for each.
    pub by_type: BTreeMap<&'static str, Count>,
}

/// The table of a run.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// All cases that were compared.
    pub cases: u64,
    /// Those that differ.
    pub different: u64,
    /// Those that Helm's process did not survive.
    pub crashed: u64,
    /// How many renderings of both sides succeed.
    pub succeeded: u64,
    /// By function.
    pub functions: BTreeMap<&'static str, Row>,
}

/// All functions that templates of charts may call.
pub fn functions() -> BTreeSet<&'static str> {
    let mut names: BTreeSet<_> = catamaran_sprig::registry().names().collect();
    names.extend(["include", "tpl", "lookup"]);
    names
}

/// No value in a chart is a function, so `call` cannot succeed.
const NEVER_SUCCEEDS: &[&str] = &["call", "fail"];

/// Functions that take anything, any number of times.
fn never_fails(name: &str) -> bool {
    static ALL: LazyLock<Functions> = LazyLock::new(catamaran_sprig::registry);
    ALL.get(name).is_some_and(|func| {
        func.params().is_empty() && matches!(func.variadic_type(), Some(Type::Any))
    })
}

impl Report {
    /// Of a run that begins.
    pub fn new(seed: u64) -> Self {
        let functions = functions().into_iter().map(|name| (name, Row::default())).collect();
        Self { seed, functions, ..Self::default() }
    }

    /// Counts a case in which both sides agree.
    pub fn count(&mut self, probe: Option<&Probe>, outcome: &Outcome) {
        self.cases += 1;
        self.succeeded += u64::from(outcome.is_success());
        let Some(probe) = probe else { return };
        let Some(error) = outcome.error() else {
            self.add(probe.name, &probe.classes, |count| count.successes += 1);
            return;
        };
        let culprit = culprit(&error);
        match culprit {
            Some(name) if name != probe.name => {
                if let Some((&name, _)) = self.functions.get_key_value(name) {
                    self.add(name, &[], |count| count.errors += 1);
                }
            }
            None if !probe.simple => {}
            _ => self.add(probe.name, &probe.classes, |count| count.errors += 1),
        }
    }

    fn add(&mut self, name: &'static str, classes: &[&'static str], add: fn(&mut Count)) {
        let row = self.functions.entry(name).or_default();
        add(&mut row.all);
        let classes: BTreeSet<_> = classes.iter().collect();
        for class in classes {
            add(row.by_type.entry(class).or_default());
        }
    }

    /// Adds what another worker counted.
    pub fn merge(&mut self, other: Self) {
        self.cases += other.cases;
        self.different += other.different;
        self.crashed += other.crashed;
        self.succeeded += other.succeeded;
        for (name, row) in other.functions {
            let into = self.functions.entry(name).or_default();
            into.all.successes += row.all.successes;
            into.all.errors += row.all.errors;
            for (class, count) in row.by_type {
                let into = into.by_type.entry(class).or_default();
                into.successes += count.successes;
                into.errors += count.errors;
            }
        }
    }

    /// Functions of which no success was compared, or no error although there may be one.
    pub fn unseen(&self) -> Vec<String> {
        let mut unseen = Vec::new();
        for (name, row) in &self.functions {
            if row.all.successes == 0 && !NEVER_SUCCEEDS.contains(name) {
                unseen.push(format!("{name}: no success"));
            }
            if row.all.errors == 0 && !never_fails(name) {
                unseen.push(format!("{name}: no error"));
            }
        }
        unseen
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<24} {:>7} {:>7}  by type of argument (successes/errors)\n",
            "function", "success", "error"
        );
        for (name, row) in &self.functions {
            let types: Vec<_> = row
                .by_type
                .iter()
                .map(|(class, count)| format!("{class} {}/{}", count.successes, count.errors))
                .collect();
            let Count { successes, errors } = row.all;
            let _ = writeln!(text, "{name:<24} {successes:>7} {errors:>7}  {}", types.join(", "));
        }
        text
    }
}

/// The function whose failure an error tells of.
fn culprit(error: &str) -> Option<&str> {
    static CALLING: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"error calling (\w+):|wrong number of args for (\w+):|can't give argument to non-function (\w+)").ok()
    });
    let found = CALLING.as_ref()?.captures_iter(error).last()?;
    found.iter().skip(1).flatten().next().map(|name| name.as_str())
}
