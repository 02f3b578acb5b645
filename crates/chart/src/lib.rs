//! A chart: load, values, capabilities, render to manifests.
//!
//! ```text
//! Chart::load(path)            a directory or a .tgz, read and validated
//!   .compile()                 templates parsed once; Send + Sync, shared behind an Arc
//!   .render(&RenderInput)      pure: (chart, values, release, capabilities, lookups, clock, seed) -> Rendered
//! ```
//!
//! Everything follows the real `helm`, in one of two [`Profile`]s. What is not
//! supported is a clear error ([`RenderError::ApiVersion`],
//! [`RenderError::Unsupported`]), never a wrong manifest.
//!
//! A `lookup` whose answer is not in [`Lookups`] ends the rendering with
//! [`RenderError::Needs`]; fetch the objects, add them, and render again with
//! the same clock and seed.

mod chart;
mod error;
mod gojson;
pub mod gopath;
pub mod lint;
pub mod load;
mod log_line;
pub mod manifest;
mod profile;
pub mod reference;
pub mod render;
mod share;
pub mod values;

pub use catamaran_sprig::{Drawn, RandomCall, RandomOverride, RandomOverrides, RandomText};
pub use chart::{Chart, Crd, Dependency, File, Lock, Maintainer, Metadata, chart_yaml};
pub use error::{LoadError, ManifestError, Position, RenderError};
pub use gojson::kind as json_kind;
pub use gopath::go_io_error;
pub use manifest::{Hook, Manifest, PostRender, PostRenderers, Rendered};
pub use profile::Profile;
pub use render::{
    ApiVersions, Budget, Capabilities, CompiledChart, KubeVersion, LookupKey, Lookups, RandomSeed,
    ReleaseFacts, RenderInput, fresh_seed,
};
pub use values::coalesce;
