//! Stage two: every switch is an object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catamaran_operator::native::{ComponentProgress, Context, Error};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, MicroTime};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use serde_json::json;

use crate::PATIENCE;
use crate::api::{Machine, Position, Switch, SwitchSpec};

/// The label that ties a switch to its machine, unless the machine has a selector.
const MACHINE: &str = "machine";

/// Keeps as many switches as wanted, and moves them down, one at a time.
pub async fn keep(ctx: &Context<'_, Machine>, wanted: i32) -> Result<ComponentProgress, Error> {
    let (selector, labels) = selection(ctx)?;
    let mut switches = ctx.claim::<Switch>(&selector).await?;
    let wanted = usize::try_from(wanted).unwrap_or_default();
    // What is too much goes; the youngest first, as with a ReplicaSet.
    switches.sort_by_key(|switch| (switch.creation_timestamp(), switch.name_any()));
    for surplus in switches.drain(wanted.min(switches.len())..) {
        ctx.delete(&*surplus).await?;
    }
    let missing = wanted - switches.len();
    switches.extend(ctx.create_missing("switch-", missing, || switch(&labels)).await?);
    switches.sort_by_key(|switch| switch.name_any());
    move_back(ctx, &mut switches).await?;

    let positions: String = switches.iter().map(|switch| letter(switch)).collect();
    let up = positions.matches('u').count();
    ctx.status(|status| {
        status.switches = i32::try_from(switches.len()).ok();
        status.positions = Some(positions);
    });
    Ok(match up {
        0 => ComponentProgress::Ready,
        up => ComponentProgress::pending(
            "SwitchedUp",
            format!("{up} of {} switches are up", switches.len()),
        ),
    })
}

/// Notes which switches are up, and moves the one down that has been up for longest: never more than
/// one in a while, which the machine's status remembers.
async fn move_back(ctx: &Context<'_, Machine>, switches: &mut [Arc<Switch>]) -> Result<(), Error> {
    let now = ctx.now();
    for switch in switches.iter_mut() {
        let seen_at = match (switch.spec.position, seen_at(switch)) {
            (Position::Up, None) => Some(MicroTime(now)),
            // Somebody has set the clock back.
            (Position::Up, Some(later)) if later > now => Some(MicroTime(now)),
            (Position::Down, Some(_)) => None,
            _ => continue,
        };
        *switch = Arc::new(ctx.patch_status(&**switch, json!({ "seenAt": seen_at })).await?);
    }
    let up = switches.iter_mut().filter(|switch| switch.spec.position == Position::Up);
    let Some(next) = up.min_by_key(|switch| (seen_at(switch), switch.name_any())) else {
        return Ok(());
    };
    let last_move = ctx.fields().seen_at.map(|moved_at| moved_at.0).filter(|at| *at <= now);
    let since = seen_at(next).into_iter().chain(last_move).max().unwrap_or(now);
    match PATIENCE.checked_sub(Duration::try_from(now.duration_since(since)).unwrap_or_default()) {
        Some(rest) if !rest.is_zero() => ctx.requeue(rest),
        _ => {
            let moved =
                ctx.patch(&**next, json!({ "spec": { "position": Position::Down } })).await?;
            *next = Arc::new(ctx.patch_status(&moved, json!({ "seenAt": null })).await?);
            ctx.status(|status| status.seen_at = Some(MicroTime(now)));
            ctx.requeue(PATIENCE); // the next one, if there is one
        }
    }
    Ok(())
}

/// Which switches are the machine's, and the labels of those that it makes.
fn selection(machine: &Machine) -> Result<(Selector, BTreeMap<String, String>), Error> {
    let wrong = |why: String| Error::Permanent(format!("spec.selector: {why}"));
    let by_name = BTreeMap::from([(MACHINE.to_owned(), machine.name_any())]);
    let Some(selector) = machine.spec.selector.clone().filter(|s| *s != LabelSelector::default())
    else {
        return Ok((by_name.clone().into_iter().collect(), by_name));
    };
    let mut labels = selector.match_labels.clone().unwrap_or_default();
    labels.entry(MACHINE.to_owned()).or_insert_with(|| machine.name_any());
    let selector = Selector::try_from(selector).map_err(|error| wrong(error.to_string()))?;
    if !selector.matches(&labels) {
        return Err(wrong(format!("it does not select a switch with the labels {labels:?}")));
    }
    Ok((selector, labels))
}

fn switch(labels: &BTreeMap<String, String>) -> Switch {
    let mut switch = Switch::new("", SwitchSpec { position: Position::Down });
    switch.metadata.labels = Some(labels.clone());
    switch
}

fn seen_at(switch: &Switch) -> Option<Timestamp> {
    Some(switch.status.as_ref()?.seen_at.as_ref()?.0)
}

fn letter(switch: &Switch) -> char {
    match switch.spec.position {
        Position::Up => 'u',
        Position::Down => 'd',
    }
}
