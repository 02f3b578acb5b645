//! `catamaran generate`: what a project needs besides its charts.

mod definitions;
mod kinds;
mod probe;
mod role;
mod scan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catamaran_operator::watches::{self, KindBackend, OverrideTypes};
use clap::{Args, Subcommand};

use role::Role;

/// Writes what a project needs besides its charts.
#[derive(Subcommand)]
pub(crate) enum GenerateCommand {
    /// Print the least role for the kinds of a watches.yaml
    ///
    /// The charts are rendered with their defaults, with the samples in config/samples or deploy, and with
    /// each of their toggles on, and their templates are read for kinds and lookups that no rendering
    /// shows. What cannot be known so is said in comments: read them.
    #[command(after_help = EXAMPLES)]
    Rbac(RbacArgs),
}

const EXAMPLES: &str = "\
Examples:
  catamaran generate rbac > config/rbac/role.yaml
  catamaran generate rbac --watches-file deploy/watches.yaml --name my-role";

/// Flags of `catamaran generate rbac`.
#[derive(Args)]
pub(crate) struct RbacArgs {
    /// The watches.yaml
    #[arg(long, value_name = "FILE", default_value = "watches.yaml")]
    watches_file: PathBuf,

    /// The role's name
    #[arg(long, value_name = "NAME", default_value = "manager-role")]
    name: String,

    /// A Role for one namespace, without rights to what lies in none; the default is a `ClusterRole`
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

/// Runs a command.
pub(crate) fn run(command: &GenerateCommand) -> ExitCode {
    let GenerateCommand::Rbac(args) = command;
    match rbac(args) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn rbac(args: &RbacArgs) -> Result<String, String> {
    let watches = watches::load_charts(&args.watches_file, OverrideTypes::Strings)
        .map_err(|error| error.to_string())?;
    let mut role = Role::new(&args.name, args.namespace.as_deref());
    let folder = args.watches_file.parent().unwrap_or(Path::new(""));
    let defined = definitions::of_project(folder);
    role.knows(&defined);
    let code = args.watches_file.with_file_name("src").join("main.rs");
    if code.exists() {
        role.unknown(format!(
            "what {} adds to charts: references, its own requests",
            code.display()
        ));
    }
    let mut accounts: BTreeMap<&str, Role> = BTreeMap::new();
    for watch in &watches {
        role.carries(&watch.gvk);
        if let Some(place) = &watch.storage_namespace
            && args.namespace.as_ref().is_some_and(|namespace| namespace != place)
        {
            role.unknown(format!(
                "the same rights to secrets in namespace {place}: records are there"
            ));
        }
        let KindBackend::Chart(chart) = &watch.backend else {
            let gvk = &watch.gvk;
            role.unknown(format!("what the reconciler of {}.{} does", gvk.kind, gvk.group));
            continue;
        };
        let mut samples = definitions::samples(folder, &watch.gvk);
        samples.insert(0, serde_json::Map::new());
        let samples: Vec<_> =
            samples.into_iter().map(|spec| watch.overrides.apply_to(spec)).collect();
        let mut found = probe::probe(chart, &samples);
        found.scope = watch.scope;
        let Some(account) = &watch.service_account else {
            role.keeps_records();
            role.takes_in(&watch.gvk.kind, found);
            continue;
        };
        role.impersonates(account);
        role.watches(&found);
        let of_account = accounts.entry(account).or_insert_with(|| {
            let mut role = Role::of_account(account, args.namespace.as_deref());
            role.knows(&defined);
            role
        });
        of_account.serves(&watch.gvk);
        of_account.takes_in(&watch.gvk.kind, found);
    }
    Ok(accounts.into_values().fold(role.print(), |text, role| text + &role.print()))
}
