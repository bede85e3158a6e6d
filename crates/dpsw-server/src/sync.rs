//! Locks that go on after a panic.
//!
//! A thread that panics while it holds a lock must not keep all others from it: whoever asks is still answered, and an engine that
//! has to stop still says why. No value under these locks is ever left half changed: it is replaced as a whole, or in steps that do
//! not panic.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A mutex that is locked whatever became of those who held it before.
pub(crate) trait LockAnyway<T> {
    fn lock_anyway(&self) -> MutexGuard<'_, T>;
}

/// The same of a lock with many readers.
pub(crate) trait ShareAnyway<T> {
    fn read_anyway(&self) -> RwLockReadGuard<'_, T>;
    fn write_anyway(&self) -> RwLockWriteGuard<'_, T>;
}

impl<T> LockAnyway<T> for Mutex<T> {
    fn lock_anyway(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> ShareAnyway<T> for RwLock<T> {
    fn read_anyway(&self) -> RwLockReadGuard<'_, T> {
        self.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_anyway(&self) -> RwLockWriteGuard<'_, T> {
        self.write().unwrap_or_else(PoisonError::into_inner)
    }
}
