//! Stage one: the switch is a field of the machine.

use catamaran_operator::native::{Cx, Error, Progress};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::json;

use crate::PATIENCE;
use crate::api::Machine;

/// Moves the switch down when it has been up for a while.
///
/// Nobody sleeps here: that the switch was seen, and when, stands in the status, and the machine is
/// looked at again when the time has come. Meanwhile the worker serves other machines.
pub async fn move_back(cx: &Cx<'_, Machine>, position: &str) -> Result<Progress, Error> {
    if position == "down" {
        cx.status(|status| status.seen_at = None);
        return Ok(Progress::Ready);
    }
    let now = cx.now();
    // What was seen later than now was seen before somebody set the clock back.
    let seen_at = cx.fields().seen_at.map_or(now, |seen_at| seen_at.0.min(now));
    match PATIENCE.checked_sub(now.duration_since(seen_at).unsigned_abs()) {
        Some(rest) if !rest.is_zero() => {
            cx.status(|status| status.seen_at = Some(MicroTime(seen_at)));
            cx.requeue(rest);
            Ok(Progress::pending("SwitchedUp", format!("the switch is {position}")))
        }
        _ => {
            cx.patch(cx.resource(), json!({ "spec": { "switchPosition": "down" } })).await?;
            cx.status(|status| status.seen_at = None);
            Ok(Progress::Ready)
        }
    }
}
