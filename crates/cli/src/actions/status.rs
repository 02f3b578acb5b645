//! `catamaran status`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::flags::{Format, OutputArgs};
use super::resources;
use super::show::{Resources, Shown};
use super::{missing, one, release_target::ReleaseTarget};
use crate::charts;
use crate::charts::flags::{GlobalArgs, go_number};

/// Show a release, its objects and its notes, as `helm status` does
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The release's name
    #[arg(value_name = "RELEASE_NAME")]
    names: Vec<String>,
    /// Another revision than the newest
    #[arg(long, value_name = "N", help_heading = "Release", value_parser = go_number)]
    revision: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

pub(crate) fn run(args: &StatusArgs) -> ExitCode {
    charts::print(|out| status(args, out))
}

fn status(args: &StatusArgs, out: &mut impl Write) -> Result<()> {
    let name = one(&args.names, "status RELEASE_NAME [flags]")?;
    let site = ReleaseTarget::new(&args.global)?;
    let history = site.history(name)?;
    let release = match args.revision.filter(|revision| *revision != 0) {
        Some(revision) => u32::try_from(revision).ok().and_then(|it| history.revision(it)),
        None => history.newest(),
    };
    let release = release.ok_or_else(missing)?;
    let resources = match args.output.output {
        Format::Table => Resources::Tables(resources::tables(&site, release)?),
        Format::Json | Format::Yaml => Resources::Objects(resources::objects(&site, release)?),
    };
    Shown { chart: false, resources, ..Shown::new(release) }.print(args.output.output, out)
}
