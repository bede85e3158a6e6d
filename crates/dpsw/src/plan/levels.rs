//! How many slices a key has in a substream: a frequent key is cut more finely than a rare one.
//!
//! On level r a substream of a key is cut into 2^r slices of equal length. The ranges of a plan are all slices of all levels:
//! the whole first, then the two halves, then the four quarters.

use std::ops::Range;

use crate::error::{PlanError, Quantity};
use crate::noise::law::Law;
use crate::plan::limits::{LEVELS_MAX, check_range};
use crate::plan::paper::checkpoint::{Role, Span};
use crate::plan::settings::{CounterLayout, NoiseChoice, TunedMethod};

/// The relative variance per window by which rates are expected to walk, where nothing is known of them.
pub(crate) const WALK: f64 = 0.4;
/// What a walk adds to the variance of a count, at all phases on average.
const MEAN_WALK: f64 = 0.2056;

/// There is room for this part of the keys that a window can hold above a count, as Zipf's law has about it.
const MOST: f64 = 16.0;

/// The counts from which on keys are cut into more slices.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LevelPlan {
    /// The index of the first range with slices: behind that of hashed counters, if there are some.
    start: usize,
    /// The variance of the noise on a counter.
    noise: f64,
    /// Of a window.
    substreams: f64,
    /// A key above the first r of these counts per window has the level r.
    thresholds: Vec<f64>,
    /// The most keys of each level from 1 on.
    most: Vec<usize>,
}

impl LevelPlan {
    /// For windows of so many substreams and items.
    pub(crate) fn new(levels: u32, substreams: u64, items: u64, keys: usize, law: Law) -> Self {
        let (noise, substreams) = (law.variance(), substreams as f64);
        let thresholds = vec![0.0; levels as usize - 1];
        let planned = Self { start: 0, noise, substreams, thresholds, most: Vec::new() };
        let planned = planned.for_walk(WALK);
        let most = |count: &f64| ((items as f64 / (MOST * count)).ceil() as usize).clamp(1, keys);
        Self { most: planned.thresholds.iter().map(most).collect(), ..planned }
    }

    /// The same beside hashed counters.
    pub(crate) fn beside_hashed(self) -> Self {
        Self { start: 1, ..self }
    }

    /// The level of a range with slices; the first one for that of hashed counters.
    pub(crate) fn level_of(&self, range: usize) -> u32 {
        (range.saturating_sub(self.start) + 1).ilog2()
    }

    /// The ranges of a level, in time.
    pub(crate) fn ranges_of(&self, level: u32) -> Range<usize> {
        self.start + (1 << level) - 1..self.start + (1 << (level + 1)) - 1
    }

    /// The same for rates that walk with this relative variance per window.
    pub(crate) fn for_walk(self, walk: f64) -> Self {
        let unit = solve_unit(self.noise, walk);
        let threshold = |level: usize| unit * (self.substreams * f64::from(1 << level)).powi(2);
        let thresholds = (0..self.thresholds.len()).map(threshold).collect();
        Self { thresholds, ..self }
    }

    /// The count per window from which on two slices are worth their noise in a window of one. In windows of more it grows
    /// with the square of how many.
    pub(crate) fn unit_count(&self) -> f64 {
        solve_unit(self.noise, WALK)
    }

    /// The number of levels.
    pub(crate) fn count(&self) -> u32 {
        self.thresholds.len() as u32 + 1
    }

    /// The level of a key with this count per window.
    pub(crate) fn level_for_count(&self, count: f64) -> u32 {
        self.thresholds.iter().take_while(|threshold| **threshold < count).count() as u32
    }

    /// The smallest count above the first level; infinite if there is one level alone.
    pub(crate) fn first_threshold(&self) -> f64 {
        self.thresholds.first().copied().unwrap_or(f64::INFINITY)
    }

    /// Bytes of the sealed slices of so many substreams, beside one counter for each key in each of them, and of the places of
    /// their keys. In the first substream all keys are cut in two.
    pub(crate) fn slice_bytes(&self, substreams: u64, keys: u64) -> u64 {
        let of_level = |level: u32| {
            let each = size_of::<u32>() + (size_of::<i16>() << level);
            (self.keys_max(level) * each) as u64
        };
        let first = if self.count() == 1 { 0 } else { 2 * keys * size_of::<i16>() as u64 };
        substreams * (1..self.count()).map(of_level).sum::<u64>() + first
    }

    /// The most keys of a level from 1 on.
    pub(crate) fn keys_max(&self, level: u32) -> usize {
        self.most[level as usize - 1]
    }
}

/// More slices are worth their noise v from the root of drift f² + f / 2 = v on, for a substream in one slice.
fn solve_unit(noise: f64, walk: f64) -> f64 {
    // The drift's variance falls with the cube of the number of slices: twice as many take 7/8 of it away.
    let drift = 7.0 / 8.0 * MEAN_WALK * walk;
    2.0 * noise / (0.5 + (0.25 + 4.0 * drift * noise).sqrt())
}

