//! Killed, or cut off, after every single write: the next run comes to the same end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};

use catamaran_localcluster::LocalCluster;
use catamaran_release::{ActionOptions, Driver, WaitStrategy};
use kube::Client;
use kube::client::ClientBuilder;
use serde_json::Value;
use tokio::sync::Notify;
use tower::{BoxError, Layer, Service};

use crate::support::{
    DesiredRelease, cluster, config_map, deployment, driver, live, revisions, secret, service,
};

/// What happens to the answer of the write that is the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// The process dies: nothing after it is ever sent.
    Killed,
    /// The answer is lost on its way; everything after it works.
    AnswerLost,
}

/// Counts writes, and brings the end after so many.
#[derive(Clone)]
struct Fate {
    end: End,
    left: Arc<AtomicI64>,
    died: Arc<Notify>,
}

impl Fate {
    fn after(writes: i64, end: End) -> Self {
        Self { end, left: Arc::new(AtomicI64::new(writes)), died: Arc::new(Notify::new()) }
    }

    /// Whether the end came.
    fn struck(&self) -> bool {
        self.left.load(Ordering::SeqCst) <= 0
    }

    fn client(&self, cluster: &LocalCluster) -> Client {
        let mut config = cluster.config().expect("a config");
        config.default_retry = false;
        ClientBuilder::try_from(config).expect("a client").with_layer(self).build()
    }
}

impl<S> Layer<S> for Fate {
    type Service = Doomed<S>;

    fn layer(&self, inner: S) -> Doomed<S> {
        Doomed { inner, fate: self.clone() }
    }
}

struct Doomed<S> {
    inner: S,
    fate: Fate,
}

impl<S, B, R> Service<http::Request<B>> for Doomed<S>
where
    S: Service<http::Request<B>, Response = R>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    R: Send + 'static,
{
    type Response = R;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let write = request.method() != http::Method::GET;
        let before = if write { self.fate.left.fetch_sub(1, Ordering::SeqCst) } else { i64::MAX };
        let answer = self.inner.call(request);
        let fate = self.fate.clone();
        Box::pin(async move {
            match (before, fate.end) {
                (1, End::AnswerLost) => {
                    drop(answer.await);
                    Err("the answer was lost".into())
                }
                (..=1, End::Killed) => {
                    if before == 1 {
                        drop(answer.await);
                    }
                    fate.died.notify_one();
                    std::future::pending().await
                }
                _ => answer.await.map_err(Into::into),
            }
        })
    }
}

