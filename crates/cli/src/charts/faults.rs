//! What Helm says of a chart beside its output.

use std::collections::BTreeMap;
use std::io;

use anyhow::Result;
use catamaran_chart::{Profile, RenderError};

use super::flags::GlobalArgs;

/// That a chart is deprecated.
pub(crate) fn deprecated(profile: Profile) -> &'static str {
    match profile {
        Profile::Helm318 => "WARNING: This chart is deprecated",
        Profile::Helm43 => "level=WARN msg=\"this chart is deprecated\"",
    }
}

/// What Helm would log.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        eprintln!("{warning}");
    }
}

/// What Helm adds, without `--debug`, to an error after which there is something to be printed.
pub(crate) const HINT: &str = "\n\nUse --debug flag to render out invalid YAML";

/// The text of a rendering's error. Once there is a release Helm adds a hint, or, with `--debug`,
/// prints what it has.
pub(crate) fn failed(
    global: &GlobalArgs,
    profile: Profile,
    error: &RenderError,
    out: &mut impl io::Write,
) -> Result<String> {
    let text = error.text(profile);
    let has_release = !matches!(
        error,
        RenderError::Values(_)
            | RenderError::Schema(_)
            | RenderError::ApiVersion(_)
            | RenderError::Unsupported { .. }
    );
    if !has_release {
        return Ok(text);
    }
    if !global.is_debug() {
        return Ok(format!("{text}{HINT}"));
    }
    let raw = match error {
        RenderError::Manifest(error) => raw(&error.rendered),
        _ => String::new(),
    };
    writeln!(out, "{}", raw.trim())?;
    Ok(text)
}

/// Rendered files as they are, for who looks for what is wrong in them. Helm's order is random.
fn raw(files: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, content) in files.iter().filter(|(_, content)| !content.trim().is_empty()) {
        push(&mut text, name, content);
    }
    text
}

/// Adds a document under the path of its template.
pub(crate) fn push(text: &mut String, source: &str, content: &str) {
    text.extend(document(source, content));
}

/// The parts of a document under the path of its template.
pub(crate) fn document<'t>(source: &'t str, content: &'t str) -> [&'t str; 5] {
    ["---\n# Source: ", source, "\n", content, "\n"]
}
