//! A relay that stops to pass on bytes: every wait of a client behind it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catamaran_cluster::timeouts::Timeouts;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::{GateLayer, client};
use crate::leader_election::Fence;
use crate::metrics::Metrics;

/// Passes on all bytes to the API server, and of its answers as many as a limit says; then it keeps the
/// connection open and silent.
struct Relay {
    /// How many bytes of answers each connection passes on.
    limit: Arc<AtomicU64>,
    /// How many bytes of answers were passed on in all.
    passed: Arc<AtomicU64>,
    address: String,
    _task: AbortOnDropHandle<()>,
}

impl Relay {
    async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (limit, passed) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicU64::new(0)));
        let counters = (limit.clone(), passed.clone());
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass_on(near, far, counters.clone()));
            }
        });
        Self { limit, passed, address, _task: AbortOnDropHandle::new(task) }
    }

    /// From now on connections stall after so many bytes.
    fn stall_after(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
        self.passed.store(0, Ordering::Relaxed);
    }
}

async fn pass_on(near: TcpStream, far: TcpStream, counters: (Arc<AtomicU64>, Arc<AtomicU64>)) {
    let (limit, passed) = counters;
    let (mut near_read, mut near_write) = near.into_split();
    let (mut far_read, mut far_write) = far.into_split();
    let questions = async {
        let _ = tokio::io::copy(&mut near_read, &mut far_write).await;
    };
    let answers = async {
        let (mut buffer, mut done) = (vec![0; 4096], 0);
        loop {
            let room = limit.load(Ordering::Relaxed).saturating_sub(done);
            if room == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            let most = buffer.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let Ok(read @ 1..) = far_read.read(&mut buffer[..most]).await else { return };
            done += read as u64;
            passed.fetch_add(read as u64, Ordering::Relaxed);
            if near_write.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    // The client ends the connection: then nobody waits for the rest.
    tokio::select! { () = questions => {}, () = answers => {} }
}

const SHORT: Duration = Duration::from_millis(400);
/// Far more than any of the timeouts: what takes longer has no end.
const DEADLINE: Duration = Duration::from_secs(30);

fn short() -> Timeouts {
    Timeouts { connect: SHORT, head: SHORT, body: SHORT, follow: SHORT }
}

/// A client whose connections go through the relay. Each call makes one with no open connection.
fn through(relay: &Relay, config: &Config, timeouts: Timeouts) -> Client {
    let mut config = config.clone();
    config.cluster_url = format!("https://{}", relay.address).parse().unwrap();
    let (fence, metrics) = (Fence::open(), Arc::new(Metrics::new("stalls")));
    let gate = GateLayer::new(&fence, None, &metrics, &config, timeouts);
    client(&config, &fence, &gate, timeouts).unwrap()
}

async fn stage() -> (Relay, Config, String, catamaran_localcluster::Namespace) {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("stalls").await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let server = config.cluster_url.authority().unwrap().to_string();
    let name = namespace.name().to_owned();
    (Relay::to(server).await, config, name, namespace)
}

/// A request whose answer has some size.
async fn list(client: Client, namespace: &str) -> Result<usize, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    maps.list(&ListParams::default()).await.map(|list| list.items.len())
}

#[tokio::test]
async fn requests_end_wherever_an_answer_stalls_and_succeed_once_it_goes_on() {
    let (relay, config, namespace, _kept) = stage().await;
    // With the patience of an operator: how long an answer is, and an object that makes it longer.
    let patient = through(&relay, &config, Timeouts::default());
    let maps: Api<ConfigMap> = Api::namespaced(patient, &namespace);
    let text = "0123456789abcdef".repeat(2048);
    let map: ConfigMap = serde_json::from_value(serde_json::json!({
        "metadata": { "name": "long" }, "data": { "text": text },
    }))
    .unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    relay.stall_after(u64::MAX);
    list(through(&relay, &config, Timeouts::default()), &namespace).await.unwrap();
    let whole = relay.passed.load(Ordering::Relaxed);
    assert!(whole > text.len() as u64, "the answer is {whole} bytes long");

    // Before the handshake, within it, in the head, in the body: small steps at first.
    let handshake = (0..16).map(|step| step * 300);
    let answer = (0..8).map(|step| 4800 + step * (whole - 4800) / 8);
    for bytes in handshake.chain(answer).chain([whole - 65]).filter(|bytes| *bytes < whole - 64) {
        relay.stall_after(bytes);
        let client = through(&relay, &config, short());
        let ended = tokio::time::timeout(DEADLINE, list(client.clone(), &namespace)).await;
        let outcome = ended.unwrap_or_else(|_| panic!("still waiting after {bytes} bytes"));
        assert!(outcome.is_err(), "{bytes} of {whole} bytes are no answer");
        // The same client goes on by a new connection.
        relay.stall_after(u64::MAX);
        let mut outcome = list(client.clone(), &namespace).await;
        for _ in 0..2 {
            if outcome.is_ok() {
                break;
            }
            outcome = list(client.clone(), &namespace).await;
        }
        assert!(outcome.is_ok(), "after {bytes} bytes: {outcome:?}");
    }
}

#[tokio::test]
async fn watches_end_when_they_are_silent() {
    let (relay, config, namespace, _kept) = stage().await;
    let maps: Api<ConfigMap> = Api::namespaced(through(&relay, &config, short()), &namespace);
    let map = |name: &str| -> ConfigMap {
        serde_json::from_value(serde_json::json!({ "metadata": { "name": name } })).unwrap()
    };
    maps.create(&PostParams::default(), &map("first")).await.unwrap();
    let watch = maps.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
    let mut watch = Box::pin(watch);
    let first = tokio::time::timeout(DEADLINE, watch.try_next()).await.unwrap().unwrap();
    assert!(matches!(first, Some(WatchEvent::Added(_))), "{first:?}");
    // From now on nothing passes, though there is something to tell.
    relay.stall_after(0);
    let direct: Api<ConfigMap> =
        Api::namespaced(Client::try_from(config.clone()).unwrap(), &namespace);
    direct.create(&PostParams::default(), &map("second")).await.unwrap();
    let mut silent = watch.filter(|event| {
        // What had passed before may still be read.
        std::future::ready(!matches!(event, Ok(WatchEvent::Added(_) | WatchEvent::Bookmark(_))))
    });
    let ended = tokio::time::timeout(DEADLINE, silent.try_next()).await;
    let ended = ended.expect("a watch whose connection is silent ends");
    assert!(ended.is_err(), "by an error: {ended:?}");
}
