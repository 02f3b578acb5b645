//! Stage one: the switch is a field of the machine.

use catamaran_operator::native::{ComponentProgress, Context, Error};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::json;

use crate::PATIENCE;
use crate::api::Machine;

/// Moves the switch down when it has been up for a while.
///
/// Nobody sleeps here: that the switch was seen, and when, stands in the status, and the machine is
/// looked at again when the time has come. Meanwhile the worker serves other machines.
pub async fn move_back(
    ctx: &Context<'_, Machine>,
    position: &str,
) -> Result<ComponentProgress, Error> {
    if position == "down" {
        ctx.status(|status| status.seen_at = None);
        return Ok(ComponentProgress::Ready);
    }
    let now = ctx.now();
    // What was seen later than now was seen before somebody set the clock back.
    let seen_at = ctx.fields().seen_at.map_or(now, |seen_at| seen_at.0.min(now));
    match PATIENCE.checked_sub(now.duration_since(seen_at).unsigned_abs()) {
        Some(rest) if !rest.is_zero() => {
            ctx.status(|status| status.seen_at = Some(MicroTime(seen_at)));
            ctx.requeue(rest);
            Ok(ComponentProgress::pending("SwitchedUp", format!("the switch is {position}")))
        }
        _ => {
            ctx.patch(ctx.resource(), json!({ "spec": { "switchPosition": "down" } })).await?;
            ctx.status(|status| status.seen_at = None);
            Ok(ComponentProgress::Ready)
        }
    }
}
