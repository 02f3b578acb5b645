//! What templates draw by chance, given a seed that is kept.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catamaran_chart::{
    Budget, Capabilities, Chart, CompiledChart, Drawn, Lookups, Profile, RandomSeed, ReleaseFacts,
    RenderInput,
};
use serde_json::{Map, Value, json};

const DAY: Duration = Duration::from_hours(24);

fn chart(template: &str) -> CompiledChart {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    std::fs::write(folder.path().join("Chart.yaml"), "apiVersion: v2\nname: c\nversion: 1.0.0\n")
        .unwrap();
    std::fs::write(folder.path().join("templates/a.yaml"), template).unwrap();
    Chart::load(folder.path()).unwrap().compile().unwrap()
}

/// What a chart renders to on a day, by a seed that was drawn on day 1000.
fn on_day(chart: &CompiledChart, day: u32, values: &Value) -> (String, Option<Drawn>) {
    let values: Map<String, Value> = values.as_object().unwrap().clone();
    let release =
        ReleaseFacts { name: "demo".into(), namespace: "ns".into(), revision: 1, is_install: true };
    let rendered = chart.render(&RenderInput {
        values: &values,
        release: &release,
        capabilities: &Capabilities::offline(Profile::Helm318),
        profile: Profile::Helm318,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH + DAY * day,
        seed: RandomSeed::from(7).drawn_at(UNIX_EPOCH + DAY * 1000),
        random_overrides: None,
        budget: Budget::default(),
    });
    let rendered = rendered.unwrap();
    (rendered.manifest_text(), rendered.drawn)
}

#[test]
fn a_certificate_is_made_anew_at_two_thirds_of_its_life() {
    let chart = chart(
        "a: {{ genSelfSignedCert \"web\" nil (list \"web.local\") 90 | toString | sha256sum }}\n",
    );
    let at = |day| on_day(&chart, day, &json!({}));
    let (first, drawn) = at(1000);
    let renewal = |day: u32| -> Option<SystemTime> { Some(UNIX_EPOCH + DAY * day) };
    assert_eq!(drawn, Some(Drawn { renew_at: renewal(1060), renewals: 0 }));
    assert_eq!(at(1059).0, first, "it stays");
    let (second, drawn) = at(1060);
    assert_ne!(second, first);
    assert_eq!(drawn, Some(Drawn { renew_at: renewal(1120), renewals: 1 }));
    assert_eq!(at(1119).0, second);
}

#[test]
fn other_draws_of_a_template_change_nothing_and_nobody_draws_without_being_told() {
    let chart = chart(
        "{{ range until (int .Values.others) }}{{ $_ := randNumeric 9 }}{{ $_ := uuidv4 }}{{ end }}\n\
         a: [{{ randAlphaNum 20 }}, {{ randAlphaNum 20 }}, {{ randAlphaNum 21 }}, {{ bcrypt \"x\" }}]\n",
    );
    let (none, _) = on_day(&chart, 1000, &json!({ "others": 0 }));
    let (many, drawn) = on_day(&chart, 1500, &json!({ "others": 5 }));
    assert_eq!(none.trim(), many.trim());
    assert_eq!(drawn, Some(Drawn::default()));
    let parts: Vec<&str> = none.split(['[', ',', ']']).map(str::trim).collect();
    let passwords: std::collections::BTreeSet<&str> =
        parts[1..4].iter().map(|p| &p[..20]).collect();
    assert_eq!(passwords.len(), 3, "no two are alike: {none}");

    let still = self::chart(
        "a: {{ now | date \"2006\" }} {{ derivePassword 1 \"long\" \"a\" \"b\" \"c\" }}\n",
    );
    assert_eq!(on_day(&still, 1000, &json!({})).1, None);
}
