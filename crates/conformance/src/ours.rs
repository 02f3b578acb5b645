//! Our side of a case, in process: the steps of `catamaran template`.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use catamaran_chart::values::{merge, read_file, read_json, strvals};
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
    let mut values = Map::new();
    for (at, text) in case.values.iter().enumerate() {
        let file = read_file(text.as_bytes(), case.profile);
        let file = file.map_err(|fault| format!("failed to parse values{at}.yaml: {fault}"))?;
        merge(&mut values, file);
    }
    for line in &case.set {
        if let SetLine::Json(line) = line {
            set_json(line, &mut values, case.profile)?;
        }
    }
    let fail = |flag: &str, result: Result<(), strvals::StrvalsError>| {
        result.map_err(|fault| format!("failed parsing {flag} data: {fault}"))
    };
    for line in &case.set {
        if let SetLine::Typed(line) = line {
            fail("--set", strvals::parse_into(line, &mut values))?;
        }
    }
    for line in &case.set {
        if let SetLine::Text(line) = line {
            fail("--set-string", strvals::parse_into_text(line, &mut values))?;
        }
    }
    for line in &case.set {
        if let SetLine::Literal(line) = line {
            fail("--set-literal", strvals::parse_into_literal(line, &mut values))?;
        }
    }
    Ok(values)
}

fn set_json(line: &str, values: &mut Map<String, Value>, profile: Profile) -> Result<(), String> {
    if profile == Profile::Helm43 && line.trim().starts_with('{') {
        let object = read_json(line.trim());
        let object =
            object.ok_or_else(|| format!("failed parsing --set-json data JSON: {line}"))?;
        merge(values, object);
        return Ok(());
    }
    let result = strvals::parse_into_json(line, values);
    result.map_err(|_| format!("failed parsing --set-json data {line}"))
}
