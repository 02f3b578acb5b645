//! A chart's folder as an archive, as `helm package` makes one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_chart::load::{archive_files, folder_files};
use catamaran_chart::{Chart, File, LoadError, Metadata};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::RepositoryError;

type Tar = tar::Builder<GzEncoder<Vec<u8>>>;

/// Packs a folder; gives the archive's name and content.
pub(super) fn folder(path: &Path) -> Result<(String, Vec<u8>), RepositoryError> {
    let files = folder_files(path)?;
    refuse_links_out(path, &files)?;
    let chart = Chart::load(path)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let fault = |error: io::Error| RepositoryError::Dependency(error.to_string());
    add(&mut tar, files, &chart, "", now)?;
    let bytes = tar.into_inner().and_then(GzEncoder::finish).map_err(fault)?;
    let Metadata { name, version, .. } = &chart.metadata;
    Ok((format!("{name}-{version}.tgz"), bytes))
}

/// Refuses a chart with a symbolic link that leads out of its folder: the archive goes to others, and
/// with it what the link names (CVE-2019-18658).
fn refuse_links_out(root: &Path, files: &[File]) -> Result<(), RepositoryError> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| RepositoryError::io("lstat", path, &error))
    };
    let inside = real(root)?;
    for file in files {
        let path = root.join(&file.name);
        if !real(&path)?.starts_with(&inside) {
            let text = format!(
                "cannot pack {}: a symbolic link leads out of the chart's folder; put a copy in its place",
                path.display()
            );
            return Err(RepositoryError::Dependency(text));
        }
    }
    Ok(())
}

/// Adds a chart and the charts in it, which become folders.
fn add(
    tar: &mut Tar,
    files: Vec<File>,
    chart: &Chart,
    above: &str,
    now: u64,
) -> Result<(), RepositoryError> {
    let base = format!("{above}{}", chart.name());
    let yaml = |value: &serde_json::Value| {
        let text = catamaran_yaml::to_string(value);
        text.map_err(|error| RepositoryError::Dependency(error.to_string()))
    };
    let mut metadata = chart.metadata.clone();
    let is_v1 = metadata.api_version == "v1";
    if is_v1 {
        metadata.dependencies = None;
    }
    let value = |result: serde_json::Result<serde_json::Value>| {
        result.map_err(|error| RepositoryError::Dependency(error.to_string()))
    };
    put(tar, &base, "Chart.yaml", yaml(&value(serde_json::to_value(&metadata))?)?.as_bytes(), now)?;
    if let Some(lock) = chart.lock.as_ref().filter(|_| !is_v1) {
        let lock = yaml(&value(serde_json::to_value(lock))?)?;
        put(tar, &base, "Chart.lock", lock.as_bytes(), now)?;
    }
    let (own, children) = apart(files);
    for name in ["values.yaml", "values.schema.json"] {
        for file in own.iter().filter(|file| file.name == name) {
            put(tar, &base, name, &file.data, now)?;
        }
    }
    for file in chart.templates.iter().chain(&chart.files) {
        put(tar, &base, &file.name, &file.data, now)?;
    }
    for (name, files) in children {
        let Some(files) = unpacked(&name, files)? else { continue };
        let pairs = files.iter().map(|file| (file.name.clone(), file.data.to_vec()));
        let child = Chart::from_files(pairs)?;
        add(tar, files, &child, &format!("{base}/charts/"), now)?;
    }
    Ok(())
}

/// The files of a chart itself, and those of each chart in it.
fn apart(files: Vec<File>) -> (Vec<File>, BTreeMap<String, Vec<File>>) {
    let mut own = Vec::new();
    let mut children: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for file in files {
        let is_provenance = Path::new(&file.name).extension().is_some_and(|e| e == "prov");
        match file.name.strip_prefix("charts/").filter(|_| !is_provenance) {
            Some(name) if !name.starts_with(['_', '.']) => {
                let child = name.split('/').next().unwrap_or_default().to_owned();
                let name = name.to_owned();
                children.entry(child).or_default().push(File { name, data: file.data });
            }
            _ => own.push(file),
        }
    }
    (own, children)
}

/// The files of a chart in `charts/`, which is an archive or a folder.
fn unpacked(name: &str, files: Vec<File>) -> Result<Option<Vec<File>>, LoadError> {
    if Path::new(name).extension().is_some_and(|e| e == "tgz") {
        return files.first().map(|file| archive_files(&file.data)).transpose();
    }
    let inside = |file: File| {
        let name = file.name.split_once('/')?.1.to_owned();
        Some(File { name, data: file.data })
    };
    let files: Vec<File> = files.into_iter().filter_map(inside).collect();
    Ok((!files.is_empty()).then_some(files))
}

fn put(
    tar: &mut Tar,
    base: &str,
    name: &str,
    bytes: &[u8],
    now: u64,
) -> Result<(), RepositoryError> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(now);
    tar.append_data(&mut header, format!("{base}/{name}"), bytes)
        .map_err(|error| RepositoryError::Dependency(error.to_string()))
}
