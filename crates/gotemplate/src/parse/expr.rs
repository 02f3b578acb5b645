//! Pipelines, commands and operands.

use super::ast::{Command, Expr, ExprKind, Literal, Number, Pipe};
use super::token::Kind;
use super::{MAX_PARENS, Message, Parser};
use crate::fmt::{quote_str, unquote};

impl<'t> Parser<'t> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipe<'t>, Message> {
        let (_, pos) = self.peek_non_space();
        let node = self.tree.builder.node(pos);
        let cmds = self.spare.commands.pop().unwrap_or_default();
        let mut pipe = Pipe { node, is_assign: false, decl: Vec::new(), cmds };
        self.declarations(&mut pipe, context)?;
        loop {
            let (kind, _) = self.peek_non_space();
            if kind == end {
                self.pending.pop();
                check(&pipe, context)?;
                return Ok(pipe);
            }
            if !kind.starts_operand() {
                let token = self.next();
                return Err(self.unexpected(&token, context));
            }
            let command = self.command()?;
            pipe.cmds.push(command);
        }
    }

    /// `$x :=`, `$x =`, and for range `$i, $x :=`.
    fn declarations(&mut self, pipe: &mut Pipe<'t>, context: &str) -> Result<(), Message> {
        loop {
            if self.peek_non_space().0 != Kind::Variable {
                return Ok(());
            }
            let variable = self.next();
            let after = self.next();
            let next = if after.kind == Kind::Space { self.next_non_space() } else { after };
            let comma = next.kind == Kind::Char && next.text == b",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                // An operand after all.
                self.back(next);
                if after.kind == Kind::Space {
                    self.back(after);
                }
                self.back(variable);
                return Ok(());
            }
            let name = variable.name();
            if self.tree.vars.len() > super::MAX_VARIABLES {
                return Err(format!("more than {} variables in scope", super::MAX_VARIABLES));
            }
            self.tree.vars.push(name);
            pipe.decl.push(name);
            if !comma {
                pipe.is_assign = next.kind == Kind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.decl.len() >= 2 {
                return Err(format!("too many declarations in {context}"));
            }
            let follows = self.peek_non_space().0;
            if !matches!(follows, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                return Err("range can only initialize variables".to_owned());
            }
        }
    }

    fn command(&mut self) -> Result<Command<'t>, Message> {
        let (_, pos) = self.peek_non_space();
        let node = self.tree.builder.node(pos);
        let mut args = self.spare.args.pop().unwrap_or_default();
        loop {
            if let Some(arg) = self.operand()? {
                args.push(arg);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.back(token),
                Kind::Pipe => {}
                _ => return Err(self.unexpected(&token, "operand")),
            }
            break;
        }
        if args.is_empty() {
            return Err("empty command".to_owned());
        }
        Ok(Command { node, args })
    }

    /// A term and the fields behind it; `None` if something else comes.
    fn operand(&mut self) -> Result<Option<Expr<'t>>, Message> {
        let Some(mut term) = self.term()? else { return Ok(None) };
        if self.peek() != Kind::Field {
            return Ok(Some(term));
        }
        let first = self.next();
        let pos = first.pos;
        let mut end = pos + first.text.len();
        while self.peek() == Kind::Field {
            end += self.next().text.len();
        }
        // Go gives a chain the position of its first further field.
        let node = self.tree.builder.node(pos);
        match &mut term.kind {
            ExprKind::Field(names) | ExprKind::Variable(names) => {
                *names = self.source_text(pos - names.len(), end);
                term.node = node;
                Ok(Some(term))
            }
            ExprKind::Dot => Err(unexpected_dot(".")),
            ExprKind::Nil => Err(unexpected_dot("nil")),
            ExprKind::Literal(literal) => Err(unexpected_dot(&literal.show())),
            ExprKind::Identifier(_) | ExprKind::Chain(..) | ExprKind::Pipe(_) => {
                let fields = self.source_text(pos, end);
                Ok(Some(Expr { node, kind: ExprKind::Chain(Box::new(term), fields) }))
            }
        }
    }

    fn term(&mut self) -> Result<Option<Expr<'t>>, Message> {
        let (kind, _) = self.peek_non_space();
        if !kind.starts_operand() {
            return Ok(None);
        }
        let token = self.next();
        let kind = match token.kind {
            Kind::Identifier => {
                let name = token.name();
                if self.functions.get(name).is_none() {
                    return Err(format!("function {} not defined", quote_str(name)));
                }
                ExprKind::Identifier(name)
            }
            Kind::Dot => ExprKind::Dot,
            Kind::Nil => ExprKind::Nil,
            Kind::Variable => {
                let name = token.name();
                if !self.tree.vars.contains(&name) {
                    return Err(format!("undefined variable {}", quote_str(name)));
                }
                ExprKind::Variable(name)
            }
            Kind::Field => ExprKind::Field(token.name()),
            Kind::Bool => ExprKind::Literal(Literal::Bool(token.text == b"true")),
            Kind::CharConstant | Kind::Complex | Kind::Number => ExprKind::Literal(
                Literal::Number(Box::new(Number::parse(token.lossy(), token.kind)?)),
            ),
            Kind::String | Kind::RawString => {
                let text = unquote(token.text).ok_or("invalid syntax")?;
                ExprKind::Literal(Literal::String(token.text.into(), text.as_ref().into()))
            }
            Kind::LeftParen => return self.parenthesized().map(Some),
            _ => {
                self.back(token);
                return Ok(None);
            }
        };
        let node = self.tree.builder.node(token.pos);
        Ok(Some(Expr { node, kind }))
    }

    fn parenthesized(&mut self) -> Result<Expr<'t>, Message> {
        if self.tree.parens >= MAX_PARENS {
            return Err("max expression depth exceeded".to_owned());
        }
        self.tree.parens += 1;
        let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
        self.tree.parens -= 1;
        Ok(Expr { node: pipe.node, kind: ExprKind::Pipe(pipe) })
    }

    /// A piece of the source that is made of names.
    fn source_text(&self, start: usize, end: usize) -> &'t str {
        let text = self.input.get(start..end).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

/// No pipeline is empty, and only its first command may be something that cannot be called.
fn check(pipe: &Pipe<'_>, context: &str) -> Result<(), Message> {
    if pipe.cmds.is_empty() {
        return Err(format!("missing value for {context}"));
    }
    for (i, command) in pipe.cmds.iter().enumerate().skip(1) {
        let first = command.args.first().map(|arg| &arg.kind);
        if let Some(ExprKind::Dot | ExprKind::Nil | ExprKind::Literal(_)) = first {
            return Err(format!("non executable command in pipeline stage {}", i + 1));
        }
    }
    Ok(())
}

fn unexpected_dot(term: &str) -> Message {
    format!("unexpected . after term {}", quote_str(term))
}
