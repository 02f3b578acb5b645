//! A kind whose versions differ, converted by a webhook that the API server asks.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::support::{Stage, config_map, is, until};

/// In v1 a shop has `spec.objects`, in v2 it has `spec.items`.
fn converted(mut object: Value, version: &str) -> Value {
    object["apiVersion"] = json!(version);
    let (from, to) =
        if version.ends_with("/v2") { ("objects", "items") } else { ("items", "objects") };
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    object
}

fn review(asked: &Value) -> Value {
    let request = &asked["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap().iter().cloned();
    let objects: Vec<_> = objects.map(|object| converted(object, version)).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": { "uid": request["uid"], "result": { "status": "Success" }, "convertedObjects": objects },
    })
}

/// A webhook on a port of its own, for as long as the tests run.
struct Webhook {
    url: String,
    certificate: String,
    /// Whether it answers.
    up: AtomicBool,
    conversions: AtomicUsize,
}

impl Webhook {
    fn start() -> Arc<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let webhook = Arc::new(Self {
            url: format!("https://{}/convert", listener.local_addr().unwrap()),
            certificate: STANDARD.encode(made.cert.pem()),
            up: AtomicBool::new(true),
            conversions: AtomicUsize::new(0),
        });
        let (serving, config) = (webhook.clone(), Arc::new(config));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (webhook, config) = (serving.clone(), config.clone());
                std::thread::spawn(move || webhook.serve(stream, config));
            }
        });
        webhook
    }

    /// Answers what comes over a connection, until it ends or the webhook is down.
    fn serve(&self, stream: TcpStream, config: Arc<ServerConfig>) {
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
        while let Some(body) = request(&mut stream) {
            if !self.up.load(Ordering::Relaxed) {
                return;
            }
            self.conversions.fetch_add(1, Ordering::Relaxed);
            let answer = review(&serde_json::from_slice(&body).unwrap()).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            if stream.write_all((head + &answer).as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// The body of the next request.
fn request(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// Written and stored as v1, carried as v2: what the chart gets is converted, what is told is converted back,
/// and a webhook that is down for a while costs nothing but time.
#[tokio::test]
async fn a_chart_gets_the_version_of_its_entry() {
    let webhook = Webhook::start();
    let mut stage = Stage::new("converted").await;
    stage.define("Shop", "Namespaced", &["v1", "v2"]);
    let by_webhook = json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": { "url": webhook.url, "caBundle": webhook.certificate },
    } } } });
    let crd = format!("crd/{}", stage.kind("shops"));
    stage.kubectl(&["patch", &crd, "--type=merge", "-p", &by_webhook.to_string()]);
    stage.chart(
        "demo",
        &[("templates/all.yaml", "{{ range .Values.items }}\n---\n{{ toYaml . }}\n{{ end }}\n")],
    );
    stage.watches("- {group: GROUP, version: v2, kind: Shop, chart: helm-charts/demo}\n");
    let objects = |text: &str| json!({ "objects": [config_map("web", &json!({ "a": text }))] });
    // The API server hears of the webhook a little later; till then v1 and v2 are the same to it.
    stage.apply(&stage.shop("web", &objects("1")));
    until("converted", || {
        let shop = stage.get(&format!("shops.v2.{}", stage.group), "web");
        if shop["spec"]["items"].is_array() { Ok(()) } else { Err(shop["spec"].to_string()) }
    });

    let operator = stage.operator();
    let ready =
        |version: u64| move |shop: &Value| is(shop, "Ready", "True") && release(shop) == version;
    let shop = stage.shop_becomes("web", "ready", ready(1));
    let (as_v1, as_v2) = (version(&stage, "v1"), version(&stage, "v2"));
    assert!(as_v1["spec"]["objects"].is_array() && as_v2["spec"]["items"].is_array());
    assert_eq!(as_v1["status"], as_v2["status"], "told in either version");
    assert_eq!(shop["status"]["observedGeneration"], shop["metadata"]["generation"]);
    let owner = stage.get("configmap", "web")["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["apiVersion"], format!("{}/v2", stage.group));

    // A change by either version is one upgrade.
    stage.apply(&stage.shop("web", &objects("2")));
    stage.shop_becomes("web", "upgraded", ready(2));
    let items = json!({ "spec": { "items": [config_map("web", &json!({ "a": "3" }))] } });
    let of_v2 = format!("shops.v2.{}", stage.group);
    stage.kubectl(&["patch", &of_v2, "web", "--type=merge", "-p", &items.to_string()]);
    stage.shop_becomes("web", "upgraded by v2", ready(3));
    assert_eq!(stage.get("configmap", "web")["data"]["a"], "3");

    let records = stage.records();

    // Without the webhook v2 cannot be read nor written: what is there stays, also over a restart.
    webhook.up.store(false, Ordering::Relaxed);
    drop(operator);
    let _operator = stage.operator();
    stage.kubectl(&["patch", "configmap", "web", "--type=merge", "-p", r#"{"data":{"a":"x"}}"#]);
    until("the API server tells of it", || match stage.complaint(&["get", &of_v2, "web"]) {
        told if told.contains("conversion webhook") => Ok(()),
        told => Err(told),
    });
    assert!(!stage.get("configmap", "web").is_null());
    assert_eq!(stage.records(), records);
    webhook.up.store(true, Ordering::Relaxed);
    until("put back", || match &stage.get("configmap", "web")["data"]["a"] {
        text if text == "3" => Ok(()),
        text => Err(text.to_string()),
    });
    stage.shop_becomes("web", "as it was", ready(3));
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
    assert!(stage.get("configmap", "web").is_null());
    assert!(webhook.conversions.load(Ordering::Relaxed) > 0);
}

fn release(shop: &Value) -> u64 {
    shop["status"]["deployedRelease"]["version"].as_u64().unwrap_or_default()
}

fn version(stage: &Stage, version: &str) -> Value {
    stage.get(&format!("shops.{version}.{}", stage.group), "web")
}
