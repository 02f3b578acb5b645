//! Chart.yaml.

use catamaran_sprig::semver::{Constraint, Version};
use catamaran_yaml::{Numbers, check_repeated_keys};
use serde_json::{Map, Value};

use super::folder::{Folder, Kind};
use super::{Report, Severity, address};
use crate::error::in_helm_3;
use crate::gojson::{self, Fields};
use crate::load::metadata_of_value;
use crate::{Metadata, Profile};

const FILE: &str = "Chart.yaml";

type Rule = Result<(), String>;

pub(super) fn check(report: &mut Report, folder: &Folder, profile: Profile) {
    let is_folder = folder.kind(FILE) == Some(Kind::Folder);
    let rule = if is_folder { Err("should be a file, not a directory".into()) } else { Ok(()) };
    report.check(Severity::Error, FILE, rule);
    let chartfile = match read(folder) {
        Ok(chartfile) => chartfile,
        Err(text) => {
            let text = if profile == Profile::Helm318 { in_helm_3(&text) } else { text };
            report.check(Severity::Error, FILE, Err(format!("unable to parse YAML\n\t{text}")));
            return;
        }
    };
    if profile == Profile::Helm43 {
        let strict = chartfile
            .strict()
            .map_err(|text| format!("failed to strictly parse chart metadata file\n\t{text}"));
        report.check(Severity::Warning, FILE, strict);
    }
    let Chartfile { metadata, fields, maintainers, .. } = &chartfile;
    for rule in [
        name(metadata),
        api_version(metadata),
        is_text(fields, "version"),
        version(metadata, profile),
        is_text(fields, "appVersion"),
        all_maintainers(maintainers),
        sources(metadata),
    ] {
        report.check(Severity::Error, FILE, rule);
    }
    let icon = if metadata.icon.is_empty() { Err("icon is recommended".into()) } else { Ok(()) };
    report.check(Severity::Info, FILE, icon);
    for rule in [icon_address(metadata), kind(metadata), dependencies(metadata)] {
        report.check(Severity::Error, FILE, rule);
    }
    if profile == Profile::Helm43 {
        report.check(Severity::Warning, FILE, strict_version(metadata));
    }
}

struct Chartfile {
    text: String,
    fields: Map<String, Value>,
    metadata: Metadata,
    /// As they are written: an entry may be null.
    maintainers: Vec<Value>,
}

fn read(folder: &Folder) -> Result<Chartfile, String> {
    let bytes = folder.read(FILE)?;
    let fields = gojson::object(gojson::parse(&bytes, Numbers::Exact)?, "v2.Metadata")?;
    let wanted = Fields::new(&fields, "Metadata", "");
    let maintainers = wanted.list("maintainers", "[]*v2.Maintainer")?.unwrap_or_default().to_vec();
    let mut sound = fields.clone();
    for list in ["maintainers", "dependencies"] {
        if let Some(Value::Array(items)) = sound.get_mut(list) {
            items.retain(|item| !item.is_null());
        }
    }
    let metadata = metadata_of_value(&sound)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Chartfile { text, fields, metadata, maintainers })
}

impl Chartfile {
    /// No key twice, none that is unknown.
    fn strict(&self) -> Rule {
        check_repeated_keys(&self.text).map_err(|error| error.to_string())?;
        match Metadata::unknown_field(&self.fields, &[]) {
            Some(key) => Err(format!(
                "error unmarshaling JSON: while decoding JSON: json: unknown field {key:?}"
            )),
            None => Ok(()),
        }
    }
}

