//! The same commands by two hands, each in a namespace of its own: the same objects, and the same
//! fields owned.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Charts, Hand, Place};

/// One of many kinds, with something that changes, something that goes, and lists with and without
/// keys.
const KINDS: &str = r#"
{{- $v := .Values.v | toString }}{{ $one := eq $v "1" }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa, labels: {v: {{ $v | quote }}{{ if $one }}, gone: x{{ end }}}}
automountServiceAccountToken: {{ $one }}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
data: {a: {{ b64enc $v }}{{ if $one }}, gone: eA=={{ end }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: map, annotations: {note: {{ $v | quote }}}}
data: {v: {{ $v | quote }}, same: s{{ if $one }}, gone: x{{ end }}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: pvc, labels: {v: {{ $v | quote }}}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {pods: "{{ $v }}00"{{ if $one }}, services: "50"{{ end }}}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, max: {cpu: "{{ $v }}0"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: role}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get{{ if $one }}, list{{ end }}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role}
subjects: [{kind: ServiceAccount, name: "sa{{ $v }}", namespace: default}]
---
apiVersion: v1
kind: Service
metadata: {name: service}
spec:
  selector: {app: x}
  ports:
  - {name: web, port: 80, targetPort: 80{{ $v }}}
  {{- if $one }}
  - {name: gone, port: 81}
  {{- else }}
  - {name: new, port: 82}
  {{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ $v }}
  {{- if .Values.recreate }}
  strategy: {type: Recreate}
  {{- end }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      {{- if $one }}
      initContainers: [{name: init, image: busybox}]
      tolerations: [{key: k, operator: Exists}]
      {{- end }}
      containers:
      - name: c
        image: nginx:{{ $v }}
        env:
        - {name: A, value: {{ $v | quote }}}
        {{- if $one }}
        - {name: GONE, value: x}
        {{- end }}
        - {name: B, value: b}
        ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
        volumeMounts: [{name: v, mountPath: /v}]
        {{- if $one }}
        resources: {limits: {cpu: 100m}}
        {{- end }}
      volumes:
      - name: v
        {{- if $one }}
        configMap: {name: map}
        {{- else }}
        emptyDir: {}
        {{- end }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: service
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db, v: {{ $v | quote }}}}
    spec: {containers: [{name: c, image: busybox}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: ds}}
  template:
    metadata: {labels: {app: ds}}
    spec:
      nodeSelector: {no: where}
      containers: [{name: c, image: busybox, args: [a, {{ $v | quote }}]}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron}
spec:
  schedule: "{{ $v }} 1 1 1 *"
  {{- if $one }}
  suspend: true
  {{- end }}
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: hpa}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nothing}
  maxReplicas: {{ $v }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: pdb}
spec: {maxUnavailable: {{ $v }}, selector: {matchLabels: {app: web}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: [{ports: [{port: 80{{ if $one }}{{ else }}, protocol: UDP{{ end }}}]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ing}
spec:
  rules:
  - host: v{{ $v }}.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: service, port: {number: 80}}}}]}
"#;

const LISTED: &str = "serviceaccount/sa secret/secret configmap/map persistentvolumeclaim/pvc resourcequota/quota limitrange/limits role/role rolebinding/binding service/service deployment/web statefulset/db daemonset/ds cronjob/cron horizontalpodautoscaler/hpa poddisruptionbudget/pdb networkpolicy/np ingress/ing";

/// What a person does in between: `kubectl scale` of what both hands set, and fields of its own.
const MEDDLING: [&str; 6] = [
    "scale deployment/web --replicas=7",
    "set env deployment/web THEIRS=1",
    "annotate configmap/map theirs=1",
    "label service/service theirs=1",
    "patch configmap/map --type=merge -p {\"data\":{\"theirs\":\"1\",\"same\":\"changed\"}}",
    "patch role/role --type=merge -p {\"metadata\":{\"labels\":{\"theirs\":\"1\"}}}",
];

/// The hands, the flags with which both do the same, and the values of the upgrade.
const TWINS: [(Hand, &str, &str, &str); 3] = [
    // An apply cannot change a strategy whose defaults it does not own.
    (Hand::Helm4, "--force-conflicts", "", "v=2"),
    (Hand::Helm4, "--server-side=false", "--server-side=false", "v=2,recreate=1"),
    (Hand::Helm3, "", "--server-side=false", "v=2,recreate=1"),
];

#[tokio::test(flavor = "multi_thread")]
async fn many_kinds_come_out_the_same_and_so_do_their_owners() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let charts = Charts::new(&[("kinds.yaml", KINDS)]);
    charts.write("demo/values.yaml", "v: 1\n");
    for (hand, their_flags, our_flags, values) in TWINS {
        let theirs = cluster.namespace("twin").await.unwrap();
        let ours = cluster.namespace("twin").await.unwrap();
        let live = |namespace: &str, hand: Hand, flags: &'static str| {
            let place = Place::new(&cluster, namespace, charts.path());
            tokio::task::spawn_blocking(move || lives(&place, hand, flags, values))
        };
        let theirs = live(theirs.name(), hand, their_flags).await.unwrap();
        let ours = live(ours.name(), Hand::Ours, our_flags).await.unwrap();
        for ((action, ours), (_, theirs)) in ours.iter().zip(&theirs) {
            assert_eq!(ours.len(), LISTED.split(' ').count());
            for (name, object) in ours {
                let other = &theirs[name];
                assert_eq!(
                    object, other,
                    "{hand:?} {their_flags}: {name} after {action}: ours, theirs"
                );
            }
        }
    }
}

type Objects = BTreeMap<String, Value>;

/// What is there after each action.
fn lives(place: &Place, hand: Hand, flags: &str, values: &str) -> Vec<(String, Objects)> {
    let mut found = Vec::new();
    let upgrade = format!("upgrade a demo --set {values}");
    for (number, action) in ["install a demo", &upgrade, "rollback a 1"].into_iter().enumerate() {
        if number == 1 {
            for line in MEDDLING {
                place.kubectl(line);
            }
        }
        place.say(hand, &format!("{action} {flags}"));
        let text = place.kubectl(&format!("get {LISTED} -o json --show-managed-fields"));
        let list: Value = serde_json::from_str(&text).unwrap();
        let items = list["items"].as_array().unwrap();
        let named = |object: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
        };
        let objects = items.iter().map(|object| (named(object), plain(object, place))).collect();
        found.push((action.to_owned(), objects));
    }
    found
}

/// An object without what is never twice the same.
fn plain(object: &Value, place: &Place) -> Value {
    let mut object = object.clone();
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        metadata.remove(field);
    }
    // Of controllers, and counted by them.
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| {
            !key.starts_with("deployment.")
                && !key.starts_with("pv.")
                && !key.starts_with("volume.")
        });
    }
    let entries =
        metadata.get("managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    let ours = entries.into_iter().filter(|entry| entry["manager"] == "helm").map(|mut entry| {
        entry.as_object_mut().unwrap().remove("time");
        entry
    });
    metadata.insert("managedFields".to_owned(), ours.collect());
    if let Some(spec) = object["spec"].as_object_mut() {
        for field in ["clusterIP", "clusterIPs", "volumeName"] {
            spec.remove(field);
        }
    }
    serde_json::from_str(&object.to_string().replace(&place.namespace, "NAMESPACE")).unwrap()
}
