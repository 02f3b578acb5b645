//! Chart.yaml, requirements.yaml and their locks: read and validated.

use std::collections::BTreeSet;

use catamaran_sprig::check_rfc3339;
use catamaran_sprig::semver::Version;
use catamaran_yaml::Numbers;
use serde_json::{Map, Value};

use super::RawFile;
use crate::gojson::{self, Fields};
use crate::{Dependency, LoadError, Lock, Maintainer, Metadata};

/// Reads a file over what is there already: requirements.yaml adds to Chart.yaml.
pub(super) fn read_into(metadata: &mut Metadata, file: &RawFile) -> Result<(), LoadError> {
    (|| {
        let value = gojson::parse(&file.data, Numbers::Exact)?;
        let object = gojson::object(value, go_type("Metadata"))?;
        fill(metadata, Fields::new(&object, "Metadata", ""))
    })()
    .map_err(|message| fault(message, &file.name))
}

impl Metadata {
    /// Reads the fields of Chart.yaml out of plain data (integers kept), as an index holds them.
    ///
    /// # Errors
    ///
    /// [`LoadError::Invalid`] for a null in a list, [`LoadError::File`] for a field that is not of
    /// its type.
    pub fn from_object(object: &Map<String, Value>) -> Result<Self, LoadError> {
        let mut metadata = Self::default();
        fill(&mut metadata, Fields::new(object, "Metadata", ""))
            .map_err(|m| fault(m, "index.yaml"))?;
        Ok(metadata)
    }

    /// Checks the fields as Helm does, and cleans their texts of control characters.
    ///
    /// # Errors
    ///
    /// [`LoadError::Invalid`], or [`LoadError::ApiVersion`].
    pub fn validate(&mut self) -> Result<(), LoadError> {
        validate(self)
    }
}

/// Marks the name of a list that holds a null, which is no fault of the file's form to Helm.
const NULL_NODE: &str = "null in ";
const EMPTY_NODES: &str = " must not contain empty or null nodes";

fn fault(message: String, file: &str) -> LoadError {
    match message.strip_prefix(NULL_NODE) {
        Some(field) => LoadError::Invalid(format!("{field}{EMPTY_NODES}")),
        None => LoadError::File { file: file.to_owned(), message },
    }
}

fn go_type(name: &str) -> &'static str {
    match name {
        "Lock" => "v2.Lock",
        _ => "v2.Metadata",
    }
}

fn fill(metadata: &mut Metadata, fields: Fields<'_>) -> Result<(), String> {
    for (name, field) in [
        ("name", &mut metadata.name),
        ("home", &mut metadata.home),
        ("version", &mut metadata.version),
        ("description", &mut metadata.description),
        ("icon", &mut metadata.icon),
        ("apiVersion", &mut metadata.api_version),
        ("condition", &mut metadata.condition),
        ("tags", &mut metadata.tags),
        ("appVersion", &mut metadata.app_version),
        ("kubeVersion", &mut metadata.kube_version),
        ("type", &mut metadata.kind),
    ] {
        set(field, fields.text(name)?);
    }
    set(&mut metadata.sources, fields.texts("sources")?);
    set(&mut metadata.keywords, fields.texts("keywords")?);
    set(&mut metadata.deprecated, fields.flag("deprecated")?);
    set(&mut metadata.annotations, fields.text_map("annotations")?);
    if let Some(items) = fields.list("maintainers", "[]*v2.Maintainer")? {
        metadata.maintainers =
            items.iter().map(|item| maintainer(item, fields)).collect::<Result<_, _>>()?;
    }
    if let Some(items) = fields.list("dependencies", "[]*v2.Dependency")? {
        metadata.dependencies =
            items.iter().map(|item| dependency(item, fields)).collect::<Result<_, _>>()?;
    }
    Ok(())
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn maintainer(item: &Value, parent: Fields<'_>) -> Result<Maintainer, String> {
    let object = match item {
        Value::Null => return Err(format!("{NULL_NODE}maintainers")),
        Value::Object(object) => object,
        other => return Err(parent.wrong("maintainers", other, "v2.Maintainer")),
    };
    let fields = Fields::new(object, "Maintainer", "maintainers.");
    Ok(Maintainer {
        name: fields.text("name")?.unwrap_or_default(),
        email: fields.text("email")?.unwrap_or_default(),
        url: fields.text("url")?.unwrap_or_default(),
    })
}

fn dependency(item: &Value, parent: Fields<'_>) -> Result<Dependency, String> {
    let object = match item {
        Value::Null => return Err(format!("{NULL_NODE}dependencies")),
        Value::Object(object) => object,
        other => return Err(parent.wrong("dependencies", other, "v2.Dependency")),
    };
    let fields = Fields::new(object, "Dependency", "dependencies.");
    let text = |name| fields.text(name).map(Option::unwrap_or_default);
    Ok(Dependency {
        name: text("name")?,
        version: text("version")?,
        repository: text("repository")?,
        condition: text("condition")?,
        tags: fields.texts("tags")?.unwrap_or_default(),
        enabled: fields.flag("enabled")?.unwrap_or_default(),
        import_values: fields.list("import-values", "[]interface {}")?.unwrap_or_default().to_vec(),
        alias: text("alias")?,
    })
}

/// Chart.lock or requirements.lock.
pub(super) fn read_lock(file: &RawFile) -> Result<Lock, LoadError> {
    (|| {
        let value = gojson::parse(&file.data, Numbers::Exact)?;
        let object = gojson::object(value, go_type("Lock"))?;
        let fields = Fields::new(&object, "Lock", "");
        let items = fields.list("dependencies", "[]*v2.Dependency")?.unwrap_or_default();
        Ok(Lock {
            generated: time(fields.get("generated"))?,
            digest: fields.text("digest")?.unwrap_or_default(),
            dependencies: items
                .iter()
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
            check_rfc3339(text).map_err(fault)?;
            Ok(text.clone())
        }
        Some(_) => Err(fault("Time.UnmarshalJSON: input is not a JSON string".to_owned())),
    }
}

/// Checks Chart.yaml as Helm does, and cleans its texts of control characters.
pub(super) fn validate(metadata: &mut Metadata) -> Result<(), LoadError> {
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
    if !matches!(metadata.api_version.as_str(), "v1" | "v2") {
        return Err(LoadError::ApiVersion(metadata.api_version.clone()));
    }
    validate_dependencies(&metadata.dependencies)
}

fn validate_dependencies(dependencies: &[Dependency]) -> Result<(), LoadError> {
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
    sources.iter_mut().chain(keywords).for_each(sanitize);
    for Maintainer { name, email, url } in maintainers {
        [name, email, url].into_iter().for_each(sanitize);
    }
    for Dependency { name, version, repository, condition, tags, .. } in &mut metadata.dependencies
    {
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
