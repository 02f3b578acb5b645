//! Backups as files: a line of JSON each for what it is, for every item, and for its end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Lines, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Error;

const FORMAT: &str = "memcached-backup/1";
const EXTENSION: &str = "jsonl";

/// What a key stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    #[serde(with = "bytes")]
    pub key: Vec<u8>,
    #[serde(with = "bytes")]
    pub value: Vec<u8>,
    pub flags: u32,
    /// In seconds since 1970; `None` is never.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires: Option<i64>,
}

/// Bytes as base64.
mod bytes {
    use super::{Deserialize, Engine, STANDARD};

    pub fn serialize<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'a, D: serde::Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    taken: String,
}

#[derive(Serialize, Deserialize)]
struct End {
    items: u64,
}

/// A backup that is being written; it has its name when it is whole.
pub(super) struct Writer {
    out: BufWriter<File>,
    part: PathBuf,
    name: String,
}

impl Writer {
    pub fn create(folder: &Path, now: Timestamp) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io(folder.display().to_string()))?;
        let name = format!("{}.{EXTENSION}", now.strftime("%Y%m%dT%H%M%SZ"));
        let part = folder.join(format!("{name}.part"));
        let file = File::create(&part).map_err(Error::io(part.display().to_string()))?;
        let mut writer = Self { out: BufWriter::new(file), part, name };
        let taken = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        writer.line(&Head { format: FORMAT.to_owned(), taken })?;
        Ok(writer)
    }

    pub fn item(&mut self, item: &Item) -> Result<(), Error> {
        self.line(item)
    }

    /// Its name, now that it is on the disk.
    pub fn finish(mut self, items: u64) -> Result<String, Error> {
        self.line(&End { items })?;
        let wrong = || self.part.display().to_string();
        self.out.flush().map_err(Error::io(wrong()))?;
        self.out.get_ref().sync_all().map_err(Error::io(wrong()))?;
        let whole = self.part.with_file_name(&self.name);
        fs::rename(&self.part, whole).map_err(Error::io(wrong()))?;
        Ok(self.name)
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let written = serde_json::to_writer(&mut self.out, line).map_err(std::io::Error::from);
        let ended = written.and_then(|()| self.out.write_all(b"\n"));
        ended.map_err(Error::io(self.part.display().to_string()))
    }
}

/// The items of a backup; an error at its end if it has none.
pub(super) struct Reader {
    lines: Lines<BufReader<File>>,
    path: PathBuf,
    read: u64,
    done: bool,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io(path.display().to_string()))?;
        let lines = BufReader::new(file).lines();
        let mut reader = Self { lines, path: path.to_owned(), read: 0, done: false };
        let head = reader.line()?.and_then(|line| serde_json::from_str::<Head>(&line).ok());
        match head {
            Some(head) if head.format == FORMAT => Ok(reader),
            _ => Err(reader.wrong("is no backup of memcached")),
        }
    }

    fn line(&mut self) -> Result<Option<String>, Error> {
        self.lines.next().transpose().map_err(Error::io(self.path.display().to_string()))
    }

    fn wrong(&self, why: &str) -> Error {
        Error::File(format!("{} {why}", self.path.display()))
    }

    fn read_next(&mut self) -> Result<Option<Item>, Error> {
        let Some(line) = self.line()? else {
            return Err(self.wrong("is cut off"));
        };
        if let Ok(item) = serde_json::from_str::<Item>(&line) {
            self.read += 1;
            return Ok(Some(item));
        }
        match serde_json::from_str::<End>(&line) {
            Ok(end) if end.items == self.read => Ok(None),
            _ => Err(self.wrong(&format!("is damaged in line {}", self.read + 2))),
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read_next().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The backups of a folder, the oldest first.
fn backups(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong = || folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io(wrong()))? {
        let path = entry.map_err(Error::io(wrong()))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A backup by its name, or the latest.
pub(super) fn find(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let all = backups(folder)?;
    let found = match name {
        "latest" => all.into_iter().next_back(),
        name => all.into_iter().find(|path| path.file_name().is_some_and(|is| is == name)),
    };
    found.ok_or_else(|| Error::File(format!("there is no backup {name:?} in {}", folder.display())))
}

/// Deletes the oldest backups.
pub(super) fn prune(folder: &Path, keep: u32) -> Result<(), Error> {
    let all = backups(folder)?;
    let surplus = all.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    for path in all.into_iter().take(surplus) {
        fs::remove_file(&path).map_err(Error::io(path.display().to_string()))?;
    }
    Ok(())
}
