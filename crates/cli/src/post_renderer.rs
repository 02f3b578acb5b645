//! `--post-renderer`: a program that changes the manifests. Helm 4 takes the name of a plugin, Helm
//! 3.18 the path of an executable; ours takes a path with a slash in either profile.

use std::collections::BTreeMap;
use std::env::{self, consts};
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use catamaran_chart::{PostRender, PostRenderers, Profile};
use catamaran_repository::Settings;
use clap::Args;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::source::wait;

/// How long a post-renderer may take.
const TIMEOUT: Duration = Duration::from_mins(5);
/// How much it may give back.
const MAX_OUTPUT: u64 = 100 << 20;
/// How much of its complaints is told.
const MAX_COMPLAINT: u64 = 64 << 10;

/// The program that changes the manifests.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct PostRendererArgs {
    /// A program that changes the manifests: the name of a helm plugin, or a path
    #[arg(long, value_name = "PROGRAM")]
    pub post_renderer: Vec<String>,
    /// An argument of it
    #[arg(long, value_name = "ARGUMENT")]
    pub post_renderer_args: Vec<String>,
}

impl PostRendererArgs {
    /// The program, found and ready.
    pub(crate) fn steps(&self, profile: Profile) -> Result<PostRenderers> {
        let mut names = self.post_renderer.iter().filter(|name| !name.is_empty());
        let Some(mut name) = names.next() else { return Ok(PostRenderers::default()) };
        for more in names {
            if profile == Profile::Helm43 {
                bail!(
                    "invalid argument {more:?} for \"--post-renderer\" flag: cannot specify --post-renderer flag more than once"
                );
            }
            name = more;
        }
        let found = match profile {
            Profile::Helm43 => plugin(name, &Settings::from_env().plugins),
            Profile::Helm318 => executable(name),
        };
        let mut program = found.map_err(|why| {
            anyhow::anyhow!("invalid argument {name:?} for \"--post-renderer\" flag: {why}")
        })?;
        program.arguments.extend(self.post_renderer_args.iter().cloned());
        let step: Arc<dyn PostRender> = Arc::new(program);
        Ok([step].into_iter().collect())
    }
}

/// What is run: no shell, and nothing but these words.
#[derive(Debug)]
struct Program {
    /// The plugin's name; none for an executable.
    plugin: Option<String>,
    path: String,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Plugin {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    runtime: String,
    runtime_config: RuntimeConfig,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RuntimeConfig {
    platform_command: Vec<PlatformCommand>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct PlatformCommand {
    os: String,
    arch: String,
    command: String,
    args: Vec<String>,
}

fn plugin(name: &str, folders: &[PathBuf]) -> Result<Program, String> {
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    for folder in folders {
        let Ok(text) = fs::read_to_string(folder.join("plugin.yaml")) else { continue };
        let plugin = catamaran_yaml::from_str::<Plugin>(&text, catamaran_yaml::Numbers::Exact);
        let Ok(plugin) = plugin else { continue };
        if plugin.name == name && plugin.kind == "postrenderer/v1" {
            return prepared(plugin, &folder);
        }
    }
    if name.contains('/') {
        return executable(name);
    }
    Err(format!("plugin: {{Name:{name} Type:postrenderer/v1}} not found"))
}

fn prepared(plugin: Plugin, folder: &Path) -> Result<Program, String> {
    let Plugin { name, runtime, runtime_config, .. } = plugin;
    if runtime != "subprocess" {
        return Err(format!("plugins that run as {runtime:?} are not supported"));
    }
    let variables: BTreeMap<String, String> = [
        ("HELM_PLUGIN_NAME".to_owned(), name.clone()),
        ("HELM_PLUGIN_DIR".to_owned(), folder.display().to_string()),
    ]
    .into();
    let own = |key: &str| variables.get(key).cloned().or_else(|| env::var(key).ok());
    let command = of_this_machine(&runtime_config.platform_command);
    let command = command.ok_or("no plugin command is applicable")?;
    let mut words = command.command.split(' ').chain(command.args.iter().map(String::as_str));
    let path = words.next().map(|word| expanded(word, own)).filter(|path| !path.is_empty());
    let path = path.ok_or("no plugin command is applicable")?;
    let arguments = words.map(|word| expanded(word, own)).collect();
    Ok(Program { plugin: Some(name), path, arguments, variables })
}

/// The command for this system and machine; or for the system; or for any.
fn of_this_machine(commands: &[PlatformCommand]) -> Option<&PlatformCommand> {
    let os = if consts::OS == "macos" { "darwin" } else { consts::OS };
    let arch = match consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let is = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let exact = commands.iter().find(|c| is(&c.os, os) && is(&c.arch, arch));
    let of_system = || commands.iter().find(|c| is(&c.os, os) && c.arch.is_empty());
    let any = || commands.iter().find(|c| c.os.is_empty() && c.arch.is_empty());
    exact.or_else(of_system).or_else(any)
}

/// `$NAME` and `${NAME}`, as Go expands them.
fn expanded(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, after)) => (name, after),
            None => after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len())),
        };
        if name.is_empty() {
            out.push('$');
        } else {
            out.push_str(&value(name).unwrap_or_default());
        }
        rest = after;
    }
    out + rest
}

