//! Names of releases.

use std::time::SystemTime;

use anyhow::{Result, bail};
use catamaran_chart::render::standalone_with_environment;
use catamaran_chart::{Profile, fresh_seed};

/// Runs `--name-template`.
pub(crate) fn made_name(text: &str) -> Result<String> {
    Ok(standalone_with_environment("name-template", text, SystemTime::now(), fresh_seed())?)
}

/// Names that Kubernetes takes as a label: dotted lower-case words, 53 characters in all.
pub(crate) fn check_name(name: &str, profile: Profile) -> Result<()> {
    let is_word = |word: &str| {
        let edge =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(word.chars().next())
            && edge(word.chars().last())
            && word.chars().all(|c| c == '-' || edge(Some(c)))
    };
    if name.len() <= 53 && name.split('.').all(is_word) {
        return Ok(());
    }
    let before = match profile {
        Profile::Helm318 => "",
        Profile::Helm43 => "release name check failed: ",
    };
    if name.is_empty() {
        bail!("{before}release name \"\": no name provided");
    }
    bail!(
        "{before}release name {name:?}: invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
    )
}
