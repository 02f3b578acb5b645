//! Tokens to events: the grammar, as a machine of states without recursion.

mod flow;

use std::borrow::Cow;

use super::cursor::Mark;
use super::scanner::Scanner;
use super::token::{Kind, Token};
use crate::error::{Error, ErrorKind};

/// What happens in a document.
#[derive(Debug)]
pub(super) enum Event<'a> {
    StreamStart,
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(&'a str),
    Scalar {
        anchor: Option<&'a str>,
        tag: Option<Cow<'a, str>>,
        value: Cow<'a, str>,
        /// Plain and without a tag: its type follows from its text.
        implicit: bool,
    },
    SequenceStart {
        anchor: Option<&'a str>,
    },
    SequenceEnd,
    MappingStart {
        anchor: Option<&'a str>,
    },
    MappingEnd,
}

#[derive(Debug, Clone, Copy)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequence { first: bool },
    IndentlessSequence,
    BlockMappingKey { first: bool },
    BlockMappingValue,
    FlowSequence { first: bool },
    FlowPairKey,
    FlowPairValue,
    FlowPairEnd,
    FlowMappingKey { first: bool },
    FlowMappingValue,
    FlowMappingNoValue,
    End,
}

const MORE_OF_MAPPING: State = State::FlowMappingKey { first: false };

type Outcome<'a> = Result<(Event<'a>, Mark), Error>;

/// Produces events; see the module's text.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    scanner: Scanner<'a>,
    state: State,
    states: Vec<State>,
    tag_directives: Vec<(&'a str, Cow<'a, str>)>,
}

