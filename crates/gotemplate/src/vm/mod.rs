//! The machine. All its stacks are on the heap, however deep templates nest.

mod account;
mod call;
mod field;
mod range;
mod step;

use std::sync::Arc;

use crate::compile::{KEEP, Label, Template};
use crate::error::{Error, ErrorKind, FuncError};
use crate::func::{Ctx, Then};
use crate::parse::ast::NodeId;
use crate::set::{Overlay, TemplateSet};
use crate::value::{Method, Str, Value};
pub(crate) use field::zero;
use range::Iter;

/// How deep `{{template}}` may nest within one `include`, as in Go.
const MAX_TEMPLATE_DEPTH: usize = 100_000;

/// Errors longer than this, in bytes, go up as they are, without the places further out.
const MAX_ERROR_TEXT: usize = 256 << 10;

/// One execution.
pub(crate) struct Machine<'a> {
    ctx: &'a mut Ctx,
    set: &'a TemplateSet,
    frames: Vec<Frame>,
    /// Where the topmost frame is.
    pc: usize,
    /// The node that an error would show.
    at: NodeId,
    stack: Vec<Value>,
    /// For each value on the stack: whether Go would hold it in an `interface {}`.
    ifaces: Vec<bool>,
    vars: Vec<(Value, bool)>,
    iters: Vec<Iter>,
    methods: Vec<(&'static Method, Value)>,
    captures: Vec<Capture>,
    out: Vec<u8>,
    /// Entries of maps that are being ranged over.
    ranged: usize,
    /// Nobody else holds values made since the heap was sealed.
    alone: bool,
}

/// Stacks of a machine that is done, empty, for the next one of its rendering: they have room already.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: Vec<Frame>,
    stack: Vec<Value>,
    ifaces: Vec<bool>,
    vars: Vec<(Value, bool)>,
    captures: Vec<Capture>,
}

/// A running template.
#[derive(Debug)]
struct Frame {
    template: Arc<Template>,
    pc: usize,
    at: NodeId,
    /// Where its variables start.
    vars: usize,
    overlay: Option<Arc<Overlay>>,
    /// `{{template}}`s within the same execution.
    depth: usize,
    /// Whether a function waits for the output: the topmost of the captures is its own.
    captured: bool,
}

/// A function that waits for a template's output, and what to come back to.
#[derive(Debug)]
struct Capture {
    name: &'static str,
    cmd: NodeId,
    /// Where its arguments start, which stay on the stack until then, and how many they are.
    stack: usize,
    args: usize,
    then: Then,
    out: usize,
    iters: usize,
    methods: usize,
}

/// Values at work, and variables in scope, of ordinary templates.
const EXPECTED: usize = 16;
/// Room for as many bytes of output is made beforehand, at most.
const MAX_OUT_EXPECTED: usize = 4 << 10;

/// Shorter names are looked up within a step.
const LONG_NAME: usize = 256;

/// What comes after an instruction.
pub(crate) enum Flow {
    Next,
    Jump(Label),
    /// Another frame is on top now, or the same at another place.
    Switch,
    Done,
}

impl<'a> Machine<'a> {
    pub fn new(ctx: &'a mut Ctx, set: &'a TemplateSet) -> Self {
        let mut stacks = std::mem::take(&mut ctx.stacks);
        stacks.frames.reserve(EXPECTED / 2);
        stacks.stack.reserve(EXPECTED);
        stacks.ifaces.reserve(EXPECTED);
        stacks.vars.reserve(EXPECTED);
        let Stacks { frames, stack, ifaces, vars, captures } = stacks;
        Self {
            ctx,
            set,
            frames,
            pc: 0,
            at: KEEP,
            stack,
            ifaces,
            vars,
            iters: Vec::new(),
            methods: Vec::new(),
            captures,
            out: Vec::new(),
            ranged: 0,
            alone: false,
        }
    }

    /// Nobody else holds values that were made since the heap was sealed.
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    pub fn execute(mut self, template: Arc<Template>, data: Value) -> Result<Vec<u8>, Error> {
        // Most texts grow little or shrink.
        self.out.reserve(template.source.text.len().min(MAX_OUT_EXPECTED));
        self.enter(template, data, None, 0, false);
        loop {
            match self.run() {
                Ok(()) => return Ok(self.done()),
                Err(error) => self.unwind(error)?,
            }
        }
    }

    /// Leaves the stacks to the next, and gives the output.
    fn done(mut self) -> Vec<u8> {
        self.truncate(0);
        let Self { frames, stack, ifaces, vars, captures, .. } = self;
        self.ctx.stacks = Stacks { frames, stack, ifaces, vars, captures };
        self.out
    }

