//! A name server for a real node, which has none: Services and the pods behind them, as their users call them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use catamaran_localcluster::LocalCluster;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Where pods ask, as the node tells them.
const ADDRESS: &str = "10.96.0.10";
/// The machine's end of the link to the node.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
/// What every name ends with.
const DOMAIN: &str = ".svc.cluster.local";

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Names(JoinHandle<()>);

impl Names {
    /// Has the pods of a cluster's real node find Services by their names.
    pub async fn serve(cluster: &LocalCluster) -> Self {
        let socket = Arc::new(UdpSocket::bind((HOST, 0)).await.unwrap());
        let port = socket.local_addr().unwrap().port();
        let client = cluster.client();
        let ports = json!([{ "name": "dns", "protocol": "UDP", "port": 53, "targetPort": port }]);
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "kube-dns" },
            "spec": { "clusterIP": ADDRESS, "ports": ports },
        });
        let params = PatchParams::apply("catamaran-testkit").force();
        let services: Api<Service> = Api::namespaced(client.clone(), "kube-system");
        services.patch("kube-dns", &params, &Patch::Apply(service)).await.unwrap();
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "name": "kube-dns", "labels": { "kubernetes.io/service-name": "kube-dns" } },
            "endpoints": [{ "addresses": [HOST.to_string()] }],
            "ports": [{ "name": "dns", "protocol": "UDP", "port": port }],
        });
        let slices: Api<k8s_openapi::api::discovery::v1::EndpointSlice> =
            Api::namespaced(client.clone(), "kube-system");
        slices.patch("kube-dns", &params, &Patch::Apply(slice)).await.unwrap();
        Self(tokio::spawn(answer_all(socket, client)))
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn answer_all(socket: Arc<UdpSocket>, client: Client) {
    let mut buffer = [0_u8; 512];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let (question, socket, client) =
            (buffer[..length].to_vec(), socket.clone(), client.clone());
        tokio::spawn(async move {
            if let Some(answer) = answer(&client, &question).await {
                let _ = socket.send_to(&answer, from).await;
            }
        });
    }
}

/// The answer to a message with one question, as RFC 1035 has both.
async fn answer(client: &Client, question: &[u8]) -> Option<Vec<u8>> {
    let (name, end) = name(question)?;
    let kind = u16::from_be_bytes(question.get(end..end + 2)?.try_into().ok()?);
    let addresses = lookup(client, &name).await;
    // An answer, with authority, of one question; 3 is: there is no such name.
    let code = if addresses.is_none() { 3 } else { 0 };
    let found: Vec<Ipv4Addr> = addresses.into_iter().flatten().filter(|_| kind == 1).collect();
    let mut message = question.get(..2)?.to_vec();
    message.extend([0x85, 0x80 | code, 0, 1, 0, u8::try_from(found.len()).ok()?, 0, 0, 0, 0]);
    message.extend(question.get(12..end + 4)?);
    for address in found {
        // The name of the question, an address (A, IN), for no time at all.
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        message.extend(address.octets());
    }
    Some(message)
}

/// The name that is asked for, and where it ends.
fn name(question: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), 12);
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            return Some((name.to_lowercase(), at));
        }
        let label = std::str::from_utf8(question.get(at..at + length)?).ok()?;
        name = if name.is_empty() { label.to_owned() } else { format!("{name}.{label}") };
        at += length;
    }
}

/// The addresses of `service.namespace`, or of `pod.service.namespace`.
async fn lookup(client: &Client, name: &str) -> Option<Vec<Ipv4Addr>> {
    let mut labels: Vec<&str> = name.strip_suffix(DOMAIN)?.split('.').collect();
    let (namespace, service) = (labels.pop()?, labels.pop()?);
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    let address = services.get_opt(service).await.ok()??.spec?.cluster_ip?;
    if let (Ok(IpAddr::V4(address)), true) = (address.parse(), labels.is_empty()) {
        return Some(vec![address]);
    }
    let endpoints: Api<Endpoints> = Api::namespaced(client.clone(), namespace);
    let subsets = endpoints.get_opt(service).await.ok()??.subsets.unwrap_or_default();
    let all = subsets.into_iter().flat_map(|subset| {
        subset.addresses.into_iter().chain(subset.not_ready_addresses).flatten()
    });
    let meant =
        all.filter(|at| labels.first().is_none_or(|pod| at.hostname.as_deref() == Some(pod)));
    Some(meant.filter_map(|at| at.ip.parse().ok()).collect())
}
