//! Workers of a trusted cluster count their share of a time window's substreams; one sealer absorbs the counts and adds
//! the noise once.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{IngestError, PartialError};
use crate::item::batch::{Batch, Items};
use crate::item::hash::StreamKey;
use crate::item::mapping::Mapping;
use crate::plan::settings::Clock;
use crate::plan::structure::Plan;
use crate::secret::counters::Counters;
use crate::secret::partial::{Origin, PartialCounters, PartialId, Segments};
use crate::stream::keys::HashKeys;

/// The most substreams that one call of a worker may touch: each takes counters of its own.
const SUBSTREAMS_MAX: u64 = 1000;

/// Counts events for a sketch that runs elsewhere, with the same plan and stream key.
#[derive(Debug)]
pub struct Worker {
    plan: Plan,
    keys: HashKeys,
    origin: Origin,
}

/// What a worker made of a batch.
#[derive(Debug)]
#[non_exhaustive]
pub struct Counted {
    /// One for each substream of the range, oldest first, also where nothing happened.
    pub partials: Vec<PartialCounters>,
    /// Events outside the range, which count nowhere. **Secret** where presence is.
    pub outside: usize,
}

impl Worker {
    /// A worker for time windows with the caller's clock.
    ///
    /// # Errors
    /// The plan has a count window, whose positions a worker cannot know, or the events' clock; or it protects users or finds
    /// keys.
    pub fn new(plan: impl Into<Plan>, key: StreamKey) -> Result<Self, PartialError> {
        let plan = plan.into();
        let time = plan.settings().window.time().ok_or(PartialError::CountWindow)?;
        if time.clock != Clock::Caller {
            return Err(PartialError::EventsClock);
        }
        let sees_keys = plan.discovery().is_some() || 0 < plan.tracked();
        if sees_keys || plan.settings().unit.per_substream().is_some() {
            return Err(PartialError::UsersOrKeys);
        }
        let origin = Origin::new(&plan, &key);
        Ok(Self { keys: HashKeys::new(&plan, key), plan, origin })
    }

    /// Counts a batch with times: partial counters of each substream that the range touches.
    ///
    /// The range must be public, such as the minute that a step of the engine covers: it alone decides which partial counters
    /// there are. Events outside it are left out one by one.
    ///
    /// # Errors
    /// The range is empty or touches more than 1000 substreams, or the batch does not fit the plan.
    pub fn count(&self, id: PartialId, range: Range<u64>, batch: Batch<'_>) -> Result<Counted, PartialError> {
        self.count_all(id, range, &[batch])
    }

    /// The same for events that come in several batches, such as items and, between them, null items.
    ///
    /// # Errors
    /// See [`count`](Self::count). Nothing is counted then.
    pub fn count_all(
        &self,
        id: PartialId,
        range: Range<u64>,
        batches: &[Batch<'_>],
    ) -> Result<Counted, PartialError> {
        let numbers = self.numbers(&range)?;
        let mut substreams: BTreeMap<u64, Segments> =
            numbers.map(|number| (number, Segments::new())).collect();
        let mut outside = 0;
        for batch in batches {
            outside += self.count_batch(&mut substreams, &range, batch)?;
        }
        #[cfg(test)]
        let substreams = crate::testing::fault::worked(substreams, outside);
        let partial = |(substream, segments)| PartialCounters {
            origin: self.origin,
            substream,
            parts: BTreeMap::from([(id, segments)]),
        };
        Ok(Counted { partials: substreams.into_iter().map(partial).collect(), outside })
    }

    fn count_batch(
        &self,
        substreams: &mut BTreeMap<u64, Segments>,
        range: &Range<u64>,
        batch: &Batch<'_>,
    ) -> Result<usize, IngestError> {
        let times = self.check(batch)?;
        let mut hashed = Vec::new();
        let words = match &batch.items {
            Items::Integers(items) => *items,
            Items::Nulls(_) => &[],
            Items::Strings(items) => {
                hashed.resize(items.len(), 0);
                items.hash(0, self.keys.mapper.fingerprint_key, &mut hashed);
                &hashed[..]
            }
        };
        Ok(self.count_runs(substreams, range, times, |counters, run, mapping| match batch.kind() {
            Some(kind) => counters.count_words(kind, &words[run], mapping),
            None => counters.count_nulls(run.len()),
        }))
    }

    /// Counts runs of events that fall into one segment, and says how many lie outside the range.
    fn count_runs(
        &self,
        substreams: &mut BTreeMap<u64, Segments>,
        range: &Range<u64>,
        times: &[u64],
        count: impl Fn(&mut Counters, Range<usize>, &Mapping),
    ) -> usize {
        let place = |time: &u64| range.contains(time).then(|| self.plan.place(*time));
        let (mut mapping, mut outside, mut done) = (None, 0, 0);
        for run in times.chunk_by(|a, b| place(a) == place(b)) {
            let start = done;
            done += run.len();
            let Some((substream, segment)) = place(&run[0]) else {
                outside += run.len();
                continue;
            };
            if mapping.as_ref().is_none_or(|(of, _)| *of != substream) {
                mapping = Some((substream, self.keys.mapping(&self.plan, substream)));
            }
            let (_, mapping) = mapping.as_ref().expect("it was just made");
            let segments = substreams.get_mut(&substream).expect("the range touches the substream");
            let counters = segments.entry(segment).or_insert_with(|| Counters::new(self.plan.shape(), 0));
            count(counters, start..start + run.len(), mapping);
        }
        outside
    }

    /// The substreams that a range touches.
    fn numbers(&self, range: &Range<u64>) -> Result<Range<u64>, PartialError> {
        let len = self.plan.substream_len();
        let numbers = range.start / len..range.end.div_ceil(len);
        let is_right = range.start < range.end && numbers.end - numbers.start <= SUBSTREAMS_MAX;
        let Range { start, end } = *range;
        if is_right { Ok(numbers) } else { Err(PartialError::Range { start, end, most: SUBSTREAMS_MAX }) }
    }

    fn check<'b>(&self, batch: &Batch<'b>) -> Result<&'b [u64], IngestError> {
        let wanted = self.plan.settings().domain.kind();
        if let Some(got) = batch.kind().filter(|got| *got != wanted) {
            return Err(IngestError::Kind { wanted, got });
        }
        if batch.users.is_some() {
            return Err(IngestError::UnwantedUsers);
        }
        let times = batch.times.ok_or(IngestError::NoTimes)?;
        if times.len() == batch.len() {
            Ok(times)
        } else {
            Err(IngestError::TimeCount { times: times.len(), items: batch.len() })
        }
    }
}
