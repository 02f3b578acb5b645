//! Pipelines, commands and operands.

use super::ast::{Command, Expr, ExprKind, Fields, Literal, Number, Pipe};
use super::token::{Kind, Token};
use super::{MAX_PARENS, Message, Parser};
use crate::fmt::{quote_str, unquote};

impl<'t> Parser<'t> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipe<'t>, Message> {
        let first = self.next();
        let node = self.tree.builder.node(first.start);
        let cmds = self.spare.commands.pop().unwrap_or_default();
        let mut pipe = Pipe { node, is_assign: false, decl: Vec::new(), cmds };
        let mut token = self.declarations(first, &mut pipe, context)?;
        while token.kind != end {
            if !token.kind.starts_operand() {
                return Err(self.unexpected(token, context));
            }
            let command = self.command(token)?;
            pipe.cmds.push(command);
            token = self.next();
        }
        check(&pipe, context)?;
        Ok(pipe)
    }

    /// `$x :=`, `$x =`, and for range `$i, $x :=`; gives the token behind them, which is taken.
    fn declarations(
        &mut self,
        first: Token,
        pipe: &mut Pipe<'t>,
        context: &str,
    ) -> Result<Token, Message> {
        let mut variable = first;
        while variable.kind == Kind::Variable {
            let next = self.next();
            let comma = next.kind == Kind::Char && next.text(self.input) == b",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                // An operand after all.
                self.back(next);
                break;
            }
            let name = self.name(variable.start, variable.end);
            if self.tree.vars.len() > super::MAX_VARIABLES {
                return Err(format!("more than {} variables in scope", super::MAX_VARIABLES));
            }
            self.tree.vars.push(name);
            pipe.decl.push(name);
            if !comma {
                pipe.is_assign = next.kind == Kind::Assign;
                return Ok(self.next());
            }
            if context != "range" || pipe.decl.len() >= 2 {
                return Err(format!("too many declarations in {context}"));
            }
            variable = self.next();
            if !matches!(variable.kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                return Err("range can only initialize variables".to_owned());
            }
        }
        Ok(variable)
    }

    /// A command whose first token can start an operand and has been taken.
    fn command(&mut self, first: Token) -> Result<Command<'t>, Message> {
        let node = self.tree.builder.node(first.start);
        let mut args = self.spare.args.pop().unwrap_or_default();
        let mut token = first;
        loop {
            args.push(self.operand(token)?);
            token = self.next();
            match token.kind {
                Kind::RightDelim | Kind::RightParen => {
                    self.back(token);
                    return Ok(Command { node, args });
                }
                Kind::Pipe => return Ok(Command { node, args }),
                kind if token.spaced && kind.starts_operand() => {}
                _ => return Err(self.unexpected(token, "operand")),
            }
        }
    }

    /// A term, whose first token has been taken, and the fields behind it.
    fn operand(&mut self, first: Token) -> Result<Expr<'t>, Message> {
        let start = first.start;
        let mut term = self.term(first)?;
        let names = self.tree.builder.next_name();
        let Some(further) = self.further_fields() else { return Ok(term) };
        // Go gives a chain the position of its first further field.
        let node = self.tree.builder.node(further.start);
        match &mut term.kind {
            ExprKind::Field(fields) => {
                *fields = self.fields(Token { start, ..further }, fields.names.start);
                term.node = node;
                Ok(term)
            }
            ExprKind::Variable(_, fields) => {
                *fields = self.fields(further, names);
                term.node = node;
                Ok(term)
            }
            ExprKind::Dot => Err(unexpected_dot(".")),
            ExprKind::Nil => Err(unexpected_dot("nil")),
            ExprKind::Literal(literal) => Err(unexpected_dot(&literal.show())),
            ExprKind::Function(_) | ExprKind::Chain(..) | ExprKind::Pipe(_) => {
                let fields = self.fields(further, names);
                Ok(Expr { node, kind: ExprKind::Chain(Box::new(term), fields) })
            }
        }
    }

    /// Takes the fields that stand right behind what was taken last, as one token.
    fn further_fields(&mut self) -> Option<Token> {
        let mut all: Option<Token> = None;
        loop {
            let token = self.next();
            if token.kind != Kind::Field || token.spaced {
                self.back(token);
                return all;
            }
            self.tree.builder.name(token.start + 1, token.end);
            all = Some(Token { start: all.map_or(token.start, |all| all.start), ..token });
        }
    }

    /// Fields that stand there, the names from that one on.
    fn fields(&self, place: Token, first: u32) -> Fields<'t> {
        let text = self.name(place.start, place.end);
        Fields { text, names: first..self.tree.builder.next_name() }
    }

    fn term(&mut self, token: Token) -> Result<Expr<'t>, Message> {
        let kind = match token.kind {
            Kind::Identifier => {
                let name = self.name(token.start, token.end);
                let Some(func) = self.functions.get(name) else {
                    return Err(format!("function {} not defined", quote_str(name)));
                };
                ExprKind::Function(func)
            }
            Kind::Dot => ExprKind::Dot,
            Kind::Nil => ExprKind::Nil,
            Kind::Variable => {
                let name = self.name(token.start, token.end);
                if !self.tree.vars.contains(&name) {
                    return Err(format!("undefined variable {}", quote_str(name)));
                }
                let first = self.tree.builder.next_name();
                ExprKind::Variable(name, Fields { text: "", names: first..first })
            }
            Kind::Field => {
                let first = self.tree.builder.next_name();
                self.tree.builder.name(token.start + 1, token.end);
                ExprKind::Field(self.fields(token, first))
            }
            Kind::Bool => ExprKind::Literal(Literal::Bool(token.text(self.input) == b"true")),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                let text = String::from_utf8_lossy(token.text(self.input));
                ExprKind::Literal(Literal::Number(Box::new(Number::parse(text, token.kind)?)))
            }
            Kind::String | Kind::RawString => {
                let source = token.text(self.input);
                let text = unquote(source).ok_or("invalid syntax")?;
                ExprKind::Literal(Literal::String(source.into(), text))
            }
            Kind::LeftParen => return self.parenthesized(),
            _ => return Err(self.unexpected(token, "operand")),
        };
        let node = self.tree.builder.node(token.start);
        Ok(Expr { node, kind })
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
