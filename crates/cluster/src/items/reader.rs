//! Cuts an answer into its objects.

use std::mem;

use super::Item;
use super::fields::{Field, Fields};
use crate::bounds::{Lexer, Limits, Meter, Token};

/// How much of an answer that is no object is kept: the metadata of a list, the type of an event.
const ENVELOPE: usize = 256 << 10;

/// What an answer consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One object.
    Object,
    /// A list: the objects are its `items`.
    List,
    /// Events of a watch, one after the other: each has an `object`.
    Events,
}

/// The answer is not what it should be: what follows cannot be told apart any more.
#[derive(Debug, thiserror::Error)]
#[error("the answer is not valid JSON")]
pub(crate) struct Malformed;

/// What was read to its end.
#[derive(Debug)]
pub(crate) enum Read {
    /// An object. Those of an event come before the event's envelope.
    Item(Box<Item>),
    /// Everything around the objects; each of them is null here.
    Envelope(Vec<u8>),
}

/// Which part of an object the next bytes belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Other,
    Metadata,
    Status,
    Kept(Field),
    /// `managedFields`, which are left out.
    Dropped,
}

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    kind: Kind,
    limits: Limits,
    managed_fields: bool,
    lexer: Lexer,
    depth: usize,
    /// The last string, if it may be the key of interest.
    key: Vec<u8>,
    in_key: bool,
    /// Whether the value of the envelope's present key holds objects.
    in_items: bool,
    envelope: Vec<u8>,
    item: Option<Pending>,
}

/// The object that is being read.
#[derive(Debug, Default)]
struct Pending {
    /// The depth of what it lies in.
    base: usize,
    text: Vec<u8>,
    meter: Meter,
    fields: Fields,
    /// The values that are read at present, at its first and at its second level.
    places: [Place; 2],
    /// Whether it is over a bound: its text is not kept.
    is_cut: bool,
}

impl Reader {
    /// A reader of an answer; with `managed_fields` they are part of the objects.
    pub fn new(kind: Kind, limits: Limits, managed_fields: bool) -> Self {
        let limits = if managed_fields { limits.with_managed_fields() } else { limits };
        Self {
            kind,
            limits,
            managed_fields,
            lexer: Lexer::default(),
            depth: 0,
            key: Vec::new(),
            in_key: false,
            in_items: false,
            envelope: Vec::new(),
            item: None,
        }
    }

