//! A substream that counts. A range becomes readable when it is complete and noised.

use std::collections::VecDeque;
use std::ops::Range;

use crate::item::mapping::Mapping;
use crate::item::run::Run;
use crate::noise::generator::Generator;
use crate::plan::paper::checkpoint::Role;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::levels::{CountedKeys, Levels};
use crate::sealed::sketch::SealedSketch;
use crate::secret::caps::Caps;
use crate::secret::counters::{Counters, Total};

/// The items that were admitted, and how many were not.
pub(crate) struct Admitted {
    /// Which of them count, by their places, unless all do.
    pub(crate) places: Option<Vec<usize>>,
    /// How many do not because of the caps of users.
    pub(crate) capped: usize,
}

/// A substream that is not complete.
///
/// An item is counted once, in its segment: the stretch between two ends of ranges. When a segment closes it is added to every
/// range that covers it, so counting costs the same however many ranges overlap. All counters are exact and start at zero; noise
/// comes with the seal, from a generator that is drawn for that range alone. There is no `Clone`, as a copied range could be
/// sealed twice with different noise.
///
/// Invariant: `segments` holds the items of the segments that are not closed, by their number minus `closed`; `ranges`
/// those of the closed ones for each range that has started and is not complete. Where keys are cut into slices,
/// what those that are complete have left is in the whole.
pub(crate) struct OpenSubstream {
    mapping: Mapping,
    /// The most pinned keys.
    pinned: u32,
    /// How many of the planned segments are closed.
    closed: usize,
    /// `None` before the first item.
    segments: VecDeque<Option<Counters>>,
    /// An empty array for the next segment, at hand for the processor.
    spare: Option<Counters>,
    ranges: Vec<(usize, Counters)>,
    /// What each user has sent, once one has.
    pub(crate) caps: Option<Caps>,
}

impl std::fmt::Debug for OpenSubstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenSubstream")
    }
}

impl OpenSubstream {
    pub(crate) fn new(plan: &Plan, mapping: Mapping) -> Self {
        Self {
            mapping,
            pinned: plan.pinned(),
            closed: 0,
            segments: VecDeque::new(),
            spare: None,
            ranges: Vec::new(),
            caps: None,
        }
    }

    /// A substream with these counters; `None` unless they are those of open segments, each once, and of exactly the
    /// ranges that have started and are not complete.
    pub(crate) fn from_parts(
        plan: &Plan,
        mapping: Mapping,
        closed: usize,
        segments: Vec<(usize, Counters)>,
        ranges: Vec<(usize, Counters)>,
    ) -> Option<Self> {
        let mut open = Self { closed, ..Self::new(plan, mapping) };
        for (segment, counters) in segments {
            let index = segment.checked_sub(closed)?;
            if open.segments.len() <= index {
                open.segments.resize_with(index + 1, || None);
            }
            if open.segments[index].replace(counters).is_some() {
                return None;
            }
        }
        let sealed = open.sealed_until(plan);
        let is_running = |index: &usize| {
            let Range { start, end } = plan.ranges()[*index].offsets();
            // Slices have no counters: they take their keys out of those of the whole.
            start < sealed && sealed < end && plan.ranges()[*index].role() != Role::Slice
        };
        let mut indices: Vec<usize> = ranges.iter().map(|(index, _)| *index).collect();
        indices.sort_unstable();
        open.ranges = ranges;
        // With one more range, something that was released could be sealed a second time (PRIVACY.md: rule 10).
        (0..plan.ranges().len()).filter(is_running).eq(indices).then_some(open)
    }

    /// The counters of the open segments, by number.
    pub(crate) fn open_segments(&self) -> impl Iterator<Item = (usize, &Counters)> {
        let numbered = (self.closed..).zip(&self.segments);
        numbered.filter_map(|(number, counters)| counters.as_ref().map(|counters| (number, counters)))
    }

