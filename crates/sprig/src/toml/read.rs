//! Reading TOML: keys, tables and their rules.
//!
//! The rules are those of `BurntSushi/toml` 1.6, which knows keys by their dotted names: which of
//! them were made in passing (and may be defined once more) and which are arrays.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use catamaran_gotemplate::{FuncError, MAX_VALUE_DEPTH, Meter, Value};

use super::dotted;
use super::scan::{Fault, Scanner, quoted, quoted_text};

/// What a key with its table, and what a value take, in bytes.
const TABLE_COST: usize = 700;
const VALUE_COST: usize = 96;

/// How deep arrays and inline tables may nest.
const MAX_NESTED: usize = 200;

/// What a key holds.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Plain(Value),
    Array(Rc<[Node]>),
    /// By its place in [`Document::tables`].
    Table(usize),
    /// The tables of `[[name]]`.
    Tables(Vec<usize>),
}

/// The tables of a text; the first is the outermost.
pub(super) struct Document {
    pub tables: Vec<BTreeMap<String, Node>>,
}

/// Why reading ended.
pub(super) enum Stop {
    /// Go's text.
    Error(String),
    Budget(FuncError),
}

struct Reader<'t> {
    scanner: Scanner<'t>,
    meter: &'t mut Meter,
    tables: Vec<BTreeMap<String, Node>>,
    /// The table that keys go to.
    context: Vec<String>,
    /// The last part of the key whose value is read.
    key: String,
    /// The line of the key or table that was read last.
    key_line: usize,
    /// How many arrays and inline tables are open.
    depth: usize,
    implicit: HashSet<String>,
    arrays: HashMap<String, bool>,
}

type Step<T> = Result<T, Failure>;

