//! From a chart to manifests: a pure function.

mod cache;
mod capabilities;
mod data;
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

use std::sync::{Arc, OnceLock};

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
    /// The same with the files that are unread, once a template has looked at one.
    whole: OnceLock<Arc<Inner>>,
}

impl Inner {
    fn of(chart: Chart) -> Arc<Self> {
        let cache = cache::Cache::default();
        let mut inner = Arc::new(Self { chart, cache, whole: OnceLock::new() });
        if let Some(inner) = Arc::get_mut(&mut inner) {
            // Only now: what is kept is found again by where the chart lies.
            inner.cache = cache::Cache::of(&inner.chart);
        }
        inner
    }
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
        let wanted = self.metadata.dependencies.iter().flatten().map(|dependency| &dependency.name);
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
        Ok(CompiledChart(Inner::of(self), PostRenderers::default()))
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
    /// output, and nothing is read or fetched, unless files of the chart are [`Chart::unread`].
    ///
    /// # Errors
    ///
    /// [`RenderError::Needs`] asks for objects to look up; everything else is
    /// the fault of chart or values.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
        let Inner { chart, cache, whole } = &*self.0;
        if let Some(whole) = whole.get() {
            return Self(whole.clone(), self.1.clone()).render(input);
        }
        if let Some(rendered) = engine::render(chart, cache, &self.1, input)? {
            return Ok(rendered);
        }
        // A pure function: with the same input, all is as if the files had been there at once.
        let read = crate::load::read_unread(chart).map_err(RenderError::Unread)?;
        let whole = whole.get_or_init(|| Inner::of(read));
        Self(whole.clone(), self.1.clone()).render(input)
    }

    /// What Helm logs of the values before it renders, for a rendering that failed; one that succeeds
    /// has it in [`Rendered::warnings`].
    pub fn warnings(&self, input: &RenderInput<'_>) -> Vec<String> {
        engine::warnings(&self.0.chart, &self.0.cache, input)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::UNIX_EPOCH;

    use super::*;

    /// A chart whose CRDs, and those of a chart in it, are large enough to be left.
    fn write(folder: &Path, template: &str) {
        let put = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let crd = |n: usize| format!("kind: CustomResourceDefinition\n# {}\n", "x".repeat(n));
        put("Chart.yaml", "apiVersion: v2\nname: top\nversion: 1.0.0\n");
        put("crds/a.yaml", &crd(200 << 10));
        put("small.txt", "small\n");
        put("templates/a.yaml", template);
        put("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n");
        put("charts/sub/crds/b.yaml", &crd(100 << 10));
        put("charts/sub/small.txt", "sub\n");
    }

    fn rendered(chart: &CompiledChart) -> Result<Rendered, String> {
        let release = ReleaseFacts {
            name: "rel".into(),
            namespace: "default".into(),
            revision: 1,
            is_install: true,
        };
        let input = RenderInput {
            values: &serde_json::Map::new(),
            release: &release,
            capabilities: &Capabilities::offline(Profile::Helm43),
            profile: Profile::Helm43,
            lookups: &Lookups::offline(),
            clock: UNIX_EPOCH,
            seed: 7_u64.into(),
            random_overrides: None,
            budget: Budget::default(),
        };
        let without_crds = |rendered| Rendered { crds: Vec::new(), ..rendered };
        chart.render(&input).map(without_crds).map_err(|error| error.to_string())
    }

    #[test]
    fn crds_are_read_only_for_who_looks_at_them_and_are_then_as_if_they_had_been_there() {
        let mut other = Vec::new();
        for (looks, expression) in [
            (false, r#".Files.Get "small.txt""#),
            (false, r#".Files.Get "crds/none.yaml""#),
            (false, r#"(.Files.Glob "*.txt").AsConfig"#),
            (false, r#".Files.Lines "small.txt""#),
            (false, r#".Subcharts.sub.Files.Get "small.txt""#),
            (false, "kindOf .Files"),
            (false, "typeOf .Files"),
            (false, "toYaml .Values"),
            (true, r#".Files.Get "crds/a.yaml" | sha256sum"#),
            (true, r#".Files.GetBytes "crds/a.yaml" | len"#),
            (true, r#".Files.Lines "crds/a.yaml" | len"#),
            (true, r#".Subcharts.sub.Files.Get "crds/b.yaml" | len"#),
            (true, r#"(.Files.Glob "crds/*").AsConfig | len"#),
            (true, r#"(.Files.Glob "**").AsSecrets | len"#),
            (true, ".Files.AsConfig | sha256sum"),
            (true, "len .Files"),
            (true, "toYaml .Files | sha256sum"),
            (true, "toJson . | len"),
            (true, "toYaml .Subcharts | len"),
            (true, "print .Files | sha256sum"),
            (true, "printf \"%v\" . | len"),
            (true, r#"index .Files "crds/a.yaml" | len"#),
            (false, r#"get .Files "crds/a.yaml" | len"#),
            (false, r#"hasKey .Files "crds/a.yaml""#),
            (false, "keys .Files | sortAlpha"),
            (false, "values .Files | len"),
            (true, "deepCopy .Files | len"),
            (false, r#"omit .Files "crds/a.yaml" | len"#),
            (false, r#"unset .Files "crds/a.yaml" | len"#),
            (true, r#"tpl "{{ len .Files }}" ."#),
            (true, r#"fail (.Files.Get "crds/a.yaml" | sha256sum)"#),
            (true, r#"include (.Files.Get "crds/a.yaml" | sha256sum) ."#),
            (true, "range $key, $value := .Files }}{{ $key }}{{ len $value }}{{ end"),
            (true, "range .Files }}{{ len . }}{{ end"),
            (true, "if .Files }}some{{ end"),
            (true, "with .Files }}some{{ end"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), &format!("a: |-\n  {{{{ {expression} }}}}\n"));
            let whole = Chart::load(folder.path()).unwrap().compile().unwrap();
            let lean = Chart::load_without_crds(folder.path()).unwrap().compile().unwrap();
            assert!(!lean.chart().unread.is_empty());
            assert_eq!(rendered(&lean), rendered(&whole), "{expression}");
            if lean.0.whole.get().is_some() != looks {
                other.push(expression);
            }
            assert_eq!(rendered(&lean), rendered(&whole), "{expression}, again");
        }
        assert!(other.is_empty(), "{other:?}");
    }

    #[test]
    fn a_file_that_is_gone_when_somebody_looks_at_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), r#"a: {{ .Files.Get "crds/a.yaml" | len }}"#);
        let lean = Chart::load_without_crds(folder.path()).unwrap().compile().unwrap();
        fs::remove_file(folder.path().join("crds/a.yaml")).unwrap();
        assert!(rendered(&lean).unwrap_err().contains("crds/a.yaml"));
    }

    #[test]
    fn small_crds_are_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "");
        fs::write(folder.path().join("crds/a.yaml"), "kind: A\n").unwrap();
        assert!(Chart::load_without_crds(folder.path()).unwrap().unread.is_empty());
        assert_eq!(
            Chart::load_without_crds(folder.path()).unwrap(),
            Chart::load(folder.path()).unwrap()
        );
    }
}
