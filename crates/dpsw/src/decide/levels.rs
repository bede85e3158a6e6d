//! Which keys are cut finely in the next substream, by what is sealed of the last window.

use std::sync::Arc;

use crate::decide::drift::RateDrift;
use crate::decide::sums::{SummedSubstream, WindowSums, newest_window};
use crate::plan::levels::LevelPlan;
use crate::plan::structure::Plan;
use crate::sealed::levels::Levels;
use crate::sealed::slices::Finer;
use crate::sealed::substream::SealedSubstream;

/// A count of one substream must exceed what it has to by this many deviations of its noise to be taken for the whole window.
const SURE: f64 = 2.0;

/// The counts of a key in the substreams of the window, oldest first, with the variances of what they are off by.
pub(crate) struct KeyCounts(pub(crate) Vec<[f64; 2]>);

impl KeyCounts {
    pub(crate) fn sum(&self) -> f64 {
        self.0.iter().map(|[count, _]| count).sum()
    }

    pub(crate) fn variance(&self) -> f64 {
        self.0.iter().map(|[_, variance]| variance).sum()
    }

    pub(crate) fn last(&self) -> [f64; 2] {
        self.0.last().copied().unwrap_or_default()
    }

    pub(crate) fn per_window(&self, plan: &Plan) -> f64 {
        count_per_window(self.sum(), self.0.len(), self.last(), plan)
    }
}

/// The count of a key per window: that of the last window, or what the newest substream surely says if that is more.
fn count_per_window(sum: f64, substreams: usize, [last, variance]: [f64; 2], plan: &Plan) -> f64 {
    let window = plan.substreams_per_window() as f64;
    let rising = window * (last - SURE * variance.sqrt());
    (sum * window / substreams.max(1) as f64).max(rising)
}

/// The levels that are worth their noise if rates go on drifting as these keys' did.
pub(crate) fn levels_for<'k>(plan: &Plan, keys: impl Iterator<Item = &'k KeyCounts>) -> LevelPlan {
    let substreams = plan.substreams_per_window() as f64;
    let mut changes = RateDrift::default();
    for key in keys {
        let least = plan.levels().first_threshold() * key.0.len() as f64 / substreams;
        if least < key.sum() {
            changes.add_key(&key.0);
        }
    }
    plan.levels().clone().for_walk(changes.expected_walk(substreams))
}

impl Levels {
    /// The largest of these counts per window have the finest levels, as many as there is room for.
    pub(crate) fn of_largest(planned: &LevelPlan, counts: impl Iterator<Item = (f64, u32)>) -> Self {
        let mut scores: Vec<(f64, u32)> =
            counts.filter(|(count, _)| planned.first_threshold() < *count).collect();
        // Equal counts go by index: whoever decides again must come to the same levels (PRIVACY.md: rule 33).
        scores.sort_unstable_by(|(one, key_index), (other, index_of_other)| {
            other.total_cmp(one).then(key_index.cmp(index_of_other))
        });
        let mut finer = vec![Vec::new(); planned.count() as usize - 1];
        for (score, key_index) in scores {
            let mut levels = (1..=planned.level_for_count(score)).rev();
            if let Some(level) =
                levels.find(|level| finer[*level as usize - 1].len() < planned.keys_max(*level))
            {
                finer[level as usize - 1].push(key_index);
            }
        }
        Self::from_lists(finer)
    }
}

/// Chooses levels where every key has counters of its own.
#[derive(Debug, Default)]
pub(crate) struct LevelChooser {
    sums: WindowSums<Vec<Finer>>,
}

impl LevelChooser {
    /// The levels of the substream after these.
    pub(crate) fn choose_levels(&mut self, plan: &Plan, sealed: &[Arc<SealedSubstream>]) -> Levels {
        let window = newest_window(sealed, plan);
        if window.is_empty() || plan.levels().count() == 1 {
            return Levels::first(plan);
        }
        self.sums.slide_to(
            window,
            plan.own_len() as usize,
            |substream| substream.finer_keys(plan),
            |changes, sums| {
                for (times, SummedSubstream { substream, details }) in changes {
                    substream.add_totals_times(*times, details, sums, plan);
                }
            },
        );
        let substreams = plan.substreams_per_window() as f64;
        let longer = substreams / window.len() as f64;
        let steady = self.keys_above(plan.levels().first_threshold() / longer);
        let steady: Vec<KeyCounts> =
            steady.into_iter().map(|key_index| self.counts_of(key_index, plan)).collect();
        let planned = levels_for(plan, steady.iter());
        // No level makes the noise of a total smaller: what does not reach this reaches no level.
        let mut keys = self.keys_above(planned.first_threshold() / longer);
        keys.extend(self.keys_rising(planned.first_threshold() / substreams, plan));
        keys.sort_unstable();
        keys.dedup();
        Levels::of_largest(&planned, keys.into_iter().map(|key| (self.per_window(key, plan), key)))
    }

    /// The keys whose sums are above a limit.
    fn keys_above(&self, least: f64) -> Vec<u32> {
        indices_above(self.sums.sums(), least.floor() as i64).collect()
    }

    /// The keys whose counts in the newest substream may be above a limit.
    fn keys_rising(&self, least: f64, plan: &Plan) -> Vec<u32> {
        let newest = self.sums.window().back().expect("the window is not empty");
        let base = plan.levels().ranges_of(newest.substream.levels().base_level());
        let each = least.floor() as i64 / base.len() as i64;
        let mut rising: Vec<u32> = newest.details.iter().map(|key| key.key_index).collect();
        for range in base {
            rising.extend(
                newest.substream.sketch(range).map_or_else(Vec::new, |sketch| sketch.indices_above(each)),
            );
        }
        rising
    }

    fn counts_of(&self, key_index: u32, plan: &Plan) -> KeyCounts {
        let noise = plan.own_law().variance();
        KeyCounts(self.sums.window().iter().map(|summed| count_of(summed, key_index, noise, plan)).collect())
    }

    /// The same as [`KeyCounts::per_window`] of this key, by the sums that are there already.
    fn per_window(&self, key_index: u32, plan: &Plan) -> f64 {
        let newest = self.sums.window().back().expect("the window is not empty");
        let last = count_of(newest, key_index, plan.own_law().variance(), plan);
        count_per_window(self.sums.sums()[key_index as usize] as f64, self.sums.window().len(), last, plan)
    }
}

/// The noisy count of a key and its variance, with noise of this variance on each counter.
fn count_of(summed: &SummedSubstream<Vec<Finer>>, key_index: u32, noise: f64, plan: &Plan) -> [f64; 2] {
    if let Ok(index) = summed.details.binary_search_by_key(&key_index, |key| key.key_index) {
        let key = &summed.details[index];
        return [key.count as f64, noise * f64::from(key.slices)];
    }
    let base = summed.substream.levels().base_level();
    [summed.substream.count_key(key_index, base, plan) as f64, noise * f64::from(1 << base)]
}

/// Counts are looked at in blocks first: few are large.
const BLOCK: usize = 64;

/// The indices of counts above a limit.
fn indices_above(counts: &[i64], least: i64) -> impl Iterator<Item = u32> {
    let blocks = counts.chunks(BLOCK).zip((0_u32..).step_by(BLOCK));
    let blocks = blocks.filter(move |(block, _)| {
        // Signs are joined, as the processor can do that for several counts at once.
        block.iter().fold(0, |signs, &count| signs | least.wrapping_sub(count)) < 0
    });
    blocks.flat_map(move |(block, first)| {
        (first..).zip(block).filter(move |(_, count)| least < **count).map(|(index, _)| index)
    })
}
