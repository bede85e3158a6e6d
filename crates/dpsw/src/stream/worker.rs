//! Workers of a trusted cluster count their share of a time window's substreams; one sealer absorbs the counts and adds
//! the noise once.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{IngestError, PartialError};
use crate::item::batch::{Batch, Items};
use crate::item::hash::StreamKey;
use crate::item::mapping::Mapping;
use crate::item::value::Kind;
use crate::plan::structure::Plan;
use crate::sealed::horizon::Horizon;
use crate::secret::counters::Counters;
use crate::secret::partial::{Origin, PartialCounters, PartialId, Segments};
use crate::stream::clock::segment_times;
use crate::stream::keys::HashKeys;

/// The most substreams that one call of a worker may touch: each takes counters of its own.
const SUBSTREAMS_MAX: u64 = 1000;

/// Runs of events that are shorter than this on average are gathered by segment before they are counted.
const RUN_LEN: usize = 16;

/// The substream and segment of some events, and which of a batch they are.
type Events = ((u64, usize), Range<usize>);

/// Counts events for a sketch that runs elsewhere, with the same plan and stream key.
#[derive(Debug)]
pub struct Worker {
    plan: Plan,
    keys: HashKeys,
    origin: Origin,
}

/// The partial counters that a worker made of events.
#[non_exhaustive]
pub struct Counted {
    /// One for each substream of the range, oldest first, also where nothing happened; after [`Worker::follow`], one for each
    /// substream that has events.
    pub partials: Vec<PartialCounters>,
    /// Events outside the range, which count nowhere. **Secret** where presence is.
    pub outside: Outside,
    /// The earliest and the latest time of the events that count. **Secret** where presence is.
    pub times: Option<(u64, u64)>,
}

/// Shows nothing: where presence is private, how many events there were and when is secret.
impl std::fmt::Debug for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counted")
    }
}

/// The numbers of events outside a range.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Outside {
    /// Before its start.
    pub before: usize,
    /// At its end or after it.
    pub after: usize,
}

/// Shows nothing, for the same reason.
impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outside")
    }
}

/// The events of one id, while they come in batch after batch. Exact and **secret**.
pub struct Counting {
    id: PartialId,
    range: Range<u64>,
    /// Those that get partial counters whatever happens.
    listed: Range<u64>,
    substreams: BTreeMap<u64, Segments>,
    mappings: BTreeMap<u64, Mapping>,
    outside: Outside,
    times: Option<(u64, u64)>,
}

