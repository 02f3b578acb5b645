//! From a chart to manifests: a pure function.

mod cache;
mod capabilities;
mod engine;
mod errors;
mod files;
pub(crate) mod functions;
mod glob;
mod hbs;
mod input;
mod objects;
mod seed;
mod standalone;
mod templates;
mod trace;
mod values_type;

pub use capabilities::{ApiVersions, Capabilities, KubeVersion};
pub use catamaran_gotemplate::{Budget, RandomSeed};
pub(crate) use engine::render_for_lint;
pub use input::{LookupKey, Lookups, ReleaseFacts, RenderInput};
pub use seed::fresh_seed;
pub use standalone::{standalone, standalone_with_environment};
pub use trace::{Frame, Missing, Trace};

use std::sync::Arc;

use crate::{Chart, Metadata, PostRenderers, Profile, RenderError, Rendered};

/// The name under which a template's text is known: without `.hbs` where the chart has Handlebars.
pub(crate) fn output_name<'n>(chart: &Chart, template: &'n str) -> &'n str {
    match hbs::Mode::of(&chart.metadata) {
        Ok(hbs::Mode::Off) | Err(_) => template,
        Ok(_) => hbs::output_name(template),
    }
}

/// A chart that is ready to be rendered any number of times: plain data,
/// shared by every resource of its kind. Cheap to clone.
///
/// Templates are parsed once for each set of subcharts that takes part.
#[derive(Clone, Debug)]
pub struct CompiledChart(Arc<Inner>, PostRenderers);

#[derive(Debug)]
struct Inner {
    chart: Chart,
    cache: cache::Cache,
}

impl Chart {
    /// Makes the chart ready to be rendered any number of times.
    ///
    /// # Errors
    ///
    /// What cannot be rendered with any values: a library chart, dependencies
    /// that are missing. Templates that do not parse are told by
    /// [`CompiledChart::check`] and [`CompiledChart::render`], because the
    /// functions they may use depend on the profile.
    pub fn compile(self) -> Result<CompiledChart, RenderError> {
        let missing = self.missing_dependencies();
        if missing.is_empty() || !self.is_application() {
            return self.compile_incomplete();
        }
        Err(RenderError::MissingDependencies(missing))
    }

    /// The dependencies of Chart.yaml that are not under `charts/`, by name.
    pub fn missing_dependencies(&self) -> Vec<String> {
        let there = |name: &String| self.dependencies.iter().any(|child| child.name() == name);
        let wanted = self.metadata.dependencies.iter().map(|dependency| &dependency.name);
        wanted.filter(|name| !there(name)).cloned().collect()
    }

    fn is_application(&self) -> bool {
        matches!(self.metadata.kind.as_str(), "" | "application")
    }

    /// [`Chart::compile`] whatever dependencies are missing: they are left out, as by Helm's library,
    /// on which operators stand; only its commands look.
    ///
    /// # Errors
    ///
    /// The chart is a library.
    pub fn compile_incomplete(self) -> Result<CompiledChart, RenderError> {
        if !self.is_application() {
            return Err(RenderError::NotInstallable(self.metadata.kind));
        }
        let mut inner = Arc::new(Inner { chart: self, cache: cache::Cache::default() });
        if let Some(inner) = Arc::get_mut(&mut inner) {
            // Only now: what is kept is found again by where the chart lies.
            inner.cache = cache::Cache::of(&inner.chart);
        }
        Ok(CompiledChart(inner, PostRenderers::default()))
    }
}

impl CompiledChart {
    /// The chart as it was loaded.
    pub fn chart(&self) -> &Chart {
        &self.0.chart
    }

    /// Its Chart.yaml.
    pub fn metadata(&self) -> &Metadata {
        &self.0.chart.metadata
    }

    /// The same chart, whose renderings go through post-renderers.
    #[must_use]
    pub fn with_post_renderers(self, steps: PostRenderers) -> Self {
        Self(self.0, steps)
    }

    /// Parses the templates for a profile, those of subcharts that may be
    /// disabled included, so that a mistake shows at the start rather than with
    /// the first resource.
    ///
    /// # Errors
    ///
    /// [`RenderError::Parse`].
    pub fn check(&self, profile: Profile) -> Result<(), RenderError> {
        engine::check(&self.0.chart, &self.0.cache, profile)
    }

    /// Renders. Pure, if post-renderers are: the same input gives the same
    /// output, and nothing is read or fetched.
    ///
    /// # Errors
    ///
    /// [`RenderError::Needs`] asks for objects to look up; everything else is
    /// the fault of chart or values.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
        engine::render(&self.0.chart, &self.0.cache, &self.1, input)
    }
}
