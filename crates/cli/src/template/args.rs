//! The flags of `helm template`.

use std::path::PathBuf;

use catamaran_chart::{Budget, Profile};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser as _};
use clap::{Arg, ArgAction, Args, Command, ValueEnum};

use crate::post_renderer::PostRendererArgs;
use crate::source::SourceArgs;

/// Render a chart, as `helm template` does
///
/// Takes helm's flags, prints what helm prints, and fails with helm's words. Nothing is asked of a
/// cluster: `lookup` finds nothing.
#[derive(Args, Debug)]
#[command(disable_version_flag = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct TemplateArgs {
    /// The release's name and the chart (a folder or a .tgz); or the chart alone
    #[arg(value_name = "[NAME] CHART")]
    pub places: Vec<String>,

    #[command(flatten)]
    pub values: ValueArgs,

    /// The release's namespace [default: that of the current kubectl context]
    #[arg(short, long, env = "HELM_NAMESPACE", hide_env = true, help_heading = "Release")]
    pub namespace: Option<String>,
    /// Set .Release.IsUpgrade instead of .Release.IsInstall
    #[arg(long, help_heading = "Release")]
    pub is_upgrade: bool,
    /// A template that makes the release's name
    #[arg(long, value_name = "TEMPLATE", help_heading = "Release")]
    pub name_template: Option<String>,
    /// Accepted without effect, as in helm: the name is `release-name` if none is given
    #[arg(short, long, help_heading = "Release")]
    pub generate_name: bool,

    /// The cluster's version that the chart sees
    #[arg(long, value_name = "VERSION", help_heading = "Cluster")]
    pub kube_version: Option<String>,
    /// More API versions that the chart sees: group/version or group/version/Kind
    #[arg(short, long, value_delimiter = ',', value_name = "VERSIONS", help_heading = "Cluster")]
    pub api_versions: Vec<String>,

    /// Print the files of crds/ too
    #[arg(long, help_heading = "Output")]
    pub include_crds: bool,
    /// Print the documents of these templates only; a pattern like `templates/*.yaml`
    #[arg(short, long, value_name = "PATTERN", help_heading = "Output")]
    pub show_only: Vec<String>,
    /// Leave hooks out
    #[arg(long, help_heading = "Output")]
    pub no_hooks: bool,
    /// Leave test hooks out
    #[arg(long, help_heading = "Output")]
    pub skip_tests: bool,
    /// Write files into this folder instead of printing
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub output_dir: Option<PathBuf>,
    /// With --output-dir: inside it, into a folder with the release's name
    #[arg(long, help_heading = "Output")]
    pub release_name: bool,

    /// Do not check the values against values.schema.json
    #[arg(long, help_heading = "Checks")]
    pub skip_schema_validation: bool,
    /// The Helm to follow where Helm's versions differ: 4.3.1, or 3.18.6 as operators do
    #[arg(long, default_value = "4.3", help_heading = "Checks", value_parser = profiles())]
    pub profile: Profile,

    /// How much a rendering may use, where the defaults are not right (docs/limits.md)
    #[arg(
        long,
        value_name = "LIMITS",
        default_value = "",
        hide_default_value = true,
        help_heading = "Checks"
    )]
    pub render_limits: Budget,

    #[command(flatten)]
    pub source: SourceArgs,
    /// Fetch the charts that are missing in charts/ first
    #[arg(long, help_heading = "Repositories")]
    pub dependency_update: bool,
    #[command(flatten)]
    pub post_renderer: PostRendererArgs,
    #[command(flatten)]
    pub refused: RefusedArgs,
    #[command(flatten)]
    pub ignored: IgnoredArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran template demo ./chart
  catamaran template demo ./chart -f production.yaml --set image.tag=v2 -s templates/deployment.yaml
  catamaran template demo ./chart --profile 3.18      as an operator renders it";

/// Where values come from, later ones over earlier ones in this order.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValueArgs {
    /// A YAML file with values; - is standard input
    #[arg(short = 'f', long = "values", value_delimiter = ',', value_name = "FILE")]
    pub files: Vec<String>,
    /// JSON values: key=json, or a whole object
    #[arg(long = "set-json", value_name = "LINE")]
    pub json: Vec<String>,
    /// Values: a.b=c,d[0]=1
    #[arg(long = "set", value_name = "LINE")]
    pub typed: Vec<String>,
    /// Values that are texts whatever they look like
    #[arg(long = "set-string", value_name = "LINE")]
    pub texts: Vec<String>,
    /// Values that are read from files: key=path
    #[arg(long = "set-file", value_name = "LINE")]
    pub from_files: Vec<String>,
    /// A text, everything after the first = as it is
    #[arg(long = "set-literal", value_name = "LINE")]
    pub literals: Vec<String>,
}

/// Flags that would need a cluster, a registry or plugins.
#[derive(Args, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct RefusedArgs {
    #[arg(long, hide = true)]
    pub validate: bool,
    #[arg(long, hide = true)]
    pub enable_dns: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    pub dry_run: Option<String>,
}

/// Flags that change nothing for a chart on disk that is only printed, in helm neither.
#[derive(Args, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct IgnoredArgs {
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    debug: bool,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    force_conflicts: bool,
    #[arg(long, hide = true)]
    force_replace: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    rollback_on_failure: bool,
    #[arg(long, hide = true)]
    server_side: bool,
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    take_ownership: bool,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "watcher")]
    wait: Option<String>,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(short, long, hide = true)]
    labels: Vec<String>,
    #[arg(long, hide = true)]
    timeout: Option<String>,
    #[arg(long, hide = true)]
    color: Option<String>,
}

/// Gives the command the manners of helm's: a switch takes `=true` and `=false`, and any other flag
/// takes what follows it, even if that starts with a dash.
pub(crate) fn with_helms_manners(command: Command) -> Command {
    command.mut_args(|arg| match arg.get_action() {
        ArgAction::SetTrue => switch(arg),
        ArgAction::Append | ArgAction::Set if !arg.is_positional() => arg.allow_hyphen_values(true),
        _ => arg,
    })
}

fn switch(arg: Arg) -> Arg {
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .default_value("false")
        .hide_default_value(true)
        .hide_possible_values(true)
        .value_parser(StringValueParser::new().try_map(|text| go_bool(&text)))
}

/// What Go reads as a boolean.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("strconv.ParseBool: parsing {other:?}: invalid syntax")),
    }
}

/// [`Profile`] as people write it.
#[derive(Clone, Copy, Debug)]
struct Named(Profile);

impl ValueEnum for Named {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(Profile::Helm43), Self(Profile::Helm318)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self.0 {
            Profile::Helm43 => "4.3",
            Profile::Helm318 => "3.18",
        }))
    }
}

fn profiles() -> impl clap::builder::TypedValueParser<Value = Profile> {
    clap::builder::EnumValueParser::<Named>::new().map(|Named(profile)| profile)
}
