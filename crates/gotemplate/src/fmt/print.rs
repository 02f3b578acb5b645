//! Values under a verb: lists, maps, objects, and what does not fit.

use std::sync::Arc;

use super::scalar::Writer;
use crate::MAX_VALUE_DEPTH;
use crate::error::FuncError;
use crate::value::{Complex, Heap, Kind, Object, Value};

/// Prints into a bounded buffer.
pub(super) struct Printer<'h> {
    pub w: Writer,
    pub heap: &'h Heap,
    /// Bytes the buffer may take.
    pub limit: usize,
    /// The engine's own printing shows what a pointer points to.
    pub indirect: bool,
    /// Inside `%!verb(type=value)`: no methods are asked.
    erroring: bool,
}

/// What stands for every address.
const ADDRESS: &[u8] = b"0xc000000000";

/// Bytes that one byte may become: `\x00`, or `0x00 `.
const LONGEST_ESCAPE: usize = 5;

type Done = Result<(), FuncError>;

fn too_long() -> FuncError {
    FuncError::budget(crate::ErrorKind::Memory, "exceeded the memory limit while printing")
}

impl<'h> Printer<'h> {
    pub fn new(heap: &'h Heap, limit: usize) -> Self {
        Self { w: Writer::default(), heap, limit, indirect: false, erroring: false }
    }

    /// The buffer must stay within what the rendering may still use.
    pub fn check(&self) -> Done {
        if self.w.out.len() > self.limit {
            return Err(too_long());
        }
        Ok(())
    }

    /// What `count` bytes become with escapes must have room, too, and be there twice for a moment.
    fn check_escapes(&self, count: usize) -> Done {
        let longest = count.saturating_mul(LONGEST_ESCAPE);
        if longest > self.limit.saturating_sub(self.w.out.len()) {
            return Err(too_long());
        }
        Ok(())
    }