    /// Runs until the outermost frame is done.
    pub(crate) fn run(&mut self) -> Result<(), FuncError> {
        while let Some(frame) = self.frames.last() {
            let template = Arc::clone(&frame.template);
            while let Some(instr) = template.code.get(self.pc) {
                self.ctx.meter.charge_steps(1)?;
                self.pc += 1;
                if instr.node != KEEP {
                    self.at = instr.node;
                }
                match self.step(&template, &instr.op)? {
                    Flow::Next => {}
                    Flow::Jump(to) => self.pc = to as usize,
                    Flow::Switch => break,
                    Flow::Done => return Ok(()),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn push(&mut self, value: Value, iface: bool) {
        self.stack.push(value);
        self.ifaces.push(iface);
    }

    pub(crate) fn pop(&mut self) -> (Value, bool) {
        let iface = self.ifaces.pop().unwrap_or_default();
        (self.stack.pop().unwrap_or_default(), iface)
    }

    fn truncate(&mut self, len: usize) {
        self.stack.truncate(len);
        self.ifaces.truncate(len);
    }

    /// The template of that name, as the running one sees it.
    fn lookup(&self, name: &Str) -> Option<Arc<Template>> {
        let overlay = self.frames.last().and_then(|frame| frame.overlay.as_ref());
        let found = overlay.and_then(|overlay| overlay.get(name)).or_else(|| self.set.get(name));
        found.map(Arc::clone)
    }

    fn check_depth(&mut self) -> Result<(), FuncError> {
        self.account()?;
        let limit = self.ctx.meter.budget().depth;
        if self.frames.len() >= limit {
            let text = format!("exceeded the limit of {limit} nested templates");
            return Err(FuncError::budget(ErrorKind::Depth, text));
        }
        Ok(())
    }

    /// Puts a template's frame on top.
    fn enter(
        &mut self,
        template: Arc<Template>,
        data: Value,
        overlay: Option<Arc<Overlay>>,
        depth: usize,
        captured: bool,
    ) {
        if let Some(frame) = self.frames.last_mut() {
            frame.pc = self.pc;
            frame.at = self.at;
        }
        let vars = self.vars.len();
        self.vars.resize(vars + template.slots, (Value::Nil, false));
        if let Some(root) = self.vars.get_mut(vars) {
            root.0 = data;
        }
        self.frames.push(Frame { template, pc: 0, at: KEEP, vars, overlay, depth, captured });
        (self.pc, self.at) = (0, KEEP);
    }

    /// Takes the topmost frame away; the one below goes on where it was.
    fn leave(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        self.vars.truncate(frame.vars);
        if let Some(below) = self.frames.last() {
            (self.pc, self.at) = (below.pc, below.at);
        }
        Some(frame)
    }

    /// The end of a template.
    fn finish(&mut self) -> Result<Flow, FuncError> {
        let Some(frame) = self.leave() else { return Ok(Flow::Done) };
        if frame.captured
            && let Some(capture) = self.captures.pop()
        {
            let start = capture.out.min(self.out.len());
            let output = self.out.get(start..).unwrap_or_default();
            self.ctx.meter.charge_bytes(output.len())?;
            let output = Str::from(output);
            self.out.truncate(start);
            self.resume(&capture, Ok(output))?;
            self.account()?;
        }
        Ok(if self.frames.is_empty() { Flow::Done } else { Flow::Switch })
    }

    /// Lets a waiting function make its result.
    fn resume(&mut self, capture: &Capture, output: Result<Str, Error>) -> Result<(), FuncError> {
        let args = self.stack.get(capture.stack..capture.stack + capture.args);
        let result = (capture.then)(self.ctx, args.unwrap_or_default(), output);
        self.truncate(capture.stack);
        let value = result.map_err(|error| self.calling(capture.name, capture.cmd, error))?;
        self.push_result(value);
        Ok(())
    }

    /// Goes up from an error to a function that takes it, or out.
    pub(crate) fn unwind(&mut self, error: FuncError) -> Result<(), Error> {
        let mut error = self.locate(error);
        while let Some(frame) = self.leave() {
            if !frame.captured {
                continue;
            }
            let Some(capture) = self.captures.pop() else { continue };
            self.out.truncate(capture.out);
            self.iters.truncate(capture.iters);
            self.ranged = self.iters.iter().map(Iter::held).sum();
            self.methods.truncate(capture.methods);
            // Nobody may catch a used-up budget; and each level around an endless error would copy
            // all of it once more.
            if error.kind().is_budget() || error.text_len() > MAX_ERROR_TEXT {
                // But which file it was that ran a text shows.
                if self.is_text(Some(&frame.template)) && !self.is_text(self.template_at_top()) {
                    let outer = FuncError::wrap("", error);
                    let outer = self.calling(capture.name, capture.cmd, outer);
                    error = self.locate(outer);
                }
                continue;
            }
            match self.resume(&capture, Err(error)) {
                Ok(()) => return Ok(()),
                Err(outer) => error = self.locate(outer),
            }
        }
        Err(error)
    }

    fn template_at_top(&self) -> Option<&Arc<Template>> {
        self.frames.last().map(|frame| &frame.template)
    }

    /// Whether a template comes from a text that was made while rendering: it bears a name that none
    /// of the set has.
    fn is_text(&self, template: Option<&Arc<Template>>) -> bool {
        template.is_some_and(|template| self.set.get(&template.source.name).is_none())
    }

    /// An error with the place where the topmost frame is.
    fn locate(&self, error: FuncError) -> Error {
        let Some(frame) = self.frames.last() else { return Error::unplaced(error) };
        Error::exec(frame.template.place(self.at), error)
    }
}
