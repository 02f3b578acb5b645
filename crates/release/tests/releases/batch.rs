//! Records of many releases by one request, and repairs that ask for no more than they need.

use catamaran_release::{ActionResult, ObjectDrift};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::counted::Bench;
use crate::support::{DesiredRelease, Helm, config_map, config_map_id};

fn wish(bench: &Bench, name: &str, value: &str) -> DesiredRelease {
    DesiredRelease::new(&bench.namespace, name, vec![config_map(&format!("{name}-map"), value)])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_records_of_many_releases_are_read_by_one_list() {
    let bench = Bench::new("batch").await;
    for (name, values) in [("one", &["1"][..]), ("two", &["1", "2", "3"]), ("three", &["1"])] {
        for value in values {
            wish(&bench, name, value).reconcile(&bench.driver).await.expect("applied");
        }
    }
    for place in [Some(&*bench.namespace), None] {
        let mark = bench.log.mark().expect("a mark");
        let read = bench.driver.histories(place, &["one", "two", "nope"]).await.expect("read");
        assert_eq!(bench.since(mark), ["list secrets"]);
        let read: Vec<_> = read.iter().filter(|it| it.namespace() == &*bench.namespace).collect();
        let mut names: Vec<&str> = read.iter().map(|packed| packed.name()).collect();
        names.sort_unstable();
        assert_eq!(names, ["one", "two"], "only those that were asked for and are there");
        for packed in read {
            let whole = bench.driver.history(&bench.namespace, packed.name()).await.expect("read");
            let unpacked = bench.driver.unpack(packed, &bench.namespace);
            assert!(unpacked.releases().eq(whole.releases()));
            assert!(unpacked.versions().eq(whole.versions()));
            let mut versions: Vec<_> = packed.versions().collect();
            versions.sort_unstable();
            assert!(versions.into_iter().eq(whole.versions()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_in_several_secrets_is_left_to_who_reads_it_by_itself() {
    let bench = Bench::new("batch-cut").await;
    // Noise, of which gzip makes nothing.
    let numbers = (0..120_000_u64).map(|it| it.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    let noise = numbers.map(|number| format!("{number:016x}")).collect::<Vec<_>>().concat();
    let halves: Vec<Value> = [("a", &noise[..900_000]), ("b", &noise[900_000..1_800_000])]
        .into_iter()
        .map(|(name, text)| config_map(name, text))
        .collect();
    let large = DesiredRelease::new(&bench.namespace, "large", halves);
    let installed = large.reconcile(&bench.driver).await.expect("installed");
    assert!(installed.history.is_hidden_from_helm(), "it does not fit into one");
    wish(&bench, "small", "v").reconcile(&bench.driver).await.expect("installed");
    let read = bench.driver.histories(Some(&bench.namespace), &["large", "small"]).await;
    let names: Vec<_> = read.expect("read").iter().map(|it| it.name().to_owned()).collect();
    assert_eq!(names, ["small"]);
    let deployed = bench.driver.newest_deployed(&bench.namespace, "large", 1).await;
    assert!(deployed.expect("read").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_needs_the_record_alone_and_only_while_nobody_else_writes_one() {
    let bench = Bench::new("batch-repair").await;
    wish(&bench, "rel", "1").reconcile(&bench.driver).await.expect("installed");
    let maps = bench.api("v1", "ConfigMap");
    let lost = config_map_id(&bench.namespace, "rel-map");
    maps.delete("rel-map", &DeleteParams::default()).await.expect("deleted");

    let mark = bench.log.mark().expect("a mark");
    let history = bench.driver.newest_deployed(&bench.namespace, "rel", 1).await.expect("read");
    let history = history.expect("the newest, and deployed");
    let driver = bench.driver.clone().with_deleted_objects([lost.clone()]);
    let repaired = driver.repair(&history, None, std::slice::from_ref(&lost)).await;
    assert_eq!(repaired.expect("repaired").done, ActionResult::Repaired);
    assert_eq!(bench.since(mark), ["get secrets", "get secrets", "patch configmaps"]);

    // Where it is there after all it is looked at, and what is not as it shall be is put right.
    bench.change(&maps, "rel-map", "kubectl", json!({ "data": { "k": "theirs" } })).await;
    let repaired = driver.repair(&history, None, std::slice::from_ref(&lost)).await;
    let repaired = repaired.expect("repaired");
    assert!(
        matches!(repaired.objects[0].found, ObjectDrift::Changed(_)),
        "{:?}",
        repaired.objects[0]
    );
    assert_eq!(maps.get("rel-map").await.expect("a map").data["data"]["k"], "1");
    assert_eq!(
        driver.repair(&history, None, &[lost]).await.expect("looked").done,
        ActionResult::Unchanged
    );

    // Another revision, by whoever: what it was is no more what it shall be.
    let [helm, _] = Helm::both(&bench.cluster, &bench.namespace);
    helm.run(&["rollback", "rel", "1"]).expect("rolled back");
    let newest = async |revision| {
        let read = bench.driver.newest_deployed(&bench.namespace, "rel", revision).await;
        read.expect("read").is_some()
    };
    assert!(!newest(1).await && newest(2).await && !newest(3).await);
}
