//! A packaged chart that is looked at file by file, as if it had been unpacked into a folder.

use std::path::Path;

use super::ignore::Rules;
use super::{Account, RawFile, archive, assemble};
use crate::{Chart, LoadError};

/// The files of an archive, by their names in the chart.
#[derive(Debug)]
pub(crate) struct Unpacked(Vec<RawFile>);

impl Unpacked {
    /// Reads a `.tgz`, under the limits of every archive.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let mut account = Account::new();
        account.give(bytes.len() as u64);
        archive::read(bytes, &mut account).map(Self)
    }

    /// A file's bytes.
    pub(crate) fn file(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().rfind(|file| file.name == name).map(|file| &*file.data)
    }

    /// Whether there is such a folder.
    pub(crate) fn has_folder(&self, name: &str) -> bool {
        let inside =
            |file: &RawFile| file.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        self.0.iter().any(inside)
    }

    /// The chart as it would be loaded from the folder: `.helmignore` counts, which it does not
    /// where an archive is loaded as it is.
    pub(crate) fn load(&self) -> Result<Chart, LoadError> {
        let rules = match self.file(".helmignore") {
            Some(text) => Rules::parse(Path::new(".helmignore"), &String::from_utf8_lossy(text))?,
            None => Rules::default(),
        }
        .with_defaults();
        let ignored = |name: &str| {
            let folders = name.match_indices('/').filter_map(|(end, _)| name.get(..end));
            rules.ignores(name, false) || folders.into_iter().any(|name| rules.ignores(name, true))
        };
        let kept = self.0.iter().filter(|file| !ignored(&file.name)).cloned();
        assemble(kept.collect(), &mut Account::new(), 0)
    }
}
