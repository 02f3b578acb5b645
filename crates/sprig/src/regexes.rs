//! Regular expressions, in RE2's syntax and with its promise: linear time.

use std::collections::HashMap;
use std::sync::Arc;

use catamaran_gotemplate::{Ctx, FuncError, Str, Type, Value};
use regex::bytes::{Regex, RegexBuilder};

use crate::args::{Outcome, bytes, charge_items, chars, int, string, strings, text};
use crate::regex_syntax::translate;

/// How large a compiled expression may be, in bytes.
const MAX_COMPILED: usize = 4 << 20;
/// How many compiled expressions a rendering keeps.
const MAX_KEPT: usize = 512;

items! {
    /// Whether a string matches; a wrong expression matches nothing.
    sprig "REGEX TEXT -> bool", r#"{{ regexMatch "^v[0-9]+$" "v12" }}"# => "true";
    "regexMatch"(String, String) => |ctx, args| match compile(ctx, text(args, 0)) {
        Ok(regex) => Ok(regex.is_match(bytes(args, 1)).into()),
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok(false.into()),
    };
    /// Whether a string matches.
    sprig "REGEX TEXT -> bool", r#"{{ mustRegexMatch "^v[0-9]+$" "v12" }}"# => "true";
    "mustRegexMatch"(String, String) => |ctx, args| {
        Ok(compile(ctx, text(args, 0))?.is_match(bytes(args, 1)).into())
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
        let quoted: String = chars(args, 0).chars().flat_map(|c| {
            let meta = matches!(c, '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$');
            meta.then_some('\\').into_iter().chain([c])
        }).collect();
        string(ctx, quoted)
    };
}

#[derive(Debug, Default)]
struct Kept(HashMap<Str, Arc<Regex>>);

fn compile(ctx: &mut Ctx, pattern: &Str) -> Result<Arc<Regex>, FuncError> {
    if let Some(known) = ctx.extension::<Kept>().and_then(|kept| kept.0.get(pattern)) {
        return Ok(known.clone());
    }
    ctx.meter.charge_steps(u64::try_from(pattern.len()).unwrap_or(u64::MAX).saturating_mul(16))?;
    let translated = translate(&pattern.to_str_lossy()).map_err(FuncError::new)?;
    let built = RegexBuilder::new(&translated)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build();
    let regex = Arc::new(built.map_err(|error| {
        let reason = match error {
            regex::Error::CompiledTooBig(_) => "expression too large".to_owned(),
            other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
        };
        FuncError::new(format!("error parsing regexp: {reason}: `{pattern}`"))
    })?);
    if ctx.extension::<Kept>().is_none_or(|kept| kept.0.len() >= MAX_KEPT) {
        ctx.extend(Kept::default());
    }
    if let Some(kept) = ctx.extension_mut::<Kept>() {
        kept.0.insert(pattern.clone(), regex.clone());
    }
    Ok(regex)
}

/// `panics`: the function that Go calls panics on a wrong expression, with a longer text.
fn compiled(ctx: &mut Ctx, pattern: &Str, panics: bool) -> Result<Arc<Regex>, FuncError> {
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

/// Matching is linear in the text: charged before it is done.
fn charge(ctx: &mut Ctx, text: &[u8]) -> Result<(), FuncError> {
    ctx.meter.charge_steps(u64::try_from(text.len() / 16).unwrap_or(u64::MAX))
}

fn find(ctx: &mut Ctx, args: &[Value], panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    charge(ctx, bytes(args, 1))?;
    let found = regex.find(bytes(args, 1)).map(|found| found.as_bytes()).unwrap_or_default();
    string(ctx, found)
}

fn find_all(ctx: &mut Ctx, args: &[Value], panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    charge(ctx, bytes(args, 1))?;
    let limit = usize::try_from(int(args, 2)).unwrap_or(usize::MAX);
    let found: Vec<&[u8]> = regex
        .find_iter(bytes(args, 1))
        .filter(|found| on_boundary(bytes(args, 1), found))
        .take(limit)
        .map(|found| found.as_bytes())
        .collect();
    if found.is_empty() {
        return Ok(ctx.heap.new_nil_list(Type::STRINGS).into());
    }
    strings(ctx, found)
}

fn replace(ctx: &mut Ctx, args: &[Value], groups: bool, panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    let (whole, by) = (bytes(args, 1), bytes(args, 2));
    charge(ctx, whole)?;
    let limit = ctx.meter.bytes_left();
    let mut out = Vec::new();
    let mut last = 0;
    for found in regex.captures_iter(whole) {
        let Some(all) = found.get(0).filter(|all| on_boundary(whole, all)) else { continue };
        out.extend_from_slice(whole.get(last..all.start()).unwrap_or_default());
        if groups {
            expand(&regex, &found, by, &mut out);
        } else {
            out.extend_from_slice(by);
        }
        last = all.end();
        ctx.meter.charge_steps(1)?;
        if out.len() > limit {
            ctx.meter.charge_bytes(out.len())?;
        }
    }
    out.extend_from_slice(whole.get(last..).unwrap_or_default());
    string(ctx, out)
}

fn split(ctx: &mut Ctx, args: &[Value], panics: bool) -> Outcome {
    let regex = compiled(ctx, text(args, 0), panics)?;
    let whole = bytes(args, 1);
    charge(ctx, whole)?;
    let limit = match int(args, 2) {
        0 => return Ok(ctx.heap.new_nil_list(Type::STRINGS).into()),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    if !text(args, 0).is_empty() && whole.is_empty() {
        return strings(ctx, vec![""]);
    }
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
    charge_items(ctx, parts.len())?;
    strings(ctx, parts)
}

/// No empty match lies within a character. (On bytes, the crate finds those too.)
fn on_boundary(whole: &[u8], found: &regex::bytes::Match<'_>) -> bool {
    !found.is_empty() || whole.get(found.start()).is_none_or(|byte| !(0x80..0xc0).contains(byte))
}

/// Appends a replacement: `$1`, `$name`, `${name}` and `$$` mean something, any other `$` is one.
fn expand(regex: &Regex, found: &regex::bytes::Captures<'_>, by: &[u8], out: &mut Vec<u8>) {
    let mut rest = by;
    while let Some(at) = memchr::memchr(b'$', rest) {
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
            let named = |wanted: &str| regex.capture_names().flatten().any(|known| known == wanted);
            let renamed = format!("_{name}");
            let known = [name, renamed.as_str()].into_iter().find(|wanted| named(wanted));
            known.and_then(|name| found.name(name))
        };
        out.extend_from_slice(group.map(|group| group.as_bytes()).unwrap_or_default());
    }
    out.extend_from_slice(rest);
}

/// The name behind a `$`, with braces or as long as it goes, and what follows.
fn group_name(rest: &[u8]) -> Option<(&str, &[u8])> {
    let braced = rest.strip_prefix(b"{");
    let body = braced.unwrap_or(rest);
    let text = std::str::from_utf8(body)
        .or_else(|error| std::str::from_utf8(body.get(..error.valid_up_to()).unwrap_or_default()))
        .ok()?;
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let name = text.get(..end).filter(|name| !name.is_empty())?;
    let after = body.get(end..)?;
    match braced {
        Some(_) => after.strip_prefix(b"}").map(|after| (name, after)),
        None => Some((name, after)),
    }
}
