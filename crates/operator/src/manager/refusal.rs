//! Resources that are not decoded: their condition.

use catamaran_cluster::conditions::{Condition, reasons, types};
use catamaran_cluster::items::Refusal;
use kube::Api;
use kube::core::DynamicObject;

use super::controller::{Failure, Requeue};
use super::queue::Key;
use super::status::{StatusPatch, Written};
use super::writes::Writes;

/// Says in the status of a resource that it is not decoded, and why. `resource` has its metadata and its
/// conditions; nothing else is read, and nothing but conditions is written. Tried again only if the
/// resource changes, or if the API server is out of order.
pub(super) async fn report_refusal(
    (key, writes): (&Key, &Writes),
    api: &Api<DynamicObject>,
    resource: &DynamicObject,
    refusal: &Refusal,
    stuck: &[&str],
) -> Result<Requeue, Failure> {
    let reason = match refusal {
        Refusal::TooLarge(_) => reasons::SPEC_TOO_LARGE,
        Refusal::Undecodable(_) => reasons::UNDECODABLE,
    };
    let message = refusal.to_string();
    let mut status_patch = StatusPatch::of(resource);
    status_patch.condition(Condition::new(types::READY, false, reason, &message));
    for type_ in stuck {
        status_patch.condition(Condition::new(*type_, true, reason, &message));
    }
    match status_patch.write(api, resource).await {
        Ok(Written::Conflict) => Err(Failure::Conflict),
        Ok(Written::Changed(written)) => {
            writes.note(key, &written);
            Err(Failure::Permanent(message))
        }
        Ok(Written::Unchanged | Written::Gone) => Err(Failure::Permanent(message)),
        // No room for a status, perhaps: another try changes nothing.
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 413 | 422) => {
            Err(Failure::Permanent(format!("{message}; its status cannot be written: {status}")))
        }
        Err(error) => Err(Failure::Transient(format!("cannot write the status: {error}"))),
    }
}
