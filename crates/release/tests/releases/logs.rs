//! What hooks print, where the chart asks to show it. The nodes here keep no logs, so the answers are a
//! stand-in's: what a ConfigMap says. On a real node: `crates/cli/tests/node.rs`.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use catamaran_localcluster::LocalCluster;
use catamaran_release::{Driver, Output};
use kube::Client;
use kube::api::PostParams;
use kube::client::ClientBuilder;
use serde_json::Value;
use tower::{BoxError, Layer, Service};

use crate::support::{
    CANARY, DesiredRelease, cluster, config_map, driver, hook, job, live_job, secret,
};

/// Answers requests for logs with the ConfigMap `printed` of the same namespace.
#[derive(Clone)]
struct Keeper<S>(S);

struct Keepers;

impl<S> Layer<S> for Keepers {
    type Service = Keeper<S>;

    fn layer(&self, inner: S) -> Keeper<S> {
        Keeper(inner)
    }
}

impl<S, B, R> Service<http::Request<B>> for Keeper<S>
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
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let uri = request.uri().to_string();
        if let Some((before, _)) = uri.split_once("/log?") {
            let (namespace, _) = before.split_once("/pods/").expect("a pod");
            *request.uri_mut() = format!("{namespace}/configmaps/printed").parse().expect("a URI");
        }
        let answer = self.0.call(request);
        Box::pin(async move { answer.await.map_err(Into::into) })
    }
}

type Told = Arc<Mutex<Vec<String>>>;

/// A driver that keeps what hooks print.
fn listening(client: &Client) -> (Driver, Told) {
    let told = Told::default();
    let keep = Arc::clone(&told);
    let tell = move |output: Output<'_>| {
        keep.lock().expect("a lock").push(match output {
            Output::Text(text) => text.to_owned(),
            Output::Unread(why) => format!("unread: {why}"),
        });
    };
    (driver(client).telling_output(Arc::new(tell)), told)
}

fn heard(told: &Told) -> Vec<String> {
    std::mem::take(&mut *told.lock().expect("a lock"))
}

fn with_keeper(cluster: &LocalCluster) -> Client {
    let config = cluster.config().expect("a config");
    ClientBuilder::try_from(config).expect("a client").with_layer(&Keepers).build()
}

/// A Job that is a hook, and says when its logs are shown.
fn telling(name: &str, exit_code: i32, when: &str, delete: &str) -> Value {
    let mut object = hook(job(name, exit_code), "pre-install,test", 0, delete);
    object["metadata"]["annotations"]["helm.sh/hook-output-log-policy"] = when.into();
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_heard_once_and_never_quote_the_releases_secrets() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hook-logs").await.expect("a namespace");
    let client = cluster.client();
    // Any text will do, and an object is one.
    let printed = config_map("printed", &format!("from the hook: {CANARY}"));
    let api = crate::support::api(&client, &namespace, "ConfigMap");
    let printed = serde_json::from_value(printed).expect("an object");
    api.create(&PostParams::default(), &printed).await.expect("created");
    let (driver, told) = listening(&with_keeper(&cluster));

    let mut wish = DesiredRelease::new(&namespace, "rel", vec![secret("s", CANARY)]);
    wish.hooks = vec![
        telling("one", 0, "hook-succeeded", "hook-succeeded"),
        telling("two", 0, "hook-succeeded,hook-failed", ""),
        telling("three", 0, "hook-failed", "hook-succeeded"),
        hook(job("four", 0), "pre-install", 1, ""),
    ];
    wish.settle(&driver).await.expect("installed");
    let lines = heard(&told);
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in &lines {
        assert!(line.contains("from the hook: <redacted>") && !line.contains(CANARY), "{line}");
    }
    assert_eq!(live_job(&client, &namespace, "one").await, Value::Null, "told first, then deleted");
    assert_eq!(
        wish.reconcile(&driver).await.expect("unchanged").done,
        catamaran_release::ActionResult::Unchanged
    );
    assert_eq!(heard(&told), Vec::<String>::new());

    let tested = wish.test(&driver, |hook| hook.name != "rel-test").await.expect("tested");
    assert_eq!((tested.ran, heard(&told).len()), (3, 2));
    wish.leave(&driver).await.expect("uninstalled");

    // Of a hook that fails: before it is deleted for that, and of no other one.
    wish.hooks[1] = telling("two", 3, "hook-failed", "before-hook-creation,hook-failed");
    let error = wish.settle(&driver).await.expect_err("a hook that fails");
    assert!(!error.to_string().contains(CANARY), "{error}");
    assert_eq!(heard(&told).len(), 1);
    assert_eq!(live_job(&client, &namespace, "two").await, Value::Null);
    wish.leave(&driver).await.expect("uninstalled");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_that_cannot_be_read_are_told_and_no_failure() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hook-logs").await.expect("a namespace");
    let (driver, told) = listening(&cluster.client());
    let mut wish = DesiredRelease::new(&namespace, "rel", vec![config_map("m", "v")]);
    wish.hooks = vec![telling("one", 0, "hook-succeeded", ""), {
        // Neither Pod nor Job: nothing to show.
        let mut object = hook(config_map("two", "v"), "pre-install", 1, "");
        object["metadata"]["annotations"]["helm.sh/hook-output-log-policy"] =
            "hook-succeeded".into();
        object
    }];
    wish.settle(&driver).await.expect("installed");
    let lines = heard(&told);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("unread: cannot read the logs of Pod \"one-"), "{lines:?}");
    wish.leave(&driver).await.expect("uninstalled");
}
