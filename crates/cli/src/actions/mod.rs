//! Releases by hand: what `helm install` and its kin do, by the operator's own engine.
//!
//! The driver of `catamaran-release` never waits; [`run_to_completion`] does, tells what for, and ends at Ctrl-C.
//! Whatever was begun is in the record, so that the next call goes on with it.

mod deploy;
mod flags;
mod history;
mod install;
mod progress;
mod release_target;
mod resources;
mod rollback;
mod run_to_completion;
mod show;
mod status;
mod test;
mod uninstall;
mod upgrade;

use anyhow::{Error, Result, anyhow, bail};

use crate::charts;

pub(crate) use flags::{timeout, wrong_strategy};
pub(crate) use history::{HistoryArgs, run as history};
pub(crate) use install::{InstallArgs, run as install};
pub(crate) use rollback::{RollbackArgs, run as rollback};
pub(crate) use status::{StatusArgs, run as status};
pub(crate) use test::{TestArgs, run as test};
pub(crate) use uninstall::{UninstallArgs, run as uninstall};
pub(crate) use upgrade::{UpgradeArgs, run as upgrade};

/// That there is no such release, as helm says it.
fn missing() -> Error {
    anyhow!("release: not found")
}

/// The one argument of a command.
fn one<'a>(arguments: &'a [String], usage: &str) -> Result<&'a str> {
    match arguments {
        [only] => Ok(only),
        _ => Err(charts::wrong_count("requires 1 argument", usage)),
    }
}

/// Refuses a description that helm would.
fn check_description(text: Option<&str>) -> Result<()> {
    const LONGEST: usize = 256;
    match text.map(|text| text.chars().count()).filter(|count| *count > LONGEST) {
        Some(count) => {
            bail!("description must be {LONGEST} characters or less, got {count}")
        }
        None => Ok(()),
    }
}
