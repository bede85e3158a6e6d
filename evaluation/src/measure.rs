//! The paper's workload on one stream with one seed: what a method answers against the exact window.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dpsw::Noise;
use dpsw::plan::{Expectation, Prior};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::method::AnyPlan;
use crate::running::Answers;
use crate::truth::Truth;

/// What is asked: at times drawn from the end of the first window to the end of the stream, the 50 most frequent
/// items, 50 others that occur at least 100 times, and the heavy hitters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// w.
    pub window_len: u64,
    pub queries: usize,
    /// Thresholds of heavy hitters, as shares of the window.
    pub gammas: Vec<f64>,
}

/// What was measured: means over the query times of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Of the most frequent items.
    pub high: Errors,
    /// Of others, if there are any that occur often enough.
    pub low: Option<Errors>,
    pub heavy: Vec<Heavy>,
    /// Predicted absolute errors of frequent and rare items, from the shape of a true window, in place of a public
    /// guess.
    pub predicted: Option<[f64; 2]>,
    /// Items inserted per second, sealing included.
    pub insert_items_per_s: f64,
    pub frequency_ns: f64,
    pub heavy_hitters_us: f64,
    /// Bytes that the method held in memory at the end.
    pub resident_bytes: u64,
}

/// Mean errors of a group of items.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// MAE.
    pub absolute: f64,
    /// MRE.
    pub relative: f64,
    /// The share of errors inside the 95 % intervals, if the method has any.
    pub covered: Option<f64>,
}

/// Mean scores of heavy-hitter queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Heavy {
    pub gamma: f64,
    /// F1, which is the harmonic mean of the other two for each query, but not for their means.
    pub f1: f64,
    /// The share of answers that are true.
    pub precision: f64,
    /// The share of truths that are answered.
    pub recall: f64,
}

/// Follows the stream and asks; everything random comes from the seed.
pub fn measure(plan: &AnyPlan, dataset: &Dataset, workload: &Workload, seed: u64) -> Result<Outcome> {
    let len = dataset.items.len();
    let window_len = usize::try_from(workload.window_len)?;
    ensure!(
        window_len < len && 0 < workload.queries,
        "{} has {len} items; a window of {window_len} needs more, and at least one query",
        dataset.name
    );
    // The same questions for every method.
    let mut random = ChaCha12Rng::seed_from_u64(0x5eed + seed);
    let mut times: Vec<usize> =
        (0..workload.queries).map(|_| random.random_range(window_len..=len)).collect();
    times.sort_unstable();
    let mut method = plan.start(Noise::seeded(seed))?;
    let mut truth = Truth::new(&dataset.items, dataset.domain_len, window_len);
    let mut sums = Sums::new(&workload.gammas);
    let mut position = 0;
    for time in times {
        let items = &dataset.items[position..time];
        sums.inserting.time(items.len(), || method.insert(items))?;
        position = time;
        truth.advance(time);
        if sums.predicted.is_none() {
            let prior = Prior::Shares(truth.shares());
            sums.predicted = plan.predict(&Expectation { prior, drift: dataset.drift })?;
        }
        sums.ask(&method.answers(), &truth, &mut random)?;
    }
    Ok(sums.outcome(method.resident_bytes()))
}

/// The time spent on a number of things.
#[derive(Debug, Default)]
struct Stopwatch {
    count: usize,
    spent: Duration,
}

impl Stopwatch {
    fn time<T>(&mut self, count: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.spent += start.elapsed();
        self.count += count;
        done
    }

    fn seconds_each(&self) -> f64 {
        self.spent.as_secs_f64() / self.count.max(1) as f64
    }
}

/// Sums over all questions.
struct Sums {
    high: Group,
    low: Group,
    heavy: Vec<Heavy>,
    asked: usize,
    inserting: Stopwatch,
    asking: Stopwatch,
    listing: Stopwatch,
    predicted: Option<[f64; 2]>,
}

#[derive(Debug, Default)]
struct Group {
    count: usize,
    absolute: f64,
    relative: f64,
    covered: Option<f64>,
}

