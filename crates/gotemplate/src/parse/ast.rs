//! Expressions. Statements need no tree: the parser hands them to the compiler as it meets them,
//! so that no nesting of blocks costs native stack.

use std::borrow::Cow;
use std::sync::Arc;

use crate::compile::Path;
use crate::func::Func;
use crate::value::Complex;

/// Index into a template's table of nodes: position and printed form, for errors.
pub(crate) type NodeId = u32;

#[derive(Debug)]
pub(crate) struct Pipe<'t> {
    pub node: NodeId,
    pub is_assign: bool,
    pub decl: Vec<&'t str>,
    pub cmds: Vec<Command<'t>>,
}

#[derive(Debug)]
pub(crate) struct Command<'t> {
    pub node: NodeId,
    /// Never empty.
    pub args: Vec<Expr<'t>>,
}

#[derive(Debug)]
pub(crate) struct Expr<'t> {
    pub node: NodeId,
    pub kind: ExprKind<'t>,
}

#[derive(Debug)]
pub(crate) enum ExprKind<'t> {
    Dot,
    Nil,
    Literal(Literal<'t>),
    /// `.a.b`
    Field(Fields<'t>),
    /// `$x.a.b`
    Variable(&'t str, Fields<'t>),
    Function(&'t Arc<Func>),
    /// `(pipe).a.b`, `function.a`: the base, and the fields.
    Chain(Box<Expr<'t>>, Fields<'t>),
    Pipe(Pipe<'t>),
}

/// Fields one behind the other, or none: `.a.b`.
#[derive(Debug)]
pub(crate) struct Fields<'t> {
    pub text: &'t str,
    /// Which of the template's names they are.
    pub names: Path,
}

#[derive(Clone, Debug)]
pub(crate) enum Literal<'t> {
    Bool(bool),
    Number(Box<Number<'t>>),
    /// The source with its quotes, and the text.
    String(Cow<'t, [u8]>, Cow<'t, [u8]>),
}

/// A number as every type that can hold it: Go's ideal constants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Number<'t> {
    pub text: Cow<'t, str>,
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    /// Of a literal that ends in `i`.
    pub complex: Option<Complex>,
}