    /// The counters of the ranges that have started and are not complete.
    pub(crate) fn running_ranges(&self) -> impl Iterator<Item = (usize, &Counters)> {
        self.ranges.iter().map(|(index, counters)| (*index, counters))
    }

    /// Turns a complete substream into the empty next one.
    pub(crate) fn turn_over(&mut self, mapping: Mapping) {
        debug_assert!(
            self.ranges.is_empty() && self.segments.is_empty(),
            "everything ends with its substream"
        );
        self.closed = 0;
        self.mapping = mapping;
        if let Some(caps) = &mut self.caps {
            // Every substream starts anew: who has room follows from its own arrivals (PRIVACY.md: rule 14).
            caps.turn_over();
        }
    }

    /// Counts the items of a segment that is not closed; those over their user's cap are null items.
    pub(crate) fn take_run(&mut self, segment: usize, run: Run<'_>, plan: &Plan) -> Admitted {
        // Null items are among those that a user may send, so that what was sent never decides who has room
        // (PRIVACY.md: rule 14).
        let admitted = self.admit_run(run, plan);
        let capped = admitted.as_ref().map_or(0, |places| run.len() - places.len());
        let Some(kind) = run.kind else {
            self.count_taken(plan, segment, |counters, _| counters.count_nulls(run.len()));
            return Admitted { places: Some(Vec::new()), capped };
        };
        let Some(places) = &admitted else {
            self.count_taken(plan, segment, |counters, mapping| {
                counters.count_words(kind, run.words, mapping);
            });
            return Admitted { places: None, capped };
        };
        let words: Vec<u64> = places.iter().map(|&place| run.words[place]).collect();
        self.count_taken(plan, segment, |counters, mapping| {
            counters.count_words(kind, &words, mapping);
            // Beyond the cap an item keeps its position and counts nowhere (PRIVACY.md: rule 14).
            counters.count_nulls(run.len() - words.len());
        });
        Admitted { places: admitted, capped }
    }

    /// How many events did not count because of the caps of users; none where single events are protected.
    pub(crate) fn capped_events(&self, plan: &Plan) -> Option<u64> {
        plan.user_room().map(|_| self.caps.as_ref().map_or(0, Caps::capped))
    }

    /// The caps of a substream in which nobody has sent anything; none where single events are protected.
    pub(crate) fn empty_caps(&self, plan: &Plan) -> Option<Caps> {
        let users_max = usize::try_from(plan.users_max()).unwrap_or(usize::MAX);
        plan.settings().unit.per_substream().map(|each| Caps::new(each, users_max))
    }

