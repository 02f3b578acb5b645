//! A chart's files from a directory.

use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::ignore::Rules;
use super::{Account, MAX_DEPTH, MAX_FILE_BYTES, RawFile, without_mark};
use crate::{LoadError, share};

/// Reads all files of a chart's directory but the ignored ones. Symbolic links
/// are followed, as in Helm.
pub(super) fn read(root: &Path, account: &mut Account) -> Result<Vec<RawFile>, LoadError> {
    let ignore_file = root.join(".helmignore");
    let mut buffer = Vec::new();
    let rules = match read_file(&ignore_file, MAX_IGNORE_BYTES, &mut buffer) {
        Ok(()) => Rules::parse(&ignore_file, &String::from_utf8_lossy(&buffer))?,
        Err(LoadError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Rules::default()
        }
        Err(error) => return Err(error),
    };
    let mut walk = Walk { rules: rules.with_defaults(), account, found: Vec::new(), work: 0 };
    walk.folder(root, "", 0)?;
    // Only now: what is too much in all is known before any of it is read.
    let found = std::mem::take(&mut walk.found);
    let mut ahead = read_ahead(&found).into_iter();
    let read = |(path, name, size): (PathBuf, String, _)| match ahead.next().flatten() {
        Some(data) => {
            walk.account.give(size);
            Ok(RawFile { name, data })
        }
        None => walk.read(&path, name, size, &mut buffer),
    };
    found.into_iter().map(read).collect()
}

/// Files that are read by several threads if they are large together. What cannot be read, or is not
/// as long as it was said to be, is left to be read in its turn.
fn read_ahead(found: &[(PathBuf, String, u64)]) -> Vec<Option<Arc<[u8]>>> {
    if found.iter().map(|(_, _, size)| size).sum::<u64>() < WORTH_THREADS {
        return Vec::new();
    }
    let read = |buffer: &mut Vec<u8>, (path, _, size): &(PathBuf, String, u64)| {
        read_file(path, *size, buffer).ok()?;
        (buffer.len() as u64 == *size).then(|| without_mark(buffer).into())
    };
    share::map(found, Vec::new, read)
}

/// Bytes that take much longer to read than a thread to start.
const WORTH_THREADS: u64 = 1 << 20;

/// The largest `.helmignore`: every line is held against every file.
const MAX_IGNORE_BYTES: u64 = 256 << 10;
/// Bytes of patterns that are held against names, of all files together.
const MAX_IGNORE_WORK: u64 = 250 << 20;

/// Reads a regular file into a buffer that others have been read into before; anything else could
/// have no end.
fn read_file(path: &Path, limit: u64, data: &mut Vec<u8>) -> Result<(), LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    let found = fs::metadata(path).map_err(io)?;
    if !found.is_file() {
        return Err(LoadError::Irregular(path.to_owned()));
    }
    data.clear();
    data.reserve(usize::try_from(found.len().min(limit)).unwrap_or(0) + 1);
    // Some files of the system are longer than they say.
    let file = fs::File::open(path).map_err(io)?;
    file.take(limit + 1).read_to_end(data).map_err(io)?;
    if data.len() as u64 > limit {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(LoadError::FileTooLarge { name, limit });
    }
    Ok(())
}

struct Walk<'a> {
    rules: Rules,
    account: &'a mut Account,
    /// Files with their names in the chart and their sizes.
    found: Vec<(PathBuf, String, u64)>,
    work: u64,
}

impl Walk<'_> {
    /// Files of a folder in the byte order of their names, as Helm walks.
    fn folder(&mut self, path: &Path, prefix: &str, depth: usize) -> Result<(), LoadError> {
        // A link to a folder above would be walked until the path is too long for the system.
        if depth > MAX_DEPTH {
            return Err(LoadError::TooDeep { path: path.to_owned(), limit: MAX_DEPTH });
        }
        let io = |source| LoadError::Io { path: path.to_owned(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(io)? {
            names.push(entry.map_err(io)?.file_name());
        }
        names.sort_unstable();
        for name in names {
            let child = path.join(&name);
            let name = format!("{prefix}{}", name.to_string_lossy());
            self.entry(&child, name, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &PathBuf, name: String, depth: usize) -> Result<(), LoadError> {
        let io = |source| LoadError::Io { path: path.clone(), source };
        let found = match fs::metadata(path) {
            Err(_) if path.is_symlink() => return Err(dangling(path)),
            found => found.map_err(io)?,
        };
        self.work += self.rules.size();
        if self.work > MAX_IGNORE_WORK {
            return Err(LoadError::TooManyFiles { limit: self.account.entries });
        }
        if self.rules.ignores(&name, found.is_dir()) {
            return Ok(());
        }
        if found.is_dir() {
            self.account.charge(&name, 0)?;
            return self.folder(path, &format!("{name}/"), depth + 1);
        }
        if !found.is_file() {
            return Err(LoadError::Irregular(path.clone()));
        }
        self.account.charge(&name, found.len())?;
        self.found.push((path.clone(), name, found.len()));
        Ok(())
    }

    fn read(
        &mut self,
        path: &Path,
        name: String,
        size: u64,
        data: &mut Vec<u8>,
    ) -> Result<RawFile, LoadError> {
        read_file(path, MAX_FILE_BYTES, data)?;
        let beyond = (data.len() as u64).saturating_sub(size);
        if beyond > 0 {
            self.account.charge(&name, beyond)?;
        }
        self.account.give(data.len() as u64);
        Ok(RawFile::new(name, data))
    }
}

/// What Go says of a link that cannot be followed.
fn dangling(path: &Path) -> LoadError {
    let target = fs::read_link(path).unwrap_or_default();
    let mut whole = PathBuf::new();
    for part in path.parent().unwrap_or(path).join(target).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            part => whole.push(part),
        }
    }
    let missing = whole.ancestors().filter(|path| path.symlink_metadata().is_err()).last();
    let fault = match missing {
        Some(missing) => format!("lstat {}: no such file or directory", missing.display()),
        None => "EvalSymlinks: too many links".to_owned(),
    };
    LoadError::Link { path: path.to_owned(), fault }
}
