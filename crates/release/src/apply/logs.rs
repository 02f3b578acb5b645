//! What hooks print, where the chart asks to show it: `helm.sh/hook-output-log-policy`.
//!
//! As in Helm 4: of a hook that failed, before its object is deleted for that; of hooks that did not,
//! once all of their event are done, the last one first. It is told once, by the call that sees the
//! end; what cannot be read is told and is no failure.

use catamaran_cluster::apply::ApplyError;
use catamaran_cluster::logs::{Most, Printed};
use catamaran_cluster::redact::Sensitive;

use super::Driver;
use crate::objects::parse_manifest;
use crate::plan::hooks::{Event, failed};
use crate::record::{Hook, Release};

/// What is asked for: an operator's log is for everybody, and for long.
const IN_LOGS: Most = Most { lines: Some(100), bytes: 64 * 1024 };
/// By hand: all of it, within reason.
const BY_HAND: Most = Most { lines: None, bytes: 8 * 1024 * 1024 };
/// The longest line in an operator's log, in characters.
const LONGEST_LINE: usize = 1000;

/// What a hook has printed.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// By one container. What the release's own Secrets hold is left out of it.
    Text(&'a str),
    /// It cannot be read; why.
    Unread(&'a str),
}

/// Takes what hooks have printed, instead of the log.
pub type OutputHandler = dyn Fn(Output<'_>) + Send + Sync;

impl Driver {
    /// Hands over what hooks print; the log gets the end of it, line by line, otherwise.
    #[must_use]
    pub fn telling_output(mut self, tell: std::sync::Arc<OutputHandler>) -> Self {
        self.output = Some(tell);
        self
    }

    /// Tells what these hooks have printed, which are done: the last one first.
    pub(super) async fn tell_succeeded(&self, record: &Release, which: &[usize]) {
        for hook in which.iter().rev() {
            self.tell_output(record, *hook, "hook-succeeded").await;
        }
    }

    /// Tells what the hooks of an event have printed that failed.
    pub(super) async fn tell_failed(&self, record: &Release, event: Event) {
        for hook in failed(record, event) {
            self.tell_output(record, hook, "hook-failed").await;
        }
    }

    async fn tell_output(&self, record: &Release, hook: usize, policy: &str) {
        let Some(hook) = record.hooks.get(hook) else { return };
        if !hook.output_log_policies.iter().any(|own| own == policy) {
            return;
        }
        let namespace = namespace_of(hook).unwrap_or_else(|| record.namespace.clone());
        let most = if self.output.is_some() { BY_HAND } else { IN_LOGS };
        let printed = self.applier.printed(&hook.kind, (&namespace, &hook.name), most).await;
        match printed {
            Ok(printed) => {
                let secrets = record.sensitive();
                for container in &printed {
                    let text = secrets.hide(&container.text);
                    self.hand_over(record, hook, container, &text);
                }
            }
            Err(error) => self.hand_over_fault(record, hook, &error),
        }
    }

    fn hand_over_fault(&self, record: &Release, hook: &Hook, error: &ApplyError) {
        if let Some(tell) = &self.output {
            return tell(Output::Unread(&error.to_string()));
        }
        if error.kind.is_forbidden() {
            let so = format!("what hooks print is not shown ({error})");
            return self.rights.warn_once("list pods and get pods/log", &so);
        }
        let (release, hook) = (&record.name, &hook.name);
        tracing::warn!(release, hook, %error, "cannot show what a hook has printed");
    }

    fn hand_over(&self, record: &Release, hook: &Hook, from: &Printed, text: &str) {
        if let Some(tell) = &self.output {
            tell(Output::Text(text));
            return;
        }
        let (release, namespace) = (&record.name, &record.namespace);
        for line in text.lines() {
            let line: String = line.chars().take(LONGEST_LINE).collect();
            tracing::info!(
                release, namespace, hook = hook.name, pod = from.pod, container = from.container,
                output = %line, "hook output"
            );
        }
    }
}

fn namespace_of(hook: &Hook) -> Option<String> {
    let objects = parse_manifest(&hook.manifest).ok()?;
    let own = objects.first()?.object.pointer("/metadata/namespace")?.as_str()?;
    (!own.is_empty()).then(|| own.to_owned())
}

impl Release {
    /// What the Secrets of this revision hold, those among its hooks as well: no text that somebody else
    /// wrote about the release may show it.
    pub fn sensitive(&self) -> Sensitive {
        let hooks = self.hooks.iter().map(|hook| &hook.manifest);
        let documents = std::iter::once(&self.manifest).chain(hooks);
        let documents = documents.flat_map(|manifest| manifest.split("\n---"));
        let objects: Vec<_> = documents
            .filter(|text| text.contains("Secret"))
            .filter_map(|text| parse_manifest(text).ok())
            .flatten()
            .collect();
        Sensitive::of(objects.iter().map(|raw| &raw.object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use catamaran_cluster::redact::REDACTED;
    use serde_json::json;

    #[test]
    fn what_the_releases_secrets_hold_is_not_told() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"a": STANDARD.encode("first-canary\nsecond-canary"), "b": "eA=="},
            "stringData": {"c": "third"},
        });
        let record = Release { manifest: secret.to_string(), ..Release::default() };
        let encoded = STANDARD.encode("third");
        let text = format!("x first-canary {encoded}\nsecond-canary third\n");
        let told = record.sensitive().hide(&text);
        assert_eq!(told, format!("x {REDACTED} {REDACTED}\n{REDACTED} {REDACTED}\n"));
    }

    #[test]
    fn output_is_hidden_when_the_releases_secrets_are_too_large_to_look_for() {
        let lines: Vec<String> = (0..60_000).map(|line| format!("canary-{line}")).collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "stringData": {"a": lines.join("\n")},
        });
        let record = Release { manifest: secret.to_string(), ..Release::default() };
        let told = record.sensitive().hide("it is canary-7\n");
        assert_eq!(
            told,
            format!("{REDACTED}: the Secrets of the release are too large to look for")
        );
    }
}
