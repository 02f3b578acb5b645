//! Chart.yaml, requirements.yaml and their locks: read and validated.

use std::collections::BTreeSet;

use catamaran_sprig::check_time;
use catamaran_sprig::semver::Version;
use catamaran_yaml::Numbers;
use serde_json::{Map, Value};

use super::RawFile;
use crate::gojson::{self, Fields};
use crate::{Dependency, LoadError, Lock, Maintainer, Metadata};

/// Reads a file over what is there already: requirements.yaml adds to Chart.yaml.
pub(super) fn read_into(
    metadata: &mut Metadata,
    nulls: &mut Nulls,
    file: &RawFile,
    room: &mut usize,
) -> Result<(), LoadError> {
    (|| {
        let value = gojson::parse_within(&file.data, Numbers::Exact, room)?;
        let object = gojson::object(value, go_type("Metadata"))?;
        fill(metadata, nulls, Fields::new(&object, "Metadata", ""))
    })()
    .map_err(|message| LoadError::File { file: file.name.clone(), message })
}

impl Metadata {
    /// Reads the fields of Chart.yaml out of plain data (integers kept), as an index holds them;
    /// with them, what Helm finds wrong with them: [`LoadError::Invalid`]. An absent apiVersion
    /// reads as `v1`, and any other is taken.
    ///
    /// # Errors
    ///
    /// A field is not of its type; Helm's text.
    pub fn from_object(
        object: &Map<String, Value>,
    ) -> Result<(Self, Result<(), LoadError>), String> {
        let (mut metadata, mut nulls) = (Self::default(), Nulls::default());
        fill(&mut metadata, &mut nulls, Fields::new(object, "Metadata", ""))?;
        if metadata.api_version.is_empty() {
            "v1".clone_into(&mut metadata.api_version);
        }
        let checked = validate(&mut metadata, &nulls);
        Ok((metadata, checked))
    }
}

/// The apiVersion of a chart, if its Chart.yaml can be read so far.
pub(super) fn peek_api_version(chart_yaml: Option<RawFile>) -> Option<String> {
    let value = gojson::parse(&chart_yaml?.data, Numbers::Exact).ok()?;
    let object = gojson::object(value, "loader.chartBase").ok()?;
    let version = Fields::new(&object, "chartBase", "").text("apiVersion").ok()?;
    Some(version.unwrap_or_default())
}

/// Metadata from what a Chart.yaml holds, not validated.
pub(crate) fn of_value(object: &Map<String, Value>) -> Result<Metadata, String> {
    let mut metadata = Metadata::default();
    fill(&mut metadata, &mut Nulls::default(), Fields::new(object, "Metadata", ""))?;
    Ok(metadata)
}

fn go_type(name: &str) -> &'static str {
    match name {
        "Lock" => "v2.Lock",
        _ => "v2.Metadata",
    }
}

/// In the order of the keys, as Go reads them: the first mistake is the one that is told.
fn fill(metadata: &mut Metadata, nulls: &mut Nulls, fields: Fields<'_>) -> Result<(), String> {
    let annotations = fields.text_map("annotations")?;
    metadata.annotations = annotations.or_else(|| metadata.annotations.take());
    set(&mut metadata.api_version, fields.text("apiVersion")?);
    set(&mut metadata.app_version, fields.text("appVersion")?);
    set(&mut metadata.condition, fields.text("condition")?);
    if let Some(items) = fields.list("dependencies", "[]*v2.Dependency")? {
        nulls.dependencies = items.iter().position(Value::is_null);
        let items = items.iter().filter(|item| !item.is_null());
        let read = items.map(|item| dependency(item, fields)).collect::<Result<_, _>>()?;
        metadata.dependencies = Some(read);
    }
    set(&mut metadata.deprecated, fields.flag("deprecated")?);
    set(&mut metadata.description, fields.text("description")?);
    set(&mut metadata.home, fields.text("home")?);
    set(&mut metadata.icon, fields.text("icon")?);
    metadata.keywords = fields.texts("keywords")?.or_else(|| metadata.keywords.take());
    set(&mut metadata.kube_version, fields.text("kubeVersion")?);
    if let Some(items) = fields.list("maintainers", "[]*v2.Maintainer")? {
        nulls.maintainers = items.iter().any(Value::is_null);
        let items = items.iter().filter(|item| !item.is_null());
        let read = items.map(|item| maintainer(item, fields)).collect::<Result<_, _>>()?;
        metadata.maintainers = Some(read);
    }
    set(&mut metadata.name, fields.text("name")?);
    metadata.sources = fields.texts("sources")?.or_else(|| metadata.sources.take());
    set(&mut metadata.tags, fields.text("tags")?);
    set(&mut metadata.kind, fields.text("type")?);
    set(&mut metadata.version, fields.text("version")?);
    Ok(())
}

