//! `catamaran template`: a chart rendered to standard output, as `helm template` does it.

mod args;
mod output;
mod usage;
mod values;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, anyhow, bail};
use catamaran_chart::render::standalone;
use catamaran_chart::{
    Capabilities, Chart, KubeVersion, Lookups, Profile, ReleaseFacts, RenderError, RenderInput,
    Rendered, fresh_seed,
};

pub(crate) use args::{TemplateArgs, with_helms_manners};
pub(crate) use usage::exit as exit_with_usage;

/// Runs the command. `namespace` tells the namespace of the current context, and is asked only if
/// no flag names one.
pub(crate) fn run(args: &TemplateArgs, namespace: impl FnOnce() -> String) -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = template(args, namespace, &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads us has seen enough: `| head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn template(
    args: &TemplateArgs,
    namespace: impl FnOnce() -> String,
    out: &mut impl io::Write,
) -> Result<()> {
    let profile = args.profile;
    if args.places.is_empty() {
        bail!(
            "\"catamaran template\" requires at least 1 argument\n\nUsage:  catamaran template [NAME] [CHART] [flags]"
        );
    }
    let capabilities = capabilities(args)?;
    refuse(args)?;
    let (name, place) = name_and_chart(args)?;
    let path = locate(&place)?;
    let values = values::gather(&args.values, profile)?;
    let mut chart = load(&path, profile)?;
    if args.skip_schema_validation {
        chart = chart.without_schemas();
    }
    let chart = chart.compile().map_err(|error| anyhow!(error.text(profile)))?;
    check_name(&name, profile)?;
    let namespace =
        args.namespace.clone().filter(|name| !name.is_empty()).unwrap_or_else(namespace);
    let release = ReleaseFacts { name, namespace, revision: 1, is_install: !args.is_upgrade };
    let rendered = chart.render(&RenderInput {
        values: &values,
        release: &release,
        capabilities: &capabilities,
        profile,
        lookups: &Lookups::offline(),
        clock: SystemTime::now(),
        seed: fresh_seed(),
        budget: args.render_limits,
    });
    let rendered = rendered.map_err(|error| explain(&error, profile))?;
    warn(&rendered);
    output::print(args, &release.name, &rendered, out)
}

/// What Helm would log.
fn warn(rendered: &Rendered) {
    for warning in &rendered.warnings {
        eprintln!("level=WARN msg={warning:?}");
    }
}

fn capabilities(args: &TemplateArgs) -> Result<Capabilities> {
    let mut capabilities = Capabilities::offline(args.profile);
    if let Some(text) = args.kube_version.as_deref().filter(|text| !text.is_empty()) {
        capabilities.kube_version = KubeVersion::parse(text, args.profile).ok_or_else(|| {
            anyhow!("invalid kube version '{text}': {}", no_version(text, args.profile))
        })?;
    }
    capabilities.api_versions.extend(args.api_versions.iter().cloned());
    Ok(capabilities)
}

/// Why a text is no version.
fn no_version(text: &str, profile: Profile) -> String {
    let digits = text.strip_prefix('v').unwrap_or(text);
    match profile {
        Profile::Helm318 => "Invalid Semantic Version".to_owned(),
        Profile::Helm43 if digits.chars().all(|c| c.is_ascii_digit()) => {
            format!("illegal version string {text:?}")
        }
        Profile::Helm43 => format!("could not parse {text:?} as version"),
    }
}

/// Refuses what is not done yet, rather than print something else than asked for.
fn refuse(args: &TemplateArgs) -> Result<()> {
    let refused = &args.refused;
    let asked = [
        (refused.validate, "--validate"),
        (refused.dependency_update, "--dependency-update"),
        (refused.verify, "--verify"),
        (refused.enable_dns, "--enable-dns"),
        (refused.repo.is_some(), "--repo"),
        (refused.post_renderer.is_some(), "--post-renderer"),
    ];
    if let Some((_, flag)) = asked.into_iter().find(|(asked, _)| *asked) {
        bail!("{flag} is not supported yet");
    }
    match refused.dry_run.as_deref() {
        None | Some("client" | "unset" | "true") => Ok(()),
        Some("server") => bail!("--dry-run=server is not supported yet"),
        // Helm 3 takes it for what `template` does anyway.
        Some("none" | "false") if args.profile == Profile::Helm318 => Ok(()),
        Some(value @ ("none" | "false")) => {
            bail!("invalid dry-run value ({value:?}). Must be \"server\" or \"client\"")
        }
        Some(value) => {
            bail!("invalid dry-run value ({value:?}). Must be \"none\", \"server\", or \"client\"")
        }
    }
}

fn name_and_chart(args: &TemplateArgs) -> Result<(String, String)> {
    let template = args.name_template.as_deref().filter(|text| !text.is_empty());
    match args.places.as_slice() {
        [name, chart] => {
            if args.generate_name {
                bail!("cannot set --generate-name and also specify a name");
            }
            if template.is_some() {
                bail!("cannot set --name-template and also specify a name");
            }
            Ok((name.clone(), chart.clone()))
        }
        [chart] => Ok((template.map_or(Ok("release-name".to_owned()), made_name)?, chart.clone())),
        [_, _, more @ ..] => {
            bail!("expected at most two arguments, unexpected arguments: {}", more.join(", "))
        }
        [] => bail!("\"catamaran template\" requires at least 1 argument"),
    }
}

/// Runs `--name-template`.
fn made_name(text: &str) -> Result<String> {
    Ok(standalone("name-template", text, SystemTime::now(), fresh_seed())?)
}

/// A folder or a file; names in repositories and registries are for later.
fn locate(place: &str) -> Result<PathBuf> {
    let path = Path::new(place.trim());
    if path.exists() {
        return Ok(std::path::absolute(path)?);
    }
    if path.is_absolute() || place.trim().starts_with('.') {
        bail!("path {place:?} not found");
    }
    bail!("{place}: there is no such path, and charts of repositories are not supported yet")
}

fn load(path: &Path, profile: Profile) -> Result<Chart> {
    let top = path.join("Chart.yaml");
    if profile == Profile::Helm43
        && path.is_dir()
        && let Err(error) = std::fs::File::open(&top)
    {
        let top = top.display().to_string();
        bail!("unable to detect chart at {top}: {}", go_error("open", &top, &error));
    }
    Chart::load(path).map_err(|error| anyhow!(error.text(profile)))
}

/// Names that Kubernetes takes as a label: dotted lower-case words, 53 characters in all.
fn check_name(name: &str, profile: Profile) -> Result<()> {
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
    bail!(
        "{before}release name {name:?}: invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
    )
}

/// Once there is a release, Helm adds a hint.
fn explain(error: &RenderError, profile: Profile) -> anyhow::Error {
    let text = error.text(profile);
    match error {
        RenderError::Values(_)
        | RenderError::Schema(_)
        | RenderError::ApiVersion(_)
        | RenderError::Unsupported { .. } => {
            anyhow!(text)
        }
        _ => anyhow!("{text}\n\nUse --debug flag to render out invalid YAML"),
    }
}

/// `open values.yaml: no such file or directory`, as Go tells errors of the system.
fn go_error(verb: &str, path: &str, error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    format!("{verb} {path}: {}{}", first.map(String::from).unwrap_or_default(), chars.as_str())
}
