//! Expressions. Statements need no tree: the parser hands them to the compiler as it meets them,
//! so that no nesting of blocks costs native stack.

use crate::value::{Complex, Str};

/// Index into a template's table of nodes: position and printed form, for errors.
pub(crate) type NodeId = u32;

#[derive(Debug)]
pub(crate) struct Pipe {
    pub node: NodeId,
    pub is_assign: bool,
    pub decl: Vec<String>,
    pub cmds: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub node: NodeId,
    /// Never empty.
    pub args: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub node: NodeId,
    pub kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Dot,
    Nil,
    Literal(Literal),
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`: the name with its dollar sign first.
    Variable(Vec<String>),
    /// A function.
    Identifier(String),
    /// `(pipe).a.b`, `function.a`
    Chain(Box<Expr>, Vec<String>),
    Pipe(Pipe),
}

#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Bool(bool),
    Number(Number),
    /// The source with its quotes, and the text.
    String(String, Str),
}

/// A number as every type that can hold it: Go's ideal constants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Number {
    pub text: String,
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    /// Of a literal that ends in `i`.
    pub complex: Option<Complex>,
}
