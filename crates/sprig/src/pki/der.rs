//! ASN.1 in its distinguished encoding, and its wrapping as text (PEM): as much of both as keys and
//! certificates need.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of a constructed, context-specific element, such as `[0]`.
pub(super) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// One element: tag, length, content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len().to_be_bytes();
    let significant = length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1);
    let length = length.get(significant..).unwrap_or_default();
    match length {
        [short] if *short < 0x80 => out.push(*short),
        long => {
            out.push(0x80 | u8::try_from(long.len()).unwrap_or(0));
            out.extend_from_slice(long);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of elements.
pub(super) fn sequence<T: AsRef<[u8]>>(elements: &[T]) -> Vec<u8> {
    let content: Vec<u8> = elements.iter().flat_map(AsRef::as_ref).copied().collect();
    element(SEQUENCE, &content)
}

/// A number that is not negative, from its bytes, the most significant first.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut content = bytes.get(zeros..).unwrap_or_default().to_vec();
    if content.first().is_none_or(|first| *first >= 0x80) {
        content.insert(0, 0);
    }
    element(INTEGER, &content)
}

/// An object identifier, from its encoded arcs.
pub(super) fn oid(arcs: &[u8]) -> Vec<u8> {
    element(OBJECT_IDENTIFIER, arcs)
}

/// Whole bytes as a string of bits.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    let mut content = vec![0];
    content.extend_from_slice(bytes);
    element(BIT_STRING, &content)
}

/// Reads elements one after the other. Nothing is copied; what is malformed reads as `None`.
#[derive(Clone, Copy)]
pub(super) struct Reader<'d>(&'d [u8]);

/// An element that was read.
#[derive(Clone, Copy)]
pub(super) struct Element<'d> {
    pub tag: u8,
    pub content: &'d [u8],
    /// Tag and length included.
    pub whole: &'d [u8],
}

impl<'d> Reader<'d> {
    pub fn new(data: &'d [u8]) -> Self {
        Self(data)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element.
    pub fn read(&mut self) -> Option<Element<'d>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = if first < 0x80 {
            usize::from(first)
        } else {
            let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            // No endless form, no more bytes than needed.
            if digits.is_empty() || digits.len() > 4 || digits.first() == Some(&0) {
                return None;
            }
            digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit))
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - after.len())?;
        self.0 = after;
        Some(Element { tag, content, whole })
    }

    /// The content of the next element, which must have that tag.
    pub fn expect(&mut self, tag: u8) -> Option<&'d [u8]> {
        self.read().filter(|element| element.tag == tag).map(|element| element.content)
    }

    /// The elements inside the next one, which must have that tag.
    pub fn enter(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(Self)
    }

    /// The next element if it has that tag.
    pub fn optional(&mut self, tag: u8) -> Option<&'d [u8]> {
        if self.0.first() == Some(&tag) { self.expect(tag) } else { None }
    }

    /// A number above zero, as its bytes.
    pub fn positive(&mut self) -> Option<&'d [u8]> {
        let bytes = self.expect(INTEGER)?;
        let zero = bytes.iter().all(|byte| *byte == 0);
        (!zero && bytes.first().is_some_and(|first| *first < 0x80)).then_some(bytes)
    }

    /// A number of one byte.
    pub fn small(&mut self) -> Option<u8> {
        match self.expect(INTEGER)? {
            [byte] => Some(*byte),
            _ => None,
        }
    }
}

/// A block of PEM.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pem {
    pub label: String,
    pub data: Vec<u8>,
}

/// Data as PEM, in lines of 64 characters.
pub(super) fn write_pem(label: &str, data: &[u8]) -> String {
    let body = STANDARD.encode(data);
    let mut out = format!("-----BEGIN {label}-----\n");
    for (at, c) in body.chars().enumerate() {
        if at > 0 && at % 64 == 0 {
            out.push('\n');
        }
        out.push(c);
    }
    if !body.is_empty() {
        out.push('\n');
    }
    out.push_str("-----END ");
    out.push_str(label);
    out.push_str("-----\n");
    out
}

/// The first block of PEM in a text, if there is one; its headers are skipped.
pub(super) fn read_pem(text: &[u8]) -> Option<Pem> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim_end);
    while let Some(line) = lines.next() {
        let label = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"));
        let Some(label) = label else { continue };
        let end = format!("-----END {label}-----");
        let mut inside = lines.clone();
        let body: Vec<&str> = inside.by_ref().take_while(|line| *line != end).collect();
        if !lines.clone().any(|line| line == end) {
            continue;
        }
        let body = body.into_iter().skip_while(|line| line.contains(':'));
        let packed: String = body.flat_map(str::split_whitespace).collect();
        if let Ok(data) = STANDARD.decode(packed) {
            return Some(Pem { label: label.to_owned(), data });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        for (length, head) in [
            (0, &[SEQUENCE, 0][..]),
            (127, &[SEQUENCE, 127]),
            (128, &[SEQUENCE, 0x81, 128]),
            (256, &[SEQUENCE, 0x82, 1, 0]),
        ] {
            let made = element(SEQUENCE, &vec![7; length]);
            assert_eq!(&made[..made.len() - length], head);
            let read = Reader::new(&made).read().unwrap();
            assert_eq!((read.content.len(), read.whole.len()), (length, made.len()));
        }
    }

    #[test]
    fn numbers_are_never_negative() {
        assert_eq!(integer(&[]), [2, 1, 0]);
        assert_eq!(integer(&[0, 0, 5]), [2, 1, 5]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
    }

    #[test]
    fn what_is_cut_short_or_endless_reads_as_nothing() {
        for bad in [&[0x30][..], &[0x30, 5, 1], &[0x30, 0x80], &[0x30, 0x81, 0], &[0x30, 0x89, 1]] {
            assert!(Reader::new(bad).read().is_none(), "{bad:?}");
        }
    }

    #[test]
    fn pem_is_found_between_other_text() {
        let text = write_pem("X", &[1; 100]);
        let read = read_pem(format!("hello\n-----BEGIN Y-----\nAA==\n{text}rest").as_bytes());
        assert_eq!(read, Some(Pem { label: "X".into(), data: vec![1; 100] }));
        let headed = b"-----BEGIN X-----\nProc-Type: 4\n\nAQ==\n-----END X-----";
        assert_eq!(read_pem(headed).map(|pem| pem.data), Some(vec![1]));
        assert_eq!(read_pem(b"-----BEGIN X-----\nAQ==\n"), None);
    }
}
