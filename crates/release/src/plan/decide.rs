//! Decides which action is due.

use std::time::Duration;

use catamaran_chart::ReleaseFacts;
use catamaran_chart::lint::is_subdomain;
use catamaran_chart::manifest::parse_objects;

use super::observed_state::{DesiredState, History};
use crate::Error;
use crate::objects::{normalised, parse_manifest};
use crate::record::store::Unreadable;
use crate::record::{Hook, Release, Status};

/// A pending record that this program did not write is a helm CLI's, which may still run. After this time
/// it counts as dead, because its default timeout is over.
pub const HELM_CLI_TIMEOUT: Duration = Duration::from_mins(5);

/// The prefix of the description of own pending records. Helm keeps it, and never writes it.
pub(crate) const DESCRIPTION_PREFIX: &str = "catamaran: ";

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the newest revision is deployed and equal. Needs no request.
    Unchanged,
    /// An upgrade: render with these facts and decide again.
    RenderAgain(ReleaseFacts),
    /// Create the first revision, or the first after an uninstall that kept its history.
    Install,
    /// Create the next revision.
    Upgrade,
    /// Complete the newest revision, which was interrupted or has failed.
    Resume,
    /// A helm CLI began an action and may still run.
    Wait {
        /// The revision that it writes.
        revision: u32,
        /// The status of that revision.
        status: Status,
        /// When it will be taken over.
        retry_after: Duration,
    },
}

impl History {
    /// Which action leads to the desired state. Pure; an error means that somebody has to change something
    /// first.
    pub fn decide(&self, desired: &DesiredState<'_>) -> Result<Action, Error> {
        check_name(&desired.release.name)?;
        check_support(desired)?;
        self.check_readable()?;
        let Some(newest) = self.newest() else {
            return self.next(desired);
        };
        let is_other = newest.chart_name() != desired.chart.name();
        if is_other && !desired.any_chart && newest.info.status != Status::Uninstalled {
            let (name, chart) = (self.name.clone(), newest.chart_name().to_owned());
            return Err(Error::OtherChart { name, chart });
        }
        if let Some(wait) = self.wait_for_cli(newest) {
            return Ok(wait);
        }
        if desired.release.revision != newest.version || *desired.release != self.current_facts() {
            return self.next(desired);
        }
        let status = &newest.info.status;
        let is_trusted = self.is_newest_trusted();
        let is_same = match is_same(newest, desired) {
            // The content of a record that is not trusted may be anything.
            Err(_) if !is_trusted => false,
            is_same => is_same?,
        };
        match is_same {
            true if *status == Status::Deployed => Ok(Action::Unchanged),
            true if is_trusted && (status.is_pending() || *status == Status::Failed) => {
                Ok(Action::Resume)
            }
            _ => Ok(Action::RenderAgain(self.next_facts())),
        }
    }

    /// The newest revision, if it was interrupted or has failed, and is trusted.
    pub fn interrupted(&self) -> Option<&std::sync::Arc<Release>> {
        let newest = self.newest().filter(|_| self.is_newest_trusted())?;
        let status = &newest.info.status;
        let open = status.is_pending() || *status == Status::Failed;
        (open && self.wait_for_cli(newest).is_none()).then_some(newest)
    }

    /// Whether a trusted uninstall was interrupted.
    pub fn is_uninstalling(&self) -> bool {
        self.newest().filter(|_| self.is_newest_trusted()).is_some_and(|newest| {
            newest.info.status == Status::Uninstalling
                && newest.info.description.starts_with(DESCRIPTION_PREFIX)
        })
    }

    /// Whether a trusted rollback was interrupted.
    pub fn is_rolling_back(&self) -> bool {
        self.interrupted().is_some_and(|newest| newest.info.status == Status::PendingRollback)
    }

    /// The next revision, if that was rendered.
    fn next(&self, desired: &DesiredState<'_>) -> Result<Action, Error> {
        let due = self.next_facts();
        if *desired.release != due {
            let (rendered, due) = (desired.release.revision, due.revision);
            return Err(Error::WrongFacts { rendered, due });
        }
        Ok(if due.is_install { Action::Install } else { Action::Upgrade })
    }

    /// An action of a helm CLI that began too recently to be taken over.
    pub(super) fn wait_for_cli(&self, newest: &Release) -> Option<Action> {
        let info = &newest.info;
        let since = match info.status {
            Status::Uninstalling => info.deleted,
            _ if info.status.is_pending() => info.last_deployed,
            _ => return None,
        };
        if info.description.starts_with(DESCRIPTION_PREFIX) {
            return None;
        }
        let rest =
            HELM_CLI_TIMEOUT.checked_sub(self.time_since(since)?).filter(|rest| !rest.is_zero())?;
        Some(Action::Wait {
            revision: newest.version,
            status: newest.info.status.clone(),
            retry_after: rest,
        })
    }

