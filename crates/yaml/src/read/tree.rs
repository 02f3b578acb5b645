//! Events to a tree of nodes, one document at a time.

use std::borrow::Cow;
use std::collections::HashMap;

use super::cursor::Mark;
use super::parser::{Event, Parser};
use crate::error::{Error, ErrorKind};

/// Collections may nest this deep. (Helm's reader stops at 10,000, where the tree would already be
/// too deep for everything that walks over it recursively, dropping included.)
pub const MAX_DEPTH: usize = 500;

/// Index of a node in its [`Document`].
pub(crate) type NodeId = usize;

/// What a scalar and a collection take, in bytes: the node, and what values are made of it. (The maps
/// of most libraries take as much for one entry as for a dozen.)
const SCALAR_COST: usize = size_of::<Node<'static>>() + 64;
const COLLECTION_COST: usize = size_of::<Node<'static>>() + 600;

/// What a node is.
#[derive(Debug)]
pub(crate) enum NodeKind<'a> {
    Scalar { value: Cow<'a, str>, tag: Option<Cow<'a, str>>, implicit: bool },
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias { name: &'a str, target: NodeId },
}

/// A node and its place.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub kind: NodeKind<'a>,
    pub mark: (usize, usize),
}

/// One document: its nodes, the root first.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    pub nodes: Vec<Node<'a>>,
    /// What it takes, in bytes, and what is made of it; an estimate.
    pub size: usize,
}

impl<'a> Document<'a> {
    pub fn node(&self, id: NodeId) -> Option<&Node<'a>> {
        self.nodes.get(id)
    }
}

/// Reads documents one after the other.
#[derive(Debug)]
pub(crate) struct Composer<'a> {
    parser: Parser<'a>,
    done: bool,
    /// What one document may take.
    room: usize,
}

/// A collection that is not closed yet.
struct Open {
    id: NodeId,
    /// The key that waits for its value.
    key: Option<NodeId>,
}

impl<'a> Composer<'a> {
    pub fn new(text: &'a str, room: usize) -> Result<Self, Error> {
        let mut parser = Parser::new(text)?;
        parser.next()?;
        Ok(Self { parser, done: false, room })
    }

    /// The next document; none at the end of the text. What follows an error is not read.
    pub fn next_document(&mut self) -> Result<Option<Document<'a>>, Error> {
        if self.done {
            return Ok(None);
        }
        let document = self.compose();
        self.done = !matches!(document, Ok(Some(_)));
        document
    }

    fn compose(&mut self) -> Result<Option<Document<'a>>, Error> {
        if matches!(self.parser.next()?.0, Event::StreamEnd) {
            return Ok(None);
        }
        let mut document = Document::default();
        let mut anchors: HashMap<&'a str, NodeId> = HashMap::new();
        let mut open: Vec<Open> = Vec::new();
        loop {
            let (event, mark) = self.parser.next()?;
            let id = document.nodes.len();
            let (kind, anchor, opens) = match event {
                Event::Scalar { anchor, tag, value, implicit } => {
                    (NodeKind::Scalar { value, tag, implicit }, anchor, false)
                }
                Event::SequenceStart { anchor } => (NodeKind::Sequence(Vec::new()), anchor, true),
                Event::MappingStart { anchor } => (NodeKind::Mapping(Vec::new()), anchor, true),
                Event::Alias(name) => match anchors.get(name) {
                    Some(&target) => (NodeKind::Alias { name, target }, None, false),
                    None => return Err(unknown_anchor(name, mark)),
                },
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    if open.is_empty() {
                        break;
                    }
                    continue;
                }
                _ => break,
            };
            document.size += match &kind {
                NodeKind::Scalar { value, .. } => SCALAR_COST + value.len(),
                NodeKind::Alias { .. } => SCALAR_COST,
                NodeKind::Sequence(_) | NodeKind::Mapping(_) => COLLECTION_COST,
            };
            if document.size > self.room {
                return Err(Error::too_large(self.room).at(mark.line + 1, mark.column + 1));
            }
            document.nodes.push(Node { kind, mark: (mark.line + 1, mark.column + 1) });
            if let Some(name) = anchor {
                anchors.insert(name, id);
            }
            if let Some(parent) = open.last_mut() {
                attach(&mut document, parent, id);
            }
            if opens {
                if open.len() >= MAX_DEPTH {
                    let message = format!("exceeded max depth of {MAX_DEPTH}");
                    return Err(Error::decode(message).at(mark.line + 1, mark.column + 1));
                }
                open.push(Open { id, key: None });
            } else if open.is_empty() {
                break;
            }
        }
        // The end of the document: what follows it on its last line is still looked at.
        self.parser.next()?;
        Ok(Some(document))
    }
}

fn unknown_anchor(name: &str, mark: Mark) -> Error {
    let message = format!("unknown anchor '{name}' referenced");
    Error::new(ErrorKind::Decode, message).at(mark.line + 1, mark.column + 1)
}

fn attach(document: &mut Document<'_>, parent: &mut Open, id: NodeId) {
    match document.nodes.get_mut(parent.id).map(|node| &mut node.kind) {
        Some(NodeKind::Sequence(items)) => items.push(id),
        Some(NodeKind::Mapping(pairs)) => match parent.key.take() {
            Some(key) => pairs.push((key, id)),
            None => parent.key = Some(id),
        },
        _ => {}
    }
}
