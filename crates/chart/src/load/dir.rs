//! A chart's files from a directory.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::ignore::Rules;
use super::{Account, MAX_DEPTH, MAX_FILE_BYTES, RawFile, decode, unread, without_mark};
use crate::{LoadError, share};

/// What is done with the files of `crds/`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Crds {
    /// They are read like all others.
    Read,
    /// They are left unread, if they are large together.
    LeaveLarge,
}

/// Bytes that take longer to read than it takes to find out whether anybody wants them.
const WORTH_LEAVING: u64 = 256 << 10;

/// Reads all files of a chart's directory but the ignored ones. Symbolic links
/// are followed, as in Helm.
pub(super) fn read(
    root: &Path,
    crds: Crds,
    account: &mut Account,
) -> Result<Vec<RawFile>, LoadError> {
    let ignore_file = root.join(".helmignore");
    let mut buffer = Vec::new();
    let rules = match read_any_file(&ignore_file, MAX_IGNORE_BYTES, &mut buffer) {
        Ok(text) => Rules::parse(&ignore_file, &String::from_utf8_lossy(text))?,
        Err(LoadError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Rules::default()
        }
        Err(error) => return Err(error),
    };
    let mut walk = Walk { rules: rules.with_defaults(), account, found: Vec::new(), work: 0 };
    walk.folder(root, "", 0)?;
    // Only now: what is too much in all is known before any of it is read.
    let mut found = std::mem::take(&mut walk.found);
    if crds == Crds::LeaveLarge {
        leave_crds(&mut found);
    }
    let mut ahead = read_ahead(&found).into_iter();
    let read = |file: Found| match ahead.next().flatten() {
        _ if file.left => walk.leave(file),
        Some(ahead) => {
            walk.account.give(file.size);
            Ok(RawFile { name: file.name, data: ahead.data, unread: None, values: ahead.values })
        }
        None => walk.read(file, &mut buffer),
    };
    found.into_iter().map(read).collect()
}

/// Marks the files of `crds/` of the chart and of the charts in it, if they are large together.
fn leave_crds(found: &mut [Found]) {
    let is_crd = |file: &&mut Found| {
        let mut name = file.name.as_str();
        while let Some((_, inner)) = name.strip_prefix("charts/").and_then(|n| n.split_once('/')) {
            name = inner;
        }
        name.starts_with("crds/")
    };
    let mut crds: Vec<_> = found.iter_mut().filter(is_crd).collect();
    if crds.iter().map(|file| file.size).sum::<u64>() >= WORTH_LEAVING {
        for file in &mut crds {
            file.left = true;
        }
    }
}

/// A file that has been read before its turn.
struct Ahead {
    data: Arc<[u8]>,
    values: Option<decode::Values>,
}

/// Files that are read by several threads if they are large together, and the chart's values with
/// them: these take as long as all else. What cannot be read, or is not as long as it was said to be,
/// is left to be read in its turn.
fn read_ahead(found: &[Found]) -> Vec<Option<Ahead>> {
    let wanted = found.iter().filter(|file| !file.left);
    if wanted.map(|file| file.size).sum::<u64>() < WORTH_THREADS {
        return Vec::new();
    }
    let read = |buffer: &mut Vec<u8>, (_, file): &(usize, &Found)| {
        if file.left {
            return None;
        }
        let data = read_file(&file.path, file.size, file.size, buffer).ok()?;
        let data = (data.len() as u64 == file.size).then(|| without_mark(data))?;
        let is_values = file.name == VALUES;
        let values = is_values.then(|| decode::Values::read(data, catamaran_yaml::MAX_SIZE).ok());
        Some(Ahead { data: data.into(), values: values.flatten() })
    };
    let mut order: Vec<_> = found.iter().enumerate().collect();
    // What takes longest comes first.
    order.sort_by_key(|(_, file)| file.name != VALUES);
    let read = share::map(&order, Vec::new, read);
    let mut all: Vec<_> = order.iter().map(|(place, _)| *place).zip(read).collect();
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, ahead)| ahead).collect()
}

const VALUES: &str = "values.yaml";

/// Bytes that take much longer to read than a thread to start.
const WORTH_THREADS: u64 = 1 << 20;

/// The largest `.helmignore`: every line is held against every file.
const MAX_IGNORE_BYTES: u64 = 256 << 10;
/// Bytes of patterns that are held against names, of all files together.
const MAX_IGNORE_WORK: u64 = 250 << 20;

/// Reads a regular file; anything else could have no end.
fn read_any_file<'b>(
    path: &Path,
    limit: u64,
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8], LoadError> {
    let found =
        fs::metadata(path).map_err(|source| LoadError::Io { path: path.to_owned(), source })?;
    if !found.is_file() {
        return Err(LoadError::Irregular(path.to_owned()));
    }
    read_file(path, found.len(), limit, buffer)
}

/// Reads a regular file, said to be of that size, into a buffer that others have been read into
/// before: it only grows, and what it held is not cleared.
pub(super) fn read_file<'b>(
    path: &Path,
    size: u64,
    limit: u64,
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8], LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    let room = usize::try_from(size.min(limit)).unwrap_or(0) + 1;
    if buffer.len() < room {
        buffer.resize(room, 0);
    }
    let mut file = fs::File::open(path).map_err(io)?;
    let mut length = match file.read(buffer) {
        Err(error) if error.kind() == ErrorKind::Interrupted => 0,
        read => read.map_err(io)?,
    };
    // With room for more, a file that holds what it said to hold is at its end. Some files of the
    // system are longer than they say.
    if length as u64 != size || size == 0 {
        buffer.truncate(length);
        file.take((limit + 1).saturating_sub(length as u64)).read_to_end(buffer).map_err(io)?;
        length = buffer.len();
    }
    if length as u64 > limit {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(LoadError::FileTooLarge { name, limit });
    }
    Ok(buffer.get(..length).unwrap_or_default())
}

/// A file, before it is read.
struct Found {
    path: PathBuf,
    /// Its name in the chart.
    name: String,
    size: u64,
    /// Nobody may want to read it.
    left: bool,
}

struct Walk<'a> {
    rules: Rules,
    account: &'a mut Account,
    found: Vec<Found>,
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
        self.found.push(Found { path: path.clone(), name, size: found.len(), left: false });
        Ok(())
    }

    fn read(&mut self, file: Found, buffer: &mut Vec<u8>) -> Result<RawFile, LoadError> {
        let data = read_file(&file.path, file.size, MAX_FILE_BYTES, buffer)?;
        let beyond = (data.len() as u64).saturating_sub(file.size);
        if beyond > 0 {
            self.account.charge(&file.name, beyond)?;
        }
        self.account.give(data.len() as u64);
        Ok(RawFile::new(file.name, data))
    }

    /// Leaves a file unread; that it may be read is seen now, as in Helm.
    fn leave(&mut self, file: Found) -> Result<RawFile, LoadError> {
        let Found { path, name, size, .. } = file;
        fs::File::open(&path).map_err(|source| LoadError::Io { path: path.clone(), source })?;
        self.account.give(size);
        let unread = Some(unread::Place { path, size });
        Ok(RawFile { name, data: unread::bytes(), unread, values: None })
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
