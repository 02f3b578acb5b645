//! What templates draw by chance stays drawn.

use serde_json::{Value, json};

use crate::support::{Stage, field, is};

/// A password that stands behind draws that values decide on, and a certificate.
const CHART: &str = "\
{{- range untilStep 0 (int .Values.before) 1 }}{{ $_ := randAlphaNum 8 }}{{ end }}
{{- $ca := genCA .Release.Name 365 }}
{{- $cert := genSignedCert .Release.Name nil (list \"web.local\") 90 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: '{{ .Release.Name }}'}
stringData:
  replicas: '{{ .Values.replicas }}'
  at: '{{ now | unixEpoch }}'
  password: '{{ randAlphaNum 24 }}'
  crt: |
{{ $cert.Cert | indent 4 }}
";

fn spec(replicas: u32, before: u32) -> Value {
    json!({ "replicas": replicas, "before": before })
}

fn version(shop: &Value) -> u64 {
    shop["status"]["deployedRelease"]["version"].as_u64().unwrap_or_default()
}

fn seeds(stage: &Stage) -> Vec<String> {
    stage.names("secrets", "app.kubernetes.io/managed-by=catamaran")
}

#[tokio::test]
async fn passwords_and_certificates_stay_until_a_rotation_is_asked_for() {
    let stage = Stage::of("seeds", CHART).await;
    let drawn = || {
        let data = stage.get("secret", "web")["data"].clone();
        (data["password"].clone(), data["crt"].clone())
    };
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &spec(1, 0)));
    stage.shop_becomes("web", "installed", |shop| {
        version(shop) == 1 && is(shop, "Deployed", "True")
    });
    let first = drawn();
    assert_eq!(seeds(&stage).len(), 1);

    // Values change, among them one that other draws depend on; then another process does the same.
    stage.apply(&stage.shop("web", &spec(2, 3)));
    stage.shop_becomes("web", "upgraded", |shop| version(shop) == 2);
    assert_eq!(drawn(), first);
    drop(operator);
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &spec(3, 1)));
    stage.shop_becomes("web", "upgraded by another", |shop| version(shop) == 3);
    assert_eq!(drawn(), first);

    stage.annotate("web", "catamaran.dev/rotate=once");
    stage.shop_becomes("web", "rotated", |shop| version(shop) == 4);
    let second = drawn();
    assert!(second.0 != first.0 && second.1 != first.1);
    drop(operator);

    // A seed that is lost changes nothing by itself.
    stage.kubectl(&["delete", "secret", "-l", "app.kubernetes.io/managed-by=catamaran"]);
    let _operator = stage.operator();
    stage.annotate("web", "dropin.test/look=again");
    stage.shop_becomes("web", "looked at", |shop| {
        is(shop, "Ready", "True") && !seeds(&stage).is_empty()
    });
    assert_eq!(drawn(), second);
    let shop = stage.shop_now("web");
    assert_eq!((version(&shop), field(&shop, "Deployed", "status")), (4, "True"));

    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    assert_eq!(stage.names("secrets", ""), [""; 0]);
}

/// Nothing of its record is sent: what was drawn is in the cluster, and stays there.
#[tokio::test]
async fn a_release_that_was_taken_over_keeps_what_was_drawn_for_it() {
    let stage = Stage::of("drawn-before", CHART).await;
    stage.write("values.json", &spec(1, 0).to_string());
    stage.helm3(&["install", "web", "helm-charts/demo", "--values", "values.json"]);
    let before = stage.get("secret", "web")["data"].clone();
    let _operator = stage.operator();
    let mut shop = stage.shop("web", &spec(1, 0));
    shop["metadata"]["annotations"] = json!({ "catamaran.dev/adopt-release": "web" });
    stage.apply(&shop);
    stage.shop_becomes("web", "taken over", |shop| version(shop) == 1 && is(shop, "Ready", "True"));
    let secret = stage.get("secret", "web");
    assert_eq!(secret["data"], before);
    let metadata = &secret["metadata"];
    assert_eq!(metadata["labels"]["helm.sdk.operatorframework.io/chart"], "demo");
    assert_eq!(metadata["ownerReferences"][0]["kind"], "Shop");
    stage.apply(&stage.shop("web", &spec(2, 0)));
    stage.shop_becomes("web", "upgraded", |shop| version(shop) == 2);
    assert_ne!(stage.get("secret", "web")["data"]["replicas"], before["replicas"]);
}

#[tokio::test]
async fn a_chart_that_draws_nothing_has_no_seed() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {at: '{{ now }}', a: '{{ .Values.a }}'}\n";
    let stage = Stage::of("seedless", template).await;
    let _operator = stage.operator();
    for value in ["1", "2"] {
        stage.apply(&stage.shop("web", &json!({ "a": value })));
        let expected: u64 = value.parse().unwrap();
        stage.shop_becomes("web", "deployed", |shop| version(shop) == expected);
    }
    assert_eq!(seeds(&stage), [""; 0]);
}
