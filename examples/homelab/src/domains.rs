//! Children of kinds that others install, one of them in another namespace.

use catamaran_operator::native::{Action, Context, Error, Reconciler, Watches};
use kube::ResourceExt;
use serde_json::json;

use crate::api::Domain;
use crate::foreign::{Certificate, Gateway, INGRESS};
use crate::manifest::object;

/// Reconciles [`Domain`].
#[derive(Debug)]
pub struct Domains;

impl Reconciler for Domains {
    type Object = Domain;

    fn watches(&self, watches: &mut Watches) {
        watches.owns_in::<Certificate>(INGRESS).owns::<Gateway>();
    }

    /// Where cert-manager or Istio is not installed, the component waits (`KindNotInstalled`), and goes on
    /// when it is.
    async fn reconcile(&self, ctx: &Context<'_, Domain>) -> Result<Action, Error> {
        let secret = certificate_name(ctx);
        ctx.component("Certificate", async { ctx.apply(certificate(ctx, &secret)?).await }).await;
        ctx.component("Gateway", async { ctx.apply(gateway(ctx, &secret)?).await }).await;
        ctx.status(|status| {
            let namespace = ctx.namespace().unwrap_or_default();
            status.gateway = Some(format!("{namespace}/{}", ctx.name_any()));
            status.certificate_secret = Some(secret);
        });
        ctx.finish()
    }
}

/// Certificates of all namespaces lie in the gateway's. No namespace has a dot: no two are called alike.
fn certificate_name(domain: &Domain) -> String {
    format!("{}.{}", domain.namespace().unwrap_or_default(), domain.name_any())
}

/// The domain, and everything one level below it.
fn hosts(domain: &Domain) -> [String; 2] {
    let hostname = &domain.spec.hostname;
    [hostname.clone(), format!("*.{hostname}")]
}

fn certificate(domain: &Domain, secret: &str) -> Result<Certificate, Error> {
    object(json!({
        "metadata": {
            "name": secret,
            "namespace": INGRESS,
            // A new Certificate has no conditions: that is no sign of readiness.
            "annotations": {
                "catamaran.dev/ready-when": r#"{.status.conditions[?(@.type=="Ready")].status}=True"#,
            },
        },
        "spec": {
            "secretName": secret,
            "dnsNames": hosts(domain),
            "issuerRef": { "kind": "ClusterIssuer", "name": domain.spec.issuer },
        },
    }))
}

fn gateway(domain: &Domain, secret: &str) -> Result<Gateway, Error> {
    object(json!({
        "metadata": { "name": domain.name_any() },
        "spec": {
            "selector": { "istio": "ingress" },
            "servers": [
                {
                    "port": { "number": 80, "name": "http", "protocol": "HTTP" },
                    "hosts": hosts(domain),
                    "tls": { "httpsRedirect": true },
                },
                {
                    "port": { "number": 443, "name": "https", "protocol": "HTTPS" },
                    "hosts": hosts(domain),
                    "tls": { "mode": "SIMPLE", "credentialName": secret },
                },
            ],
        },
    }))
}
