//! Hooks, told apart by their annotations.

use super::{Head, Hook};

const HOOK: &str = "helm.sh/hook";
const WEIGHT: &str = "helm.sh/hook-weight";
const DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
const OUTPUT_LOG_POLICY: &str = "helm.sh/hook-output-log-policy";

const EVENTS: &[&str] = &[
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
];

/// What a document is to Helm.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A part of the release.
    Manifest,
    /// Run at events.
    Hook(Box<Hook>),
    /// Names an event Helm does not know (Helm 2's `crd-install`, a slip of the
    /// pen): left out altogether. Holds the annotation's value.
    Unknown(String),
}

pub(super) fn role_of(head: &Head, path: &str, document: &str) -> Role {
    let Some(events) = head.annotations.get(HOOK) else { return Role::Manifest };
    let Some(events_known) = words(events).map(event).collect::<Option<Vec<_>>>() else {
        return Role::Unknown(events.clone());
    };
    let policies = |annotation| {
        head.annotations.get(annotation).map_or_else(Vec::new, |list| words(list).collect())
    };
    Role::Hook(Box::new(Hook {
        name: head.name.clone(),
        kind: head.kind.clone(),
        path: path.to_owned(),
        manifest: document.to_owned(),
        events: events_known,
        // What is no number counts as 0.
        weight: head.annotations.get(WEIGHT).and_then(|w| w.parse().ok()).unwrap_or(0),
        delete_policies: policies(DELETE_POLICY),
        output_log_policies: policies(OUTPUT_LOG_POLICY),
    }))
}

fn words(list: &str) -> impl Iterator<Item = String> + '_ {
    list.split(',').map(|word| word.trim().to_lowercase())
}

fn event(name: String) -> Option<String> {
    match name.as_str() {
        "test-success" => Some("test".to_owned()),
        known if EVENTS.contains(&known) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    fn role(annotations: &str) -> Role {
        let text = format!("kind: Job\nmetadata:\n  name: a\n  annotations: {annotations}\n");
        role_of(&Head::parse("f", &text, Profile::Helm43).unwrap(), "f", &text)
    }

    #[test]
    fn hooks_are_read_leniently() {
        let Role::Hook(hook) = role(
            r#"{helm.sh/hook: " Pre-Install,test-success", helm.sh/hook-weight: 5, helm.sh/hook-delete-policy: "a, B"}"#,
        ) else {
            panic!("no hook")
        };
        assert_eq!(hook.events, ["pre-install", "test"]);
        assert_eq!(hook.weight, 5);
        assert_eq!(hook.delete_policies, ["a", "b"]);
        assert!(
            matches!(role("{helm.sh/hook: test, helm.sh/hook-weight: x}"), Role::Hook(h) if h.weight == 0)
        );
        assert_eq!(role("{a: b}"), Role::Manifest);
        assert_eq!(
            role(r#"{helm.sh/hook: "crd-install, test"}"#),
            Role::Unknown("crd-install, test".into())
        );
    }
}
