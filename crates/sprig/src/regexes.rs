//! Regular expressions, in RE2's syntax and with its promise: linear time.

use std::collections::HashMap;
use std::sync::Arc;

use catamaran_gotemplate::{Ctx, FuncError, Str, Type, Value};
use regex::bytes::{Regex, RegexBuilder};

use crate::args::{Outcome, announce, bytes, charge_texts, chars, int, string, strings, text};
use crate::regex_syntax::translate;

/// How large compiled expressions may be, in bytes. The smallest that fits tells how much work a match
/// is; nobody tells the size itself.
const SIZES: [usize; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20];
/// The longest expression. Its syntax tree takes some hundred times as much for a moment.
const MAX_PATTERN: usize = 32 << 10;
/// What a match takes before it is a string of a list, in bytes.
const MATCH_COST: usize = 16;
/// How many bytes of compiled expressions a rendering keeps.
const MAX_KEPT: usize = 4 << 20;

items! {
    /// Whether a string matches; a wrong expression matches nothing.
    sprig "REGEX TEXT -> bool", r#"{{ regexMatch "^v[0-9]+$" "v12" }}"# => "true";
    "regexMatch"(String, String) => |ctx, args| match compile(ctx, text(args, 0)) {
        Ok(regex) => {
            charge(ctx, &regex, bytes(args, 1))?;
            Ok(regex.is_match(bytes(args, 1)).into())
        }
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok(false.into()),
    };
    /// Whether a string matches.
    sprig "REGEX TEXT -> bool", r#"{{ mustRegexMatch "^v[0-9]+$" "v12" }}"# => "true";
    "mustRegexMatch"(String, String) => |ctx, args| {
        let regex = compile(ctx, text(args, 0))?;
        charge(ctx, &regex, bytes(args, 1))?;
        Ok(regex.is_match(bytes(args, 1)).into())
    };
    /// The first match, or `""`.
    sprig "REGEX TEXT -> string", r#"{{ regexFind "[0-9]+" "a12b3" }}"# => "12";
    "regexFind"(String, String) => |ctx, args| find(ctx, args, true);
    /// As `regexFind`, with a plainer error.
    sprig "REGEX TEXT -> string", r#"{{ mustRegexFind "[0-9]+" "a12b3" }}"# => "12";
    "mustRegexFind"(String, String) => |ctx, args| find(ctx, args, false);
    /// The first so many matches, or all if the number is negative.
    sprig "REGEX TEXT COUNT -> list", r#"{{ regexFindAll "[0-9]+" "a12b3" -1 }}"# => "[12 3]";
    "regexFindAll"(String, String, Int) => |ctx, args| find_all(ctx, args, true);
    /// As `regexFindAll`, with a plainer error.
    sprig "REGEX TEXT COUNT -> list", r#"{{ mustRegexFindAll "[0-9]+" "a12b3" -1 }}"# => "[12 3]";
    "mustRegexFindAll"(String, String, Int) => |ctx, args| find_all(ctx, args, false);
    /// Replaces all matches; `$1` or `${name}` in the replacement stand for groups.
    sprig "REGEX TEXT REPLACEMENT -> string",
        r#"{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }}"# => "-W-xxW-";
    "regexReplaceAll"(String, String, String) => |ctx, args| replace(ctx, args, true, true);
    /// As `regexReplaceAll`, with a plainer error.
    sprig "REGEX TEXT REPLACEMENT -> string",
        r#"{{ mustRegexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }}"# => "-W-xxW-";
    "mustRegexReplaceAll"(String, String, String) => |ctx, args| replace(ctx, args, true, false);
    /// Replaces all matches by a string as it is.
    sprig "REGEX TEXT REPLACEMENT -> string",
        r#"{{ regexReplaceAllLiteral "a(x*)b" "-axxb-" "${1}" }}"# => "-${1}-";
    "regexReplaceAllLiteral"(String, String, String) => |ctx, args| replace(ctx, args, false, true);
    /// As `regexReplaceAllLiteral`, with a plainer error.
    sprig "REGEX TEXT REPLACEMENT -> string",
        r#"{{ mustRegexReplaceAllLiteral "a(x*)b" "-axxb-" "${1}" }}"# => "-${1}-";
    "mustRegexReplaceAllLiteral"(String, String, String) => |ctx, args| replace(ctx, args, false, false);
    /// Splits at the matches, into at most so many parts if the number is above 0.
    sprig "REGEX TEXT COUNT -> list", r#"{{ regexSplit "[,;]" "a,b;c" -1 }}"# => "[a b c]";
    "regexSplit"(String, String, Int) => |ctx, args| split(ctx, args, true);
    /// As `regexSplit`, with a plainer error.
    sprig "REGEX TEXT COUNT -> list", r#"{{ mustRegexSplit "[,;]" "a,b;c" -1 }}"# => "[a b c]";
    "mustRegexSplit"(String, String, Int) => |ctx, args| split(ctx, args, false);
    /// A string with a backslash in front of all that means something in an expression.
    sprig "TEXT -> string", r#"{{ regexQuoteMeta "1.5*" }}"# => r"1\.5\*";
    "regexQuoteMeta"(String) => |ctx, args| {
        announce(ctx, text(args, 0).len().saturating_mul(3))?;
        let quoted: String = chars(args, 0).chars().flat_map(|c| {
            let meta = matches!(c, '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$');
            meta.then_some('\\').into_iter().chain([c])
        }).collect();
        string(ctx, quoted)
    };
}

