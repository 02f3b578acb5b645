//! Escaping for HTML, JavaScript and URLs.

use crate::fmt::{chars, is_print};

pub(super) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(*byte),
        }
    }
    out
}

pub(super) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for c in chars(text) {
        match c {
            Ok('\\') => out.extend_from_slice(b"\\\\"),
            Ok('\'') => out.extend_from_slice(b"\\'"),
            Ok('"') => out.extend_from_slice(b"\\\""),
            Ok(c @ ('<' | '>' | '&' | '=' | '\0'..='\x1f')) => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes());
            }
            Ok(c) if c.is_ascii() || is_print(c) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Ok(c) => out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes()),
            // Go takes what is no UTF-8 for a printable replacement character, and copies it.
            Err(byte) => out.push(byte),
        }
    }
    out
}

pub(super) fn url_query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => out.push(b'+'),
            b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => out.push(*byte),
            byte => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}
