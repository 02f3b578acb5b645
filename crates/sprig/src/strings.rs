//! Strings: cutting, searching, replacing, joining.

use std::collections::HashSet;

use catamaran_gotemplate::{Ctx, FuncError, Map, Str, Type, Value, fmt};
use memchr::memmem;

use crate::args::{
    Outcome, announce, any, bytes, charge_texts, chars, flag, from, int, list, slice_bounds,
    string, strings, text, try_items, unchanged,
};
use crate::casts::to_text;

items! {
    /// Says `Hello!`, to try whether functions work.
    sprig "-> string", "{{ hello }}" => "Hello!";
    "hello"() => |_, _| Ok("Hello!".into());
    /// Cuts white space off both ends.
    sprig "TEXT -> string", r#"{{ trim "  a b  " }}"# => "a b";
    "trim"(String) => |ctx, args| {
        announce(ctx, text(args, 0).len())?;
        string(ctx, trim(bytes(args, 0), is_space))
    };
    /// Cuts the characters of the first argument off both ends of the second.
    sprig "CHARACTERS TEXT -> string", r#"{{ trimAll "$-" "$-5.00-" }}"# => "5.00";
    "trimAll" | "trimall"(String, String) => |ctx, args| {
        announce(ctx, text(args, 0).len().saturating_mul(2).saturating_add(text(args, 1).len()))?;
        let set: HashSet<char> = chars(args, 0).chars().collect();
        string(ctx, trim(bytes(args, 1), |c| set.contains(&c)))
    };
    /// Cuts the first argument off the start of the second, if it starts with it.
    sprig "PREFIX TEXT -> string", r#"{{ trimPrefix "v" "v1.2.3" }}"# => "1.2.3";
    "trimPrefix"(String, String) => |_, args| {
        let whole = text(args, 1);
        Ok(whole.as_bytes().strip_prefix(bytes(args, 0)).map_or_else(|| whole.clone().into(), Value::string))
    };
    /// Cuts the first argument off the end of the second, if it ends with it.
    sprig "SUFFIX TEXT -> string", r#"{{ trimSuffix "-" "name-" }}"# => "name";
    "trimSuffix"(String, String) => |_, args| {
        let whole = text(args, 1);
        Ok(whole.as_bytes().strip_suffix(bytes(args, 0)).map_or_else(|| whole.clone().into(), Value::string))
    };
    /// The first bytes of a string, or with a negative number the last ones.
    sprig "LENGTH TEXT -> string", r#"{{ trunc 3 "abcdef" }} {{ trunc -2 "abcdef" }}"# => "abc ef";
    "trunc"(Int, String) => |ctx, args| {
        let whole = bytes(args, 1);
        let count = usize::try_from(int(args, 0).unsigned_abs()).unwrap_or(usize::MAX);
        if count >= whole.len() {
            return unchanged(ctx, args, 1);
        }
        let cut = if int(args, 0) < 0 { whole.get(whole.len() - count..) } else { whole.get(..count) };
        string(ctx, cut.unwrap_or(whole))
    };
    /// The bytes from a start to an end. A negative start means from the beginning, a negative end
    /// to the end.
    sprig "START END TEXT -> string", r#"{{ substr 1 3 "abcdef" }}"# => "bc";
    "substr"(Int, Int, String) => |ctx, args| substr(ctx, int(args, 0), int(args, 1), bytes(args, 2));
    /// A string some times over.
    sprig "COUNT TEXT -> string", r#"{{ repeat 3 "ab" }}"# => "ababab";
    "repeat"(Int, String) => |ctx, args| {
        let (count, part) = (int(args, 0), bytes(args, 1));
        let Ok(count) = usize::try_from(count) else {
            return Err(FuncError::new("strings: negative Repeat count"));
        };
        let length = part.len().saturating_mul(count);
        announce(ctx, length)?;
        ctx.meter.charge_bytes(length)?;
        Ok(Value::string(part.repeat(count)))
    };
    /// Whether the second string contains the first.
    sprig "PART TEXT -> bool", r#"{{ contains "cat" "catamaran" }}"# => "true";
    "contains"(String, String) => |_, args| Ok(memmem::find(bytes(args, 1), bytes(args, 0)).is_some().into());
    /// Whether the second string starts with the first.
    sprig "PREFIX TEXT -> bool", r#"{{ hasPrefix "cat" "catamaran" }}"# => "true";
    "hasPrefix"(String, String) => |_, args| Ok(bytes(args, 1).starts_with(bytes(args, 0)).into());
    /// Whether the second string ends with the first.
    sprig "SUFFIX TEXT -> bool", r#"{{ hasSuffix "ran" "catamaran" }}"# => "true";
    "hasSuffix"(String, String) => |_, args| Ok(bytes(args, 1).ends_with(bytes(args, 0)).into());
    /// Replaces every occurrence of the first string by the second, in the third.
    sprig "OLD NEW TEXT -> string", r#"{{ replace "." "-" "a.b.c" }}"# => "a-b-c";
    "replace"(String, String, String) => replace;
    /// Puts spaces in front of every line, empty ones too.
    sprig "SPACES TEXT -> string", r#"{{ indent 2 "a: 1\nb: 2" }}"# => "  a: 1\n  b: 2";
    "indent"(Int, String) => |ctx, args| indent(ctx, int(args, 0), bytes(args, 1), b"");
    /// As `indent`, with a newline in front.
    sprig "SPACES TEXT -> string", r#"key:{{ nindent 2 "a: 1\nb: 2" }}"# => "key:\n  a: 1\n  b: 2";
    "nindent"(Int, String) => |ctx, args| indent(ctx, int(args, 0), bytes(args, 1), b"\n");
    /// Removes all white space.
    sprig "TEXT -> string", r#"{{ nospace "a b\tc" }}"# => "abc";
    "nospace"(String) => |ctx, args| {
        announce(ctx, text(args, 0).len().saturating_mul(2))?;
        // Byte by byte: once there is white space, the rest is read as Latin-1 (as in Helm).
        let latin = bytes(args, 0).iter().map(|byte| char::from(*byte));
        if !latin.clone().any(is_space) {
            return Ok(any(args, 0).clone());
        }
        string(ctx, latin.filter(|c| !is_space(*c)).collect::<String>())
    };
    /// The arguments, nils left out, with a space between them.
    sprig "VALUE... -> string", r#"{{ cat "a" 1 nil true }}"# => "a 1 true";
    "cat"(; Any) => |ctx, args| {
        let mut out = Vec::new();
        for (index, value) in args.iter().filter(|value| !value.is_nil()).enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            let printed = ctx.print(value)?;
            announce(ctx, out.len().saturating_add(printed.len()))?;
            out.extend_from_slice(printed.as_bytes());
        }
        string(ctx, out)
    };
    /// The arguments in double quotes, nils left out.
    sprig "VALUE... -> string", r#"{{ quote "say \"hi\"" 1 }}"# => r#""say \"hi\"" "1""#;
    "quote"(; Any) => |ctx, args| {
        let mut out = Vec::new();
        for value in args.iter().filter(|value| !value.is_nil()) {
            if !out.is_empty() {
                out.push(b' ');
            }
            let plain = to_text(ctx, value)?;
            charge_quoting(ctx, &plain, out.len())?;
            out.extend_from_slice(fmt::quote(&plain).as_bytes());
        }
        string(ctx, out)
    };
    /// The arguments in single quotes, nils left out. Nothing is escaped.
    sprig "VALUE... -> string", r#"{{ squote "a" 1 }}"# => "'a' '1'";
    "squote"(; Any) => |ctx, args| {
        let mut out = Vec::new();
        for value in args.iter().filter(|value| !value.is_nil()) {
            let printed = ctx.print(value)?;
            announce(ctx, out.len().saturating_add(printed.len()))?;
            out.extend_from_slice(if out.is_empty() { b"'" } else { b" '" });
            out.extend_from_slice(printed.as_bytes());
            out.push(b'\'');
        }
        string(ctx, out)
    };
    /// The text of a value, as it would be printed.
    sprig "VALUE -> string", "{{ toString 1.5 | quote }}" => r#""1.5""#;
    "toString"(Any) => |ctx, args| to_text(ctx, any(args, 0)).map(Value::String);
    /// The texts of a list's elements, nils left out; of anything else a list of its text.
    sprig "LIST -> list", r#"{{ toStrings (list 1 true "a") }}"# => "[1 true a]";
    "toStrings"(Any) => |ctx, args| {
        let items = to_texts(ctx, any(args, 0))?;
        strings(ctx, items)
    };
    /// A list's elements with a string between them.
    sprig "SEPARATOR LIST -> string", r#"{{ join "," (list "a" 1 true) }}"# => "a,1,true";
    "join"(String, Any) => |ctx, args| {
        let parts = to_texts(ctx, any(args, 1))?;
        let separator = bytes(args, 0);
        let each = parts.iter().map(|part| part.len().saturating_add(separator.len()));
        let length = each.fold(0, usize::saturating_add);
        announce(ctx, length)?;
        ctx.meter.charge_bytes(length)?;
        let parts: Vec<&[u8]> = parts.iter().map(Str::as_bytes).collect();
        Ok(Value::string(parts.join(separator)))
    };
    /// Splits at every occurrence of a string: a map of `_0`, `_1`, ...
    sprig "SEPARATOR TEXT -> map", r#"{{ (split "." "a.b.c")._1 }}"# => "b";
    "split"(String, String) => |ctx, args| {
        numbered(ctx, bytes(args, 0), bytes(args, 1), usize::MAX)
    };
    /// As `split`, into at most so many parts.
    sprig "SEPARATOR COUNT TEXT -> map", r#"{{ (splitn "." 2 "a.b.c")._1 }}"# => "b.c";
    "splitn"(String, Int, String) => |ctx, args| {
        let limit = match int(args, 1) {
            0 => return Ok(ctx.heap.new_map_of(Type::Map(&Type::String)).into()),
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        numbered(ctx, bytes(args, 0), bytes(args, 2), limit)
    };
    /// Splits at every occurrence of a string: a list.
    sprig "SEPARATOR TEXT -> list", r#"{{ splitList "." "a.b.c" }}"# => "[a b c]";
    "splitList"(String, String) => |ctx, args| {
        let (separator, whole) = (bytes(args, 0), bytes(args, 1));
        charge_texts(ctx, count_parts(separator, whole), whole.len())?;
        let parts = split(separator, whole, usize::MAX);
        strings(ctx, parts)
    };
    /// The first word if the number is 1, else the second.
    sprig "ONE MANY COUNT -> string", r#"{{ plural "node" "nodes" 3 }}"# => "nodes";
    "plural"(String, String, Int) => |_, args| {
        Ok(text(args, usize::from(int(args, 2) != 1)).clone().into())
    };
    /// The first value if the third is true, else the second.
    sprig "YES NO CONDITION -> any", r#"{{ ternary "on" "off" true }}"# => "on";
    "ternary"(Any, Any, Bool) => |_, args| Ok(any(args, usize::from(!flag(args, 2))).clone());
    /// A list of its arguments.
    sprig "VALUE... -> list", r#"{{ list "a" 1 true }}"# => "[a 1 true]";
    "list" | "tuple"(; Any) => |ctx, args| list(ctx, from(args, 0).to_vec());
}

