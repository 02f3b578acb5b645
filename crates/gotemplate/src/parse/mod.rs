//! The parser. Expressions become trees; statements go straight to the compiler.

pub(crate) mod ast;
mod control;
mod expr;
mod lex;
mod number;
pub(crate) mod token;

use std::collections::HashMap;
use std::sync::Arc;

use crate::compile::{Buffers, Builder, Label, Mark, Shows, Source, TOKEN_COST, Template};
use crate::error::Error;
use crate::fmt::quote_str;
use crate::func::Functions;
use crate::value::Str;
use ast::{Command, Expr, ExprKind, Pipe};
use foldhash::fast::RandomState;
use lex::Lexer;
use token::{Kind, Token};

/// How deep parentheses may nest. Go allows 10000, on a stack that grows.
const MAX_PARENS: usize = 300;

/// How many variables may be in scope. They are looked for one by one; Go has no limit.
const MAX_VARIABLES: usize = 1000;

/// How deep blocks may nest: each is a scope of its own to look through. Go has no limit.
const MAX_BLOCKS: usize = 20_000;

/// What a text gave: its own template and those it defines, each name once.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub main: Arc<Template>,
    pub defined: Vec<Arc<Template>>,
    /// Bytes that all of it takes, at most.
    pub size: usize,
}

/// Parses a text under a name, into no more than so many bytes of code.
pub(crate) fn parse(
    name: &Str,
    text: Str,
    functions: &Arc<Functions>,
    room: usize,
) -> Result<Parsed, Error> {
    if text.len() > room {
        return Err(Error::too_large(&name.to_str_lossy(), 1));
    }
    let source = Arc::new(Source::new(name.clone(), text, Arc::clone(functions)));
    parse_source(&source, room, false)
}

/// How the nodes of all templates of a text are printed. It has been parsed before, without.
pub(crate) fn shows(source: &Source) -> HashMap<Str, Shows> {
    let (name, text) = (source.name.clone(), source.text.clone());
    let again = Arc::new(Source::new(name, text, Arc::clone(&source.functions)));
    let Ok(parsed) = parse_source(&again, usize::MAX, true) else { return HashMap::new() };
    let all = parsed.defined.iter().chain([&parsed.main]);
    all.map(|template| (template.name.clone(), template.shows.clone())).collect()
}

fn parse_source(source: &Arc<Source>, room: usize, showing: bool) -> Result<Parsed, Error> {
    let (name, functions) = (&source.name, &*source.functions);
    let mut lexer = Lexer::new(source.text.as_bytes());
    let names = [("break", Kind::Break), ("continue", Kind::Continue)];
    let borne = names.into_iter().filter(|(name, _)| functions.get(name).is_some());
    lexer.functions = borne.map(|(_, kind)| kind).collect();
    let builder = Builder::new(showing, Buffers::expecting_much());
    let mut parser = Parser {
        input: source.text.as_bytes(),
        text: source.text.as_str(),
        lexer,
        ahead: None,
        scanned: 0,
        functions,
        showing,
        source: Arc::clone(source),
        tree: Tree::new(name.to_string(), Goal::Main, builder),
        outer: Vec::new(),
        defined: HashMap::default(),
        size: source.text.len(),
        room,
        spare: Spare::default(),
    };
    let result = parser.run().and_then(|()| parser.end_tree());
    let main = result.map_err(|message| {
        let name = name.to_str_lossy();
        if parser.size > room {
            return Error::too_large(&name, parser.line());
        }
        Error::parse(&name, parser.line(), message)
    })?;
    if !parser.defined.is_empty() {
        parser.defined.remove(name);
    }
    let size = parser.size;
    Ok(Parsed { main, defined: parser.defined.into_values().collect(), size })
}

/// An error's text, without the place.
type Message = String;

struct Parser<'t> {
    input: &'t [u8],
    /// The same, if all of it is UTF-8.
    text: Option<&'t str>,
    lexer: Lexer<'t>,
    /// The next token, if it has been scanned already.
    ahead: Option<Token>,
    /// Where the last token scanned starts: errors name its line.
    scanned: u32,
    functions: &'t Functions,
    /// Whether nodes are to be printed as well.
    showing: bool,
    source: Arc<Source>,
    /// The template at work.
    tree: Tree<'t>,
    /// Those that its definition interrupts.
    outer: Vec<Tree<'t>>,
    defined: HashMap<Str, Arc<Template>, RandomState>,
    /// Bytes of text and code so far, at most.
    size: usize,
    room: usize,
    spare: Spare<'t>,
}

/// Lists of what has been compiled, to be filled again: there are very many.
#[derive(Default)]
struct Spare<'t> {
    buffers: Vec<Buffers<'t>>,
    commands: Vec<Vec<Command<'t>>>,
    args: Vec<Vec<Expr<'t>>>,
}

impl<'t> Spare<'t> {
    /// Takes back the lists of what is not needed any more.
    fn take(&mut self, mut pipe: Pipe<'t>) {
        while let Some(mut command) = pipe.cmds.pop() {
            while let Some(arg) = command.args.pop() {
                if let ExprKind::Pipe(inner) = arg.kind {
                    self.take(inner);
                }
            }
            self.args.push(command.args);
        }
        self.commands.push(pipe.cmds);
    }
}

