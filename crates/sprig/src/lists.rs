//! Lists. Every function makes a new list; the elements are shared.

use catamaran_gotemplate::{Ctx, FuncError, Kind, Type, Value};

use crate::args::{
    Outcome, any, charge_items, from, int, items, list, slice_bounds, strings, try_items,
};
use crate::casts::to_int;
use crate::compare::{EqualSet, contains};
use crate::flow::is_empty;
use crate::strings::to_texts;

items! {
    /// The first element of a list; nil of an empty one.
    sprig "LIST -> any", r#"{{ first (list "a" "b") }}"# => "a";
    "first" | "mustFirst"(Any) => |ctx, args| {
        Ok(items(ctx, any(args, 0), "Cannot find first on type")?.into_iter().next().unwrap_or_default())
    };
    /// The last element of a list; nil of an empty one.
    sprig "LIST -> any", r#"{{ last (list "a" "b") }}"# => "b";
    "last" | "mustLast"(Any) => |ctx, args| {
        Ok(items(ctx, any(args, 0), "Cannot find last on type")?.pop().unwrap_or_default())
    };
    /// A list without its first element.
    sprig "LIST -> list", "{{ rest (list 1 2 3) }}" => "[2 3]";
    "rest" | "mustRest"(Any) => |ctx, args| {
        let all = items(ctx, any(args, 0), "Cannot find rest on type")?;
        if all.is_empty() { return Ok(nil_list(ctx)); }
        list(ctx, all.into_iter().skip(1).collect())
    };
    /// A list without its last element.
    sprig "LIST -> list", "{{ initial (list 1 2 3) }}" => "[1 2]";
    "initial" | "mustInitial"(Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot find initial on type")?;
        if all.pop().is_none() { return Ok(nil_list(ctx)); }
        list(ctx, all)
    };
    /// A new list: the old one with a value behind it.
    sprig "LIST VALUE -> list", "{{ append (list 1 2) 3 }}" => "[1 2 3]";
    "append" | "push" | "mustAppend" | "mustPush"(Any, Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot push on type")?;
        all.push(any(args, 1).clone());
        list(ctx, all)
    };
    /// A new list: the old one with a value in front of it.
    sprig "LIST VALUE -> list", "{{ prepend (list 1 2) 0 }}" => "[0 1 2]";
    "prepend" | "mustPrepend"(Any, Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot prepend on type")?;
        all.insert(0, any(args, 1).clone());
        list(ctx, all)
    };
    /// One list of the elements of all lists.
    sprig "LIST... -> list", "{{ concat (list 1 2) (list 3) }}" => "[1 2 3]";
    "concat"(; Any) => |ctx, args| {
        let mut all = Vec::new();
        for part in args {
            match try_items(ctx, part)? {
                Some(part) => all.extend(part),
                None if part.is_nil() => return Err(FuncError::new(crate::args::NIL_DEREFERENCE)),
                None => {
                    let kind = ctx.heap.kind_of(part);
                    return Err(FuncError::new(format!("Cannot concat type {kind} as list")));
                }
            }
        }
        if all.is_empty() { return Ok(nil_list(ctx)); }
        list(ctx, all)
    };
    /// A list's elements in the reverse order.
    sprig "LIST -> list", "{{ reverse (list 1 2 3) }}" => "[3 2 1]";
    "reverse" | "mustReverse"(Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot find reverse on type")?;
        all.reverse();
        list(ctx, all)
    };
    /// A list's elements that are not empty: not false, 0, nil, nor without content.
    sprig "LIST -> list", r#"{{ compact (list 1 0 "" "a") }}"# => "[1 a]";
    "compact" | "mustCompact"(Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot compact on type")?;
        all.retain(|item| !is_empty(&ctx.heap, item));
        list(ctx, all)
    };
    /// A list's elements, equal ones once, in the order in which they come first.
    sprig "LIST -> list", "{{ uniq (list 1 2 1) }}" => "[1 2]";
    "uniq" | "mustUniq"(Any) => |ctx, args| {
        let all = items(ctx, any(args, 0), "Cannot find uniq on type")?;
        let (mut seen, mut kept) = (EqualSet::default(), Vec::new());
        for item in all {
            if seen.insert(ctx, &item)? {
                kept.push(item);
            }
        }
        list(ctx, kept)
    };
    /// A list's elements that are equal to none of the other arguments.
    sprig "LIST VALUE... -> list", "{{ without (list 1 2 3) 1 3 }}" => "[2]";
    "without" | "mustWithout"(Any; Any) => |ctx, args| {
        let all = items(ctx, any(args, 0), "Cannot find without on type")?;
        let unwanted = EqualSet::of(ctx, from(args, 1))?;
        let mut kept = Vec::new();
        for item in all {
            if !unwanted.contains(ctx, &item)? {
                kept.push(item);
            }
        }
        list(ctx, kept)
    };
    /// Whether a list has the value as an element.
    sprig "VALUE LIST -> bool", r#"{{ has "b" (list "a" "b") }}"# => "true";
    "has" | "mustHas"(Any, Any) => |ctx, args| {
        if any(args, 1).is_nil() { return Ok(false.into()); }
        let all = items(ctx, any(args, 1), "Cannot find has on type")?;
        Ok(contains(ctx, &all, any(args, 0))?.into())
    };
    /// A list's elements from a start up to an end, which is not among them. Places count from 0.
    sprig "LIST [START] [END] -> list", "{{ slice (list 1 2 3 4) 1 3 }}" => "[2 3]";
    "slice" | "mustSlice"(Any; Any) => |ctx, args| slice(ctx, any(args, 0), from(args, 1));
    /// A list of lists: the list in pieces of a size, the last one perhaps shorter.
    sprig "SIZE LIST -> list", "{{ chunk 2 (list 1 2 3) }}" => "[[1 2] [3]]";
    "chunk" | "mustChunk"(Int, Any) => |ctx, args| chunk(ctx, int(args, 0), any(args, 1));
    /// The texts of a list's elements, sorted by their bytes: capitals come first.
    sprig "LIST -> list", r#"{{ sortAlpha (list "b" "a" "C") }}"# => "[C a b]";
    "sortAlpha"(Any) => |ctx, args| {
        let mut all = to_texts(ctx, any(args, 0))?;
        if any(args, 0).is_nil() {
            return strings(ctx, vec!["<nil>"]);
        }
        if let Value::List(of) = any(args, 0) && ctx.heap.list(*of).nil {
            return Ok(any(args, 0).clone());
        }
        if all.is_empty() {
            return strings(ctx, all);
        }
        // Every text is compared with some others, as far as they are alike.
        let length = all.iter().fold(all.len(), |sum, text| sum.saturating_add(text.len()));
        let rounds = usize::try_from(all.len().ilog2()).unwrap_or(0) + 1;
        ctx.meter.charge_scan(length.saturating_mul(rounds))?;
        all.sort();
        strings(ctx, all)
    };
}

