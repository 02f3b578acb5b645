//! Nodes as Go prints them in errors. A node's text is written once; the nodes inside it are
//! ranges of it.

use std::borrow::Cow;

use super::{Builder, Shows};
use crate::fmt::quote_str;
use crate::parse::ast::{Command, Expr, ExprKind, Literal, NodeId, Number, Pipe};

impl Builder<'_> {
    /// `{{pipe}}`, for the node of an action.
    pub(super) fn show_action(&mut self, action: NodeId, pipe: &Pipe<'_>) {
        let Some(shows) = &mut self.shows else { return };
        let start = shows.text.len();
        shows.text.push_str("{{");
        shows.pipe(pipe);
        shows.text.push_str("}}");
        shows.finish(action, start);
    }

    pub(super) fn show_pipe(&mut self, pipe: &Pipe<'_>) {
        if let Some(shows) = &mut self.shows {
            shows.pipe(pipe);
        }
    }

    /// `{{template "name" pipe}}`
    pub(super) fn show_template(&mut self, node: NodeId, name: &str, pipe: Option<&Pipe<'_>>) {
        let Some(shows) = &mut self.shows else { return };
        let start = shows.text.len();
        shows.text.push_str("{{template ");
        shows.text.push_str(&quote_str(name));
        if let Some(pipe) = pipe {
            shows.text.push(' ');
            shows.pipe(pipe);
        }
        shows.text.push_str("}}");
        shows.finish(node, start);
    }
}

/// An expression alone.
pub(super) fn show(expr: &Expr<'_>) -> String {
    let mut shows = Shows::default();
    shows.expr(expr);
    shows.text
}

impl Shows {
    fn finish(&mut self, node: NodeId, start: usize) {
        let end = self.text.len();
        if let Some(range) = self.ranges.get_mut(node as usize) {
            *range = start..end;
        }
    }

    fn pipe(&mut self, pipe: &Pipe<'_>) {
        let start = self.text.len();
        if !pipe.decl.is_empty() {
            self.text.push_str(&pipe.decl.join(", "));
            self.text.push_str(if pipe.is_assign { " = " } else { " := " });
        }
        for (i, command) in pipe.cmds.iter().enumerate() {
            if i > 0 {
                self.text.push_str(" | ");
            }
            self.command(command);
        }
        self.finish(pipe.node, start);
    }

    fn command(&mut self, command: &Command<'_>) {
        let start = self.text.len();
        for (i, arg) in command.args.iter().enumerate() {
            if i > 0 {
                self.text.push(' ');
            }
            self.parenthesized(arg);
        }
        self.finish(command.node, start);
    }

    fn parenthesized(&mut self, expr: &Expr<'_>) {
        let parens = matches!(expr.kind, ExprKind::Pipe(_));
        if parens {
            self.text.push('(');
        }
        self.expr(expr);
        if parens {
            self.text.push(')');
        }
    }

    fn expr(&mut self, expr: &Expr<'_>) {
        let start = self.text.len();
        match &expr.kind {
            ExprKind::Dot => self.text.push('.'),
            ExprKind::Nil => self.text.push_str("nil"),
            ExprKind::Literal(literal) => self.text.push_str(&literal.show()),
            ExprKind::Function(func) => self.text.push_str(func.name),
            ExprKind::Field(fields) => self.text.push_str(fields.text),
            ExprKind::Variable(name, fields) => {
                self.text.push_str(name);
                self.text.push_str(fields.text);
            }
            ExprKind::Chain(base, fields) => {
                self.parenthesized(base);
                self.text.push_str(fields.text);
            }
            ExprKind::Pipe(pipe) => self.pipe(pipe),
        }
        self.finish(expr.node, start);
    }
}

impl Literal<'_> {
    pub(crate) fn show(&self) -> Cow<'_, str> {
        match self {
            Self::Bool(true) => "true".into(),
            Self::Bool(false) => "false".into(),
            Self::Number(number) => number.text.as_ref().into(),
            Self::String(source, _) => String::from_utf8_lossy(source),
        }
    }

    /// One that outlives the source.
    pub(super) fn to_owned(&self) -> Literal<'static> {
        match self {
            Self::Bool(value) => Literal::Bool(*value),
            Self::Number(number) => {
                let text = Cow::Owned(number.text.clone().into_owned());
                Literal::Number(Box::new(Number { text, ..**number }))
            }
            Self::String(source, text) => {
                let owned = |bytes: &Cow<'_, [u8]>| Cow::Owned(bytes.clone().into_owned());
                Literal::String(owned(source), owned(text))
            }
        }
    }
}
