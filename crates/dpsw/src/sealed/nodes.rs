//! What the nodes of a substream hold of each key, and which keys are cut finely in the next one: a function of what is sealed.

use std::collections::VecDeque;
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
        Totals::default().next(plan, sealed)
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

/// A key that is cut more finely than most.
#[derive(Debug)]
struct Finer {
    place: u32,
    nodes: u32,
    /// What its nodes hold, and what those of most keys hold of it.
    count: i64,
    of_base: i64,
}

/// What all keys count in the last window, carried on from seal to seal.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    sums: Vec<i64>,
    seen: VecDeque<Seen>,
}

/// A substream of the last window.
#[derive(Debug)]
struct Seen {
    substream: Arc<SealedSubstream>,
    finer: Vec<Finer>,
}

impl Seen {
    fn add<const TIMES: i64>(&self, totals: &mut [i64], plan: &Plan) {
        self.substream.add_base::<TIMES>(totals, plan);
        self.finer.iter().for_each(|key| totals[key.place as usize] += TIMES * (key.count - key.of_base));
    }

    fn key(&self, place: u32) -> Option<&Finer> {
        self.finer.binary_search_by_key(&place, |key| key.place).ok().map(|index| &self.finer[index])
    }

    /// The noisy count of a key and its variance, with noise of this variance on each counter.
    fn count_and_variance(&self, place: u32, noise: f64, plan: &Plan) -> [f64; 2] {
        if let Some(key) = self.key(place) {
            return [key.count as f64, noise * f64::from(key.nodes)];
        }
        let base = self.substream.rungs().base();
        [self.substream.count(place, base, plan) as f64, noise * f64::from(1 << base)]
    }

    /// The keys that may have counts above this.
    fn above(&self, least: i64, plan: &Plan) -> Vec<u32> {
        let base = plan.rungs().ranges_of(self.substream.rungs().base());
        let each = least / base.len() as i64;
        let sketches = base.filter_map(|range| self.substream.sketch(range));
        let finer = self.finer.iter().map(|key| key.place);
        sketches.flat_map(|sketch| sketch.above(each)).chain(finer).collect()
    }
}

impl Totals {
    /// Which keys are cut finely in the substream after these.
    pub(crate) fn next(&mut self, plan: &Plan, sealed: &[Arc<SealedSubstream>]) -> Rungs {
        let window = plan.settings().window.len().div_ceil(plan.substream_len()) as usize;
        let complete: Vec<_> = sealed.iter().filter(|substream| substream.sketch(WHOLE).is_some()).collect();
        let seen = &complete[complete.len().saturating_sub(window)..];
        if seen.is_empty() || plan.rungs().count() == 1 {
            return Rungs::first(plan);
        }
        self.see(plan, seen);
        let (window, longer) = (window as f64, window as f64 / seen.len() as f64);
        let planned = plan.rungs().clone().for_walk(self.walk(plan, window, longer));
        let first = planned.first();
        // No rung makes the noise of a total smaller: what does not reach this reaches no rung.
        let least = [first / longer, first / window].map(|least| least.floor() as i64);
        let (newest, noise) = (self.seen.back().expect("one is seen"), plan.own_law().variance());
        let mut places: Vec<u32> = above(&self.sums, least[0]).chain(newest.above(least[1], plan)).collect();
        places.sort_unstable();
        places.dedup();
        let score = |place: u32| {
            let [last, variance] = newest.count_and_variance(place, noise, plan);
            let rising = window * (last - SURE * variance.sqrt());
            ((self.sums[place as usize] as f64 * longer).max(rising), place)
        };
        let scores = places.into_iter().map(score).filter(|(score, _)| first < *score);
        Rungs::by_score(&planned, scores.collect())
    }

    /// Takes new substreams in and those that left out. What it knows of others than these, it forgets.
    fn see(&mut self, plan: &Plan, sealed: &[&Arc<SealedSubstream>]) {
        self.sums.resize(plan.own_len() as usize, 0);
        let gone = self.seen.iter().take_while(|seen| !Arc::ptr_eq(&seen.substream, sealed[0])).count();
        for left in self.seen.drain(..gone) {
            left.add::<-1>(&mut self.sums, plan);
        }
        let is_known = |(seen, sealed): (&Seen, &&Arc<SealedSubstream>)| Arc::ptr_eq(&seen.substream, sealed);
        if sealed.len() < self.seen.len() || !self.seen.iter().zip(sealed).all(is_known) {
            self.seen.clear();
            self.sums.fill(0);
        }
        for substream in &sealed[self.seen.len()..] {
            let seen = Seen { substream: Arc::clone(substream), finer: substream.finer(plan) };
            seen.add::<1>(&mut self.sums, plan);
            self.seen.push_back(seen);
        }
    }

    /// The relative variance by which the rates of frequent keys walk over a window.
    fn walk(&self, plan: &Plan, window: f64, longer: f64) -> f64 {
        let (least, noise) = ((plan.rungs().first() / longer).floor() as i64, plan.own_law().variance());
        let mut changes = Changes::default();
        for place in above(&self.sums, least) {
            let counts = self.seen.iter().map(|seen| seen.count_and_variance(place, noise, plan));
            changes.add(&counts.collect::<Vec<_>>());
        }
        changes.walk(window)
    }
}

/// Counts are looked at in blocks first: few are large.
const BLOCK: usize = 64;

/// The places of counts above a limit.
fn above(counts: &[i64], least: i64) -> impl Iterator<Item = u32> {
    let blocks = counts.chunks(BLOCK).zip((0_u32..).step_by(BLOCK));
    // Signs are joined, as the processor can do that for several counts at once.
    let has_some =
        move |block: &[i64]| block.iter().fold(0, |signs, &count| signs | least.wrapping_sub(count)) < 0;
    let blocks = blocks.filter(move |(block, _)| has_some(block));
    blocks.flat_map(move |(block, first)| {
        (first..).zip(block).filter(move |(_, count)| least < **count).map(|(place, _)| place)
    })
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
        self.add_base::<1>(totals, plan);
        for Finer { place, count, of_base, .. } in self.finer(plan) {
            totals[place as usize] += count - of_base;
        }
    }

    fn add_base<const TIMES: i64>(&self, totals: &mut [i64], plan: &Plan) {
        let ranges = plan.rungs().ranges_of(self.rungs().base());
        ranges.filter_map(|range| self.sketch(range)).for_each(|sketch| sketch.add_times::<TIMES>(totals));
    }

    /// The keys that are cut more finely than most.
    fn finer(&self, plan: &Plan) -> Vec<Finer> {
        let finer = |(place, rung)| {
            let [count, of_base] = [rung, self.rungs().base()].map(|rung| self.count(place, rung, plan));
            Finer { place, nodes: 1 << rung, count, of_base }
        };
        let mut finer: Vec<Finer> = self.rungs().listed().map(finer).collect();
        finer.sort_unstable_by_key(|finer| finer.place);
        finer
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
