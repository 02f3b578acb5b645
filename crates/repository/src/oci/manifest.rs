//! Manifests: what a chart in a registry consists of.

use serde::Deserialize;

use crate::cache::MAX_CHART_BYTES;
use crate::http::Kind;
use crate::{RepositoryError, provenance};

pub(super) const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
pub(super) const OLD_CHART: &str = "application/tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// What is pulled of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The archive.
    Chart,
    /// What is signed of it.
    Provenance,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Manifest {
    pub media_type: String,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
    pub manifests: Vec<Descriptor>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
}

impl Layer {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Chart => Kind { what: "chart", limit: MAX_CHART_BYTES },
            Self::Provenance => Kind { what: "provenance", limit: provenance::MAX_BYTES },
        }
    }

    /// The media type, and an older one.
    fn media_types(self) -> (&'static str, &'static str) {
        match self {
            Self::Chart => (CHART, OLD_CHART),
            Self::Provenance => (PROVENANCE, PROVENANCE),
        }
    }

    /// The one in a manifest of a chart.
    pub(super) fn of(self, manifest: &Manifest) -> Result<Descriptor, RepositoryError> {
        let (media_type, old) = self.media_types();
        let is_it = |layer: &&Descriptor| [media_type, old].contains(&layer.media_type.as_str());
        let mut layers = manifest.layers.iter().filter(is_it);
        let has_config = manifest.config.media_type == CONFIG;
        let found = 1 + usize::from(has_config) + layers.clone().count();
        let missing = if found < 2 {
            format!(
                "manifest does not contain minimum number of descriptors (2), descriptors found: {found}"
            )
        } else if !has_config {
            format!("could not load config with mediatype {CONFIG}")
        } else {
            format!("manifest does not contain a layer with mediatype {media_type}")
        };
        match layers.next_back() {
            Some(layer) if has_config => Ok(layer.clone()),
            _ => Err(RepositoryError::Registry(missing)),
        }
    }
}