/// Where lists hold null: told only after all else has been read.
#[derive(Debug, Default)]
pub(super) struct Nulls {
    maintainers: bool,
    /// How many dependencies stand before the first null.
    dependencies: Option<usize>,
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn maintainer(item: &Value, parent: Fields<'_>) -> Result<Maintainer, String> {
    let object = match item {
        Value::Object(object) => object,
        other => return Err(parent.wrong("maintainers", other, "v2.Maintainer")),
    };
    let fields = Fields::new(object, "Maintainer", "maintainers.");
    Ok(Maintainer {
        email: fields.text("email")?.unwrap_or_default(),
        name: fields.text("name")?.unwrap_or_default(),
        url: fields.text("url")?.unwrap_or_default(),
    })
}

fn dependency(item: &Value, parent: Fields<'_>) -> Result<Dependency, String> {
    let object = match item {
        Value::Object(object) => object,
        other => return Err(parent.wrong("dependencies", other, "v2.Dependency")),
    };
    let fields = Fields::new(object, "Dependency", "dependencies.");
    let text = |name| fields.text(name).map(Option::unwrap_or_default);
    Ok(Dependency {
        alias: text("alias")?,
        condition: text("condition")?,
        enabled: fields.flag("enabled")?.unwrap_or_default(),
        import_values: fields.list("import-values", "[]interface {}")?.unwrap_or_default().to_vec(),
        name: text("name")?,
        repository: text("repository")?,
        tags: fields.texts("tags")?.unwrap_or_default(),
        version: text("version")?,
    })
}

/// Chart.lock or requirements.lock.
pub(super) fn read_lock(file: &RawFile, room: &mut usize) -> Result<Lock, LoadError> {
    (|| {
        let value = gojson::parse_within(&file.data, Numbers::Exact, room)?;
        let object = gojson::object(value, go_type("Lock"))?;
        let fields = Fields::new(&object, "Lock", "");
        let items = fields.list("dependencies", "[]*v2.Dependency")?.unwrap_or_default();
        Ok(Lock {
            generated: time(fields.get("generated"))?,
            digest: fields.text("digest")?.unwrap_or_default(),
            dependencies: items
                .iter()
                .filter(|item| !item.is_null())
                .map(|item| dependency(item, fields))
                .collect::<Result<_, String>>()?,
        })
    })()
    .map_err(|message| LoadError::File { file: file.name.clone(), message })
}

/// A time as Go reads it from JSON.
fn time(value: Option<&Value>) -> Result<String, String> {
    let fault = |text| format!("error unmarshaling JSON: while decoding JSON: {text}");
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => {
            check_time("2006-01-02T15:04:05Z07:00", text).map_err(fault)?;
            Ok(text.clone())
        }
        Some(_) => Err(fault("Time.UnmarshalJSON: input is not a JSON string".to_owned())),
    }
}

/// Checks Chart.yaml as Helm does, and cleans its texts of control characters.
pub(super) fn validate(metadata: &mut Metadata, nulls: &Nulls) -> Result<(), LoadError> {
    sanitize_all(metadata);
    let invalid = |message: String| Err(LoadError::Invalid(message));
    let name = metadata.name.as_str();
    if name.is_empty() {
        return invalid("chart.metadata.name is required".into());
    }
    if name == "." || name == ".." {
        return invalid(format!("chart.metadata.name {name:?} is not allowed"));
    }
    if name.contains('/') {
        return invalid(format!("chart.metadata.name {name:?} is invalid"));
    }
    let version = metadata.version.as_str();
    if version.is_empty() {
        return invalid("chart.metadata.version is required".into());
    }
    if Version::parse(version).is_err() {
        return invalid(format!("chart.metadata.version {version:?} is invalid"));
    }
    if !matches!(metadata.kind.as_str(), "" | "application" | "library") {
        return invalid("chart.metadata.type must be application or library".into());
    }
    if nulls.maintainers {
        return invalid("maintainers must not contain empty or null nodes".into());
    }
    let dependencies = metadata.dependencies.as_deref().unwrap_or_default();
    validate_dependencies(dependencies.get(..nulls.dependencies.unwrap_or(dependencies.len())))?;
    match nulls.dependencies {
        Some(_) => invalid("dependencies must not contain empty or null nodes".into()),
        None => Ok(()),
    }
}

fn validate_dependencies(dependencies: Option<&[Dependency]>) -> Result<(), LoadError> {
    let dependencies = dependencies.unwrap_or_default();
    let mut seen = BTreeSet::new();
    for Dependency { name, alias, .. } in dependencies {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !alias.chars().all(fits) {
            let message = format!("dependency {name:?} has disallowed characters in the alias");
            return Err(LoadError::Invalid(message));
        }
        let key = if alias.is_empty() { name } else { alias };
        if !seen.insert(key) {
            let message = format!("more than one dependency with name or alias {key:?}");
            return Err(LoadError::Invalid(message));
        }
    }
    Ok(())
}

fn sanitize_all(metadata: &mut Metadata) {
    let Metadata {
        name,
        home,
        sources,
        description,
        keywords,
        maintainers,
        icon,
        condition,
        tags,
        ..
    } = metadata;
    let texts = [name, home, description, icon, condition, tags];
    texts.into_iter().for_each(sanitize);
    sanitize(&mut metadata.app_version);
    sanitize(&mut metadata.kube_version);
    sources.iter_mut().chain(keywords).flatten().for_each(sanitize);
    for Maintainer { name, email, url } in maintainers.iter_mut().flatten() {
        [name, email, url].into_iter().for_each(sanitize);
    }
    for dependency in metadata.dependencies.iter_mut().flatten() {
        let Dependency { name, version, repository, condition, tags, .. } = dependency;
        [name, version, repository, condition].into_iter().for_each(sanitize);
        tags.iter_mut().for_each(sanitize);
    }
}

/// White space becomes a space, what cannot be printed is dropped.
fn sanitize(text: &mut String) {
    let odd = |c: char| c != ' ' && (c.is_whitespace() || c.is_control());
    if text.contains(odd) {
        *text = text
            .chars()
            .filter_map(|c| match c {
                c if c.is_whitespace() => Some(' '),
                c if c.is_control() => None,
                c => Some(c),
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned() {
        let mut text = "a\tb\u{7}c\u{a0}d".to_owned();
        sanitize(&mut text);
        assert_eq!(text, "a bc d");
    }
}
