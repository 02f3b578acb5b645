//! Kinds that others install: as much of them as is written here.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The namespace of Istio's gateway, where it looks for certificates.
pub const INGRESS: &str = "istio-ingress";

/// What cert-manager keeps in a Secret and renews.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Certificate",
    namespaced,
    status = "CertificateStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// The Secret that it is kept in.
    pub secret_name: String,
    /// The names that it is for.
    pub dns_names: Vec<String>,
    /// Who issues it.
    pub issuer_ref: IssuerRef,
}

/// Names an issuer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IssuerRef {
    /// ClusterIssuer, here.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What cert-manager tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateStatus {
    /// Ready among them.
    #[serde(default)]
    pub conditions: Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>,
}

/// What Istio's gateway lets in.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.istio.io", version = "v1", kind = "Gateway", namespaced)]
pub struct GatewaySpec {
    /// The labels of the gateway's pods.
    pub selector: std::collections::BTreeMap<String, String>,
    /// What is listened for.
    pub servers: Vec<GatewayServer>,
}

/// One port of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayServer {
    /// The port.
    pub port: GatewayPort,
    /// The hosts, with wildcards.
    pub hosts: Vec<String>,
    /// How it is encrypted.
    pub tls: GatewayTls,
}

/// A port and what is spoken there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayPort {
    /// 1 to 65535.
    pub number: u16,
    /// Of a gateway's ports each has its own name.
    pub name: String,
    /// HTTP or HTTPS.
    pub protocol: String,
}

/// How a port of a gateway is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayTls {
    /// SIMPLE: with a certificate of the server's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The Secret with the certificate, in the gateway's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_name: Option<String>,
    /// Whether clients are told to come back encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_redirect: Option<bool>,
}
