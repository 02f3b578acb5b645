//! Merging of maps, with the rules of the Go library behind Sprig's `merge`.

use catamaran_gotemplate::{Ctx, FuncError, MAX_VALUE_DEPTH, Map, Str, Value};

use crate::args::{Outcome, charge_items, from, is_nil_map, map};
use crate::flow::is_empty;

/// Merges all further maps into the first one, one after the other, and returns it.
pub(crate) fn merge(ctx: &mut Ctx, args: &[Value], overwrite: bool) -> Outcome {
    let mut into = map(args, 0).unwrap_or_else(|| ctx.heap.new_map());
    if is_nil_map(ctx, into) {
        // Nothing can be written to it: as soon as there is something to merge, it is another map.
        if from(args, 1).iter().filter_map(Value::as_map).all(|source| is_nil_map(ctx, source)) {
            return Ok(into.into());
        }
        into = ctx.heap.new_map();
    }
    for source in from(args, 1).iter().filter_map(Value::as_map) {
        merge_into(ctx, into, source, overwrite, 0)?;
    }
    Ok(into.into())
}

fn merge_into(
    ctx: &mut Ctx,
    into: Map,
    source: Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), FuncError> {
    if depth > MAX_VALUE_DEPTH {
        return Err(FuncError::new("maps nest too deep to be merged"));
    }
    if into == source {
        return Ok(());
    }
    charge_items(ctx, ctx.heap.map(source).entries.len().saturating_mul(3).saturating_add(1))?;
    ctx.check_memory()?;
    let entries: Vec<(Str, Value)> = ctx
        .heap
        .map(source)
        .entries
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (key, value) in entries {
        if value.is_nil() && !overwrite {
            continue;
        }
        let old = ctx.heap.get(into, &key).cloned();
        if let (Some(Value::Map(old)), Value::Map(new)) = (&old, &value) {
            merge_into(ctx, *old, *new, overwrite, depth + 1)?;
            // Both empty: from now on it is the other's map.
            if ctx.heap.map(*old).entries.is_empty() {
                ctx.heap.set(into, key, value);
            }
        } else if overwrite || old.is_none_or(|old| is_empty(&ctx.heap, &old)) {
            ctx.heap.set(into, key, value);
        }
    }
    Ok(())
}