impl std::fmt::Debug for Counting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counting")
    }
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
        if !time.clock.is_callers() {
            return Err(PartialError::EventsClock);
        }
        // A worker does not know who is pinned: an event that it counted in the rows as well would cost up to twice epsilon
        // (PRIVACY.md: rule 33).
        let sees_keys = plan.search_plan().is_some() || 0 < plan.pinned();
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
        let mut counting = self.start(id, range)?;
        self.add(&mut counting, batches)?;
        Ok(self.finish(counting))
    }

    /// Starts to count events that do not come all at once; see [`count`](Self::count).
    ///
    /// # Errors
    /// The range is empty or touches more than 1000 substreams.
    pub fn start(&self, id: PartialId, range: Range<u64>) -> Result<Counting, PartialError> {
        let listed = self.substreams_of(&range)?;
        Ok(Counting::new(id, range, listed))
    }

    /// The same where nobody knows which times will come: the range may be as long as one likes, and only substreams that have
    /// events get partial counters. That shows times, so they must be public.
    ///
    /// # Errors
    /// Presence is private, or items decide which events are late.
    pub fn follow(&self, id: PartialId, range: Range<u64>) -> Result<Counting, PartialError> {
        // Which substreams have partial counters would show where events are (PRIVACY.md: rule 28).
        if !self.plan.has_public_totals() {
            return Err(PartialError::PrivateTimes);
        }
        Ok(Counting::new(id, range, 0..0))
    }

    /// Adds events.
    ///
    /// # Errors
    /// A batch does not fit the plan. Nothing is counted then.
    pub fn add(&self, counting: &mut Counting, batches: &[Batch<'_>]) -> Result<(), PartialError> {
        // All are checked before any is counted, so that an error leaves nothing half counted.
        batches.iter().try_for_each(|batch| self.check_batch(batch).map(drop))?;
        batches.iter().try_for_each(|batch| self.count_batch(counting, batch))?;
        Ok(())
    }

    /// What was counted, as partial counters.
    #[must_use]
    pub fn finish(&self, counting: Counting) -> Counted {
        let Counting { id, listed, mut substreams, outside, times, .. } = counting;
        // Also those without an event: which ids there are must follow from the range alone (PRIVACY.md: rule 28).
        for number in listed {
            substreams.entry(number).or_default();
        }
        planted!(let substreams = fault::worked(substreams, outside));
        let partial = |(substream, segments)| PartialCounters {
            origin: self.origin,
            substream,
            parts: BTreeMap::from([(id, segments)]),
        };
        Counted { partials: substreams.into_iter().map(partial).collect(), outside, times }
    }

    fn count_batch(&self, counting: &mut Counting, batch: &Batch<'_>) -> Result<(), IngestError> {
        let times = self.check_batch(batch)?;
        let mut hashed = Vec::new();
        let words = match &batch.items {
            Items::Integers(items) => *items,
            Items::Nulls(_) => &[],
            Items::Strings(items) => {
                hashed.resize(items.len(), 0);
                items.hash_into(0, self.keys.mapper.fingerprint_key, &mut hashed);
                &hashed[..]
            }
        };
        counting.note_times(times);
        let kind = batch.kind();
        // Stops as soon as it is clear that runs are short.
        if self.find_runs(counting, times).take(times.len() / RUN_LEN + 2).count()
            <= times.len() / RUN_LEN + 1
        {
            let runs: Vec<Events> = self.find_runs(counting, times).collect();
            runs.into_iter().for_each(|(place, run)| {
                self.count_at(counting, place, run.len(), kind.map(|kind| (kind, &words[run])));
            });
            return Ok(());
        }
        for (place, rows) in self.gather_rows(counting, times) {
            let words: Vec<u64> = kind.iter().flat_map(|_| rows.iter().map(|row| words[*row])).collect();
            self.count_at(counting, place, rows.len(), kind.map(|kind| (kind, &words[..])));
        }
        Ok(())
    }

    /// Counts events of one segment; null items have no words.
    fn count_at(
        &self,
        counting: &mut Counting,
        (substream, segment): (u64, usize),
        len: usize,
        words: Option<(Kind, &[u64])>,
    ) {
        // Workers have plans without pinned keys, where everything is decided.
        let decided = Horizon::EVERYTHING.get(substream).expect("all substreams");
        let mapping = counting.mappings.entry(substream);
        let mapping = mapping.or_insert_with(|| self.keys.mapping_for(&self.plan, decided));
        let segments = counting.substreams.entry(substream).or_default();
        let counters = segments.entry(segment).or_insert_with(|| Counters::new(self.plan.shape(), 0));
        match words {
            Some((kind, words)) => counters.count_words(kind, words, mapping),
            None => counters.count_nulls(len),
        }
    }

    /// Events of the range that follow each other in one segment.
    fn find_runs<'t>(&'t self, counting: &Counting, times: &'t [u64]) -> impl Iterator<Item = Events> + 't {
        let range = counting.range.clone();
        let mut done = 0;
        std::iter::from_fn(move || {
            done += times[done..].iter().take_while(|time| !range.contains(time)).count();
            let place = self.plan.locate_position(*times.get(done)?);
            let segment = segment_times(&self.plan, place.0, place.1);
            let segment = segment.start.max(range.start)..segment.end.min(range.end);
            let start = done;
            done += times[done..].iter().take_while(|time| segment.contains(time)).count();
            Some((place, start..done))
        })
    }

    /// The rows of each segment, where times are mixed.
    fn gather_rows(&self, counting: &Counting, times: &[u64]) -> BTreeMap<(u64, usize), Vec<usize>> {
        let mut gathered: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (place, run) in self.find_runs(counting, times) {
            gathered.entry(place).or_default().extend(run);
        }
        gathered
    }

    /// The substreams that a range touches.
    fn substreams_of(&self, range: &Range<u64>) -> Result<Range<u64>, PartialError> {
        let len = self.plan.substream_len();
        let numbers = range.start / len..range.end.div_ceil(len);
        let is_right = range.start < range.end && numbers.end - numbers.start <= SUBSTREAMS_MAX;
        let Range { start, end } = *range;
        if is_right { Ok(numbers) } else { Err(PartialError::Range { start, end, most: SUBSTREAMS_MAX }) }
    }

    fn check_batch<'b>(&self, batch: &Batch<'b>) -> Result<&'b [u64], IngestError> {
        batch.check_kind(self.plan.settings().domain.kind())?;
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

impl Counting {
    fn new(id: PartialId, range: Range<u64>, listed: Range<u64>) -> Self {
        Self {
            id,
            range,
            listed,
            substreams: BTreeMap::new(),
            mappings: BTreeMap::new(),
            outside: Outside::default(),
            times: None,
        }
    }

    /// How many arrays of counters there are so far: what it takes in memory. **Secret** where presence is.
    #[must_use]
    pub fn arrays(&self) -> usize {
        self.substreams.values().map(Segments::len).sum()
    }

    /// Notes which times there are, inside the range and outside.
    fn note_times(&mut self, times: &[u64]) {
        let Range { start, end } = self.range;
        let (mut first, mut last, mut before, mut after) = (u64::MAX, 0, 0, 0);
        // Without branches: nearly all events lie inside.
        for &time in times {
            let is_inside = start <= time && time < end;
            before += usize::from(time < start);
            after += usize::from(start <= time && end <= time);
            first = first.min(if is_inside { time } else { u64::MAX });
            last = last.max(if is_inside { time } else { 0 });
        }
        self.outside.before += before;
        self.outside.after += after;
        if before + after < times.len() {
            let (earlier, later) = self.times.unwrap_or((first, last));
            self.times = Some((first.min(earlier), last.max(later)));
        }
    }
}
