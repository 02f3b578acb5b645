//! `catamaran template`: a chart rendered to standard output, as `helm template` does it.

mod args;
mod output;

use std::io;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, bail};
use catamaran_chart::{
    Capabilities, Chart, KubeVersion, Lookups, Profile, ReleaseFacts, RenderInput, fresh_seed,
};

pub(crate) use args::TemplateArgs;

use crate::charts::cluster::{self, Cluster};
use crate::charts::{self, Loader, flags, slices};
use crate::explain::Style;

/// Runs the command.
pub(crate) fn run(args: &TemplateArgs) -> ExitCode {
    charts::print(|out| template(args, out))
}

fn template(args: &TemplateArgs, out: &mut impl io::Write) -> Result<()> {
    let profile = args.rendering.profile();
    if args.places.is_empty() {
        let usage = "template [NAME] [CHART] [flags]";
        return Err(charts::wrong_count("requires at least 1 argument", usage));
    }
    let kube_version = charts::kube_version(args.kube_version.as_deref(), profile)?;
    let asks = asks(args)?;
    let steps = args.rendering.post_renderer.steps(profile)?;
    let (name, place) = name_and_chart(args)?;
    let (finder, path) = args.rendering.locate(&place)?;
    let values = charts::values(&args.values, &finder, profile)?;
    let load: Loader = if args.include_crds { Chart::load } else { Chart::load_without_crds };
    let chart = args.rendering.compile(args.rendering.open(&path, &finder, load)?)?;
    let chart = chart.with_post_renderers(steps);
    let connect = || Cluster::connect(&args.rendering.global.cluster).map_err(cluster::checked);
    let cluster = (asks.lookups || asks.abilities).then(connect).transpose()?;
    charts::check_name(&name, profile)?;
    let namespace = args.rendering.global.cluster.namespace();
    let release = ReleaseFacts { name, namespace, revision: 1, is_install: !args.is_upgrade };
    let capabilities = match &cluster {
        Some(cluster) if asks.abilities => cluster.capabilities().map_err(cluster::checked)?,
        _ => offline(args, kube_version),
    };
    let lookups = if asks.lookups { Lookups::online() } else { Lookups::offline() };
    let input = RenderInput {
        values: &values,
        release: &release,
        capabilities: &capabilities,
        profile,
        lookups: &if args.enable_dns { lookups.with_hosts() } else { lookups },
        clock: SystemTime::now(),
        seed: fresh_seed(),
        random_overrides: None,
        budget: args.rendering.render_limits,
    };
    let rendered = match cluster::render(&chart, &input, cluster.as_ref())? {
        Ok(rendered) => rendered,
        Err(error) => {
            charts::warn(&chart.warnings(&input));
            let mut raw = Vec::new();
            let text = charts::failed(&args.rendering.global, profile, &error, &mut raw)?;
            output::print_raw(args, &raw, out)?;
            let style = Style::of(&args.rendering.global);
            return Err(style.explain(text, &error, chart.chart(), &args.values));
        }
    };
    charts::warn(&rendered.warnings);
    if let Some(cluster) = cluster.as_ref().filter(|_| asks.abilities) {
        if profile == Profile::Helm43 && !args.ignored.skip_crds && !rendered.crds.is_empty() {
            eprintln!(
                "level=WARN msg=\"This chart or one of its subcharts contains CRDs. Rendering may fail or contain inaccuracies.\""
            );
        }
        cluster.check_kinds(&rendered)?;
    }
    let printed = output::print(args, &release.name, &rendered, out);
    // The process ends: what it holds need not be given back piece by piece.
    std::mem::forget((chart, rendered));
    printed
}

fn offline(args: &TemplateArgs, kube_version: Option<KubeVersion>) -> Capabilities {
    let mut capabilities = Capabilities::offline(args.rendering.profile());
    if let Some(version) = kube_version {
        capabilities.kube_version = version;
    }
    capabilities.api_versions.extend(slices::all(&args.api_versions));
    capabilities
}

/// What a cluster is asked for.
struct Asks {
    /// Its versions, and whether it serves what is rendered.
    abilities: bool,
    /// What `lookup` finds.
    lookups: bool,
}

/// What `--dry-run` and `--validate` ask for: with Helm 4 both the same, with Helm 3 the one lookups
/// and the other all else.
fn asks(args: &TemplateArgs) -> Result<Asks> {
    if args.rendering.profile() == Profile::Helm318 {
        let lookups = match args.dry_run.as_deref() {
            Some("server") => true,
            None | Some("client" | "unset" | "none" | "true" | "false") => false,
            Some(_) => bail!(
                "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server"
            ),
        };
        return Ok(Asks { abilities: args.validate, lookups });
    }
    let asked = match args.dry_run.as_deref() {
        None | Some("client") => false,
        Some("server") => true,
        Some("unset") => {
            deprecated_flag(
                "--dry-run is deprecated and should be replaced with '--dry-run=client'",
            );
            false
        }
        Some(value) => match flags::go_bool(value) {
            Ok(true) => {
                deprecated_flag(
                    "boolean '--dry-run=true' flag is deprecated and must be replaced with '--dry-run=client'",
                );
                false
            }
            Err(_) if value != "none" => bail!(
                "invalid dry-run value ({value:?}). Must be \"none\", \"server\", or \"client\""
            ),
            _ => bail!("invalid dry-run value ({value:?}). Must be \"server\" or \"client\""),
        },
    };
    let asked = asked || args.validate;
    Ok(Asks { abilities: asked, lookups: asked })
}

fn deprecated_flag(text: &str) {
    eprintln!("level=WARN msg={text:?}");
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
        [chart] => {
            Ok((template.map_or(Ok("release-name".to_owned()), charts::made_name)?, chart.clone()))
        }
        [_, _, more @ ..] => {
            bail!("expected at most two arguments, unexpected arguments: {}", more.join(", "))
        }
        [] => bail!("\"catamaran template\" requires at least 1 argument"),
    }
}
