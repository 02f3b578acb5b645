//! Statements: if, with, range, define, block, template, break, continue and plain actions.

use super::token::{Kind, Token};
use super::{Goal, Message, Open, OpenKind, Parser};
use crate::fmt::unquote;

impl Parser<'_> {
    /// What stands behind a left delimiter.
    pub(super) fn statement(&mut self, delim: Token, at_top: bool) -> Result<(), Message> {
        let token = self.next();
        if at_top && token.kind == Kind::Define {
            return self.define();
        }
        self.tree.action = Some(delim.start);
        match token.kind {
            Kind::If => return self.open(OpenKind::If),
            Kind::With => return self.open(OpenKind::With),
            Kind::Range => return self.open(OpenKind::Range { head: 0 }),
            Kind::Block => return self.block(),
            Kind::Else => self.otherwise()?,
            Kind::End => self.end()?,
            Kind::Template => self.template()?,
            Kind::Break | Kind::Continue => self.leave(token)?,
            _ => {
                let pos = token.start;
                self.back(token);
                let pipe = self.pipeline("command", Kind::RightDelim)?;
                self.tree.builder.action(pos, &pipe);
                self.spare.take(pipe);
            }
        }
        self.tree.action = None;
        Ok(())
    }

    fn define(&mut self) -> Result<(), Message> {
        self.begin_tree(String::new(), Goal::Define);
        let token = self.next();
        let name = self.template_name(token, "define clause")?;
        self.tree.name = name;
        self.expect(Kind::RightDelim, "define clause")?;
        Ok(())
    }

    fn block(&mut self) -> Result<(), Message> {
        let token = self.next();
        let name = self.template_name(token, "block clause")?;
        let pipe = self.pipeline("block clause", Kind::RightDelim)?;
        let goal = Goal::Block { pos: token.start, pipe, header_end: self.scanned };
        self.begin_tree(name, goal);
        Ok(())
    }

    fn template_name(&mut self, token: Token, context: &str) -> Result<String, Message> {
        match token.kind {
            Kind::String | Kind::RawString => {
                let name = unquote(token.text(self.input)).ok_or("invalid syntax")?;
                Ok(String::from_utf8_lossy(&name).into_owned())
            }
            _ => Err(self.unexpected(token, context)),
        }
    }

    fn template(&mut self) -> Result<(), Message> {
        let token = self.next();
        let name = self.template_name(token, "template clause")?;
        let next = self.next();
        let pipe = if next.kind == Kind::RightDelim {
            None
        } else {
            self.back(next);
            Some(self.pipeline("template clause", Kind::RightDelim)?)
        };
        self.tree.builder.template(token.start, &name, pipe.as_ref());
        if let Some(pipe) = pipe {
            self.spare.take(pipe);
        }
        Ok(())
    }

    fn open(&mut self, kind: OpenKind) -> Result<(), Message> {
        if self.tree.opens.len() >= super::MAX_BLOCKS {
            return Err(format!("more than {} blocks in one another", super::MAX_BLOCKS));
        }
        let vars = self.tree.vars.len();
        let outside = self.tree.builder.mark();
        let mut open = Open {
            kind,
            vars,
            outside,
            in_else: outside,
            otherwise: None,
            ends: Vec::new(),
            has_else: false,
        };
        self.condition(&mut open)?;
        self.tree.opens.push(open);
        Ok(())
    }

    /// The pipeline of an if, with or range.
    fn condition(&mut self, open: &mut Open) -> Result<(), Message> {
        let context = match open.kind {
            OpenKind::If => "if",
            OpenKind::With => "with",
            OpenKind::Range { .. } => "range",
        };
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let dot = self.tree.builder.mark();
        let builder = &mut self.tree.builder;
        open.otherwise = Some(match &mut open.kind {
            OpenKind::If => builder.begin_if(&pipe),
            OpenKind::With => builder.begin_with(&pipe),
            OpenKind::Range { head } => {
                let (start, loop_head) = builder.begin_range(&pipe);
                *head = loop_head;
                start
            }
        });
        open.in_else = builder.mark().with_dot_of(dot);
        self.spare.take(pipe);
        Ok(())
    }

    fn otherwise(&mut self) -> Result<(), Message> {
        let next = self.peek().kind;
        let chained = matches!(next, Kind::If | Kind::With);
        if !chained {
            self.expect(Kind::RightDelim, "else")?;
        }
        let Some(mut open) = self.tree.opens.pop() else {
            return Err(self.misplaced("{{else}}"));
        };
        if open.has_else {
            return Err("expected end; found {{else}}".to_owned());
        }
        let builder = &mut self.tree.builder;
        if let OpenKind::Range { head } = open.kind {
            builder.end_range_body(head);
        }
        open.ends.push(builder.jump());
        if let Some(jump) = open.otherwise.take() {
            builder.land(jump);
        }
        builder.reset(open.in_else);
        match (chained, next, open.kind) {
            (true, Kind::If, OpenKind::If) | (true, Kind::With, OpenKind::With) => {
                self.next();
                self.condition(&mut open)?;
            }
            (true, ..) => {
                let token = self.next();
                return Err(self.unexpected(token, "input"));
            }
            _ => open.has_else = true,
        }
        self.tree.opens.push(open);
        Ok(())
    }

    fn misplaced(&mut self, found: &str) -> Message {
        if let Goal::Block { header_end, .. } = self.tree.goal {
            self.scanned = header_end;
        }
        match &self.tree.goal {
            Goal::Main => format!("unexpected {found}"),
            goal => format!("unexpected {found} in {}", goal.context()),
        }
    }

    fn end(&mut self) -> Result<(), Message> {
        self.expect(Kind::RightDelim, "end")?;
        let Some(open) = self.tree.opens.pop() else { return self.end_definition() };
        let tree = &mut self.tree;
        tree.vars.truncate(open.vars);
        let builder = &mut tree.builder;
        match open.kind {
            OpenKind::Range { head } if !open.has_else => builder.end_range_body(head),
            _ => {}
        }
        builder.land_all(open.otherwise.into_iter().chain(open.ends));
        builder.reset(open.outside);
        Ok(())
    }

    /// The end of a define or block.
    fn end_definition(&mut self) -> Result<(), Message> {
        if matches!(self.tree.goal, Goal::Main) {
            return Err(self.misplaced("{{end}}"));
        }
        let goal = std::mem::replace(&mut self.tree.goal, Goal::Define);
        let name = self.tree.name.clone();
        let template = self.end_tree()?;
        self.defined.insert(template.name.clone(), template);
        if let Goal::Block { pos, pipe, .. } = goal {
            self.tree.builder.template(pos, &name, Some(&pipe));
        }
        Ok(())
    }

    /// break and continue
    fn leave(&mut self, token: Token) -> Result<(), Message> {
        let word = if token.kind == Kind::Break { "{{break}}" } else { "{{continue}}" };
        self.expect(Kind::RightDelim, word)?;
        let outside = || format!("{word} outside {{{{range}}}}");
        let tree = &mut self.tree;
        // The else branch of a range is not inside it.
        let range = tree.opens.iter_mut().rev().find_map(|open| match open.kind {
            OpenKind::Range { head } if !open.has_else => Some((head, &mut open.ends)),
            _ => None,
        });
        let (head, ends) = range.ok_or_else(outside)?;
        if token.kind == Kind::Break {
            ends.push(tree.builder.break_range());
        } else {
            tree.builder.jump_to(head);
        }
        Ok(())
    }
}
