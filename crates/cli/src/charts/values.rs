//! The user's values, from files and from the command line.

use std::fs;
use std::io::Read as _;

use anyhow::{Result, anyhow, bail};
use catamaran_chart::values::{merge, read_file, strvals};
use catamaran_chart::{Profile, go_io_error};
use serde_json::{Map, Value};

use super::flags::ValueArgs;

/// All values laid over each other, in Helm's order of the flags.
pub(crate) fn gather(args: &ValueArgs, profile: Profile) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for path in &args.files {
        let file = read_file(&read(path)?, profile);
        merge(&mut values, file.map_err(|fault| anyhow!("failed to parse {path}: {fault}"))?);
    }
    for line in &args.json {
        set_json(line, &mut values, profile)?;
    }
    let set = |flag: &str, result: Result<(), strvals::StrvalsError>| {
        result.map_err(|fault| anyhow!("failed parsing {flag} data: {fault}"))
    };
    for line in &args.typed {
        set("--set", strvals::parse_into(line, &mut values))?;
    }
    for line in &args.texts {
        set("--set-string", strvals::parse_into_text(line, &mut values))?;
    }
    for line in &args.from_files {
        let mut content = |path: &str| match read(path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(error.to_string()),
        };
        set("--set-file", strvals::parse_into_files(line, &mut values, &mut content))?;
    }
    for line in &args.literals {
        set("--set-literal", strvals::parse_into_literal(line, &mut values))?;
    }
    Ok(values)
}

/// A whole object (since Helm 4), or lines of keys and JSON.
fn set_json(line: &str, values: &mut Map<String, Value>, profile: Profile) -> Result<()> {
    if profile == Profile::Helm43 && line.trim().starts_with('{') {
        let object = catamaran_chart::values::read_json(line.trim());
        let object =
            object.ok_or_else(|| anyhow!("failed parsing --set-json data JSON: {line}"))?;
        merge(values, object);
        return Ok(());
    }
    let result = strvals::parse_into_json(line, values);
    result.map_err(|_| anyhow!("failed parsing --set-json data {line}"))
}

/// A file, or standard input for `-`.
fn read(path: &str) -> Result<Vec<u8>> {
    if path.trim() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| anyhow!(go_io_error("read", "/dev/stdin", &error)))?;
        return Ok(bytes);
    }
    if ["http://", "https://", "oci://"].iter().any(|scheme| path.starts_with(scheme)) {
        bail!("values from a URL are not supported yet ({path})");
    }
    fs::read(path).map_err(|error| {
        let verb = if error.kind() == std::io::ErrorKind::IsADirectory { "read" } else { "open" };
        anyhow!(go_io_error(verb, path, &error))
    })
}
