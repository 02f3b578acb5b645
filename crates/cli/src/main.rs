//! `catamaran`: the operator for people who only have charts, and the tools around it.

mod context;
mod template;

use std::process::ExitCode;

use anyhow::Result;
use catamaran_operator::watches::OverrideTypes;
use catamaran_operator::{Manager, Options};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use template::TemplateArgs;

/// Helm charts and Rust reconcilers as operators
#[derive(Parser)]
#[command(name = "catamaran", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an operator for the chart kinds of watches.yaml
    ///
    /// For each entry with `chart:` a resource of its kind becomes a Helm release: its name is the
    /// release's name, its spec the values, its namespace the release's. No Rust project is needed.
    /// Entries with `reconciler:` need a program that registers one (see docs/tutorial.md).
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        #[command(flatten)]
        options: Options,
    },
    Template(Box<TemplateArgs>),
}

const RUN_EXAMPLES: &str = "\
Examples:
  catamaran run                                        all kinds of ./watches.yaml, in all namespaces
  WATCH_NAMESPACE=team-a,team-b catamaran run          in two namespaces only
  catamaran run --watches-file deploy/watches.yaml --log-format json

A watches.yaml:
  - group: cache.my.domain
    version: v1alpha1
    kind: Memcached
    chart: helm-charts/memcached";

fn main() -> Result<ExitCode> {
    match parse().command {
        Command::Run { options } => run(options),
        Command::Template(args) => Ok(template::run(&args, context::namespace)),
    }
}

/// Alone in starting a runtime: the other commands would wait for its threads.
#[tokio::main]
async fn run(options: Options) -> Result<ExitCode> {
    options.init_logging().map_err(anyhow::Error::msg)?;
    // As helm-operator had them: projects that move here rely on it.
    let override_values = options.override_values.or(Some(OverrideTypes::Strings));
    let options = Options { override_values, ..options };
    Manager::new("catamaran", options).run().await?;
    Ok(ExitCode::SUCCESS)
}

/// What was asked for; ends the process where that is help, or nothing that can be done.
fn parse() -> Cli {
    let command = Cli::command().mut_subcommand("template", template::with_helms_manners);
    let asked = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    asked.unwrap_or_else(|error| template::exit_with_usage(&error))
}