/// Why a template is being parsed.
enum Goal<'t> {
    Main,
    Define,
    /// Behind the body comes a call of it.
    Block {
        pos: u32,
        pipe: Pipe<'t>,
        /// Where the header ends: Go names its line when an else stands in the body.
        header_end: u32,
    },
}

impl Goal<'_> {
    fn context(&self) -> &'static str {
        match self {
            Self::Main => "input",
            Self::Define => "define clause",
            Self::Block { .. } => "block clause",
        }
    }
}

/// One template at work.
struct Tree<'t> {
    name: String,
    goal: Goal<'t>,
    builder: Builder<'t>,
    /// Variables the parser lets pass; the compiler knows better which are really there.
    vars: Vec<&'t str>,
    parens: usize,
    /// Where the action at work started, if one is.
    action: Option<u32>,
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

impl<'t> Tree<'t> {
    fn new(name: String, goal: Goal<'t>, builder: Builder<'t>) -> Self {
        let mut vars = Vec::with_capacity(4);
        vars.push("$");
        Self { name, goal, builder, vars, parens: 0, action: None, opens: Vec::new() }
    }
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Token {
        match self.ahead.take() {
            Some(token) => token,
            None => self.scan(),
        }
    }

    fn scan(&mut self) -> Token {
        let token = self.lexer.next_token();
        self.scanned = token.start;
        self.size += TOKEN_COST;
        if self.size > self.room {
            // Whoever gets it gives up; the caller tells why.
            return Token { kind: Kind::Error, ..token };
        }
        token
    }

    /// Gives back the token that was taken last.
    fn back(&mut self, token: Token) {
        self.ahead = Some(token);
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.back(token);
        token
    }

    /// The line that errors name.
    fn line(&self) -> usize {
        line_of(self.input, self.scanned)
    }

    /// A piece of the source that is made of names, and so of UTF-8.
    fn name(&self, start: u32, end: u32) -> &'t str {
        let place = start as usize..end as usize;
        let name = match self.text {
            Some(text) => text.get(place),
            None => self.input.get(place).and_then(|name| std::str::from_utf8(name).ok()),
        };
        name.unwrap_or_default()
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token, Message> {
        let token = self.next();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(token, context)) }
    }

    fn unexpected(&mut self, token: Token, context: &str) -> Message {
        if token.kind != Kind::Error {
            return format!("unexpected {} in {context}", token.describe(self.input));
        }
        let shown = self.lexer.fault.clone();
        let Some(started) = self.tree.action.map(|start| line_of(self.input, start)) else {
            return shown;
        };
        if started == line_of(self.input, token.start) {
            return shown;
        }
        // "unclosed action in action started" would say it twice.
        let link = if shown.ends_with(" action") { " started at" } else { " in action started at" };
        format!("{shown}{link} {}:{started}", self.source.name)
    }

    fn run(&mut self) -> Result<(), Message> {
        loop {
            let at_top = self.outer.is_empty() && self.tree.opens.is_empty();
            let token = self.next();
            match token.kind {
                Kind::Eof if at_top => return Ok(()),
                Kind::Eof => return Err("unexpected EOF".to_owned()),
                Kind::Text => self.text(token),
                Kind::LeftDelim => self.statement(token, at_top)?,
                _ => return Err(self.unexpected(token, "input")),
            }
        }
    }

    /// Begins a template inside the one at work.
    fn begin_tree(&mut self, name: String, goal: Goal<'t>) {
        let buffers = self.spare.buffers.pop().unwrap_or_default();
        let builder = Builder::new(self.showing, buffers);
        let tree = Tree::new(name, goal, builder);
        self.outer.push(std::mem::replace(&mut self.tree, tree));
    }

    fn text(&mut self, token: Token) {
        let builder = &mut self.tree.builder;
        builder.empty = builder.empty && is_blank(token.text(self.input));
        builder.text(token.start as usize, token.end as usize);
    }

    /// Ends the template at work, and goes back to the one it interrupted; gives the one that counts
    /// under its name, which is the one that is not empty.
    fn end_tree(&mut self) -> Result<Arc<Template>, Message> {
        let outer = self.outer.pop().unwrap_or_else(|| {
            let builder = Builder::new(self.showing, Buffers::default());
            Tree::new(String::new(), Goal::Main, builder)
        });
        let tree = std::mem::replace(&mut self.tree, outer);
        let name: Str = tree.name.as_str().into();
        let (template, buffers) = tree.builder.finish(name.clone(), Arc::clone(&self.source));
        self.spare.buffers.push(buffers);
        match self.defined.get(&name) {
            Some(old) if !old.empty && !template.empty => {
                let name = quote_str(&tree.name);
                Err(format!("template: multiple definition of template {name}"))
            }
            Some(old) if !old.empty => Ok(Arc::clone(old)),
            _ => Ok(Arc::new(template)),
        }
    }
}

/// The line of a place in a text, from 1.
pub(crate) fn line_of(text: &[u8], place: u32) -> usize {
    let before = text.get(..place as usize).unwrap_or(text);
    1 + memchr::memchr_iter(b'\n', before).count()
}

/// Whether there is nothing but white space.
fn is_blank(text: &[u8]) -> bool {
    match text.trim_ascii_start().first() {
        None => true,
        // As nearly always; the rest need not be looked at.
        Some(first) if first.is_ascii_graphic() => false,
        Some(_) => String::from_utf8_lossy(text).trim().is_empty(),
    }
}