    pub(crate) fn check_readable(&self) -> Result<(), Error> {
        let newest = self.newest_revision();
        let unreadable = |it: &&Unreadable| newest != 0 && it.revision == newest;
        match self.unreadable.iter().find(unreadable) {
            Some(Unreadable { secret, error, .. }) => {
                Err(Error::Record { secret: secret.clone(), source: error.clone() })
            }
            None => Ok(()),
        }
    }
}

/// Helm's rule for release names.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.len() <= 53 && is_subdomain(name) {
        return Ok(());
    }
    Err(Error::InvalidName { name: name.to_owned() })
}

/// Refuses unsupported charts before anything is written.
fn check_support(desired: &DesiredState<'_>) -> Result<(), Error> {
    let is_test = |events: &[String]| events.iter().all(|event| event == "test");
    for hook in desired.rendered.hooks.iter().filter(|hook| !is_test(&hook.events)) {
        let (kind, name) = (&hook.kind, &hook.name);
        let objects = parse_manifest(&hook.manifest)?.len();
        if objects != 1 {
            let what = format!("hook {kind} {name:?} is {objects} objects, and has to be one");
            return Err(Error::Unsupported { what });
        }
    }
    Ok(())
}

/// Whether a record equals the desired state: the same chart, objects and hooks. Compares texts first. If
/// they differ, compares objects, because Helm 3 and 4 format the same documents differently.
fn is_same(record: &Release, desired: &DesiredState<'_>) -> Result<bool, Error> {
    let metadata = &desired.chart.metadata;
    if (record.chart_name(), record.chart_version()) != (&metadata.name, &metadata.version) {
        return Ok(false);
    }
    let text = desired.rendered.manifest_text();
    Ok(same_objects(&record.manifest, &text, &record.namespace)? && same_hooks(record, desired)?)
}

fn same_objects(old: &str, new: &str, namespace: &str) -> Result<bool, Error> {
    if old == new {
        return Ok(true);
    }
    let sorted = |text| -> Result<Vec<String>, Error> {
        let mut objects: Vec<String> = parse_objects(text)?
            .into_iter()
            .map(|object| normalised(object, namespace).to_string())
            .collect();
        objects.sort_unstable();
        Ok(objects)
    };
    Ok(sorted(old)? == sorted(new)?)
}

