//! What every command that renders a chart is told: where it comes from, and how it is rendered.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use catamaran_chart::{Budget, Chart, CompiledChart, Profile, RenderError};
use catamaran_repository::Finder;
use clap::Args;

use super::Loader;
use super::flags::{GlobalArgs, ProfileArgs};
use crate::dependency;
use crate::post_renderer::PostRendererArgs;
use crate::source::SourceArgs;

/// How a chart is found and rendered.
#[derive(Args, Debug)]
pub(crate) struct RenderingArgs {
    /// Do not check the values against values.schema.json
    #[arg(long, help_heading = "Checks")]
    skip_schema_validation: bool,
    #[command(flatten)]
    helm: ProfileArgs,
    /// How much a rendering may use, where the defaults are not right (docs/limits.md)
    #[arg(
        long,
        value_name = "LIMITS",
        default_value = "",
        hide_default_value = true,
        help_heading = "Checks"
    )]
    pub render_limits: Budget,

    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    pub global: GlobalArgs,
    /// Fetch the charts that are missing in charts/ first
    #[arg(long, help_heading = "Repositories")]
    dependency_update: bool,
    #[command(flatten)]
    pub post_renderer: PostRendererArgs,
}

impl RenderingArgs {
    /// The Helm to follow.
    pub(crate) fn profile(&self) -> Profile {
        self.helm.profile
    }

    /// What finds charts, and where the one at `place` lies by now.
    pub(crate) fn locate(&self, place: &str) -> Result<(Finder, PathBuf)> {
        let finder = self.source.finder(&self.global.files, self.profile());
        let path = self.source.locate(&finder, place)?;
        Ok((finder, path))
    }

    /// The chart at a path; what it misses is an error, or with `--dependency-update` fetched first.
    /// Tells of a chart that is deprecated.
    pub(crate) fn open(&self, path: &Path, finder: &Finder, load: Loader) -> Result<Chart> {
        let chart = self.load(path, load)?;
        if chart.is_library() {
            return Ok(chart);
        }
        if chart.metadata.deprecated {
            eprintln!("{}", super::deprecated(self.profile()));
        }
        let missing = chart.missing_dependencies();
        if missing.is_empty() {
            return Ok(chart);
        }
        if !self.dependency_update {
            return Err(anyhow!(RenderError::MissingDependencies(missing).text(self.profile())));
        }
        dependency::update(path, finder)?;
        self.load(path, load)
    }

    /// A chart that was opened, ready to be rendered.
    pub(crate) fn compile(&self, chart: Chart) -> Result<CompiledChart> {
        chart.compile().map_err(|error| anyhow!(error.text(self.profile())))
    }

    fn load(&self, path: &Path, load: Loader) -> Result<Chart> {
        let chart = super::load(path, self.profile(), load)?;
        Ok(if self.skip_schema_validation { chart.without_schemas() } else { chart })
    }
}
