//! Compiled templates: plain data.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use crate::error::Place;
use crate::func::{Func, Functions};
use crate::parse::ast::{Literal, NodeId};
use crate::value::{Str, Type, Value};

/// Where in the code. Small, as all that is in an instruction: there are very many.
pub(crate) type Label = u32;
/// Which variable of a frame.
pub(crate) type Slot = u32;
/// How many arguments are written.
pub(crate) type Count = u32;

/// Which of a template's names: fields one behind the other.
pub(crate) type Path = Range<u32>;

/// "Leave the current node as it is."
pub(crate) const KEEP: NodeId = NodeId::MAX;

/// One instruction. The machine has a stack of values; each knows besides whether Go would hold it
/// in an `interface {}` (which only shows for nil and in error texts).
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Writes a piece of the source.
    Text { start: usize, end: usize },
    /// Pushes a variable; dot is one too.
    Load(Slot),
    /// Pushes what fields of a variable lead to, as [`Op::Fields`] does.
    Path { slot: Slot, names: Path },
    /// Pops into a variable, or copies the top into it.
    Store { slot: Slot, pop: bool },
    /// Pushes a constant.
    Const(Value),
    /// Pushes a nil that is an `interface {}`.
    NilInterface,
    /// Replaces the top by a field, key or result of a method without arguments, and that by the
    /// next; a method's error shows `owner`.
    Fields { names: Path, owner: NodeId },
    /// Pops a receiver; if it is nothing, so is the result. Else prepares a method call.
    Method { name: Str, args: Count, has_final: bool, skip: Label },
    /// A literal or nil as an argument of the prepared method.
    MethodLiteral { index: usize, literal: Option<Box<Literal<'static>>> },
    /// Checks the top against a parameter of the prepared method.
    MethodCheck(usize),
    /// Calls the prepared method.
    MethodCall { name: Str, args: Count, has_final: bool, owner: NodeId },
    /// Checks the top against a parameter's type.
    Check(Type),
    /// Calls a function on the topmost arguments.
    Call { func: Arc<Func>, args: Count, has_final: bool, cmd: NodeId },
    /// The builtin `call`; the name is the callee's source.
    CallValue { name: Box<str>, args: Count, has_final: bool, cmd: NodeId },
    /// The top is no `interface {}` any more: the end of a pipeline's command.
    Concrete,
    /// Jumps, keeping the top, if its truth is as given; else drops it.
    ShortCircuit { when: bool, to: Label },
    /// Drops the value under the top.
    DropUnder,
    /// Drops the top.
    Pop,
    /// Prints the top.
    Print,
    /// Goes on elsewhere.
    Jump(Label),
    /// Pops; jumps if it is false.
    JumpFalse(Label),
    /// Pops; makes it dot if it is true, else jumps.
    With { dot: Slot, to: Label },
    /// Pops what to range over; jumps if there is nothing in it.
    RangeStart { vars: usize, to: Label },
    /// Sets dot and the variables for the next element; jumps if there is none.
    RangeNext { dot: Slot, key: Option<Slot>, item: Option<Slot>, to: Label },
    /// Forgets the innermost range.
    RangeEnd,
    /// Pops the data and runs a template; errors of its own show `node`, set before the data.
    Template(Str),
    /// Checks that a template may be run here.
    CheckTemplate(Str),
    /// An error known beforehand, that Go gives only when it comes here.
    Fail(String),
    /// The end.
    Return,
}

/// An instruction and the node that errors show from here on.
#[derive(Clone, Debug)]
pub(crate) struct Instr {
    pub op: Op,
    pub node: NodeId,
}

/// What one token of a template takes at most, in bytes, once it is compiled: an instruction, a node,
/// a name. (While its action is being compiled it takes some more.)
pub(crate) const TOKEN_COST: usize = size_of::<Instr>() + size_of::<u32>() + 40;

/// How Go prints the nodes of a template in errors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shows {
    pub text: String,
    /// For each node, where its form stands in the text.
    pub ranges: Vec<Range<usize>>,
}

/// The name of a field: where it stands in the source, and where in a map it was found last.
#[derive(Debug)]
pub(crate) struct Name {
    pub start: u32,
    pub end: u32,
    pub found_at: AtomicU32,
}

/// Names of fields one behind the other.
#[derive(Clone)]
pub(crate) struct Names<'n> {
    names: &'n [Name],
    source: &'n [u8],
}

impl<'n> Iterator for Names<'n> {
    /// A name, and where it was found last.
    type Item = (&'n [u8], &'n AtomicU32);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.names.split_first()?;
        self.names = rest;
        let text = self.source.get(name.start as usize..name.end as usize);
        Some((text.unwrap_or_default(), &name.found_at))
    }
}

/// One compiled template.
#[derive(Debug)]
pub(crate) struct Template {
    pub name: Str,
    pub source: Arc<Source>,
    pub code: Vec<Instr>,
    /// Where each node stands in the source.
    pub nodes: Vec<u32>,
    /// The names of fields.
    pub names: Vec<Name>,
    /// Empty unless asked for; see [`Source::shown`].
    pub shows: Shows,
    /// How many variables its frame needs.
    pub slots: usize,
    /// Nothing but white space and comments.
    pub empty: bool,
}

/// A parsed text; all templates that it defines share it.
pub(crate) struct Source {
    /// The name under which it was parsed.
    pub name: Str,
    pub text: Str,
    /// Those it was parsed with.
    pub functions: Arc<Functions>,
    /// Only errors need it: it is found out by parsing once more, when the first one is made.
    shows: OnceLock<HashMap<Str, Shows>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Source {
    pub fn new(name: Str, text: Str, functions: Arc<Functions>) -> Self {
        Self { name, text, functions, shows: OnceLock::new() }
    }

    /// How Go prints a node of one of its templates.
    fn shown(&self, template: &Str, node: NodeId) -> &str {
        let all = self.shows.get_or_init(|| crate::parse::shows(self));
        let shows = all.get(template);
        let shown =
            shows.and_then(|shows| shows.text.get(shows.ranges.get(node as usize)?.clone()));
        shown.unwrap_or_default()
    }
}

impl Template {
    /// The names of fields one behind the other.
    pub fn path(&self, path: &Path) -> Names<'_> {
        let names = self.names.get(path.start as usize..path.end as usize).unwrap_or_default();
        Names { names, source: self.source.text.as_bytes() }
    }

    /// Where a node stands, for an error.
    pub fn place(&self, node: NodeId) -> Place {
        let pos = self.nodes.get(node as usize).copied().unwrap_or_default();
        let text = self.source.text.as_bytes();
        let before = text.get(..pos as usize).unwrap_or_default();
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Place {
            file: self.source.name.to_string(),
            line: crate::parse::line_of(text, pos),
            column: before.len() - line_start,
            template: self.name.to_string(),
            expression: self.source.shown(&self.name, node).to_owned(),
            message: String::new(),
        }
    }
}