/// An expression, compiled.
#[derive(Debug)]
struct Compiled {
    regex: Regex,
    /// What it takes at most.
    size: usize,
}

impl std::ops::Deref for Compiled {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.regex
    }
}

#[derive(Debug, Default)]
struct Kept {
    known: HashMap<Str, Arc<Compiled>>,
    size: usize,
}

fn compile(ctx: &mut Ctx, pattern: &Str) -> Result<Arc<Compiled>, FuncError> {
    ctx.meter.charge_scan(pattern.len())?;
    if let Some(known) = ctx.extension::<Kept>().and_then(|kept| kept.known.get(pattern)) {
        return Ok(known.clone());
    }
    let fault =
        |reason: &str| FuncError::new(format!("error parsing regexp: {reason}: `{pattern}`"));
    if pattern.len() > MAX_PATTERN {
        return Err(fault("expression too large"));
    }
    ctx.meter.charge_steps(pattern.len() as u64 * 64 + 1000)?;
    let translated = translate(&pattern.to_str_lossy()).map_err(FuncError::new)?;
    for size in SIZES {
        ctx.meter.charge_steps(size as u64 / 16)?;
        // While it is matched, it takes as much again.
        ctx.meter.check_room(size * 2)?;
        let built = RegexBuilder::new(&translated)
            .size_limit(size)
            .dfa_size_limit(size.max(1 << 18))
            .build();
        match built {
            Ok(regex) => return Ok(keep(ctx, pattern, Compiled { regex, size })),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => {
                let text = error.to_string();
                return Err(fault(text.lines().last().unwrap_or_default().trim()));
            }
        }
    }
    Err(fault("expression too large"))
}

fn keep(ctx: &mut Ctx, pattern: &Str, compiled: Compiled) -> Arc<Compiled> {
    let compiled = Arc::new(compiled);
    let full = |kept: &Kept| kept.size.saturating_add(compiled.size) > MAX_KEPT;
    if ctx.extension::<Kept>().is_none_or(full) {
        ctx.extend(Kept::default());
    }
    if let Some(kept) = ctx.extension_mut::<Kept>() {
        kept.size += compiled.size;
        kept.known.insert(pattern.clone(), compiled.clone());
    }
    compiled
}

/// `panics`: the function that Go calls panics on a wrong expression, with a longer text.
fn compiled(ctx: &mut Ctx, pattern: &Str, panics: bool) -> Result<Arc<Compiled>, FuncError> {
    compile(ctx, pattern).map_err(|error| {
        if error.is_budget() || !panics {
            return error;
        }
        let shown = pattern.to_str_lossy();
        let backquote = !shown.chars().any(|c| c == '`' || (c.is_control() && c != '\t'));
        let shown = if backquote {
            format!("`{shown}`")
        } else {
            catamaran_gotemplate::fmt::quote(pattern)
        };
        FuncError::new(format!("regexp: Compile({shown}): {error}"))
    })
}

/// Matching is linear in the text, but each byte may take as long as the expression is large: charged
/// before it is done.
fn charge(ctx: &mut Ctx, regex: &Compiled, text: &[u8]) -> Result<(), FuncError> {
    let per_byte = regex.size as u64 / (16 << 10);
    ctx.meter.charge_steps((text.len() as u64).saturating_mul(per_byte * 4))
}

fn find(ctx: &mut Ctx, args: &[Value], panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    charge(ctx, &regex, bytes(args, 1))?;
    let found = regex.find(bytes(args, 1)).map(|found| found.as_bytes()).unwrap_or_default();
    string(ctx, found)
}

fn find_all(ctx: &mut Ctx, args: &[Value], panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    charge(ctx, &regex, bytes(args, 1))?;
    let limit = usize::try_from(int(args, 2)).unwrap_or(usize::MAX);
    // There may be a match at every byte.
    ctx.meter.check_room(bytes(args, 1).len().min(limit).saturating_mul(MATCH_COST))?;
    let found: Vec<&[u8]> = regex
        .find_iter(bytes(args, 1))
        .filter(|found| on_boundary(bytes(args, 1), found))
        .take(limit)
        .map(|found| found.as_bytes())
        .collect();
    charge_texts(ctx, found.len(), bytes(args, 1).len())?;
    if found.is_empty() {
        return Ok(ctx.heap.new_nil_list(Type::STRINGS).into());
    }
    strings(ctx, found)
}

