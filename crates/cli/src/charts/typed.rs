//! What helm says of flags when a command line is read, before anything is done.

use std::env;
use std::ffi::OsStr;

use catamaran_chart::Profile;
use clap::ArgMatches;
use clap::parser::ValueSource;

use super::flags::go_bool;
use crate::actions::wrong_strategy;

/// Says what helm says of the flags of one of its commands.
///
/// # Errors
///
/// What helm does not go on with, in its words.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), String> {
    let Some((mut command, mut matches)) = matches.subcommand() else { return Ok(()) };
    while let Some((name, inner)) = matches.subcommand() {
        (command, matches) = (name, inner);
    }
    let when = match matches.try_get_one::<String>("color") {
        Ok(Some(when)) => Some(when.clone()),
        _ => env::var("HELM_COLOR").ok().filter(|when| !when.is_empty()),
    };
    if let Some(when) = when.filter(|when| !["never", "auto", "always"].contains(&when.as_str())) {
        let why = format!("invalid color mode {when:?}: must be one of: never, auto, always");
        return Err(format!("level=WARN msg=\"command failed\" error={why:?}"));
    }
    let is_helm3 = matches!(matches.try_get_one("profile"), Ok(Some(Profile::Helm318)));
    check_wait(matches, is_helm3)?;
    if !is_helm3 {
        warn_of_deprecated(command, matches);
    }
    Ok(())
}

/// Helm 3's `--wait` is a switch. Helm 4 takes two spellings of one, and would rather not see them.
fn check_wait(matches: &ArgMatches, is_helm3: bool) -> Result<(), String> {
    if !matches!(matches.try_contains_id("wait"), Ok(true)) {
        return Ok(());
    }
    let typed = matches.get_raw("wait").and_then(Iterator::last).and_then(OsStr::to_str);
    let (text, instead) = match typed {
        None | Some("watcher" | "legacy" | "hookOnly") => return Ok(()),
        Some("true") if !is_helm3 => ("true", "watcher"),
        Some("false") if !is_helm3 => ("false", "hookOnly"),
        Some(other) => {
            let read =
                if is_helm3 { go_bool(other).map(|_| ()) } else { Err(wrong_strategy(other)) };
            return read.map_err(|why| {
                format!("Error: invalid argument {other:?} for \"--wait\" flag: {why}")
            });
        }
    };
    let text = format!(
        "--wait={text} is deprecated (boolean value) and can be replaced with --wait={instead}"
    );
    eprintln!("level=WARN msg={text:?}");
    Ok(())
}

/// Warns of flags that Helm 4 would rather not see.
fn warn_of_deprecated(command: &str, matches: &ArgMatches) {
    let typed = matches
        .ids()
        .filter(|id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine));
    for id in typed.map(clap::Id::as_str) {
        let instead = match (command, id) {
            (_, "atomic") => "use --rollback-on-failure instead",
            (_, "force") => "use --force-replace instead",
            ("template", "validate") => "use '--dry-run=server' instead",
            ("template", "hide_notes" | "render_subchart_notes") => {
                "this flag has no effect for 'catamaran template' and will be removed in Helm 5"
            }
            _ => continue,
        };
        eprintln!("Flag --{} has been deprecated, {instead}", id.replace('_', "-"));
    }
}
