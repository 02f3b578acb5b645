//! Nodes as Go prints them in errors. A node's text is written once; the nodes inside it are
//! ranges of it.

use super::Builder;
use crate::fmt::quote_str;
use crate::parse::ast::{Command, Expr, ExprKind, Literal, NodeId, Pipe};

impl Builder {
    fn finish_node(&mut self, node: NodeId, start: usize) {
        let end = self.node_text.len();
        if let Some(node) = self.nodes.get_mut(node as usize) {
            (node.start, node.end) = (start, end);
        }
    }

    /// `{{pipe}}`, for the node of an action.
    pub(super) fn show_action(&mut self, action: NodeId, pipe: &Pipe) {
        let start = self.node_text.len();
        self.node_text.push_str("{{");
        self.show_pipe(pipe);
        self.node_text.push_str("}}");
        self.finish_node(action, start);
    }

    /// `{{template "name" pipe}}`
    pub(super) fn show_template(&mut self, node: NodeId, name: &str, pipe: Option<&Pipe>) {
        let start = self.node_text.len();
        self.node_text.push_str("{{template ");
        self.node_text.push_str(&quote_str(name));
        if let Some(pipe) = pipe {
            self.node_text.push(' ');
            self.show_pipe(pipe);
        }
        self.node_text.push_str("}}");
        self.finish_node(node, start);
    }

    pub(super) fn show_pipe(&mut self, pipe: &Pipe) {
        let start = self.node_text.len();
        if !pipe.decl.is_empty() {
            self.node_text.push_str(&pipe.decl.join(", "));
            self.node_text.push_str(if pipe.is_assign { " = " } else { " := " });
        }
        for (i, command) in pipe.cmds.iter().enumerate() {
            if i > 0 {
                self.node_text.push_str(" | ");
            }
            self.show_command(command);
        }
        self.finish_node(pipe.node, start);
    }

    fn show_command(&mut self, command: &Command) {
        let start = self.node_text.len();
        for (i, arg) in command.args.iter().enumerate() {
            if i > 0 {
                self.node_text.push(' ');
            }
            self.show_parenthesized(arg);
        }
        self.finish_node(command.node, start);
    }

    fn show_parenthesized(&mut self, expr: &Expr) {
        let parens = matches!(expr.kind, ExprKind::Pipe(_));
        if parens {
            self.node_text.push('(');
        }
        self.show_expr(expr);
        if parens {
            self.node_text.push(')');
        }
    }

    fn show_expr(&mut self, expr: &Expr) {
        let start = self.node_text.len();
        match &expr.kind {
            ExprKind::Dot => self.node_text.push('.'),
            ExprKind::Nil => self.node_text.push_str("nil"),
            ExprKind::Literal(literal) => self.node_text.push_str(literal.show()),
            ExprKind::Field(names) => self.show_names(names),
            ExprKind::Variable(names) => self.node_text.push_str(&names.join(".")),
            ExprKind::Identifier(name) => self.node_text.push_str(name),
            ExprKind::Chain(base, names) => {
                self.show_parenthesized(base);
                self.show_names(names);
            }
            ExprKind::Pipe(pipe) => self.show_pipe(pipe),
        }
        self.finish_node(expr.node, start);
    }

    fn show_names(&mut self, names: &[String]) {
        for name in names {
            self.node_text.push('.');
            self.node_text.push_str(name);
        }
    }

    /// The text of a node written before.
    pub(super) fn shown(&self, node: NodeId) -> &str {
        let range = self.nodes.get(node as usize).map(|node| node.start..node.end);
        range.and_then(|range| self.node_text.get(range)).unwrap_or_default()
    }
}

impl Literal {
    pub(crate) fn show(&self) -> &str {
        match self {
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Number(number) => &number.text,
            Self::String(source, _) => source,
        }
    }
}
