//! `catamaran` in a pod, by its service account alone.

use std::fs;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::{CONFIG_MAP, Charts, Hand, Place, Said};

/// A pod's mount of its account, in a mount namespace of its own: the path is the same in all pods.
const SCRIPT: &str = "\
set -e
mount -t tmpfs none /run
mkdir -p /var/run/secrets/kubernetes.io
ln -s \"$1\" /var/run/secrets/kubernetes.io/serviceaccount
shift
exec \"$@\"
";

#[tokio::test(flavor = "multi_thread")]
async fn in_a_pod_its_service_account_serves_where_there_is_no_kubeconfig() {
    let probe =
        Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/run"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("skipped: no mount namespace can be made here");
        return;
    }
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("pod").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let kubeconfig = fs::read_to_string(cluster.kubeconfig()).unwrap();
    let done = tokio::task::spawn_blocking(move || live_in_a_pod(&place, &charts, &kubeconfig));
    done.await.unwrap();
}

fn live_in_a_pod(place: &Place, charts: &Charts, kubeconfig: &str) {
    let of = |key: &str| {
        let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(key));
        line.unwrap_or_else(|| panic!("{key}")).trim().trim_matches('"').to_owned()
    };
    let server = of("server:").trim_start_matches("https://").to_owned();
    let (host, port) = server.rsplit_once(':').unwrap();
    place.kubectl("create serviceaccount worker");
    let all = "create role worker --verb=* --resource=secrets,configmaps";
    place.kubectl(all);
    place.kubectl(&format!(
        "create rolebinding worker --role=worker --serviceaccount={}:worker",
        place.namespace
    ));
    let account = charts.path().join("account");
    let ca = STANDARD.decode(of("certificate-authority-data:")).unwrap();
    fs::create_dir(&account).unwrap();
    fs::write(account.join("ca.crt"), ca).unwrap();
    fs::write(account.join("token"), place.kubectl("create token worker").trim()).unwrap();
    fs::write(account.join("namespace"), &place.namespace).unwrap();
    let run = |line: &str| -> Said {
        let ours = place.command(Hand::Ours, &line.split_whitespace().collect::<Vec<_>>());
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", SCRIPT, "sh"]).arg(&account);
        command.arg(ours.get_program()).args(ours.get_args());
        command
            .current_dir(charts.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", "/nonexistent")
            .env("KUBERNETES_SERVICE_HOST", host)
            .env("KUBERNETES_SERVICE_PORT", port);
        command.output().unwrap().into()
    };
    for (line, word) in [
        ("install a demo", "STATUS: deployed"),
        ("upgrade a demo --set greeting=two", "REVISION: 2"),
        ("rollback a", "Happy Helming"),
        ("history a", "superseded"),
        ("uninstall a --keep-history", "uninstalled"),
    ] {
        let said = run(line);
        assert!(said.code == Some(0) && said.out.contains(word), "{line}: {said:?}");
    }
    assert_eq!(place.revisions("a").matches("superseded").count(), 2, "in the pod's own namespace");
    let said = run("install b demo --namespace default");
    assert!(said.code == Some(1) && said.err.contains("serviceaccount"), "{said:?}");
    let said = run("install c demo --kube-token wrong");
    assert!(said.code == Some(1) && said.err.contains("Unauthorized"), "{said:?}");
}
