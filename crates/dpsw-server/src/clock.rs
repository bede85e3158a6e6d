//! What time it is: the service asks here and nowhere else, so that tests run hours in milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock in milliseconds since 1970. It may jump: the service never lets time go back.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now_ms(&self) -> u64;
}

/// The clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands where it was set, for tests.
#[derive(Debug, Default)]
pub struct SetClock(AtomicU64);

impl SetClock {
    /// A clock that stands at this time.
    #[must_use]
    pub fn at(now_ms: u64) -> Self {
        Self(AtomicU64::new(now_ms))
    }

    /// Sets it, forward or back.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
