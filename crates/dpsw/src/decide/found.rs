//! Which found keys stay listed: those that count most in the newest window, by sealed counters. Cheap enough for every seal.

use std::sync::Arc;

use crate::decide::sums::{WindowSums, newest_window};
use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::absent::absent_level;
use crate::sealed::found::{FoundKey, FoundKeys, fingerprint_keys};
use crate::sealed::pins::Pins;
use crate::sealed::substream::SealedSubstream;

/// Sealed substreams, oldest first.
type Substreams<'a> = &'a [Arc<SealedSubstream>];

/// Counts found keys in sealed substreams.
#[derive(Clone, Copy)]
pub(crate) struct FoundCounter<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) pins: &'a Pins,
}

impl FoundCounter<'_> {
    /// Adds the smallest counter of each key so many times; of a pinned key its own count and what an absent one sees.
    fn add_counts(self, times: i64, substream: &SealedSubstream, hashes: &[u64], sums: &mut [i64]) {
        let Some(sketch) = substream.sketch(WHOLE) else { return };
        sketch.visit_minima(substream.mapping.rows(), hashes, |key_index, minimum| {
            let count = match self.pins.slot_at(hashes[key_index], substream.number) {
                None => minimum.into(),
                Some(slot) => {
                    // Sums of pinned and of hashed keys are compared: both must hold what an absent key sees.
                    let own = substream.count_key(slot, substream.levels().level_of(slot), self.plan);
                    let absent = substream.absent.get_or_init(|| absent_level(sketch, substream.number));
                    own + absent.round() as i64
                }
            };
            sums[key_index] += times * count;
        });
    }

    fn count_keys<'k>(self, keys: &'k Keys, window: Substreams<'_>, by: FingerprintKey) -> Vec<FoundKey<'k>> {
        let hashes = fingerprint_keys(keys, by);
        let mut sums = vec![0; keys.len()];
        for substream in window {
            self.add_counts(1, substream, &hashes, &mut sums);
        }
        let counted = keys.iter().zip(hashes).zip(sums);
        counted.map(|((item, hash), sum)| FoundKey { hash, item, sum }).collect()
    }
}

impl FoundKeys {
    /// The list after something was sealed, with the keys that came out if that was a whole substream.
    pub(crate) fn after_seal(
        &self,
        more: &Keys,
        before: Substreams<'_>,
        now: Substreams<'_>,
        counter: FoundCounter<'_>,
    ) -> Self {
        let now = newest_window(now, counter.plan);
        // PRIVACY.md: rule 38. Only what is kept decides who stays listed.
        let Some(newest) = now.last() else { return self.clone() };
        let by = newest.mapping.fingerprint_key;
        let hashes = fingerprint_keys(self.keys(), by);
        let mut sums = WindowSums::of_substreams(newest_window(before, counter.plan), self.sums().to_vec());
        sums.slide_to(
            now,
            hashes.len(),
            |_| (),
            |changes, sums| {
                for (times, summed) in changes {
                    counter.add_counts(*times, &summed.substream, &hashes, sums);
                }
            },
        );
        let next = self.with_sums(sums.into_sums());
        if more.is_empty() {
            next
        } else {
            next.union_with(&counter.count_keys(more, now, by), counter.plan, by)
        }
    }

    /// The same with these keys, none of which is listed here, by what they count in the newest window.
    pub(crate) fn with_counted(
        &self,
        keys: &Keys,
        substreams: Substreams<'_>,
        counter: FoundCounter<'_>,
        by: FingerprintKey,
    ) -> Self {
        let kept = counter.count_keys(keys, newest_window(substreams, counter.plan), by);
        self.union_with(&kept, counter.plan, by)
    }

    /// The same with other keys, none of which is listed here.
    fn union_with(&self, more: &[FoundKey<'_>], plan: &Plan, by: FingerprintKey) -> Self {
        let Some(search_plan) = plan.search_plan() else { return self.clone() };
        let all = self.iter_kept(by).chain(more.iter().copied()).collect();
        Self::new(search_plan.kind(), all, search_plan.list_limits())
    }
}
