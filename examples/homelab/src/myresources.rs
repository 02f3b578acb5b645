//! The simplest kind: a condition for each child, and one for all.

use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, Reconciler, SecretOnce, Watches,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::api::MyResource;
use crate::manifest::{labels, object};

/// Reconciles [`MyResource`].
#[derive(Debug)]
pub struct MyResources;

impl Reconciler for MyResources {
    type Object = MyResource;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<Deployment>().owns::<Service>().owns::<Secret>();
    }

    async fn reconcile(&self, ctx: &Context<'_, MyResource>) -> Result<Action, Error> {
        ctx.component("Secret", secret(ctx)).await;
        ctx.component("Deployment", async { ctx.apply(deployment(ctx)?).await }).await;
        ctx.component("Service", async { ctx.apply(service(ctx)?).await }).await;
        ctx.finish()
    }
}

fn secret_name(resource: &MyResource) -> String {
    format!("{}-secret", resource.name_any())
}

/// Made once; what people change in it stays as they changed it.
async fn secret(ctx: &Context<'_, MyResource>) -> Result<ComponentProgress, Error> {
    let once = SecretOnce::new().random("apiKey", 40).random("password", 24);
    ctx.secret_once(&secret_name(ctx), once).await?;
    Ok(ComponentProgress::Ready)
}

fn deployment(resource: &MyResource) -> Result<Deployment, Error> {
    let (name, spec) = (resource.name_any(), &resource.spec);
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": spec.replicas,
            "selector": { "matchLabels": labels(&name) },
            "template": {
                "metadata": { "labels": labels(&name) },
                "spec": { "containers": [{
                    "name": "app",
                    "image": "nginx:latest",
                    "ports": [{ "containerPort": spec.port }],
                    "env": environment(resource),
                }] },
            },
        },
    }))
}

fn environment(resource: &MyResource) -> Vec<Value> {
    let secret = secret_name(resource);
    let of_secret = |name: &str, key: &str| json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": secret, "key": key } } });
    let mut environment = vec![
        json!({ "name": "HOSTNAME", "value": resource.spec.hostname }),
        json!({ "name": "PROTOCOL", "value": resource.spec.protocol.name() }),
        of_secret("API_KEY", "apiKey"),
        of_secret("PASSWORD", "password"),
    ];
    if let Some(database) = &resource.spec.database {
        environment.extend([
            json!({ "name": "DATABASE_HOST", "value": database.host }),
            json!({ "name": "DATABASE_PORT", "value": database.port.to_string() }),
            json!({ "name": "DATABASE_NAME", "value": database.name }),
        ]);
    }
    environment
}

fn service(resource: &MyResource) -> Result<Service, Error> {
    let (name, spec) = (resource.name_any(), &resource.spec);
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "selector": labels(&name),
            "ports": [{
                "port": 80,
                "targetPort": spec.port,
                "appProtocol": spec.protocol.name(),
            }],
        },
    }))
}