/// Tag and anchor in front of a node.
#[derive(Default)]
struct Properties<'a> {
    anchor: Option<&'a str>,
    tag: Option<Cow<'a, str>>,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Result<Self, Error> {
        Ok(Self {
            scanner: Scanner::new(text)?,
            state: State::StreamStart,
            states: Vec::new(),
            tag_directives: Vec::new(),
        })
    }

    /// The next event and where it starts.
    pub fn next(&mut self) -> Outcome<'a> {
        match self.state {
            State::StreamStart => {
                let mark = self.scanner.next()?.start;
                self.state = State::ImplicitDocumentStart;
                Ok((Event::StreamStart, mark))
            }
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequence { first } => self.block_sequence(first),
            State::IndentlessSequence => self.indentless_sequence(),
            State::BlockMappingKey { first } => self.block_mapping_key(first),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequence { first } => self.flow_sequence(first),
            State::FlowPairKey => self.flow_pair_key(),
            State::FlowPairValue => self.flow_value(&Kind::FlowSequenceEnd, State::FlowPairEnd),
            State::FlowPairEnd => {
                let mark = self.scanner.peek()?.start;
                self.state = State::FlowSequence { first: false };
                Ok((Event::MappingEnd, mark))
            }
            State::FlowMappingKey { first } => self.flow_mapping_key(first),
            State::FlowMappingValue => self.flow_value(&Kind::FlowMappingEnd, MORE_OF_MAPPING),
            State::FlowMappingNoValue => {
                let mark = self.scanner.peek()?.start;
                self.state = MORE_OF_MAPPING;
                Self::empty_scalar(mark)
            }
            State::End => Ok((Event::StreamEnd, Mark::default())),
        }
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    #[allow(clippy::unnecessary_wraps)] // every state returns an outcome
    fn empty_scalar(mark: Mark) -> Outcome<'a> {
        let event =
            Event::Scalar { anchor: None, tag: None, value: Cow::Borrowed(""), implicit: true };
        Ok((event, mark))
    }

    fn document_start(&mut self, implicit: bool) -> Outcome<'a> {
        if !implicit {
            while self.scanner.peek()?.kind == Kind::DocumentEnd {
                self.scanner.next()?;
            }
        }
        let token = self.scanner.peek()?;
        let mark = token.start;
        let explicit = matches!(
            token.kind,
            Kind::Version { .. } | Kind::TagDirective { .. } | Kind::DocumentStart
        );
        if token.kind == Kind::StreamEnd {
            self.state = State::End;
            return Ok((Event::StreamEnd, mark));
        }
        self.directives()?;
        if implicit && !explicit {
            self.state = State::BlockNode;
        } else {
            let token = self.scanner.peek()?;
            if token.kind != Kind::DocumentStart {
                return fail(token.start, "did not find expected <document start>");
            }
            self.scanner.next()?;
            self.state = State::DocumentContent;
        }
        self.states.push(State::DocumentEnd);
        Ok((Event::DocumentStart, mark))
    }

    fn directives(&mut self) -> Result<(), Error> {
        let mut versioned = false;
        loop {
            let token = self.scanner.peek()?;
            let mark = token.start;
            match &token.kind {
                Kind::Version { .. } if versioned => {
                    return fail(mark, "found duplicate %YAML directive");
                }
                Kind::Version { major: 1, minor: 1 } => versioned = true,
                Kind::Version { .. } => return fail(mark, "found incompatible YAML document"),
                Kind::TagDirective { handle, prefix } => {
                    if self.tag_directives.iter().any(|(known, _)| known == handle) {
                        return fail(mark, "found duplicate %TAG directive");
                    }
                    self.tag_directives.push((handle, prefix.clone()));
                }
                _ => break,
            }
            self.scanner.next()?;
        }
        for (handle, prefix) in [("!", "!"), ("!!", super::tag::PREFIX)] {
            if !self.tag_directives.iter().any(|(known, _)| *known == handle) {
                self.tag_directives.push((handle, Cow::Borrowed(prefix)));
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Outcome<'a> {
        let token = self.scanner.peek()?;
        match token.kind {
            Kind::Version { .. }
            | Kind::TagDirective { .. }
            | Kind::DocumentStart
            | Kind::DocumentEnd
            | Kind::StreamEnd => {
                let mark = token.start;
                self.pop_state();
                Self::empty_scalar(mark)
            }
            _ => self.node(true, false),
        }
    }

    fn document_end(&mut self) -> Outcome<'a> {
        let token = self.scanner.peek()?;
        let mark = token.start;
        if token.kind == Kind::DocumentEnd {
            self.scanner.next()?;
        }
        self.tag_directives.clear();
        self.state = State::DocumentStart;
        Ok((Event::DocumentEnd, mark))
    }

    fn node(&mut self, block: bool, indentless_allowed: bool) -> Outcome<'a> {
        let start = self.scanner.peek()?.start;
        if let Kind::Alias(name) = self.scanner.peek()?.kind {
            self.scanner.next()?;
            self.pop_state();
            return Ok((Event::Alias(name), start));
        }
        let Properties { anchor, tag } = self.properties(start)?;
        let token = self.scanner.peek()?;
        let state = match token.kind {
            Kind::BlockEntry if indentless_allowed => State::IndentlessSequence,
            Kind::FlowSequenceStart => State::FlowSequence { first: true },
            Kind::BlockSequenceStart if block => State::BlockSequence { first: true },
            Kind::FlowMappingStart => State::FlowMappingKey { first: true },
            Kind::BlockMappingStart if block => State::BlockMappingKey { first: true },
            Kind::Scalar { .. } => return self.scalar(anchor, tag, start),
            _ if anchor.is_some() || tag.is_some() => {
                self.pop_state();
                let implicit = tag.is_none();
                return Ok((
                    Event::Scalar { anchor, tag, value: Cow::Borrowed(""), implicit },
                    start,
                ));
            }
            _ => return fail(token.start, "did not find expected node content"),
        };
        self.state = state;
        let mapping = matches!(state, State::FlowMappingKey { .. } | State::BlockMappingKey { .. });
        Ok((
            if mapping { Event::MappingStart { anchor } } else { Event::SequenceStart { anchor } },
            start,
        ))
    }

    fn scalar(
        &mut self,
        anchor: Option<&'a str>,
        tag: Option<Cow<'a, str>>,
        start: Mark,
    ) -> Outcome<'a> {
        let token = self.scanner.next()?;
        self.pop_state();
        let Token { kind: Kind::Scalar { value, plain }, .. } = token else {
            return fail(token.start, "did not find expected node content");
        };
        let implicit = tag.as_deref().map_or(plain, |tag| tag == "!");
        Ok((Event::Scalar { anchor, tag, value, implicit }, start))
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self, start: Mark) -> Result<Properties<'a>, Error> {
        let mut properties = Properties::default();
        let mut tag = None;
        for _ in 0..2 {
            let token = self.scanner.peek()?;
            match &token.kind {
                Kind::Anchor(name) if properties.anchor.is_none() => {
                    properties.anchor = Some(name);
                }
                Kind::Tag { handle, suffix } if tag.is_none() => {
                    tag = Some((*handle, suffix.clone(), token.start));
                }
                _ => break,
            }
            self.scanner.next()?;
        }
        // What is wrong with the next token comes before what is wrong with the tag.
        self.scanner.peek()?;
        if let Some((handle, suffix, mark)) = tag {
            properties.tag = expand(&self.tag_directives, handle, &suffix);
            if properties.tag.is_none() {
                return fail(
                    if mark.line == 0 { start } else { mark },
                    "found undefined tag handle",
                );
            }
        }
        Ok(properties)
    }

    fn block_sequence(&mut self, first: bool) -> Outcome<'a> {
        if first {
            self.scanner.next()?;
        }
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            Kind::BlockEntry => {
                self.scanner.next()?;
                if matches!(self.scanner.peek()?.kind, Kind::BlockEntry | Kind::BlockEnd) {
                    self.state = State::BlockSequence { first: false };
                    return Self::empty_scalar(end);
                }
                self.states.push(State::BlockSequence { first: false });
                self.node(true, false)
            }
            Kind::BlockEnd => {
                self.scanner.next()?;
                self.pop_state();
                Ok((Event::SequenceEnd, start))
            }
            _ => fail(start, "did not find expected '-' indicator"),
        }
    }

    fn indentless_sequence(&mut self) -> Outcome<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        if token.kind != Kind::BlockEntry {
            self.pop_state();
            return Ok((Event::SequenceEnd, start));
        }
        self.scanner.next()?;
        if matches!(
            self.scanner.peek()?.kind,
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd
        ) {
            self.state = State::IndentlessSequence;
            return Self::empty_scalar(end);
        }
        self.states.push(State::IndentlessSequence);
        self.node(true, false)
    }

    fn block_mapping_key(&mut self, first: bool) -> Outcome<'a> {
        if first {
            self.scanner.next()?;
        }
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            Kind::Key => {
                self.scanner.next()?;
                if matches!(self.scanner.peek()?.kind, Kind::Key | Kind::Value | Kind::BlockEnd) {
                    self.state = State::BlockMappingValue;
                    return Self::empty_scalar(end);
                }
                self.states.push(State::BlockMappingValue);
                self.node(true, true)
            }
            Kind::BlockEnd => {
                self.scanner.next()?;
                self.pop_state();
                Ok((Event::MappingEnd, start))
            }
            _ => fail(start, "did not find expected key"),
        }
    }

    fn block_mapping_value(&mut self) -> Outcome<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        let next = State::BlockMappingKey { first: false };
        if token.kind != Kind::Value {
            self.state = next;
            return Self::empty_scalar(start);
        }
        self.scanner.next()?;
        if matches!(self.scanner.peek()?.kind, Kind::Key | Kind::Value | Kind::BlockEnd) {
            self.state = next;
            return Self::empty_scalar(end);
        }
        self.states.push(next);
        self.node(true, true)
    }
}

/// The full tag of a handle and a suffix; none if the handle is unknown.
fn expand<'a>(
    directives: &[(&'a str, Cow<'a, str>)],
    handle: &str,
    suffix: &Cow<'a, str>,
) -> Option<Cow<'a, str>> {
    if handle.is_empty() {
        return Some(suffix.clone());
    }
    let (_, prefix) = directives.iter().find(|(known, _)| *known == handle)?;
    Some(Cow::Owned(format!("{prefix}{suffix}")))
}

/// An error of the grammar. Go counts its lines from 0 here, so that it names the line before the
/// true one, and none for the first.
fn fail<T>(mark: Mark, message: &str) -> Result<T, Error> {
    let text = match mark.line {
        0 => message.to_owned(),
        line => format!("line {line}: {message}"),
    };
    Err(Error::new(ErrorKind::Syntax, text).at(mark.line + 1, mark.column + 1))
}
