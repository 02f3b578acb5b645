use super::*;
use crate::fixtures::now;
use crate::record::Info;
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);

fn hook(name: &str, events: &str, weight: i64, policies: &str) -> Hook {
    let words = |text: &str| {
        text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let object = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}});
    Hook {
        name: name.into(),
        kind: "Job".into(),
        manifest: object.to_string(),
        events: words(events),
        weight,
        delete_policies: words(policies),
        ..Hook::default()
    }
}

fn record(hooks: Vec<Hook>) -> Release {
    let info = Info {
        status: Status::PendingInstall,
        description: format!("{DESCRIPTION_PREFIX}install under way"),
        ..Info::default()
    };
    Release {
        name: "rel".into(),
        namespace: "ns".into(),
        version: 1,
        info,
        hooks,
        ..Release::default()
    }
}

fn names(release: &Release, which: &[usize]) -> Vec<String> {
    which.iter().map(|index| release.hooks[*index].name.clone()).collect()
}

/// What is due, in short.
fn due(release: &Release, event: Event) -> String {
    let name = |index: usize| release.hooks[index].name.as_str();
    match next(release, event) {
        Step::Nothing => "nothing".to_owned(),
        Step::Start(index) => format!("start {}", name(index)),
        Step::Look(index) => format!("look at {}", name(index)),
        Step::Clear(which) => format!("clear {}", names(release, &which).join(",")),
    }
}

#[test]
fn hooks_run_by_weight_then_name_then_as_the_record_has_them() {
    let mut same_name = hook("b", "pre-install", 0, "");
    same_name.kind = "Secret".into();
    let hooks = vec![
        hook("late", "pre-install", 5, ""),
        same_name,
        hook("b", "pre-install", 0, ""),
        hook("other", "post-install", -9, ""),
        hook("a", "post-install,pre-install", 0, ""),
        hook("early", "pre-install", -5, ""),
    ];
    let release = record(hooks);
    let order = order(&release.hooks, Event::PreInstall);
    assert_eq!(names(&release, &order), ["early", "a", "b", "b", "late"]);
    assert_eq!(release.hooks[order[2]].kind, "Secret");
}

#[test]
fn the_record_alone_tells_how_far_the_hooks_have_come() {
    use Event::{PostInstall, PreInstall};
    let mut release = record(vec![
        hook("one", "pre-install", 0, "hook-succeeded"),
        hook("two", "pre-install,post-install", 1, "hook-succeeded,before-hook-creation"),
        hook("three", "post-install", 2, ""),
    ]);
    assert_eq!(due(&release, PreInstall), "start one");
    assert_eq!(due(&release, PostInstall), "start two");
    start(&mut release, PreInstall, 0, now());
    assert_eq!(due(&release, PreInstall), "look at one");
    // One write ends a hook and begins the next.
    finish(&mut release, PreInstall, 0, now());
    assert_eq!((due(&release, PreInstall), at(&release)), ("look at two".into(), Some(PreInstall)));
    finish(&mut release, PreInstall, 1, now());
    assert_eq!(due(&release, PreInstall), "clear two,one", "in reverse, at the end of the event");

    // A hook of both events runs at both.
    assert_eq!(due(&release, PostInstall), "start two");
    start(&mut release, PostInstall, 1, now());
    assert_eq!((due(&release, PreInstall), at(&release)), ("nothing".into(), Some(PostInstall)));
    assert_eq!(release.hooks[0].last_run.phase, SUCCEEDED);
    finish(&mut release, PostInstall, 1, now());
    finish(&mut release, PostInstall, 2, now());
    assert_eq!(due(&release, PostInstall), "clear two");
    assert_eq!(due(&release, Event::PreDelete), "nothing");
    assert_eq!(release.info.status, Status::PendingInstall);
}

#[test]
fn after_a_failure_the_hooks_before_it_stay_done() {
    let mut release = record(vec![
        hook("one", "pre-install", 0, ""),
        hook("two", "pre-install", 1, "hook-failed"),
        hook("after", "post-install", 0, ""),
    ]);
    start(&mut release, Event::PreInstall, 0, now());
    finish(&mut release, Event::PreInstall, 0, now());
    give_up(&mut release, now());
    assert_eq!(release.hooks[1].last_run.phase, FAILED);
    assert_eq!(names(&release, &failed_to_clear(&release, Event::PreInstall)), ["two"]);
    // As the driver, and as Helm, writes it.
    release.info.status = Status::Failed;
    release.info.description = "Release \"rel\" failed: failed pre-install: Job: it broke".into();
    assert_eq!(due(&release, Event::PreInstall), "start two");
    // The objects failed: all hooks before them are done.
    release.hooks[1].last_run.phase = SUCCEEDED.into();
    release.info.description = "Release \"rel\" failed: Service \"a\" is taken".into();
    assert_eq!(due(&release, Event::PreInstall), "clear ");
    assert_eq!(due(&release, Event::PostInstall), "start after");
    // A hook after them failed: they are not run again.
    release.info.description = "Release \"rel\" failed: failed post-install: Job: it broke".into();
    assert_eq!(due(&release, Event::PreInstall), "nothing");
}

