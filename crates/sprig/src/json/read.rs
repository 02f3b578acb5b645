//! A JSON reader with Go's error texts. Every number becomes a `float64`.

use catamaran_gotemplate::{Ctx, MAX_VALUE_DEPTH, Str, Value};

/// Reads one value, and nothing behind it.
pub(super) fn read(ctx: &mut Ctx, text: &[u8]) -> Result<Value, String> {
    let (value, fault) = read_all(ctx, text)?;
    fault.map_or(Ok(value), Err)
}

/// The same, but a value that fits no type does not hide the others: it is nil, and the fault told
/// beside.
pub(super) fn read_all(ctx: &mut Ctx, text: &[u8]) -> Result<(Value, Option<String>), String> {
    if ctx.meter.charge_bytes(text.len().saturating_mul(2)).is_err() {
        // Whoever made it looks at the budget next.
        return Err("exceeded the memory limit".into());
    }
    let mut reader = Reader { ctx, text, at: 0, fault: None };
    let value = reader.value(0)?;
    match reader.next_token() {
        None => Ok((value, reader.fault)),
        Some(byte) => Err(invalid(byte, "after top-level value")),
    }
}

struct Reader<'r> {
    ctx: &'r mut Ctx,
    text: &'r [u8],
    at: usize,
    /// What is wrong with a value whose form is right: told if all the text is.
    fault: Option<String>,
}

type Outcome<T> = Result<T, String>;

fn invalid(byte: u8, context: &str) -> String {
    let c = char::from(byte);
    let shown = match c {
        '\'' => "\\'".to_owned(),
        '"' => "\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\x0b' => "\\v".to_owned(),
        '\x0c' => "\\f".to_owned(),
        c if c.is_ascii_control() => format!("\\x{byte:02x}"),
        c if c.is_control() || byte == 0xa0 || byte == 0xad => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("invalid character '{shown}' {context}")
}

/// What Go's reader feeds itself at the end of the text.
const AT_END: u8 = b' ';

fn end<T>() -> Outcome<T> {
    Err("unexpected end of JSON input".into())
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte that is no white space, left in place.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn value(&mut self, depth: usize) -> Outcome<Value> {
        if self.ctx.check_memory().is_err() {
            return Err("exceeded the memory limit".into());
        }
        let Some(byte) = self.next_token() else { return end() };
        match byte {
            b'{' | b'[' if depth >= MAX_VALUE_DEPTH => Err("exceeded max depth".into()),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Value::String),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Nil),
            other => Err(invalid(other, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Outcome<Value> {
        for expected in word.bytes() {
            match self.peek() {
                Some(byte) if byte == expected => self.at += 1,
                other => {
                    let (byte, expected) = (other.unwrap_or(AT_END), char::from(expected));
                    return Err(invalid(
                        byte,
                        &format!("in literal {word} (expecting '{expected}')"),
                    ));
                }
            }
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Outcome<Value> {
        self.at += 1;
        let mut items = Vec::new();
        if self.next_token() == Some(b']') {
            self.at += 1;
            return Ok(self.ctx.heap.new_list(items).into());
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.next_token() {
                None => return end(),
                Some(b',') => self.at += 1,
                Some(b']') => break,
                Some(other) => return Err(invalid(other, "after array element")),
            }
        }
        self.at += 1;
        Ok(self.ctx.heap.new_list(items).into())
    }

    fn object(&mut self, depth: usize) -> Outcome<Value> {
        self.at += 1;
        let map = self.ctx.heap.new_map();
        if self.next_token() == Some(b'}') {
            self.at += 1;
            return Ok(map.into());
        }
        loop {
            let key = match self.next_token() {
                None => return end(),
                Some(b'"') => self.string()?,
                Some(other) => {
                    return Err(invalid(other, "looking for beginning of object key string"));
                }
            };
            match self.next_token() {
                None => return end(),
                Some(b':') => self.at += 1,
                Some(other) => return Err(invalid(other, "after object key")),
            }
            let value = self.value(depth + 1)?;
            self.ctx.heap.set(map, key, value);
            match self.next_token() {
                None => return end(),
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                Some(other) => return Err(invalid(other, "after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(map.into())
    }

    fn digits(&mut self, context: &str) -> Outcome<()> {
        match self.peek().unwrap_or(AT_END) {
            byte if byte.is_ascii_digit() => {}
            byte => return Err(invalid(byte, context)),
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Outcome<Value> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let text = std::str::from_utf8(text).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number.into()),
            _ => {
                let fault =
                    format!("json: cannot unmarshal number {text} into Go value of type float64");
                self.fault.get_or_insert(fault);
                Ok(Value::Nil)
            }
        }
    }

    fn string(&mut self) -> Outcome<Str> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let Some(byte) = self.peek() else { return end() };
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => self.escape(&mut out)?,
                0..=0x1f => return Err(invalid(byte, "in string literal")),
                byte => out.push(byte),
            }
        }
        Ok(match String::from_utf8(out) {
            Ok(text) => text.into(),
            Err(error) => each_invalid_byte_replaced(error.as_bytes()).into(),
        })
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Outcome<()> {
        let byte = self.peek().unwrap_or(AT_END);
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let c = self.unicode()?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            other => return Err(invalid(other, "in string escape code")),
        };
        out.push(plain);
        Ok(())
    }

    fn unicode(&mut self) -> Outcome<char> {
        let first = self.hex4()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        // Half a pair: with its other half it is a character, alone it is none.
        let back = self.at;
        if first < 0xdc00 && self.text.get(self.at..self.at + 2) == Some(b"\\u") {
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Outcome<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.peek().unwrap_or(AT_END);
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(invalid(byte, "in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

fn each_invalid_byte_replaced(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}
