//! Files of a chart that nobody has read yet.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use super::dir::read_file;
use super::{RawFile, without_mark};
use crate::{Chart, File, LoadError};

/// A file of [`Chart::files`] that is there without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Which of the files.
    pub(super) at: usize,
    pub(super) place: Place,
}

/// Where the bytes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// How many they were when the folder was walked.
    pub(super) size: u64,
}

/// What stands for bytes that nobody has read: no others are the very same.
static BYTES: LazyLock<Arc<[u8]>> = LazyLock::new(|| Arc::from(&b"unread"[..]));

/// What stands for bytes that nobody has read.
pub(super) fn bytes() -> Arc<[u8]> {
    BYTES.clone()
}

/// Whether these only stand for others.
pub(crate) fn is_unread(data: &Arc<[u8]>) -> bool {
    Arc::ptr_eq(data, &BYTES)
}

/// The same chart with all bytes of all files.
///
/// # Errors
///
/// A file is no longer there, or larger than it was.
pub(crate) fn read_unread(chart: &Chart) -> Result<Chart, LoadError> {
    let mut whole = chart.clone();
    fill(&mut whole, &mut Vec::new())?;
    Ok(whole)
}

/// The bytes of one of the chart's files; `None` if they cannot be read any more.
pub(crate) fn bytes_of(chart: &Chart, at: usize) -> Option<Arc<[u8]>> {
    let Some(Unread { place, .. }) = chart.unread.iter().find(|unread| unread.at == at) else {
        return chart.files.get(at).map(|file| file.data.clone());
    };
    let mut buffer = Vec::new();
    read_file(&place.path, place.size, place.size, &mut buffer)
        .ok()
        .map(|data| without_mark(data).into())
}

fn fill(chart: &mut Chart, buffer: &mut Vec<u8>) -> Result<(), LoadError> {
    for Unread { at, place } in std::mem::take(&mut chart.unread) {
        let data = read_file(&place.path, place.size, place.size, buffer)?;
        if let Some(file) = chart.files.get_mut(at) {
            *file = File::from(RawFile::new(std::mem::take(&mut file.name), data));
        }
    }
    chart.dependencies.iter_mut().try_for_each(|child| fill(child, buffer))
}
