//! The chart that lies in a place.

use std::fs::File;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use catamaran_chart::{Chart, LoadError, Profile, go_io_error};

/// What reads a chart: [`Chart::load`], or [`Chart::load_without_crds`] for who needs no CRDs.
pub(crate) type Loader = fn(&Path) -> Result<Chart, LoadError>;

/// Reads a chart to render it; the error is Helm's text.
pub(crate) fn load(path: &Path, profile: Profile, load: Loader) -> Result<Chart> {
    let top = path.join("Chart.yaml");
    if profile == Profile::Helm43
        && path.is_dir()
        && let Err(error) = File::open(&top)
    {
        let top = top.display().to_string();
        bail!("unable to detect chart at {top}: {}", go_io_error("open", &top, &error));
    }
    load(path).map_err(|error| anyhow!(error.text(profile)))
}