fn name(metadata: &Metadata) -> Rule {
    let name = &metadata.name;
    if name.is_empty() {
        return Err("name is required".into());
    }
    if name.contains('/') {
        return Err(format!("chart name {} is invalid", quoted(name)));
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    catamaran_gotemplate::fmt::quote(&text.into())
}

fn api_version(metadata: &Metadata) -> Rule {
    match metadata.api_version.as_str() {
        "v1" | "v2" => Ok(()),
        "" => Err(r#"apiVersion is required. The value must be either "v1" or "v2""#.into()),
        other => Err(format!(
            r#"apiVersion '{other}' is not valid. The value must be either "v1" or "v2""#
        )),
    }
}

/// A number would be read as a text, but perhaps not the one that was meant.
fn is_text(fields: &Map<String, Value>, key: &str) -> Rule {
    let go_type = match fields.get(key) {
        None | Some(Value::String(_)) => return Ok(()),
        Some(Value::Null) => "<nil>",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "float64",
        Some(Value::Array(_)) => "[]interface {}",
        Some(Value::Object(_)) => "map[string]interface {}",
    };
    Err(format!("{key} should be of type string but it's of type {go_type}"))
}

fn version(metadata: &Metadata, profile: Profile) -> Rule {
    const LEAST: &str = "0.0.0-0";
    let text = &metadata.version;
    if text.is_empty() {
        return Err("version is required".into());
    }
    let Ok(version) = Version::parse(text) else {
        return Err(format!("version '{text}' is not a valid SemVer"));
    };
    let above = Constraint::parse(&format!(">{LEAST}"));
    if above.is_ok_and(|above| above.check(&version)) {
        return Ok(());
    }
    Err(match profile {
        Profile::Helm318 => format!("version {version} is less than or equal to {LEAST}"),
        Profile::Helm43 => format!("version \"{version}\" is less than or equal to \"{LEAST}\""),
    })
}

/// `1.2.3`: three numbers without leading zeros, nothing in front.
fn strict_version(metadata: &Metadata) -> Rule {
    let text = &metadata.version;
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let sound = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    };
    let strict = numbers.split('.').count() == 3
        && numbers.split('.').all(sound)
        && Version::parse(text).is_ok();
    if strict { Ok(()) } else { Err(format!("version '{text}' is not a valid SemVerV2")) }
}

fn all_maintainers(maintainers: &[Value]) -> Rule {
    maintainers.iter().try_for_each(|item| {
        let Value::Object(object) = item else { return Err("a maintainer entry is empty".into()) };
        let fields = Fields::new(object, "Maintainer", "maintainers.");
        let text = |field| fields.text(field).ok().flatten().unwrap_or_default();
        let (name, email, url) = (text("name"), text("email"), text("url"));
        if name.is_empty() {
            return Err("each maintainer requires a name".into());
        }
        if !email.is_empty() && !address::is_email(&email) {
            return Err(format!("invalid email '{email}' for maintainer '{name}'"));
        }
        if !url.is_empty() && !address::is_url(&url) {
            return Err(format!("invalid url '{url}' for maintainer '{name}'"));
        }
        Ok(())
    })
}

fn sources(metadata: &Metadata) -> Rule {
    match metadata.sources.iter().flatten().find(|source| !address::is_request_url(source)) {
        Some(source) => Err(format!("invalid source URL '{source}'")),
        None => Ok(()),
    }
}

fn icon_address(metadata: &Metadata) -> Rule {
    if metadata.icon.is_empty() || address::is_request_url(&metadata.icon) {
        return Ok(());
    }
    Err(format!("invalid icon URL '{}'", metadata.icon))
}

fn kind(metadata: &Metadata) -> Rule {
    if metadata.kind.is_empty() || metadata.api_version == "v2" {
        return Ok(());
    }
    let found = &metadata.api_version;
    Err(format!("chart type is not valid in apiVersion '{found}'. It is valid in apiVersion 'v2'"))
}

fn dependencies(metadata: &Metadata) -> Rule {
    if metadata.dependencies.as_ref().is_none_or(Vec::is_empty) || metadata.api_version == "v2" {
        return Ok(());
    }
    let found = &metadata.api_version;
    Err(format!(
        "dependencies are not valid in the Chart file with apiVersion '{found}'. They are valid in apiVersion 'v2'"
    ))
}
