//! Templates that mostly parse and often run: every function is called, mostly with arguments of
//! its types.

mod known;
mod words;

use std::fmt::Write as _;

use arbitrary::{Result, Unstructured};
use catamaran_gotemplate::fmt::quote;
use serde_json::{Map, Value};

use known::{FUNCTIONS, Known, Parameter};
use words::{FIELDS, FLOATS, INTS, METHODS, STRINGS, TEXTS, pool};

/// How deep nodes and expressions nest.
const MAX_DEPTH: u32 = 6;

/// A generated template, and what goes with it.
#[derive(Debug)]
pub struct Case {
    /// The template's text.
    pub template: Vec<u8>,
    /// The helpers' text; it defines `h`.
    pub helpers: String,
    /// The user's values.
    pub values: Map<String, Value>,
}

/// Makes a template and values of bytes.
pub fn case(u: &mut Unstructured<'_>) -> Result<Case> {
    let values = match value(u, 3)? {
        Value::Object(map) => map,
        other => Map::from_iter([("x".to_owned(), other)]),
    };
    let mut helpers = Writer::new(u);
    helpers.body(2)?;
    let helpers = format!("{{{{ define \"h\" }}}}{}{{{{ end }}}}", helpers.out);
    let mut main = Writer::new(u);
    main.body(0)?;
    let mut template = main.out.into_bytes();
    if !u.is_empty() && u.ratio(1, 16)? && !template.is_empty() {
        let at = u.choose_index(template.len())?;
        template[at] = u.arbitrary()?;
    }
    Ok(Case { template, helpers, values })
}

/// Any plain value, at most so deep.
pub fn value(u: &mut Unstructured<'_>, depth: u32) -> Result<Value> {
    Ok(match u.int_in_range(0..=9)? {
        0 => Value::Null,
        1 => u.arbitrary::<bool>()?.into(),
        2 => u.arbitrary::<i64>()?.into(),
        3 => i64::from(u.arbitrary::<i8>()?).into(),
        4 => Value::from(u.arbitrary::<f64>()?),
        5 => u.arbitrary::<String>()?.into(),
        6 => (*u.choose(STRINGS)?).into(),
        7 if depth > 0 => {
            let count = u.int_in_range(0..=4)?;
            (0..count).map(|_| value(u, depth - 1)).collect::<Result<Vec<_>>>()?.into()
        }
        8 | 9 if depth > 0 => {
            let count = u.int_in_range(0..=4)?;
            let mut map = Map::new();
            for _ in 0..count {
                let key = if u.arbitrary()? { key(u)?.to_owned() } else { u.arbitrary()? };
                map.insert(key, value(u, depth - 1)?);
            }
            map.into()
        }
        _ => "".into(),
    })
}

