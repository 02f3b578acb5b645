//! Charts from disk.

mod archive;
mod decode;
mod dir;
mod glob;
mod ignore;
mod known;
mod metadata;
mod tar_names;
mod unpacked;
mod unread;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::manifest::base_name;
pub(crate) use decode::{documents, read as read_values};
pub(crate) use metadata::of_value as metadata_of_value;
pub(crate) use unpacked::Unpacked;
pub use unread::Unread;
pub(crate) use unread::{bytes_of, is_unread, read_unread};

use crate::error::NO_CHART_YAML;
use crate::{Chart, File, LoadError};

/// The largest file of a chart, as Helm 3.18 has it: 5 MiB.
pub const MAX_FILE_BYTES: u64 = 5 << 20;
/// The most all files of a chart may hold: 100 MiB.
pub const MAX_CHART_BYTES: u64 = 100 << 20;
/// How deep folders (and charts in charts) may be nested.
const MAX_DEPTH: usize = 64;

/// How many files and folders are looked at; links in a circle end here.
const MAX_ENTRIES: usize = 50_000;

/// What an archive may always unpack to, and what it may besides for each byte of its own: what is
/// packed tighter than any chart is a bomb. Helm has no such limit.
const FREE_UNPACKED: u64 = 32 << 20;
const UNPACKED_PER_BYTE: u64 = 8;

/// How much may be read, and how much has been: one account for a chart and
/// all archives inside it.
#[derive(Debug)]
struct Account {
    bytes: u64,
    entries: usize,
    /// Bytes that really came from disk or memory, packed or not.
    given: u64,
    /// What YAML files may still take once they are read, in bytes.
    room: usize,
}

impl Account {
    fn new() -> Self {
        Self { bytes: 0, entries: 0, given: 0, room: catamaran_yaml::MAX_SIZE }
    }

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

    /// Whether archives have unpacked to more than any chart does.
    fn is_burst(&self) -> bool {
        self.bytes > self.unpacked_limit()
    }

    /// Notes bytes that really were there.
    fn give(&mut self, bytes: u64) {
        self.given = self.given.saturating_add(bytes);
    }

    fn unpacked_limit(&self) -> u64 {
        let more = self.given.saturating_mul(UNPACKED_PER_BYTE);
        FREE_UNPACKED.saturating_add(more).min(MAX_CHART_BYTES)
    }

    fn bytes_left(&self) -> u64 {
        MAX_CHART_BYTES.saturating_sub(self.bytes)
    }
}

/// A file that has not found its place in a chart yet.
#[derive(Clone, Debug)]
struct RawFile {
    name: String,
    data: Arc<[u8]>,
    /// Where the bytes still lie, if nobody has read them.
    unread: Option<unread::Place>,
    /// What is in a values.yaml, if somebody has looked already.
    values: Option<decode::Values>,
}

impl RawFile {
    fn new(name: String, data: &[u8]) -> Self {
        Self { name, data: without_mark(data).into(), unread: None, values: None }
    }
}

/// A file's bytes behind a byte order mark.
fn without_mark(data: &[u8]) -> &[u8] {
    data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data)
}

impl Chart {
    /// Reads a chart: a directory, or a packaged `.tgz`.
    ///
    /// # Errors
    ///
    /// See [`LoadError`]; texts follow Helm's.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Self::load_with(path, dir::Crds::Read)
    }

    /// The same for who renders a chart once, and has no use for its CRDs: if they are large, those of
    /// a folder are left where they are ([`Chart::unread`]). A rendering whose templates look at them
    /// after all reads them then; [`Chart::crds`] and [`crate::Rendered::crds`] have them without
    /// their bytes.
    ///
    /// # Errors
    ///
    /// See [`LoadError`]; texts follow Helm's.
    pub fn load_without_crds(path: &Path) -> Result<Self, LoadError> {
        Self::load_with(path, dir::Crds::LeaveLarge)
    }

    fn load_with(path: &Path, crds: dir::Crds) -> Result<Self, LoadError> {
        let mut account = Account::new();
        match Self::files(path, crds, &mut account)? {
            (files, true) => assemble(files, &mut account, 0).map_err(|error| match error {
                // Of an archive Helm 4 says it in other words.
                LoadError::NoChartYaml => LoadError::Archive(NO_CHART_YAML.to_owned()),
                error => error,
            }),
            (files, false) => top(files, &mut account),
        }
    }

    /// Reads a chart to look at it (`helm show`, `helm lint`): any `apiVersion` will do.
    ///
    /// # Errors
    ///
    /// See [`LoadError`]; texts follow Helm's.
    pub fn inspect(path: &Path) -> Result<Self, LoadError> {
        let mut account = Account::new();
        let (files, _) = Self::files(path, dir::Crds::Read, &mut account)?;
        assemble(files, &mut account, 0)
    }

    /// The files of a folder or an archive, and whether it is an archive.
    fn files(
        path: &Path,
        crds: dir::Crds,
        account: &mut Account,
    ) -> Result<(Vec<RawFile>, bool), LoadError> {
        let io = |source| LoadError::Io { path: path.to_owned(), source };
        let found = std::fs::metadata(path).map_err(io)?;
        if found.is_dir() {
            return Ok((dir::read(path, crds, account)?, false));
        }
        if !found.is_file() {
            // Opening a pipe would wait for somebody to write into it.
            return Err(LoadError::Irregular(path.to_owned()));
        }
        archive::check_kind(path)?;
        account.give(found.len());
        Ok((archive::read(std::fs::File::open(path).map_err(io)?, account)?, true))
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
        let mut account = Account::new();
        let files = files.into_iter().map(|(name, data)| {
            account.charge(&name, data.len() as u64)?;
            Ok(RawFile::new(name, &data))
        });
        let files = files.collect::<Result<Vec<_>, LoadError>>()?;
        top(files, &mut account)
    }

    /// Reads a packaged chart from memory.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub fn load_archive(bytes: &[u8]) -> Result<Self, LoadError> {
        let mut account = Account::new();
        account.give(bytes.len() as u64);
        let files = archive::read(bytes, &mut account)?;
        top(files, &mut account)
    }
}

