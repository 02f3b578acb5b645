//! Expressions of the template language.

use std::collections::{BTreeMap, BTreeSet};

use super::signatures::{self, Signature};
use super::{atoms, texts};
use crate::dice::Dice;

/// What a generated expression is, for those that build upon it.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The text; in parentheses if it has spaces.
    pub text: String,
    /// The Go type, as far as it is known.
    pub class: &'static str,
    /// Whether no other function is called in it, or only one that cannot fail.
    pub simple: bool,
}

/// A call of one function, alone in its template.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The function.
    pub name: &'static str,
    /// The types of the arguments.
    pub classes: Vec<&'static str>,
    /// Whether a failure must be the function's own.
    pub simple: bool,
    /// The pipeline.
    pub text: String,
}

/// What is known of all functions.
#[derive(Debug)]
pub struct Library {
    signatures: Vec<Signature>,
    by_result: BTreeMap<&'static str, Vec<usize>>,
    /// The names, in order.
    pub names: Vec<&'static str>,
}

impl Library {
    /// Made once.
    pub fn new() -> Self {
        let signatures = signatures::all();
        let names: BTreeSet<_> = signatures.iter().map(|signature| signature.name).collect();
        Self {
            by_result: signatures::by_result(&signatures),
            names: names.into_iter().collect(),
            signatures,
        }
    }

    fn of(&self, name: &str) -> Vec<&Signature> {
        self.signatures.iter().filter(|signature| signature.name == name).collect()
    }
}

/// Makes expressions.
#[derive(Debug)]
pub struct Expressions<'a> {
    /// All functions.
    pub library: &'a Library,
    /// Chance.
    pub dice: Dice,
    /// Variables in scope.
    pub variables: Vec<String>,
    /// Whether template texts may be made; no text in texts.
    pub texts: bool,
}

/// Sorts that a wrong argument may have: none that would keep Helm busy for long.
const SORTS: &[&str] = &[
    "Any", "Str", "Small", "Float", "Bool", "List", "Map", "Time", "Duration", "Version",
    "StrList", "Int64", "Object", "Key", "NumText", "Dur",
];

impl<'a> Expressions<'a> {
    /// With a seed of its own for each case.
    pub fn new(library: &'a Library, dice: Dice) -> Self {
        Self { library, dice, variables: Vec::new(), texts: true }
    }

    /// An argument of a sort.
    pub fn of(&mut self, sort: &'static str, depth: usize) -> Expr {
        // A count out of a variable might be a huge one.
        if !self.variables.is_empty() && sort != "Small" && self.dice.chance(8) {
            let at = self.dice.below(self.variables.len());
            return Expr { text: self.variables[at].clone(), class: "variable", simple: true };
        }
        if sort == "TemplateText" {
            return self.template_text();
        }
        if let Some(text) = texts::of(sort, &mut self.dice)
            && (atoms::of(sort) == atoms::ANY || self.dice.chance(30))
        {
            let text = texts::literal(&text, &mut self.dice);
            return Expr { text, class: "string", simple: true };
        }
        let nested = self.library.by_result.get(sort).filter(|_| depth > 0);
        if let Some(nested) = nested
            && self.dice.chance(25)
            && !matches!(sort, "Int" | "Int64")
        {
            let signature = &self.library.signatures[*self.dice.choose(nested)];
            let (text, _) = self.call(signature, depth - 1, false);
            return Expr { text: format!("({text})"), class: class_of(sort), simple: false };
        }
        let sort = if sort == "Any" && self.dice.chance(25) { self.any_sort() } else { sort };
        let &(text, class) = self.dice.choose(atoms::of(sort));
        Expr { text: text.into(), class, simple: true }
    }

