//! How much is under way: everything that is handed from thread to thread carries a mark, and when the last one is gone all
//! work is done.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sync::LockAnyway;

/// The number of things that are under way.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    under_way: Mutex<usize>,
    idle: Condvar,
}

/// A thing that is under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Gauge>);

impl Gauge {
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        *self.under_way.lock_anyway() += 1;
        Busy(Arc::clone(self))
    }

    /// Whether nothing is under way, now or before the time is over.
    pub(crate) fn is_idle_within(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut under_way = self.under_way.lock_anyway();
        while *under_way != 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            under_way = self.idle.wait_timeout(under_way, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut under_way = self.0.under_way.lock_anyway();
        *under_way -= 1;
        if *under_way == 0 {
            self.0.idle.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_idle_when_the_last_mark_is_gone() {
        let gauge = Arc::new(Gauge::default());
        let (one, other) = (gauge.begin(), gauge.begin());
        drop(one);
        assert!(!gauge.is_idle_within(Duration::from_millis(1)));
        let waiting = std::thread::spawn({
            let gauge = Arc::clone(&gauge);
            move || gauge.is_idle_within(Duration::from_secs(60))
        });
        drop(other);
        assert!(waiting.join().expect("no panic"));
    }
}
