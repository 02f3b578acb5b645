//! `conformance`: proof against the real Helm.

// What is generated should read like what it becomes; a few texts more cost nothing here.
#![allow(clippy::format_push_string, clippy::format_collect)]

mod case;
mod charts;
mod compare;
mod dice;
mod fixtures;
mod generate;
mod oracle;
mod ours;
mod outcome;
mod programs;
mod report;
mod run;
mod shrink;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use catamaran_chart::Profile;
use clap::{Args, Parser, Subcommand};

use run::{Finding, Plan};

/// Compares what we make of charts with what the real Helm makes of them, byte for byte, errors
/// included.
#[derive(Parser)]
#[command(name = "conformance", version, max_term_width = 100)]
struct Arguments {
    /// The folder of the pinned tools: what `hack/tools.sh --oracle path` prints
    #[arg(long, env = "CATAMARAN_TOOLS", global = true, default_value = ".")]
    tools: PathBuf,
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// The fixture charts of `crates/chart`, by the helm commands
    Fixtures {
        /// Only those with this in their name
        #[arg(default_value = "")]
        only: String,
        #[command(flatten)]
        commands: Programs,
    },
    /// Cases that differed once and were mended, with Helm's answers
    Found {
        /// The table
        #[arg(default_value = "crates/conformance/tests/found.jsonl", value_name = "FILE")]
        file: PathBuf,
        /// Take Helm's answers of now into the table
        #[arg(long)]
        write: bool,
    },
    /// Charts of yours, by the helm commands: as they are, and with each of their ci/*.yaml
    Charts {
        /// Charts, .tgz files, or folders of these
        #[arg(required = true)]
        places: Vec<PathBuf>,
        #[command(flatten)]
        commands: Programs,
    },
    /// Generated templates, values and charts, by Helm's own library in a process beside
    Generate(GenerateArgs),
}

#[derive(Args)]
struct Programs {
    /// Our command [default: the one built beside this program]
    #[arg(long, value_name = "FILE")]
    catamaran: Option<PathBuf>,
    /// How many at once
    #[arg(long, default_value_t = 2)]
    workers: usize,
}

#[derive(Args)]
struct GenerateArgs {
    /// How many cases
    #[arg(long, default_value_t = 20_000)]
    cases: u64,
    /// What the cases follow from; the same seed gives the same cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the case of this number
    #[arg(long)]
    only: Option<u64>,
    /// Threads, each with an oracle of its own
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// How many kinds of differences a worker makes small
    #[arg(long, default_value_t = 25)]
    show: usize,
    /// Write each difference into this folder, as a fixture
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Write what was compared, by function, into this file as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Commands::Fixtures { only, commands } => {
            programs::Programs::new(&arguments.tools, commands.catamaran.as_deref())
                .and_then(|programs| fixtures::compare(&programs, only, commands.workers))
        }
        Commands::Found { file, write } => table::check(&arguments.tools, file, *write),
        Commands::Charts { places, commands } => {
            charts::charts(places).and_then(|calls| on_disk(&arguments.tools, commands, &calls))
        }
        Commands::Generate(args) => generate(&arguments.tools, args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn on_disk(tools: &Path, commands: &Programs, calls: &[charts::Call]) -> Result<bool> {
    let programs = programs::Programs::new(tools, commands.catamaran.as_deref())?;
    charts::compare(&programs, calls, commands.workers)
}

/// From as many cases on, a function that was not compared is a failure.
const COMPLETE: u64 = 20_000;

fn generate(tools: &Path, args: &GenerateArgs) -> Result<bool> {
    let cases = args.only.map_or(0..args.cases, |number| number..number + 1);
    let plan = Plan {
        tools: tools.to_owned(),
        cases,
        seed: args.seed,
        workers: args.workers,
        show: args.show,
    };
    let started = Instant::now();
    let (report, findings) = run::run(&plan)?;
    for (at, finding) in findings.iter().enumerate() {
        show(finding, args.seed);
        if let Some(folder) = &args.save {
            finding.difference.case.save(&folder.join(format!("case-{at}-{}", finding.number)))?;
        }
    }
    println!("{}", report.table());
    // A short run cannot reach everything.
    let unseen = if report.cases < COMPLETE { Vec::new() } else { report.unseen() };
    for line in &unseen {
        println!("NOT COMPARED {line}");
    }
    println!(
        "{} cases of seed {} in {:.0?}: {} different, {} that Helm did not survive, {} succeeded on both sides",
        report.cases,
        args.seed,
        started.elapsed(),
        report.different,
        report.crashed,
        report.succeeded
    );
    if let Some(file) = &args.report {
        fs::write(file, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(report.different == 0 && unseen.is_empty())
}

fn show(finding: &Finding, seed: u64) {
    let Finding { number, kind, difference, count } = finding;
    let profile = match difference.case.profile {
        Profile::Helm43 => "4.3",
        Profile::Helm318 => "3.18",
    };
    println!(
        "==== case {number} of seed {seed} ({kind}, {profile}), and {} more like it",
        count - 1
    );
    for file in &difference.case.files {
        let is_plain =
            file.name == "Chart.yaml" && file.data.starts_with(b"apiVersion: v2\nname: c\nv");
        if !is_plain {
            println!("--- {}\n{}", file.name, String::from_utf8_lossy(&file.data));
        }
    }
    for text in &difference.case.values {
        println!("--- values\n{text}");
    }
    let words = difference.case.arguments("");
    if !words.is_empty() {
        println!("--- arguments: {words:?}");
    }
    println!("--- helm\n{}--- ours\n{}", difference.theirs.show(), difference.ours.show());
}