    fn any_sort(&mut self) -> &'static str {
        SORTS[self.dice.below(SORTS.len())]
    }

    fn template_text(&mut self) -> Expr {
        let text = match self.dice.below(8) {
            0 => "plain".to_owned(),
            1 => "{{ .Values.str }}!".to_owned(),
            2 => "{{ define \"x\" }}in{{ end }}{{ include \"x\" . }}".to_owned(),
            3 => "{{ .Values.str".to_owned(),
            4 => "{{ nofunc }}".to_owned(),
            5 => "{{ .Template.Name }} {{ include \"lib.hello\" . }}".to_owned(),
            _ if self.texts => {
                self.texts = false;
                let inner = self.pipeline("Any", 1);
                self.texts = true;
                format!("{{{{ {inner} }}}}").replace('`', "\"")
            }
            _ => "{{ fail \"deep\" }}".to_owned(),
        };
        let text = texts::literal(&text, &mut self.dice);
        Expr { text, class: "string", simple: false }
    }

    /// A call without parentheses, and its arguments. `loose` has arguments of wrong types, or too
    /// many or few of them, now and then.
    fn call(&mut self, signature: &Signature, depth: usize, loose: bool) -> (String, Vec<Expr>) {
        let mode = if loose { self.dice.below(100) } else { 100 };
        let mut sorts: Vec<&'static str> = Vec::new();
        for &arg in &signature.args {
            if let Some(sort) = arg.strip_suffix('*') {
                sorts.extend(std::iter::repeat_n(sort, self.dice.below(4)));
            } else if let Some(sort) = arg.strip_suffix('?') {
                sorts.extend(self.dice.chance(50).then_some(sort));
            } else {
                sorts.push(arg);
            }
        }
        match mode {
            // One of a wrong type, or all of any.
            0..25 if !sorts.is_empty() => {
                let at = self.dice.below(sorts.len());
                if sorts[at] != "Plain" {
                    sorts[at] = self.any_sort();
                }
            }
            25..30 => {
                for sort in sorts.iter_mut().filter(|sort| **sort != "Plain") {
                    *sort = SORTS[self.dice.below(SORTS.len())];
                }
            }
            30..33 => sorts.clear(),
            33..36 => drop(sorts.pop()),
            36..40 => sorts.push("Any"),
            _ => {}
        }
        let args: Vec<Expr> = sorts.iter().map(|&sort| self.of(sort, depth)).collect();
        let mut text = signature.name.to_owned();
        for arg in &args {
            text.push(' ');
            text.push_str(&arg.text);
        }
        (text, args)
    }

    /// One call of a function, mostly with what it expects, and something done with the result.
    pub fn probe(&mut self, name: &'static str) -> Probe {
        let signatures = self.library.of(name);
        let signature = *self.dice.choose(&signatures);
        // A slow function is mostly asked for its errors.
        let (mut call, mut args) = self.call(signature, 1, true);
        if signature.is_slow() && self.dice.chance(45) {
            (call, args) = (signature.name.to_owned(), Vec::new());
            if self.dice.chance(50) {
                args.push(self.of("Any", 0));
                call = format!("{call} {}", args[0].text);
            }
        }
        // The last argument may come through the pipe.
        if args.len() > 1 && self.dice.chance(20) {
            let last = args.len() - 1;
            let front: Vec<_> = args[..last].iter().map(|arg| arg.text.as_str()).collect();
            call = format!("{} | {name} {}", args[last].text, front.join(" "));
        }
        let text = if !signature.wraps.is_empty() {
            self.dice.pick(&signature.wraps).replace('@', &call)
        } else if signature.takes_time() && !expects_times(&args, signature) {
            // What is no time is taken for the present.
            format!("regexReplaceAll \"[0-9]+\" ({call}) \"0\"")
        } else {
            self.finished(call)
        };
        Probe {
            name,
            classes: args.iter().map(|arg| arg.class).collect(),
            simple: args.iter().all(|arg| arg.simple),
            text,
        }
    }

    /// Something done with a result, to see more of it.
    fn finished(&mut self, call: String) -> String {
        const ENDS: &[&str] = &[
            "toJson",
            "quote",
            "toYaml",
            "typeOf",
            "kindOf",
            "printf \"%v\"",
            "printf \"%T\"",
            "printf \"%#v\"",
            "printf \"%q\"",
            "len",
            "toString",
            "list",
            "printf \"%s\"",
            "default \"none\"",
            "empty",
            "toRawJson",
            "toPrettyJson",
        ];
        if self.dice.chance(65) { call } else { format!("{call} | {}", self.dice.pick(ENDS)) }
    }

    /// A pipeline of some commands whose value is more or less of a sort.
    pub fn pipeline(&mut self, sort: &'static str, depth: usize) -> String {
        let mut text = self.command(sort, depth);
        while self.dice.chance(22) {
            let name = self.name();
            let signatures = self.library.of(name);
            let signature = *self.dice.choose(&signatures);
            let counts = signature.args.last().is_some_and(|arg| arg.starts_with("Small"));
            let is_odd = !signature.wraps.is_empty() || signature.takes_time();
            if is_odd || signature.is_slow() || counts {
                continue;
            }
            let (mut call, args) = self.call(signature, 0, false);
            // The piped value takes the last place.
            if let Some((_, front)) = args.split_last() {
                let front: Vec<_> = front.iter().map(|arg| arg.text.as_str()).collect();
                call = format!("{name} {}", front.join(" "));
            }
            text = format!("{text} | {}", call.trim_end());
        }
        text
    }

    fn command(&mut self, sort: &'static str, depth: usize) -> String {
        if self.dice.chance(35) {
            return self.of(sort, depth).text;
        }
        let wanted = self.library.by_result.get(sort).filter(|_| sort != "Any");
        let at = match wanted {
            Some(wanted) if self.dice.chance(70) => *self.dice.choose(wanted),
            _ => self.dice.below(self.library.signatures.len()),
        };
        let signature = &self.library.signatures[at];
        if !signature.wraps.is_empty() || signature.is_slow() || signature.takes_time() {
            return self.of(sort, depth).text;
        }
        let loose = self.dice.chance(30);
        self.call(signature, depth, loose).0
    }

    fn name(&mut self) -> &'static str {
        self.library.names[self.dice.below(self.library.names.len())]
    }
}

/// Whether every argument that should be a time is one.
fn expects_times(args: &[Expr], signature: &Signature) -> bool {
    args.len() == signature.args.len()
        && args.iter().zip(&signature.args).all(|(arg, &sort)| {
            sort != "Time" || matches!(arg.class, "Time" | "int" | "int64") && arg.simple
        })
}

fn class_of(sort: &str) -> &'static str {
    match sort {
        "Str" => "string",
        "Int" => "int",
        "Int64" => "int64",
        "Float" => "float64",
        "Bool" => "bool",
        "List" => "list",
        "StrList" => "[]string",
        "NumList" => "[]int",
        "Map" | "UrlMap" => "map",
        "RealTime" => "Time",
        "Duration" => "Duration",
        "Version" => "Version",
        _ => "any",
    }
}
