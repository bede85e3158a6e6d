//! Workers of a trusted cluster count their share of a time window's substreams; one sealer absorbs the counts and adds
//! the noise once.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::IngestError;
use crate::item::hash::StreamKey;
use crate::item::mapping::Mapping;
use crate::item::value::Kind;
use crate::plan::structure::Plan;
use crate::secret::counters::Counters;
use crate::secret::partial::{Origin, PartialCounters, PartialId};
use crate::stream::keys::HashKeys;

/// The most substreams that one call of a worker may spread over: each takes counters of its own.
const SUBSTREAMS_MAX: u64 = 1000;

/// Counts events for a sketch that runs elsewhere, with the same plan and stream key.
#[derive(Debug)]
pub struct Worker {
    plan: Plan,
    keys: HashKeys,
    origin: Origin,
}

impl Worker {
    /// A worker for time windows.
    ///
    /// # Errors
    /// The plan has a count window, whose positions a worker cannot know.
    pub fn new(plan: Plan, key: StreamKey) -> Result<Self, IngestError> {
        if plan.settings().window.time().is_none() {
            return Err(IngestError::Times("partial counters need a time window"));
        }
        if plan.discovery().is_some() || plan.settings().unit.per_substream().is_some() {
            return Err(IngestError::Users("partial counters hold no keys and no users"));
        }
        let origin = Origin::new(&plan, &key);
        Ok(Self { keys: HashKeys::new(&plan, key), plan, origin })
    }

    /// Counts integers with their times: the partial counters of each substream that they fall in.
    ///
    /// # Errors
    /// The plan counts bytes, there are not as many times as items, or they spread over more than 1000 substreams.
    pub fn count(
        &self,
        id: PartialId,
        times: &[u64],
        items: &[u64],
    ) -> Result<Vec<PartialCounters>, IngestError> {
        self.check(Kind::Integers, times, items.len())?;
        let mut partials = BTreeMap::new();
        self.count_into(&mut partials, id, times, items, Counters::count_integers);
        Ok(partials.into_values().collect())
    }

    /// Counts byte strings or texts, like [`count`](Self::count).
    ///
    /// # Errors
    /// The plan counts integers, there are not as many times as items, or they spread over more than 1000 substreams.
    pub fn count_bytes<T: AsRef<[u8]>>(
        &self,
        id: PartialId,
        times: &[u64],
        items: &[T],
    ) -> Result<Vec<PartialCounters>, IngestError> {
        self.check(Kind::Bytes, times, items.len())?;
        let mut fingerprints = vec![0; items.len()];
        self.keys.fingerprints(items, &mut fingerprints);
        let mut partials = BTreeMap::new();
        self.count_into(&mut partials, id, times, &fingerprints, Counters::count_fingerprints);
        Ok(partials.into_values().collect())
    }

    fn count_into(
        &self,
        partials: &mut BTreeMap<u64, PartialCounters>,
        id: PartialId,
        times: &[u64],
        items: &[u64],
        count: impl Fn(&mut Counters, &[u64], &Mapping),
    ) {
        let mut mapping = None;
        let mut done = 0;
        while done < times.len() {
            let (substream, segment) = self.plan.place(times[done]);
            let run = times[done..]
                .iter()
                .take_while(|&&time| self.plan.place(time) == (substream, segment))
                .count();
            if mapping.as_ref().is_none_or(|(of, _)| *of != substream) {
                mapping = Some((substream, self.keys.mapping(&self.plan, substream)));
            }
            let (_, mapping) = mapping.as_ref().expect("it was just made");
            let partial = partials.entry(substream).or_insert_with(|| self.empty(substream, id));
            let counters =
                partial.segments.entry(segment).or_insert_with(|| Counters::new(self.plan.shape()));
            count(counters, &items[done..done + run], mapping);
            done += run;
        }
    }

    fn empty(&self, substream: u64, id: PartialId) -> PartialCounters {
        PartialCounters {
            origin: self.origin,
            substream,
            ids: BTreeSet::from([id]),
            segments: BTreeMap::new(),
        }
    }

    fn check(&self, got: Kind, times: &[u64], items: usize) -> Result<(), IngestError> {
        let wanted = self.plan.settings().domain.kind();
        if got != wanted {
            return Err(IngestError::Kind { wanted, got });
        }
        if times.len() != items {
            return Err(IngestError::Lengths { times: times.len(), items });
        }
        let [first, last] =
            [times.iter().min(), times.iter().max()].map(|time| time.map_or(0, |&t| self.plan.place(t).0));
        if last - first < SUBSTREAMS_MAX {
            Ok(())
        } else {
            Err(IngestError::Times("the times of one call must lie within 1000 substreams"))
        }
    }
}
