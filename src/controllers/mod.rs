//! The reconcilers, and what is added to charts, one file each.

mod backups;
mod memcached;
mod memcachedbackup;

pub use memcached::Memcacheds;
pub use memcachedbackup::MemcachedBackups;
