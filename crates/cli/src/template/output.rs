//! What is printed or written of a rendering.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use catamaran_chart::manifest::{path_matches, split};
use catamaran_chart::{Hook, Profile, Rendered, go_io_error};

use super::args::TemplateArgs;
use crate::charts::{HINT, document, push};

/// Byte for byte what `helm template` prints.
pub(super) fn print(
    args: &TemplateArgs,
    name: &str,
    rendered: &Rendered,
    out: &mut impl Write,
) -> Result<()> {
    let folder = args.output_dir.as_ref().filter(|folder| !folder.as_os_str().is_empty());
    let text = match folder {
        None if args.show_only.is_empty() => return Ok(print_all(args, rendered, out)?),
        None => {
            let mut text = Vec::new();
            print_all(args, rendered, &mut text)?;
            String::from_utf8(text)?
        }
        Some(folder) => write_files(args, folder, name, rendered, out)?,
    };
    let text = if args.show_only.is_empty() { text } else { only(args, &text)? };
    Ok(out.write_all(text.as_bytes())?)
}

/// The manifest, then the hooks.
fn print_all(args: &TemplateArgs, rendered: &Rendered, out: &mut impl Write) -> io::Result<()> {
    match rendered.manifests.split_last() {
        // Document by document: together they may be large.
        Some((last, others)) if rendered.post_rendered.is_none() && !args.include_crds => {
            for manifest in others {
                print_document(out, &manifest.source, &manifest.content)?;
            }
            let mut text = String::new();
            push(&mut text, &last.source, &last.content);
            writeln!(out, "{}", text.trim_end())?;
        }
        _ => out.write_all(manifest(args, rendered).as_bytes())?,
    }
    hooks(args, rendered).try_for_each(|hook| print_document(out, &hook.path, &hook.manifest))
}

fn print_document(out: &mut impl Write, source: &str, content: &str) -> io::Result<()> {
    document(source, content).into_iter().try_for_each(|part| out.write_all(part.as_bytes()))
}

/// What there is of a rendering that failed, for `--debug`.
pub(super) fn print_raw(args: &TemplateArgs, raw: &[u8], out: &mut impl Write) -> Result<()> {
    if raw.is_empty() || args.show_only.is_empty() {
        return Ok(out.write_all(raw)?);
    }
    match only(args, &String::from_utf8_lossy(raw)) {
        Ok(text) => Ok(out.write_all(text.as_bytes())?),
        // Helm 4 tells of the rendering instead: a template may be missing because of that.
        Err(_) if args.rendering.profile() == Profile::Helm43 => Ok(()),
        Err(missing) => Err(missing),
    }
}

fn manifest(args: &TemplateArgs, rendered: &Rendered) -> String {
    let mut text = rendered.manifest_text();
    if args.include_crds {
        let mut crds = String::new();
        for crd in &rendered.crds {
            push(&mut crds, &crd.source, &String::from_utf8_lossy(&crd.data));
        }
        text.insert_str(0, &crds);
    }
    // Trimmed where it is: it may be large.
    text.truncate(text.trim_end().len());
    text.drain(..text.len() - text.trim_start().len());
    text.push('\n');
    text
}

fn hooks<'r>(args: &TemplateArgs, rendered: &'r Rendered) -> impl Iterator<Item = &'r Hook> {
    let (none, no_tests) = (args.no_hooks, args.skip_tests);
    let is_test = |hook: &Hook| hook.events.iter().any(|event| event == "test");
    rendered.hooks.iter().filter(move |hook| !(none || no_tests && is_test(hook)))
}

/// The documents whose template is asked for, pattern after pattern.
fn only(args: &TemplateArgs, text: &str) -> Result<String> {
    let documents = split(text, args.rendering.profile());
    let mut shown = String::new();
    for pattern in &args.show_only {
        let mut found = documents
            .iter()
            .filter(|document| path_of(document).is_some_and(|path| path_matches(pattern, path)))
            .peekable();
        if found.peek().is_none() {
            bail!("could not find template {pattern} in chart");
        }
        for document in found {
            for part in ["---\n", document, "\n"] {
                shown.push_str(part);
            }
        }
    }
    Ok(shown)
}

/// The template's path inside its chart.
fn path_of(document: &str) -> Option<&str> {
    document.lines().find_map(|line| {
        let (_, source) = line.split_once("# Source: ")?;
        let (chart, path) = source.split_once('/')?;
        (!chart.is_empty() && !path.is_empty()).then_some(path)
    })
}

/// Writes each document into the file of its template; what is left to print is an empty line.
fn write_files(
    args: &TemplateArgs,
    folder: &Path,
    name: &str,
    rendered: &Rendered,
    out: &mut impl Write,
) -> Result<String> {
    let inside = if args.release_name { folder.join(name) } else { folder.to_owned() };
    let mut written = Vec::new();
    let mut write = |folder: &Path, source: &str, content: &str, more: bool| -> Result<()> {
        let path = PathBuf::from(format!("{}/{source}", folder.display()));
        let more = more || written.contains(&path);
        append(&path, source, content, more)?;
        writeln!(out, "wrote {}", path.display())?;
        written.push(path);
        Ok(())
    };
    let hint = if args.rendering.global.is_debug() { "" } else { HINT };
    let with_hint = |error: anyhow::Error| anyhow!("{error}{hint}");
    for crd in rendered.crds.iter().filter(|_| args.include_crds) {
        write(folder, &crd.source, &String::from_utf8_lossy(&crd.data), false)
            .map_err(with_hint)?;
    }
    for manifest in &rendered.manifests {
        write(&inside, &manifest.source, &manifest.content, false).map_err(with_hint)?;
    }
    for hook in hooks(args, rendered) {
        // As in Helm: a hook's file that is there is from now, or from long ago.
        write(&inside, &hook.path, &hook.manifest, inside.join(&hook.path).exists())?;
    }
    Ok("\n".to_owned())
}

/// Makes a folder and those around it; tells which one could not be made.
fn make_folder(folder: &Path) -> Result<(), (&Path, io::Error)> {
    for around in folder.ancestors().collect::<Vec<_>>().into_iter().rev() {
        if !around.as_os_str().is_empty() && !around.is_dir() {
            fs::create_dir(around).map_err(|error| (around, error))?;
        }
    }
    Ok(())
}

fn append(path: &Path, source: &str, content: &str, more: bool) -> Result<()> {
    let fault = |verb: &str, at: &Path, error: io::Error| {
        anyhow!(go_io_error(verb, &at.display().to_string(), &error))
    };
    if let Some(folder) = path.parent() {
        match fs::metadata(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(fault("stat", folder, error));
            }
            _ => make_folder(folder).map_err(|(at, error)| fault("mkdir", at, error))?,
        }
    }
    let mut options = OpenOptions::new();
    let options =
        if more { options.append(true) } else { options.write(true).truncate(true).create(true) };
    let not_written = |error| fault("open", path, error);
    let mut file = options.open(path).map_err(not_written)?;
    let mut text = String::new();
    push(&mut text, source, content);
    file.write_all(text.as_bytes()).map_err(not_written)
}
