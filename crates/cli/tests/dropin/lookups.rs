//! What templates look up on a real API server, beside the real helm.

use crate::support::Stage;

/// Every form of `lookup`: one object, a list of a namespace, a list of all namespaces, a kind without
/// namespaces, what is absent.
const FORMS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: found}
data:
  one: '{{ (lookup "v1" "ConfigMap" .Release.Namespace "some").data | toJson }}'
  kind: '{{ (lookup "v1" "ConfigMap" .Release.Namespace "some").kind }}'
  list: '{{ with lookup "v1" "ConfigMap" .Release.Namespace "" }}{{ .apiVersion }} {{ .kind }}{{ end }}'
  items: '{{ range (lookup "v1" "ConfigMap" .Release.Namespace "").items }}{{ .apiVersion }} {{ .kind }} {{ .metadata.name }};{{ end }}'
  everywhere: '{{ range (lookup "v1" "ConfigMap" "" "").items }}{{ if eq .metadata.namespace $.Release.Namespace }}{{ .kind }} {{ .metadata.name }};{{ end }}{{ end }}'
  namespace: '{{ (lookup "v1" "Namespace" "" .Release.Namespace).metadata.name }}'
  within: '{{ (lookup "v1" "Namespace" .Release.Namespace .Release.Namespace).metadata.name }}'
  namespaces: '{{ range (lookup "v1" "Namespace" "" "").items }}{{ if eq .metadata.name $.Release.Namespace }}{{ .kind }} {{ .metadata.name }}{{ end }}{{ end }}'
  group: '{{ range (lookup "apps/v1" "Deployment" .Release.Namespace "").items }}{{ .metadata.name }}{{ end }}'
  absent: '{{ lookup "v1" "ConfigMap" .Release.Namespace "absent" | toJson }}'
  nowhere: '{{ lookup "v1" "ConfigMap" "" "some" | toJson }}'
  empty: '{{ len (lookup "v1" "Endpoints" .Release.Namespace "").items }}'
"#;

#[tokio::test]
async fn every_form_of_lookup_finds_what_helm_finds() {
    let stage = Stage::of("lookups", FORMS).await;
    for name in ["some", "other"] {
        stage.kubectl(&["create", "configmap", name, "--from-literal=k=v"]);
    }
    let namespace = stage.namespace.name().to_owned();
    let arguments = |chart: &str| {
        ["template", "rel", chart, "--dry-run=server", "--namespace", &namespace]
            .map(str::to_owned)
            .to_vec()
    };
    let rendered = |chart: &str| {
        let arguments = arguments(chart);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ours = stage.command(&arguments).output().unwrap();
        let mut helm = std::process::Command::new(stage.cluster.tools().unwrap().helm());
        helm.args(&arguments).env("KUBECONFIG", stage.cluster.kubeconfig());
        let theirs = helm.current_dir(stage.folder.path()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(ours.status.success(), theirs.status.success(), "{}", text(&ours.stderr));
        (text(&ours.stdout), text(&theirs.stdout))
    };
    let (ours, theirs) = rendered("helm-charts/demo");
    assert!(theirs.contains("ConfigMap some;"), "{theirs}");
    assert_eq!(ours, theirs);
    // A kind that is not served fails both, and so does a missing permission, for one object and for a list.
    let absent = "v: {{ lookup \"absent.example.com/v1\" \"Absent\" \"\" \"\" | toJson }}\n";
    stage.write("helm-charts/demo/templates/absent.yaml", absent);
    rendered("helm-charts/demo");
    stage.kubectl(&["create", "serviceaccount", "nobody"]);
    let kubeconfig = stage.cluster.service_account(&stage.namespace, "nobody").await.unwrap();
    for (name, verb) in [("some", "get"), ("", "list")] {
        let lookup =
            format!("v: {{{{ lookup \"v1\" \"Secret\" \"{namespace}\" {name:?} | toJson }}}}\n");
        stage.chart("forbidden", &[("templates/all.yaml", &lookup)]);
        let arguments = arguments("helm-charts/forbidden");
        let mut helm = std::process::Command::new(stage.cluster.tools().unwrap().helm());
        helm.args(&arguments).current_dir(stage.folder.path());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        for mut command in [stage.command(&arguments), helm] {
            let told = command.env("KUBECONFIG", &kubeconfig).output().unwrap();
            let error = String::from_utf8_lossy(&told.stderr).into_owned();
            let refused = format!("cannot {verb} resource \"secrets\"");
            assert!(!told.status.success() && error.contains(&refused), "{command:?}: {error}");
        }
    }
}
