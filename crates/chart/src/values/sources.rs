//! The user's values from all the places a command line names.

use serde_json::{Map, Value};

use super::strvals::{Mode, StrvalsError, set_line};
use super::{merge, read_file, read_json};
use crate::Profile;

/// Where values come from, in Helm's order of the flags: later ones lie over earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `-f`: YAML files.
    pub files: Vec<String>,
    /// `--set-json`: names with JSON, or (since Helm 4) whole objects.
    pub json: Vec<String>,
    /// `--set`
    pub typed: Vec<String>,
    /// `--set-string`: texts, whatever they look like.
    pub texts: Vec<String>,
    /// `--set-file`: names with the paths of files.
    pub from_files: Vec<String>,
    /// `--set-literal`: texts without any escapes.
    pub literals: Vec<String>,
}

impl Sources {
    /// Reads them all, and lays them over each other. `read` fetches a file; what it says of one
    /// that it cannot fetch is the error.
    ///
    /// # Errors
    /// In Helm's words: a file that cannot be read or is no table, a line that is not understood.
    pub fn gather(
        &self,
        profile: Profile,
        read: impl Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Map<String, Value>, String> {
        let mut values = Map::new();
        for path in &self.files {
            let file = read_file(&read(path)?, profile);
            merge(&mut values, file.map_err(|fault| format!("failed to parse {path}: {fault}"))?);
        }
        for line in &self.json {
            set_json(line, &mut values, profile)?;
        }
        let fault = |flag: &'static str| {
            move |fault: StrvalsError| format!("failed parsing {flag} data: {fault}")
        };
        for line in &self.typed {
            set_line(line, Mode::Typed, &mut values, profile).map_err(fault("--set"))?;
        }
        for line in &self.texts {
            set_line(line, Mode::Text, &mut values, profile).map_err(fault("--set-string"))?;
        }
        let mut content = |path: &str| Ok(String::from_utf8_lossy(&read(path)?).into_owned());
        for line in &self.from_files {
            let mode = Mode::Files(&mut content);
            set_line(line, mode, &mut values, profile).map_err(fault("--set-file"))?;
        }
        for line in &self.literals {
            set_line(line, Mode::Literal, &mut values, profile).map_err(fault("--set-literal"))?;
        }
        Ok(values)
    }
}

fn set_json(line: &str, values: &mut Map<String, Value>, profile: Profile) -> Result<(), String> {
    if profile == Profile::Helm43 && line.trim().starts_with('{') {
        let object = read_json(line.trim());
        let object =
            object.ok_or_else(|| format!("failed parsing --set-json data JSON: {line}"))?;
        merge(values, object);
        return Ok(());
    }
    let result = set_line(line, Mode::Json, values, profile);
    result.map_err(|_| format!("failed parsing --set-json data {line}"))
}
