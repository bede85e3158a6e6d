//! How many rows of a list will probably be false: keys that hardly occur and rank among the most frequent, by noise or by
//! a frequent key on one of their counters. docs/estimation.md derives it.

use crate::noise::tail::{Moments, Tail};
use crate::plan::counts::Counts;

/// Lengths of the lists that plans are judged by.
const LISTS: [usize; 2] = [20, 100];
/// The share of false rows that is no matter: one in 20.
const FALSE_ROWS_MAX: f64 = 0.05;
/// A row is false if its key has less than this share of the last row's count. Lists mark rows by the same share.
const FALSE_SHARE: f64 = 0.25;
/// Lists hide rows that may be noise alone: those of a size that noise gives to one of all keys with this probability.
const HIDDEN: f64 = 0.025;
/// Collisions are added up in so many steps to what they need.
const STEPS: usize = 64;
/// Standard errors that nothing reaches.
const FAR: f64 = 1e6;

/// What decides who is listed besides counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Listing {
    /// Of the noise in an estimate.
    pub(crate) noise: Moments,
    /// None where keys have counters of their own.
    pub(crate) collisions: Option<Collisions>,
    /// Keys with smaller counts are never listed.
    pub(crate) least: f64,
    /// Keys of the list that are not expected to occur.
    pub(crate) absent: usize,
}

/// How keys share counters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Collisions {
    pub(crate) columns: f64,
    pub(crate) rows: f64,
    pub(crate) substreams: f64,
    /// How many of the most frequent keys are fitted and taken away.
    pub(crate) fitted: usize,
}

impl Listing {
    /// Whether hardly any row that is shown is false, in a short list and in a long one.
    pub(crate) fn is_good(&self, counts: &Counts) -> bool {
        LISTS.iter().all(|&rows| {
            let list = self.list(counts, rows);
            let shown = counts.at_least(list.shown).clamp(1, rows);
            list.reaching(rows) <= FALSE_ROWS_MAX * shown as f64
        })
    }

    /// How many rows of a list of so many are false. Each pushes a true one out, and the last place needs more.
    pub(crate) fn false_rows(&self, counts: &Counts, rows: usize) -> f64 {
        let list = self.list(counts, rows);
        let is_room = |kept: usize| list.reaching(kept) <= (rows - kept) as f64;
        let (mut kept, mut too_many) = (0, rows + 1);
        while kept + 1 < too_many {
            let middle = usize::midpoint(kept, too_many);
            if is_room(middle) { kept = middle } else { too_many = middle }
        }
        list.reaching(rows.min(kept + 1)).min((rows - kept).max(1) as f64)
    }

    fn list<'a>(&'a self, counts: &'a Counts, rows: usize) -> List<'a> {
        let first = counts.at_least(FALSE_SHARE * counts.of_rank(rows));
        let end = counts.at_least(self.least).max(first);
        let keys = end - first + self.absent;
        let shown = Tail::new(self.noise).reach(HIDDEN / keys.max(1) as f64) * self.noise.variance.sqrt();
        List { listing: self, counts, false_keys: &counts.sorted[first..end], shown }
    }
}

/// A list of the most frequent keys.
struct List<'a> {
    listing: &'a Listing,
    counts: &'a Counts,
    /// Keys that do not belong there.
    false_keys: &'a [f64],
    /// The least estimate that is shown.
    shown: f64,
}

impl List<'_> {
    /// How many false keys are expected to be shown, with at least the count of this rank.
    fn reaching(&self, rank: usize) -> f64 {
        let error = Error::new(self.listing, self.counts, self.counts.of_rank(rank).max(self.shown));
        let mut keys = by_steps(self.false_keys, error.step);
        keys[0] += self.listing.absent as f64;
        let occupied = keys.iter().enumerate().filter(|&(_, &keys)| 0.0 < keys);
        occupied.map(|(step, keys)| keys * error.reaches(step)).sum()
    }
}

/// The law of an error, by steps to what it has to reach.
struct Error {
    step: f64,
    /// The probability that collisions add up to so many steps.
    collisions: [f64; STEPS + 1],
    /// The probability that noise and small collisions make up for what is missing after so many steps.
    rest: [f64; STEPS + 1],
}

impl Error {
    fn new(listing: &Listing, counts: &Counts, count: f64) -> Self {
        let mut moments = listing.noise;
        let mut collisions = [0.0; STEPS + 1];
        let (mut step, mut missing) = (count / STEPS as f64, count);
        match listing.collisions {
            None => collisions[0] = 1.0,
            Some(of) => {
                let level = counts.sums_from(of.fitted)[0] / of.columns;
                step = (count + level) / STEPS as f64;
                let (large, small) = of.split(counts, step);
                collisions = sums(large.map(|keys| keys * of.counters() / of.columns));
                let [sum, squares] = counts.sums_from(small);
                missing = count + level - sum / of.columns;
                moments.variance += (squares / of.substreams + sum) / (of.rows * of.columns);
                moments = moments.times_root(1.0 / (1.0 - of.fitted as f64 / (of.rows * of.columns)));
            }
        }
        let (tail, deviation) = (Tail::new(moments), moments.variance.sqrt());
        let rest = std::array::from_fn(|steps| beyond(tail, (missing - steps as f64 * step) / deviation));
        Self { step, collisions, rest }
    }

    /// The probability that a key whose own count is so many steps reaches all of them.
    fn reaches(&self, own: usize) -> f64 {
        let at = |steps: usize| self.collisions[steps] * self.rest[(own + steps).min(STEPS)];
        (0..STEPS).map(at).sum::<f64>() + self.collisions[STEPS]
    }
}

impl Collisions {
    /// Counters that hold a key in a window.
    fn counters(&self) -> f64 {
        self.rows * self.substreams
    }

    /// How many keys add so many steps where they share a counter, and the rank from which on they add less than one.
    fn split(&self, counts: &Counts, step: f64) -> ([f64; STEPS + 1], usize) {
        let step = step * self.counters();
        let small = counts.at_least(step / 2.0).max(self.fitted.min(counts.sorted.len()));
        (by_steps(&counts.sorted[self.fitted.min(small)..small], step), small)
    }
}

/// The probability of an error of more than `z` standard errors.
fn beyond(tail: Tail, z: f64) -> f64 {
    let far = tail.beyond(z.abs().min(FAR));
    if z < 0.0 { 1.0 - far } else { far }
}

/// How many of the counts, largest first, round to so many steps; the last has all beyond.
fn by_steps(sorted: &[f64], step: f64) -> [f64; STEPS + 1] {
    let mut above = 0;
    let mut keys = [0.0; STEPS + 1];
    for (steps, keys) in keys.iter_mut().enumerate().rev() {
        let least = (steps as f64 - 0.5) * step;
        let until = above + sorted[above..].partition_point(|&count| least <= count);
        (*keys, above) = ((until - above) as f64, until);
    }
    keys
}

/// The law of a sum of steps of which so many of each size are expected (Panjer's recursion); the last has all beyond.
fn sums(expected: [f64; STEPS + 1]) -> [f64; STEPS + 1] {
    let mut law = [0.0; STEPS + 1];
    law[0] = (-expected[1..].iter().sum::<f64>()).exp();
    for sum in 1..STEPS {
        let terms = (1..=sum).map(|step| step as f64 * expected[step] * law[sum - step]);
        law[sum] = terms.sum::<f64>() / sum as f64;
    }
    law[STEPS] = (1.0 - law[..STEPS].iter().sum::<f64>()).max(0.0);
    law
}