/// The files of a chart's folder, in the order in which Helm walks it, without those that its
/// `.helmignore` names.
///
/// # Errors
///
/// See [`LoadError`].
pub fn folder_files(path: &Path) -> Result<Vec<File>, LoadError> {
    let files = dir::read(path, dir::Crds::Read, &mut Account::new())?;
    Ok(files.into_iter().map(File::from).collect())
}

/// The files of a packaged chart, named as in its folder.
///
/// # Errors
///
/// See [`LoadError`].
pub fn archive_files(bytes: &[u8]) -> Result<Vec<File>, LoadError> {
    let files = archive::read(bytes, &mut Account::new())?;
    Ok(files.into_iter().map(File::from).collect())
}

/// The chart that is loaded, as opposed to those inside it: Helm 4 refuses an apiVersion that it
/// does not know before it looks at anything else, Helm 3 and subcharts take any.
fn top(files: Vec<RawFile>, account: &mut Account) -> Result<Chart, LoadError> {
    let chart_yaml = files.iter().find(|file| file.name == "Chart.yaml").cloned();
    assemble(files, account, 0).map_err(|error| match metadata::peek_api_version(chart_yaml) {
        Some(version) if !matches!(version.as_str(), "" | "v1" | "v2") => {
            LoadError::ApiVersion { version, otherwise: Box::new(error) }
        }
        _ => error,
    })
}

/// Go's `filepath.Match`; false for a pattern that is none.
pub(crate) fn glob_matches(pattern: &str, name: &str) -> bool {
    glob::Glob::parse(pattern).is_ok_and(|glob| glob.matches(name))
}

/// Puts each file in its place, as Helm's `LoadFiles` does.
fn assemble(files: Vec<RawFile>, account: &mut Account, depth: usize) -> Result<Chart, LoadError> {
    let mut chart = Chart::default();
    let mut has_metadata = false;
    let mut nulls = metadata::Nulls::default();
    for file in files.iter().filter(|f| f.name == "Chart.yaml") {
        metadata::read_into(&mut chart.metadata, &mut nulls, file, &mut account.room)?;
        if chart.metadata.api_version.is_empty() {
            "v1".clone_into(&mut chart.metadata.api_version);
        }
        has_metadata = true;
    }
    let mut children: BTreeMap<String, Vec<RawFile>> = BTreeMap::new();
    for file in files {
        match file.name.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => chart.lock = Some(metadata::read_lock(&file, &mut account.room)?),
            "values.yaml" => decode::values_into(&mut chart, file, &mut account.room)?,
            "values.schema.json" => chart.schema = Some(file.data),
            "requirements.yaml" => {
                metadata::read_into(&mut chart.metadata, &mut nulls, &file, &mut account.room)?;
                has_metadata = true;
                keep_in_v1(&mut chart, file);
            }
            "requirements.lock" => {
                chart.lock = Some(metadata::read_lock(&file, &mut account.room)?);
                keep_in_v1(&mut chart, file);
            }
            name if name.starts_with("templates/") => chart.templates.push(file.into()),
            name if name.starts_with("charts/") && !is_provenance(name) => {
                let name = name.trim_start_matches("charts/").to_owned();
                let child = name.split('/').next().unwrap_or_default().to_owned();
                children.entry(child).or_default().push(RawFile { name, ..file });
            }
            _ => {
                let at = chart.files.len();
                chart.unread.extend(file.unread.clone().map(|place| Unread { at, place }));
                chart.files.push(file.into());
            }
        }
    }
    if !has_metadata {
        return Err(LoadError::NoChartYaml);
    }
    metadata::validate(&mut chart.metadata, &nulls)?;
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
    let is_archive = Path::new(&name).extension().is_some_and(|extension| extension == "tgz");
    if let Some(other) = files.first().filter(|file| is_archive && file.name != name) {
        let (parent, got) = (parent.to_owned(), other.name.clone());
        return Err(LoadError::NoArchive { parent, name, got });
    }
    let child = if depth >= MAX_DEPTH {
        Err(LoadError::TooDeep { path: (&name).into(), limit: MAX_DEPTH })
    } else if is_archive {
        let packed = files.first().map_or(&[][..], |file| &file.data);
        archive::read(packed, account).and_then(|files| assemble(files, account, depth + 1))
    } else {
        let inside = files.into_iter().filter_map(|file| {
            let name = file.name.split_once('/')?.1.to_owned();
            Some(RawFile { name, ..file })
        });
        assemble(inside.collect(), account, depth + 1)
    };
    child.map(Some).map_err(|source| LoadError::Subchart {
        name,
        parent: parent.to_owned(),
        source: Box::new(source),
    })
}
