//! Flow collections: `[a, b: c]`, `{a: b}`.

use super::{Event, Outcome, Parser, State, fail};
use crate::error::Error;
use crate::read::token::Kind;

impl<'a> Parser<'a> {
    /// What stands before an entry of a flow collection: its opening, or a comma.
    pub(super) fn flow_entry(
        &mut self,
        first: bool,
        end: &Kind<'_>,
        message: &'static str,
    ) -> Result<(), Error> {
        if !first {
            let token = self.scanner.peek()?;
            if token.kind == *end {
                return Ok(());
            }
            if token.kind != Kind::FlowEntry {
                return fail(token.start, message);
            }
        }
        self.scanner.next()?;
        Ok(())
    }

    pub(super) fn flow_sequence(&mut self, first: bool) -> Outcome<'a> {
        self.flow_entry(first, &Kind::FlowSequenceEnd, "did not find expected ',' or ']'")?;
        let token = self.scanner.peek()?;
        let start = token.start;
        match token.kind {
            Kind::Key => {
                self.scanner.next()?;
                self.state = State::FlowPairKey;
                Ok((Event::MappingStart { anchor: None }, start))
            }
            Kind::FlowSequenceEnd => {
                self.scanner.next()?;
                self.pop_state();
                Ok((Event::SequenceEnd, start))
            }
            _ => {
                self.states.push(State::FlowSequence { first: false });
                self.node(false, false)
            }
        }
    }

    pub(super) fn flow_pair_key(&mut self) -> Outcome<'a> {
        let token = self.scanner.peek()?;
        if matches!(token.kind, Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd) {
            // The token is dropped, whatever it is: so does the reader that this one follows.
            let end = token.end;
            self.scanner.next()?;
            self.state = State::FlowPairValue;
            return Self::empty_scalar(end);
        }
        self.states.push(State::FlowPairValue);
        self.node(false, false)
    }

    pub(super) fn flow_mapping_key(&mut self, first: bool) -> Outcome<'a> {
        self.flow_entry(first, &Kind::FlowMappingEnd, "did not find expected ',' or '}'")?;
        let token = self.scanner.peek()?;
        let start = token.start;
        match token.kind {
            Kind::Key => {
                self.scanner.next()?;
                let token = self.scanner.peek()?;
                if matches!(token.kind, Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd) {
                    let start = token.start;
                    self.state = State::FlowMappingValue;
                    return Self::empty_scalar(start);
                }
                self.states.push(State::FlowMappingValue);
                self.node(false, false)
            }
            Kind::FlowMappingEnd => {
                self.scanner.next()?;
                self.pop_state();
                Ok((Event::MappingEnd, start))
            }
            _ => {
                self.states.push(State::FlowMappingNoValue);
                self.node(false, false)
            }
        }
    }

    /// The value of a key in a flow collection, if it has one.
    pub(super) fn flow_value(&mut self, end: &Kind<'_>, next: State) -> Outcome<'a> {
        let token = self.scanner.peek()?;
        let start = token.start;
        if token.kind == Kind::Value {
            self.scanner.next()?;
            let kind = &self.scanner.peek()?.kind;
            if *kind != Kind::FlowEntry && kind != end {
                self.states.push(next);
                return self.node(false, false);
            }
        }
        self.state = next;
        Self::empty_scalar(start)
    }
}
