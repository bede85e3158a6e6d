//! A made-up stream of trending words, and what is true of it. Its throws start the same each time, so that a stream is the
//! same on every machine.

use std::collections::{HashMap, VecDeque};

/// How many items there are.
pub(crate) const DOMAIN_LEN: u32 = 25_600;
/// Items of the window by which answers are judged.
const TOP: usize = 50;

const CONSONANTS: &[u8] = b"bdfghjklmnprstvwz";
const VOWELS: &[u8] = b"aeiou";

/// The name of an item: three syllables, each name once.
pub(crate) fn name(item: u32) -> String {
    // Neighbouring numbers get unlike names: 7919 shares no factor with the number of names.
    let mut number = (u64::from(item) + 12_345) * 7919 % SYLLABLES.pow(3);
    let mut name = String::new();
    for _ in 0..3 {
        let syllable = (number % SYLLABLES) as usize;
        name.push(CONSONANTS[syllable / VOWELS.len()].into());
        name.push(VOWELS[syllable % VOWELS.len()].into());
        number /= SYLLABLES;
    }
    name
}

const SYLLABLES: u64 = (CONSONANTS.len() * VOWELS.len()) as u64;

/// Zipf-distributed ranks; four fifths of the ranks pass to another item now and then.
pub(crate) struct Stream {
    ranks: Zipf,
    names: Vec<String>,
    places: HashMap<String, u32>,
    position: u64,
    dice: Dice,
}

impl Stream {
    pub(crate) fn new() -> Self {
        let names: Vec<String> = (0..DOMAIN_LEN).map(name).collect();
        let places = names.iter().cloned().zip(0..).collect();
        Self { ranks: Zipf::new(DOMAIN_LEN), names, places, position: 0, dice: Dice::new() }
    }

    pub(crate) fn next_item(&mut self) -> u32 {
        let rank = self.ranks.rank(&mut self.dice) as u64;
        let era = (self.position + rank * 131_071) / 2_000_000 * (rank % 5);
        self.position += 1;
        ((rank * 7919 + era * 104_729) % u64::from(DOMAIN_LEN)) as u32
    }

    pub(crate) fn name(&self, item: u32) -> &str {
        &self.names[item as usize]
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.places.get(name).copied()
    }
}

/// The exact window.
pub(crate) struct Truth {
    window_len: usize,
    window: VecDeque<u32>,
    counts: Vec<u32>,
}

impl Truth {
    pub(crate) fn new(window_len: usize) -> Self {
        Self { window_len, window: VecDeque::new(), counts: vec![0; DOMAIN_LEN as usize] }
    }

    pub(crate) fn extend(&mut self, items: &[u32]) {
        for &item in items {
            self.window.push_back(item);
            self.counts[item as usize] += 1;
        }
        let expired = self.window.len().saturating_sub(self.window_len);
        for item in self.window.drain(..expired) {
            self.counts[item as usize] -= 1;
        }
    }

    pub(crate) fn count(&self, item: u32) -> f64 {
        self.counts[item as usize].into()
    }

    /// The most frequent items.
    pub(crate) fn top(&self) -> Vec<u32> {
        let mut items: Vec<u32> = (0..DOMAIN_LEN).collect();
        items.sort_by_key(|&item| std::cmp::Reverse(self.counts[item as usize]));
        items.truncate(TOP);
        items
    }
}

/// Knuth's linear congruential generator; only its high bits are used.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(1)
    }

    /// The next throw, from 0 up to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 2_f64.powi(53)
    }

    /// One of these, each as often as the others.
    pub(crate) fn one_of(&mut self, these: &[&'static str]) -> &'static str {
        these[(self.uniform() * these.len() as f64) as usize]
    }
}

/// Ranks from 0 on, whose frequencies fall as 1, 1/2, 1/3...
pub(crate) struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(ranks: u32) -> Self {
        let mut sum = 0.0;
        let cumulative = (1..=ranks).map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        });
        Self { cumulative: cumulative.collect() }
    }

    pub(crate) fn rank(&self, dice: &mut Dice) -> usize {
        let total = self.cumulative.last().expect("there is a rank");
        let uniform = dice.uniform() * total;
        self.cumulative.partition_point(|&c| c < uniform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_a_name_of_its_own() {
        let stream = Stream::new();
        assert_eq!(stream.places.len(), DOMAIN_LEN as usize);
        assert_eq!(stream.find(stream.name(77)), Some(77));
    }

    #[test]
    fn the_exact_window_forgets() {
        let mut truth = Truth::new(3);
        truth.extend(&[1, 1, 2]);
        truth.extend(&[2]);
        assert_eq!((truth.count(1), truth.count(2)), (1.0, 2.0));
        assert_eq!(truth.top()[0], 2);
    }
}