/// All slices of all levels, the whole substream first.
pub(crate) fn cut_slices(substream_len: u64, levels: u32) -> Vec<Span> {
    let mut spans = Vec::new();
    for level in 0..levels {
        let len = substream_len >> level;
        let role = if level == 0 { Role::Whole } else { Role::Slice };
        for part in 0..1 << level {
            spans.push(Span { role, offsets: part * len..(part + 1) * len, checkpoint: 0 });
        }
    }
    spans
}

/// The length of a substream of at least this length that can be cut into the slices of all levels.
///
/// # Errors
/// It is too short, or these counters or this noise have one level alone.
pub(crate) fn cut_len(substream_len: u64, method: &TunedMethod) -> Result<u64, PlanError> {
    let most = LEVELS_MAX.min(substream_len.ilog2() + 1);
    check_range(Quantity::Levels, method.levels.into(), 1, most.into())?;
    let has_own = method.counters == CounterLayout::Identity || 0 < method.pinned;
    // An event may move between slices at no cost only where each key has its own counters, with Laplace noise
    // (PRIVACY.md: rule 33).
    if 1 < method.levels && !(has_own && method.noise == NoiseChoice::Laplace) {
        return Err(PlanError::LevelsNeedOwnCounters);
    }
    // All levels must halve it into whole positions.
    Ok(substream_len.next_multiple_of(1 << (method.levels - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Ratio;

    fn laplace(scale: u64) -> Law {
        Law::Laplace { scale: Ratio::new(scale, 1).expect("a ratio") }
    }

    #[test]
    fn thresholds_are_where_half_the_slices_have_the_same_variance() {
        for (scale, wanted) in
            [(2, [752.0, 3_010.0, 12_038.0, 48_152.0]), (20, [10_201.0, 40_804.0, 163_216.0, 652_864.0])]
        {
            let law = laplace(scale);
            let planned = LevelPlan::new(5, 10, 1_000_000, 25_600, law);
            for (level, wanted) in (0..).zip(wanted) {
                let count = planned.thresholds[level as usize];
                assert!((count / wanted - 1.0).abs() < 1e-3, "level {level}: {count}");
                assert_eq!(
                    (planned.level_for_count(0.99 * count), planned.level_for_count(1.01 * count)),
                    (level, level + 1)
                );
                let variance = |slices: f64| {
                    law.variance() * slices
                        + count / slices
                        + MEAN_WALK * WALK * count * count / slices.powi(3)
                };
                let slices = 10.0 * f64::from(1 << level);
                assert!((variance(slices) / variance(2.0 * slices) - 1.0).abs() < 1e-9, "level {level}");
            }
            assert!(planned.keys_max(1) < 1_000 && 1 <= planned.keys_max(4));
        }
        assert_eq!(LevelPlan::new(1, 10, 1_000_000, 25_600, laplace(2)).level_for_count(1e18), 0);
    }

    #[test]
    fn the_slices_of_each_level_cut_the_substream_evenly() {
        let spans = cut_slices(80, 4);
        assert_eq!(spans.len(), 15);
        let own = LevelPlan::new(4, 10, 800, 40, laplace(2));
        for (levels, before) in [(own.clone(), 0), (own.beside_hashed(), 1)] {
            for level in 0..4 {
                let ranges = levels.ranges_of(level);
                let slices: Vec<_> =
                    ranges.clone().map(|range| spans[range - before].offsets.clone()).collect();
                let len = 80 >> level;
                let wanted: Vec<_> = (0..1 << level).map(|part| part * len..(part + 1) * len).collect();
                assert_eq!(slices, wanted);
                assert!(ranges.into_iter().all(|range| levels.level_of(range) == level));
            }
            assert_eq!(levels.level_of(0), 0);
        }
    }

    #[test]
    fn substreams_are_multiples_of_the_shortest_slice() {
        let method =
            |levels| TunedMethod { counters: CounterLayout::Identity, levels, ..TunedMethod::default() };
        for (len, levels, wanted) in [(100, 1, 100), (100, 4, 104), (81, 4, 88), (8, 4, 8)] {
            assert_eq!(cut_len(len, &method(levels)), Ok(wanted));
        }
        for (len, levels) in [(7, 4), (100, 0), (100_000, LEVELS_MAX + 1)] {
            assert!(
                matches!(cut_len(len, &method(levels)), Err(PlanError::OutOfRange { .. })),
                "{len} {levels}"
            );
        }
        let gaussian = TunedMethod { noise: NoiseChoice::Gaussian, ..method(2) };
        assert_eq!(cut_len(100, &gaussian), Err(PlanError::LevelsNeedOwnCounters));
        assert_eq!(
            cut_len(100, &TunedMethod { levels: 2, ..TunedMethod::default() }),
            Err(PlanError::LevelsNeedOwnCounters)
        );
    }
}
