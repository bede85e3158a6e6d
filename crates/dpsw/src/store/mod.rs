//! Where it is kept which saved states are fresh. The only part of the library that touches the disk, and only with the
//! feature `files`.

#[cfg(feature = "files")]
pub(crate) mod file;
pub(crate) mod memory;

#[cfg(feature = "files")]
pub use file::FileStore;
pub use memory::MemoryStore;
