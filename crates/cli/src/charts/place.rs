//! Where a chart lies, and the chart that lies there.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use catamaran_chart::{Chart, Profile, go_io_error};

use super::flags::PlaceArgs;

/// A folder or a file; names in repositories and registries are for later.
pub(crate) fn locate(place: &str, args: &PlaceArgs) -> Result<PathBuf> {
    for (asked, flag) in [(args.verify, "--verify"), (args.repo.is_some(), "--repo")] {
        if asked {
            bail!("{flag} is not supported yet");
        }
    }
    let path = Path::new(place.trim());
    if path.exists() {
        return Ok(std::path::absolute(path)?);
    }
    if path.is_absolute() || place.trim().starts_with('.') {
        bail!("path {place:?} not found");
    }
    bail!("{place}: there is no such path, and charts of repositories are not supported yet")
}

/// Loads a chart to render it.
pub(crate) fn load(path: &Path, profile: Profile) -> Result<Chart> {
    let top = path.join("Chart.yaml");
    if profile == Profile::Helm43
        && path.is_dir()
        && let Err(error) = File::open(&top)
    {
        let top = top.display().to_string();
        bail!("unable to detect chart at {top}: {}", go_io_error("open", &top, &error));
    }
    Chart::load(path).map_err(|error| anyhow!(error.text(profile)))
}
