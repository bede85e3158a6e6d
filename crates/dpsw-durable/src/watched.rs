//! The database's file, watched: which kind of failure it had, and what it costs to wait for the disk.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{BackendError, StorageBackend};

/// A file that passes everything on. Without durability it does not wait for the disk.
#[derive(Debug)]
pub struct Watched {
    /// The file.
    pub inner: Box<dyn StorageBackend>,
    /// Whether it waits.
    pub is_durable: bool,
    /// Set when the disk did not confirm what it took. What it holds then cannot be told by asking again: the system may
    /// answer from memory what the disk has lost.
    pub is_lost: Arc<AtomicBool>,
}

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if !self.is_durable {
            return Ok(());
        }
        self.inner.sync_data().inspect_err(|_| self.is_lost.store(true, Ordering::SeqCst))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }
}