fn charge_groups(
    ctx: &mut Ctx,
    regex: &Compiled,
    text: &[u8],
    groups: u64,
) -> Result<(), FuncError> {
    (1..groups).try_for_each(|_| charge(ctx, regex, text))
}

fn replace(ctx: &mut Ctx, args: &[Value], groups: bool, panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    let (whole, by) = (bytes(args, 1), bytes(args, 2));
    charge(ctx, &regex, whole)?;
    // Groups are followed one by one, and each `$` looks through all of them.
    let count = regex.captures_len() as u64;
    charge_groups(ctx, &regex, whole, count)?;
    let limit = ctx.meter.bytes_left() / 2;
    let mut out = Vec::new();
    let mut last = 0;
    for found in regex.captures_iter(whole) {
        let Some(all) = found.get(0).filter(|all| on_boundary(whole, all)) else { continue };
        out.extend_from_slice(whole.get(last..all.start()).unwrap_or_default());
        if groups {
            expand(&regex, &found, by, limit, &mut out);
        } else {
            out.extend_from_slice(by);
        }
        last = all.end();
        // As many groups as it has characters may be looked up, by parsed numbers or by name.
        ctx.meter.charge_steps(8 + by.len() as u64 * (4 + count) / 4)?;
        if out.len() > limit {
            return ctx.meter.exhausted();
        }
    }
    out.extend_from_slice(whole.get(last..).unwrap_or_default());
    string(ctx, out)
}

fn split(ctx: &mut Ctx, args: &[Value], panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    let whole = bytes(args, 1);
    charge(ctx, &regex, whole)?;
    let limit = match int(args, 2) {
        0 => return Ok(ctx.heap.new_nil_list(Type::STRINGS).into()),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    if !text(args, 0).is_empty() && whole.is_empty() {
        return strings(ctx, vec![""]);
    }
    ctx.meter.check_room(whole.len().min(limit).saturating_mul(MATCH_COST))?;
    let mut parts = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for found in regex.find_iter(whole).filter(|found| on_boundary(whole, found)).take(limit) {
        if parts.len() + 1 >= limit {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(whole.get(begin..end).unwrap_or_default());
        }
        begin = found.end();
    }
    if end != whole.len() {
        parts.push(whole.get(begin..).unwrap_or_default());
    }
    charge_texts(ctx, parts.len(), whole.len())?;
    strings(ctx, parts)
}

/// No empty match lies within a character. (On bytes, the crate finds those too.)
fn on_boundary(whole: &[u8], found: &regex::bytes::Match<'_>) -> bool {
    !found.is_empty() || whole.get(found.start()).is_none_or(|byte| !(0x80..0xc0).contains(byte))
}

/// Appends a replacement: `$1`, `$name`, `${name}` and `$$` mean something, any other `$` is one.
fn expand(
    regex: &Regex,
    found: &regex::bytes::Captures<'_>,
    by: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) {
    let mut rest = by;
    while let Some(at) = memchr::memchr(b'$', rest).filter(|_| out.len() <= limit) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = after;
            continue;
        }
        let Some((name, after)) = group_name(rest) else {
            out.push(b'$');
            continue;
        };
        rest = after;
        let group = if let Ok(number) = name.parse::<usize>() {
            found.get(number)
        } else {
            // The first of several groups of that name that has found something.
            let is_it = |known: &str| {
                let known = known.split("..").next().unwrap_or_default();
                known == name || known.strip_prefix('_') == Some(name)
            };
            regex
                .capture_names()
                .enumerate()
                .filter(|(_, known)| known.is_some_and(is_it))
                .find_map(|(at, _)| found.get(at))
        };
        out.extend_from_slice(group.map(|group| group.as_bytes()).unwrap_or_default());
    }
    out.extend_from_slice(rest);
}

/// The name behind a `$`, with braces or as long as it goes, and what follows.
fn group_name(rest: &[u8]) -> Option<(&str, &[u8])> {
    let braced = rest.strip_prefix(b"{");
    let body = braced.unwrap_or(rest);
    // No further than where it ends at the latest: there may be as many `$` as characters.
    let in_name = |byte: &u8| !byte.is_ascii() || byte.is_ascii_alphanumeric() || *byte == b'_';
    let longest = body.iter().take_while(|byte| in_name(byte)).count();
    let text = body.get(..longest)?.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let name = text.get(..end).filter(|name| !name.is_empty())?;
    let after = body.get(end..)?;
    match braced {
        Some(_) => after.strip_prefix(b"}").map(|after| (name, after)),
        None => Some((name, after)),
    }
}
