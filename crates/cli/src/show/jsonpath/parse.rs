//! From text to a template.

use serde_json::{Number, Value};

use super::{Bound, Fault, MAX_DEPTH, Node, Step};

/// Reads text with paths in braces.
pub(super) fn template(text: &str, depth: usize) -> Result<Vec<Node>, Fault> {
    let mut nodes = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (plain, inside) = rest.split_at(start);
        if !plain.is_empty() {
            nodes.push(Node::Text(plain.to_owned()));
        }
        let mut action = Action { rest: inside.get(1..).unwrap_or_default(), depth };
        nodes.push(Node::Steps(action.steps()?));
        rest = action.rest;
    }
    if !rest.is_empty() {
        nodes.push(Node::Text(rest.to_owned()));
    }
    Ok(nodes)
}

/// A path without braces.
fn path(text: &str, depth: usize) -> Result<Vec<Step>, Fault> {
    if depth > MAX_DEPTH {
        return Err("too deep".to_owned());
    }
    match template(&format!("{{{text}}}"), depth)?.into_iter().next() {
        Some(Node::Steps(steps)) => Ok(steps),
        _ => Ok(Vec::new()),
    }
}

/// What is inside of braces.
struct Action<'t> {
    rest: &'t str,
    depth: usize,
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'t> Action<'t> {
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn steps(&mut self) -> Result<Vec<Step>, Fault> {
        let mut steps = Vec::new();
        loop {
            if self.rest.starts_with("[?(") {
                self.take(3);
                steps.push(self.filter()?);
                continue;
            }
            if self.rest.starts_with("..") {
                if steps.last() == Some(&Step::Recursive) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                self.take(2);
                steps.push(Step::Recursive);
                if self.rest.starts_with(is_word) {
                    steps.push(self.field());
                }
                continue;
            }
            match self.rest.chars().next() {
                Some('}') => {
                    self.take(1);
                    return Ok(steps);
                }
                None | Some('\n' | '\r') => return Err("unclosed action".to_owned()),
                Some(' ' | '@' | '$') => {
                    self.take(1);
                }
                Some('[') => self.array(&mut steps)?,
                Some(quote @ ('"' | '\'')) => steps.push(self.quoted(quote)?),
                Some('.') => {
                    self.take(1);
                    steps.push(self.field());
                }
                Some(c) if c == '+' || c == '-' || c.is_ascii_digit() => {
                    steps.push(self.number()?);
                }
                Some(c) if is_word(c) => steps.push(self.word()),
                Some(c) => {
                    let code = u32::from(c);
                    return Err(format!("unrecognized character in action: U+{code:04X} '{c}'"));
                }
            }
        }
    }

    fn field(&mut self) -> Step {
        let mut escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = !escaped && is_terminator(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let name = self.take(end.unwrap_or(self.rest.len()));
        if name == "*" { Step::Wildcard } else { Step::Field(name.replace('\\', "")) }
    }

    fn word(&mut self) -> Step {
        let word = self.take(self.rest.find(is_terminator).unwrap_or(self.rest.len()));
        match word {
            "true" => Step::Literal(true.into()),
            "false" => Step::Literal(false.into()),
            word => Step::Word(word.to_owned()),
        }
    }

    fn number(&mut self) -> Result<Step, Fault> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest.get(sign..).unwrap_or_default();
        let end = digits.find(|c: char| c != '.' && !c.is_ascii_digit());
        let text = self.take(sign + end.unwrap_or(digits.len()));
        if let Ok(whole) = text.parse::<i64>() {
            return Ok(Step::Literal(whole.into()));
        }
        let number = text.parse::<f64>().ok().and_then(Number::from_f64);
        let number = number.ok_or_else(|| format!("cannot parse number {text}"))?;
        Ok(Step::Literal(Value::Number(number)))
    }

    fn quoted(&mut self, quote: char) -> Result<Step, Fault> {
        self.take(1);
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\n' => break,
                c if c == quote => {
                    self.take(at + 1);
                    return Ok(Step::Literal(text.into()));
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, c @ ('\\' | '"' | '\''))) => text.push(c),
                    _ => return Err(format!("unquote string {} error invalid syntax", self.rest)),
                },
                c => text.push(c),
            }
        }
        Err("unterminated quoted string".to_owned())
    }

    fn array(&mut self, steps: &mut Vec<Step>) -> Result<(), Fault> {
        let end = self.rest.find([']', '\n']);
        let end = end.filter(|end| self.rest.get(*end..).is_some_and(|rest| rest.starts_with(']')));
        let Some(end) = end else { return Err("unterminated array".to_owned()) };
        let whole = self.take(end + 1);
        let text = whole.trim_start_matches('[').trim_end_matches(']');
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let parts = text.split(',');
            let parts =
                parts.map(|part| path(&format!("[{}]", part.trim_matches(' ')), self.depth + 1));
            steps.push(Step::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            steps.extend(path(&format!(".{key}"), self.depth + 1)?);
            return Ok(());
        }
        steps.push(Step::Slice(bounds(text)?));
        Ok(())
    }

    fn filter(&mut self) -> Result<Step, Fault> {
        let mut quote = None;
        let mut closed = false;
        let mut before = ' ';
        let mut end = None;
        for (at, c) in self.rest.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                c if Some(c) == quote && before != '\\' => closed = true,
                ')' if quote.is_some() == closed => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
            before = c;
        }
        let Some(end) = end else { return Err("unterminated filter".to_owned()) };
        let text = self.take(end);
        self.take(1);
        if self.take(1) != "]" {
            return Err("unclosed array expect ]".to_owned());
        }
        let is_operator = |c: char| matches!(c, '!' | '<' | '=' | '>');
        let parts = text.find(is_operator).filter(|at| *at > 0).and_then(|at| {
            let (left, rest) = text.split_at(at);
            let length = rest.find(|c| !is_operator(c))?;
            Some((left, rest.split_at(length)))
        });
        let depth = self.depth + 1;
        Ok(match parts {
            Some((left, (operator, right))) => Step::Filter {
                left: path(left, depth)?,
                operator: operator.to_owned(),
                right: path(right, depth)?,
            },
            None => Step::Filter {
                left: path(text, depth)?,
                operator: "exists".to_owned(),
                right: Vec::new(),
            },
        })
    }
}

fn bounds(text: &str) -> Result<[Bound; 3], Fault> {
    let mut bounds = [Bound::default(); 3];
    let parts: Vec<&str> = text.split(':').collect();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let sound = |part: &&str| digits(part.strip_prefix('-').unwrap_or(part));
    if parts.len() > 3 || !parts.iter().all(sound) {
        return Err(format!("invalid array index {text}"));
    }
    for (bound, part) in bounds.iter_mut().zip(&parts) {
        if !part.is_empty() {
            let number = part.parse().map_err(|_| format!("array index {part} is not a number"))?;
            bound.given = Some(number);
        }
    }
    if let ([first, last, _], 1) = (&mut bounds, parts.len()) {
        *last = Bound { given: Some(first.given.unwrap_or(0) + 1), derived: true };
    }
    Ok(bounds)
}
