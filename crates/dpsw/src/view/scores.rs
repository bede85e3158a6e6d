//! Which found keys stay listed: what they count in the newest window, by sealed counters. Cheap enough for every seal.

use std::sync::Arc;

use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::noise::tail::Moments;
use crate::plan::structure::Plan;
use crate::sealed::found::{Found, Kept};
use crate::sealed::leases::Leases;
use crate::sealed::substream::SealedSubstream;
use crate::view::fit::{Observed, absent_level};
use crate::view::weights::WHOLE;

/// Sealed substreams, oldest first.
type Substreams<'a> = &'a [Arc<SealedSubstream>];

impl Found {
    /// The list after something was sealed, with the keys that came out if that was a whole substream.
    pub(crate) fn next(
        &self,
        more: &Keys,
        before: Substreams<'_>,
        now: Substreams<'_>,
        tracking: Tracking<'_>,
    ) -> Self {
        let plan = tracking.plan;
        let (before, now) = (newest_window(before, plan), newest_window(now, plan));
        let Some(newest) = now.last() else { return self.clone() };
        let (first, by) = (now[0].number, newest.mapping.fingerprint_key);
        let known = before.last().map_or(first, |last| last.number + 1);
        let mut sums = self.sums().to_vec();
        let hashes = hashes(self.keys(), by);
        for left in before.iter().filter(|substream| substream.number < first) {
            tracking.add(left, &hashes, -1, &mut sums);
        }
        // A substream may leave when a part of the running one is sealed.
        if newest.number < known {
            return self.with(sums);
        }
        for new in now.iter().filter(|substream| known <= substream.number) {
            tracking.add(new, &hashes, 1, &mut sums);
        }
        let next = self.with(sums);
        if more.is_empty() { next } else { next.union(&counted(more, now, tracking, by), plan, by) }
    }

    /// The same with these keys, none of which is listed here, by what they count in the newest window.
    pub(crate) fn with_counted(
        &self,
        keys: &Keys,
        substreams: Substreams<'_>,
        tracking: Tracking<'_>,
        by: FingerprintKey,
    ) -> Self {
        let kept = counted(keys, newest_window(substreams, tracking.plan), tracking, by);
        self.union(&kept, tracking.plan, by)
    }

    /// The same with other keys, none of which is listed here.
    fn union(&self, more: &[Kept<'_>], plan: &Plan, by: FingerprintKey) -> Self {
        let Some(discovery) = plan.discovery() else { return self.clone() };
        let all = self.kept(by).chain(more.iter().copied()).collect();
        Self::new(discovery.kind(), all, discovery.list())
    }
}

fn counted<'k>(
    keys: &'k Keys,
    window: Substreams<'_>,
    tracking: Tracking<'_>,
    by: FingerprintKey,
) -> Vec<Kept<'k>> {
    let hashes = hashes(keys, by);
    let mut sums = vec![0; keys.len()];
    window.iter().for_each(|substream| tracking.add(substream, &hashes, 1, &mut sums));
    let kept = |((item, hash), sum)| Kept { hash, item, sum };
    keys.iter().zip(hashes).zip(sums).map(kept).collect()
}

fn hashes(keys: &Keys, by: FingerprintKey) -> Vec<u64> {
    keys.iter().map(|item| by.item(item)).collect()
}

fn substreams_per_window(plan: &Plan) -> u64 {
    plan.settings().window.len().div_ceil(plan.substream_len())
}

/// The complete ones of the newest window.
pub(crate) fn newest_window<'a>(substreams: Substreams<'a>, plan: &Plan) -> Substreams<'a> {
    let complete = substreams.iter().take_while(|substream| substream.sketch(WHOLE).is_some()).count();
    let complete = &substreams[..complete];
    let most = usize::try_from(substreams_per_window(plan)).unwrap_or(usize::MAX);
    &complete[complete.len().saturating_sub(most)..]
}

pub(crate) fn observed(substream: &SealedSubstream) -> Option<Observed<'_>> {
    let sketch = substream.sketch(WHOLE)?;
    Some(Observed {
        sketch,
        mapping: &substream.mapping,
        noise: Moments::default(),
        number: substream.number,
        length: 1.0,
        leases: Leases::none(),
    })
}

/// A plan and which of its keys are tracked.
#[derive(Clone, Copy)]
pub(crate) struct Tracking<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) leases: &'a Leases,
}

impl Tracking<'_> {
    /// Adds the smallest counter of each key, or takes it off; of a tracked key its own count and what an absent one sees.
    fn add(self, substream: &SealedSubstream, hashes: &[u64], sign: i64, sums: &mut [i64]) {
        let Some(observed) = observed(substream) else { return };
        observed.minima(hashes, |place, minimum| {
            let own = self.leases.slot(hashes[place], substream.number).map(|slot| {
                let count = substream.count(slot, substream.rungs().rung(slot), self.plan);
                count + absent(substream).round() as i64
            });
            sums[place] += sign * own.unwrap_or_else(|| minimum.into());
        });
    }
}

/// What the smallest counter of a key shows that never occurred.
fn absent(substream: &SealedSubstream) -> f64 {
    let level = || observed(substream).map_or(0.0, |observed| absent_level(&observed));
    *substream.absent.get_or_init(level)
}
