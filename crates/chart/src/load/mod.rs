//! Charts from disk.

mod archive;
mod decode;
mod dir;
mod glob;
mod ignore;
mod metadata;

use std::collections::BTreeMap;
use std::path::Path;

use crate::manifest::base_name;
pub(crate) use decode::{documents, read as read_values};

use crate::{Chart, File, LoadError};

/// The largest file of a chart, as Helm 3.18 has it: 5 MiB.
pub const MAX_FILE_BYTES: u64 = 5 << 20;
/// The most all files of a chart may hold: 100 MiB.
pub const MAX_CHART_BYTES: u64 = 100 << 20;
/// How deep folders (and charts in charts) may be nested.
const MAX_DEPTH: usize = 64;

/// How many files and folders are looked at; links in a circle end here.
const MAX_ENTRIES: usize = 100_000;

/// How much may be read, and how much has been: one account for a chart and
/// all archives inside it.
#[derive(Debug, Default)]
struct Account {
    bytes: u64,
    entries: usize,
}

impl Account {
    /// Counts a file or folder, before it is read.
    fn charge(&mut self, name: &str, size: u64) -> Result<(), LoadError> {
        if size > MAX_FILE_BYTES {
            let name = base_name(name).to_owned();
            return Err(LoadError::FileTooLarge { name, limit: MAX_FILE_BYTES });
        }
        self.bytes += size;
        if self.bytes > MAX_CHART_BYTES {
            return Err(LoadError::ChartTooLarge { limit: MAX_CHART_BYTES });
        }
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(LoadError::TooManyFiles { limit: MAX_ENTRIES });
        }
        Ok(())
    }

    fn bytes_left(&self) -> u64 {
        MAX_CHART_BYTES.saturating_sub(self.bytes)
    }
}

/// A file that has not found its place in a chart yet.
#[derive(Debug)]
struct RawFile {
    name: String,
    data: Vec<u8>,
}

impl RawFile {
    fn new(name: String, mut data: Vec<u8>) -> Self {
        if data.starts_with(b"\xef\xbb\xbf") {
            data.drain(..3);
        }
        Self { name, data }
    }
}

impl Chart {
    /// Reads a chart: a directory, or a packaged `.tgz`.
    ///
    /// # Errors
    ///
    /// See [`LoadError`]; texts follow Helm's.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let mut account = Account::default();
        let io = |source| LoadError::Io { path: path.to_owned(), source };
        let files = if std::fs::metadata(path).map_err(io)?.is_dir() {
            dir::read(path, &mut account)?
        } else {
            archive::check_kind(path)?;
            archive::read(std::fs::File::open(path).map_err(io)?, &mut account)?
        };
        assemble(files, &mut account, 0)
    }

    /// Puts a chart together from files in memory: names as in the chart's folder, in the order in
    /// which Helm walks one. No `.helmignore` is looked at.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub fn from_files(
        files: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, LoadError> {
        let mut account = Account::default();
        let files = files.into_iter().map(|(name, data)| {
            account.charge(&name, data.len() as u64)?;
            Ok(RawFile::new(name, data))
        });
        let files = files.collect::<Result<Vec<_>, LoadError>>()?;
        assemble(files, &mut account, 0)
    }

    /// Reads a packaged chart from memory.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub fn load_archive(bytes: &[u8]) -> Result<Self, LoadError> {
        let mut account = Account::default();
        let files = archive::read(bytes, &mut account)?;
        assemble(files, &mut account, 0)
    }
}

/// The files of a chart's folder, in the order in which Helm walks it, without those that its
/// `.helmignore` names.
///
/// # Errors
///
/// See [`LoadError`].
pub fn folder_files(path: &Path) -> Result<Vec<File>, LoadError> {
    let files = dir::read(path, &mut Account::default())?;
    Ok(files.into_iter().map(File::from).collect())
}

/// The files of a packaged chart, named as in its folder.
///
/// # Errors
///
/// See [`LoadError`].
pub fn archive_files(bytes: &[u8]) -> Result<Vec<File>, LoadError> {
    let files = archive::read(bytes, &mut Account::default())?;
    Ok(files.into_iter().map(File::from).collect())
}

