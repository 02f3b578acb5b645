//! `catamaran`: the operator for people who only have charts, and the tools around it.

mod actions;
mod charts;
mod context;
mod dependency;
mod explain;
mod generate;
mod heap;
mod helm_operator;
mod lint;
mod post_renderer;
mod show;
mod source;
mod template;

use std::ffi::OsString;
use std::process::ExitCode;

use actions::{
    HistoryArgs, InstallArgs, RollbackArgs, StatusArgs, TestArgs, UninstallArgs, UpgradeArgs,
};
use catamaran_operator::{Manager, Options};
use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use dependency::DependencyCommand;
use generate::GenerateCommand;
use lint::LintArgs;
use show::ShowArgs;
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
    ///
    /// It takes the place of `helm-operator run`: with the flags, files and variables of any project of
    /// operator-sdk's Helm operator.
    #[command(after_help = RUN_EXAMPLES, alias = "exec-entrypoint")]
    Run {
        #[command(flatten)]
        options: Options,
        /// `run helm`, as it was called once: what is no flag changes nothing.
        #[arg(hide = true)]
        ignored: Vec<String>,
    },
    /// Tell the version, in the form of `helm-operator version`
    Version,
    Install(Box<InstallArgs>),
    Upgrade(Box<UpgradeArgs>),
    Rollback(RollbackArgs),
    #[command(visible_aliases = ["del", "delete", "un"])]
    Uninstall(UninstallArgs),
    Test(TestArgs),
    Status(StatusArgs),
    #[command(visible_alias = "hist")]
    History(HistoryArgs),
    Template(Box<TemplateArgs>),
    Lint(Box<LintArgs>),
    Show(Box<ShowArgs>),
    #[command(subcommand, visible_aliases = ["dep", "dependencies"])]
    Dependency(DependencyCommand),
    #[command(subcommand)]
    Generate(GenerateCommand),
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

fn main() -> ExitCode {
    match parse().command {
        Command::Run { options, .. } => {
            heap::for_long();
            run(options)
        }
        Command::Version => helm_operator::version(),
        Command::Install(args) => actions::install(&args),
        Command::Upgrade(args) => actions::upgrade(&args),
        Command::Rollback(args) => actions::rollback(&args),
        Command::Uninstall(args) => actions::uninstall(&args),
        Command::Test(args) => actions::test(&args),
        Command::Status(args) => actions::status(&args),
        Command::History(args) => actions::history(&args),
        Command::Template(args) => template::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Dependency(command) => dependency::run(&command),
        Command::Generate(command) => generate::run(&command),
    }
}

/// Alone in starting a runtime: the other commands would wait for its threads.
#[tokio::main]
async fn run(options: Options) -> ExitCode {
    if let Err(error) = options.init_logging() {
        eprintln!("Error: {error}");
        return ExitCode::FAILURE;
    }
    // As helm-operator had them: projects that move here rely on it.
    let options = options.with_helm_operators_defaults();
    match Manager::new("catamaran", options).run().await {
        Ok(()) => ExitCode::SUCCESS,
        // Without a stack trace, which says nothing of a project's mistakes.
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for; ends the process where that is help, or nothing that can be done.
fn parse() -> Cli {
    let words = helm_operator::arguments();
    let sorted = charts::command_first(words.clone());
    let is_helms = |words: &[OsString]| words.get(1).is_some_and(|first| charts::is_helms(first));
    let (words, is_helms) = if is_helms(&sorted) { (sorted, true) } else { (words, false) };
    let words = if is_helms { charts::in_helms_manner(words) } else { Ok(words) };
    let words = words.unwrap_or_else(|why| refuse(&why));
    let first = words.get(1).and_then(|word| word.to_str());
    if matches!(first, Some("template" | "lint" | "show")) {
        // The flags alone take more than a little.
        heap::for_once();
    }
    let mut matches = command(first).try_get_matches_from(&words);
    if is_helms && matches.as_ref().is_err_and(charts::is_help) {
        // A mistake anywhere counts for more.
        let all = charts::flags::with_help_as_a_switch(command(first)).try_get_matches_from(&words);
        matches = matches.map_err(|help| all.err().filter(charts::is_mistake).unwrap_or(help));
    }
    if is_helms && let Ok(matches) = &matches {
        charts::check_typed(matches).unwrap_or_else(|why| refuse(&why));
    }
    let asked = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    asked.unwrap_or_else(|error| charts::exit_with_usage(&error))
}

/// Ends the process over a command line, as helm does.
fn refuse(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(1)
}

/// Gives a command its flags.
type WithFlags = fn(clap::Command) -> clap::Command;

/// The commands that take helm's flags in helm's manner, and what gives them theirs.
const HELMS: [(&str, WithFlags); 9] = [
    ("install", InstallArgs::augment_args),
    ("upgrade", UpgradeArgs::augment_args),
    ("rollback", RollbackArgs::augment_args),
    ("uninstall", UninstallArgs::augment_args),
    ("test", TestArgs::augment_args),
    ("status", StatusArgs::augment_args),
    ("history", HistoryArgs::augment_args),
    ("template", TemplateArgs::augment_args),
    ("lint", LintArgs::augment_args),
];

/// The command line: the whole of it, or, if `first` is one of helm's commands, that one alone.
/// The flags of all commands take longer to set up than a small chart to render.
fn command(first: Option<&str>) -> clap::Command {
    let manners = charts::flags::with_helms_manners;
    if let Some((name, with_flags)) = HELMS.iter().find(|(name, _)| first == Some(name)) {
        let catamaran = clap::Command::new("catamaran").version(env!("CARGO_PKG_VERSION"));
        let alone = manners(with_flags(clap::Command::new(*name)));
        return catamaran.propagate_version(true).subcommand(alone);
    }
    let mut command = Cli::command();
    for (name, _) in HELMS {
        command = command.mut_subcommand(name, manners);
    }
    for group in ["show", "dependency"] {
        command = command.mut_subcommand(group, |group| group.mut_subcommands(manners));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_alone_is_as_it_is_among_the_others() {
        for (name, _) in HELMS {
            for more in ["--help", "-h", "--version", "--no-such-flag", "--namespace"] {
                let said = |first| {
                    let asked = command(first).try_get_matches_from(["catamaran", name, more]);
                    asked.expect_err("no command does anything for these").to_string()
                };
                assert_eq!(said(Some(name)), said(None), "{name} {more}");
            }
        }
    }
}
