//! Lists. Every function makes a new list; the elements are shared.

use catamaran_gotemplate::{Ctx, FuncError, Kind, Type, Value};

use crate::args::{
    Outcome, any, charge_items, from, int, items, list, slice_bounds, strings, try_items,
};
use crate::casts::to_int;
use crate::compare::contains;
use crate::flow::is_empty;
use crate::strings::to_texts;

items! {
    /// The first element; nil of an empty list.
    "first" | "mustFirst"(Any) => |ctx, args| {
        Ok(items(ctx, any(args, 0), "Cannot find first on type")?.into_iter().next().unwrap_or_default())
    };
    /// The last element; nil of an empty list.
    "last" | "mustLast"(Any) => |ctx, args| {
        Ok(items(ctx, any(args, 0), "Cannot find last on type")?.pop().unwrap_or_default())
    };
    /// All but the first element.
    "rest" | "mustRest"(Any) => |ctx, args| {
        let all = items(ctx, any(args, 0), "Cannot find rest on type")?;
        if all.is_empty() { return Ok(nil_list(ctx)); }
        list(ctx, all.into_iter().skip(1).collect())
    };
    /// All but the last element.
    "initial" | "mustInitial"(Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot find initial on type")?;
        if all.pop().is_none() { return Ok(nil_list(ctx)); }
        list(ctx, all)
    };
    /// The list with a value behind it.
    "append" | "push" | "mustAppend" | "mustPush"(Any, Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot push on type")?;
        all.push(any(args, 1).clone());
        list(ctx, all)
    };
    /// The list with a value in front of it.
    "prepend" | "mustPrepend"(Any, Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot prepend on type")?;
        all.insert(0, any(args, 1).clone());
        list(ctx, all)
    };
    /// All lists in one.
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
    /// The elements in the reverse order.
    "reverse" | "mustReverse"(Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot find reverse on type")?;
        all.reverse();
        list(ctx, all)
    };
    /// The elements that are not empty.
    "compact" | "mustCompact"(Any) => |ctx, args| {
        let mut all = items(ctx, any(args, 0), "Cannot compact on type")?;
        all.retain(|item| !is_empty(&ctx.heap, item));
        list(ctx, all)
    };
    /// Every element once.
    "uniq" | "mustUniq"(Any) => |ctx, args| {
        let all = items(ctx, any(args, 0), "Cannot find uniq on type")?;
        let mut kept = Vec::new();
        for item in all {
            if !contains(ctx, &kept, &item)? {
                kept.push(item);
            }
        }
        list(ctx, kept)
    };
    /// The elements that are equal to none of the other arguments.
    "without" | "mustWithout"(Any; Any) => |ctx, args| {
        let all = items(ctx, any(args, 0), "Cannot find without on type")?;
        let mut kept = Vec::new();
        for item in all {
            if !contains(ctx, from(args, 1), &item)? {
                kept.push(item);
            }
        }
        list(ctx, kept)
    };
    /// Whether the list has a value.
    "has" | "mustHas"(Any, Any) => |ctx, args| {
        if any(args, 1).is_nil() { return Ok(false.into()); }
        let all = items(ctx, any(args, 1), "Cannot find has on type")?;
        Ok(contains(ctx, &all, any(args, 0))?.into())
    };
    /// The elements from a start to an end: `slice list 1 3`.
    "slice" | "mustSlice"(Any; Any) => |ctx, args| slice(ctx, any(args, 0), from(args, 1));
    /// The list in pieces of a size.
    "chunk" | "mustChunk"(Int, Any) => |ctx, args| chunk(ctx, int(args, 0), any(args, 1));
    /// The texts of the elements, sorted by their bytes.
    "sortAlpha"(Any) => |ctx, args| {
        let mut all = to_texts(ctx, any(args, 0))?;
        if any(args, 0).is_nil() {
            return strings(ctx, vec!["<nil>"]);
        }
        if let Value::List(of) = any(args, 0) && ctx.heap.list(*of).nil {
            return Ok(any(args, 0).clone());
        }
        charge_items(ctx, all.len())?;
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
    let only_one = (count - 1.0).abs() < 0.5;
    let size = match usize::try_from(size) {
        Ok(size) => size,
        Err(_) if only_one => usize::try_from(last).map_err(|_| out_of_range())?,
        Err(_) => return Err(out_of_range()),
    };
    let mut pieces = Vec::new();
    for piece in all.chunks(size) {
        pieces.push(list(ctx, piece.to_vec())?);
    }
    Ok(ctx.heap.new_list_of(Type::List(&Type::LIST), pieces).into())
}
