//! The parser. Expressions become trees; statements go straight to the compiler.

pub(crate) mod ast;
mod control;
mod expr;
mod lex;
mod number;
pub(crate) mod token;

pub(crate) use lex::count_newlines;

use std::collections::HashMap;
use std::sync::Arc;

use crate::compile::{Builder, Label, Mark, Source, Template};
use crate::error::Error;
use crate::fmt::quote_str;
use crate::func::Functions;
use crate::value::Str;
use ast::Pipe;
use lex::Lexer;
use token::{Kind, Token};

/// How deep parentheses may nest. Go allows 10000, on a stack that grows.
const MAX_PARENS: usize = 300;

/// What a text gave: its own template and those it defines, each name once.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub main: Arc<Template>,
    pub defined: Vec<Arc<Template>>,
}

/// Parses a text under a name.
pub(crate) fn parse(name: &Str, text: &[u8], functions: &Arc<Functions>) -> Result<Parsed, Error> {
    let source = Arc::new(Source { name: name.clone(), text: text.to_vec() });
    let mut lexer = Lexer::new(&source.text);
    lexer.break_keyword = functions.get("break").is_none();
    lexer.continue_keyword = functions.get("continue").is_none();
    let mut parser = Parser {
        lexer,
        pending: Vec::new(),
        line: 1,
        functions,
        source: Arc::clone(&source),
        tree: Tree::new(name.to_string(), Goal::Main, functions),
        outer: Vec::new(),
        defined: HashMap::new(),
    };
    let result = parser.run().and_then(|()| parser.add_tree());
    let main =
        result.map_err(|message| Error::parse(&name.to_str_lossy(), parser.line, message))?;
    parser.defined.remove(name);
    Ok(Parsed { main, defined: parser.defined.into_values().collect() })
}

/// An error's text, without the place.
type Message = String;

struct Parser<'t> {
    lexer: Lexer<'t>,
    /// Tokens given back, the next one last.
    pending: Vec<Token<'t>>,
    /// The line of the last token scanned: the one errors name.
    line: usize,
    functions: &'t Arc<Functions>,
    source: Arc<Source>,
    /// The template at work.
    tree: Tree,
    /// Those that its definition interrupts.
    outer: Vec<Tree>,
    defined: HashMap<Str, Arc<Template>>,
}

/// Why a template is being parsed.
enum Goal {
    Main,
    Define,
    /// Behind the body comes a call of it.
    Block {
        pos: usize,
        pipe: Pipe,
        /// Where the header ends: the line Go names when an else stands in the body.
        line: usize,
    },
}

impl Goal {
    fn context(&self) -> &'static str {
        match self {
            Self::Main => "input",
            Self::Define => "define clause",
            Self::Block { .. } => "block clause",
        }
    }
}

/// One template at work.
struct Tree {
    name: String,
    goal: Goal,
    builder: Builder,
    /// Variables the parser lets pass; the compiler knows better which are really there.
    vars: Vec<String>,
    parens: usize,
    /// Where the action at work started, 0 if none is.
    action_line: usize,
    opens: Vec<Open>,
}

/// An `if`, `with` or `range` that waits for its end.
struct Open {
    kind: OpenKind,
    vars: usize,
    outside: Mark,
    /// The scope of the else branch.
    in_else: Mark,
    /// To be landed at the else branch or the end.
    otherwise: Option<Label>,
    /// To be landed at the end.
    ends: Vec<Label>,
    has_else: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenKind {
    If,
    With,
    Range { head: Label },
}

impl Tree {
    fn new(name: String, goal: Goal, functions: &Arc<Functions>) -> Self {
        Self {
            name,
            goal,
            builder: Builder::new(Arc::clone(functions)),
            vars: vec!["$".to_owned()],
            parens: 0,
            action_line: 0,
            opens: Vec::new(),
        }
    }
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Token<'t> {
        if let Some(token) = self.pending.pop() {
            return token;
        }
        let token = self.lexer.next_token();
        self.line = token.line;
        token
    }

    fn back(&mut self, token: Token<'t>) {
        self.pending.push(token);
    }

    fn peek(&mut self) -> Kind {
        let token = self.next();
        let kind = token.kind;
        self.back(token);
        kind
    }

    fn next_non_space(&mut self) -> Token<'t> {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token<'t> {
        let token = self.next_non_space();
        self.back(token.clone());
        token
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token<'t>, Message> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    fn unexpected(&mut self, token: &Token<'_>, context: &str) -> Message {
        let shown = token.describe();
        if token.kind != Kind::Error {
            return format!("unexpected {shown} in {context}");
        }
        let started = self.tree.action_line;
        if started == 0 || started == token.line {
            return shown;
        }
        // "unclosed action in action started" would say it twice.
        let link = if shown.ends_with(" action") { " started at" } else { " in action started at" };
        format!("{shown}{link} {}:{started}", self.source.name)
    }

    fn run(&mut self) -> Result<(), Message> {
        loop {
            let at_top = self.outer.is_empty() && self.tree.opens.is_empty();
            let token = if at_top { self.next() } else { self.next_non_space() };
            match token.kind {
                Kind::Eof if at_top => return Ok(()),
                Kind::Eof => return Err("unexpected EOF".to_owned()),
                Kind::Text => self.text(&token),
                Kind::LeftDelim => self.statement(&token, at_top)?,
                _ => return Err(self.unexpected(&token, "input")),
            }
        }
    }

    /// Begins a template inside the one at work.
    fn begin_tree(&mut self, name: String, goal: Goal) {
        let tree = Tree::new(name, goal, self.functions);
        self.outer.push(std::mem::replace(&mut self.tree, tree));
    }

    fn text(&mut self, token: &Token<'t>) {
        let blank = String::from_utf8_lossy(&token.text).trim().is_empty();
        let end = token.pos + token.text.len();
        let builder = &mut self.tree.builder;
        builder.empty &= blank;
        builder.text(token.pos, end);
    }

    /// Adds the template at work to what the text defines, and goes back to the one it
    /// interrupted. The one that counts under a name is the one that is not empty.
    fn add_tree(&mut self) -> Result<Arc<Template>, Message> {
        let outer = self.outer.pop();
        let outer = outer.unwrap_or_else(|| Tree::new(String::new(), Goal::Main, self.functions));
        let tree = std::mem::replace(&mut self.tree, outer);
        let name: Str = tree.name.as_str().into();
        let template = tree.builder.finish(name.clone(), Arc::clone(&self.source));
        match self.defined.get(&name) {
            Some(old) if !old.empty && !template.empty => {
                let name = quote_str(&tree.name);
                Err(format!("template: multiple definition of template {name}"))
            }
            Some(old) if !old.empty => Ok(Arc::clone(old)),
            _ => {
                let template = Arc::new(template);
                self.defined.insert(name, Arc::clone(&template));
                Ok(template)
            }
        }
    }
}
