//! The queue's promises.

use super::*;

fn queue(bounds: &[usize]) -> Queue {
    let bound = |running: &usize| Bound { running: *running, lent: 2 };
    Queue::new(&bounds.iter().map(bound).collect::<Vec<_>>(), 100)
}

fn key(kind: KindId, name: &str) -> Key {
    Key { kind, object: ObjectKey { namespace: Some("ns".into()), name: name.into() } }
}

async fn names(queue: &Queue, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(queue.next().await.unwrap().key.object.name);
    }
    names
}

#[tokio::test]
async fn a_key_that_is_added_twice_runs_once_and_tells_both_reasons() {
    let queue = queue(&[4]);
    queue.add(key(0, "a"), Priority::Live, "spec");
    queue.add(key(0, "a"), Priority::Live, "Deployment/a");
    queue.add(key(0, "a"), Priority::Live, "spec");
    let item = queue.next().await.unwrap();
    assert_eq!(item.reasons, "spec, Deployment/a");
    assert_eq!(queue.stats()[0].depth, 0);
}

#[tokio::test]
async fn a_key_never_runs_twice_at_once_and_runs_again_if_it_changed_meanwhile() {
    let queue = queue(&[4]);
    queue.add(key(0, "a"), Priority::Live, "one");
    let first = queue.next().await.unwrap();
    queue.add(key(0, "a"), Priority::Live, "two");
    queue.add(key(0, "b"), Priority::Live, "other");
    assert_eq!(queue.next().await.unwrap().key.object.name, "b");
    queue.done(&first.key);
    assert_eq!(queue.next().await.unwrap().reasons, "two");
}

#[tokio::test]
async fn live_changes_overtake_what_the_list_brought() {
    let queue = queue(&[9]);
    for name in ["l1", "l2", "l3"] {
        queue.add(key(0, name), Priority::Listed, "list");
    }
    queue.add(key(0, "live"), Priority::Live, "change");
    queue.add(key(0, "l3"), Priority::Live, "change");
    assert_eq!(names(&queue, 2).await, ["live", "l3"]);
    let mut listed = names(&queue, 2).await;
    listed.sort();
    assert_eq!(listed, ["l1", "l2"]);
}

#[tokio::test]
async fn what_comes_next_out_of_the_list_is_known_beforehand() {
    let queue = queue(&[9, 9]);
    for number in 0..20 {
        queue.add(key(0, &format!("l{number}")), Priority::Listed, "list");
    }
    queue.add(key(0, "live"), Priority::Live, "change");
    assert_eq!(names(&queue, 1).await, ["live"]);
    let told: Vec<_> = queue.upcoming(0, 5).into_iter().map(|key| key.object.name).collect();
    assert_eq!(names(&queue, 5).await, told);
    assert_eq!(queue.upcoming(0, 99).len(), 15, "what is worked on does not come");
    assert_eq!(queue.upcoming(1, 99), []);
}

#[tokio::test]
async fn the_first_list_is_worked_on_in_mixed_order() {
    let queue = queue(&[100]);
    for number in 0..100 {
        queue.add(key(0, &format!("{number:02}")), Priority::Listed, "list");
    }
    let half = names(&queue, 50).await;
    let late = half.iter().filter(|name| name.as_str() >= "50").count();
    assert!((15..35).contains(&late), "{late} of the later half");
}

