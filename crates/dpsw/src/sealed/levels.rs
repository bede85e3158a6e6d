//! Which keys of a substream are cut more finely than others.

use crate::item::mapping::Shape;
use crate::plan::structure::Plan;

/// The levels of the keys in one substream.
///
/// Level r cuts a key's substream into 2^r slices with a counter each: frequent keys are read to the slice, rare ones keep
/// one counter and its noise. Most keys share a base level, so only the exceptions are listed; a list costs as much memory as
/// there are frequent keys, however long the list of all keys is.
///
/// Levels follow from sealed counters alone and stand before the first slice of their substream is sealed (PRIVACY.md:
/// rule 33). Each key is on exactly one level, so that an event moves one slice of one key; lists are ascending, and levels
/// up to the base have none. The index of a key is that in the list of keys, or its slot where only pinned keys have slices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Levels {
    /// The level of all keys that are in no list.
    base: u32,
    /// From level 1 on: the indices of its keys, ascending.
    finer: Vec<Box<[u32]>>,
}

/// The keys that a range counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedKeys<'a> {
    All,
    /// Those with these indices, ascending.
    Places(&'a [u32]),
}

impl CountedKeys<'_> {
    /// The counter of a key in such a range, if it counts the key.
    pub(crate) fn cell_of(self, key_index: u32) -> Option<usize> {
        match self {
            Self::All => Some(key_index as usize),
            Self::Places(key_indices) => key_indices.binary_search(&key_index).ok(),
        }
    }
}

impl Levels {
    /// Those of a substream before which nothing is sealed: no key is known to be rare.
    pub(crate) fn first(plan: &Plan) -> Self {
        let count = plan.levels().count();
        // No key is pinned there, where only pinned ones have slices.
        let base = if 0 < plan.pinned() { 0 } else { 1.min(count - 1) };
        Self { base, finer: vec![Box::default(); count as usize - 1] }
    }

    /// Lists that were made before; `None` unless they are ascending indices of so many keys, each in one list.
    pub(crate) fn from_parts(base: u32, finer: Vec<Box<[u32]>>, plan: &Plan) -> Option<Self> {
        let len = plan.own_len();
        let mut all: Vec<u32> = finer.concat();
        all.sort_unstable();
        // Bytes from elsewhere must not put a key on two levels: an event would count twice (PRIVACY.md: rule 33).
        let is_right = finer.len() + 1 == plan.levels().count() as usize
            && base <= Self::first(plan).base
            && finer[..base as usize].iter().all(|keys| keys.is_empty())
            && finer.iter().all(|keys| keys.is_sorted())
            && all.is_sorted_by(|one, next| one < next)
            && all.last().is_none_or(|&last| last < len);
        is_right.then_some(Self { base, finer })
    }

    pub(crate) fn base_level(&self) -> u32 {
        self.base
    }

    /// The indices of the keys of each level from 1 on.
    pub(crate) fn finer_lists(&self) -> &[Box<[u32]>] {
        &self.finer
    }

    /// The keys that are in a list, and their levels.
    pub(crate) fn listed_keys(&self) -> impl Iterator<Item = (u32, u32)> {
        (1..).zip(&self.finer).flat_map(|(level, keys)| keys.iter().map(move |&key_index| (key_index, level)))
    }

    pub(crate) fn level_of(&self, key_index: u32) -> u32 {
        let listed = (1..).zip(&self.finer).find(|(_, keys)| keys.binary_search(&key_index).is_ok());
        listed.map_or(self.base, |(level, _)| level)
    }

    /// The keys that a range counts. The whole has a counter for every key: those of finer levels have counted nothing by then.
    pub(crate) fn counted_keys(&self, range: usize, plan: &Plan) -> CountedKeys<'_> {
        match plan.levels().level_of(range) {
            0 => CountedKeys::All,
            level if level == self.base => CountedKeys::All,
            level => CountedKeys::Places(&self.finer[level as usize - 1]),
        }
    }

    /// The counter of a key in a range, unless the key counts in others.
    pub(crate) fn cell_of(&self, key_index: usize, range: usize, plan: &Plan) -> Option<usize> {
        // With one level every range counts every key.
        if self.finer.is_empty() {
            return Some(key_index);
        }
        let key = u32::try_from(key_index)
            .ok()
            .filter(|&key| self.level_of(key) == plan.levels().level_of(range))?;
        self.counted_keys(range, plan).cell_of(key)
    }

    /// The shape of a slice.
    pub(crate) fn slice_shape(&self, range: usize, plan: &Plan) -> Shape {
        match self.counted_keys(range, plan) {
            CountedKeys::All => Shape { rows: 1, columns: plan.own_len() },
            CountedKeys::Places(key_indices) => Shape { rows: 1, columns: key_indices.len() as u32 },
        }
    }

    /// With these keys on each level from 1 on.
    pub(crate) fn from_lists(finer: Vec<Vec<u32>>) -> Self {
        let mut finer: Vec<Box<[u32]>> = finer.into_iter().map(Vec::into_boxed_slice).collect();
        for key_indices in &mut finer {
            key_indices.sort_unstable();
        }
        Self { base: 0, finer }
    }
}