/// Cuts characters off both ends; bytes that are no UTF-8 stay as they are.
fn trim(text: &[u8], cut: impl Fn(char) -> bool) -> &[u8] {
    if let Ok(text) = std::str::from_utf8(text) {
        return text.trim_matches(cut).as_bytes();
    }
    let mut text = text;
    while let Some(chunk) = text.utf8_chunks().next() {
        let kept = chunk.valid().trim_start_matches(&cut);
        text = text.get(chunk.valid().len() - kept.len()..).unwrap_or_default();
        if !kept.is_empty() || !chunk.invalid().is_empty() {
            break;
        }
    }
    let last = text.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    let tail = last.map_or("", |chunk| chunk.valid());
    let cut = tail.len() - tail.trim_end_matches(cut).len();
    text.get(..text.len() - cut).unwrap_or_default()
}

/// Go's `unicode.IsSpace`.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn substr(ctx: &mut Ctx, start: i64, end: i64, whole: &[u8]) -> Outcome {
    let length = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let (start, end) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match bounds.and_then(|(start, end)| whole.get(start..end)) {
        Some(part) => string(ctx, part),
        None => Err(slice_bounds(start, end, whole.len(), true)),
    }
}

fn replace(ctx: &mut Ctx, args: &[Value]) -> Outcome {
    let (old, new, whole) = (bytes(args, 0), bytes(args, 1), bytes(args, 2));
    let times = count_parts(old, whole);
    let length = new.len().saturating_mul(times).saturating_add(whole.len());
    // Around every character there is a place; they are all kept.
    let places = if old.is_empty() { times.saturating_mul(size_of::<usize>()) } else { 0 };
    announce(ctx, length.saturating_add(places))?;
    ctx.meter.charge_scan(whole.len())?;
    if times == 1 && !old.is_empty() {
        return unchanged(ctx, args, 2);
    }
    let mut out = Vec::with_capacity(whole.len());
    let mut last = 0;
    for at in positions(old, whole) {
        out.extend_from_slice(whole.get(last..at).unwrap_or_default());
        out.extend_from_slice(new);
        last = at + old.len();
    }
    out.extend_from_slice(whole.get(last..).unwrap_or_default());
    string(ctx, out)
}

