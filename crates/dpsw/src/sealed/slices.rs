//! The counts of keys in the slices of a sealed substream.

use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;

/// A key that is cut more finely than most.
#[derive(Debug, Clone)]
pub(crate) struct Finer {
    pub(crate) key_index: u32,
    pub(crate) slices: u32,
    /// What its slices hold, and what those of most keys hold of it.
    pub(crate) count: i64,
    pub(crate) of_base: i64,
}

impl SealedSubstream {
    /// The noisy counts of all keys, in slices of their own.
    pub(crate) fn key_totals(&self, plan: &Plan) -> Vec<i64> {
        let mut totals = vec![0; plan.own_len() as usize];
        self.add_totals(&mut totals, plan);
        totals
    }

    /// Adds what is sealed of each key; where the stream has ended, not all slices are.
    pub(crate) fn add_totals(&self, totals: &mut [i64], plan: &Plan) {
        self.add_totals_times(1, &self.finer_keys(plan), totals, plan);
    }

    /// The same so many times, 1 or -1, where the keys that are cut more finely are known.
    pub(crate) fn add_totals_times(&self, times: i64, finer: &[Finer], totals: &mut [i64], plan: &Plan) {
        for range in plan.levels().ranges_of(self.levels().base_level()) {
            let Some(sketch) = self.sketch(range) else { continue };
            // Two loops that the compiler can unroll are faster than one with a factor.
            if times < 0 { sketch.add_times::<-1>(totals) } else { sketch.add_times::<1>(totals) }
        }
        for key in finer {
            totals[key.key_index as usize] += times * (key.count - key.of_base);
        }
    }

    /// The keys that are cut more finely than most.
    pub(crate) fn finer_keys(&self, plan: &Plan) -> Vec<Finer> {
        let mut finer = Vec::new();
        for (key_index, level) in self.levels().listed_keys() {
            let count = self.count_key(key_index, level, plan);
            let of_base = self.count_key(key_index, self.levels().base_level(), plan);
            finer.push(Finer { key_index, slices: 1 << level, count, of_base });
        }
        finer.sort_unstable_by_key(|finer| finer.key_index);
        finer
    }

    /// How many items were counted: exactly where that is public, else by the noisy counters.
    pub(crate) fn total(&self) -> i64 {
        match self.sketch(WHOLE) {
            Some(whole) if whole.items().is_some() => whole.total(),
            // An item counts in one range, the whole or a slice of its key: noisy totals add up.
            _ => self.sketches().iter().map(|(_, sketch)| sketch.total()).sum(),
        }
    }

    /// What the slices of a level hold of a key.
    pub(crate) fn count_key(&self, key_index: u32, level: u32, plan: &Plan) -> i64 {
        plan.levels().ranges_of(level).filter_map(|range| self.count_in_slice(key_index, range, plan)).sum()
    }

    /// What a slice holds of a key, if it is sealed and counts the key.
    pub(crate) fn count_in_slice(&self, key_index: u32, range: usize, plan: &Plan) -> Option<i64> {
        let cell = self.levels().counted_keys(range, plan).cell_of(key_index)?;
        self.sketch(range).map(|sketch| sketch.cell(cell).into())
    }
}
