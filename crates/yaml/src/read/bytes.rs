//! Bytes that are to be YAML.

use super::cursor::is_allowed;

/// Bytes as text.
///
/// # Errors
/// What Helm's reader has against the first character that it does not take.
pub fn text_of(data: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(data).map_err(|error| {
        let (before, rest) = data.split_at_checked(error.valid_up_to()).unwrap_or((data, &[]));
        let before = str::from_utf8(before).unwrap_or_default();
        if before.trim_start_matches('\u{feff}').chars().all(is_allowed) {
            utf8_fault(rest)
        } else {
            "control characters are not allowed"
        }
    })
}

/// What is wrong with the character at the start.
fn utf8_fault(data: &[u8]) -> &'static str {
    let (leading, width) = match data.first() {
        Some(&byte) if byte & 0xe0 == 0xc0 => (byte & 0x1f, 2),
        Some(&byte) if byte & 0xf0 == 0xe0 => (byte & 0x0f, 3),
        Some(&byte) if byte & 0xf8 == 0xf0 => (byte & 0x07, 4),
        _ => return "invalid leading UTF-8 octet",
    };
    let Some(trailing) = data.get(1..width) else { return "incomplete UTF-8 octet sequence" };
    if trailing.iter().any(|byte| byte & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    let value =
        trailing.iter().fold(u32::from(leading), |value, byte| value << 6 | u32::from(byte & 0x3f));
    let least = [0x80, 0x800, 0x10000].get(width - 2).copied().unwrap_or_default();
    if value < least { "invalid length of a UTF-8 sequence" } else { "invalid Unicode character" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_character_that_is_not_taken_is_told() {
        let cases: [(&[u8], &str); 8] = [
            (b"a\xff", "invalid leading UTF-8 octet"),
            (b"a\x80", "invalid leading UTF-8 octet"),
            (b"a\xe2\x82", "incomplete UTF-8 octet sequence"),
            (b"\xe2\x28\xa1", "invalid trailing UTF-8 octet"),
            (b"\xc0\xaf", "invalid length of a UTF-8 sequence"),
            (b"\xed\xa0\x80", "invalid Unicode character"),
            (b"a: \x00\xff", "control characters are not allowed"),
            (b"a: \xff\x00", "invalid leading UTF-8 octet"),
        ];
        for (bytes, fault) in cases {
            assert_eq!(text_of(bytes), Err(fault), "{bytes:?}");
        }
    }
}
