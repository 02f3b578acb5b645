//! Functions: how a library declares them, and what a running one can reach.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::budget::{Budget, Meter};
use crate::error::Error;
pub use crate::error::FuncError;
use crate::parse::{Parsed, parse};
use crate::value::{Heap, Str, Type, Value};
use crate::vm::Stacks;

/// The body of a plain function. The arguments are checked against the declared types: a
/// [`Type::String`] parameter always holds a [`Value::String`], and so on.
pub type PlainBody = fn(&mut Ctx, &[Value]) -> Result<Value, FuncError>;

/// The body of a function that has the engine run a template.
pub type EngineBody = fn(&mut Ctx, &[Value]) -> Result<Call, FuncError>;

/// What comes after the template of a [`Call`] has run: gets the function's own arguments and the
/// output (or the error), and makes the function's result. Budget errors never come here.
pub type Then = fn(&mut Ctx, &[Value], Result<Str, Error>) -> Result<Value, FuncError>;

/// What an engine function asks for. No native stack is used, however deep such calls nest.
#[derive(Debug)]
pub enum Call {
    /// Nothing: here is the result.
    Done(Value),
    /// Run a template of the set (as seen from here, definitions of a running `tpl` included).
    /// If there is none, `then` gets Go's error `template: no template "x" associated with
    /// template "gotpl"`.
    Template {
        /// The template's name.
        name: Str,
        /// Its dot and `$`.
        data: Value,
        /// Makes the result.
        then: Then,
    },
    /// Parse a text and run it. It sees the outer definitions; its own do not leak. Parsed texts
    /// are cached by content. A parse error goes to `then`.
    Text {
        /// The name under which it is parsed and shown in errors.
        name: &'static str,
        /// The text.
        text: Str,
        /// Its dot and `$`.
        data: Value,
        /// Makes the result.
        then: Then,
    },
}

pub(crate) type BuiltinBody = fn(&mut Ctx, &[Value], &[bool]) -> Result<Value, FuncError>;

#[derive(Clone, Copy)]
pub(crate) enum Body {
    Plain(PlainBody),
    Engine(EngineBody),
    And,
    Or,
    Call,
    /// Go's own functions see which values are interfaces (`true`) besides the values.
    Builtin(BuiltinBody),
}

/// A function that templates may call.
#[derive(Clone)]
pub struct Func {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Type],
    pub(crate) variadic: Option<Type>,
    pub(crate) body: Body,
}

impl Func {
    /// A function of fixed parameters.
    pub const fn new(name: &'static str, params: &'static [Type], body: PlainBody) -> Self {
        Self { name, params, variadic: None, body: Body::Plain(body) }
    }

    /// A function that has the engine run a template, such as `include`.
    pub const fn engine(name: &'static str, params: &'static [Type], body: EngineBody) -> Self {
        Self { name, params, variadic: None, body: Body::Engine(body) }
    }

    pub(crate) const fn internal(name: &'static str, params: &'static [Type], body: Body) -> Self {
        Self { name, params, variadic: None, body }
    }

    /// Lets the function take any number of further arguments of a type.
    #[must_use]
    pub const fn variadic(mut self, ty: Type) -> Self {
        self.variadic = Some(ty);
        self
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The types of the fixed parameters.
    pub fn params(&self) -> &'static [Type] {
        self.params
    }

    /// The type of further arguments, if any are taken.
    pub fn variadic_type(&self) -> Option<Type> {
        self.variadic
    }
}

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Func")
            .field("name", &self.name)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// The functions known to a set of templates, by name. Go's own are always there; a function
/// added under one of their names takes its place.
#[derive(Clone, Debug)]
pub struct Functions(HashMap<&'static str, Arc<Func>, foldhash::fast::RandomState>);

impl Functions {
    /// Go's own functions.
    pub fn new() -> Self {
        let mut functions = Self(HashMap::default());
        functions.extend(crate::builtins::ITEMS.iter().map(|item| item.func.clone()));
        functions
    }

    /// Adds a function, or replaces the one of its name.
    pub fn insert(&mut self, func: Func) {
        self.0.insert(func.name, Arc::new(func));
    }

    /// Takes a function away; templates that use it do not parse.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The function of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Func>> {
        self.0.get(name)
    }

    /// All names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }
}

impl Default for Functions {
    fn default() -> Self {
        Self::new()
    }
}

impl Extend<Func> for Functions {
    fn extend<I: IntoIterator<Item = Func>>(&mut self, funcs: I) {
        for func in funcs {
            self.insert(func);
        }
    }
}

/// Bytes of template text that are parsed in the time of one step.
const PARSED_PER_STEP: u64 = 4;

/// Where random values come from: the same seed, the same values. Passwords are made of it, so it
/// must come from a generator made for that, and it is never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RandomSeed {
    bits: [u8; 32],
    since: Option<SystemTime>,
    as_of: Option<SystemTime>,
}

