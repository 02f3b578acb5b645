//! The flags of `helm template`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::actions::timeout;
use crate::charts::flags::ValueArgs;
use crate::charts::rendering::RenderingArgs;
use crate::charts::slices::{Pairs, Slice};

/// Render a chart, as `helm template` does
///
/// Takes helm's flags, prints what helm prints, and fails with helm's words. No cluster is asked
/// unless with --dry-run=server: `lookup` finds nothing.
#[derive(Args, Debug)]
#[command(disable_version_flag = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct TemplateArgs {
    /// The release's name and the chart (a folder or a .tgz); or the chart alone
    #[arg(value_name = "[NAME] CHART")]
    pub places: Vec<String>,

    #[command(flatten)]
    pub values: ValueArgs,

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
    #[arg(short, long, value_name = "VERSIONS", help_heading = "Cluster")]
    pub api_versions: Vec<Slice>,
    /// server: the cluster of the kubeconfig tells its versions and answers `lookup`; nothing is
    /// written there [default: client]
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "unset",
        value_name = "WHERE",
        help_heading = "Cluster"
    )]
    pub dry_run: Option<String>,
    /// The same as --dry-run=server
    #[arg(long, help_heading = "Cluster")]
    pub validate: bool,
    /// Let `getHostByName` ask for addresses; it finds nothing otherwise
    #[arg(long, help_heading = "Cluster")]
    pub enable_dns: bool,

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

    #[command(flatten)]
    pub rendering: RenderingArgs,
    #[command(flatten)]
    pub ignored: IgnoredArgs,
}

const EXAMPLES: &str = "\
Examples:
  catamaran template demo ./chart
  catamaran template demo ./chart -f production.yaml --set image.tag=v2 -s templates/deployment.yaml
  catamaran template demo ./chart --profile 3.18      as an operator renders it";

/// Flags of an installation: they change nothing where a chart is only printed, in helm neither.
#[derive(Args, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "as many flags")]
pub(crate) struct IgnoredArgs {
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
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
    pub skip_crds: bool,
    #[arg(long, hide = true)]
    take_ownership: bool,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
    #[arg(
        long,
        hide = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "watcher"
    )]
    wait: Option<String>,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(short, long, hide = true)]
    labels: Vec<Pairs>,
    #[arg(long, hide = true, value_parser = timeout)]
    timeout: Option<Duration>,
}