fn nil_list(ctx: &mut Ctx) -> Value {
    ctx.heap.new_nil_list(Type::LIST).into()
}

fn slice(ctx: &mut Ctx, value: &Value, bounds: &[Value]) -> Outcome {
    let all = items(ctx, value, "list should be type of slice or array but")?;
    if all.is_empty() {
        return Ok(Value::Nil);
    }
    let start = bounds.first().map_or(0, to_int);
    let end = bounds.get(1).map_or(i64::try_from(all.len()).unwrap_or(i64::MAX), to_int);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match range.and_then(|(start, end)| all.get(start..end)) {
        Some(part) => {
            let part = part.to_vec();
            if let Value::Bytes(bytes) = value {
                let range = range.map_or(0..0, |(start, end)| start..end);
                return Ok(Value::Bytes(bytes.get(range).unwrap_or_default().into()));
            }
            charge_items(ctx, part.len())?;
            let ty =
                ctx.heap.type_of(value).filter(|ty| ty.kind() == Kind::Slice).unwrap_or(Type::LIST);
            Ok(ctx.heap.new_list_of(ty, part).into())
        }
        None if start > end || start < 0 || end < 0 => {
            Err(FuncError::new("reflect.Value.Slice: slice index out of bounds"))
        }
        None => Err(match value {
            Value::List(_) => FuncError::new("reflect.Value.Slice: slice index out of bounds"),
            _ => slice_bounds(start, end, all.len(), false),
        }),
    }
}

fn chunk(ctx: &mut Ctx, size: i64, value: &Value) -> Outcome {
    let all = items(ctx, value, "Cannot chunk type")?;
    let out_of_range = || FuncError::new("runtime error: makeslice: len out of range");
    // The number of pieces and the length of the last, with Go's arithmetic: of a size below 1 it
    // gives one piece, or none, or what cannot be made.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // as Go converts
    let (count, last): (f64, i64) = {
        let (all, size) = (all.len() as f64, size as f64);
        (((all - 1.0) / size).floor() + 1.0, (all % size).floor() as i64)
    };
    if !count.is_finite() {
        return Err(out_of_range());
    }
    if count == 0.0 {
        return Ok(ctx.heap.new_list_of(Type::List(&Type::LIST), Vec::new()).into());
    }
    let last = if last == 0 { size } else { last };
    let size = match usize::try_from(size) {
        Ok(size) => size,
        Err(_) if count.total_cmp(&1.0).is_eq() => {
            usize::try_from(last).map_err(|_| out_of_range())?
        }
        Err(_) => return Err(out_of_range()),
    };
    let mut pieces = Vec::new();
    for piece in all.chunks(size) {
        pieces.push(list(ctx, piece.to_vec())?);
        ctx.check_memory()?;
    }
    Ok(ctx.heap.new_list_of(Type::List(&Type::LIST), pieces).into())
}
