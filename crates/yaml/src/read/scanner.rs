//! Text to tokens.
//!
//! The algorithm is the classic one of YAML 1.1 (a key is known only when its `:` is seen, so a
//! possible key is remembered and a KEY token inserted in front of it afterwards), because Helm's
//! reader is of that family and charts depend on what it accepts and how it complains.

use std::collections::VecDeque;

use super::cursor::{Cursor, Mark};
use super::token::{Kind, Token};
use crate::error::{Error, ErrorKind};

/// How many characters a key may have in front of its `:`.
const MAX_SIMPLE_KEY: usize = 1024;
/// Deeper flow collections or indentation are refused, as Helm's reader does.
const MAX_LEVELS: usize = 10_000;

/// A token that may turn out to be a key.
#[derive(Debug, Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    /// Handing out its token must wait until it is known whether it is a key. Closing an empty
    /// flow collection ends that (as in Go), so that `[]: x` is no mapping.
    awaited: bool,
    /// At this column of a block mapping only a key can stand.
    required: bool,
    /// Number of the token in the whole stream.
    token: usize,
    mark: Mark,
}

/// Produces tokens; see the module's text.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    pub(super) cursor: Cursor<'a>,
    tokens: VecDeque<Token<'a>>,
    /// How many tokens have been handed out.
    taken: usize,
    /// Whether the next token is known for what it is: it will not become a key any more.
    settled: bool,
    started: bool,
    pub(super) flow_level: usize,
    /// The column of the current block collection, -1 outside.
    pub(super) indent: isize,
    indents: Vec<isize>,
    pub(super) simple_key_allowed: bool,
    /// One slot per flow level; their token numbers never decrease from bottom to top.
    simple_keys: Vec<SimpleKey>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Result<Self, Error> {
        Ok(Self {
            cursor: Cursor::new(text)?,
            tokens: VecDeque::new(),
            taken: 0,
            settled: false,
            started: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: true,
            simple_keys: vec![SimpleKey::default()],
        })
    }

    /// The next token, left in place. Behind the end it is the end again.
    pub fn peek(&mut self) -> Result<&Token<'a>, Error> {
        while !self.settled {
            if self.tokens.is_empty() || self.head_may_become_key()? {
                self.fetch_next()?;
            } else {
                self.settled = true;
            }
        }
        self.tokens.front().ok_or_else(|| Error::decode("unknown problem parsing YAML content"))
    }

    /// The next token.
    pub fn next(&mut self) -> Result<Token<'a>, Error> {
        self.peek()?;
        let token = self.tokens.pop_front();
        self.taken += 1;
        self.settled = false;
        token.ok_or_else(|| Error::decode("unknown problem parsing YAML content"))
    }

    /// An error at the place where the scanner stands. Go leaves the first line unnamed.
    pub(super) fn fail<T>(&self, message: &str) -> Result<T, Error> {
        let mark = self.cursor.mark;
        let text = match mark.line {
            0 => message.to_owned(),
            line => format!("line {}: {message}", line + 1),
        };
        Err(Error::new(ErrorKind::Syntax, text).at(mark.line + 1, mark.column + 1))
    }

    fn head_may_become_key(&mut self) -> Result<bool, Error> {
        let slot = self.simple_keys.partition_point(|key| key.token < self.taken);
        match self.simple_keys.get(slot) {
            Some(key) if key.token == self.taken && key.awaited => self.is_valid(slot),
            _ => Ok(false),
        }
    }

    fn is_valid(&mut self, slot: usize) -> Result<bool, Error> {
        let here = self.cursor.mark;
        let Some(key) = self.simple_keys.get_mut(slot) else { return Ok(false) };
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < here.line || key.mark.index + MAX_SIMPLE_KEY < here.index {
            if key.required {
                return self.fail("could not find expected ':'");
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    fn column(&self) -> isize {
        isize::try_from(self.cursor.mark.column).unwrap_or(isize::MAX)
    }

    fn save_simple_key(&mut self) -> Result<(), Error> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let key = SimpleKey {
            possible: true,
            awaited: true,
            required: self.flow_level == 0 && self.indent == self.column(),
            token: self.taken + self.tokens.len(),
            mark: self.cursor.mark,
        };
        self.remove_simple_key()?;
        if let Some(top) = self.simple_keys.last_mut() {
            *top = key;
        }
        Ok(())
    }

    fn remove_simple_key(&mut self) -> Result<(), Error> {
        let Some(key) = self.simple_keys.last_mut() else { return Ok(()) };
        if key.possible && key.required {
            return self.fail("could not find expected ':'");
        }
        key.possible = false;
        Ok(())
    }

    fn push(&mut self, kind: Kind<'a>, start: Mark) {
        let end = self.cursor.mark;
        self.tokens.push_back(Token { kind, start, end });
    }

    /// Appends a token of `width` characters that stands here.
    fn push_indicator(&mut self, kind: Kind<'a>, width: usize) {
        let start = self.cursor.mark;
        self.cursor.skip_many(width);
        self.push(kind, start);
    }

    fn fetch_next(&mut self) -> Result<(), Error> {
        if !self.started {
            self.started = true;
            self.push(Kind::StreamStart, self.cursor.mark);
            return Ok(());
        }
        self.skip_to_token();
        self.unroll_indent(self.column());
        if self.cursor.at_end() {
            return self.fetch_end();
        }
        if self.cursor.mark.column == 0 && self.cursor.here() == b'%' {
            self.leave_block()?;
            return self.scan_directive().map(|token| self.tokens.push_back(token));
        }
        if self.cursor.at_document_indicator() {
            let kind =
                if self.cursor.here() == b'-' { Kind::DocumentStart } else { Kind::DocumentEnd };
            self.leave_block()?;
            self.push_indicator(kind, 3);
            return Ok(());
        }
        self.fetch_by_character()
    }

    fn fetch_by_character(&mut self) -> Result<(), Error> {
        let next_blank = self.cursor.is_blank_or_end(1);
        let in_flow = self.flow_level > 0;
        match self.cursor.here() {
            b'[' => self.fetch_flow_start(Kind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(Kind::FlowMappingStart),
            b']' => self.fetch_flow_end(Kind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(Kind::FlowMappingEnd),
            b',' => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.push_indicator(Kind::FlowEntry, 1);
                Ok(())
            }
            b'-' if next_blank => self.fetch_block_entry(),
            b'?' if in_flow || next_blank => self.fetch_key(),
            b':' if in_flow || next_blank => self.fetch_value(),
            b'*' | b'&' => {
                self.begin_node()?;
                self.scan_anchor().map(|token| self.tokens.push_back(token))
            }
            b'!' => {
                self.begin_node()?;
                self.scan_tag().map(|token| self.tokens.push_back(token))
            }
            b'|' | b'>' if !in_flow => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.scan_block_scalar().map(|token| self.tokens.push_back(token))
            }
            b'\'' | b'"' => {
                self.begin_node()?;
                self.scan_quoted_scalar().map(|token| self.tokens.push_back(token))
            }
            _ if self.plain_can_start() => {
                self.begin_node()?;
                self.scan_plain_scalar().map(|token| self.tokens.push_back(token))
            }
            _ => self.fail("found character that cannot start any token"),
        }
    }

    fn plain_can_start(&self) -> bool {
        match self.cursor.here() {
            b'-' => !self.cursor.is_blank(1),
            b'?' | b':' => self.flow_level == 0 && !self.cursor.is_blank_or_end(1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' | b'%' | b'@' | b'`' => false,
            _ => !self.cursor.is_blank_or_end(0),
        }
    }

    /// Something starts here that could be a key; behind it no other can start.
    fn begin_node(&mut self) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        Ok(())
    }

    fn leave_block(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        Ok(())
    }

    fn fetch_end(&mut self) -> Result<(), Error> {
        if self.cursor.mark.column != 0 {
            self.cursor.mark.column = 0;
            self.cursor.mark.line += 1;
        }
        self.leave_block()?;
        self.push(Kind::StreamEnd, self.cursor.mark);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey {
            token: self.taken + self.tokens.len(),
            mark: self.cursor.mark,
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        if self.flow_level > MAX_LEVELS {
            return self.fail("exceeded max depth of 10000");
        }
        self.simple_key_allowed = true;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            let inner = self.simple_keys.pop().map(|key| key.token);
            if let Some(outer) = self.simple_keys.last_mut().filter(|key| Some(key.token) == inner)
            {
                outer.awaited = false;
            }
        }
        self.simple_key_allowed = false;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.fail("block sequence entries are not allowed in this context");
            }
            self.roll_indent(self.cursor.mark, None, Kind::BlockSequenceStart)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_indicator(Kind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.fail("mapping keys are not allowed in this context");
            }
            self.roll_indent(self.cursor.mark, None, Kind::BlockMappingStart)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.push_indicator(Kind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), Error> {
        let slot = self.simple_keys.len().saturating_sub(1);
        if self.is_valid(slot)? {
            let key = self.simple_keys.get(slot).copied().unwrap_or_default();
            let at = key.token.checked_sub(self.taken).filter(|at| *at <= self.tokens.len());
            self.insert(at, Token { kind: Kind::Key, start: key.mark, end: key.mark });
            self.roll_indent(key.mark, at, Kind::BlockMappingStart)?;
            if let Some(key) = self.simple_keys.get_mut(slot) {
                key.possible = false;
            }
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return self.fail("mapping values are not allowed in this context");
                }
                self.roll_indent(self.cursor.mark, None, Kind::BlockMappingStart)?;
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.push_indicator(Kind::Value, 1);
        Ok(())
    }

    /// Puts a token in front of others, or behind all where its place has been handed out already.
    fn insert(&mut self, at: Option<usize>, token: Token<'a>) {
        match at {
            Some(at) => self.tokens.insert(at, token),
            None => self.tokens.push_back(token),
        }
    }

    /// Opens a block collection if `mark` stands further right than the current one.
    fn roll_indent(&mut self, mark: Mark, at: Option<usize>, kind: Kind<'a>) -> Result<(), Error> {
        let column = isize::try_from(mark.column).unwrap_or(isize::MAX);
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_LEVELS {
            return self.fail("exceeded max depth of 10000");
        }
        let token = Token { kind, start: mark, end: mark };
        self.insert(at, token);
        Ok(())
    }

    /// Closes the block collections that stand further right than `column`.
    fn unroll_indent(&mut self, column: isize) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(Kind::BlockEnd, self.cursor.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn skip_to_token(&mut self) {
        loop {
            let tabs_too = self.flow_level > 0 || !self.simple_key_allowed;
            while self.cursor.here() == b' ' || (tabs_too && self.cursor.here() == b'\t') {
                self.cursor.skip();
            }
            self.cursor.skip_comment();
            if !self.cursor.is_break(0) {
                return;
            }
            self.cursor.skip_line();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }
}