fn key(u: &mut Unstructured<'_>) -> Result<&'static str> {
    u.choose(&["s", "i", "f", "t", "n", "l", "m", "a", "b", "global", "x", "y", "1", "<<", "k-1"])
        .copied()
}

struct Writer<'u, 'd> {
    u: &'u mut Unstructured<'d>,
    out: String,
    variables: u32,
    loops: u32,
}

impl<'u, 'd> Writer<'u, 'd> {
    fn new(u: &'u mut Unstructured<'d>) -> Self {
        Self { u, out: String::new(), variables: 0, loops: 0 }
    }

    fn body(&mut self, depth: u32) -> Result<()> {
        let count = self.u.int_in_range(1..=5)?;
        let variables = self.variables;
        for _ in 0..count {
            if self.u.is_empty() {
                break;
            }
            self.node(depth)?;
        }
        self.variables = variables;
        Ok(())
    }

    fn node(&mut self, depth: u32) -> Result<()> {
        let kind = self.u.int_in_range(0..=15)?;
        match kind {
            0 | 1 => {
                let text = self.u.choose(TEXTS)?;
                self.out.push_str(text);
            }
            2 if depth < MAX_DEPTH => self.block("if", depth, true)?,
            3 if depth < MAX_DEPTH => self.block("with", depth, true)?,
            4 | 5 if depth < MAX_DEPTH => self.range(depth)?,
            6 => {
                self.open()?;
                let name = self.variables;
                let _ = write!(self.out, "$v{name} := ");
                self.pipeline("any", depth)?;
                self.close()?;
                self.variables += 1;
            }
            7 if self.variables > 0 => {
                self.open()?;
                self.variable()?;
                self.out.push_str(" = ");
                self.pipeline("any", depth)?;
                self.close()?;
            }
            8 if self.loops > 0 => {
                let word = self.u.choose(&["{{ break }}", "{{ continue }}"])?;
                self.out.push_str(word);
            }
            9 => {
                let word = self.u.choose(&[
                    "{{/* c */}}",
                    "{{- /* c */ -}}",
                    "{{ \"{{\" }}",
                    "{{ template \"h\" . }}",
                ])?;
                self.out.push_str(word);
            }
            10 if depth == 0 => {
                let name = self.u.choose(&["h", "n1", "n2", "c/templates/x.yaml"])?;
                let word = self.u.choose(&["define \"", "block \""])?;
                let data = if word.starts_with('b') { " ." } else { "" };
                let _ = write!(self.out, "{{{{ {word}{name}\"{data} }}}}");
                let (variables, loops) = (self.variables, self.loops);
                (self.variables, self.loops) = (0, 0);
                self.body(depth + 1)?;
                (self.variables, self.loops) = (variables, loops);
                self.out.push_str("{{ end }}");
            }
            _ => {
                self.open()?;
                self.pipeline("any", depth)?;
                self.close()?;
            }
        }
        Ok(())
    }

    /// True once in so many times; false when the bytes are used up.
    fn rarely(&mut self, one_in: u8) -> Result<bool> {
        Ok(!self.u.is_empty() && self.u.ratio(1, one_in)?)
    }

    fn open(&mut self) -> Result<()> {
        let word = self.u.choose(&["{{ ", "{{ ", "{{- "])?;
        self.out.push_str(word);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let word = self.u.choose(&[" }}", " }}", " -}}"])?;
        self.out.push_str(word);
        Ok(())
    }

    fn block(&mut self, word: &str, depth: u32, with_else: bool) -> Result<()> {
        let _ = write!(self.out, "{{{{ {word} ");
        let want = match word {
            "if" | "with" => "any",
            _ => self.u.choose(&["list", "map", "list", "int"])?,
        };
        self.pipeline(want, depth)?;
        self.out.push_str(" }}");
        self.body(depth + 1)?;
        if with_else && self.u.arbitrary()? {
            if self.u.arbitrary()? {
                let _ = write!(self.out, "{{{{ else {word} ");
                self.pipeline("any", depth)?;
                self.out.push_str(" }}");
                self.body(depth + 1)?;
            }
            self.out.push_str("{{ else }}");
            self.body(depth + 1)?;
        }
        self.out.push_str("{{ end }}");
        Ok(())
    }

    fn range(&mut self, depth: u32) -> Result<()> {
        let variables = self.variables;
        let head = match self.u.int_in_range(0..=2)? {
            0 => String::new(),
            1 => format!("$v{variables} := "),
            _ => format!("$v{variables}, $v{} := ", variables + 1),
        };
        self.variables += u32::try_from(head.matches('$').count()).unwrap_or_default();
        self.loops += 1;
        let result = self.block(&format!("range {head}"), depth, false);
        self.loops -= 1;
        self.variables = variables;
        result
    }

    /// Something that gives what is wanted, if possible.
    fn pipeline(&mut self, want: &str, depth: u32) -> Result<()> {
        if self.u.is_empty() {
            return self.literal(&[".", "$"]);
        }
        let stages = self.u.int_in_range(0..=3)?;
        let mut have = self.command(if stages < 2 { want } else { "any" }, depth)?;
        for stage in 1..stages.max(1) {
            self.out.push_str(" | ");
            let last = stage + 1 == stages.max(1);
            have = self.call(if last { want } else { "any" }, Some(have), depth)?;
        }
        Ok(())
    }

    /// A call or an operand; returns what it gives.
    fn command(&mut self, want: &str, depth: u32) -> Result<&'static str> {
        if depth < MAX_DEPTH && !self.u.is_empty() && !self.rarely(3)? {
            self.call(want, None, depth)
        } else {
            self.operand(want)?;
            Ok("any")
        }
    }

    /// A call of a function that gives what is wanted and takes what is piped into it.
    fn call(&mut self, want: &str, piped: Option<&str>, depth: u32) -> Result<&'static str> {
        let any = self.rarely(16)?;
        let fits = |known: &&Known| {
            let takes = |have| {
                let wants = known.parameters.last().map(|last| last.wants());
                wants.is_some_and(|wants| wants == have || wants == "any" || have == "any")
            };
            any || ((want == "any" || known.result == want) && piped.is_none_or(takes))
        };
        let fitting: Vec<_> = FUNCTIONS.iter().filter(fits).collect();
        let Some(known) = fitting.get(self.u.int_in_range(0..=fitting.len().max(1) - 1)?) else {
            // Nothing gives that; what is piped goes on.
            self.out.push_str(if piped.is_some() { "default 1" } else { "." });
            return Ok("any");
        };
        self.out.push_str(known.func.name());
        let mut parameters = Vec::new();
        for parameter in &known.parameters {
            let count = if parameter.optional { self.u.int_in_range(0..=3)? } else { 1 };
            parameters.extend(std::iter::repeat_n(*parameter, count));
        }
        if piped.is_some() {
            parameters.pop();
        }
        if self.rarely(64)? {
            parameters.extend(known.parameters.first().copied());
        }
        for parameter in parameters {
            self.out.push(' ');
            self.argument(parameter, depth + 1)?;
        }
        Ok(known.result)
    }

    fn argument(&mut self, parameter: Parameter, depth: u32) -> Result<()> {
        let want = if self.rarely(32)? { "any" } else { parameter.wants() };
        if depth >= MAX_DEPTH || !self.rarely(3)? {
            return match pool(parameter.word) {
                Some(pool) if want == "string" || want == "duration" => {
                    let text = self.u.choose(pool)?;
                    let _ = write!(self.out, "\"{text}\"");
                    Ok(())
                }
                _ => self.operand(want),
            };
        }
        self.out.push('(');
        self.pipeline(want, depth)?;
        self.out.push(')');
        if want == "any" && self.rarely(6)? {
            let method = self.u.choose(METHODS)?;
            self.out.push_str(method);
        }
        Ok(())
    }

    fn variable(&mut self) -> Result<()> {
        let name = self.u.int_in_range(0..=self.variables.saturating_sub(1))?;
        let _ = write!(self.out, "$v{name}");
        Ok(())
    }

    fn operand(&mut self, want: &str) -> Result<()> {
        match want {
            "string" => self.string(),
            "int" | "int64" => self.literal(INTS),
            "float64" => self.literal(FLOATS),
            "bool" => self.literal(&["true", "false", "$.Values.t"]),
            "map" => self.literal(&[
                "$.Values.m",
                "(dict \"a\" 1 \"b\" $.Values.m)",
                "(dict)",
                "(merge (dict) $.Values)",
                "(dict \"scheme\" \"https\" \"host\" \"h\")",
            ]),
            "list" => self.literal(&[
                "$.Values.l",
                "(list 1 \"b\" nil)",
                "(list)",
                "(until 5)",
                "(list (dict \"a\" 1) (list 2))",
            ]),
            "time" => self.literal(&["now", "(toDate \"2006\" \"2026\")"]),
            "duration" => self.literal(&["\"90m\"", "(mustToDuration \"1h\")", "95", "1.5"]),
            "version" => self.literal(&["(semver \"1.2.3-a+b\")"]),
            "certificate" => self.literal(&["(genCAWithKey \"c\" 1 (genPrivateKey \"ecdsa\"))"]),
            _ => self.anything(),
        }
    }

    fn anything(&mut self) -> Result<()> {
        match self.u.int_in_range(0..=9)? {
            0 | 1 => self.string(),
            2 => self.literal(INTS),
            3 => self.literal(FLOATS),
            4 if self.variables > 0 => self.variable(),
            5 => self.literal(&[
                "(index $.Values \"n\")",
                "true",
                "false",
                "(dict)",
                "(list)",
                "(list 1 2 3)",
                "now",
            ]),
            _ => self.literal(FIELDS),
        }
    }

    fn literal(&mut self, pool: &[&str]) -> Result<()> {
        let literal = self.u.choose(pool)?;
        self.out.push_str(literal);
        Ok(())
    }

    fn string(&mut self) -> Result<()> {
        if self.rarely(8)? {
            let text: String = self.u.arbitrary()?;
            let _ = write!(self.out, "{}", quote(&text.into()));
            return Ok(());
        }
        let text = self.u.choose(STRINGS)?;
        let _ = write!(self.out, "\"{text}\"");
        Ok(())
    }
}
