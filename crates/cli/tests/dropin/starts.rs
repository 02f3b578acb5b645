//! Whatever a project's image and manifests say, it starts.

use std::process::Command;

use serde_json::json;

use crate::support::{MIRROR, Operator, Stage, config_map, is};

#[tokio::test]
async fn command_lines_of_every_generation_serve_a_resource() {
    let stage = Stage::of("starts", MIRROR).await;
    let home = stage.folder.path().to_str().unwrap().to_owned();
    let file = format!("--watches-file={home}/watches.yaml");
    let table: [&[&str]; 5] = [
        // Before 1.0: the entrypoint's script.
        &["exec-entrypoint", "helm", &file, "--max-workers=2"],
        &["run", "helm", &file, "--reconcile-period", "5m"],
        // 1.0 to 1.4.
        &["run", "--watches-file=./watches.yaml", "--metrics-addr=0", "--zap-log-level=debug"],
        &[
            "run",
            "--watches-file=./watches.yaml",
            "--metrics-bind-address=0",
            "--enable-leader-election=false",
        ],
        // And no command at all.
        &["-leader-elect=false", "-zap-devel", "-metrics-bind-address=0"],
    ];
    for (number, arguments) in table.into_iter().enumerate() {
        let mut command = stage.command(arguments);
        command.arg("--health-probe-bind-address=0").env("HOME", &home);
        let _operator = Operator::start(command, stage.folder.path());
        let name = format!("shop-{number}");
        let objects = json!({ "objects": [config_map(&name, &json!({ "a": "b" }))] });
        stage.apply(&stage.shop(&name, &objects));
        stage.shop_becomes(&name, "deployed", |shop| is(shop, "Deployed", "True"));
    }
    let _operator = stage.operator();
    stage.kubectl(&["delete", &stage.kind("shops"), "--all", "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
}

#[test]
fn the_version_is_told_as_helm_operator_does() {
    let output = Command::new(env!("CARGO_BIN_EXE_catamaran")).arg("version").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("helm-operator version: \"v"), "{told}");
    for word in ["commit: ", "kubernetes version: ", "GOOS: \"linux\"", "GOARCH: "] {
        assert!(told.contains(word), "{word}: {told}");
    }
}