/// Go's `filepath.Match`; false for a pattern that is none.
pub(crate) fn glob_matches(pattern: &str, name: &str) -> bool {
    glob::matches(pattern, name).unwrap_or(false)
}

/// Puts each file in its place, as Helm's `LoadFiles` does.
fn assemble(files: Vec<RawFile>, account: &mut Account, depth: usize) -> Result<Chart, LoadError> {
    let mut chart = Chart::default();
    let mut has_metadata = false;
    for file in files.iter().filter(|f| f.name == "Chart.yaml") {
        metadata::read_into(&mut chart.metadata, file)?;
        if chart.metadata.api_version.is_empty() {
            "v1".clone_into(&mut chart.metadata.api_version);
        }
        has_metadata = true;
    }
    let mut children: BTreeMap<String, Vec<RawFile>> = BTreeMap::new();
    for file in files {
        match file.name.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => chart.lock = Some(metadata::read_lock(&file)?),
            "values.yaml" => decode::values_into(&mut chart, &file)?,
            "values.schema.json" => chart.schema = Some(file.data),
            "requirements.yaml" => {
                metadata::read_into(&mut chart.metadata, &file)?;
                has_metadata = true;
                keep_in_v1(&mut chart, file);
            }
            "requirements.lock" => {
                chart.lock = Some(metadata::read_lock(&file)?);
                keep_in_v1(&mut chart, file);
            }
            name if name.starts_with("templates/") => chart.templates.push(file.into()),
            name if name.starts_with("charts/") && !is_provenance(name) => {
                let name = name.trim_start_matches("charts/").to_owned();
                let child = name.split('/').next().unwrap_or_default().to_owned();
                children.entry(child).or_default().push(RawFile { name, data: file.data });
            }
            _ => chart.files.push(file.into()),
        }
    }
    if !has_metadata {
        return Err(LoadError::NoChartYaml);
    }
    metadata::validate(&mut chart.metadata)?;
    for (name, files) in children {
        if let Some(child) = subchart(chart.name(), name, files, account, depth)? {
            chart.dependencies.push(child);
        }
    }
    Ok(chart)
}

/// Charts of apiVersion v1 show their requirements files to templates.
fn keep_in_v1(chart: &mut Chart, file: RawFile) {
    if chart.metadata.api_version == "v1" {
        chart.files.push(file.into());
    }
}

fn is_provenance(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "prov")
}

impl From<RawFile> for File {
    fn from(file: RawFile) -> Self {
        Self { name: file.name, data: file.data }
    }
}

/// One entry of `charts/`: a folder or an archive; `None` for what Helm passes over.
fn subchart(
    parent: &str,
    name: String,
    files: Vec<RawFile>,
    account: &mut Account,
    depth: usize,
) -> Result<Option<Chart>, LoadError> {
    if name.starts_with(['_', '.']) {
        return Ok(None);
    }
    let child = if depth >= MAX_DEPTH {
        Err(LoadError::TooDeep { path: (&name).into(), limit: MAX_DEPTH })
    } else if Path::new(&name).extension().is_some_and(|extension| extension == "tgz") {
        archived_subchart(parent, &name, &files, account, depth)
    } else {
        let inside = files.into_iter().filter_map(|file| {
            let name = file.name.split_once('/')?.1.to_owned();
            Some(RawFile { name, data: file.data })
        });
        assemble(inside.collect(), account, depth + 1)
    };
    child.map(Some).map_err(|source| LoadError::Subchart {
        name,
        parent: parent.to_owned(),
        source: Box::new(source),
    })
}

fn archived_subchart(
    parent: &str,
    name: &str,
    files: &[RawFile],
    account: &mut Account,
    depth: usize,
) -> Result<Chart, LoadError> {
    match files.first() {
        Some(file) if file.name == name => {
            let files = archive::read(file.data.as_slice(), account)?;
            assemble(files, account, depth + 1)
        }
        other => Err(LoadError::Archive(format!(
            "error unpacking subchart tar in {parent}: expected {name}, got {}",
            other.map_or("", |f| &f.name)
        ))),
    }
}