    /// Reads the next bytes and hands over what ends in them.
    ///
    /// # Errors
    /// [`Malformed`]; nothing can be read after it.
    pub fn push(&mut self, mut bytes: &[u8], on: &mut impl FnMut(Read)) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            let (read, token) = self.lexer.next(bytes);
            let (run, rest) = bytes.split_at_checked(read).ok_or(Malformed)?;
            bytes = rest;
            match token {
                None => self.text(run)?,
                Some(token) => self.token(run, token, on)?,
            }
        }
        Ok(())
    }

    /// Appends to whatever is being read.
    fn text(&mut self, run: &[u8]) -> Result<(), Malformed> {
        if self.in_key && self.key.len() < 64 {
            self.key.extend_from_slice(run.get(..64.min(run.len())).unwrap_or_default());
        }
        if let Some(item) = &mut self.item {
            item.add(run, &self.limits);
            return Ok(());
        }
        self.envelope.extend_from_slice(run);
        if self.envelope.len() > ENVELOPE { Err(Malformed) } else { Ok(()) }
    }

    fn token(
        &mut self,
        run: &[u8],
        token: Token,
        on: &mut impl FnMut(Read),
    ) -> Result<(), Malformed> {
        let (before, last) = run.split_at_checked(run.len().saturating_sub(1)).ok_or(Malformed)?;
        self.text(before)?;
        match token {
            Token::Text => {
                self.text(last)?;
                self.key.clear();
                self.in_key = matches!(self.level(), 1 | 2);
            }
            Token::TextEnd => {
                self.in_key = false;
                self.text(last)?;
            }
            Token::Colon => {
                self.text(last)?;
                self.begin_value();
            }
            Token::Comma => {
                self.end_value(self.level());
                self.text(last)?;
            }
            Token::Open => {
                self.begin_item();
                self.depth = self.depth.saturating_add(1);
                self.text(last)?;
            }
            Token::Close => return self.close(last, on),
            Token::Scalar => self.text(last)?,
        }
        if let Some(item) = &mut self.item {
            item.count(token);
        }
        Ok(())
    }

    /// The depth within the object, or within the envelope.
    fn level(&self) -> usize {
        self.depth.saturating_sub(self.item.as_ref().map_or(0, |item| item.base))
    }

    fn begin_value(&mut self) {
        let (level, key) = (self.level(), self.key.as_slice());
        match &mut self.item {
            Some(item) => item.begin_value(level, key, self.managed_fields),
            None if level == 1 => {
                self.in_items = match self.kind {
                    Kind::Object => false,
                    Kind::List => key == b"items",
                    Kind::Events => key == b"object",
                };
            }
            None => {}
        }
    }

    fn end_value(&mut self, level: usize) {
        match &mut self.item {
            Some(item) => item.end_value(level),
            None if level == 1 => self.in_items = false,
            None => {}
        }
    }

    fn begin_item(&mut self) {
        let begins = match self.kind {
            Kind::Object => self.depth == 0,
            Kind::List => self.in_items && self.depth == 2,
            Kind::Events => self.in_items && self.depth == 1,
        };
        if self.item.is_none() && begins {
            self.item = Some(Pending { base: self.depth, ..Pending::default() });
        }
    }

    fn close(&mut self, bracket: &[u8], on: &mut impl FnMut(Read)) -> Result<(), Malformed> {
        self.end_value(self.level());
        self.depth = self.depth.checked_sub(1).ok_or(Malformed)?;
        self.text(bracket)?;
        if let Some(item) = self.item.take_if(|item| item.base == self.depth) {
            on(Read::Item(Box::new(item.end(&self.limits))));
            self.envelope.extend_from_slice(b"null");
        } else if let Some(item) = &mut self.item {
            item.count(Token::Close);
        }
        if self.depth == 0 {
            on(Read::Envelope(mem::take(&mut self.envelope)));
        }
        Ok(())
    }
}

impl Pending {
    /// Appends to the object, and to the field that these bytes belong to.
    fn add(&mut self, run: &[u8], limits: &Limits) {
        match self.places {
            [_, Place::Dropped] => return,
            [_, Place::Kept(field)] => self.fields.add(field, run),
            _ => {}
        }
        self.meter.add_bytes(run.len());
        let mut size = self.meter.size();
        size.nodes = size.nodes.saturating_sub(1); // the last string may turn out to be a key
        if limits.admit(size).is_err() {
            self.is_cut = true;
            self.text = Vec::new();
        }
        if !self.is_cut {
            self.text.extend_from_slice(run);
        }
    }

    fn count(&mut self, token: Token) {
        if self.places[1] != Place::Dropped {
            self.meter.count(token);
        }
    }

    fn begin_value(&mut self, level: usize, key: &[u8], managed_fields: bool) {
        match (level, self.places[0]) {
            (1, _) => {
                self.places[0] = match key {
                    b"metadata" => Place::Metadata,
                    b"status" => Place::Status,
                    _ => Place::Other,
                }
            }
            (2, Place::Metadata) => {
                self.places[1] = match Field::of_metadata(key) {
                    Some(field) => Place::Kept(field),
                    None if key == b"managedFields" && !managed_fields => {
                        // Under a bound or not: these are four bytes.
                        self.text.extend_from_slice(b"null");
                        Place::Dropped
                    }
                    None => Place::Other,
                }
            }
            (2, Place::Status) if key == b"conditions" => {
                self.places[1] = Place::Kept(Field::Conditions);
            }
            _ => {}
        }
    }

    fn end_value(&mut self, level: usize) {
        match level {
            1 => self.places[0] = Place::Other,
            2 => self.places[1] = Place::Other,
            _ => {}
        }
    }

    fn end(&self, limits: &Limits) -> Item {
        let size = self.meter.size();
        let text = limits.admit(size).map(|()| self.text.as_slice());
        Item::decode(text, size, &self.fields)
    }
}