impl RandomSeed {
    /// All 256 bits.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bits
    }

    /// The same, known to have been drawn at a time: what is made of it with a lifetime, such as
    /// certificates, begins then, and not anew in each rendering.
    #[must_use]
    pub fn drawn_at(self, since: SystemTime) -> Self {
        Self { since: Some(since), ..self }
    }

    /// When it was drawn, if that counts.
    pub fn since(&self) -> Option<SystemTime> {
        self.since
    }

    /// The same, where what is made of it is renewed as is due at this time, whatever the rendering's
    /// clock says.
    #[must_use]
    pub fn renewed_as_of(self, time: SystemTime) -> Self {
        Self { as_of: Some(time), ..self }
    }

    /// The time that decides what is renewed, if it is not the rendering's clock.
    pub fn as_of(&self) -> Option<SystemTime> {
        self.as_of
    }
}

impl From<[u8; 32]> for RandomSeed {
    fn from(bits: [u8; 32]) -> Self {
        Self { bits, since: None, as_of: None }
    }
}

/// For tests, and where nothing secret is made: whoever knows that a seed is one of 2^64 can try
/// them all.
impl From<u64> for RandomSeed {
    fn from(number: u64) -> Self {
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(number.to_be_bytes()) {
            *to = from;
        }
        Self::from(bytes)
    }
}

impl fmt::Debug for RandomSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RandomSeed(..)")
    }
}

/// One rendering: its values, budget, clock and randomness, and whatever a library keeps for it.
/// Templates executed one after the other with one `Ctx` see each other's changes to values.
#[derive(Debug)]
pub struct Ctx {
    /// All maps and lists.
    pub heap: Heap,
    /// What has been used of the budget.
    pub meter: Meter,
    /// What `now` is.
    pub clock: SystemTime,
    seed: RandomSeed,
    extensions: Extensions,
    texts: Texts,
    pub(crate) stacks: Stacks,
}

/// Texts parsed while rendering, by content; good for one set of functions.
#[derive(Debug, Default)]
struct Texts {
    functions: Option<Arc<Functions>>,
    parsed: HashMap<(&'static str, Str), Arc<Parsed>, foldhash::fast::RandomState>,
}

/// A few, so that looking through them is the fastest way.
#[derive(Default)]
struct Extensions(Vec<(TypeId, Box<dyn Any + Send>)>);

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} extensions", self.0.len())
    }
}

impl Ctx {
    /// A new rendering. The same clock and seed give the same output.
    pub fn new(budget: Budget, clock: SystemTime, seed: impl Into<RandomSeed>) -> Self {
        Self {
            heap: Heap::new(),
            meter: Meter::new(budget),
            clock,
            seed: seed.into(),
            extensions: Extensions::default(),
            texts: Texts::default(),
            stacks: Stacks::default(),
        }
    }

    /// Where the rendering's randomness comes from. A library derives its generator from it.
    pub fn seed(&self) -> &RandomSeed {
        &self.seed
    }

    /// Keeps something of the library's own for this rendering, one of each Rust type.
    pub fn extend<T: Any + Send>(&mut self, extension: T) {
        if let Some(known) = self.extension_mut::<T>() {
            *known = extension;
        } else {
            self.extensions.0.push((TypeId::of::<T>(), Box::new(extension)));
        }
    }

    /// What was kept with [`Ctx::extend`].
    pub fn extension<T: Any + Send>(&self) -> Option<&T> {
        let wanted = TypeId::of::<T>();
        self.extensions.0.iter().find(|(id, _)| *id == wanted)?.1.downcast_ref()
    }

    /// What was kept with [`Ctx::extend`], to be changed.
    pub fn extension_mut<T: Any + Send>(&mut self) -> Option<&mut T> {
        let wanted = TypeId::of::<T>();
        self.extensions.0.iter_mut().find(|(id, _)| *id == wanted)?.1.downcast_mut()
    }

    /// A text, parsed now or before.
    pub(crate) fn parse_text(
        &mut self,
        name: &'static str,
        text: &Str,
        functions: &Arc<Functions>,
    ) -> Result<Result<Arc<Parsed>, Error>, FuncError> {
        self.meter.charge_scan(text.len())?;
        let same = self.texts.functions.as_ref().is_some_and(|known| Arc::ptr_eq(known, functions));
        if !same {
            self.texts = Texts { functions: Some(Arc::clone(functions)), ..Texts::default() };
        }
        let key = (name, text.clone());
        if let Some(parsed) = self.texts.parsed.get(&key) {
            return Ok(Ok(Arc::clone(parsed)));
        }
        self.meter.charge_steps(text.len() as u64 / PARSED_PER_STEP + 1)?;
        match parse(&name.into(), text.clone(), functions, self.meter.bytes_left()) {
            Err(error) if error.kind().is_budget() => self.meter.exhausted(),
            Ok(parsed) => {
                self.meter.charge_kept(parsed.size)?;
                let parsed = Arc::new(parsed);
                self.texts.parsed.insert(key, Arc::clone(&parsed));
                Ok(Ok(parsed))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Checks what strings, lists and maps take together; for functions that make many lists or maps,
    /// every now and then.
    pub fn check_memory(&self) -> Result<(), FuncError> {
        self.meter.check_memory(self.heap.allocated())
    }

    /// Go's `fmt.Sprint` of one value: what `{{ x }}` prints, but `<nil>` for nil. Bounded in
    /// depth and by the memory left.
    pub fn print(&mut self, value: &Value) -> Result<Str, FuncError> {
        crate::fmt::sprint(self, std::slice::from_ref(value))
    }
}
