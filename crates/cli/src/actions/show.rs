//! A release as helm prints it.

use std::io::Write;

use anyhow::Result;
use catamaran_chart::Profile;
use catamaran_chart::manifest::{parse_objects, split};
use catamaran_release::Release;
use catamaran_release::record::{Hook, Time};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use super::flags::Format;

/// What helm calls a rendering that was not carried out.
pub(super) const DRY: &str = "Dry run complete";

/// What is printed of a release.
pub(super) struct Shown<'a> {
    pub(super) release: &'a Release,
    /// The chart as the record has it; `helm status` leaves it out.
    pub(super) chart: bool,
    pub(super) notes: bool,
    /// Lines about its objects; for a form for machines, the objects.
    pub(super) resources: Resources,
}

/// A release's objects, in the form that is asked for.
#[derive(Default)]
pub(super) enum Resources {
    #[default]
    None,
    Tables(String),
    Objects(Value),
}

impl<'a> Shown<'a> {
    pub(super) fn new(release: &'a Release) -> Self {
        Self { release, chart: true, notes: true, resources: Resources::None }
    }

    pub(super) fn print(&self, format: Format, out: &mut impl Write) -> Result<()> {
        match format {
            Format::Table => self.table(out),
            _ => encode(&self.value()?, format, out),
        }
    }

    fn table(&self, out: &mut impl Write) -> Result<()> {
        let Release { name, info, namespace, version, hooks, manifest, .. } = self.release;
        writeln!(out, "NAME: {name}")?;
        if info.last_deployed.0.is_some() {
            writeln!(out, "LAST DEPLOYED: {}", ansi(info.last_deployed))?;
        }
        writeln!(out, "NAMESPACE: {namespace}\nSTATUS: {}\nREVISION: {version}", info.status)?;
        writeln!(out, "DESCRIPTION: {}", info.description)?;
        if let Resources::Tables(tables) = &self.resources
            && !tables.is_empty()
        {
            writeln!(out, "RESOURCES:\n{tables}")?;
        }
        self.tests(out)?;
        if info.description.eq_ignore_ascii_case(DRY) {
            writeln!(out, "HOOKS:")?;
            for Hook { path, manifest, .. } in hooks {
                writeln!(out, "---\n# Source: {path}\n{manifest}")?;
            }
            writeln!(out, "MANIFEST:\n{manifest}")?;
        }
        if self.notes && !info.notes.is_empty() {
            writeln!(out, "NOTES:\n{}", info.notes.trim())?;
        }
        Ok(())
    }

    fn tests(&self, out: &mut impl Write) -> Result<()> {
        let mut tests = self.release.hooks.iter().filter(|hook| is_test(hook)).peekable();
        if tests.peek().is_none() {
            writeln!(out, "TEST SUITE: None")?;
        }
        for Hook { name, last_run, .. } in tests.filter(|test| test.last_run.started_at.0.is_some())
        {
            writeln!(out, "TEST SUITE:     {name}")?;
            writeln!(out, "Last Started:   {}", ansi(last_run.started_at))?;
            writeln!(out, "Last Completed: {}", ansi(last_run.completed_at))?;
            writeln!(out, "Phase:          {}", last_run.phase)?;
        }
        Ok(())
    }

    fn value(&self) -> Result<Value> {
        let mut value = serde_json::to_value(self.release)?;
        if let Some(fields) = value.as_object_mut()
            && !self.chart
        {
            fields.remove("chart");
        }
        if let Some(info) = value.get_mut("info").and_then(Value::as_object_mut)
            && let Resources::Objects(objects) = &self.resources
        {
            info.insert("resources".to_owned(), objects.clone());
        }
        Ok(value)
    }
}

/// Whether `helm status` shows it as a test.
fn is_test(hook: &Hook) -> bool {
    hook.events.iter().any(|event| event == "test" || event == "test-success")
}

/// A time as Go's ANSI C layout has it, by the clock on the wall here.
pub(super) fn ansi(time: Time) -> String {
    let Some(time) = time.0 else { return "Mon Jan  1 00:00:00 0001".to_owned() };
    time.to_zoned(TimeZone::system()).strftime("%a %b %e %H:%M:%S %Y").to_string()
}

/// Prints for machines.
pub(super) fn encode(value: &impl Serialize, format: Format, out: &mut impl Write) -> Result<()> {
    match format {
        Format::Yaml => write!(out, "{}", catamaran_yaml::to_string(value)?)?,
        Format::Json | Format::Table => writeln!(out, "{}", serde_json::to_string(value)?)?,
    }
    Ok(())
}

/// Takes the Secrets out of a record that is to be printed.
pub(super) fn hide_secrets(record: &mut Release) {
    let is_secret = |document: &str| {
        let found = parse_objects(document).unwrap_or_default();
        let kind = found.first().and_then(|object| object.get("kind"));
        kind.and_then(Value::as_str) == Some("Secret")
    };
    let mut text = String::new();
    for document in split(&record.manifest, Profile::Helm43) {
        text.push_str("---\n");
        if is_secret(document) {
            let source = document.lines().find(|line| line.starts_with("# Source: "));
            text.push_str(source.unwrap_or_default());
            text.push_str("\n# HIDDEN: The Secret output has been suppressed\n");
        } else {
            text.push_str(document);
        }
    }
    record.manifest = text;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cve_2019_25210_hide_secret_leaves_no_value_of_a_secret() {
        let manifest = "---\n# Source: c/templates/s.yaml\napiVersion: v1\nkind: Secret\nstringData: {a: hunter2}\n\
            ---\nkind: ConfigMap\ndata: {a: shown}\n---\nkind: \"Secret\"\nstringData: {a: hunter2}\n"
            .to_owned();
        let mut record = Release { manifest, ..Release::default() };
        hide_secrets(&mut record);
        assert!(!record.manifest.contains("hunter2"), "{}", record.manifest);
        assert!(record.manifest.contains("shown"), "{}", record.manifest);
        assert_eq!(record.manifest.matches("# HIDDEN").count(), 2, "{}", record.manifest);
    }
}
