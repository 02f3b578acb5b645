//! The user's values, from files and from the command line.

use std::fs;
use std::io::Read as _;

use anyhow::{Result, anyhow};
use catamaran_chart::values::Sources;
use catamaran_chart::{Profile, go_io_error};
use catamaran_repository::Finder;
use catamaran_sprig::check_url;
use serde_json::{Map, Value};

use super::flags::ValueArgs;
use super::slices;
use crate::source::wait;

/// All values laid over each other, in Helm's order of the flags. `finder` fetches what is named by
/// an address.
pub(crate) fn gather(
    args: &ValueArgs,
    finder: &Finder,
    profile: Profile,
) -> Result<Map<String, Value>> {
    let sources = Sources {
        files: slices::all(&args.files),
        json: args.json.clone(),
        typed: args.typed.clone(),
        texts: args.texts.clone(),
        from_files: args.from_files.clone(),
        literals: args.literals.clone(),
    };
    let read = |path: &str| {
        if path.trim() != "-" {
            // A path, too: in Helm a `%` or a colon in one can be a mistake.
            check_url(path)?;
        }
        match wait(finder.file(path)) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => read(path).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    sources.gather(profile, read).map_err(|fault| anyhow!(fault))
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
    fs::read(path).map_err(|error| {
        let verb = if error.kind() == std::io::ErrorKind::IsADirectory { "read" } else { "open" };
        anyhow!(go_io_error(verb, path, &error))
    })
}
