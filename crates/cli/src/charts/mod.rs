//! What the commands on charts have in common: flags, places, values, how they end.

pub(crate) mod cluster;
mod faults;
pub(crate) mod flags;
mod names;
mod place;
pub(crate) mod rendering;
pub(crate) mod slices;
mod typed;
mod usage;
mod values;
mod words;

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use catamaran_chart::{KubeVersion, Profile};

use crate::explain::Explained;

pub(crate) use faults::{HINT, deprecated, document, failed, push, warn};
pub(crate) use names::{check_name, made_name};
pub(crate) use place::{Loader, load};
pub(crate) use typed::check as check_typed;
pub(crate) use usage::{exit as exit_with_usage, is_help, is_mistake, wrong_count};
pub(crate) use values::gather as values;
pub(crate) use words::{command_first, in_helms_manner, is_helms};

/// Bytes that are kept back until there are more.
const PRINTED_AT_ONCE: usize = 64 << 10;

type Out = io::BufWriter<io::StdoutLock<'static>>;

/// Runs a command that prints; what goes wrong is told after what was printed.
pub(crate) fn print(command: impl FnOnce(&mut Out) -> Result<()>) -> ExitCode {
    let mut out = io::BufWriter::with_capacity(PRINTED_AT_ONCE, io::stdout().lock());
    let result = command(&mut out);
    let flushed = out.flush().map_err(anyhow::Error::from);
    match result.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads us has seen enough: `| head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            match error.downcast_ref::<Explained>() {
                Some(explained) if !explained.more.is_empty() => eprint!("\n{}", explained.more),
                _ => {}
            }
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// What `--kube-version` says.
pub(crate) fn kube_version(text: Option<&str>, profile: Profile) -> Result<Option<KubeVersion>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let version = KubeVersion::parse(text, profile)
        .map_err(|why| anyhow!("invalid kube version '{text}': {why}"))?;
    Ok(Some(version))
}
