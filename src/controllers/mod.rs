//! The reconcilers, one file each.

mod backups;
mod memcachedbackup;

pub use memcachedbackup::MemcachedBackups;
