//! What templates draw by chance stays drawn.

use serde_json::{Value, json};

use crate::support::{Stage, field, is, until};

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

/// Templates of a ConfigMap of passwords, a certificate and a time.
fn template(fields: &str) -> String {
    format!(
        "{{{{- $cert := genSelfSignedCert .Release.Name nil (list \"web.local\") 90 }}}}\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{{{{ .Release.Name }}}}'}}\ndata:\n\
         {fields}  crt: |\n{{{{ $cert.Cert | indent 4 }}}}\n"
    )
}

const X: &str = "  x: 'one'\n  at: '{{ now }}'\n";
const PASSWORD: &str = "  password: '{{ randAlphaNum 24 }}'\n";
const TOKEN: &str = "  token: '{{ randAlphaNum 24 | b64enc }}'\n";

/// Starts the operator with a template of these fields; the data of the ConfigMap once the release was
/// looked at, and is of this revision.
fn with_template(stage: &Stage, fields: &str, revision: u64) -> Value {
    stage.chart("demo", &[("templates/all.yaml", &template(fields))]);
    // Nothing of the operator before.
    stage.write("operator.log", "");
    let operator = stage.operator_with(&["--zap-log-level=debug"]);
    until("the release was looked at", || {
        let log = operator.log();
        let ends = ["Installed release", "Upgraded release", "Release is unchanged"];
        if ends.iter().any(|end| log.contains(end)) { Ok(()) } else { Err(log) }
    });
    let shop = stage.shop_becomes("web", "deployed", |shop| is(shop, "Ready", "True"));
    assert_eq!(version(&shop), revision);
    stage.get("configmap", "web")["data"].clone()
}

/// The fields that two ConfigMaps have in common are the same, but for these.
#[track_caller]
fn same_but(before: &Value, after: &Value, changed: &[&str]) {
    for (name, value) in after.as_object().unwrap() {
        if let Some(before) = before.get(name) {
            assert_eq!(
                value != before,
                changed.contains(&name.as_str()),
                "{name}: {before} {value}"
            );
        }
    }
}

/// The chart's version and the values stay as they are: only the operator's image is another one.
#[tokio::test]
async fn a_changed_template_is_applied_and_keeps_what_was_generated() {
    let stage = Stage::of("changed-template", "").await;
    stage.apply(&stage.shop("web", &json!({})));
    let first = with_template(&stage, &[X, PASSWORD, TOKEN].concat(), 1);
    let again = with_template(&stage, &[X, PASSWORD, TOKEN].concat(), 1);
    assert_eq!(again, first, "nothing changes at a restart, not even the time");

    let two = X.replace("one", "two");
    let changed = with_template(&stage, &[&two, PASSWORD, TOKEN].concat(), 2);
    same_but(&first, &changed, &["x", "at"]);

    let more = "  more: '{{ randAlphaNum 24 }}'\n";
    let longer = with_template(&stage, &[&two, more, PASSWORD, TOKEN].concat(), 3);
    same_but(&changed, &longer, &["at"]);
    let others = [&longer["password"], &longer["token"]];
    assert!(!others.contains(&&longer["more"]) && longer["more"].as_str().unwrap().len() == 24);
    let again = with_template(&stage, &[&two, more, PASSWORD, TOKEN].concat(), 3);
    assert_eq!(again, longer);

    let shorter = with_template(&stage, &[&two, more, TOKEN].concat(), 4);
    same_but(&longer, &shorter, &["at"]);
    assert_eq!(shorter["password"], Value::Null);

    let stronger = more.replace("24", "32");
    let stronger = with_template(&stage, &[&two, &stronger, TOKEN].concat(), 5);
    same_but(&shorter, &stronger, &["more", "at"]);

    // Near the end of the certificate, with another change of the template; the passwords stay.
    let seed = stage.names("secrets", "app.kubernetes.io/managed-by=catamaran").remove(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let since = (since.as_secs() - 61 * 24 * 3600).to_string();
    let patch = json!({ "stringData": { "since": since } }).to_string();
    stage.kubectl(&["patch", "secret", &seed, "-p", &patch]);
    let three = [&X.replace("one", "three"), more, TOKEN].concat();
    let renewed = with_template(&stage, &three.replace("24 }}'\n  t", "32 }}'\n  t"), 6);
    same_but(&stronger, &renewed, &["x", "at", "crt"]);
}

#[tokio::test]
async fn a_template_that_looks_up_its_own_password_changes_like_any_other() {
    let stage = Stage::of("guarded", "").await;
    let guarded = "{{- $old := lookup \"v1\" \"ConfigMap\" .Release.Namespace .Release.Name }}\n  \
                   password: '{{ dig \"data\" \"password\" (randAlphaNum 24) $old }}'\n";
    stage.apply(&stage.shop("web", &json!({})));
    let first = with_template(&stage, &[X, guarded, TOKEN].concat(), 1);
    assert_eq!(with_template(&stage, &[X, guarded, TOKEN].concat(), 1), first);
    let two = X.replace("one", "two");
    let changed = with_template(&stage, &[&two, guarded, TOKEN].concat(), 2);
    same_but(&first, &changed, &["x", "at"]);
}

#[tokio::test]
async fn a_changed_template_is_applied_to_a_release_that_was_taken_over() {
    let stage = Stage::of("changed-before", "").await;
    let all = [X, PASSWORD, TOKEN].concat();
    stage.chart("demo", &[("templates/all.yaml", &template(&all))]);
    stage.helm3(&["install", "web", "helm-charts/demo"]);
    let before = stage.get("configmap", "web")["data"].clone();
    // As the Go operator leaves a resource and its release: finalizer, status, and the owner of the record
    // and of the object.
    let mut shop = stage.shop("web", &json!({}));
    shop["metadata"]["finalizers"] = json!(["helm.sdk.operatorframework.io/uninstall-release"]);
    let shop = stage.apply(&shop);
    let status = json!({ "status": { "deployedRelease": { "name": "web" } } }).to_string();
    let shops = stage.kind("shops");
    let patch = ["patch", &shops, "web", "--subresource=status", "--type=merge", "-p", &status];
    stage.kubectl(&patch);
    let owner = json!({ "metadata": { "ownerReferences": [{
        "apiVersion": shop["apiVersion"], "kind": "Shop", "name": "web",
        "uid": shop["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }] } })
    .to_string();
    stage.kubectl(&["patch", "secret", "sh.helm.release.v1.web.v1", "-p", &owner]);
    stage.kubectl(&["patch", "configmap", "web", "-p", &owner]);
    assert_eq!(with_template(&stage, &all, 1), before);
    let more = "  more: '{{ randAlphaNum 24 }}'\n";
    let changed =
        with_template(&stage, &[&X.replace("one", "two"), more, PASSWORD, TOKEN].concat(), 2);
    // Certificates of another program are made anew: its keys are not all in the cluster.
    same_but(&before, &changed, &["x", "at", "crt"]);
    assert!(![&changed["password"], &changed["token"]].contains(&&changed["more"]));
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
