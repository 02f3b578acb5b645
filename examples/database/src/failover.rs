//! Who is written to. That is decided here alone, and written down before anything follows from it: never
//! do two servers take writes.
//!
//! A term begins when the primary is deposed, because it was down for too long or is one replica too many:
//! 1. No pod that is made from now on begins as the primary, which the StatefulSet's controller confirms.
//! 2. The deposed pod is deleted, and waited for until it is gone: as long as its node does not answer,
//!    nobody takes over.
//! 3. Of the standbys that are left the one that has heard the most is chosen, and written down.
//! 4. It is promoted, and the Services lead to it. The deposed pod comes back as a copy of it.

use std::sync::Arc;
use std::time::Duration;

use catamaran_operator::native::{ComponentProgress, Context, Error, PodResult};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};
use serde::Deserialize;

use crate::api::Database;
use crate::manifests::{self, TERM};
use crate::{SOON, Settled, is_whole, jobs};

/// What is read afresh is looked at again so soon: its watch may have told of it before.
const MOMENT: Duration = Duration::from_secs(1);

/// Sees to it that somebody is written to.
pub(crate) async fn follow(
    ctx: &Context<'_, Database>,
    settled: &mut Settled,
    servers: &[Arc<Pod>],
) -> Result<ComponentProgress, Error> {
    let known = ctx.fields();
    if let Some(deposed) = &known.deposed {
        return elect(ctx, settled, deposed, servers).await;
    }
    let Some(primary) = settled.primary.clone().filter(|_| is_whole(ctx, settled)) else {
        return Ok(ComponentProgress::Ready); // nobody else has the data yet
    };
    if known.promoted != settled.term {
        let progress = ctx.apply_or_recreate(jobs::promote(ctx, settled)?).await?;
        if progress == ComponentProgress::Ready {
            ctx.status(|status| status.promoted = settled.term);
            ctx.event(
                "FailedOver",
                &format!("{primary} is the primary now; commits that it had not received are lost"),
            );
        } else if !is_down(ctx, &primary, servers) {
            return Ok(ComponentProgress::pending(
                "Promoting",
                format!("{primary} becomes the primary"),
            ));
        }
    }
    let is_extra = ordinal(&primary) >= ctx.spec.replicas;
    if !is_extra && !is_down(ctx, &primary, servers) {
        return Ok(ComponentProgress::Ready);
    }
    let patience = ctx.spec.failover_seconds - seconds_down(ctx);
    if !is_extra && patience > 0 {
        ctx.requeue(Duration::from_secs(patience.unsigned_abs().into()));
        return Ok(ComponentProgress::pending("PrimaryDown", format!("{primary} is not ready")));
    }
    if candidates(ctx, &primary, servers).is_empty() {
        let message = format!("{primary} is not ready, and no standby is, to take over");
        return Ok(ComponentProgress::pending("NoStandby", message));
    }
    ctx.status(|status| {
        status.term += 1;
        status.deposed = Some(primary.clone());
        status.down_since = None;
    });
    ctx.warn("FailingOver", &format!("{primary} is the primary no more"));
    ctx.requeue(SOON); // this is written down first
    Ok(ComponentProgress::pending("FailingOver", format!("{primary} is the primary no more")))
}

/// Whether the primary is not ready; since when is written down.
fn is_down(ctx: &Context<'_, Database>, primary: &str, servers: &[Arc<Pod>]) -> bool {
    let is_up = servers.iter().any(|pod| pod.name_any() == primary && is_ready(pod));
    let now = Time(ctx.now());
    ctx.status(|status| {
        status.down_since = Some(status.down_since.take().unwrap_or(now)).filter(|_| !is_up);
    });
    !is_up
}

fn seconds_down(ctx: &Context<'_, Database>) -> i32 {
    let since: Timestamp = ctx.fields().down_since.map_or_else(|| ctx.now(), |since| since.0);
    let down: SignedDuration = ctx.now().duration_since(since);
    i32::try_from(down.as_secs()).unwrap_or(i32::MAX)
}

/// The number of a pod.
pub(crate) fn ordinal(pod: &str) -> i32 {
    pod.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
}

/// Whether a server can be asked.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    pod.metadata.deletion_timestamp.is_none() && ready.any(|condition| condition.status == "True")
}

