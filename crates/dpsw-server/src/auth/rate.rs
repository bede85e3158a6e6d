//! How often a token may ask: a bucket of requests that fills evenly.

use std::time::{Duration, Instant};

/// A bucket that holds at most `burst` requests and gains `per_second` of them.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    per_second: f64,
    burst: f64,
    filled: f64,
    at: Instant,
}

impl Bucket {
    /// A full one.
    pub(crate) fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst);
        Self { per_second: per_second.into(), burst, filled: burst, at: now }
    }

    /// Takes one request out, or says how long to wait for it.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.filled = (self.filled + gained).min(self.burst);
        self.at = now;
        if self.filled < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.filled) / self.per_second));
        }
        self.filled -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_a_burst_through_and_then_its_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, 3, start);
        assert_eq!((0..3).map(|_| bucket.take(start)).collect::<Vec<_>>(), [Ok(()); 3]);
        assert_eq!(bucket.take(start), Err(Duration::from_millis(100)));
        let later = start + Duration::from_millis(250);
        assert_eq!((bucket.take(later), bucket.take(later)), (Ok(()), Ok(())));
        assert!(bucket.take(later).is_err());
        // However long the pause, no more than the burst.
        let much_later = start + Duration::from_secs(1000);
        assert_eq!((0..9).filter(|_| bucket.take(much_later).is_ok()).count(), 3);
    }
}
