//! The user's values, from files and from the command line.

use std::fs;
use std::io::Read as _;

use anyhow::{Result, anyhow, bail};
use catamaran_chart::Profile;
use catamaran_chart::values::Sources;
use serde_json::{Map, Value};

use super::args::ValueArgs;
use super::go_error;

/// All values laid over each other, in Helm's order of the flags.
pub(super) fn gather(args: &ValueArgs, profile: Profile) -> Result<Map<String, Value>> {
    let sources = Sources {
        files: args.files.clone(),
        json: args.json.clone(),
        typed: args.typed.clone(),
        texts: args.texts.clone(),
        from_files: args.from_files.clone(),
        literals: args.literals.clone(),
    };
    let read = |path: &str| read(path).map_err(|error| error.to_string());
    sources.gather(profile, read).map_err(|fault| anyhow!(fault))
}

/// A file, or standard input for `-`.
fn read(path: &str) -> Result<Vec<u8>> {
    if path.trim() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| anyhow!(go_error("read", "/dev/stdin", &error)))?;
        return Ok(bytes);
    }
    if ["http://", "https://", "oci://"].iter().any(|scheme| path.starts_with(scheme)) {
        bail!("values from a URL are not supported yet ({path})");
    }
    fs::read(path).map_err(|error| {
        let verb = if error.kind() == std::io::ErrorKind::IsADirectory { "read" } else { "open" };
        anyhow!(go_error(verb, path, &error))
    })
}
