//! `catamaran history`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use catamaran_release::Release;
use catamaran_release::record::Time;
use clap::Args;
use serde::Serialize;

use super::flags::{Format, OutputArgs};
use super::show::{ansi, encode};
use super::{missing, release_target::ReleaseTarget};
use crate::charts;
use crate::charts::flags::{GlobalArgs, go_number};

/// Where helm cuts a cell of its tables.
const WIDTH: usize = 100;

/// List the revisions of a release, as `helm history` does
#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// The release's name
    #[arg(value_name = "RELEASE_NAME")]
    names: Vec<String>,
    /// How many revisions, the newest ones
    #[arg(
        long,
        default_value_t = 256,
        value_name = "N",
        help_heading = "Output",
        value_parser = go_number
    )]
    max: usize,
    /// Tell in a column which revision another one was rolled back to
    #[arg(long, help_heading = "Output")]
    show_rollback_revision: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

/// A line of the history, as helm encodes it.
#[derive(Serialize)]
struct Line {
    revision: u32,
    #[serde(skip_serializing_if = "is_never")]
    updated: Time,
    status: String,
    chart: String,
    app_version: String,
    #[serde(skip_serializing_if = "is_zero")]
    rollback_revision: u32,
    description: String,
}

pub(crate) fn run(args: &HistoryArgs) -> ExitCode {
    charts::print(|out| history(args, out))
}

fn history(args: &HistoryArgs, out: &mut impl Write) -> Result<()> {
    let name = super::one(&args.names, "history RELEASE_NAME [flags]")?;
    let history = ReleaseTarget::new(&args.global)?.history(name)?;
    if history.is_empty() {
        return Err(missing());
    }
    let older = history.releases().count().saturating_sub(args.max);
    let lines: Vec<Line> = history.releases().skip(older).map(|it| Line::of(it)).collect();
    match args.output.output {
        Format::Table => table(&lines, args.show_rollback_revision, out),
        format => encode(&lines, format, out),
    }
}

impl Line {
    fn of(release: &Release) -> Self {
        let (chart, app_version) = match release.chart.get("metadata").filter(|it| !it.is_null()) {
            None => ("MISSING".to_owned(), "MISSING".to_owned()),
            Some(metadata) => {
                let app = metadata.get("appVersion").and_then(|version| version.as_str());
                let chart = format!("{}-{}", release.chart_name(), release.chart_version());
                (chart, app.unwrap_or_default().to_owned())
            }
        };
        Self {
            revision: release.version,
            updated: release.info.last_deployed,
            status: release.info.status.to_string(),
            chart,
            app_version,
            rollback_revision: release.info.rollback_revision,
            description: release.info.description.clone(),
        }
    }
}

fn table(lines: &[Line], rollbacks: bool, out: &mut impl Write) -> Result<()> {
    let mut rows: Vec<Vec<String>> = vec![
        ["REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "ROLLBACK", "DESCRIPTION"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(lines.iter().map(|line| {
        let rollback = match line.rollback_revision {
            0 => String::new(),
            revision => revision.to_string(),
        };
        vec![
            line.revision.to_string(),
            ansi(line.updated),
            line.status.clone(),
            line.chart.clone(),
            line.app_version.clone(),
            rollback,
            line.description.replace('\n', " "),
        ]
    }));
    for row in &mut rows {
        if !rollbacks {
            row.remove(5);
        }
        for cell in row.iter_mut().filter(|cell| cell.chars().count() > WIDTH) {
            *cell = cell.chars().take(WIDTH - 3).chain("...".chars()).collect();
        }
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    for row in &rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or_default();
            format!("{cell:<width$}")
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("\t"))?;
    }
    Ok(())
}

fn is_never(time: &Time) -> bool {
    time.0.is_none()
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(revision: &u32) -> bool {
    *revision == 0
}