/// Runs an action under a fate; whether it came to its own end. An error must be one that says
/// "again".
pub async fn cut_short<T>(
    cluster: &LocalCluster,
    writes: i64,
    end: End,
    action: impl AsyncFnOnce(Driver) -> Result<T, catamaran_release::Error>,
) -> bool {
    let fate = Fate::after(writes, end);
    let driver = driver(&fate.client(cluster));
    tokio::select! {
        biased;
        result = action(driver) => {
            if let Err(error) = result {
                assert!(error.is_transient() && error.is_stale(), "{writes} {end:?}: {error}");
            }
        }
        () = fate.died.notified() => {}
    }
    !fate.struck()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_survives_an_end_after_every_write() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("kill").await.expect("a namespace");
    for end in [End::Killed, End::AnswerLost] {
        let mut writes = 1;
        // Until an end so late that none of the actions meets it.
        while !one_life(&cluster, &namespace, writes, end).await {
            writes += 1;
            assert!(writes < 20, "the actions never end");
        }
        assert!(writes > 7, "an upgrade of four objects takes seven writes, seen {writes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn so_do_the_ways_of_a_person() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("kill-by-hand").await.expect("a namespace");
    let mut lives = Vec::new();
    for end in [End::Killed, End::AnswerLost] {
        // The longest action, an install that waits, takes seven.
        for writes in 1..=8 {
            lives.push(one_life_by_hand(&cluster, &namespace, writes, end));
        }
    }
    let whole = futures::future::join_all(lives).await;
    assert!(whole.contains(&true) && whole.contains(&false), "{whole:?}");
}

/// Install and wait, uninstall and wait but keep the history, roll back, uninstall: each cut short and
/// then done again.
async fn one_life_by_hand(cluster: &LocalCluster, namespace: &str, writes: i64, end: End) -> bool {
    let name = format!("{}-{writes}", if end == End::Killed { "killed" } else { "lost" });
    let client = cluster.client();
    let waits = ActionOptions { wait: WaitStrategy::Objects, ..ActionOptions::default() };
    let keeps = ActionOptions { keep_history: true, ..waits.clone() };
    let object = |suffix: &str| format!("{name}-{suffix}");
    let wish = DesiredRelease::new(
        namespace,
        &name,
        vec![config_map(&object("map"), "1"), deployment(&object("web"))],
    );
    let is = async |expected: &[&str]| {
        let found = revisions(&driver(&client), namespace, &name).await;
        let found: Vec<&str> = found.iter().map(|(_, status)| status.as_str()).collect();
        assert_eq!(found, expected, "{name}");
        let map = live(&client, namespace, "ConfigMap", &object("map")).await;
        let there = expected.last() == Some(&"deployed");
        assert_eq!(map != Value::Null, there, "{name} {expected:?}");
    };
    let mut whole = true;

    let install = async |driver: Driver| wish.settle(&driver.options(waits.clone())).await;
    whole &= cut_short(cluster, writes, end, install).await;
    install(driver(&client)).await.expect("installed");
    is(&["deployed"]).await;

    let uninstall = async |driver: Driver| wish.leave(&driver.options(keeps.clone())).await;
    whole &= cut_short(cluster, writes, end, uninstall).await;
    uninstall(driver(&client)).await.expect("uninstalled");
    is(&["uninstalled"]).await;

    let back = async |driver: Driver| {
        let history = driver.history(namespace, &name).await?;
        match history.deployed() {
            Some(_) => Ok(()), // done, but for the answer
            None => wish.roll_back(&driver.options(waits.clone()), 1).await.map(drop),
        }
    };
    whole &= cut_short(cluster, writes, end, back).await;
    back(driver(&client)).await.expect("rolled back");
    is(&["uninstalled", "deployed"]).await;

    let forget = async |driver: Driver| wish.leave(&driver.options(waits.clone())).await;
    whole &= cut_short(cluster, writes, end, forget).await;
    forget(driver(&client)).await.expect("uninstalled");
    is(&[]).await;
    whole
}

/// Install, upgrade, rollback, uninstall, each cut short and then done again.
async fn one_life(cluster: &LocalCluster, namespace: &str, writes: i64, end: End) -> bool {
    let name = format!("{}-{writes}", if end == End::Killed { "killed" } else { "lost" });
    let client = cluster.client();
    let sound = driver(&client);
    let object = |suffix: &str| format!("{name}-{suffix}");
    let first = DesiredRelease::new(
        namespace,
        &name,
        vec![
            secret(&object("a"), "1"),
            config_map(&object("b"), "1"),
            config_map(&object("c"), "1"),
            service(&object("d")),
        ],
    );
    let mut second = first.clone();
    second.objects.remove(1);
    second.objects.push(config_map(&object("e"), "2"));

    let mut whole =
        cut_short(cluster, writes, end, async |driver| first.reconcile(&driver).await).await;
    first.reconcile(&sound).await.expect("installed");
    assert_eq!(revisions(&sound, namespace, &name).await, [(1, "deployed".to_owned())], "{name}");

    whole &= cut_short(cluster, writes, end, async |driver| second.reconcile(&driver).await).await;
    let applied = second.reconcile(&sound).await.expect("upgraded");
    let expected = [(1, "superseded".to_owned()), (2, "deployed".to_owned())];
    assert_eq!(revisions(&sound, namespace, &name).await, expected, "{name}");
    assert_eq!(applied.release.info.description, "Upgrade complete");
    for (kind, suffix, there) in [
        ("Secret", "a", true),
        ("ConfigMap", "b", false),
        ("ConfigMap", "c", true),
        ("Service", "d", true),
        ("ConfigMap", "e", true),
    ] {
        let found = live(&client, namespace, kind, &object(suffix)).await;
        assert_eq!(found != Value::Null, there, "{name} {kind} {suffix}");
    }

    let back = async |driver: &Driver| {
        let history = driver.history(namespace, &name).await?;
        match history.deployed() {
            Some(deployed) if deployed.version == 3 => Ok(()), // done, but for the answer
            _ => driver.rollback(&history, Some(1), None).await.map(drop),
        }
    };
    whole &= cut_short(cluster, writes, end, async |driver| back(&driver).await).await;
    back(&sound).await.expect("rolled back");
    let statuses = ["superseded", "superseded", "deployed"];
    let expected: Vec<_> = (1..).zip(statuses.map(str::to_owned)).collect();
    assert_eq!(revisions(&sound, namespace, &name).await, expected, "{name}");
    for (kind, suffix, there) in
        [("ConfigMap", "b", true), ("Service", "d", true), ("ConfigMap", "e", false)]
    {
        let found = live(&client, namespace, kind, &object(suffix)).await;
        assert_eq!(found != Value::Null, there, "{name} {kind} {suffix}");
    }

    whole &=
        cut_short(cluster, writes, end, async |driver| driver.uninstall(namespace, &name).await)
            .await;
    sound.uninstall(namespace, &name).await.expect("uninstalled");
    assert_eq!(revisions(&sound, namespace, &name).await, [], "{name}");
    for (kind, suffix) in
        [("Secret", "a"), ("ConfigMap", "b"), ("ConfigMap", "c"), ("Service", "d")]
    {
        assert_eq!(
            live(&client, namespace, kind, &object(suffix)).await,
            Value::Null,
            "{name} {suffix}"
        );
    }
    whole
}