/// How many parts a text is split into at most; an empty separator splits around every byte.
fn count_parts(separator: &[u8], whole: &[u8]) -> usize {
    if separator.is_empty() {
        return whole.len() + 1;
    }
    // Preparing a search takes longer than searching a short text.
    match separator {
        [byte] => memchr::memchr_iter(*byte, whole).count() + 1,
        _ => memmem::find_iter(whole, separator).count() + 1,
    }
}

/// Quoting looks at every character; escapes make of one byte up to four.
pub(crate) fn charge_quoting(ctx: &mut Ctx, plain: &Str, before: usize) -> Result<(), FuncError> {
    let bytes = plain.as_bytes();
    let longest = if bytes.is_ascii() { 4 } else { 5 };
    announce(ctx, bytes.len().saturating_mul(longest).saturating_add(before))?;
    ctx.meter.charge_steps(if bytes.is_ascii() {
        bytes.len() as u64 / 2
    } else {
        bytes.len() as u64 * 2
    })
}

/// Where `needle` is found; an empty one is found around every character.
fn positions<'h>(needle: &'h [u8], whole: &'h [u8]) -> Box<dyn Iterator<Item = usize> + 'h> {
    if needle.is_empty() {
        return Box::new(boundaries(whole).into_iter());
    }
    Box::new(memmem::find_iter(whole, needle))
}

