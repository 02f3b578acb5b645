//! Templates that mostly parse and often run: every function is called, mostly with arguments of
//! its types.

use std::fmt::Write as _;
use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use catamaran_chart::reference::{Func, Type, functions};
use serde_json::{Map, Value};

/// All functions, in a stable order.
static FUNCTIONS: LazyLock<Vec<&'static Func>> = LazyLock::new(|| {
    let mut all: Vec<_> = functions().map(|item| &item.func).collect();
    all.sort_by_key(|func| func.name());
    all
});

/// How deep nodes and expressions nest.
const MAX_DEPTH: u32 = 6;

const STRINGS: &[&str] = &[
    "", "a", "Hello World", "a,b,c", "a.b.c", "  padded ", "1", "-1", "0x1F", "1.5", "1e309", "true",
    "éß\u{10FFFF}\u{301}", "\\u0000", "%s %d %v %!", "%+v%#v%T%q%x%5.2f%[3]*.[2]*[1]f", "$1${name}",
    "^(a+)+$", "[a-z]*", "(", "v1.2.3-rc.1+meta", ">=1.2.3-0 <2 || ^3", "2026-11-21", "2006-01-02",
    "15:04:05", "1h30m", "-1.5h", "UTC", "Europe/Berlin", "Mon, 02 Jan 2006 15:04:05 -0700",
    "https://u:p@example.com:8443/p?q=1#f", "a: [1, {b: c}]\\nd: |\\n  x\\n", "&a [*a]", "{\\\"a\\\": [1]}",
    "[a]\\nb = 1\\n", "{{ . }}", "{{ include \\\"h\\\" . }}", "{{ define \\\"h\\\" }}{{ end }}", "h", "n1",
    "conf/a.txt", "conf/*", "**", "ecdsa", "ed25519", "long", "map[string]interface {}", "string", "slice",
    "\\n", "\\t", "---", "map", "int", "\\xff", "templates/x.yaml", "apps/v1",
];
const INTS: &[&str] = &[
    "0", "1", "2", "3", "-1", "7", "10", "64", "100", "1000", "65536", "1000000000", "2147483648",
    "9223372036854775807", "-9223372036854775808", "0x1F", "0b11", "0o17", "'a'", "1_000",
];
const FLOATS: &[&str] = &["0.0", "1.5", "-2.5", "1e100", "1e-300", "5e-324", "1e6", "0x1p-2", "0.1", "1e19"];
const FIELDS: &[&str] = &[
    ".Values", ".Values.s", ".Values.i", ".Values.f", ".Values.t", ".Values.n", ".Values.l", ".Values.m",
    ".Values.m.a.b.c", ".Values.missing", ".Values.missing.x", ".Values.em", ".Values.el", ".Values.d",
    ".Values.v", ".Values.y", ".Values.tpl", ".Values.u", ".", "$", "$.Values", ".Release", ".Chart",
    ".Release.Name", ".Chart.Name", ".Files", ".Capabilities", ".Capabilities.KubeVersion", ".Template",
    ".Capabilities.APIVersions", ".Values.AsMap", ".Values.YAML", ".Template.BasePath", ".Subcharts",
];
const METHODS: &[&str] = &[
    ".Major", ".Minor", ".String", ".Cert", ".Key", ".Year", ".Unix", ".Format \"2006\"", ".Add 1", ".Seconds",
    ".Get \"conf/a.txt\"", ".Glob \"conf/*\"", ".Lines \"conf/a.txt\"", ".AsConfig", ".AsSecrets", ".Has \"v1\"",
    ".GetBytes \"conf/b.bin\"", ".Original", ".Compare", ".IncMinor", ".Weekday", ".UTC", ".Truncate 5", ".a", ".x.y",
];
const TEXTS: &[&str] = &["text ", "\n", "a: 1\n", "---\n", "  ", "- x\n", "{}", "é", "<no value>", "kind: X\n"];

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
    if u.ratio(1, 8)? && !template.is_empty() {
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
    u.choose(&["s", "i", "f", "t", "n", "l", "m", "a", "b", "global", "x", "y", "1", "<<", "k-1"]).copied()
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
                self.pipeline(depth)?;
                self.close()?;
                self.variables += 1;
            }
            7 if self.variables > 0 => {
                self.open()?;
                self.variable()?;
                self.out.push_str(" = ");
                self.pipeline(depth)?;
                self.close()?;
            }
            8 if self.loops > 0 => {
                let word = self.u.choose(&["{{ break }}", "{{ continue }}"])?;
                self.out.push_str(word);
            }
            9 => {
                let word = self.u.choose(&["{{/* c */}}", "{{- /* c */ -}}", "{{ \"{{\" }}", "{{ template \"h\" . }}"])?;
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
                self.pipeline(depth)?;
                self.close()?;
            }
        }
        Ok(())
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
        self.pipeline(depth)?;
        self.out.push_str(" }}");
        self.body(depth + 1)?;
        if with_else && self.u.arbitrary()? {
            if self.u.arbitrary()? {
                let _ = write!(self.out, "{{{{ else {word} ");
                self.pipeline(depth)?;
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

    fn pipeline(&mut self, depth: u32) -> Result<()> {
        self.command(Type::Any, depth)?;
        let stages = self.u.int_in_range(0..=3)?;
        for _ in 0..stages.max(1) - 1 {
            self.out.push_str(" | ");
            self.call(depth, true)?;
        }
        Ok(())
    }

    /// A call or an operand, of a type if possible.
    fn command(&mut self, ty: Type, depth: u32) -> Result<()> {
        if depth < MAX_DEPTH && self.u.ratio(2, 3)? { self.call(depth, false) } else { self.operand(ty) }
    }

    fn call(&mut self, depth: u32, piped: bool) -> Result<()> {
        let func = *self.u.choose(&FUNCTIONS)?;
        self.out.push_str(func.name());
        let mut types: Vec<Type> = func.params().to_vec();
        if let Some(more) = func.variadic_type() {
            let count = self.u.int_in_range(0..=3)?;
            types.extend((0..count).map(|_| more));
        }
        if piped {
            types.pop();
        }
        if self.u.ratio(1, 32)? {
            types.push(Type::Any);
        }
        for ty in types {
            self.out.push(' ');
            self.argument(ty, depth + 1)?;
        }
        Ok(())
    }

    fn argument(&mut self, ty: Type, depth: u32) -> Result<()> {
        if depth >= MAX_DEPTH || !self.u.ratio(1, 3)? {
            return self.operand(ty);
        }
        self.out.push('(');
        self.pipeline(depth)?;
        self.out.push(')');
        if self.u.ratio(1, 6)? {
            let method = self.u.choose(METHODS)?;
            // With its arguments in the parentheses' place.
            match method.split_once(' ') {
                Some((name, arguments)) => {
                    let _ = write!(self.out, "{name} {arguments}");
                }
                None => self.out.push_str(method),
            }
        }
        Ok(())
    }

    fn variable(&mut self) -> Result<()> {
        let name = self.u.int_in_range(0..=self.variables.saturating_sub(1))?;
        let _ = write!(self.out, "$v{name}");
        Ok(())
    }

    fn operand(&mut self, ty: Type) -> Result<()> {
        let ty = if self.u.ratio(1, 16)? { Type::Any } else { ty };
        match ty {
            Type::String => self.string(),
            Type::Int | Type::Int64 | Type::Uint8 | Type::Uint64 => self.literal(INTS),
            Type::Float64 => self.literal(FLOATS),
            Type::Bool => self.literal(&["true", "false", ".Values.t"]),
            Type::Map(_) => self.literal(&[".Values.m", "(dict \"a\" 1 \"b\" .Values.m)", ".Values", "(dict)", "."]),
            Type::List(_) => self.literal(&[".Values.l", "(list 1 \"b\" nil)", "(list)", "(until 5)", "nil"]),
            Type::Named(_) => self.literal(&["now", "(genCA \"c\" 1)", "(toDate \"2006\" \"2026\")", "nil", "(semver \"1.2.3\")"]),
            _ => self.anything(),
        }
    }

    fn anything(&mut self) -> Result<()> {
        match self.u.int_in_range(0..=9)? {
            0 | 1 => self.string(),
            2 => self.literal(INTS),
            3 => self.literal(FLOATS),
            4 if self.variables > 0 => self.variable(),
            5 => self.literal(&["nil", "true", "false", "(dict)", "(list)", "(list 1 2 3)", "now"]),
            _ => self.literal(FIELDS),
        }
    }

    fn literal(&mut self, pool: &[&str]) -> Result<()> {
        let literal = self.u.choose(pool)?;
        self.out.push_str(literal);
        Ok(())
    }

    fn string(&mut self) -> Result<()> {
        if self.u.ratio(1, 8)? {
            let text: String = self.u.arbitrary()?;
            let _ = write!(self.out, "{text:?}");
            return Ok(());
        }
        let text = self.u.choose(STRINGS)?;
        let _ = write!(self.out, "\"{text}\"");
        Ok(())
    }
}
