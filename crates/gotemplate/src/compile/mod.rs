//! From what the parser meets to code for the machine.

mod code;
mod expr;
mod literal;
mod show;

pub(crate) use code::{
    Instr, KEEP, Label, Names, Op, Path, Shows, Slot, Source, TOKEN_COST, Template,
};
pub(crate) use expr::wrong_count_for;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use crate::parse::ast::{NodeId, Pipe};
use crate::parse::token::index;
use crate::value::Str;
use code::Name;

/// Builds the code of one template.
#[derive(Debug)]
pub(crate) struct Builder<'t> {
    /// What the template is made of so far.
    code: Vec<Instr>,
    nodes: Vec<u32>,
    names: Vec<Name>,
    /// The printed forms of nodes, if they are asked for.
    shows: Option<Shows>,
    /// Variables in scope, innermost last; those without a name hold dots.
    scope: Vec<Option<&'t str>>,
    slots: usize,
    /// The variable that holds dot here.
    dot: Slot,
    /// Whether there is anything but white space.
    pub empty: bool,
}

/// Lists that a template is put together in, and copied out of: the next one fills them again.
#[derive(Debug, Default)]
pub(crate) struct Buffers<'t> {
    code: Vec<Instr>,
    nodes: Vec<u32>,
    names: Vec<Name>,
    scope: Vec<Option<&'t str>>,
}

/// Instructions, nodes and names of an ordinary text.
const EXPECTED: usize = 64;

impl Buffers<'_> {
    pub fn expecting_much() -> Self {
        Self {
            code: Vec::with_capacity(EXPECTED),
            nodes: Vec::with_capacity(EXPECTED),
            names: Vec::with_capacity(EXPECTED),
            scope: Vec::with_capacity(EXPECTED / 8),
        }
    }
}

/// Where to come back to when a block ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    scope: usize,
    dot: Slot,
}

impl Mark {
    /// This scope with another's dot.
    pub fn with_dot_of(self, other: Self) -> Self {
        Self { dot: other.dot, ..self }
    }
}

const ROOT: Slot = 0;
/// The index of an element before the parser has found the range's end.
const UNKNOWN: Label = Label::MAX;

impl<'t> Builder<'t> {
    pub fn new(showing: bool, mut buffers: Buffers<'t>) -> Self {
        buffers.scope.push(Some("$"));
        Self {
            code: buffers.code,
            nodes: buffers.nodes,
            names: buffers.names,
            shows: showing.then(Shows::default),
            scope: buffers.scope,
            slots: 1,
            dot: ROOT,
            empty: true,
        }
    }

    /// A new node; its text comes later.
    pub fn node(&mut self, pos: u32) -> NodeId {
        let id = index(self.nodes.len());
        self.nodes.push(pos);
        if let Some(shows) = &mut self.shows {
            shows.ranges.push(0..0);
        }
        id
    }

    /// A field's name, which stands there in the source.
    pub fn name(&mut self, start: u32, end: u32) {
        self.names.push(Name { start, end, found_at: AtomicU32::new(0) });
    }

    /// The index of the next name.
    pub fn next_name(&self) -> u32 {
        index(self.names.len())
    }

    fn emit(&mut self, op: Op, node: NodeId) {
        self.code.push(Instr { op, node });
    }

    /// Emits what takes the value of a pipeline away, whether it is an `interface {}` or not.
    fn emit_last(&mut self, op: Op, node: NodeId) {
        // No jump lands behind the end of a pipeline before this.
        if matches!(self.code.last(), Some(Instr { op: Op::Concrete, .. })) {
            self.code.pop();
        }
        self.emit(op, node);
    }

    fn here(&self) -> Label {
        index(self.code.len())
    }

    /// Lets a jump land here.
    pub fn land(&mut self, jump: Label) {
        let here = self.here();
        if let Some(instr) = self.code.get_mut(jump as usize) {
            match &mut instr.op {
                Op::Jump(to)
                | Op::JumpFalse(to)
                | Op::With { to, .. }
                | Op::ShortCircuit { to, .. }
                | Op::Method { skip: to, .. }
                | Op::RangeStart { to, .. }
                | Op::RangeNext { to, .. } => *to = here,
                _ => {}
            }
        }
    }

    /// Lets jumps land here.
    pub fn land_all(&mut self, jumps: impl IntoIterator<Item = Label>) {
        for jump in jumps {
            self.land(jump);
        }
    }

    fn declare(&mut self, name: Option<&'t str>) -> Slot {
        let slot = index(self.scope.len());
        self.scope.push(name);
        self.slots = self.slots.max(self.scope.len());
        slot
    }