#[test]
fn the_pauses_after_failures_grow_with_the_time_they_have_taken() {
    let ago = |seconds: u64| now().checked_sub(Duration::from_secs(seconds)).expect("a time");
    // Begun and failed so many seconds ago; seconds of rest.
    let rows = [
        (10, 0, Some(10)),
        (10, 4, Some(2)),
        (3, 0, Some(5)),
        (100, 40, Some(20)),
        (100, 60, None),
        (9000, 0, Some(300)),
    ];
    for (begun, failed, rest) in rows {
        let mut release = record(vec![hook("h", "pre-install", 0, "")]);
        release.info.last_deployed = ago(begun).into();
        start(&mut release, Event::PreInstall, 0, ago(begun));
        assert_eq!(pause(&release, Event::PreInstall, 0, now()), None);
        give_up(&mut release, ago(failed));
        let found = pause(&release, Event::PreInstall, 0, now());
        assert_eq!(found, rest.map(Duration::from_secs), "{begun} {failed}");
    }
}

#[test]
fn descriptions_of_both_hands_tell_the_event() {
    let cases = [
        ("catamaran: install under way", None),
        ("catamaran: pre-install hooks under way", Some(Event::PreInstall)),
        ("catamaran: post-upgrade hooks done", Some(Event::PostUpgrade)),
        ("catamaran: pre-delete hooks failed: Job \"x\": why", Some(Event::PreDelete)),
        ("Release \"x\" failed: failed post-install: 1 error occurred", Some(Event::PostInstall)),
        ("Upgrade \"x\" failed: pre-upgrade hooks failed: job x failed", Some(Event::PreUpgrade)),
        ("Upgrade \"x\" failed: something else", None),
        ("Deletion in progress (or silently failed)", None),
        ("Install complete", None),
    ];
    for (description, expected) in cases {
        let mut release = record(vec![]);
        release.info.description = description.into();
        assert_eq!(at(&release), expected, "{description}");
    }
}

#[test]
fn an_uninstall_begins_its_hooks_whatever_they_did_before() {
    let mut release = record(vec![hook("both", "post-install,pre-delete", 0, "")]);
    release.hooks[0].last_run =
        HookRun { started_at: now().into(), completed_at: now().into(), phase: SUCCEEDED.into() };
    for (status, description) in [
        (Status::Deployed, "Install complete"),
        (Status::Uninstalling, "Deletion in progress (or silently failed)"),
        (Status::Uninstalling, "catamaran: uninstall under way"),
    ] {
        release.info.status = status;
        release.info.description = description.into();
        assert_eq!(due(&release, Event::PreDelete), "start both", "{description}");
    }
}

/// The run of a Job that was begun a minute ago.
fn look_at(policies: &str, phase: &str, age: Duration, live: Option<Value>, ttl: bool) -> Look {
    let mut hook = hook("h", "pre-install", 0, policies);
    if ttl {
        hook.manifest = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "h"},
            "spec": {"ttlSecondsAfterFinished": 0}})
        .to_string();
    }
    let started = now().checked_sub(age).expect("a time");
    hook.last_run =
        HookRun { started_at: started.into(), completed_at: Time(None), phase: phase.into() };
    let run = Run {
        hook: &hook,
        event: Event::PreInstall,
        release: ("rel", "ns"),
        revision: 1,
        now: now(),
        timeout: HOOK_TIMEOUT,
        until: None,
    };
    let live = live.map(|mut live| {
        if live["metadata"]["annotations"][RUN] == "this" {
            live["metadata"]["annotations"][RUN] = run.id().into();
        }
        live
    });
    run.look(live.as_ref())
}

/// A Job with a condition, of this run or of another one.
fn job(run: &str, condition: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "h", "uid": "u-1",
            "annotations": {RUN: run, "helm.sh/hook": "pre-install"},
        },
        "status": {
            "startTime": "2027-01-01T00:00:00Z",
            "conditions": [{"type": condition, "status": "True", "reason": "Why", "message": "what"}],
        },
    })
}

