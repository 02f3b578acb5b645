//! Scanning of what stands around nodes: directives, anchors, aliases, tags.

use std::borrow::Cow;

use super::cursor::is_word;
use super::scanner::Scanner;
use super::token::{Kind, Token};
use crate::error::Error;

impl<'a> Scanner<'a> {
    pub(super) fn scan_directive(&mut self) -> Result<Token<'a>, Error> {
        let start = self.cursor.mark;
        self.cursor.skip();
        let name = self.scan_word();
        if name.is_empty() {
            return self.fail("could not find expected directive name");
        }
        if !self.cursor.is_blank_or_end(0) {
            return self.fail("found unexpected non-alphabetical character");
        }
        let kind = match name {
            "YAML" => self.scan_version()?,
            "TAG" => self.scan_tag_directive()?,
            _ => return self.fail("found unknown directive name"),
        };
        let end = self.cursor.mark;
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_break_or_end(0) {
            return self.fail("did not find expected comment or line break");
        }
        self.cursor.skip_line();
        Ok(Token { kind, start, end })
    }

    fn scan_word(&mut self) -> &'a str {
        let start = self.cursor.pos();
        while is_word(self.cursor.here()) {
            self.cursor.skip();
        }
        self.cursor.since(start)
    }

    fn scan_version(&mut self) -> Result<Kind<'a>, Error> {
        self.cursor.skip_blanks();
        let major = self.scan_version_number()?;
        if self.cursor.here() != b'.' {
            return self.fail("did not find expected digit or '.' character");
        }
        self.cursor.skip();
        let minor = self.scan_version_number()?;
        Ok(Kind::Version { major, minor })
    }

    fn scan_version_number(&mut self) -> Result<u8, Error> {
        let start = self.cursor.pos();
        while self.cursor.here().is_ascii_digit() {
            if self.cursor.pos() - start == 2 {
                return self.fail("found extremely long version number");
            }
            self.cursor.skip();
        }
        match self.cursor.since(start).parse() {
            Ok(number) => Ok(number),
            Err(_) => self.fail("did not find expected version number"),
        }
    }

    fn scan_tag_directive(&mut self) -> Result<Kind<'a>, Error> {
        self.cursor.skip_blanks();
        let handle = self.scan_tag_handle(true)?;
        if !self.cursor.is_blank(0) {
            return self.fail("did not find expected whitespace");
        }
        self.cursor.skip_blanks();
        let prefix = self.scan_tag_uri("")?;
        if !self.cursor.is_blank_or_end(0) {
            return self.fail("did not find expected whitespace or line break");
        }
        Ok(Kind::TagDirective { handle, prefix })
    }

    pub(super) fn scan_anchor(&mut self) -> Result<Token<'a>, Error> {
        let start = self.cursor.mark;
        let alias = self.cursor.here() == b'*';
        self.cursor.skip();
        let name = self.scan_word();
        let ends = self.cursor.is_blank_or_end(0)
            || matches!(self.cursor.here(), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            return self.fail("did not find expected alphabetic or numeric character");
        }
        let kind = if alias { Kind::Alias(name) } else { Kind::Anchor(name) };
        Ok(Token { kind, start, end: self.cursor.mark })
    }

    pub(super) fn scan_tag(&mut self) -> Result<Token<'a>, Error> {
        let start = self.cursor.mark;
        let (handle, suffix) = if self.cursor.peek(1) == b'<' {
            self.cursor.skip_many(2);
            let suffix = self.scan_tag_uri("")?;
            if self.cursor.here() != b'>' {
                return self.fail("did not find the expected '>'");
            }
            self.cursor.skip();
            ("", suffix)
        } else {
            let handle = self.scan_tag_handle(false)?;
            if handle.len() > 1 && handle.ends_with('!') {
                (handle, self.scan_tag_uri("")?)
            } else {
                let suffix = self.scan_tag_uri(handle)?;
                // A lone `!` says "not resolved": it is a tag by itself, without a handle.
                if suffix.is_empty() { ("", Cow::Borrowed("!")) } else { ("!", suffix) }
            }
        };
        if !self.cursor.is_blank_or_end(0) {
            return self.fail("did not find expected whitespace or line break");
        }
        Ok(Token { kind: Kind::Tag { handle, suffix }, start, end: self.cursor.mark })
    }

    fn scan_tag_handle(&mut self, directive: bool) -> Result<&'a str, Error> {
        if self.cursor.here() != b'!' {
            return self.fail("did not find expected '!'");
        }
        let start = self.cursor.pos();
        self.cursor.skip();
        let name = self.scan_word();
        if self.cursor.here() == b'!' {
            self.cursor.skip();
        } else if directive && !name.is_empty() {
            return self.fail("did not find expected '!'");
        }
        Ok(self.cursor.since(start))
    }

    /// A tag's text; `head` is a handle that turned out to be the tag's beginning.
    fn scan_tag_uri(&mut self, head: &'a str) -> Result<Cow<'a, str>, Error> {
        let mut uri = head.get(1..).unwrap_or_default().to_owned();
        let mut found = !head.is_empty();
        loop {
            match self.cursor.here() {
                b'%' => self.scan_uri_escape(&mut uri)?,
                b';' | b'/' | b'?' | b':' | b'@' | b'&' | b'=' | b'+' | b'$' | b',' | b'.'
                | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' | b'[' | b']' => {
                    self.cursor.read(&mut uri);
                }
                byte if is_word(byte) => self.cursor.read(&mut uri),
                _ => break,
            }
            found = true;
        }
        if found { Ok(Cow::Owned(uri)) } else { self.fail("did not find expected tag URI") }
    }

    fn scan_uri_escape(&mut self, uri: &mut String) -> Result<(), Error> {
        let mut octets = Vec::new();
        loop {
            let digits = (
                char::from(self.cursor.peek(1)).to_digit(16),
                char::from(self.cursor.peek(2)).to_digit(16),
            );
            let (b'%', (Some(high), Some(low))) = (self.cursor.here(), digits) else {
                return self.fail("did not find URI escaped octet");
            };
            let octet = u8::try_from(high * 16 + low).unwrap_or_default();
            match (octets.is_empty(), octet) {
                (true, 0x80..=0xBF | 0xF8..) => {
                    return self.fail("found an incorrect leading UTF-8 octet");
                }
                (false, 0..=0x7F | 0xC0..) => {
                    return self.fail("found an incorrect trailing UTF-8 octet");
                }
                _ => octets.push(octet),
            }
            self.cursor.skip_many(3);
            let needed = match octets.first() {
                Some(0xC0..=0xDF) => 2,
                Some(0xE0..=0xEF) => 3,
                Some(0xF0..) => 4,
                _ => 1,
            };
            if octets.len() == needed {
                uri.push_str(&String::from_utf8_lossy(&octets));
                return Ok(());
            }
        }
    }
}