    fn admit_run(&mut self, run: Run<'_>, plan: &Plan) -> Option<Vec<usize>> {
        let empty = self.empty_caps(plan)?;
        let caps = self.caps.get_or_insert(empty);
        let key = self.mapping.fingerprint_key;
        // In the order of arrival and by who sent, never by what (PRIVACY.md: rule 14).
        let admitted = (0..run.len()).filter(|&place| caps.admit(run.users[place], key)).collect();
        planted!(let admitted = fault::admitted(admitted, run, self.open_segments().next().is_none()));
        Some(admitted)
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The number of the oldest segment that is not closed.
    pub(crate) fn closed_count(&self) -> usize {
        self.closed
    }

    /// The offset at which the closed part ends.
    pub(crate) fn sealed_until(&self, plan: &Plan) -> u64 {
        self.closed.checked_sub(1).map_or(0, |last| plan.boundaries()[last])
    }

    /// The offset at which the oldest open segment ends; `None` when the substream is complete.
    pub(crate) fn next_boundary(&self, plan: &Plan) -> Option<u64> {
        plan.boundaries().get(self.closed).copied()
    }

    /// Counts what was taken. In a count window nothing comes before its turn: what complete slices have left and the segment
    /// share one array.
    fn count_taken(&mut self, plan: &Plan, segment: usize, count: impl FnOnce(&mut Counters, &Mapping)) {
        let shares = plan.has_slices() && plan.settings().window.time().is_none();
        match self.ranges.first_mut().filter(|_| shares) {
            Some((_, whole)) => count(whole, &self.mapping),
            None => self.count_in_segment(segment, count),
        }
    }

    /// Counts into the counters of a segment that is not closed.
    pub(crate) fn count_in_segment(&mut self, segment: usize, count: impl FnOnce(&mut Counters, &Mapping)) {
        let index = segment - self.closed;
        if self.segments.len() <= index {
            self.segments.resize_with(index + 1, || None);
        }
        let (spare, shape, pinned) = (&mut self.spare, self.mapping.shape, self.pinned);
        // Not `take_empty`, which would borrow the segments as well.
        let empty = || spare.take().unwrap_or_else(|| Counters::new(shape, pinned));
        count(self.segments[index].get_or_insert_with(empty), &self.mapping);
    }

    fn take_empty(&mut self) -> Counters {
        self.spare.take().unwrap_or_else(|| Counters::new(self.mapping.shape, self.pinned))
    }

    /// The ranges that end with the oldest segment and count some key: slices first, as they leave the rest to the whole.
    pub(crate) fn ranges_ending(&self, plan: &Plan, levels: &Levels) -> Vec<usize> {
        let end = self.next_boundary(plan);
        let ends = |index: &usize| Some(plan.ranges()[*index].offsets().end) == end;
        sealing_order(plan, (0..plan.ranges().len()).filter(ends), levels)
    }

    /// Ends the oldest segment and seals the ranges that end with it, by index, each with a generator of its own.
    pub(crate) fn close_segment(
        &mut self,
        plan: &Plan,
        levels: &Levels,
        generators: &mut impl Iterator<Item = Generator>,
    ) -> Vec<(usize, SealedSketch)> {
        let end = self.next_boundary(plan).expect("a complete substream has no segment to close");
        let ending = self.ranges_ending(plan, levels);
        if plan.has_slices() {
            return self.close_slices(plan, levels, &ending, generators);
        }
        let mut segment = self.take_segment(plan, end);
        let sealed = ending.into_iter().map(|index| {
            let generator = generators.next().expect("one was drawn for each range");
            let mut counters = self.take_range(index);
            // A range of this one segment is the last to need its counts.
            let counters = counters.as_mut().unwrap_or(&mut segment);
            (index, seal_range(counters, plan, index, levels, generator))
        });
        let sealed = sealed.collect();
        // It may hold the noise of a range that was sealed from it (PRIVACY.md: rule 2).
        segment.clear();
        self.spare = Some(segment);
        sealed
    }

    /// The same where keys are cut into slices: each slice takes its keys out of the counters of the whole.
    fn close_slices(
        &mut self,
        plan: &Plan,
        levels: &Levels,
        ending: &[usize],
        generators: &mut impl Iterator<Item = Generator>,
    ) -> Vec<(usize, SealedSketch)> {
        let segment = self.segments.pop_front().flatten();
        self.closed += 1;
        let mut whole = match (self.take_range(WHOLE), segment) {
            (Some(mut whole), Some(segment)) => {
                whole.add(&segment);
                whole
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => self.take_empty(),
        };
        let sealed = ending.iter().map(|&index| {
            let generator = generators.next().expect("one was drawn for each range");
            (index, seal_range(&mut whole, plan, index, levels, generator))
        });
        let sealed = sealed.collect();
        planted!(fault::cut(self.caps.as_mut()));
        if self.next_boundary(plan).is_some() {
            // What it still holds belongs to slices that end later and to keys that are not cut.
            self.ranges.push((WHOLE, whole));
        } else {
            whole.clear();
            self.spare = Some(whole);
        }
        sealed
    }

    /// The ranges that are open at an offset, where a stream is over: its slices first.
    pub(crate) fn ranges_cut_short(plan: &Plan, len: u64, levels: &Levels) -> Vec<usize> {
        let is_open = |index: &usize| {
            let Range { start, end } = plan.ranges()[*index].offsets();
            *index == WHOLE || (plan.ranges()[*index].role() == Role::Slice && start < len && len < end)
        };
        sealing_order(plan, (0..plan.ranges().len()).filter(is_open), levels)
    }

    /// Seals all that was counted before this offset, in the slices that are open and the whole range: the stream is over
    /// there. Segments that begin later count nowhere.
    pub(crate) fn seal_short(
        &mut self,
        plan: &Plan,
        levels: &Levels,
        len: u64,
        generators: &mut impl Iterator<Item = Generator>,
    ) -> Vec<(usize, SealedSketch)> {
        let mut whole = self.take_range(WHOLE).unwrap_or_else(|| self.take_empty());
        // What begins after the end counts nowhere, whatever is open there (PRIVACY.md: rule 34).
        let starts = [0].iter().chain(plan.boundaries()).skip(self.closed);
        for (segment, _) in self.segments.drain(..).zip(starts).filter(|(_, start)| **start < len) {
            segment.iter().for_each(|segment| whole.add(segment));
        }
        let mut sealed = Vec::new();
        for index in Self::ranges_cut_short(plan, len, levels) {
            // PRIVACY.md: rule 2. Each range has its own noise.
            let generator = generators.next().expect("one was drawn for each range");
            planted!(let generator = fault::short(generator, index));
            sealed.push((index, seal_range(&mut whole, plan, index, levels, generator)));
        }
        sealed
    }

    /// Takes the oldest segment, which ends at `end`, after adding it to every longer range that covers it.
    fn take_segment(&mut self, plan: &Plan, end: u64) -> Counters {
        let start = self.sealed_until(plan);
        let segment = self.segments.pop_front().flatten().unwrap_or_else(|| self.take_empty());
        for (_, counters) in &mut self.ranges {
            counters.add(&segment);
        }
        for (index, range) in plan.ranges().iter().enumerate() {
            if range.offsets().start == start && end < range.offsets().end {
                // A copy, as the segment itself is sealed or used again.
                self.ranges.push((index, segment.copy()));
            }
        }
        self.closed += 1;
        segment
    }

    #[cfg(test)]
    pub(crate) fn oldest_segment(&self) -> Option<&Counters> {
        self.segments.front().and_then(Option::as_ref)
    }

    /// The counters of a range; `None` if it has had no segment before this one.
    fn take_range(&mut self, index: usize) -> Option<Counters> {
        let at = self.ranges.iter().position(|(range, _)| *range == index)?;
        Some(self.ranges.swap_remove(at).1)
    }
}

/// Seals a range: a slice takes its keys out of the counters, the whole takes all.
fn seal_range(
    counters: &mut Counters,
    plan: &Plan,
    index: usize,
    levels: &Levels,
    generator: Generator,
) -> SealedSketch {
    let (table, width) = (plan.ranges()[index].table(), plan.width());
    match plan.ranges()[index].role() {
        Role::Slice => counters.seal_keys(levels.counted_keys(index, plan), width, table, generator),
        Role::Whole | Role::Prefix | Role::Suffix => {
            let total = if plan.has_public_totals() { Total::Public } else { Total::Private };
            counters.seal(total, width, table, generator)
        }
    }
}

/// These ranges without slices that count no key; the whole comes after its slices, and hashed counters last.
fn sealing_order(plan: &Plan, ranges: impl Iterator<Item = usize>, levels: &Levels) -> Vec<usize> {
    let is_slice = |index: usize| plan.ranges()[index].role() == Role::Slice;
    let counts =
        |index: &usize| !is_slice(*index) || levels.counted_keys(*index, plan) != CountedKeys::Places(&[]);
    let mut ranges: Vec<usize> = ranges.filter(counts).collect();
    let own_whole = plan.levels().ranges_of(0).start;
    // The whole must find only what its slices have left (PRIVACY.md: rule 33).
    ranges.sort_by_key(|&index| if is_slice(index) { usize::from(index == own_whole) } else { 2 });
    ranges
}
