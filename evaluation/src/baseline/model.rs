//! Random streams and their exact counts, which tests compare with.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// A stream in which small items are more frequent.
pub(super) fn stream(len: usize, domain_len: u64, seed: u64) -> Vec<u64> {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    (0..len).map(|_| random.random_range(0..domain_len).min(random.random_range(0..domain_len))).collect()
}

/// How often every item of the domain occurs.
pub(super) fn counts(items: &[u64], domain_len: usize) -> Vec<f64> {
    let mut counts = vec![0.0; domain_len];
    items.iter().for_each(|&item| counts[item as usize] += 1.0);
    counts
}
