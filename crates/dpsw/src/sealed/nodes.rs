//! What the nodes of a substream hold of each key, and which keys are cut finely in the next one: a function of what is sealed.

use std::sync::Arc;

use crate::plan::range::WHOLE;
use crate::plan::rungs::{PlannedRungs, WALK, ranges_of};
use crate::plan::structure::Plan;
use crate::sealed::rungs::{Counted, Rungs};
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;

/// A count of one substream must exceed what it has to by this many deviations of its noise to be taken for the whole window.
const SURE: f64 = 2.0;

/// A change counts at most by this many squares of a key's mean count: as that of a key that is there for half of the window.
const LARGEST: f64 = 4.0;
/// What is expected of rates counts as much as this many changes that are seen.
const EXPECTED: f64 = 8.0;

/// Substreams of the last window by which it is judged how rates walk.
struct Changes<'a> {
    seen: &'a [&'a Arc<SealedSubstream>],
    /// Substreams of a window.
    window: f64,
    /// The variance of the noise on a counter.
    noise: f64,
}

impl Changes<'_> {
    /// The relative variance per window by which the rates of these keys walk: counts of neighbouring substreams differ by 2/3 of
    /// what it is over one. See docs/estimation.md.
    fn walk(&self, places: impl Iterator<Item = usize>) -> f64 {
        let (mut changes, mut rates, mut pairs) = (0.0, 0.0, 0.0);
        for place in places {
            let counts: Vec<[f64; 2]> =
                self.seen.iter().map(|one| one.count_and_nodes(place as u32)).collect();
            let rate = counts.iter().map(|[count, _]| count).sum::<f64>() / counts.len() as f64;
            for pair in counts.windows(2) {
                let [[before, nodes_before], [after, nodes_after]] = [pair[0], pair[1]];
                let by_chance = self.noise * (nodes_before + nodes_after) + 2.0 * rate;
                changes += ((after - before).powi(2) - by_chance).min(LARGEST * rate * rate) / rate;
                rates += rate;
                pairs += 1.0;
            }
        }
        if pairs == 0.0 {
            return WALK;
        }
        let walk = 1.5 * self.window * changes / rates;
        ((pairs * walk + EXPECTED * WALK) / (pairs + EXPECTED)).max(0.0)
    }
}

impl Rungs {
    /// Those of the substream after these, by what is sealed of the last window.
    pub(crate) fn next(plan: &Plan, sealed: &[Arc<SealedSubstream>]) -> Self {
        let window = plan.settings().window.len().div_ceil(plan.substream_len()) as usize;
        let complete: Vec<_> = sealed.iter().filter(|substream| substream.sketch(WHOLE).is_some()).collect();
        let seen = &complete[complete.len().saturating_sub(window)..];
        let Some(newest) = seen.last().filter(|_| 1 < plan.rungs().count()) else { return Self::first(plan) };
        let last = newest.totals();
        let mut sums = last.clone();
        for substream in &seen[..seen.len() - 1] {
            substream.add_totals(&mut sums);
        }
        let (window, noise) = (window as f64, plan.ranges()[WHOLE].law().variance());
        let longer = window / seen.len() as f64;
        let is_frequent = |place: &usize| plan.rungs().first() < sums[*place] as f64 * longer;
        let changes = Changes { seen, window, noise };
        let walk = changes.walk((0..sums.len()).filter(is_frequent));
        let planned = plan.rungs().clone().for_walk(walk);
        let first = planned.first();
        // No rung makes the noise of a total smaller: what does not reach this reaches no rung.
        let least = [first / longer, first / window];
        let score = |place: usize| {
            let (sum, last) = (sums[place] as f64, last[place] as f64);
            if sum <= least[0] && last <= least[1] {
                return None;
            }
            let nodes = f64::from(1 << newest.rungs().rung(place as u32));
            let rising = window * (last - SURE * (noise * nodes).sqrt());
            Some(((sum * longer).max(rising), place as u32)).filter(|(score, _)| first < *score)
        };
        Self::by_score(&planned, (0..sums.len()).filter_map(score).collect())
    }

    /// The largest counts have the finest rungs, as many as there is room for.
    fn by_score(planned: &PlannedRungs, mut scores: Vec<(f64, u32)>) -> Self {
        scores.sort_unstable_by(|(one, place), (other, place_of_other)| {
            other.total_cmp(one).then(place.cmp(place_of_other))
        });
        let mut finer = vec![Vec::new(); planned.count() as usize - 1];
        for (score, place) in scores {
            let fits = |rung: &u32| finer[*rung as usize - 1].len() < planned.most(*rung);
            if let Some(rung) = (1..=planned.rung(score)).rev().find(fits) {
                finer[rung as usize - 1].push(place);
            }
        }
        Self::of(finer)
    }
}

impl SealedSubstream {
    /// The noisy counts of all keys, in nodes of their own.
    fn totals(&self) -> Vec<i64> {
        let mut totals = vec![0; self.mapping.shape.columns as usize];
        self.add_totals(&mut totals);
        totals
    }

    fn add_totals(&self, totals: &mut [i64]) {
        for range in ranges_of(self.rungs().base()) {
            let sketch = self.sketch(range).expect("a complete substream has all its nodes");
            sketch.add_to(totals);
        }
        for (place, rung) in self.rungs().listed() {
            let [count, of_base] = [rung, self.rungs().base()].map(|rung| self.count(place, rung));
            totals[place as usize] += count - of_base;
        }
    }

    /// The noisy count of a key, and from how many nodes.
    fn count_and_nodes(&self, place: u32) -> [f64; 2] {
        let rung = self.rungs().rung(place);
        [self.count(place, rung) as f64, f64::from(1 << rung)]
    }

    /// How many items were counted: exactly where that is public, else by the noisy counters.
    pub(crate) fn total(&self) -> i64 {
        let known = self.sketch(WHOLE).filter(|whole| whole.items().is_some());
        known.map_or_else(
            || self.sketches().iter().map(|(_, sketch)| sketch.total()).sum(),
            SealedSketch::total,
        )
    }

    /// What the nodes of a rung hold of a key.
    fn count(&self, place: u32, rung: u32) -> i64 {
        ranges_of(rung).filter_map(|range| self.node(place, range)).sum()
    }

    /// What a node holds of a key, if it is sealed and counts the key.
    pub(crate) fn node(&self, place: u32, range: usize) -> Option<i64> {
        let index = match self.rungs().counted(range) {
            Counted::All => place as usize,
            Counted::Places(places) => places.binary_search(&place).ok()?,
        };
        self.sketch(range).map(|sketch: &SealedSketch| sketch.cell(index).into())
    }
}
