//! The chart that lies in a place.

use std::fs::File;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use catamaran_chart::{Chart, Profile, go_io_error};

/// Loads a chart to render it, with or without the bytes of its CRDs.
pub(crate) fn load(path: &Path, profile: Profile, with_crds: bool) -> Result<Chart> {
    let top = path.join("Chart.yaml");
    if profile == Profile::Helm43
        && path.is_dir()
        && let Err(error) = File::open(&top)
    {
        let top = top.display().to_string();
        bail!("unable to detect chart at {top}: {}", go_io_error("open", &top, &error));
    }
    let load = if with_crds { Chart::load } else { Chart::load_without_crds };
    load(path).map_err(|error| anyhow!(error.text(profile)))
}
