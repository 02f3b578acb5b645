//! `catamaran show`: what is in a chart, as `helm show` prints it.

mod jsonpath;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use catamaran_chart::{Chart, Profile};
use clap::{Args, Subcommand};

use crate::charts;
use crate::charts::flags::{GlobalArgs, ProfileArgs};
use crate::source::SourceArgs;

/// Show what is in a chart, as `helm show` does
#[derive(Args, Debug)]
#[command(
    disable_version_flag = true,
    disable_help_subcommand = true,
    visible_alias = "inspect",
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
pub(crate) struct ShowArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// All of the following
    #[command(disable_version_flag = true)]
    All(Common),
    /// Chart.yaml, as it is understood
    #[command(disable_version_flag = true)]
    Chart(Common),
    /// The files of crds/, those of subcharts included
    #[command(disable_version_flag = true)]
    Crds(Common),
    /// The README
    #[command(disable_version_flag = true)]
    Readme(Common),
    /// values.yaml as it is written, or a part of the values
    #[command(disable_version_flag = true)]
    Values(ValuesCommand),
}

#[derive(Args, Debug)]
struct Common {
    /// The chart: a folder or a .tgz
    #[arg(value_name = "CHART")]
    places: Vec<String>,
    #[command(flatten)]
    helm: ProfileArgs,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Args, Debug)]
struct ValuesCommand {
    #[command(flatten)]
    common: Common,
    /// Print what this finds in the values, as kubectl's -o jsonpath: '{.image.tag}'
    #[arg(long, value_name = "TEMPLATE", help_heading = "Output")]
    jsonpath: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  catamaran show values ./chart > my-values.yaml
  catamaran show values ./chart --jsonpath '{.image.repository}:{.image.tag}'
  catamaran show chart ./chart-1.2.3.tgz";

/// Runs the command.
pub(crate) fn run(args: &ShowArgs) -> ExitCode {
    let nothing = None;
    let (part, common, jsonpath) = match &args.what {
        What::All(common) => (Part::All, common, &nothing),
        What::Chart(common) => (Part::Chart, common, &nothing),
        What::Crds(common) => (Part::Crds, common, &nothing),
        What::Readme(common) => (Part::Readme, common, &nothing),
        What::Values(values) => (Part::Values, &values.common, &values.jsonpath),
    };
    charts::print(|out| show(part, common, jsonpath.as_deref(), out))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Chart,
    Values,
    Readme,
    Crds,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Chart => "chart",
            Self::Values => "values",
            Self::Readme => "readme",
            Self::Crds => "crds",
        }
    }

    fn has(self, part: Self) -> bool {
        self == part || self == Self::All
    }
}

fn show(part: Part, common: &Common, jsonpath: Option<&str>, out: &mut impl Write) -> Result<()> {
    let [place] = common.places.as_slice() else {
        let usage = format!("show {} [CHART] [flags]", part.name());
        return Err(charts::wrong_count("requires 1 argument", &usage));
    };
    let profile = common.helm.profile;
    let finder = common.source.finder(&common.global.files, common.helm.profile);
    let path = common.source.locate(&finder, place)?;
    // Helm's own loader, which says what is wrong with an archive in Helm 4 as well.
    let chart = Chart::inspect(&path).map_err(|error| match error {
        error @ catamaran_chart::LoadError::Archive(_) => {
            anyhow!(error.text_of_look(Profile::Helm318))
        }
        error => anyhow!(error.text_of_look(profile)),
    })?;
    let mut text = Vec::new();
    if part.has(Part::Chart) {
        text.extend(catamaran_chart::chart_yaml(&chart.metadata)?.into_bytes());
        text.push(b'\n');
    }
    if part.has(Part::Values) {
        values(part, &chart, jsonpath.filter(|path| !path.is_empty()), &mut text)?;
    }
    if part.has(Part::Readme) {
        readme(part, &chart, &mut text);
    }
    if part.has(Part::Crds) {
        crds(part, &chart, profile, &mut text);
    }
    Ok(out.write_all(&text)?)
}

fn values(part: Part, chart: &Chart, jsonpath: Option<&str>, text: &mut Vec<u8>) -> Result<()> {
    let Some(file) = &chart.values_text else { return Ok(()) };
    if part == Part::All {
        text.extend(b"---\n");
    }
    let Some(path) = jsonpath else {
        text.extend_from_slice(file);
        text.push(b'\n');
        return Ok(());
    };
    let values = chart.all_values();
    let template = jsonpath::Template::parse(path)
        .map_err(|error| anyhow!("error parsing jsonpath {path}: {error}"))?;
    // Helm prints what it has found until something is missing, and says nothing about that.
    text.extend(template.print(&values.into()).into_bytes());
    Ok(())
}

fn readme(part: Part, chart: &Chart, text: &mut Vec<u8>) {
    let is_readme = |name: &str| {
        ["readme.md", "readme.txt", "readme"].iter().any(|readme| readme.eq_ignore_ascii_case(name))
    };
    let Some(file) = chart.files.iter().find(|file| is_readme(&file.name)) else { return };
    if part == Part::All {
        text.extend(b"---\n");
    }
    text.extend_from_slice(&file.data);
    text.push(b'\n');
}

fn crds(part: Part, chart: &Chart, profile: Profile, text: &mut Vec<u8>) {
    for (at, crd) in chart.crds().iter().enumerate() {
        let parted = match profile {
            Profile::Helm318 => at == 0 && part == Part::All,
            Profile::Helm43 => true,
        };
        if parted && !crd.data.starts_with(b"---") {
            text.extend(b"---\n");
        }
        text.extend_from_slice(&crd.data);
        text.push(b'\n');
    }
}