    /// An operand of a print function.
    pub fn operand(&mut self, value: &Value, verb: char) -> Done {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.w.pad(b"<nil>"),
            (Value::Nil, _) => self.bad_verb(value, verb)?,
            (_, 'T') => {
                let name = self.heap.type_name(value);
                self.w.text(name.as_bytes());
            }
            (_, 'p') => return self.pointer(value, verb),
            // Of `Errorf` alone; what Go asks for methods it refuses before it looks inside.
            (Value::List(_) | Value::Map(_) | Value::Object(_), 'w') => {
                self.bad_verb(value, verb)?;
            }
            (Value::Bytes(bytes), _) => self.bytes(bytes, verb, "[]byte")?,
            _ => self.value(value, verb, 0)?,
        }
        self.check()
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) -> Done {
        if depth > MAX_VALUE_DEPTH {
            return Err(FuncError::new(format!(
                "can't print a value nested deeper than {MAX_VALUE_DEPTH} levels"
            )));
        }
        match value {
            Value::Nil => {
                let text = if self.w.flags.sharp_v { "interface {}(nil)" } else { "<nil>" };
                self.w.push_str(text);
            }
            Value::Bool(b) => match verb {
                't' | 'v' => self.w.pad(if *b { b"true" } else { b"false" }),
                _ => self.bad_verb(value, verb)?,
            },
            Value::Int(n) | Value::Int64(n) => self.integer(value, *n, verb)?,
            Value::Uint8(n) => self.unsigned(value, u64::from(*n), verb)?,
            Value::Uint64(n) => self.unsigned(value, *n, verb)?,
            Value::Float64(n) => self.float(value, *n, verb)?,
            Value::String(text) => self.text(value, text.as_bytes(), verb)?,
            Value::Bytes(bytes) => self.bytes(bytes, verb, "[]uint8")?,
            Value::List(list) => {
                let data = self.heap.list(*list);
                let nil = data.nil.then_some("(nil)");
                self.open(value, "[", nil);
                if !(data.nil && self.w.flags.sharp_v) {
                    for (i, item) in data.items.iter().enumerate() {
                        self.separate(i);
                        self.value(item, verb, depth + 1)?;
                        self.check()?;
                    }
                    self.close("]");
                }
            }
            Value::Map(map) => {
                let data = self.heap.map(*map);
                self.open(value, "map[", data.nil.then_some("(nil)"));
                for (i, (key, item)) in data.entries.iter().enumerate() {
                    self.separate(i);
                    self.value(&Value::String(key.clone()), verb, depth + 1)?;
                    self.w.push_str(":");
                    self.value(item, verb, depth + 1)?;
                    self.check()?;
                }
                if !(data.nil && self.w.flags.sharp_v) {
                    self.close("]");
                }
            }
            Value::Object(object) => self.object(value, object, verb, depth)?,
            Value::Func(_) => self.pointer(value, verb)?,
        }
        Ok(())
    }

    fn open(&mut self, value: &Value, mark: &str, nil: Option<&str>) {
        if self.w.flags.sharp_v {
            let name = self.heap.type_name(value);
            self.w.push_str(&name);
            self.w.push_str(nil.unwrap_or("{"));
        } else {
            self.w.push_str(mark);
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.w.push_str(if self.w.flags.sharp_v { ", " } else { " " });
        }
    }

    fn close(&mut self, mark: &str) {
        self.w.push_str(if self.w.flags.sharp_v { "}" } else { mark });
    }

    fn object(
        &mut self,
        value: &Value,
        object: &Arc<dyn Object>,
        verb: char,
        depth: usize,
    ) -> Done {
        if !self.erroring
            && !self.w.flags.sharp_v
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = object.text()
        {
            return self.text(value, text.as_bytes(), verb);
        }
        if self.w.flags.sharp_v
            && let Some(text) = object.go_string()
        {
            self.w.push_str(&text);
            return Ok(());
        }
        if let Some(n) = object.int() {
            return self.integer(value, n, verb);
        }
        if let Some(complex) = value.downcast::<Complex>() {
            return self.complex(value, *complex, verb);
        }
        if object.is_nil() {
            self.w.pad(b"<nil>");
            return Ok(());
        }
        let fields = object.fields();
        let pointer = object.go_type().underlying.kind() == Kind::Pointer;
        if pointer && depth > 0 {
            return self.pointer(value, verb);
        }
        if pointer && !self.indirect {
            self.w.push_str("&");
        }
        if self.w.flags.sharp_v {
            self.w.push_str(object.go_type().name.trim_start_matches('*'));
        }
        self.w.push_str("{");
        for (i, (name, item)) in fields.iter().enumerate() {
            self.separate(i);
            if self.w.flags.plus_v || self.w.flags.sharp_v {
                self.w.push_str(name);
                self.w.push_str(":");
            }
            self.value(item, verb, depth + 1)?;
            self.check()?;
        }
        self.w.push_str("}");
        Ok(())
    }

    /// An address. Go's differ from run to run; ours is always the same, so that a rendering can
    /// be repeated. (Charts print one by mistake only: `dict "a" 1 $`.)
    fn pointer(&mut self, value: &Value, verb: char) -> Done {
        match value {
            Value::List(_)
            | Value::Map(_)
            | Value::Object(_)
            | Value::Func(_)
            | Value::Bytes(_) => {
                if verb == 'v' && self.w.flags.sharp_v {
                    let name = self.heap.type_name(value);
                    self.w.push_str(&format!("({name})("));
                    self.w.out.extend_from_slice(ADDRESS);
                    self.w.push_str(")");
                } else {
                    self.w.pad(ADDRESS);
                }
            }
            _ => self.bad_verb(value, verb)?,
        }
        Ok(())
    }

    fn integer(&mut self, value: &Value, n: i64, verb: char) -> Done {
        match verb {
            'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' => {
                self.w.integer(n.unsigned_abs(), n < 0, base(verb), verb);
                Ok(())
            }
            _ => self.unsigned(value, n.cast_unsigned(), verb),
        }
    }

    fn unsigned(&mut self, value: &Value, n: u64, verb: char) -> Done {
        match verb {
            'v' if self.w.flags.sharp_v => {
                let sharp = std::mem::replace(&mut self.w.flags.sharp, true);
                self.w.integer(n, false, 16, 'v');
                self.w.flags.sharp = sharp;
            }
            'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' => self.w.integer(n, false, base(verb), verb),
            'c' => self.w.character(n),
            'q' => self.w.quoted_character(n),
            'U' => self.w.unicode(n),
            _ => self.bad_verb(value, verb)?,
        }
        Ok(())
    }

    fn float(&mut self, value: &Value, n: f64, verb: char) -> Done {
        match verb {
            'v' | 'g' => self.w.float(n, b'g', None),
            'b' => self.w.float(n, b'b', None),
            'G' => self.w.float(n, b'G', None),
            'x' => self.w.float(n, b'x', None),
            'X' => self.w.float(n, b'X', None),
            'f' | 'F' => self.w.float(n, b'f', Some(6)),
            'e' => self.w.float(n, b'e', Some(6)),
            'E' => self.w.float(n, b'E', Some(6)),
            _ => self.bad_verb(value, verb)?,
        }
        Ok(())
    }

    fn complex(&mut self, value: &Value, Complex { re, im }: Complex, verb: char) -> Done {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(value, verb);
        }
        self.w.push_str("(");
        self.float(value, re, verb)?;
        let plus = std::mem::replace(&mut self.w.flags.plus, true);
        self.float(value, im, verb)?;
        self.w.flags.plus = plus;
        self.w.push_str("i)");
        Ok(())
    }

    fn text(&mut self, value: &Value, text: &[u8], verb: char) -> Done {
        if verb != 's' && (verb != 'v' || self.w.flags.sharp_v) {
            self.check_escapes(text.len())?;
        }
        match verb {
            'v' if self.w.flags.sharp_v => self.w.quoted(text),
            'v' | 's' => self.w.text(text),
            'x' => self.w.hex_text(text, false),
            'X' => self.w.hex_text(text, true),
            'q' => self.w.quoted(text),
            _ => self.bad_verb(value, verb)?,
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], verb: char, type_name: &str) -> Done {
        if matches!(verb, 'x' | 'X' | 'q') {
            self.check_escapes(bytes.len())?;
        }
        match verb {
            's' => self.w.text(bytes),
            'x' => self.w.hex_text(bytes, false),
            'X' => self.w.hex_text(bytes, true),
            'q' => self.w.quoted(bytes),
            _ => {
                let sharp_v = self.w.flags.sharp_v;
                self.w.push_str(if sharp_v { type_name } else { "[" });
                self.w.push_str(if sharp_v { "{" } else { "" });
                for (i, byte) in bytes.iter().enumerate() {
                    self.separate(i);
                    self.unsigned(&Value::Uint8(*byte), u64::from(*byte), verb)?;
                    self.check()?;
                }
                self.close("]");
            }
        }
        Ok(())
    }

    /// `%!d(string=x)`
    fn bad_verb(&mut self, value: &Value, verb: char) -> Done {
        let outer = std::mem::replace(&mut self.erroring, true);
        self.w.push_str("%!");
        self.w.push_char(verb);
        self.w.push_str("(");
        if value.is_nil() {
            self.w.push_str("<nil>");
        } else {
            self.typed(value)?;
        }
        self.w.push_str(")");
        self.erroring = outer;
        Ok(())
    }

    /// `type=value`
    pub fn typed(&mut self, value: &Value) -> Done {
        let name = self.heap.type_name(value);
        self.w.push_str(&name);
        self.w.push_str("=");
        self.operand(value, 'v')
    }
}

fn base(verb: char) -> u32 {
    match verb {
        'b' => 2,
        'o' | 'O' => 8,
        'x' | 'X' => 16,
        _ => 10,
    }
}
