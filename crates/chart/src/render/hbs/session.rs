//! What one run of the crate keeps of the rendering around it.
//!
//! The crate knows JSON and nothing else. What it gets of values are their numbers in a table
//! here, so that it moves handles while the values stay what they are: of their Go types, and the
//! very maps and lists that Go templates see.

use std::sync::{Mutex, MutexGuard, PoisonError};

use catamaran_gotemplate::{Argument, Ctx, FuncError, Str, Value};
use handlebars::{Output, PathAndJson, RenderError, RenderErrorReason};
use serde_json::Value as Json;

use crate::render::functions::State;
use crate::render::templates::Templates;
use crate::values::tables;

/// A value, and whether Go would hold it in an `interface {}`.
pub(super) type Slot = (Value, bool);

/// An element for `each`, with its key if it is a map's.
pub(super) type Item = (Option<Value>, Slot);

/// The session, as the helpers share it. Never held while the crate runs something.
pub(super) type Shared<'a> = Mutex<Session<'a>>;

/// See the module.
pub(super) struct Session<'a> {
    pub(super) ctx: &'a mut Ctx,
    pub(super) templates: &'a Templates,
    values: Vec<Slot>,
    /// Values below belong to open scopes; above are those of the tag that is being evaluated.
    floor: usize,
    /// What the turns of `each` to come are about.
    pending: Vec<std::vec::IntoIter<Item>>,
    /// Whether no other run and no Go template waits for this one.
    alone: bool,
    /// What went wrong; the crate only carries a text.
    failure: Option<FuncError>,
    /// What an argument that is evaluated late came to.
    pub(super) late: Slot,
}

impl<'a> Session<'a> {
    /// With the root's value, whose handle is the first.
    pub(super) fn new(
        ctx: &'a mut Ctx,
        templates: &'a Templates,
        root: Value,
        alone: bool,
    ) -> Self {
        Self {
            pending: Vec::new(),
            alone,
            ctx,
            templates,
            values: vec![(root, true)],
            floor: 1,
            failure: None,
            late: Slot::default(),
        }
    }

    /// Takes a value in.
    pub(super) fn push(&mut self, slot: Slot) -> Json {
        self.values.push(slot);
        Json::from(self.values.len() - 1)
    }

    /// The value of a parameter that is no literal.
    fn handle(&self, param: &PathAndJson<'_>) -> Slot {
        // A name that the crate does not find has none, and is the null that `slot` gives nil for.
        self.slot(param.value())
    }

