//! The folder of a chart: on disk, or that of an archive as it would be unpacked.

use std::fs;
use std::path::Path;

use crate::gopath::{self, go_io_error};
use crate::load::{Unpacked, metadata_of_value};
use crate::{Chart, LoadError, Profile, gojson};

/// What a name in the folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

/// A chart's folder.
#[derive(Debug)]
pub(super) struct Folder {
    /// Absolute and clean.
    pub(super) path: String,
    /// Of an archive: what is in it.
    unpacked: Option<Unpacked>,
}

impl Folder {
    pub(super) fn open(place: &str) -> Result<Self, String> {
        let absolute = std::path::absolute(if place.is_empty() { "." } else { place })
            .unwrap_or_else(|_| place.into());
        let path = gopath::clean(&absolute.to_string_lossy());
        if super::is_package(place) {
            let unpacked = unpack(place)?;
            return Ok(Self { path, unpacked: Some(unpacked) });
        }
        let top = gopath::join(place, "Chart.yaml");
        fs::metadata(&top).map_err(|error| {
            let error = go_io_error("stat", &top, &error);
            format!("unable to check Chart.yaml file in chart: {error}")
        })?;
        Ok(Self { path, unpacked: None })
    }

    pub(super) fn place_of(&self, name: &str) -> String {
        gopath::join(&self.path, name)
    }

    /// What is there; `None` for nothing, or nothing that can be told.
    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        let Some(unpacked) = &self.unpacked else {
            let found = fs::metadata(Path::new(&self.path).join(name)).ok()?;
            return Some(if found.is_dir() { Kind::Folder } else { Kind::File });
        };
        let is_folder = unpacked.has_folder(name).then_some(Kind::Folder);
        is_folder.or_else(|| unpacked.file(name).map(|_| Kind::File))
    }

    /// A file's bytes; Go's text if there are none.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let place = self.place_of(name);
        if let Some(unpacked) = &self.unpacked {
            let missing = || format!("open {place}: no such file or directory");
            return unpacked.file(name).map(<[u8]>::to_vec).ok_or_else(missing);
        }
        fs::read(&place).map_err(|error| {
            let is_folder = error.kind() == std::io::ErrorKind::IsADirectory;
            go_io_error(if is_folder { "read" } else { "open" }, &place, &error)
        })
    }

    pub(super) fn load(&self) -> Result<Chart, LoadError> {
        match &self.unpacked {
            Some(unpacked) => unpacked.load(),
            None => Chart::inspect(Path::new(&self.path)),
        }
    }
}

/// Helm unpacks into a folder of its own, named like the chart; what it checks on the way.
fn unpack(place: &str) -> Result<Unpacked, String> {
    let bytes = fs::read(place).map_err(|error| {
        format!("unable to open tarball: {}", go_io_error("open", place, &error))
    })?;
    let fault = |text: String| format!("unable to extract tarball: {text}");
    // The texts of Helm 3 say what is wrong with an archive.
    let unpacked = Unpacked::read(&bytes).map_err(|error| fault(error.text(Profile::Helm318)))?;
    let name = match unpacked.file("Chart.yaml") {
        None => String::new(),
        Some(text) => {
            chart_name(text).map_err(|text| fault(format!("cannot load Chart.yaml: {text}")))?
        }
    };
    match name.as_str() {
        "" => Err(fault("chart name not specified".to_owned())),
        "." | ".." => Err(fault(format!("chart name {name:?} is not allowed"))),
        name if name.contains('/') => {
            Err(fault(format!("chart name {name:?} must not contain path separators")))
        }
        _ => Ok(unpacked),
    }
}

fn chart_name(text: &[u8]) -> Result<String, String> {
    let value = gojson::parse(text, catamaran_yaml::Numbers::Exact)?;
    Ok(metadata_of_value(&gojson::object(value, "v2.Metadata")?)?.name)
}
