use super::*;

/// A file in a folder that also holds a small chart, `chart`.
fn problems(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("chart");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: demo\nversion: 0.1.0\n")
        .unwrap();
    let path = folder.path().join("watches.yaml");
    std::fs::write(&path, text).unwrap();
    let prefix = path.display().to_string();
    match load(
        &path,
        &[
            ("Backups", GroupVersionKind::gvk("", "v1", "B")),
            ("Restores", GroupVersionKind::gvk("", "v1", "R")),
        ],
        OverrideTypes::Typed,
    ) {
        Ok(watches) => {
            watches.iter().map(|w| format!("{} {:?}", describe(&w.gvk), w.backend)).collect()
        }
        Err(error) => error
            .to_string()
            .lines()
            .map(|line| {
                line.replace(&prefix, "FILE").replace(&folder.path().display().to_string(), "DIR")
            })
            .collect(),
    }
}

#[test]
fn chart_kinds_and_native_kinds_in_one_file() {
    let text = "- {group: a.io, version: v1, kind: A, chart: chart}\n- {version: v1, kind: B, reconciler: Backups}\n";
    assert_eq!(problems(text), ["a.io/v1, Kind=A Chart(demo)", "/v1, Kind=B Reconciler(Backups)"]);
}

#[test]
fn a_chart_named_by_its_place_in_the_image_is_found_in_the_project() {
    let text = "- {group: a.io, version: v1, kind: A, chart: /opt/helm/chart}\n";
    assert_eq!(problems(text), ["a.io/v1, Kind=A Chart(demo)"]);
}

#[test]
fn an_empty_file_watches_nothing() {
    assert_eq!(problems(""), [""; 0]);
    assert_eq!(
        problems("---\n# Use the 'create api' subcommand\n".replace("---\n", "").as_str()),
        [""; 0]
    );
}

#[test]
fn every_mistake_is_told_with_its_file_and_line() {
    let table = [
        (
            "- {version: v1, kind: A, chart: chart, scope: tenant}\n",
            "FILE:1: invalid scope: \"tenant\" is none of cluster, namespace",
        ),
        (
            "- {version: v1, kind: A, chart: chart, serviceAccountName: \"a:b\"}\n",
            "FILE:1: invalid serviceAccountName: \"a:b\" must be the name of a service account: lower case letters, digits, '-' and '.'",
        ),
        (
            "- {version: v1, kind: B, reconciler: Backups, scope: namespace}\n",
            "FILE:1: scope and serviceAccountName are for charts: a reconciler acts with the operator's service account",
        ),
        (
            "- version: v1\n  kind: A\n",
            "FILE:1: an entry needs chart or reconciler, this one has neither",
        ),
        (
            "- version: v1\n  kind: A\n  chart: chart\n  reconciler: Backups\n",
            "FILE:1: an entry has either chart or reconciler, this one has both",
        ),
        (
            "\n\n- kind: A\n  chart: chart\n",
            "FILE:3: invalid GVK: /, Kind=A: version must not be empty",
        ),
        (
            "# comment\n- group: g.io\n  version: v1\n  chart: chart\n",
            "FILE:2: invalid GVK: g.io/v1, Kind=: kind must not be empty",
        ),
        (
            "- version: v1\n  kind: A\n  chart: chart\n  ignoreDrift: [{kind: Deployment}]\n",
            "FILE:1: invalid ignoreDrift: a rule needs paths, such as [/spec/replicas]",
        ),
        (
            "- version: v1\n  kind: A\n  chart: chart\n  ignoreDrift: [{paths: [spec.replicas]}]\n",
            "FILE:1: invalid ignoreDrift: \"spec.replicas\" is no JSON pointer: it begins with /",
        ),
        (
            "- version: v1\n  kind: A\n  chart: chart\n  ignoreDrift: [{when: object.x ==}]\n",
            "FILE:1: invalid ignoreDrift: when: at character 12: the expression ends here",
        ),
        (
            "- version: v1\n  kind: A\n  reconciler: Nobody\n",
            "FILE:1: unknown reconciler \"Nobody\": main.rs registers Backups, Restores",
        ),
        (
            "- version: v1\n  kind: A\n  reconciler: Restores\n",
            "FILE:1: reconciler \"Restores\" is for /v1, Kind=R, not /v1, Kind=A",
        ),
        (
            "- {version: v1, kind: A, chart: chart}\n- {version: v1, kind: A, chart: chart}\n",
            "FILE:2: duplicate GVK: /v1, Kind=A (first on line 1)",
        ),
        (
            "- {version: v1, kind: A, chart: chart, overrideValues: {a: [1]}}\n",
            "FILE:1: failed to expand override values: \"a\" must be a scalar, not a list or a map",
        ),
        (
            "- {version: v1, kind: A, chart: chart, reconcilePeriod: often}\n",
            "FILE:1: invalid reconcilePeriod: \"often\" is not a duration such as 30s, 1m0s or 1h30m",
        ),
        (
            "- {version: v1, kind: A, chart: chart, maxConcurrentReconciles: 0}\n",
            "FILE:1: invalid maxConcurrentReconciles: it must be at least 1",
        ),
        (
            "- {version: v1, kind: A, chart: chart, watchDependentResources: maybe}\n",
            "FILE:1: invalid watchDependentResources: it must be true or false",
        ),
        ("- {version: v1, kind: [A], chart: chart}\n", "FILE:1: invalid kind: it must be a text"),
    ];
    for (text, expected) in table {
        assert_eq!(problems(text), [expected], "{text}");
    }
}

#[test]
fn every_field_of_both_engines_is_taken() {
    let text = "\
- Group: a.io
  version: 1
  kind: A
  chart: chart
  watchDependentResources: no
  overrideValues: {a: $NOT_SET_ANYWHERE, b: 3, c: yes}
  overrideValueTypes: strings
  selector: {matchLabels: {x: y, b: true, n: 7}, matchExpressions: [{key: k, operator: Exists}]}
  reconcilePeriod: 1m30s
  maxConcurrentReconciles: 4
  dryRunOption: server
  storageNamespace: records
  nosuch: {}
";
    let (raw, unknown) = RawWatch::read(read_entries(text).unwrap().remove(0).1).unwrap();
    assert_eq!(unknown, ["nosuch"]);
    assert_eq!((raw.group.as_deref(), raw.version.as_deref()), (Some("a.io"), Some("1")));
    assert_eq!(raw.watch_dependent_resources, Some(false));
    assert_eq!(raw.override_value_types, Some(OverrideTypes::Strings));
    assert_eq!(raw.max_concurrent_reconciles, Some(4));
    assert_eq!(raw.storage_namespace.as_deref(), Some("records"));
    assert_eq!(problems(text), ["a.io/1, Kind=A Chart(demo)"]);
}

#[test]
fn a_missing_chart_is_told_with_its_path() {
    let told = problems("- version: v1\n  kind: A\n  chart: nowhere\n");
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("FILE:1: invalid chart directory nowhere: "), "{told:?}");
}

#[test]
fn what_is_not_a_list_is_told_with_its_line() {
    for text in ["group: a\nversion: v1\n", "just text\n", "- [1, 2]\n", "- version: [\n", "- 5\n"]
    {
        let told = problems(text);
        assert!(
            told[0].starts_with("FILE:1: ") || told[0].starts_with("FILE:2: "),
            "{text}: {told:?}"
        );
        assert!(told[0].contains("must be a list"), "{text}: {told:?}");
    }
}

#[test]
fn all_mistakes_of_a_file_come_at_once() {
    let text = "- kind: A\n- version: v1\n";
    assert_eq!(problems(text).len(), 4);
}