fn word(look: &Look) -> String {
    match look {
        Look::Wait { why, reason, .. } => format!("wait {why:?} {reason}"),
        Look::Failed { reason, .. } => format!("failed {reason}"),
        Look::Delete { uid } => format!("delete {uid}"),
        Look::Foreign(_) => "foreign".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_object_has_its_consequence() {
    let long = MINUTE * 6;
    let with = |mut object: Value, field: &str, value: Value| {
        object["metadata"][field] = value;
        object
    };
    let none = || None;
    let leaving = || with(job("old", "Complete"), "deletionTimestamp", "now".into());
    let foreign = with(job("old", "Complete"), "annotations", json!({}));
    let other = json!({"helm.sh/hook": "pre-install", "meta.helm.sh/release-name": "other"});
    let rows: Vec<(&str, &str, &str, Duration, Option<Value>)> = vec![
        ("Create", "", RUNNING, MINUTE, none()),
        ("Restart", "", RUNNING, long, none()),
        ("Done", "", RUNNING, MINUTE, Some(job("this", "Complete"))),
        ("Done", "", RUNNING, long, Some(job("this", "Complete"))),
        ("failed Why", "", RUNNING, MINUTE, Some(job("this", "Failed"))),
        ("wait End Running", "", RUNNING, MINUTE, Some(job("this", "Other"))),
        ("failed TimedOut", "", RUNNING, long, Some(job("this", "Other"))),
        // Of an earlier run: whatever became of it.
        ("delete u-1", "", RUNNING, MINUTE, Some(job("old", "Failed"))),
        ("delete u-1", "before-hook-creation", RUNNING, MINUTE, Some(job("old", "Complete"))),
        ("Restart", "", RUNNING, long, Some(job("old", "Failed"))),
        ("wait Gone Terminating", "", RUNNING, MINUTE, Some(leaving())),
        ("wait Gone Terminating", "hook-failed", RUNNING, MINUTE, Some(leaving())),
        ("failed TimedOut", "", RUNNING, long, Some(leaving())),
        // No policy deletes it, unless that is overdue.
        ("Apply", "hook-succeeded", RUNNING, MINUTE, Some(job("old", "Failed"))),
        ("delete u-1", "hook-succeeded", RUNNING, MINUTE, Some(job("old", "Complete"))),
        ("Apply", "hook-failed", RUNNING, MINUTE, Some(job("old", "Complete"))),
        ("delete u-1", "hook-failed", RUNNING, MINUTE, Some(job("old", "Failed"))),
        ("foreign", "", RUNNING, MINUTE, Some(foreign)),
        ("foreign", "", RUNNING, MINUTE, Some(with(job("old", "Failed"), "annotations", other))),
    ];
    for (expected, policies, phase, age, live) in rows {
        let about = format!("{policies:?} {age:?} {live:?}");
        assert_eq!(word(&look_at(policies, phase, age, live, false)), expected, "{about}");
    }
}

#[test]
fn a_job_that_vanished_by_itself_is_done_if_it_was_ever_seen() {
    assert_eq!(word(&look_at("", UNKNOWN, MINUTE, None, true)), "Create");
    assert_eq!(word(&look_at("", RUNNING, MINUTE, None, true)), "Done");
    let mut release = record(vec![hook("h", "pre-install", 0, "")]);
    release.hooks[0].manifest =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "h"},
            "spec": {"ttlSecondsAfterFinished": 9}})
        .to_string();
    start(&mut release, Event::PreInstall, 0, now());
    assert!(is_to_be_noted(&release.hooks[0]));
    seen(&mut release, 0);
    assert!(!is_to_be_noted(&release.hooks[0]));
    assert_eq!(due(&release, Event::PreInstall), "look at h");
}

#[test]
fn definitions_are_never_deleted_and_what_does_not_end_is_done_once_it_is_there() {
    let mut definition = hook("h", "pre-install", 0, "before-hook-creation");
    definition.kind = "CustomResourceDefinition".into();
    definition.last_run.started_at = now().into();
    let run = Run {
        hook: &definition,
        event: Event::PreInstall,
        release: ("rel", "ns"),
        revision: 1,
        now: now(),
        timeout: HOOK_TIMEOUT,
        until: None,
    };
    let mut live = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "h", "annotations": {"helm.sh/hook": "pre-install"}}});
    assert_eq!(run.look(Some(&live)), Look::Apply);
    live["metadata"]["annotations"][RUN] = run.id().into();
    assert_eq!(run.look(Some(&live)), Look::Done);
}
