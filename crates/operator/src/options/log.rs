//! How and how much is logged: our own flags, and those that every Go operator has for zap.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};

use super::arguments;

/// Flags of the log.
#[derive(Args, Clone, Debug, Default)]
pub struct LogOptions {
    /// Format of log lines [default: human on a terminal, json elsewhere]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Log level: error, warn, info, debug, trace, or directives such as info,kube=debug [default: info]
    #[arg(long, env = "RUST_LOG", value_name = "LEVEL")]
    pub log_level: Option<String>,

    /// Format of log lines, as in Go operators: json or console
    #[arg(long, value_name = "FORMAT", help_heading = "Flags of Go operators")]
    pub zap_encoder: Option<Encoder>,

    /// Log level, as in Go operators: debug, info, error, or a number; a higher number logs more
    #[arg(long, visible_alias = "zap-level", value_name = "LEVEL", value_parser = level,
        help_heading = "Flags of Go operators")]
    pub zap_log_level: Option<&'static str>,

    /// Human format and level debug, unless other flags set them
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", value_parser = arguments::boolean,
        help_heading = "Flags of Go operators")]
    pub zap_devel: bool,

    /// Without effect: there are no stack traces
    #[arg(long, hide = true)]
    zap_stacktrace_level: Option<String>,

    /// Without effect: times are RFC 3339
    #[arg(long, hide = true)]
    zap_time_encoding: Option<String>,

    /// Without effect: every line is logged
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    zap_sample: Option<String>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line of text.
    Human,
    /// One JSON object.
    Json,
}

/// The same in zap's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoder {
    /// One line of text.
    Console,
    /// One JSON object.
    Json,
}

/// A level of zap's: of numbers the first is debug, as in controller-runtime.
fn level(text: &str) -> Result<&'static str, String> {
    match text.to_ascii_lowercase().as_str() {
        "debug" => Ok("debug"),
        "info" => Ok("info"),
        "error" | "panic" | "dpanic" | "fatal" => Ok("error"),
        "warn" => Ok("warn"),
        number => match number.parse::<u8>() {
            Ok(0) | Err(_) => {
                Err("it is neither debug, info, error nor a number above 0".to_owned())
            }
            Ok(1..=4) => Ok("debug"),
            Ok(_) => Ok("trace"),
        },
    }
}

impl LogOptions {
    /// Sends log lines to stderr. A second call changes nothing.
    ///
    /// # Errors
    /// Directives of `--log-level` that cannot be understood.
    pub(super) fn init(&self) -> Result<(), String> {
        // kube reports every answer of the API server that is not a success as an error of its own;
        // whoever made the request reports it, with what it means.
        // And whoever wants to see debug wants to see ours.
        let quiet =
            "kube_client=off,kube_runtime::watcher=off,hyper_util=info,rustls=info,tower=info";
        let level = self.level();
        let filter = tracing_subscriber::EnvFilter::try_new(format!("{quiet},{level}"))
            .map_err(|error| format!("--log-level {level:?}: {error}"))?;
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_target(false);
        let human = std::io::stderr().is_terminal();
        let set = match self.format() {
            Some(LogFormat::Json) => {
                lines.json().flatten_event(true).with_span_list(false).try_init()
            }
            None if !human => lines.json().flatten_event(true).with_span_list(false).try_init(),
            Some(LogFormat::Human) | None => lines.with_ansi(human).try_init(),
        };
        // An error means that the program set up logging itself: that is its right.
        if set.is_ok() {
            std::panic::set_hook(Box::new(|panic| {
                let at = panic.location().map(ToString::to_string);
                let message = panic.payload_as_str().unwrap_or("no message");
                tracing::error!(at, message, "a panic");
            }));
        }
        Ok(())
    }

    fn level(&self) -> &str {
        let devel = if self.zap_devel { "debug" } else { "info" };
        self.log_level.as_deref().or(self.zap_log_level).unwrap_or(devel)
    }

    fn format(&self) -> Option<LogFormat> {
        let encoder = self.zap_encoder.map(|encoder| match encoder {
            Encoder::Console => LogFormat::Human,
            Encoder::Json => LogFormat::Json,
        });
        self.log_format.or(encoder).or(self.zap_devel.then_some(LogFormat::Human))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        log: LogOptions,
    }

    #[test]
    fn zaps_flags_mean_ours() {
        let (human, json) = (Some(LogFormat::Human), Some(LogFormat::Json));
        let table = [
            (vec![], "info", None),
            (vec!["--zap-devel"], "debug", human),
            (
                vec!["--zap-devel=true", "--zap-encoder=json", "--zap-log-level=error"],
                "error",
                json,
            ),
            (vec!["--zap-encoder", "console", "--zap-log-level", "5"], "trace", human),
            (vec!["--zap-log-level=debug", "--log-level=warn", "--log-format=json"], "warn", json),
        ];
        for (flags, level, format) in table {
            let words = std::iter::once("operator").chain(flags.iter().copied());
            let log = Program::try_parse_from(words).unwrap().log;
            // What the environment of the test says would win.
            let log = LogOptions {
                log_level: log
                    .log_level
                    .filter(|_| std::env::var_os("RUST_LOG").is_none() || level == "warn"),
                ..log
            };
            assert_eq!((log.level(), log.format()), (level, format), "{flags:?}");
        }
        assert!(Program::try_parse_from(["operator", "--zap-log-level=loud"]).is_err());
    }
}