/// An executable: with a slash a path, without one of `$PATH`.
fn executable(name: &str) -> Result<Program, String> {
    let found = if name.contains('/') {
        fs::metadata(name)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => format!("stat {name}: no such file or directory"),
                _ => format!("stat {name}: {error}"),
            })
            .and_then(|found| {
                if is_program(&found) {
                    Ok(PathBuf::from(name))
                } else {
                    Err("permission denied".into())
                }
            })
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        let there = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| is_program(&found));
        let found = env::split_paths(&path).map(|folder| folder.join(name)).find(there);
        found.ok_or_else(|| "executable file not found in $PATH".to_owned())
    };
    let path =
        found.map_err(|why| format!("unable to find binary at {name}: exec: {name:?}: {why}"))?;
    let path = std::path::absolute(&path).unwrap_or(path).display().to_string();
    Ok(Program { plugin: None, path, arguments: Vec::new(), variables: BTreeMap::new() })
}

#[cfg(unix)]
fn is_program(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_program(metadata: &fs::Metadata) -> bool {
    metadata.is_file()
}

impl PostRender for Program {
    fn post_render(&self, manifests: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
        let (status, output, complaint) = wait(self.run(manifests)).map_err(|error| match &self
            .plugin
        {
            Some(name) => format!("failed to invoke post-renderer plugin {name:?}: {error}"),
            None => format!("error while running command {}. error output:\n: {error}", self.path),
        })?;
        if !status.success() {
            let how = status
                .code()
                .map_or_else(|| status.to_string(), |code| format!("exit status {code}"));
            return Err(match &self.plugin {
                Some(name) => format!(
                    "failed to invoke post-renderer plugin {name:?}: plugin {name:?} exited with error"
                ),
                None => format!(
                    "error while running command {}. error output:\n{}: {how}",
                    self.path,
                    String::from_utf8_lossy(&complaint)
                ),
            }
            .into());
        }
        match &self.plugin {
            Some(name) if output.trim_ascii().is_empty() => {
                Err(format!("post-renderer {name:?} produced empty output").into())
            }
            _ => Ok(String::from_utf8(output)?),
        }
    }
}

impl Program {
    async fn run(&self, manifests: &str) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        let mut child = Command::new(&self.path)
            .args(&self.arguments)
            .envs(&self.variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // It may end without reading all of it.
                let _ = stdin.write_all(manifests.as_bytes()).await;
            }
        };
        let talk = async {
            let ((), output, complaint) =
                tokio::join!(feed, read(stdout, MAX_OUTPUT), read(stderr, MAX_COMPLAINT));
            let (output, complaint) = (output?, complaint?);
            if output.len() as u64 > MAX_OUTPUT {
                return Err(io::Error::other(format!("more than {MAX_OUTPUT} bytes of output")));
            }
            Ok((child.wait().await?, output, complaint))
        };
        match tokio::time::timeout(TIMEOUT, talk).await {
            Ok(ended) => ended,
            Err(_) => Err(io::Error::other(format!("not done after {} s", TIMEOUT.as_secs()))),
        }
    }
}

/// Reads up to one byte more than the limit; a complaint that is longer is read to its end, so that
/// nobody waits for it.
async fn read(from: Option<impl AsyncRead + Unpin>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return Ok(bytes) };
    (&mut from).take(limit + 1).read_to_end(&mut bytes).await?;
    if limit == MAX_COMPLAINT {
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_expanded_as_in_go() {
        let value = |name: &str| (name == "A").then(|| "x".to_owned());
        for (text, expected) in
            [("$A/${A}b", "x/xb"), ("$B.", "."), ("a$", "a$"), ("$$A", "$x"), ("plain", "plain")]
        {
            assert_eq!(expanded(text, value), expected, "{text}");
        }
    }
}
