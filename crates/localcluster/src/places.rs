//! Where things lie on this machine.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::access::digest;
use crate::error::{Error, Result};
use crate::real;
use crate::supervisor::LOCK;

/// A folder without a lock that is this old is of a start that never came to locking it.
const ABANDONED: Duration = Duration::from_mins(10);

/// How long a killed component may still write into its cluster's folder.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// How long to wait before a folder is removed once more.
const RETRY: Duration = Duration::from_millis(20);

/// The most bytes that the path of a unix socket may have (`sun_path`, with its final zero).
const SOCKET_PATH_MAX: usize = 107;

/// If this is set, the folders of clusters remain, for those who want to read the logs; until one is
/// started without it.
const KEEP: &str = "CATAMARAN_LOCALCLUSTER_KEEP";

/// The checkout this crate was built in, if it is still there.
pub(crate) fn checkout() -> Option<PathBuf> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2)?.canonicalize().ok()
}

/// Whether folders shall remain.
pub(crate) fn keep() -> bool {
    std::env::var_os(KEEP).is_some()
}

/// The folder of all clusters of this user. Nobody else can look into it: keys lie there.
pub(crate) fn home() -> Result<PathBuf> {
    private(std::env::temp_dir().join(folder_name()))
}

/// Where sockets and locks of shared clusters lie: as [`home`], but surely with a short path.
fn meeting_place() -> Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|path| path.is_dir()) {
        Some(path) => private(path.join("catamaran")),
        None => private(Path::new("/tmp").join(folder_name())),
    }
}

fn folder_name() -> String {
    format!("catamaran-{}", rustix::process::getuid().as_raw())
}

/// Creates a folder that is ours alone, or makes sure that the one that is there is.
fn private(path: PathBuf) -> Result<PathBuf> {
    let what = || format!("make {} ours alone", path.display());
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Error::io(what())(error)),
        _ => Ok(()),
    }?;
    // Not following links: somebody else may have been quicker with the name.
    let found = fs::symlink_metadata(&path).map_err(Error::io(what()))?;
    if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() {
        let not_ours =
            io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to somebody else");
        return Err(Error::io(what())(not_ours));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(Error::io(what()))?;
    }
    Ok(path)
}

/// A new folder for a cluster; those of clusters whose supervisor was killed are removed meanwhile.
pub(crate) fn new_folder(kind: &str) -> Result<PathBuf> {
    let home = home()?;
    if !keep() {
        sweep(&home);
    }
    let folder = tempfile::Builder::new()
        .prefix(&format!("{kind}-"))
        .tempdir_in(&home)
        .map_err(Error::io(format!("create a folder in {}", home.display())))?;
    Ok(folder.keep())
}

/// Removes what killed supervisors have left behind.
fn sweep(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && is_abandoned(&path) {
            real::sweep(&path);
            remove_folder(&path);
        }
    }
}

/// Removes a cluster's folder, and waits a while for those who still write into it: killed processes
/// end a moment after their supervisor, and a file made by one of them makes the removal fail.
/// Nothing else can be done about it if it fails.
pub(crate) fn remove_folder(folder: &Path) {
    let begun = Instant::now();
    while fs::remove_dir_all(folder).is_err() && folder.exists() && begun.elapsed() < LAST_WRITES {
        std::thread::sleep(RETRY);
    }
}

fn is_abandoned(folder: &Path) -> bool {
    if let Ok(lock) = fs::File::open(folder.join(LOCK)) {
        return lock.try_lock().is_ok();
    }
    let modified = fs::metadata(folder).and_then(|found| found.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED))
}

/// Where those meet who share a cluster.
pub(crate) struct Meeting {
    /// The supervisor listens here.
    pub(crate) socket: PathBuf,
    /// Locked by the one who starts a supervisor: one lock for all, held for milliseconds.
    pub(crate) lock: PathBuf,
}

impl Meeting {
    /// For those who agree on `key`.
    pub(crate) fn new(key: &impl std::hash::Hash) -> Result<Self> {
        let place = meeting_place()?;
        let name = digest(key);
        let socket = place.join(format!("{name}.sock"));
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(Error::Invalid(format!(
                "the path {} is too long for a socket; set XDG_RUNTIME_DIR to a shorter one",
                socket.display()
            )));
        }
        Ok(Self { socket, lock: place.join("starting.lock") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_dead_supervisors_are_swept() {
        let home = tempfile::tempdir().unwrap();
        for name in ["alive", "dead", "starting"] {
            fs::create_dir(home.path().join(name)).unwrap();
        }
        let alive = fs::File::create(home.path().join("alive").join(LOCK)).unwrap();
        alive.lock().unwrap();
        fs::File::create(home.path().join("dead").join(LOCK)).unwrap();

        sweep(home.path());

        let left = |name: &str| home.path().join(name).exists();
        assert!(left("alive"), "its lock is held");
        assert!(!left("dead"), "its lock is not held");
        assert!(left("starting"), "it may be about to be locked");
    }

    #[test]
    fn a_folder_goes_although_somebody_writes_into_it_for_a_while() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("cluster/data");
        fs::create_dir_all(&data).unwrap();
        let begun = Instant::now();
        let writer = std::thread::spawn(move || {
            let mut names = 0..;
            while begun.elapsed() < Duration::from_millis(300)
                && names
                    .next()
                    .is_some_and(|name| fs::write(data.join(name.to_string()), "").is_ok())
            {
            }
        });
        let folder = home.path().join("cluster");
        remove_folder(&folder);
        writer.join().unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_of_keys_is_closed_to_others() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("x");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        private(path.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);

        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(private(link).is_err(), "a link may lead anywhere");
    }
}