/// The starts of all characters, and the end. A byte that is no UTF-8 counts as a character.
fn boundaries(whole: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    for chunk in whole.utf8_chunks() {
        starts.extend(chunk.valid().char_indices().map(|(offset, _)| at + offset));
        at += chunk.valid().len();
        starts.extend((0..chunk.invalid().len()).map(|offset| at + offset));
        at += chunk.invalid().len();
    }
    starts.push(at);
    starts
}

fn indent(ctx: &mut Ctx, spaces: i64, whole: &[u8], before: &[u8]) -> Outcome {
    let Ok(width) = usize::try_from(spaces) else {
        return Err(FuncError::new("strings: negative Repeat count"));
    };
    let lines = memchr::memchr_iter(b'\n', whole).count() + 1;
    let length = width.saturating_mul(lines).saturating_add(whole.len() + before.len());
    announce(ctx, length)?;
    ctx.meter.charge_bytes(length)?;
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(before);
    let mut line = 0;
    for next in memchr::memchr_iter(b'\n', whole).map(|end| end + 1).chain([whole.len()]) {
        out.resize(out.len() + width, b' ');
        out.extend_from_slice(whole.get(line..next).unwrap_or_default());
        line = next;
    }
    Ok(Value::string(out))
}

/// The texts that `join` and `toStrings` work on.
pub(crate) fn to_texts(ctx: &mut Ctx, value: &Value) -> Result<Vec<Str>, FuncError> {
    if value.is_nil() {
        return Ok(Vec::new());
    }
    let items = try_items(ctx, value)?.unwrap_or_else(|| vec![value.clone()]);
    let made = items.iter().filter(|item| !matches!(item, Value::String(_))).count();
    charge_texts(ctx, made, 0)?;
    items.iter().filter(|item| !item.is_nil()).map(|item| to_text(ctx, item)).collect()
}

fn split<'h>(separator: &[u8], whole: &'h [u8], limit: usize) -> Vec<&'h [u8]> {
    if separator.is_empty() {
        return split_characters(whole, limit);
    }
    let mut parts = Vec::new();
    let mut last = 0;
    for at in memmem::find_iter(whole, separator) {
        if parts.len() + 1 >= limit {
            break;
        }
        parts.push(whole.get(last..at).unwrap_or_default());
        last = at + separator.len();
    }
    parts.push(whole.get(last..).unwrap_or_default());
    parts
}

fn split_characters(whole: &[u8], limit: usize) -> Vec<&[u8]> {
    let starts = boundaries(whole);
    let mut parts = Vec::new();
    for pair in starts.windows(2) {
        let [start, end] = pair else { continue };
        if parts.len() + 1 >= limit {
            parts.push(whole.get(*start..).unwrap_or_default());
            break;
        }
        parts.push(whole.get(*start..*end).unwrap_or_default());
    }
    parts
}

fn numbered(ctx: &mut Ctx, separator: &[u8], whole: &[u8], limit: usize) -> Outcome {
    let count = count_parts(separator, whole).min(limit);
    // Besides its text every part has a key and an entry.
    charge_texts(ctx, count.saturating_mul(3), whole.len())?;
    let map: Map = ctx.heap.new_map_of(Type::Map(&Type::String));
    for (index, part) in split(separator, whole, limit).into_iter().enumerate() {
        ctx.heap.set(map, format!("_{index}"), Value::string(part));
    }
    Ok(map.into())
}
