//! What never happens in a correct build, counted over all runs and judged alike for real streams and for controls.

use std::collections::BTreeMap;

use crate::audit::report::{Check, Effort};
use crate::audit::statistics::sign_limit;
use crate::noise::law::Law;
use crate::privacy::accounting::normal_quantile;

/// Counters with fewer draws than this are not judged by their mean: those of slices that few runs have.
const DRAWS_MIN: u64 = 1_000;

/// Counts of events that never should happen.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// Runs in which an answer inside a segment was not the one that the view before foretold.
    pub(super) moved: u64,
    /// Runs that did not end at the position of their last arrival.
    pub(super) shifted: u64,
    /// Runs in which the same question had two answers.
    pub(super) wavered: u64,
    /// Sealed sketches that two views showed differently, or that were missing.
    pub(super) altered: u64,
    /// Views that did not come back from bytes, from a merge or from a saved state, and sketches that came back
    /// differently.
    pub(super) lost: u64,
    /// Views whose answers were not those of a view from their bytes.
    pub(super) unsaid: u64,
    /// Moments at which neighbours differed in something else than sealed counters.
    pub(super) exposed: u64,
    /// Substreams whose levels, slices or pinned keys do not follow from what was sealed before and from the clock.
    pub(super) misled: u64,
    /// Substreams or streams in which neighbours' counters differed by more than the noise is made for.
    pub(super) exceeded: u64,
    /// Seals that repeat the noise of an earlier one.
    pub(super) repeated: u64,
    /// Stretches of noise that occur twice in seals of many counters.
    pub(super) reused: u64,
    /// Tails fed to one saved state that share their noise.
    pub(super) retold: u64,
    /// What the real plan lets an adversary learn beyond its claim.
    pub(super) overspent: u64,
    /// The noise of one seal and the next.
    pub(super) signs: Signs,
    /// The noise of one tail and the next.
    pub(super) tail_signs: Signs,
    pub(super) counts: EventCounts,
}

impl Tally {
    pub(super) fn list_checks(&self, effort: Effort) -> Vec<Check> {
        let doubt = effort.doubt();
        vec![
            Check::new("answers inside a segment change through the position alone", self.moved),
            Check::new("every arrival takes its position", self.shifted),
            Check::new("the same question has the same answer", self.wavered),
            Check::new("sealed counters are the same in every view", self.altered),
            Check::new("bytes, merged views and restored streams hold the same sealed counters", self.lost),
            Check::new("a view from bytes gives the same whole answers", self.unsaid),
            Check::new("neighbours differ in sealed counters and in nothing else", self.exposed),
            Check::new(
                "which keys are cut finely or pinned follows from what was sealed before",
                self.misled,
            ),
            Check::new("neighbours' counters differ by no more than the noise is made for", self.exceeded),
            Check::new("the noise of the plan covers all that neighbours can change", self.overspent),
            Check::new(
                "what should count is in the counters, and nothing else",
                self.counts.count_off(doubt),
            ),
            Check::new("the signs of the noise of two seals are unrelated", self.signs.related(doubt)),
            Check::new("no noise repeats in as many seals as asked for", self.repeated),
            Check::new("no noise repeats among the counters of large sketches", self.reused),
            Check::new("two tails fed to one saved state have different noise", self.retold),
            Check::new("the signs of the noise of two tails are unrelated", self.tail_signs.related(doubt)),
        ]
    }
}

/// The agreement of the signs of two lists of noise.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    pairs: u64,
    sum: i64,
}

impl Signs {
    /// Compares each list with the next one.
    pub(super) fn compare_adjacent(&mut self, noises: &[Vec<i32>]) {
        for (a, b) in noises.windows(2).flat_map(|pair| pair[0].iter().zip(&pair[1])) {
            self.pairs += 1;
            // Signs are bounded and symmetric, so Hoeffding's limit holds whatever the law of the noise is.
            self.sum += i64::from(a.signum() * b.signum());
        }
    }

    /// 1 if the mean product lies beyond what unrelated signs reach, except with probability `doubt`.
    pub(super) fn related(self, doubt: f64) -> u64 {
        let mean = self.sum as f64 / self.pairs.max(1) as f64;
        u64::from(sign_limit(self.pairs, doubt) < mean.abs())
    }
}

/// The sum of the noise of each counter over many runs, by sealed sketch.
#[derive(Debug, Clone, Default)]
pub(super) struct EventCounts(BTreeMap<(u64, usize), (Law, Vec<Sum>)>);

/// A sum of draws.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    draws: u64,
    noise: f64,
}

impl EventCounts {
    /// Adds the noise that some counters of a sketch have in one run.
    pub(super) fn add_noises(
        &mut self,
        place: (u64, usize),
        law: Law,
        noises: impl Iterator<Item = (usize, i32)>,
    ) {
        let (_, sums) = self.0.entry(place).or_insert_with(|| (law, Vec::new()));
        for (counter, noise) in noises {
            if sums.len() <= counter {
                sums.resize(counter + 1, Sum::default());
            }
            sums[counter].draws += 1;
            sums[counter].noise += f64::from(noise);
        }
    }

    /// How many counters hold something else than what should count, plus noise. The mean of this many draws is normal, and
    /// a correct build exceeds any of the limits with probability `doubt`; with three times that where a counter has as few
    /// draws as are judged.
    fn count_off(&self, doubt: f64) -> u64 {
        let counters = self.0.values().flat_map(|(law, sums)| sums.iter().map(|sum| (law.variance(), sum)));
        let judged: Vec<(f64, &Sum)> = counters.filter(|(_, sum)| DRAWS_MIN <= sum.draws).collect();
        // The doubt is shared by all counters and by both sides of each.
        let deviations = normal_quantile(1.0 - doubt / (2.0 * judged.len().max(1) as f64));
        judged
            .iter()
            .filter(|(variance, sum)| deviations * (variance * sum.draws as f64).sqrt() < sum.noise.abs())
            .count() as u64
    }
}

/// How many sketches are not as they were; missing ones count too.
pub(super) fn count_altered(before: &[Vec<i32>], after: &[Vec<i32>]) -> u64 {
    let differ = before.iter().zip(after).filter(|(before, after)| before != after).count();
    (differ + before.len().abs_diff(after.len())) as u64
}

/// By how many units two lists of exact counters differ.
pub(super) fn unit_distance(one: &[i32], other: &[i32]) -> u64 {
    one.iter().zip(other).map(|(a, b)| u64::from(a.abs_diff(*b))).sum()
}
