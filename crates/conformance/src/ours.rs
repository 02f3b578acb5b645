//! Our side of a case, in process: the steps of `catamaran template`.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use catamaran_chart::values::Sources;
use catamaran_chart::{
    Budget, Capabilities, Chart, KubeVersion, Lookups, Profile, ReleaseFacts, RenderError,
    RenderInput,
};
use serde_json::{Map, Value};

use crate::case::{Case, SetLine};
use crate::outcome::Outcome;

/// Renders a case; a panic of ours is a [`Outcome::Crash`].
pub fn render(case: &Case) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| attempt(case))) {
        Ok(Ok((stdout, notes))) => {
            Outcome::Success { stdout: stdout.into_bytes(), notes: notes.into_bytes() }
        }
        Ok(Err(text)) => Outcome::Error(text.into_bytes()),
        Err(fault) => {
            let text = fault.downcast_ref::<String>().cloned();
            let text = text.or_else(|| fault.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Outcome::Crash(format!("panic of ours: {}", text.unwrap_or_default()))
        }
    }
}

fn attempt(case: &Case) -> Result<(String, String), String> {
    let profile = case.profile;
    let mut capabilities = Capabilities::offline(profile);
    if !case.kube_version.is_empty() {
        capabilities.kube_version = KubeVersion::parse(&case.kube_version, profile)
            .map_err(|_| format!("invalid kube version '{}'", case.kube_version))?;
    }
    capabilities.api_versions.extend(case.api_versions.iter().cloned());
    let values = gather(case)?;
    let files = case.files.iter().map(|file| (file.name.clone(), file.data.clone()));
    let chart = Chart::from_files(files).map_err(|error| error.text(profile))?;
    let chart = chart.compile().map_err(|error| error.text(profile))?;
    let release = ReleaseFacts {
        name: case.name.clone(),
        namespace: case.namespace.clone(),
        revision: 1,
        is_install: !case.is_upgrade,
    };
    let rendered = chart
        .render(&RenderInput {
            values: &values,
            release: &release,
            capabilities: &capabilities,
            profile,
            lookups: &Lookups::offline(),
            clock: SystemTime::now(),
            seed: RandomState::new().build_hasher().finish().into(),
            random_overrides: None,
            budget: Budget::default(),
        })
        .map_err(|error| explain(&error, profile))?;
    let mut manifest = String::new();
    if case.include_crds {
        for crd in &rendered.crds {
            push(&mut manifest, &crd.source, &String::from_utf8_lossy(&crd.data));
        }
    }
    manifest.push_str(&rendered.manifest_text());
    let mut stdout = format!("{}\n", manifest.trim());
    for hook in &rendered.hooks {
        push(&mut stdout, &hook.path, &hook.manifest);
    }
    Ok((stdout, rendered.notes))
}

fn push(text: &mut String, source: &str, content: &str) {
    for part in ["---\n# Source: ", source, "\n", content, "\n"] {
        text.push_str(part);
    }
}

fn explain(error: &RenderError, profile: Profile) -> String {
    let text = error.text(profile);
    match error {
        RenderError::Values(_)
        | RenderError::Schema(_)
        | RenderError::ApiVersion(_)
        | RenderError::Unsupported { .. } => text,
        _ => format!("{text}\n\nUse --debug flag to render out invalid YAML"),
    }
}

/// All values laid over each other, in Helm's order of the flags.
fn gather(case: &Case) -> Result<Map<String, Value>, String> {
    let name = |at: usize| format!("values{at}.yaml");
    let mut sources =
        Sources { files: (0..case.values.len()).map(name).collect(), ..Sources::default() };
    for line in &case.set {
        let (lines, line) = match line {
            SetLine::Typed(line) => (&mut sources.typed, line),
            SetLine::Text(line) => (&mut sources.texts, line),
            SetLine::Json(line) => (&mut sources.json, line),
            SetLine::Literal(line) => (&mut sources.literals, line),
        };
        lines.push(line.clone());
    }
    sources.gather(case.profile, |path| {
        let text = case.values.iter().enumerate().find(|(at, _)| name(*at) == path);
        text.map(|(_, text)| text.clone().into_bytes()).ok_or_else(|| path.to_owned())
    })
}
