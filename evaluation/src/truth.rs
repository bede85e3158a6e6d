//! The exact window, which only an evaluation can know.

use rand::rngs::ChaCha12Rng;
use rand::seq::IndexedRandom;

use crate::running::Public;

/// How many items are asked of each group: the most frequent ones, and rare ones.
pub const FREQUENT: usize = 50;
/// Rare items are others that occur at least this often.
const RARE_COUNT_MIN: u64 = 100;

/// Exact counts of the last `window_len` items.
#[derive(Debug)]
pub struct Truth<'a> {
    items: &'a [u64],
    window_len: usize,
    position: usize,
    counts: Vec<u64>,
}

impl<'a> Truth<'a> {
    pub fn new(items: &'a [u64], domain_len: usize, window_len: usize) -> Self {
        Self { items, window_len, position: 0, counts: vec![0; domain_len] }
    }

    /// Goes on to a position.
    pub fn advance(&mut self, position: usize) {
        for index in self.position..position {
            self.counts[self.items[index] as usize] += 1;
            if let Some(expired) = index.checked_sub(self.window_len) {
                self.counts[self.items[expired] as usize] -= 1;
            }
        }
        self.position = position;
    }

    /// The lengths of the window and of the domain.
    pub fn public(&self) -> Public {
        Public { window_len: self.window_len as u64, domain_len: self.counts.len() }
    }

    pub fn count(&self, item: u64) -> u64 {
        self.counts[item as usize]
    }

    pub fn shares(&self) -> Vec<f64> {
        self.counts.iter().map(|&count| count as f64 / self.window_len as f64).collect()
    }

    /// The [`FREQUENT`] most frequent items.
    pub fn frequent(&self) -> Vec<u64> {
        self.top(FREQUENT)
    }

    /// The most frequent items, in no order; of equally frequent ones, those with smaller numbers.
    pub fn top(&self, len: usize) -> Vec<u64> {
        let mut items: Vec<u64> = (0..self.counts.len() as u64).collect();
        let by_count = |a: &u64, b: &u64| self.count(*b).cmp(&self.count(*a)).then(a.cmp(b));
        if 0 < len && len < items.len() {
            items.select_nth_unstable_by(len - 1, by_count);
        }
        items.truncate(len);
        items
    }

    /// Some of the other items that are not too rare to matter.
    pub fn rare(&self, frequent: &[u64], random: &mut ChaCha12Rng) -> Vec<u64> {
        let is_rare = |item: &u64| RARE_COUNT_MIN <= self.count(*item) && !frequent.contains(item);
        let items: Vec<u64> = (0..self.counts.len() as u64).filter(is_rare).collect();
        items.sample(random, FREQUENT).copied().collect()
    }

    /// The items with at least this share of the window, in ascending order.
    pub fn heavy(&self, gamma: f64) -> Vec<u64> {
        let least = gamma * self.window_len as f64;
        (0..self.counts.len() as u64).filter(|&item| least <= self.count(item) as f64).collect()
    }
}