fn same_hooks(record: &Release, desired: &DesiredState<'_>) -> Result<bool, Error> {
    let mut old: Vec<&Hook> = record.hooks.iter().collect();
    let new: Vec<Hook> = desired.rendered.hooks.iter().map(Hook::from).collect();
    let mut new: Vec<&Hook> = new.iter().collect();
    if old.len() != new.len() {
        return Ok(false);
    }
    old.sort_by(|a, b| (&a.path, &a.kind, &a.name).cmp(&(&b.path, &b.kind, &b.name)));
    new.sort_by(|a, b| (&a.path, &a.kind, &a.name).cmp(&(&b.path, &b.kind, &b.name)));
    for (old, new) in old.into_iter().zip(new) {
        let same = (&old.path, &old.name, &old.events, old.weight)
            == (&new.path, &new.name, &new.events, new.weight)
            && same_objects(&old.manifest, &new.manifest, &record.namespace)?;
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{DesiredRelease, facts, history, hook, now, record};
    use crate::record::Status::{
        Deployed, Failed, PendingInstall, PendingRollback, PendingUpgrade, Superseded, Uninstalled,
        Uninstalling,
    };
    use crate::record::Stored;
    use serde_json::json;
    use std::sync::Arc;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_hours(1);

    /// What a wish for ConfigMap `a`, rendered with the current facts, comes to.
    fn verdict(records: Vec<Release>) -> String {
        let history = history(records);
        let wish = DesiredRelease::new(history.current_facts(), &["a"]);
        match history.decide(&wish.desired()) {
            Ok(Action::Wait { revision, status, retry_after }) => {
                format!("wait for {revision} {status} {}s", retry_after.as_secs())
            }
            Ok(Action::RenderAgain(facts)) => {
                format!(
                    "render again {} {}",
                    facts.revision,
                    if facts.is_install { "install" } else { "upgrade" }
                )
            }
            Ok(action) => format!("{action:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_history_has_its_action() {
        let (same, other): (&[&str], &[&str]) = (&["a"], &["b"]);
        let ours = "catamaran: at work";
        let rows = vec![
            ("Install", vec![]),
            ("Unchanged", vec![record(1, Deployed, same, HOUR, "")]),
            ("render again 2 upgrade", vec![record(1, Deployed, other, HOUR, "")]),
            (
                "render again 4 upgrade",
                vec![record(2, Superseded, same, HOUR, ""), record(3, Deployed, other, HOUR, "")],
            ),
            // Ours: resumed at once, given up at once.
            ("Resume", vec![record(1, PendingInstall, same, SECOND, ours)]),
            ("render again 2 install", vec![record(1, PendingInstall, other, SECOND, ours)]),
            (
                "Resume",
                vec![
                    record(1, Deployed, other, HOUR, ""),
                    record(2, PendingUpgrade, same, SECOND, ours),
                ],
            ),
            (
                "render again 3 upgrade",
                vec![
                    record(1, Deployed, same, HOUR, ""),
                    record(2, PendingUpgrade, other, SECOND, ours),
                ],
            ),
            // A helm CLI's: waited for, then the same.
            (
                "wait for 1 pending-install 299s",
                vec![record(1, PendingInstall, same, SECOND, "Initial install underway")],
            ),
            ("Resume", vec![record(1, PendingInstall, same, HOUR, "Initial install underway")]),
            (
                "render again 2 install",
                vec![record(1, PendingInstall, other, HOUR, "Initial install underway")],
            ),
            (
                "wait for 2 pending-upgrade 299s",
                vec![
                    record(1, Deployed, same, HOUR, ""),
                    record(2, PendingUpgrade, other, SECOND, "Preparing upgrade"),
                ],
            ),
            // Failed: tried again in place, or left behind.
            ("Resume", vec![record(1, Failed, same, HOUR, "")]),
            ("render again 2 install", vec![record(1, Failed, other, HOUR, "")]),
            (
                "render again 3 upgrade",
                vec![record(1, Deployed, same, HOUR, ""), record(2, Failed, other, HOUR, "")],
            ),
            // Uninstalled with its history, or not to the end.
            ("Install", vec![record(1, Uninstalled, same, HOUR, "")]),
            (
                "Install",
                vec![
                    record(1, Superseded, same, HOUR, ""),
                    record(2, Uninstalling, same, HOUR, ""),
                ],
            ),
        ];
        for (expected, records) in rows {
            let about: Vec<_> =
                records.iter().map(|r| (r.version, r.info.status.to_string())).collect();
            assert_eq!(verdict(records), expected, "{about:?}");
        }
    }

    #[test]
    fn an_uninstall_of_a_helm_cli_is_waited_for() {
        let mut leaving =
            record(1, Uninstalling, &["a"], HOUR, "Deletion in progress (or silently failed)");
        leaving.info.deleted = crate::fixtures::now().checked_sub(SECOND).expect("a time").into();
        assert_eq!(verdict(vec![leaving.clone()]), "wait for 1 uninstalling 299s");
        leaving.info.description = format!("{DESCRIPTION_PREFIX}uninstall under way");
        assert_eq!(verdict(vec![leaving]), "Install");
    }

    #[test]
    fn the_next_revision_is_taken_without_comparing() {
        let history = history([record(1, Deployed, &["a"], HOUR, "")]);
        let wish = DesiredRelease::new(facts(2, false), &["a"]);
        assert_eq!(history.decide(&wish.desired()).expect("an action"), Action::Upgrade);
        let wish = DesiredRelease::new(facts(3, false), &["a"]);
        assert!(matches!(
            history.decide(&wish.desired()),
            Err(Error::WrongFacts { rendered: 3, due: 2 })
        ));
    }

    #[test]
    fn a_pending_record_without_a_time_or_from_the_future_blocks_nobody_for_ever() {
        let mut timeless = record(1, PendingInstall, &["a"], SECOND, "");
        timeless.info.last_deployed = crate::record::Time(None);
        assert_eq!(verdict(vec![timeless]), "Resume");
        let mut future = record(1, PendingInstall, &["a"], SECOND, "");
        future.info.last_deployed =
            crate::fixtures::now().checked_add(HOUR).expect("a time").into();
        assert_eq!(verdict(vec![future]), "Resume");
    }

    #[test]
    fn layout_is_no_difference_but_content_is() {
        let mut spaced = record(1, Deployed, &[], HOUR, "");
        spaced.manifest = concat!(
            "---\n# Source: elsewhere.yaml\n\n",
            r#"{"kind": "ConfigMap", "apiVersion": "v1", "data": {"k": "v"}, "metadata": {"name": "a", "#,
            r#""namespace": "ns", "ownerReferences": [{"uid": "u"}], "annotations": {"operator-sdk/primary-resource": "ns/x"}}}"#,
            "\n\n"
        )
        .to_owned();
        assert_eq!(verdict(vec![spaced.clone()]), "Unchanged");
        spaced.manifest = spaced.manifest.replace(r#""k": "v""#, r#""k": "w""#);
        assert_eq!(verdict(vec![spaced]), "render again 2 upgrade");
        let mut newer_chart = record(1, Deployed, &["a"], HOUR, "");
        newer_chart.chart["metadata"]["version"] = "0.9.0".into();
        assert_eq!(verdict(vec![newer_chart]), "render again 2 upgrade");
    }

    #[test]
    fn what_cannot_be_done_is_refused_before_anything_is_written() {
        let history = history([]);
        let refused = |change: fn(&mut DesiredRelease)| {
            let mut wish = DesiredRelease::new(facts(1, true), &["a"]);
            change(&mut wish);
            history.decide(&wish.desired()).map_err(|error| error.to_string())
        };
        assert_eq!(refused(|wish| wish.rendered.hooks.push(hook("test"))), Ok(Action::Install));
        let two = refused(|wish| {
            let mut hook = hook("pre-install");
            hook.manifest = json!({"apiVersion": "v1", "kind": "List", "items": []}).to_string();
            wish.rendered.hooks.push(hook);
        });
        assert_eq!(
            two,
            Err(r#"not supported yet: hook Pod "h" is 0 objects, and has to be one"#.to_owned())
        );
        for name in ["", "UPPER", "a_b", "-a", "a-", "a..b", "a/../b", &"a".repeat(54)] {
            let mut wish = DesiredRelease::new(facts(1, true), &["a"]);
            name.clone_into(&mut wish.facts.name);
            let error = history.decide(&wish.desired()).expect_err("an error");
            assert!(matches!(error, Error::InvalidName { .. }), "{name}");
        }
    }

    #[test]
    fn a_release_of_another_chart_is_left_alone() {
        let mut theirs = record(1, Deployed, &["a"], HOUR, "");
        theirs.chart["metadata"]["name"] = "other".into();
        assert_eq!(
            verdict(vec![theirs]),
            r#"duplicate release name: found existing release with name "rel" for chart "other""#
        );
    }

    #[test]
    fn nothing_goes_on_from_a_record_that_is_not_authenticated() {
        let ours = "catamaran: at work";
        for (status, description) in [
            (PendingInstall, ours),
            (PendingUpgrade, ours),
            (PendingRollback, ours),
            (Failed, ""),
            (Uninstalling, ours),
            (Uninstalling, "catamaran: post-delete hooks under way"),
        ] {
            let mut history = History::empty("ns", "rel", now());
            let release = record(3, status.clone(), &["a"], SECOND, description);
            history.put(Stored::unauthenticated(Arc::new(release)));
            let wish = DesiredRelease::new(history.current_facts(), &["a"]);
            match history.decide(&wish.desired()) {
                Ok(Action::RenderAgain(facts)) => assert_eq!(facts.revision, 4, "{status}"),
                // What was being uninstalled is rendered for the next revision at once.
                Ok(Action::Install) => assert_eq!(wish.facts.revision, 4, "{status}"),
                other => panic!("{status}: {other:?}"),
            }
            assert!(history.interrupted().is_none() && !history.is_uninstalling(), "{status}");
            assert!(!history.is_rolling_back(), "{status}");
        }
        // What is deployed and the same needs nothing: not even a signature.
        let mut history = History::empty("ns", "rel", now());
        history.put(Stored::unauthenticated(Arc::new(record(3, Deployed, &["a"], HOUR, ""))));
        let wish = DesiredRelease::new(history.current_facts(), &["a"]);
        assert!(matches!(history.decide(&wish.desired()), Ok(Action::Unchanged)));
        // Nor does a manifest that cannot be read stop anything.
        let mut broken = record(3, Deployed, &["a"], HOUR, "");
        broken.manifest = "a: [".to_owned();
        history.put(Stored::unauthenticated(Arc::new(broken)));
        assert!(matches!(history.decide(&wish.desired()), Ok(Action::RenderAgain(_))));
    }

    #[test]
    fn an_unreadable_newest_record_stops_everything_an_older_one_nothing() {
        let mut history = history([record(2, Deployed, &["a"], HOUR, "")]);
        let wish = DesiredRelease::new(facts(2, false), &["a"]);
        history.unreadable.push(Unreadable::unsaved(1, crate::record::CodecError::Gzip));
        assert_eq!(history.decide(&wish.desired()).expect("an action"), Action::Unchanged);
        history.unreadable.push(Unreadable::unsaved(3, crate::record::CodecError::Gzip));
        let error = history.decide(&wish.desired()).expect_err("an error");
        assert_eq!(
            error.to_string(),
            "record sh.helm.release.v1.rel.v3 cannot be read: it is not gzip; restore the Secret or delete it to go on"
        );
    }
}