/// What keeps a container of a pod from running: a reason, and words for a message.
pub(crate) fn trouble(pod: &Pod) -> Option<(String, String)> {
    let status = pod.status.as_ref()?;
    let first = status.init_container_statuses.iter().flatten();
    first.chain(status.container_statuses.iter().flatten()).find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.clone()?;
        let ended = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
        let said = ended.and_then(|ended| ended.message.as_ref()).or(waiting.message.as_ref());
        let said = said.map_or("", |said| said.trim());
        let name = pod.name_any();
        (!["PodInitializing", "ContainerCreating"].contains(&reason.as_str()))
            .then(|| (reason, format!("; {name}: {said}")))
    })
}

/// Who could take over: standbys that answer, by name and address.
fn candidates(
    ctx: &Context<'_, Database>,
    deposed: &str,
    servers: &[Arc<Pod>],
) -> Vec<(String, String)> {
    let standbys = servers.iter().filter(|pod| {
        let name = pod.name_any();
        name != deposed && ordinal(&name) < ctx.spec.replicas && is_ready(pod)
    });
    let address = |pod: &Arc<Pod>| Some((pod.name_any(), pod.status.as_ref()?.pod_ip.clone()?));
    standbys.filter_map(address).collect()
}

async fn elect(
    ctx: &Context<'_, Database>,
    settled: &mut Settled,
    deposed: &str,
    servers: &[Arc<Pod>],
) -> Result<ComponentProgress, Error> {
    settled.primary = None;
    if let Some(waits_for) = fence(ctx, settled, deposed).await? {
        ctx.requeue(MOMENT);
        return Ok(ComponentProgress::pending("Fencing", waits_for));
    }
    let candidates = candidates(ctx, deposed, servers);
    let addresses: Vec<_> = candidates.iter().map(|(name, at)| format!("{name}={at}")).collect();
    if addresses.is_empty() {
        return Ok(ComponentProgress::pending("NoStandby", "no standby is ready to take over"));
    }
    let job = jobs::elect(ctx, settled, &addresses.join(" "))?;
    if ctx.apply_or_recreate(job).await? != ComponentProgress::Ready {
        return Ok(ComponentProgress::pending("Electing", "the standbys are asked what they have"));
    }
    // Of one there is nothing to choose.
    let only = candidates.first().filter(|_| candidates.len() == 1).map(|(name, _)| name.clone());
    let Some(chosen) = said(ctx)?.or(only) else {
        return Ok(ComponentProgress::pending("Electing", "the answer of the standbys is awaited"));
    };
    ctx.status(|status| {
        status.primary = Some(chosen.clone());
        status.deposed = None;
    });
    ctx.requeue(SOON); // this is written down first
    Ok(ComponentProgress::pending("Promoting", format!("{chosen} becomes the primary")))
}

#[derive(Deserialize)]
struct Choice {
    primary: String,
}

/// Whom the last election of this term has chosen.
fn said(ctx: &Context<'_, Database>) -> Result<Option<String>, Error> {
    let term = format!("{}-elect-{}", ctx.name_any(), ctx.fields().term);
    let endings = jobs::endings(ctx, "elect", Some(&term))?.into_iter();
    let well = endings
        .filter(|ending: &PodResult| ending.is_success)
        .max_by_key(|ending| ending.at.as_ref().map(|at| at.0));
    let choice = well.and_then(|ending| serde_json::from_str::<Choice>(&ending.message).ok());
    Ok(choice.map(|choice| choice.primary).filter(|name| !name.is_empty()))
}

/// Has the deposed pod be gone, and none like it come again. What that waits for, if it does; all of it
/// is read afresh.
async fn fence(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    deposed: &str,
) -> Result<Option<String>, Error> {
    let namespace = ctx.namespace().unwrap_or_default();
    let sets: Api<StatefulSet> = Api::namespaced(ctx.client().clone(), &namespace);
    let set = sets.get_opt(&ctx.name_any()).await?.and_then(|set| {
        let of = set.spec.template.metadata?.annotations?.remove(TERM)?;
        let seen = set.status?.observed_generation == set.metadata.generation;
        Some(seen && of == settled.term.to_string())
    });
    if set != Some(true) {
        return Ok(Some("no pod may begin as the primary any more".to_owned()));
    }
    let pods: Api<Pod> = Api::namespaced(ctx.client().clone(), &namespace);
    let Some(pod) = pods.get_opt(deposed).await? else { return Ok(None) };
    if manifests::term(&pod) == Some(settled.term) {
        return Ok(None); // made as a standby
    }
    if pod.metadata.deletion_timestamp.is_none() {
        ctx.delete(&pod).await?;
    }
    Ok(Some(format!(
        "pod {deposed} has to be gone before another takes writes; if its node is lost for good, delete \
         the node, or the pod by force"
    )))
}
