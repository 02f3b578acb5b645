//! Generated cases: functions called alone, templates of all the grammar, values and YAML, whole
//! charts. Every case follows from the run's seed and its number.

mod atoms;
mod chart;
mod document;
mod expr;
mod pki;
mod signatures;
mod statements;
mod texts;
mod yaml;

pub use expr::{Library, Probe};

use catamaran_chart::Profile;
use expr::Expressions;

use crate::case::{Case, SetLine};
use crate::dice::Dice;

/// A case, and what it is about.
#[derive(Clone, Debug)]
pub struct Generated {
    /// To be rendered by both sides.
    pub case: Case,
    /// The function that is asked, if it is about one.
    pub probe: Option<Probe>,
    /// For people.
    pub kind: &'static str,
}

/// The case of a number.
pub fn generate(library: &Library, seed: u64, number: u64) -> Generated {
    let mut dice = Dice::new(seed, number);
    let profile = if dice.chance(20) { Profile::Helm318 } else { Profile::Helm43 };
    match dice.below(100) {
        0..58 => probe(library, dice, profile, number),
        58..80 => grammar(library, dice, profile),
        80..90 => Generated { case: chart::values(dice, profile), probe: None, kind: "values" },
        _ => Generated { case: chart::whole(library, dice, profile), probe: None, kind: "chart" },
    }
}

/// One call of one function; they take turns.
fn probe(library: &Library, dice: Dice, profile: Profile, number: u64) -> Generated {
    let mut make = Expressions::new(library, dice);
    let turn = usize::try_from(number).unwrap_or(0);
    let name = library.names[(turn + make.dice.below(2)) % library.names.len()];
    let probe = make.probe(name);
    let text = format!("{{{{ {} }}}}", probe.text);
    // Notes are no YAML: they show the text as it is.
    let file = if make.dice.chance(90) { "templates/NOTES.txt" } else { "templates/a.yaml" };
    let mut case = small(profile, &mut make.dice);
    case.file(file, text);
    Generated { case: furnished(case), probe: Some(probe), kind: "function" }
}

fn grammar(library: &Library, dice: Dice, profile: Profile) -> Generated {
    let mut make = Expressions::new(library, dice);
    let mut text = statements::body(&mut make, 3, false);
    if make.dice.chance(40) {
        // None that calls itself: that ends after a long time only.
        for (name, callable) in [("t1", "\"t2\""), ("t2", "\"lib.hello\"")] {
            let body = statements::body(&mut make, 1, false);
            let body = body.replace("\"t1\"", callable);
            let body = if name == "t2" { body.replace("\"t2\"", callable) } else { body };
            text.push_str(&format!("{{{{ define \"{name}\" }}}}{body}{{{{ end }}}}"));
        }
    }
    let mut case = small(profile, &mut make.dice);
    case.file("templates/NOTES.txt", text);
    Generated { case: furnished(case), probe: None, kind: "grammar" }
}

fn small(profile: Profile, dice: &mut Dice) -> Case {
    let mut case = Case::new(profile);
    case.file(
        "Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.2.3\nappVersion: \"9\"\ntype: application\nkeywords: [k, l]\nannotations: {x: \"y\"}\nmaintainers:\n- {name: m, email: m@x}\n",
    );
    case.is_upgrade = dice.chance(3);
    case
}

/// Adds the values, files and named templates that the templates use.
fn furnished(mut case: Case) -> Case {
    let text: String = case
        .files
        .iter()
        .filter(|file| file.name.starts_with("templates/"))
        .map(|file| String::from_utf8_lossy(&file.data).into_owned())
        .collect();
    let uses_all = text.contains(".Values ") || text.contains(".Values)") || text.contains("$ ");
    let mut values = String::new();
    for (key, value) in atoms::VALUES {
        let some = ["str", "map", "int"].contains(key) && uses_all;
        if some || text.contains(&format!(".Values.{key}")) || text.contains(&format!("\"{key}.")) {
            values.push_str(&format!("{key}: {value}\n"));
        }
    }
    if !values.is_empty() {
        case.file("values.yaml", values);
    }
    for (key, line) in atoms::SET {
        if text.contains(&format!(".Values.{key}")) {
            case.set.push(SetLine::Typed((*line).into()));
        }
    }
    if text.contains("lib.") || text.contains("_lib.tpl") {
        case.file(
            "templates/_lib.tpl",
            "{{ define \"lib.hello\" }}hello{{ end }}\n{{ define \"lib.echo\" }}[{{ . }}]{{ end }}{{ define \"lib.fails\" }}\n{{ .x.y }}{{ end }}",
        );
    }
    if text.contains("Files") {
        case.file("data/a.txt", "one\ntwo\n");
        case.file("data/b.json", "{\"k\": [1, \"\u{e9}\"]}");
        case.file("data/empty", "");
    }
    for (name, content) in pki::files() {
        if text.contains(name) {
            case.file(name, content);
        }
    }
    case.sort();
    case
}