impl Group {
    fn mean(&self) -> Option<Errors> {
        let mean = |sum: f64| sum / self.count as f64;
        (0 < self.count).then(|| Errors {
            absolute: mean(self.absolute),
            relative: mean(self.relative),
            covered: self.covered.map(mean),
        })
    }
}

impl Sums {
    fn new(gammas: &[f64]) -> Self {
        let heavy = |&gamma| Heavy { gamma, f1: 0.0, precision: 0.0, recall: 0.0 };
        Self {
            high: Group::default(),
            low: Group::default(),
            heavy: gammas.iter().map(heavy).collect(),
            asked: 0,
            inserting: Stopwatch::default(),
            asking: Stopwatch::default(),
            listing: Stopwatch::default(),
            predicted: None,
        }
    }

    fn ask(&mut self, answers: &Answers<'_>, truth: &Truth<'_>, random: &mut ChaCha12Rng) -> Result<()> {
        for heavy in &mut self.heavy {
            let found = self.listing.time(1, || answers.heavy_hitters(heavy.gamma, truth.public()))?;
            heavy.add(Heavy::of(heavy.gamma, &found, &truth.heavy(heavy.gamma)));
        }
        self.asked += 1;
        let frequent = truth.frequent();
        let rare = truth.rare(&frequent, random);
        for (items, group) in [(&frequent, &mut self.high), (&rare, &mut self.low)] {
            for &item in items {
                let answer = self.asking.time(1, || answers.frequency(item))?;
                let count = truth.count(item) as f64;
                let error = (answer.value - count).abs();
                group.count += 1;
                group.absolute += error;
                group.relative += error / count.max(1.0);
                if let Some(bound) = answer.error_bound {
                    *group.covered.get_or_insert(0.0) += f64::from(error <= bound);
                }
            }
        }
        Ok(())
    }

    fn outcome(self, resident_bytes: u64) -> Outcome {
        let asked = self.asked as f64;
        let mean = |heavy: Heavy| Heavy {
            gamma: heavy.gamma,
            f1: heavy.f1 / asked,
            precision: heavy.precision / asked,
            recall: heavy.recall / asked,
        };
        Outcome {
            high: self.high.mean().expect("a window has frequent items"),
            low: self.low.mean(),
            heavy: self.heavy.into_iter().map(mean).collect(),
            predicted: self.predicted,
            insert_items_per_s: 1.0 / self.inserting.seconds_each(),
            frequency_ns: self.asking.seconds_each() * 1e9,
            heavy_hitters_us: self.listing.seconds_each() * 1e6,
            resident_bytes,
        }
    }
}

impl Heavy {
    /// The scores of one answer against the truth, which ascends; two empty lists agree.
    pub fn of(gamma: f64, found: &[u64], heavy: &[u64]) -> Self {
        let hits = found.iter().filter(|item| heavy.binary_search(item).is_ok()).count() as f64;
        let share = |of: usize| {
            if of == 0 { f64::from(found.is_empty() && heavy.is_empty()) } else { hits / of as f64 }
        };
        let both = found.len() + heavy.len();
        let f1 = if both == 0 { 1.0 } else { 2.0 * hits / both as f64 };
        Self { gamma, f1, precision: share(found.len()), recall: share(heavy.len()) }
    }

    fn add(&mut self, other: Self) {
        self.f1 += other.f1;
        self.precision += other.precision;
        self.recall += other.recall;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_lists() {
        for (found, heavy, [f1, precision, recall]) in [
            (&[][..], &[][..], [1.0, 1.0, 1.0]),
            (&[1], &[], [0.0, 0.0, 0.0]),
            (&[], &[1], [0.0, 0.0, 0.0]),
            (&[3, 1, 9, 8], &[1, 3], [2.0 / 3.0, 0.5, 1.0]),
        ] {
            assert_eq!(
                Heavy::of(0.1, found, heavy),
                Heavy { gamma: 0.1, f1, precision, recall },
                "{found:?} {heavy:?}"
            );
        }
    }
}
