//! Which keys of a substream are cut more finely than others. A function of what was sealed before it.

use std::sync::Arc;

use crate::item::mapping::Shape;
use crate::plan::range::WHOLE;
use crate::plan::rungs::{PlannedRungs, ranges_of, rung_of};
use crate::plan::structure::Plan;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;

/// A count of one substream must exceed what it has to by this many deviations of its noise to be taken for the whole window.
const SURE: f64 = 2.0;

/// The rungs of the keys in one substream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Rungs {
    /// The rung of all keys that are in no list.
    base: u32,
    /// From rung 1 on: the places of its keys, ascending.
    finer: Vec<Box<[u32]>>,
}

/// The keys that a range counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted<'a> {
    All,
    /// Those at these places, ascending.
    Places(&'a [u32]),
}

impl Rungs {
    /// Those of a substream before which nothing is sealed: no key is known to be rare.
    pub(crate) fn first(plan: &Plan) -> Self {
        let count = plan.rungs().count();
        Self { base: 1.min(count - 1), finer: vec![Box::default(); count as usize - 1] }
    }

    /// Lists that were made before; `None` unless they are ascending places of so many keys, each in one list.
    pub(crate) fn from_parts(base: u32, finer: Vec<Box<[u32]>>, plan: &Plan) -> Option<Self> {
        let keys = plan.shape().columns;
        let mut all: Vec<u32> = finer.concat();
        all.sort_unstable();
        let is_right = finer.len() + 1 == plan.rungs().count() as usize
            && base <= Self::first(plan).base
            && finer[..base as usize].iter().all(|places| places.is_empty())
            && finer.iter().all(|places| places.is_sorted())
            && all.is_sorted_by(|one, next| one < next)
            && all.last().is_none_or(|&last| last < keys);
        is_right.then_some(Self { base, finer })
    }

    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// The places of the keys of each rung from 1 on.
    pub(crate) fn finer(&self) -> &[Box<[u32]>] {
        &self.finer
    }

    /// The keys that are in a list, and their rungs.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (u32, u32)> {
        (1..).zip(&self.finer).flat_map(|(rung, places)| places.iter().map(move |&place| (place, rung)))
    }

    pub(crate) fn rung(&self, place: u32) -> u32 {
        let listed = (1..).zip(&self.finer).find(|(_, places)| places.binary_search(&place).is_ok());
        listed.map_or(self.base, |(rung, _)| rung)
    }

    /// The keys that a range counts. The whole has a counter for every key: those of finer rungs have counted nothing by then.
    pub(crate) fn counted(&self, range: usize) -> Counted<'_> {
        match rung_of(range) {
            0 => Counted::All,
            rung if rung == self.base => Counted::All,
            rung => Counted::Places(&self.finer[rung as usize - 1]),
        }
    }

    /// The shape of a node.
    pub(crate) fn shape(&self, range: usize, plan: &Plan) -> Shape {
        match self.counted(range) {
            Counted::All => plan.shape(),
            Counted::Places(places) => Shape { rows: 1, columns: places.len() as u32 },
        }
    }

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
        let first = plan.rungs().first();
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
        Self::by_score(plan.rungs(), (0..sums.len()).filter_map(score).collect())
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
        let sorted = |mut places: Vec<u32>| {
            places.sort_unstable();
            places.into_boxed_slice()
        };
        Self { base: 0, finer: finer.into_iter().map(sorted).collect() }
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
        for range in ranges_of(self.rungs().base) {
            let sketch = self.sketch(range).expect("a complete substream has all its nodes");
            sketch.add_to(totals);
        }
        for (place, rung) in self.rungs().listed() {
            let [count, of_base] = [rung, self.rungs().base].map(|rung| self.count(place, rung));
            totals[place as usize] += count - of_base;
        }
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
