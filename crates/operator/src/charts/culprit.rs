//! Why a release is not ready, looked for where watches do not reach: at pods, and at events.

use std::time::Duration;

use catamaran_cluster::apply::Target;
use catamaran_cluster::culprit::{Culprit, is_worth_asking};
use catamaran_cluster::readiness::Readiness;

use super::ChartController;
use super::memory::{Findings, NotReady};

/// For so long nothing is asked: most objects that were just applied are ready by then.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is asked at first; what can be seen is told within 5 s.
pub(super) const OFTEN: Duration = Duration::from_secs(4);
/// How often in the end.
const SELDOM: Duration = Duration::from_mins(1);
/// The longer it lasts, the more seldom it is asked: at this part of the time that it lasts.
const PATIENCE: u32 = 30;

impl ChartController {
    /// Puts what matters most first among what is not ready, and says of that what the cause is. It
    /// is asked again after a while, as no watch tells when the cause becomes another one.
    pub(super) async fn name_culprit(&self, findings: &mut Findings) {
        // The order is that of the installation: what comes first, later ones may be waiting for.
        findings.not_ready.sort_by_key(|it| !matches!(it.readiness, Readiness::Failed { .. }));
        let Some(worst) = findings.not_ready.first() else { return };
        if !is_worth_asking(&worst.gvk.group, &worst.gvk.kind) {
            return;
        }
        if let Some(rest) = GRACE.checked_sub(worst.lasts).filter(|rest| !rest.is_zero()) {
            return findings.look_again(rest);
        }
        let again = (worst.lasts / PATIENCE).clamp(OFTEN, SELDOM);
        let found = self.culprit(worst).await;
        findings.look_again(again);
        if let (Some(found), Some(worst)) = (found, findings.not_ready.first_mut()) {
            match &mut worst.readiness {
                Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
                    *message = found.to_string();
                    *reason = found.reason;
                }
                Readiness::Ready => {}
            }
        }
    }

    async fn culprit(&self, not_ready: &NotReady) -> Option<Culprit> {
        let mapping = self.mapper.resolve(&not_ready.gvk).await.ok()?;
        let NotReady { id, .. } = not_ready;
        let (namespace, name) = (id.namespace.clone(), id.name.clone());
        let target = Target { resource: mapping.resource, namespace, name };
        let live = self.reader.get(&target).await.ok()??;
        self.reader.culprit(&target, &live).await
    }
}
