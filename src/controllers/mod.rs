//! The reconcilers, one file each.

mod memcachedbackup;

pub use memcachedbackup::MemcachedBackups;