    /// The value behind a handle.
    pub(super) fn slot(&self, handle: &Json) -> Slot {
        let index = handle.as_u64().and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.values.get(index)).cloned().unwrap_or((Value::Nil, true))
    }

    /// What a parameter of a helper is: a value, or a literal of the template.
    pub(super) fn argument(&mut self, param: &PathAndJson<'_>) -> Result<Argument, FuncError> {
        let Some(literal) = param.try_get_constant_value() else {
            let (value, interface) = self.handle(param);
            return Ok(Argument::value(value, interface));
        };
        Ok(match literal {
            Json::Null => Argument::nil(),
            Json::Bool(value) => Argument::bool(*value),
            Json::String(text) => Argument::text(text),
            Json::Number(number) => {
                let text = number.to_string();
                Argument::number(&text)
                    .ok_or_else(|| FuncError::new(format!("{text} is no number in Go")))?
            }
            composed => {
                let value = tables::load_value(&mut self.ctx.heap, composed)?;
                Argument::value(value, false)
            }
        })
    }

    /// What a parameter of a helper is, as a value.
    pub(super) fn value(&mut self, param: &PathAndJson<'_>) -> Result<Slot, FuncError> {
        match param.try_get_constant_value() {
            None => Ok(self.handle(param)),
            Some(_) => Ok((self.argument(param)?.into_value()?, false)),
        }
    }

    /// Starts a loop.
    pub(super) fn begin(&mut self, items: Vec<Item>) {
        self.pending.push(items.into_iter());
    }

    /// The innermost loop's next element, and whether it is the last.
    pub(super) fn next_item(&mut self) -> Option<(Item, bool)> {
        let items = self.pending.last_mut()?;
        let item = items.next()?;
        Some((item, items.len() == 0))
    }

    /// Ends the innermost loop.
    pub(super) fn end(&mut self) {
        self.pending.pop();
    }

    /// Between two tags: lets the heap forget what nobody refers to any more.
    pub(super) fn account(&mut self) -> Result<(), FuncError> {
        if !self.alone {
            return Ok(());
        }
        let items = self.pending.iter().flat_map(std::vec::IntoIter::as_slice);
        let items = items.flat_map(|(key, (item, _))| key.iter().chain([item]));
        self.ctx.sweep(self.values.iter().map(|(value, _)| value).chain(items))
    }

    /// Forgets the values of the tag.
    pub(super) fn sweep(&mut self) {
        self.values.truncate(self.floor);
    }

    /// Keeps all values there are; gives what [`Session::close`] wants back.
    pub(super) fn open(&mut self) -> usize {
        std::mem::replace(&mut self.floor, self.values.len())
    }

    /// Ends a scope.
    pub(super) fn close(&mut self, floor: usize) {
        self.floor = floor;
        self.values.truncate(floor);
    }

    /// Remembers an error on its way through the crate.
    pub(super) fn fail(&mut self, error: FuncError) -> RenderError {
        let text = error.text().to_owned();
        self.failure.get_or_insert(error);
        RenderErrorReason::Other(text).into()
    }

    /// What ended the run.
    pub(super) fn take_failure(&mut self) -> Option<FuncError> {
        self.failure.take()
    }

    /// Sets the floor back without forgetting what has come above it.
    pub(super) fn reopen(&mut self, floor: usize) {
        self.floor = floor;
    }

    /// Goes deeper in what nests on the native stack, by so many KiB.
    pub(super) fn descend(&mut self, kib: usize) -> Result<(), FuncError> {
        State::descend(self.ctx, kib)
    }

    /// Comes back up.
    pub(super) fn ascend(&mut self, kib: usize) {
        State::ascend(self.ctx, kib);
    }

    /// A value as it is printed: as in Go, but nothing for nil.
    pub(super) fn print(&mut self, value: &Value) -> Result<Str, FuncError> {
        match value {
            Value::Nil => Ok(Str::default()),
            Value::String(text) => Ok(text.clone()),
            Value::Func(_) => Err(FuncError::new("can't print a function")),
            _ => self.ctx.print_action(value),
        }
    }
}

/// The session behind its lock: no helper holds it while another runs, and none can break it.
pub(super) fn lock<'s, 'a>(shared: &'s Shared<'a>) -> MutexGuard<'s, Session<'a>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the crate takes to write a text, in steps of the budget.
const WRITE_STEPS: u64 = 5;

/// Text on its way out, charged to the budget.
pub(super) struct Charged<'s, 'a> {
    pub(super) text: String,
    pub(super) shared: &'s Shared<'a>,
}

impl<'s, 'a> Charged<'s, 'a> {
    pub(super) fn new(shared: &'s Shared<'a>) -> Self {
        Self { text: String::new(), shared }
    }
}

impl Output for Charged<'_, '_> {
    fn write(&mut self, segment: &str) -> std::io::Result<()> {
        let mut session = lock(self.shared);
        let charged = session.ctx.meter.charge_steps(WRITE_STEPS);
        let charged = charged.and_then(|()| session.ctx.meter.charge_output(segment.len()));
        if let Err(error) = charged {
            let text = error.text().to_owned();
            session.fail(error);
            return Err(std::io::Error::other(text));
        }
        self.text.push_str(segment);
        Ok(())
    }
}