    fn resolve(&self, name: &str) -> Option<Slot> {
        self.scope.iter().rposition(|variable| *variable == Some(name)).map(index)
    }

    pub fn mark(&self) -> Mark {
        Mark { scope: self.scope.len(), dot: self.dot }
    }

    /// Leaves a block.
    pub fn reset(&mut self, mark: Mark) {
        self.scope.truncate(mark.scope);
        self.dot = mark.dot;
    }

    pub fn text(&mut self, start: usize, end: usize) {
        self.emit(Op::Text { start, end }, KEEP);
    }

    /// `{{pipe}}`
    pub fn action(&mut self, pos: u32, pipe: &Pipe<'t>) {
        self.empty = false;
        let node = self.node(pos);
        self.show_action(node, pipe);
        self.pipe(pipe);
        self.emit_last(if pipe.decl.is_empty() { Op::Print } else { Op::Pop }, node);
    }

    /// `{{if pipe}}`: the jump to land where the condition does not hold.
    pub fn begin_if(&mut self, pipe: &Pipe<'t>) -> Label {
        self.empty = false;
        self.show_pipe(pipe);
        self.pipe(pipe);
        self.emit_last(Op::JumpFalse(UNKNOWN), KEEP);
        self.here() - 1
    }

    /// `{{with pipe}}`: the jump to land where the value is empty.
    pub fn begin_with(&mut self, pipe: &Pipe<'t>) -> Label {
        self.empty = false;
        self.show_pipe(pipe);
        self.pipe(pipe);
        let dot = self.declare(None);
        let jump = self.here();
        self.emit(Op::With { dot, to: UNKNOWN }, KEEP);
        self.dot = dot;
        jump
    }

    /// `{{range pipe}}`: the jump taken if there is nothing, and the head of the loop.
    pub fn begin_range(&mut self, pipe: &Pipe<'t>) -> (Label, Label) {
        self.empty = false;
        self.show_pipe(pipe);
        self.pipe(pipe);
        let start = self.here();
        self.emit(Op::RangeStart { vars: pipe.decl.len(), to: UNKNOWN }, KEEP);
        let slots: Vec<_> = pipe.decl.iter().map(|name| self.resolve(name)).collect();
        let (key, item) = match slots.as_slice() {
            [item] => (None, *item),
            [key, item] => (*key, *item),
            _ => (None, None),
        };
        let dot = self.declare(None);
        let head = self.here();
        self.emit(Op::RangeNext { dot, key, item, to: UNKNOWN }, KEEP);
        self.dot = dot;
        (start, head)
    }

    /// The end of a range's body: back to the head, which lands here when it is through.
    pub fn end_range_body(&mut self, head: Label) {
        self.jump_to(head);
        self.land(head);
    }

    /// `{{break}}`: forgets the range and gives the jump out of it.
    pub fn break_range(&mut self) -> Label {
        self.empty = false;
        self.emit(Op::RangeEnd, KEEP);
        self.jump()
    }

    /// A jump to be landed later.
    pub fn jump(&mut self) -> Label {
        let jump = self.here();
        self.emit(Op::Jump(UNKNOWN), KEEP);
        jump
    }

    /// A jump back.
    pub fn jump_to(&mut self, label: Label) {
        self.emit(Op::Jump(label), KEEP);
    }

    /// `{{template "name" pipe}}`
    pub fn template(&mut self, pos: u32, name: &str, pipe: Option<&Pipe<'t>>) {
        self.empty = false;
        let node = self.node(pos);
        self.show_template(node, name, pipe);
        self.emit(Op::CheckTemplate(name.into()), node);
        match pipe {
            Some(pipe) => self.pipe(pipe),
            None => self.emit(Op::Const(crate::Value::Nil), KEEP),
        }
        self.emit(Op::Template(name.into()), KEEP);
    }

    pub fn finish(mut self, name: Str, source: Arc<Source>) -> (Template, Buffers<'t>) {
        self.emit(Op::Return, KEEP);
        let template = Template {
            name,
            source,
            code: taken(&mut self.code),
            nodes: taken(&mut self.nodes),
            names: taken(&mut self.names),
            shows: self.shows.unwrap_or_default(),
            slots: self.slots,
            empty: self.empty,
        };
        self.scope.clear();
        let Self { code, nodes, names, scope, .. } = self;
        (template, Buffers { code, nodes, names, scope })
    }
}

/// What is in a list, which keeps its room.
fn taken<T>(list: &mut Vec<T>) -> Vec<T> {
    let mut taken = Vec::with_capacity(list.len());
    taken.append(list);
    taken
}
