//! A chart's files from a packaged `.tgz`.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::tar_names::ShortNames;
use super::{Account, MAX_FILE_BYTES, RawFile};
use crate::{LoadError, gopath};

/// Tells what a file is that is no archive, since people give values files by mistake.
pub(super) fn check_kind(path: &Path) -> Result<(), LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(io)?;
    file.take(SNIFFED).read_to_end(&mut start).map_err(io)?;
    if start.starts_with(b"\x1f\x8b\x08") {
        return Ok(());
    }
    let name = path.display();
    let is_yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
    Err(LoadError::Archive(if is_yaml {
        format!("file '{name}' seems to be a YAML file, but expected a gzipped archive")
    } else {
        let kind = content_type(&start);
        format!("file '{name}' does not appear to be a gzipped archive; got '{kind}'")
    }))
}

/// How many bytes are looked at to tell what a file is.
const SNIFFED: u64 = 512;

/// What Go takes the start of a file for. Helm fills up with zeros, so that a short text is none.
fn content_type(start: &[u8]) -> &'static str {
    let binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    if start.starts_with(b"PK\x03\x04") {
        "application/zip"
    } else if start.len() < 512 || start.iter().any(binary) {
        "application/octet-stream"
    } else {
        "text/plain; charset=utf-8"
    }
}

/// Go's words for what an archive breaks.
fn go_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match error.kind() {
        _ if text == "invalid gzip header" => "gzip: invalid header".to_owned(),
        std::io::ErrorKind::UnexpectedEof => "unexpected EOF".to_owned(),
        _ => text,
    }
}

/// Unpacks in memory, under limits; nothing is written anywhere.
pub(super) fn read(
    mut packed: impl Read,
    account: &mut Account,
) -> Result<Vec<RawFile>, LoadError> {
    // Helm tells an empty file from one that is cut.
    let mut start = Vec::new();
    packed
        .by_ref()
        .take(1)
        .read_to_end(&mut start)
        .map_err(|e| LoadError::Archive(e.to_string()))?;
    if start.is_empty() {
        return Err(LoadError::Archive("EOF".into()));
    }
    let packed = start.as_slice().chain(packed);
    // Headers come on top of the files; this bound is for archives of headers alone.
    let unpacked = MultiGzDecoder::new(packed).take(account.bytes_left().saturating_mul(2));
    let mut archive = tar::Archive::new(ShortNames::new(unpacked));
    let bad = |error: std::io::Error| LoadError::Archive(go_text(&error));
    let mut files = Vec::new();
    let mut data = Vec::new();
    for entry in archive.entries().map_err(bad)? {
        let mut entry = entry.map_err(bad)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = inner_name(&path)?;
        account.charge(&name, entry.size())?;
        if account.is_burst() {
            // Only counted from here on, so that the error is Helm's where Helm has one.
            files.clear();
            continue;
        }
        // Links have no content of their own; they read as empty files, as in Helm.
        data.clear();
        // A sparse file may be larger than it says.
        entry.by_ref().take(MAX_FILE_BYTES + 1).read_to_end(&mut data).map_err(bad)?;
        if data.len() as u64 > entry.size() {
            account.charge(&name, data.len() as u64)?;
        }
        files.push(RawFile::new(name, &data));
    }
    if account.is_burst() {
        return Err(LoadError::Burst { limit: account.unpacked_limit() });
    }
    if files.is_empty() {
        return Err(LoadError::Archive("no files in chart archive".into()));
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// The name without the one top folder; refuses what would leave the chart.
fn inner_name(path: &str) -> Result<String, LoadError> {
    let refuse = |text: String| Err(LoadError::Archive(text));
    let delimiter = if path.contains('\\') { '\\' } else { '/' };
    let (top, rest) = path.split_once(delimiter).unwrap_or((path, ""));
    let rest = rest.replace(delimiter, "/");
    if rest.starts_with('/') {
        return refuse("chart illegally contains absolute paths".into());
    }
    let name = gopath::clean(&rest);
    if name == "." {
        return refuse(format!(
            "chart illegally contains content outside the base directory: {path:?}"
        ));
    }
    if name.starts_with("..") {
        return refuse("chart illegally references parent directory".into());
    }
    let mut start = name.bytes();
    if start.next().is_some_and(|b| b.is_ascii_alphabetic())
        && start.next() == Some(b':')
        && start.next() == Some(b'/')
    {
        return refuse("chart contains illegally named files".into());
    }
    if top == "Chart.yaml" {
        return refuse("chart yaml not in base directory".into());
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_chart() {
        assert_eq!(inner_name("c/templates/a.yaml").unwrap(), "templates/a.yaml");
        assert_eq!(inner_name("c\\templates\\a.yaml").unwrap(), "templates/a.yaml");
        assert_eq!(inner_name("c/./a/../b").unwrap(), "b");
        for bad in ["c//etc/passwd", "c/../../x", "Chart.yaml", "c/", "c/c:/x"] {
            assert!(inner_name(bad).is_err(), "{bad}");
        }
    }
}
