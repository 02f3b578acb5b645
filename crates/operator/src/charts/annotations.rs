//! Annotations of a resource that change its reconciles: those of operator-sdk's Helm operator and of
//! helm-operator-plugins.

use std::time::Duration;

use catamaran_release::{ActionOptions, Force, WaitStrategy};
use kube::ResourceExt;
use kube::core::DynamicObject;

use crate::options::duration;

/// The prefix of all annotations, and the one before operator-sdk 1.0.
const PREFIXES: [&str; 2] = ["helm.sdk.operatorframework.io/", "helm.operator-sdk/"];
/// Pauses a resource. helm-operator-plugins leaves the name of such an annotation to the program.
const PAUSE: &str = "pause-reconcile";

/// Requests new passwords, keys and certificates. The Go operators have no such annotation: they
/// generate new ones in each upgrade.
const ROTATE: &str = "catamaran.dev/rotate";

/// The shortest reconcile period of an annotation, so that it cannot keep the operator busy. Watches
/// report every change at once anyway.
const SHORTEST_PERIOD: Duration = Duration::from_secs(10);
/// The longest one.
const LONGEST_PERIOD: Duration = Duration::from_hours(366 * 24);

/// A reconcile period from an annotation, within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    /// The value of the annotation.
    asked: Duration,
    /// The period that applies; zero means none.
    pub used: Duration,
}

impl Period {
    fn new(asked: Duration) -> Self {
        let bounded = asked.clamp(SHORTEST_PERIOD, LONGEST_PERIOD);
        Self { asked, used: if asked.is_zero() { asked } else { bounded } }
    }

    /// The message if the period differs from the annotation.
    pub fn refusal(&self) -> Option<String> {
        let Self { asked, used } = self;
        (asked != used).then(|| {
            format!(
                "the annotation reconcile-period asks for {asked:?}: the bound {used:?} is used"
            )
        })
    }
}

/// The options that the annotations of a resource set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an annotation of its own")]
pub(super) struct ReconcileOptions {
    /// Whether the resource is paused.
    pub paused: bool,
    /// Whether the annotation for a pause exists, with any value.
    pub pausable: bool,
    upgrade_force: bool,
    rollback_force: bool,
    uninstall_wait: bool,
    /// The rotation of generated values: another text requests new ones.
    pub rotation: String,
    /// The reconcile period, instead of that of the kind.
    pub period: Option<Result<Period, String>>,
    install: ActionAnnotations,
    upgrade: ActionAnnotations,
    uninstall: ActionAnnotations,
}

/// The annotations of one action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ActionAnnotations {
    no_hooks: bool,
    description: Option<String>,
}

impl ReconcileOptions {
    pub fn of(resource: &DynamicObject) -> Self {
        let annotations = resource.annotations();
        let find = |name: &str| {
            PREFIXES.iter().find_map(|prefix| annotations.get(&format!("{prefix}{name}")))
        };
        let truth = |name: &str| {
            let text = find(name)?;
            let told = crate::options::boolean(text).ok();
            if told.is_none() {
                tracing::warn!(
                    annotation = name,
                    value = text,
                    "annotation is no boolean: taken as false"
                );
            }
            told
        };
        let action = |name: &str| ActionAnnotations {
            no_hooks: truth(&format!("{name}-disable-hooks")).unwrap_or(false),
            description: find(&format!("{name}-description")).cloned(),
        };
        Self {
            paused: truth(PAUSE).unwrap_or(false),
            pausable: find(PAUSE).is_some(),
            upgrade_force: truth("upgrade-force").unwrap_or(false),
            rollback_force: truth("rollback-force").unwrap_or(false),
            uninstall_wait: truth("uninstall-wait").unwrap_or(false),
            rotation: annotations.get(ROTATE).cloned().unwrap_or_default(),
            period: find("reconcile-period").map(|text| period(text)),
            install: action("install"),
            upgrade: action("upgrade"),
            uninstall: action("uninstall"),
        }
    }

    /// The options of an install.
    pub fn install(&self) -> ActionOptions {
        self.install.action_options()
    }

    /// The options of an upgrade.
    pub fn upgrade(&self) -> ActionOptions {
        let force = if self.upgrade_force { Force::Replace } else { Force::No };
        ActionOptions { force, ..self.upgrade.action_options() }
    }

    /// The options of a rollback. Go's operators replace objects by default, which removes fields of
    /// autoscalers and fails for volume claims. Here an annotation has to request it.
    pub fn rollback(&self) -> ActionOptions {
        let force = if self.rollback_force { Force::Replace } else { Force::No };
        ActionOptions { force, ..ActionOptions::default() }
    }

