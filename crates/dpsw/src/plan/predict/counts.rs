//! Expected counts of a window, and the groups of keys by which plans are judged.

/// Items of the prior by which plans are judged, as in the evaluation: the most frequent ones.
const FREQUENT: usize = 50;
/// Rare items are the others with at least this count.
const RARE_COUNT_MIN: f64 = 100.0;
/// How many rare items represent all of them.
const RARE_SAMPLE: usize = 64;

/// Expected counts, largest first.
#[derive(Debug, PartialEq)]
pub(crate) struct Counts {
    pub(crate) sorted: Vec<f64>,
    pub(crate) total: f64,
    /// The sum from each rank on.
    sums_from: Vec<f64>,
    /// The sum of squares from each rank on.
    squares_from: Vec<f64>,
    /// Some of the rare items, evenly.
    pub(crate) rare: Vec<f64>,
}

impl Counts {
    pub(crate) fn new(mut sorted: Vec<f64>) -> Self {
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let sums = sums_from(sorted.iter().copied());
        let squares_from = sums_from(sorted.iter().map(|count| count * count));
        let rare = sorted.get(FREQUENT..).unwrap_or_default();
        let rare = &rare[..rare.partition_point(|&count| RARE_COUNT_MIN <= count)];
        let rare = rare.iter().step_by(rare.len().div_ceil(RARE_SAMPLE).max(1)).copied().collect();
        Self { total: sorted.iter().sum(), sums_from: sums, squares_from, rare, sorted }
    }

    pub(crate) fn frequent(&self) -> &[f64] {
        &self.sorted[..self.sorted.len().min(FREQUENT)]
    }

    /// The count of a rank, from 1; of the last if there are fewer.
    pub(crate) fn of_rank(&self, rank: usize) -> f64 {
        self.sorted[rank.min(self.sorted.len()) - 1]
    }

    /// How many keys have at least this count.
    pub(crate) fn at_least(&self, least: f64) -> usize {
        self.sorted.partition_point(|&count| least <= count)
    }

    /// The sum of the counts from a rank on, and that of their squares.
    pub(crate) fn sums_from(&self, rank: usize) -> [f64; 2] {
        [&self.sums_from, &self.squares_from].map(|from| from.get(rank).copied().unwrap_or(0.0))
    }
}

/// The sum from each place on.
fn sums_from(values: impl DoubleEndedIterator<Item = f64>) -> Vec<f64> {
    let mut sums: Vec<f64> = values
        .rev()
        .scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        })
        .collect();
    sums.reverse();
    sums
}
