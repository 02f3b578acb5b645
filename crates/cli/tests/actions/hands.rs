//! Two hands on one release, in turns: ours and a helm's.

use crate::support::{Charts, DEPLOYMENT, Hand, Place, TEST};

/// Who acts first, who second. The last is the standard: what helm makes of it by itself. Helm 3 and 4 by
/// themselves do not come through: what Helm 3 has written Helm 4 merges on its side, and then it
/// refuses the flag without which it gave way to `kubectl scale` before.
const PAIRS: [(Hand, Hand); 6] = [
    (Hand::Ours, Hand::Ours),
    (Hand::Ours, Hand::Helm4),
    (Hand::Ours, Hand::Helm3),
    (Hand::Helm4, Hand::Ours),
    (Hand::Helm3, Hand::Ours),
    (Hand::Helm4, Hand::Helm4),
];

const CONFIG_MAP: (&str, &str) = (
    "map.yaml",
    "\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-map}
data:
  greeting: {{ .Values.greeting | quote }}
  {{ with .Values.more }}more: {{ . | quote }}{{ end }}
",
);

#[tokio::test(flavor = "multi_thread")]
async fn every_hand_goes_on_where_another_left() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, DEPLOYMENT, TEST]);
    let mut turns = Vec::new();
    for (first, second) in PAIRS {
        let namespace = cluster.namespace("hands").await.unwrap();
        let place = Place::new(&cluster, namespace.name(), charts.path());
        turns.push((
            namespace,
            tokio::task::spawn_blocking(move || take_turns(&place, first, second)),
        ));
    }
    for (_namespace, turn) in turns {
        turn.await.unwrap();
    }
}

/// What the chart's two objects say of the fields that both hands set.
fn fields(place: &Place) -> (String, i64) {
    let greeting = place.live("configmap/a-map")["data"]["greeting"].clone();
    let replicas = place.live("deployment/a-web")["spec"]["replicas"].as_i64();
    (greeting.as_str().unwrap_or_default().to_owned(), replicas.unwrap_or(-1))
}

fn take_turns(place: &Place, first: Hand, second: Hand) {
    let who = format!("{first:?} then {second:?}");
    let is = |greeting: &str, replicas: i64, revisions: &str| {
        assert_eq!(fields(place), (greeting.to_owned(), replicas), "{who}");
        assert_eq!(place.revisions("a"), revisions, "{who}");
        same_history(place, &who);
    };
    let scale = || place.kubectl("scale deployment/a-web --replicas=7");

    place.say(first, "install a demo --set greeting=one,replicas=1");
    is("one", 1, "1 deployed");

    // Helm 4 gives way to kubectl, whoever installed.
    scale();
    place.say(second, &stubborn(second, "upgrade a demo --set greeting=two,replicas=2"));
    is("two", 2, "1 superseded, 2 deployed");

    // Nobody else has fields of this one: no conflict.
    place.say(first, "upgrade a demo --set greeting=three,replicas=3");
    is("three", 3, "1 superseded, 2 superseded, 3 deployed");

    scale();
    place.say(second, &stubborn(second, "rollback a 2"));
    is("two", 2, "1 superseded, 2 superseded, 3 superseded, 4 deployed");
    place.say(first, "rollback a");
    is("three", 3, "1 superseded, 2 superseded, 3 superseded, 4 superseded, 5 deployed");

    let tested = place.say(second, "test a");
    assert!(tested.contains("Phase:          Succeeded"), "{who}: {tested}");
    same_history(place, &who);

    scale();
    place.say(second, "uninstall a --keep-history");
    assert_eq!(fields(place), (String::new(), -1), "{who}: all of it is gone");
    place.say(first, &stubborn(first, "rollback a 1"));
    let (greeting, replicas) = fields(place);
    assert_eq!((greeting.as_str(), replicas), ("one", 1), "{who}: all of it is back");
    place.say(second, "uninstall a");
    assert_eq!(fields(place), (String::new(), -1), "{who}");
    assert_eq!(place.revisions("a"), "Error: release: not found\n", "{who}");
    take_over(place, first, second, &who);
    change_methods(place, first, second, &who);
}

/// What a person has made becomes one hand's, and goes on as the other's.
fn take_over(place: &Place, first: Hand, second: Hand, who: &str) {
    place.kubectl("create configmap a-map --from-literal=greeting=mine --from-literal=kept=k");
    place.say(
        first,
        &stubborn(first, "install a demo --take-ownership --set greeting=one,replicas=1"),
    );
    assert_eq!(fields(place), ("one".to_owned(), 1), "{who}");
    place.kubectl("scale deployment/a-web --replicas=7");
    place.say(second, &stubborn(second, "upgrade a demo --set greeting=two,replicas=2"));
    assert_eq!(fields(place), ("two".to_owned(), 2), "{who}");
    assert_eq!(place.live("configmap/a-map")["data"]["kept"], "k", "{who}");
    place.say(first, "uninstall a");
    assert_eq!(fields(place), (String::new(), -1), "{who}");
}

/// Who merges changes from revision to revision; what the chart drops goes whoever has set it.
fn change_methods(place: &Place, first: Hand, second: Hand, who: &str) {
    let by = |hand: Hand, method: &str| match hand {
        Hand::Helm3 => String::new(),
        Hand::Helm4 if method == "true" => "--server-side=true --force-conflicts".to_owned(),
        Hand::Helm4 | Hand::Ours => format!("--server-side={method}"),
    };
    place.say(first, &format!("install a demo --set greeting=one,more=1 {}", by(first, "false")));
    for (number, (hand, method)) in
        [(second, "true"), (first, "false"), (second, "false"), (first, "true")]
            .into_iter()
            .enumerate()
    {
        place.kubectl("scale deployment/a-web --replicas=7");
        let more = number % 2; // dropped, and there again
        let flags = by(hand, method);
        place.say(
            hand,
            &format!("upgrade a demo --set greeting=g{number},replicas=2,more={more} {flags}"),
        );
        let about = format!("{who}: {hand:?} {flags}");
        assert_eq!(fields(place), (format!("g{number}"), 2), "{about}");
        let data = place.live("configmap/a-map")["data"].clone();
        assert_eq!(data.get("more").is_some(), more == 1, "{about}: {data}");
    }
    place.say(second, "uninstall a");
    assert_eq!(fields(place), (String::new(), -1), "{who}");
}

/// The same, over the fields of others where the hand would give way to them.
fn stubborn(hand: Hand, line: &str) -> String {
    if hand == Hand::Helm4 { format!("{line} --force-conflicts") } else { line.to_owned() }
}

/// The release is the same to everybody.
fn same_history(place: &Place, who: &str) {
    for line in ["history a", "history a -o json"] {
        assert_eq!(place.say(Hand::Ours, line), place.say(Hand::Helm4, line), "{who}: {line}");
    }
}
