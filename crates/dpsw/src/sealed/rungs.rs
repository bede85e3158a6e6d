//! Which keys of a substream are cut more finely than others.

use crate::item::mapping::Shape;
use crate::plan::structure::Plan;

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
        // No key is tracked there, where only tracked ones have nodes.
        let base = if 0 < plan.tracked() { 0 } else { 1.min(count - 1) };
        Self { base, finer: vec![Box::default(); count as usize - 1] }
    }

    /// Lists that were made before; `None` unless they are ascending places of so many keys, each in one list.
    pub(crate) fn from_parts(base: u32, finer: Vec<Box<[u32]>>, plan: &Plan) -> Option<Self> {
        let keys = plan.own_len();
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
    pub(crate) fn counted(&self, range: usize, plan: &Plan) -> Counted<'_> {
        match plan.rungs().rung_of(range) {
            0 => Counted::All,
            rung if rung == self.base => Counted::All,
            rung => Counted::Places(&self.finer[rung as usize - 1]),
        }
    }

    /// The counter of a key in a range, unless the key counts in others.
    pub(crate) fn cell(&self, place: usize, range: usize, plan: &Plan) -> Option<usize> {
        // With one rung every range counts every key.
        if self.finer.is_empty() {
            return Some(place);
        }
        let key = u32::try_from(place).ok().filter(|&key| self.rung(key) == plan.rungs().rung_of(range))?;
        match self.counted(range, plan) {
            Counted::All => Some(place),
            Counted::Places(places) => places.binary_search(&key).ok(),
        }
    }

    /// The shape of a node.
    pub(crate) fn shape(&self, range: usize, plan: &Plan) -> Shape {
        match self.counted(range, plan) {
            Counted::All => Shape { rows: 1, columns: plan.own_len() },
            Counted::Places(places) => Shape { rows: 1, columns: places.len() as u32 },
        }
    }

    /// With these keys on each rung from 1 on.
    pub(crate) fn of(finer: Vec<Vec<u32>>) -> Self {
        let sorted = |mut places: Vec<u32>| {
            places.sort_unstable();
            places.into_boxed_slice()
        };
        Self { base: 0, finer: finer.into_iter().map(sorted).collect() }
    }
}
