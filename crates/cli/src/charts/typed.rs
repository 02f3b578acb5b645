//! What helm says of flags when a command line is read, before anything is done.

use std::env;

use catamaran_chart::Profile;
use clap::ArgMatches;
use clap::parser::ValueSource;

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
    if !matches!(matches.try_get_one("profile"), Ok(Some(Profile::Helm318))) {
        warn_of_deprecated(command, matches);
    }
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
