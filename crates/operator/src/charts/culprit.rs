//! Why a release is not ready, looked for where watches do not reach: at pods, and at events.

use catamaran_cluster::apply::Target;
use catamaran_cluster::culprit::{Culprit, Pace, is_worth_asking, pace};
use catamaran_cluster::readiness::Readiness;

use super::ChartController;
use super::memory::{Findings, NotReady};

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
        let again = match pace(worst.lasts) {
            Pace::Later(rest) => return findings.look_again(rest),
            Pace::Now(again) => again,
        };
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
