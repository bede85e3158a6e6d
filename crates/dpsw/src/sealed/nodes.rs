//! What the nodes of a substream hold of each key, and which keys are cut finely in the next one: a function of what is sealed.

use std::sync::Arc;

use crate::plan::range::WHOLE;
use crate::plan::rungs::PlannedRungs;
use crate::plan::structure::Plan;
use crate::sealed::changes::Changes;
use crate::sealed::rungs::{Counted, Rungs};
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;

/// A count of one substream must exceed what it has to by this many deviations of its noise to be taken for the whole window.
const SURE: f64 = 2.0;

impl Rungs {
    /// Those of the substream after these, by what is sealed of the last window.
    pub(crate) fn next(plan: &Plan, sealed: &[Arc<SealedSubstream>]) -> Self {
        let window = plan.settings().window.len().div_ceil(plan.substream_len()) as usize;
        let complete: Vec<_> = sealed.iter().filter(|substream| substream.sketch(WHOLE).is_some()).collect();
        let seen = &complete[complete.len().saturating_sub(window)..];
        let Some(newest) = seen.last().filter(|_| 1 < plan.rungs().count()) else { return Self::first(plan) };
        let last = newest.totals(plan);
        let mut sums = last.clone();
        for substream in &seen[..seen.len() - 1] {
            substream.add_totals(&mut sums, plan);
        }
        let (window, noise) = (window as f64, plan.ranges()[WHOLE].law().variance());
        let longer = window / seen.len() as f64;
        let is_frequent = |place: &usize| plan.rungs().first() < sums[*place] as f64 * longer;
        let mut changes = Changes::default();
        for place in (0..sums.len()).filter(is_frequent) {
            let counts = seen.iter().map(|substream| substream.count_and_variance(place as u32, noise, plan));
            changes.add(&counts.collect::<Vec<_>>());
        }
        let planned = plan.rungs().clone().for_walk(changes.walk(window));
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
    pub(crate) fn by_score(planned: &PlannedRungs, mut scores: Vec<(f64, u32)>) -> Self {
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
    pub(crate) fn totals(&self, plan: &Plan) -> Vec<i64> {
        let mut totals = vec![0; plan.own_len() as usize];
        self.add_totals(&mut totals, plan);
        totals
    }

    /// Adds what is sealed of each key; where the stream is over, not all nodes are.
    pub(crate) fn add_totals(&self, totals: &mut [i64], plan: &Plan) {
        let ranges = plan.rungs().ranges_of(self.rungs().base());
        for sketch in ranges.filter_map(|range| self.sketch(range)) {
            sketch.add_to(totals);
        }
        for (place, rung) in self.rungs().listed() {
            let [count, of_base] = [rung, self.rungs().base()].map(|rung| self.count(place, rung, plan));
            totals[place as usize] += count - of_base;
        }
    }

    /// The noisy count of a key and its variance, with noise of this variance on each counter.
    fn count_and_variance(&self, place: u32, noise: f64, plan: &Plan) -> [f64; 2] {
        let rung = self.rungs().rung(place);
        [self.count(place, rung, plan) as f64, noise * f64::from(1 << rung)]
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
    pub(crate) fn count(&self, place: u32, rung: u32, plan: &Plan) -> i64 {
        plan.rungs().ranges_of(rung).filter_map(|range| self.node(place, range, plan)).sum()
    }

    /// What a node holds of a key, if it is sealed and counts the key.
    pub(crate) fn node(&self, place: u32, range: usize, plan: &Plan) -> Option<i64> {
        let index = match self.rungs().counted(range, plan) {
            Counted::All => place as usize,
            Counted::Places(places) => places.binary_search(&place).ok()?,
        };
        self.sketch(range).map(|sketch: &SealedSketch| sketch.cell(index).into())
    }
}