#[tokio::test]
async fn kinds_take_turns_and_keep_their_bounds() {
    let queue = queue(&[2, 1]);
    for name in ["a1", "a2", "a3"] {
        queue.add(key(0, name), Priority::Live, "");
    }
    queue.add(key(1, "b1"), Priority::Live, "");
    queue.add(key(1, "b2"), Priority::Live, "");
    assert_eq!(names(&queue, 3).await, ["a1", "b1", "a2"]);
    let none = tokio::time::timeout(Duration::from_millis(20), queue.next()).await;
    assert!(none.is_err(), "both kinds are at their bound");
    queue.done(&key(1, "b1"));
    assert_eq!(names(&queue, 1).await, ["b2"]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_comes_in_time_and_sooner_if_something_changes() {
    let queue = queue(&[9]);
    queue.add_after(key(0, "late"), Duration::from_mins(1), "period");
    queue.add_after(key(0, "soon"), Duration::from_secs(5), "period");
    queue.add_after(key(0, "soon"), Duration::from_secs(50), "period");
    let start = Instant::now();
    assert_eq!(names(&queue, 1).await, ["soon"]);
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    queue.add(key(0, "late"), Priority::Live, "change");
    assert_eq!(names(&queue, 1).await, ["late"]);
    let none = tokio::time::timeout(Duration::from_mins(2), queue.next()).await;
    assert!(none.is_err(), "the delay was dropped");
}

#[tokio::test]
async fn closing_wakes_every_worker() {
    let queue = std::sync::Arc::new(queue(&[1]));
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.close();
    for worker in workers {
        assert!(worker.await.unwrap());
    }
}

async fn nothing_more(queue: &Queue, why: &str) {
    let none = tokio::time::timeout(Duration::from_millis(20), queue.next()).await;
    assert!(none.is_err(), "{why}: {none:?}");
}

#[tokio::test]
async fn the_bound_for_all_leaves_a_place_for_every_kind() {
    let bound = Bound { running: 9, lent: 0 };
    let queue = Queue::new(&[bound, bound, bound], 4);
    for name in ["a1", "a2", "a3", "a4"] {
        queue.add(key(0, name), Priority::Live, "");
    }
    assert_eq!(names(&queue, 2).await, ["a1", "a2"]);
    nothing_more(&queue, "two of four places are the others'").await;
    queue.add(key(1, "b1"), Priority::Live, "");
    queue.add(key(2, "c1"), Priority::Live, "");
    queue.add(key(2, "c2"), Priority::Live, "");
    assert_eq!(names(&queue, 2).await, ["b1", "c1"]);
    nothing_more(&queue, "all places are taken").await;
    queue.done(&key(0, "a1"));
    assert_eq!(names(&queue, 1).await, ["a3"]);
}

#[tokio::test]
async fn who_hangs_lends_its_place_and_still_runs_once_at_a_time() {
    let queue = queue(&[1]);
    for name in ["hangs", "b", "c", "d", "e"] {
        queue.add(key(0, name), Priority::Live, "");
    }
    assert_eq!(names(&queue, 1).await, ["hangs"]);
    assert!(queue.suspend_slot(&key(0, "hangs")));
    assert!(!queue.suspend_slot(&key(0, "hangs")), "only once");
    queue.add(key(0, "hangs"), Priority::Live, "");
    assert_eq!(names(&queue, 1).await, ["b"]);
    assert!(queue.suspend_slot(&key(0, "b")));
    assert_eq!(names(&queue, 1).await, ["c"]);
    assert!(!queue.suspend_slot(&key(0, "c")), "two hang already");
    assert_eq!(queue.stats()[0].running, 3);
    queue.done(&key(0, "c"));
    assert_eq!(names(&queue, 1).await, ["d"]);
    queue.done(&key(0, "hangs"));
    queue.done(&key(0, "d"));
    assert_eq!(names(&queue, 1).await, ["e"]);
    queue.done(&key(0, "e"));
    assert_eq!(names(&queue, 1).await, ["hangs"]);
}

#[tokio::test]
async fn who_gets_on_takes_its_place_back_and_one_too_many_end_before_another_begins() {
    let queue = queue(&[1]);
    for name in ["a", "b", "c"] {
        queue.add(key(0, name), Priority::Live, "");
    }
    assert_eq!(names(&queue, 1).await, ["a"]);
    queue.resume_slot(&key(0, "a"));
    assert!(queue.suspend_slot(&key(0, "a")));
    assert_eq!(names(&queue, 1).await, ["b"]);
    queue.resume_slot(&key(0, "a"));
    queue.resume_slot(&key(0, "a"));
    queue.done(&key(0, "b"));
    nothing_more(&queue, "a works").await;
    assert!(queue.suspend_slot(&key(0, "a")), "again");
    assert_eq!(names(&queue, 1).await, ["c"]);
    queue.resume_slot(&key(0, "a"));
    queue.done(&key(0, "a"));
    queue.done(&key(0, "c"));
    assert_eq!(queue.stats()[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn work_that_nobody_takes_is_noticed_and_work_that_has_no_room_is_not() {
    let queue = queue(&[1]);
    queue.add(key(0, "a"), Priority::Live, "");
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(queue.untaken(), Duration::from_secs(40));
    assert_eq!(queue.next().await.unwrap().waited, Duration::from_secs(40));
    queue.add(key(0, "b"), Priority::Live, "");
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(queue.untaken(), Duration::ZERO);
    assert_eq!(queue.stats()[0].working, [Duration::from_secs(40)]);
}

#[tokio::test]
async fn a_key_keeps_a_few_of_thousands_of_reasons() {
    let queue = queue(&[1]);
    for number in 0..10_000 {
        queue.add(key(0, "a"), Priority::Live, &format!("ConfigMap/{number} changed"));
    }
    let item = queue.next().await.expect("an item");
    assert_eq!(item.reasons.split(", ").count(), 9);
    assert!(item.reasons.ends_with("ConfigMap/7 changed, more"), "{}", item.reasons);
}