    /// The options of an uninstall.
    pub fn uninstall(&self) -> ActionOptions {
        let wait = if self.uninstall_wait { WaitStrategy::Objects } else { WaitStrategy::No };
        ActionOptions { wait, ..self.uninstall.action_options() }
    }
}

impl ActionAnnotations {
    fn action_options(&self) -> ActionOptions {
        ActionOptions {
            no_hooks: self.no_hooks,
            description: self.description.clone().filter(|text| !text.is_empty()),
            ..ActionOptions::default()
        }
    }
}

/// The longest text that is parsed as a duration, and quoted in a message.
const LONGEST_DURATION: usize = 64;

fn period(text: &str) -> Result<Period, String> {
    if text.len() > LONGEST_DURATION {
        return Err(format!("it has {} bytes: a duration, such as 1m30s, is shorter", text.len()));
    }
    duration(text).map(Period::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn reconcile_options(annotations: &Value) -> ReconcileOptions {
        let resource = json!({
            "apiVersion": "g.io/v1", "kind": "A",
            "metadata": { "name": "a", "annotations": annotations },
        });
        ReconcileOptions::of(&serde_json::from_value(resource).unwrap())
    }

    #[test]
    fn booleans_are_gos_and_all_else_is_false() {
        let table = [
            ("true", true),
            ("1", true),
            ("T", true),
            ("True", true),
            ("0", false),
            ("yes", false),
            ("", false),
        ];
        for (text, expected) in table {
            for prefix in PREFIXES {
                let found = reconcile_options(&json!({ format!("{prefix}upgrade-force"): text }));
                assert_eq!(found.upgrade().force == Force::Replace, expected, "{prefix}: {text}");
                assert_eq!(found.install().force, Force::No, "an upgrade's alone");
                let found = reconcile_options(&json!({ format!("{prefix}rollback-force"): text }));
                assert_eq!(found.rollback().force == Force::Replace, expected, "{prefix}: {text}");
                assert_eq!(found.upgrade().force, Force::No, "a rollback's alone");
            }
        }
        assert_eq!(reconcile_options(&json!({})), ReconcileOptions::default());
    }

    #[test]
    fn each_action_has_its_own_hooks_and_description() {
        let found = reconcile_options(&json!({
            "helm.sdk.operatorframework.io/install-disable-hooks": "true",
            "helm.sdk.operatorframework.io/upgrade-description": "as asked",
            "helm.sdk.operatorframework.io/uninstall-disable-hooks": "nonsense",
            "helm.sdk.operatorframework.io/uninstall-wait": "t",
        }));
        assert!(found.install().no_hooks && found.install().description.is_none());
        assert!(!found.upgrade().no_hooks);
        assert_eq!(found.upgrade().description.as_deref(), Some("as asked"));
        assert!(!found.uninstall().no_hooks && found.uninstall().wait == WaitStrategy::Objects);
    }

    #[test]
    fn a_period_is_gos_or_an_error() {
        let period = |text: &str| {
            reconcile_options(&json!({ "helm.sdk.operatorframework.io/reconcile-period": text }))
                .period
        };
        assert_eq!(period("1m30s"), Some(Ok(Period::new(Duration::from_secs(90)))));
        assert!(period("soon").unwrap().is_err());
        let told = period(&"1h".repeat(100_000)).unwrap().unwrap_err();
        assert_eq!(told, "it has 200000 bytes: a duration, such as 1m30s, is shorter");
        assert_eq!(reconcile_options(&json!({})).period, None);
    }

    #[test]
    fn a_period_is_kept_within_its_bounds() {
        let used = |text: &str| {
            let period = reconcile_options(
                &json!({ "helm.sdk.operatorframework.io/reconcile-period": text }),
            );
            let period = period.period.unwrap().unwrap();
            (period.used.as_secs(), period.refusal().is_some())
        };
        for (text, expected) in [
            ("1ns", (10, true)),
            ("9s", (10, true)),
            ("10s", (10, false)),
            ("0s", (0, false)),
            ("720h", (2_592_000, false)),
            ("2540400h", (31_622_400, true)),
        ] {
            assert_eq!(used(text), expected, "{text}");
        }
    }

    #[test]
    fn a_pause_is_told_from_one_that_is_over() {
        let paused = |text: &str| {
            let found = reconcile_options(
                &json!({ "helm.sdk.operatorframework.io/pause-reconcile": text }),
            );
            (found.paused, found.pausable)
        };
        assert_eq!([paused("true"), paused("false")], [(true, true), (false, true)]);
    }
}
