//! The sample chart of docs/handlebars.md.

use std::path::Path;
use std::time::UNIX_EPOCH;

use catamaran_chart::{
    Budget, Capabilities, Chart, Lookups, Profile, ReleaseFacts, RenderInput, Rendered,
};
use catamaran_fixtures::{Answer, Case, Helm};
use serde_json::{Map, Value, json};

fn render(folder: &str, values: &Map<String, Value>, profile: Profile) -> Rendered {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/handlebars");
    let chart = Chart::load(&examples.join(folder)).unwrap().compile().unwrap();
    chart.check(profile).unwrap();
    let release = ReleaseFacts {
        name: "demo".into(),
        namespace: "default".into(),
        revision: 1,
        is_install: true,
    };
    let rendered = chart.render(&RenderInput {
        values,
        release: &release,
        capabilities: &Capabilities::offline(profile),
        profile,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 0.into(),
        random_overrides: None,
        budget: Budget::default(),
    });
    rendered.unwrap_or_else(|error| panic!("{folder}: {}", error.text(profile)))
}

#[test]
fn it_makes_what_helm_makes_of_its_twin() {
    let twin = Case::matching("handlebars/example-twin").unwrap().pop().unwrap();
    for (helm, profile) in [(Helm::V4, Profile::Helm43), (Helm::V3, Profile::Helm318)] {
        let Some(Answer::Output(expected)) = twin.golden(helm) else {
            panic!("helm {} did not render the twin", helm.name());
        };
        let rendered = render("chart", &Map::new(), profile);
        assert_eq!(rendered.template_text(), expected);
        if helm == Helm::V4 {
            assert_eq!(rendered.notes, twin.notes());
        }
    }
}

#[test]
fn it_makes_what_its_twin_makes_of_other_values() {
    for values in [
        json!({"ingress": {"enabled": false}, "podAnnotations": {"a": "1", "b": "<2>"}}),
        json!({"greetings": {"fr": null}, "env": {}, "replicas": 0, "image": {"tag": "1.30"}}),
        json!({"service": {"ports": [{"name": "x", "port": 1}]}, "ingress": {"hosts": []}}),
    ] {
        let values = values.as_object().unwrap();
        let (chart, twin) =
            (render("chart", values, Profile::Helm43), render("twin", values, Profile::Helm43));
        assert_eq!(chart.template_text(), twin.template_text());
        assert_eq!(chart.notes, twin.notes);
    }
}