enum Failure {
    Fault(Fault),
    Budget(FuncError),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<FuncError> for Failure {
    fn from(error: FuncError) -> Self {
        Self::Budget(error)
    }
}

/// Reads a whole text. `offset`: how far local dates are from UTC, in seconds.
pub(super) fn read(meter: &mut Meter, text: &[u8], offset: i32) -> Result<Document, Stop> {
    let marks: [&[u8]; 3] = [b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"];
    let text = marks.iter().find_map(|mark| text.strip_prefix(*mark)).unwrap_or(text);
    if text.iter().take(6).any(|byte| *byte == 0) {
        return Err(Stop::Error(
            "toml: line 1: files cannot contain NULL bytes; probably using UTF-16; TOML files must be UTF-8"
                .to_owned(),
        ));
    }
    let mut reader = Reader {
        scanner: Scanner::new(text, offset),
        meter,
        tables: vec![BTreeMap::new()],
        context: Vec::new(),
        key: String::new(),
        key_line: 0,
        depth: 0,
        implicit: HashSet::new(),
        arrays: HashMap::new(),
    };
    match reader.document() {
        Ok(()) => Ok(Document { tables: reader.tables }),
        Err(Failure::Budget(error)) => Err(Stop::Budget(error)),
        Err(Failure::Fault(fault)) => Err(Stop::Error(reader.told(&fault))),
    }
}

impl Reader<'_> {
    fn told(&self, fault: &Fault) -> String {
        let last = if self.key.is_empty() {
            dotted(&self.context)
        } else if self.context.is_empty() {
            self.key.clone()
        } else {
            format!("{}.{}", dotted(&self.context), self.key)
        };
        let Fault { line, message } = fault;
        if last.is_empty() {
            format!("toml: line {line}: {message}")
        } else {
            format!("toml: line {line} (last key {}): {message}", quoted_text(&last))
        }
    }

    /// A fault of the key or table that was read last.
    fn refuse<T>(&self, message: String) -> Step<T> {
        Err(Fault { line: self.key_line, message }.into())
    }

    fn document(&mut self) -> Step<()> {
        loop {
            let c = self.scanner.peek()?;
            match c {
                None => return Ok(()),
                Some(' ' | '\t' | '\n' | '\r') => self.scanner.take(c),
                Some('#') => self.scanner.comment()?,
                Some('[') => {
                    self.scanner.take(c);
                    self.header()?;
                    if !self.scanner.end_of_item()? {
                        return Ok(());
                    }
                }
                Some(_) => {
                    let outer = self.context.clone();
                    self.pair()?;
                    self.context = outer;
                    self.key.clear();
                    if !self.scanner.end_of_item()? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// `[name]` or `[[name]]`, behind the first bracket.
    fn header(&mut self) -> Step<()> {
        let (array, name) = self.scanner.header()?;
        self.key_line = self.scanner.line;
        self.charge(&[], &name)?;
        self.add_context(&name, array)?;
        self.set_kind("", false);
        Ok(())
    }

    /// `key = value`, into the context. Gives the key and the value, for inline tables.
    fn pair(&mut self) -> Step<(Vec<String>, Node)> {
        let mut parents = self.scanner.key()?;
        self.key_line = self.scanner.line;
        let context = self.context.clone();
        self.charge(&context, &parents)?;
        self.key = parents.pop().unwrap_or_default();
        for part in &parents {
            let mut table = self.context.clone();
            table.push(part.clone());
            self.note_implicit(&table)?;
            self.add_context(&table, false)?;
        }
        let value = self.value(false)?;
        let key = self.key.clone();
        self.set_value(&key, value.clone())?;
        self.set_kind(&key, matches!(value, Node::Array(_)));
        parents.push(key);
        Ok((parents, value))
    }

    /// What one more key of a table costs, besides what [`Self::note_implicit`] charges.
    fn charge(&mut self, table: &[String], key: &[String]) -> Step<()> {
        let depth = table.len() + key.len();
        if depth > MAX_VALUE_DEPTH {
            return Ok(self.scanner.fail("exceeded max depth")?);
        }
        let length: usize = key.iter().chain(table).map(|part| part.len() + 32).sum();
        self.meter.charge_steps(u64::try_from(depth * key.len() + 16).unwrap_or(u64::MAX))?;
        self.meter.charge_bytes(length * 3 + TABLE_COST)?;
        Ok(())
    }

    fn value(&mut self, in_array: bool) -> Step<Node> {
        self.meter.charge_steps(8)?;
        self.meter.charge_bytes(VALUE_COST)?;
        self.scanner.skip_spaces()?;
        let start = self.scanner.pos;
        let c = self.scanner.peek()?;
        if c.is_some_and(|c| c.is_ascii_digit()) {
            return Ok(Node::Plain(self.scanner.number_or_date()?));
        }
        self.scanner.take(c);
        let plain = match c {
            Some('[') => return self.nested(Self::array),
            Some('{') => return self.nested(|reader| reader.inline_table(in_array)),
            Some('"' | '\'') => Value::from(self.string(c)?),
            Some('.') => {
                return Ok(self.scanner.fail("floats must start with a digit, not '.'")?);
            }
            Some('-' | '+') => self.scanner.signed_number(start)?,
            Some(first) if first.is_alphabetic() => self.word(first, start)?,
            None => return Ok(self.scanner.fail_at(c, "unexpected EOF; expected value")?),
            Some(other) => {
                let message = format!("expected value but found {} instead", quoted(c));
                if other == '\n' {
                    self.scanner.fail_before::<()>(message)?;
                } else {
                    self.scanner.fail::<()>(message)?;
                }
                Value::Nil
            }
        };
        Ok(Node::Plain(plain))
    }

    /// A string behind its first mark.
    fn string(&mut self, mark: Option<char>) -> Step<String> {
        let scanner = &mut self.scanner;
        let behind_first = scanner.pos;
        let mark = mark.unwrap_or('"');
        let long = scanner.accept(mark)? && scanner.accept(mark)?;
        if !long {
            scanner.pos = behind_first;
        }
        let text = match (mark, long) {
            ('"', true) => scanner.long_string()?,
            ('"', false) => scanner.basic_string()?,
            (_, true) => scanner.long_raw_string()?,
            (_, false) => scanner.raw_string()?,
        };
        self.meter.charge_bytes(text.len())?;
        Ok(text)
    }

    /// `true`, `false`, `inf`, `nan`: a value that begins with a letter, which is taken.
    fn word(&mut self, first: char, start: usize) -> Step<Value> {
        let scanner = &mut self.scanner;
        // What is tried first and does not fit is not put back whole: the text tells so.
        if matches!(first, 'i' | 'n')
            && ((scanner.accept('n')? && scanner.accept('f')?)
                || (scanner.accept('a')? && scanner.accept('n')?))
        {
            return Ok(scanner.float(&scanner.since(start))?);
        }
        let tried = scanner.pos > start + first.len_utf8();
        let from = scanner.pos - if tried { 1 } else { first.len_utf8() };
        scanner.skip(char::is_alphabetic)?;
        match scanner.since(from).as_str() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            other => {
                Ok(scanner
                    .fail(format!("expected value but found {} instead", quoted_text(other)))?)
            }
        }
    }

    /// Reads what may hold more values. The native stack bounds how deep they nest.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Step<Node>) -> Step<Node> {
        if self.depth >= MAX_NESTED {
            return Ok(self.scanner.fail("exceeded max depth")?);
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    /// An array behind its `[`.
    fn array(&mut self) -> Step<Node> {
        let key = self.key.clone();
        self.set_kind(&key, true);
        let mut items = Vec::new();
        loop {
            match self.scanner.skip_to_element()? {
                Some(',') => return Ok(self.scanner.fail("unexpected comma")?),
                end @ Some(']') => {
                    self.scanner.take(end);
                    break;
                }
                _ => items.push(self.value(true)?),
            }
            if !self.scanner.comma_or_bracket()? {
                break;
            }
        }
        Ok(Node::Array(items.into()))
    }

    /// An inline table behind its `{`. It is kept twice: as the value, and under its name, where
    /// clashes of keys are found.
    fn inline_table(&mut self, in_array: bool) -> Step<Node> {
        let (outer, outer_key) = (self.context.clone(), self.key.clone());
        self.context.push(std::mem::take(&mut self.key));
        let own = self.context.clone();
        self.charge(&own, &[])?;
        self.note_implicit(&own)?;
        self.add_context(&own, in_array)?;
        let whole = self.new_table();
        loop {
            match self.scanner.skip_to_element()? {
                Some(',') => return Ok(self.scanner.fail("unexpected comma")?),
                end @ Some('}') => {
                    self.scanner.take(end);
                    break;
                }
                _ => {}
            }
            let (path, value) = self.pair()?;
            self.put(whole, &path, value)?;
            self.context.clone_from(&own);
            if !self.scanner.comma_or_brace()? {
                break;
            }
        }
        self.context = outer;
        self.key = outer_key;
        Ok(Node::Table(whole))
    }

    /// Puts a value into a table, through others that may have to be made.
    fn put(&mut self, table: usize, path: &[String], value: Node) -> Step<()> {
        let Some((last, parents)) = path.split_last() else { return Ok(()) };
        let mut at = table;
        for part in parents {
            at = match self.tables.get(at).and_then(|table| table.get(part)) {
                Some(Node::Table(inner)) => *inner,
                Some(_) => {
                    return self.refuse(format!("{} is not a table", quoted_list(&self.context)));
                }
                None => {
                    let inner = self.new_table();
                    self.insert(at, part, Node::Table(inner));
                    inner
                }
            };
        }
        self.insert(at, last, value);
        Ok(())
    }

    fn new_table(&mut self) -> usize {
        self.tables.push(BTreeMap::new());
        self.tables.len() - 1
    }

    fn insert(&mut self, table: usize, key: &str, value: Node) {
        if let Some(table) = self.tables.get_mut(table) {
            table.insert(key.to_owned(), value);
        }
    }

    fn get(&self, table: usize, key: &str) -> Option<&Node> {
        self.tables.get(table)?.get(key)
    }

    /// Makes a table, or the next one of an array of tables, the context.
    fn add_context(&mut self, key: &[String], array: bool) -> Step<()> {
        let Some((last, parents)) = key.split_last() else { return Ok(()) };
        let mut table = 0;
        for (at, part) in parents.iter().enumerate() {
            let name = key.get(..=at).unwrap_or_default();
            if self.get(table, part).is_none() {
                self.note_implicit(name)?;
                let inner = self.new_table();
                self.insert(table, part, Node::Table(inner));
            }
            table = match self.get(table, part) {
                Some(Node::Table(inner)) => *inner,
                Some(Node::Tables(all)) => all.last().copied().unwrap_or(0),
                _ => {
                    return self
                        .refuse(format!("Key '{}' was already created as a hash.", dotted(name)));
                }
            };
        }
        self.context = parents.to_vec();
        if array {
            let next = self.new_table();
            let inside = self.tables.get_mut(table);
            let node = inside.map(|inside| {
                inside.entry(last.clone()).or_insert_with(|| Node::Tables(Vec::new()))
            });
            match node {
                Some(Node::Tables(all)) => all.push(next),
                _ => {
                    return self.refuse(format!(
                        "Key '{}' was already created and cannot be used as an array.",
                        dotted(key)
                    ));
                }
            }
        } else {
            let inner = self.new_table();
            self.set_value(last, Node::Table(inner))?;
        }
        self.context.push(last.clone());
        Ok(())
    }

    /// Sets a key of the context, which must not be defined yet, but for one made in passing.
    fn set_value(&mut self, key: &str, value: Node) -> Step<()> {
        let mut table = 0;
        for (at, part) in self.context.iter().enumerate() {
            table = match self.get(table, part) {
                Some(Node::Table(inner)) => *inner,
                Some(Node::Tables(all)) => all.last().copied().unwrap_or(0),
                _ => {
                    let name = dotted(self.context.get(..=at).unwrap_or_default());
                    return self.refuse(format!("Key '{name}' has already been defined."));
                }
            };
        }
        let mut whole = self.context.clone();
        whole.push(key.to_owned());
        let name = dotted(&whole);
        if self.get(table, key).is_some() {
            if !self.implicit.remove(&name) {
                return self.refuse(format!("Key '{name}' has already been defined."));
            }
            if self.arrays.get(&name) != Some(&true) {
                return Ok(());
            }
        }
        self.insert(table, key, value);
        Ok(())
    }

    /// Notes a table that is made in passing.
    fn note_implicit(&mut self, table: &[String]) -> Step<()> {
        let name = dotted(table);
        self.meter.charge_bytes(name.len() + 64)?;
        self.implicit.insert(name);
        Ok(())
    }

    /// Notes whether a key of the context (or the context) holds an array.
    fn set_kind(&mut self, key: &str, array: bool) {
        let mut whole = self.context.clone();
        if !key.is_empty() || whole.is_empty() {
            whole.push(key.to_owned());
        }
        self.arrays.insert(dotted(&whole), array);
    }
}

/// A list of strings as Go's `%q` prints it.
fn quoted_list(parts: &[String]) -> String {
    let all: Vec<String> = parts.iter().map(|part| quoted_text(part)).collect();
    format!("[{}]", all.join(" "))
}
