//! Flags that several commands on charts have in common, with the manners of helm's.

use std::any::TypeId;
use std::env;
use std::num::{IntErrorKind, ParseIntError};
use std::path::{Path, PathBuf};

use catamaran_chart::Profile;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser as _};
use clap::{Arg, ArgAction, Args, Command, ValueEnum};

use super::slices::{self, Slice};
use crate::context;

/// Where values come from, later ones over earlier ones in this order.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValueArgs {
    /// A YAML file with values; - is standard input
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub files: Vec<Slice>,
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

/// The flags that every command of helm has.
#[derive(Args, Debug, Default)]
pub(crate) struct GlobalArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Tell more on standard error; beside an error of a manifest, print the manifests
    #[arg(long, help_heading = "Output")]
    pub debug: bool,
    /// Errors in colours, and explained: never, auto (at a terminal), always
    #[arg(long, visible_alias = "colour", value_name = "WHEN", help_heading = "Output")]
    pub color: Option<String>,
    #[command(flatten)]
    pub files: FilesArgs,
}

/// Where the user's helm keeps what it knows.
#[derive(Args, Debug, Default)]
pub(crate) struct FilesArgs {
    #[arg(long, hide = true)]
    pub registry_config: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub repository_cache: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub repository_config: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub content_cache: Option<PathBuf>,
}

impl GlobalArgs {
    /// Whether `--debug` was given, or `HELM_DEBUG` says so.
    pub(crate) fn is_debug(&self) -> bool {
        self.debug || env::var("HELM_DEBUG").is_ok_and(|text| go_bool(&text) == Ok(true))
    }
}

/// Which cluster is meant, and how it is reached.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// The namespace [default: that of the current kubectl context]
    #[arg(short, long, env = "HELM_NAMESPACE", hide_env = true)]
    pub namespace: Option<String>,
    /// The kubeconfig [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig
    #[arg(long, env = "HELM_KUBECONTEXT", hide_env = true, value_name = "NAME")]
    pub kube_context: Option<String>,
    #[arg(long, env = "HELM_KUBEAPISERVER", hide = true)]
    pub kube_apiserver: Option<String>,
    #[arg(long, env = "HELM_KUBETOKEN", hide = true)]
    pub kube_token: Option<String>,
    #[arg(long, env = "HELM_KUBEASUSER", hide = true)]
    pub kube_as_user: Option<String>,
    #[arg(long, hide = true)]
    pub kube_as_group: Vec<String>,
    #[arg(long, env = "HELM_KUBECAFILE", hide = true)]
    kube_ca_file: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub kube_insecure_skip_tls_verify: bool,
    #[arg(long, env = "HELM_KUBETLS_SERVER_NAME", hide = true)]
    pub kube_tls_server_name: Option<String>,
    #[arg(long, hide = true, value_parser = go_int)]
    pub burst_limit: Option<i64>,
    #[arg(long, hide = true, value_parser = go_float)]
    pub qps: Option<f32>,
}

impl ClusterArgs {
    /// The kubeconfig asked for.
    pub(crate) fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// The authority that the cluster's certificate is to come from.
    pub(crate) fn kube_ca_file(&self) -> Option<&Path> {
        self.kube_ca_file.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// The namespace asked for; the kubeconfig is read only if there is no flag.
    pub(crate) fn namespace(&self) -> String {
        let asked = self.namespace.clone().filter(|name| !name.is_empty());
        asked.unwrap_or_else(|| context::namespace(self))
    }
}

/// Which Helm to follow.
#[derive(Args, Debug)]
pub(crate) struct ProfileArgs {
    /// The Helm to follow where Helm's versions differ: 4.3.1, or 3.18.6 as operators do
    #[arg(long, default_value = "4.3", help_heading = "Checks", value_parser = profiles())]
    pub profile: Profile,
}

/// Gives the command the manners of helm's: a switch takes `=true` and `=false`, any other flag takes
/// what follows it, even if that starts with a dash or is nothing, and of flags given twice the last
/// one counts.
pub(crate) fn with_helms_manners(command: Command) -> Command {
    let in_manner = |arg: Arg| match arg.get_action() {
        ArgAction::SetTrue => switch(arg),
        ArgAction::Append | ArgAction::Set if !arg.is_positional() => {
            let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
            let arg = arg.allow_hyphen_values(true);
            if is_path { arg.value_parser(slices::path()) } else { arg }
        }
        _ => arg,
    };
    command.args_override_self(true).mut_args(in_manner)
}

/// The command, and those that it is made of, with a `--help` that ends no reading: what follows it is
/// read, too.
pub(crate) fn with_help_as_a_switch(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::SetTrue);
    command.disable_help_flag(true).arg(help).mut_subcommands(with_help_as_a_switch)
}

fn switch(arg: Arg) -> Arg {
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .value_name("BOOL")
        .default_missing_value("true")
        .default_value("false")
        .hide_default_value(true)
        .hide_possible_values(true)
        .value_parser(StringValueParser::new().try_map(|text| go_bool(&text)))
}

/// What Go reads as a boolean.
pub(crate) fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("strconv.ParseBool: parsing {other:?}: invalid syntax")),
    }
}

fn go_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error| not_whole("ParseInt", text, &error))
}

/// What Go reads as a number, where one below nothing says as much as none.
pub(crate) fn go_number(text: &str) -> Result<usize, String> {
    go_int(text).map(|number| usize::try_from(number).unwrap_or_default())
}

/// What Go reads as a count.
pub(crate) fn go_uint(text: &str) -> Result<usize, String> {
    text.parse().map_err(|error| not_whole("ParseUint", text, &error))
}

fn not_whole(reader: &str, text: &str, error: &ParseIntError) -> String {
    let why = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{reader}: parsing {text:?}: {why}")
}

fn go_float(text: &str) -> Result<f32, String> {
    text.parse().map_err(|_| format!("strconv.ParseFloat: parsing {text:?}: invalid syntax"))
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
