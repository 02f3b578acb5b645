//! The document's walk, on a real API server.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use catamaran_testkit::{Authority, Server, becomes, eventually, vanishes};
use homelab::api::{AuthentikServer, Domain, MyResource, Redis, RedisConnection};
use homelab::foreign::{Certificate, Gateway, INGRESS};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, CustomResourceExt, ResourceExt};
use serde_json::{Value, json};
use support::{Lab, condition, ready};

#[tokio::test]
async fn my_resource_has_a_condition_for_each_child_and_a_secret_that_stays() {
    let lab = Lab::start("app").await;
    let resources: Api<MyResource> = lab.bench.api();
    lab.apply_sample("myresource.yaml");
    let ready_one = becomes(&resources, "my-app", "Ready", |r| ready(r).0 == "True").await;
    for child in ["Deployment", "Service", "Secret"] {
        assert_eq!(condition(&ready_one, child).0, "True", "{child}");
    }
    let (deployments, services): (Api<Deployment>, Api<Service>) =
        (lab.bench.api(), lab.bench.api());
    let deployment = deployments.get("my-app").await.unwrap();
    assert_eq!(deployment.spec.replicas, Some(3));
    let text = serde_json::to_string(&deployment.spec).unwrap();
    for part in
        ["nginx:latest", "my-app.example.com", "\"containerPort\":8080", "\"myapp\"", "5432"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let ports = services.get("my-app").await.unwrap().spec.unwrap().ports.unwrap();
    assert_eq!((ports[0].port, ports[0].app_protocol.as_deref()), (80, Some("https")));
    assert_eq!(deployment.owner_references()[0].kind, "MyResource");

    // The Secret: made once, kept as people change it, completed when a key is taken.
    let drawn = lab.secrets.get("my-app-secret").await.unwrap().data.unwrap();
    assert_eq!((drawn["apiKey"].0.len(), drawn["password"].0.len()), (40, 24));
    lab.secret("my-app-secret", json!({ "password": "by hand" })).await;
    let change = json!({ "spec": { "replicas": 1, "protocol": "http", "database": null } });
    resources.patch("my-app", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    becomes(&deployments, "my-app", "one replica", |d| d.spec.replicas == Some(1)).await;
    becomes(&resources, "my-app", "Ready", |r| ready(r).0 == "True").await;
    let kept = lab.secrets.get("my-app-secret").await.unwrap().data.unwrap();
    assert_eq!(kept["password"].0, b"by hand");
    assert_eq!(kept["apiKey"].0, drawn["apiKey"].0);

    // By hand: what is taken away comes back, what is changed is put back.
    lab.delete(&services, "my-app").await;
    let scaled = Patch::Merge(json!({ "spec": { "replicas": 7 } }));
    deployments.patch("my-app", &PatchParams::default(), &scaled).await.unwrap();
    becomes(&services, "my-app", "there again", |_| true).await;
    becomes(&deployments, "my-app", "put back", |d| d.spec.replicas == Some(1)).await;
    becomes(&resources, "my-app", "Ready", |r| ready(r).0 == "True").await;
    let described = lab.bench.kubectl(&["describe", "myresource", "my-app"]);
    assert!(described.contains("my-app.example.com"), "{described}");

    lab.delete(&resources, "my-app").await;
    vanishes(&deployments, "my-app").await;
    vanishes(&lab.secrets, "my-app-secret").await;
}

#[tokio::test]
async fn the_api_server_refuses_what_is_none_of_these() {
    let bench = support::prepared("refused").await;
    let cases = [
        ("MyResource", json!({ "hostname": "h", "port": 0 })),
        ("MyResource", json!({ "hostname": "h", "port": 65536 })),
        ("MyResource", json!({ "port": 80 })),
        ("MyResource", json!({ "hostname": "h", "port": 80, "replicas": 0 })),
        ("MyResource", json!({ "hostname": "h", "port": 80, "protocol": "ftp" })),
        ("MyResource", json!({ "hostname": "h", "port": 80, "database": { "host": "x" } })),
        ("Domain", json!({ "hostname": "h" })),
        ("PostgresDatabase", json!({ "connection": "db" })),
        ("PostgresConnection", json!({ "host": "/var/run/postgresql", "secret": "s" })),
        ("AuthentikServer", json!({ "domain": "d", "database": "d" })),
    ];
    for (kind, spec) in cases {
        let object = json!({ "apiVersion": "homelab.mortenolsen.pro/v1", "kind": kind,
            "metadata": { "name": "wrong" }, "spec": spec });
        let plural = format!("{}s", kind.to_lowercase());
        let resource = kube::core::ApiResource {
            group: "homelab.mortenolsen.pro".to_owned(),
            version: "v1".to_owned(),
            api_version: "homelab.mortenolsen.pro/v1".to_owned(),
            kind: kind.to_owned(),
            plural,
        };
        let object: kube::core::DynamicObject = serde_json::from_value(object).unwrap();
        let api = Api::namespaced_with(bench.client(), bench.namespace.name(), &resource);
        let created: Result<kube::core::DynamicObject, _> =
            api.create(&PostParams::default(), &object).await;
        assert!(
            matches!(&created, Err(kube::Error::Api(status)) if status.code == 422),
            "{kind} {spec}: {created:?}"
        );
    }
    let defaults = json!({ "hostname": "h", "port": 80 });
    let created: MyResource = support::create(&bench, "right", defaults).await;
    assert_eq!((created.spec.replicas, created.spec.protocol.name()), (1, "https"));
}

/// cert-manager and Istio, as far as a Domain sees them. No other test touches them.
async fn install(lab: &Lab) {
    let crds: Api<CustomResourceDefinition> = Api::all(lab.bench.client());
    for definition in [Certificate::crd(), Gateway::crd()] {
        crds.create(&PostParams::default(), &definition).await.unwrap();
        let name = definition.name_any();
        await_condition(crds.clone(), &name, is_crd_established()).await.unwrap();
    }
}

async fn uninstall(lab: &Lab) {
    let crds: Api<CustomResourceDefinition> = Api::all(lab.bench.client());
    for definition in [Certificate::crd(), Gateway::crd()] {
        let name = definition.name_any();
        _ = crds.delete(&name, &kube::api::DeleteParams::default()).await;
        vanishes(&crds, &name).await;
    }
}

/// What cert-manager does.
async fn certify(certificates: &Api<Certificate>, name: &str) {
    let condition = json!({ "type": "Ready", "status": "True", "reason": "Issued", "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z" });
    let status = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    certificates.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

#[tokio::test]
async fn the_identity_provider_waits_for_everything_it_depends_on() {
    let lab = Lab::start("provider").await;
    uninstall(&lab).await;
    let servers: Api<AuthentikServer> = lab.bench.api();
    lab.apply_sample("authentikserver.yaml");
    let waits = becomes(&servers, "homelab", "waits", |s| ready(s).1 == "MissingDependency").await;
    for (component, what) in
        [("Domain", "Domain"), ("Database", "PostgresDatabase"), ("Redis", "neither")]
    {
        let (_, reason, message) = condition(&waits, component);
        assert!(reason == "MissingDependency" && message.contains(what), "{reason}: {message}");
    }

    // The domain: its kinds are not installed, and then they are.
    let domains: Api<Domain> = lab.bench.api();
    lab.apply_sample("domain.yaml");
    let waits = becomes(&domains, "homelab", "waits", |d| ready(d).1 == "KindNotInstalled").await;
    assert!(condition(&waits, "Certificate").2.contains("Certificate"));
    assert_eq!(condition(&waits, "Gateway").1, "KindNotInstalled");
    becomes(&servers, "homelab", "waits", |s| condition(s, "Domain").1 == "WaitingForDependency")
        .await;
    lab.bench.kubectl(&["create", "namespace", INGRESS]);
    install(&lab).await;
    let certificates: Api<Certificate> = Api::namespaced(lab.bench.client(), INGRESS);
    let gateways: Api<Gateway> = lab.bench.api();
    let name = format!("{}.homelab", lab.bench.namespace.name());
    let certificate = becomes(&certificates, &name, "there", |_| true).await;
    assert_eq!(certificate.spec.dns_names, ["local.olsen.cloud", "*.local.olsen.cloud"]);
    assert_eq!(certificate.spec.issuer_ref.name, "letsencrypt-prod");
    let gateway = becomes(&gateways, "homelab", "there", |_| true).await;
    assert!(gateway.spec.servers.iter().all(|server| server.hosts.len() == 2));
    assert!(ready(&domains.get("homelab").await.unwrap()).0 == "False", "not certified yet");
    certify(&certificates, &name).await;
    becomes(&domains, "homelab", "Ready", |d| ready(d).0 == "True").await;
    // Deleted by hand in the other namespace: it comes back.
    lab.delete(&certificates, &name).await;
    becomes(&certificates, &name, "there again", |c| c.metadata.uid != certificate.metadata.uid)
        .await;
    certify(&certificates, &name).await;

    // The database, and Redis from its chart.
    let server = Server::postgres();
    lab.connect(&server).await;
    lab.apply_sample("postgresdatabase.yaml");
    lab.apply_sample("redis.yaml");
    let redises: Api<Redis> = lab.bench.api();
    becomes(&redises, "redis", "Ready", |r| ready(r).0 == "True").await;
    becomes(&servers, "homelab", "Ready", |s| ready(s).0 == "True").await;
    let deployments: Api<Deployment> = lab.bench.api();
    let first = deployments.get("homelab").await.unwrap();
    let text = serde_json::to_string(&first.spec).unwrap();
    let redis = format!("redis.{}.svc", lab.bench.namespace.name());
    for part in ["test2-connection", "homelab-keys", &redis, "https://authentik.local.olsen.cloud"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for secret in ["test2-connection", "homelab-keys", "redis"] {
        for value in lab.secrets.get(secret).await.unwrap().data.unwrap().values() {
            let value = String::from_utf8(value.0.clone()).unwrap();
            assert!(value.len() < 20 || !text.contains(&value), "{secret} is in the Deployment");
        }
    }
    let ingresses: Api<Ingress> = lab.bench.api();
    let rules = ingresses.get("homelab").await.unwrap().spec.unwrap().rules.unwrap();
    assert_eq!(rules[0].host.as_deref(), Some("authentik.local.olsen.cloud"));

    keys_are_drawn_once_and_rotated_on_request(&lab, &servers, &deployments).await;
    a_dependency_vanishes_while_in_use(&lab, &servers, &deployments).await;

    // Everything of the domain goes with it, in the other namespace, too.
    lab.delete(&domains, "homelab").await;
    vanishes(&domains, "homelab").await;
    vanishes(&certificates, &name).await;
    vanishes(&gateways, "homelab").await;
    becomes(&servers, "homelab", "waits", |s| ready(s).1 == "MissingDependency").await;
    deployments.get("homelab").await.unwrap();
    // Without the kinds a domain can go as well.
    lab.apply_sample("domain.yaml");
    becomes(&certificates, &name, "there", |_| true).await;
    uninstall(&lab).await;
    becomes(&domains, "homelab", "waits", |d| ready(d).1 == "KindNotInstalled").await;
    lab.delete(&domains, "homelab").await;
    vanishes(&domains, "homelab").await;
}

async fn keys_are_drawn_once_and_rotated_on_request(
    lab: &Lab,
    servers: &Api<AuthentikServer>,
    deployments: &Api<Deployment>,
) {
    let keys = async || lab.secrets.get("homelab-keys").await.unwrap().data.unwrap();
    let (before, pods) = (keys().await, template(&deployments.get("homelab").await.unwrap()));
    let scaled = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
    servers.patch("homelab", &PatchParams::default(), &scaled).await.unwrap();
    becomes(deployments, "homelab", "scaled", |d| d.spec.replicas == Some(2)).await;
    assert_eq!(keys().await, before);
    assert_eq!(template(&deployments.get("homelab").await.unwrap()), pods, "no pod is restarted");
    let rotated = Patch::Merge(json!({ "spec": { "rotate": "2030-01-01" } }));
    servers.patch("homelab", &PatchParams::default(), &rotated).await.unwrap();
    becomes(deployments, "homelab", "new pods", |d| template(d) != pods).await;
    let after = keys().await;
    assert!(before.iter().all(|(key, value)| after[key] != *value), "all are drawn anew");
    becomes(servers, "homelab", "Ready", |s| ready(s).0 == "True").await;
    lab.quiet().await;
    assert_eq!(keys().await, after, "once");
}

async fn a_dependency_vanishes_while_in_use(
    lab: &Lab,
    servers: &Api<AuthentikServer>,
    deployments: &Api<Deployment>,
) {
    let running = deployments.get("homelab").await.unwrap();
    lab.delete(&lab.databases, "test2").await;
    vanishes(&lab.databases, "test2").await;
    becomes(servers, "homelab", "told", |s| condition(s, "Database").1 == "MissingDependency")
        .await;
    let still = deployments.get("homelab").await.unwrap();
    assert_eq!(still.metadata.uid, running.metadata.uid, "what runs is left running");
    lab.apply_sample("postgresdatabase.yaml");
    becomes(servers, "homelab", "Ready", |s| ready(s).0 == "True").await;
    // Another password: other pods.
    becomes(deployments, "homelab", "new pods", |d| template(d) != template(&running)).await;
}

fn template(deployment: &Deployment) -> Value {
    serde_json::to_value(&deployment.spec.template).unwrap()
}

#[tokio::test]
async fn a_redis_connection_is_ready_while_the_server_answers() {
    let (lab, mut server) = (Lab::start("redis").await, Server::redis());
    let connections: Api<RedisConnection> = lab.bench.api();
    let spec = json!({ "host": "127.0.0.1", "port": server.port, "secret": "other-redis",
        "tls": { "mode": "Disable" } });
    lab.create::<RedisConnection>("redis", spec).await;
    let reason = async |wanted: &str| {
        becomes(&connections, "redis", wanted, |c: &RedisConnection| ready(c).1 == wanted).await
    };
    reason("MissingDependency").await;
    lab.secret("other-redis", json!({ "password": "wrong" })).await;
    let told = reason("AuthenticationFailed").await;
    assert!(!format!("{told:?}").contains("wrong"), "{told:?}");
    lab.secret("other-redis", json!({ "password": server.password })).await;
    let up = becomes(&connections, "redis", "Ready", |c| ready(c).0 == "True").await;
    assert!(up.status.unwrap().fields.version.is_some());
    let ticking = lab.ticking();
    for _ in 0..2 {
        server.stop();
        reason("Unreachable").await;
        server.start();
        becomes(&connections, "redis", "Ready", |c| ready(c).0 == "True").await;
    }
    drop(ticking);
    // Without a password: the server asks for one.
    let open = json!({ "host": "127.0.0.1", "port": server.port, "tls": { "mode": "Disable" } });
    lab.create::<RedisConnection>("open", open).await;
    becomes(&connections, "open", "refused", |c| ready(c).1 == "AuthenticationFailed").await;
    eventually("nothing is asked while nothing moves", async || {
        let mark = lab.quiet().await;
        lab.poll();
        lab.quiet().await;
        match lab.bench.requests("homelab", mark) {
            asked if asked.is_empty() => Ok(()),
            asked => Err(asked.join(", ")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_redis_connection_over_tls_is_ready_only_if_the_servers_certificate_is_verified() {
    let lab = Lab::start("redis-tls").await;
    let (authority, other) = (Authority::default(), Authority::default());
    let server = Server::redis_with_tls(&authority.issue(&["127.0.0.1"]));
    let elsewhere = Server::redis_with_tls(&authority.issue(&["redis.example.com"]));
    let connections: Api<RedisConnection> = lab.bench.api();
    lab.secret("password", json!({ "password": server.password })).await;
    lab.secret("ca", json!({ "ca.crt": authority.certificate() })).await;
    lab.secret("other-ca", json!({ "ca.crt": other.certificate() })).await;
    for (name, port, ca, reason) in [
        ("verified", server.port, Some("ca"), "Ready"),
        ("other-authority", server.port, Some("other-ca"), "TlsVerificationFailed"),
        ("other-name", elsewhere.port, Some("ca"), "TlsVerificationFailed"),
        ("not-configured", server.port, None, "TlsNotConfigured"),
    ] {
        let mut spec = json!({ "host": "127.0.0.1", "port": port, "secret": "password" });
        if let Some(secret) = ca {
            spec["tls"] = json!({ "caSecret": secret });
        }
        lab.create::<RedisConnection>(name, spec).await;
        becomes(&connections, name, reason, |c: &RedisConnection| ready(c).1 == reason).await;
    }
}
