//! What is readable of one substream.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::item::mapping::Mapping;
use crate::plan::paper::checkpoint::Role;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::levels::Levels;
use crate::sealed::sketch::SealedSketch;

/// The readable part of one substream: the sketches of its complete ranges.
#[derive(Debug)]
pub(crate) struct SealedSubstream {
    pub(crate) number: u64,
    pub(crate) mapping: Mapping,
    /// Events that count nowhere because of the caps of users, where those are: which ones depends on arrivals alone.
    capped: Option<u64>,
    /// By index of the planned range.
    sketches: Vec<(usize, Arc<SealedSketch>)>,
    /// Which keys are cut more finely than others.
    levels: Arc<Levels>,
    /// The smallest counter of a key that never occurred, on average; made when it is first needed.
    pub(crate) absent: OnceLock<f64>,
}

impl SealedSubstream {
    pub(crate) fn new(number: u64, mapping: Mapping) -> Self {
        Self::from_parts(number, mapping, Vec::new())
    }

    pub(crate) fn from_parts(
        number: u64,
        mapping: Mapping,
        sketches: Vec<(usize, Arc<SealedSketch>)>,
    ) -> Self {
        Self { number, mapping, capped: None, sketches, levels: Arc::default(), absent: OnceLock::new() }
    }

    /// The same with these levels.
    pub(crate) fn with_levels(self, levels: Arc<Levels>) -> Self {
        Self { levels, ..self }
    }

    pub(crate) fn levels(&self) -> &Arc<Levels> {
        &self.levels
    }

    /// The same with so many events that count nowhere.
    pub(crate) fn with_capped(self, capped: Option<u64>) -> Self {
        Self { capped, ..self }
    }

    pub(crate) fn capped(&self) -> Option<u64> {
        self.capped
    }

    /// The same with more sketches; once the substream is complete its prefixes are left out.
    pub(crate) fn with_sketches(&self, sealed: Vec<(usize, SealedSketch)>, plan: &Plan) -> Self {
        let new = sealed.into_iter().map(|(index, sketch)| (index, Arc::new(sketch)));
        let mut sketches: Vec<_> = self.sketches.iter().cloned().chain(new).collect();
        // Once the whole is there nobody asks for a prefix again.
        if sketches.iter().any(|(index, _)| plan.ranges()[*index].role() == Role::Whole) {
            sketches.retain(|(index, _)| plan.ranges()[*index].role() != Role::Prefix);
        }
        let substream = Self::from_parts(self.number, self.mapping.clone(), sketches);
        substream.with_capped(self.capped).with_levels(Arc::clone(&self.levels))
    }

    pub(crate) fn sketch(&self, index: usize) -> Option<&SealedSketch> {
        self.sketches.iter().find(|(range, _)| *range == index).map(|(_, sketch)| &**sketch)
    }

    /// Whether its last event has been counted and sealed.
    pub(crate) fn is_complete(&self) -> bool {
        self.sketch(WHOLE).is_some()
    }

    pub(crate) fn sketches(&self) -> &[(usize, Arc<SealedSketch>)] {
        &self.sketches
    }

    /// The readable ranges and the offsets that they count.
    fn readable_ranges<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = (usize, Range<u64>)> + 'a {
        self.sketches.iter().map(|(index, _)| (*index, plan.ranges()[*index].offsets()))
    }

    /// The readable range that reaches the end of the substream and starts nearest before `offset`.
    pub(crate) fn range_from(&self, plan: &Plan, offset: u64) -> Option<usize> {
        let suffixes = self.readable_ranges(plan).filter(|(_, offsets)| offsets.end == plan.substream_len());
        let before = suffixes.filter(|(_, offsets)| offsets.start <= offset);
        before.max_by_key(|(_, offsets)| offsets.start).map(|(index, _)| index)
    }

    /// The readable range that starts with the substream and ends nearest before `offset`, in a stream that reaches no
    /// further than `reach`.
    pub(crate) fn range_until(&self, plan: &Plan, offset: u64, reach: u64) -> Option<usize> {
        let prefixes = self.readable_ranges(plan).filter(|(_, offsets)| offsets.start == 0);
        let before = prefixes.filter(|(_, offsets)| offsets.end.min(reach) <= offset);
        before.max_by_key(|(_, offsets)| offsets.end).map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::hash::StreamKey;
    use crate::item::mapping::{Columns, Shape};
    use crate::plan::limits::Width;
    use crate::plan::range::PlannedRange;
    use crate::plan::settings::{CounterLayout, Method, PaperMethod, Settings, SubstreamLen};
    use crate::privacy::parameters::Delta;

    /// Substreams of a hundred items, with prefixes and suffixes.
    fn plan() -> Plan {
        let counters = CounterLayout::Hashed { rows: 1, columns: 4 };
        let substream = SubstreamLen::PerWindow(10);
        Plan::new(Settings {
            delta: Delta::new(1e-9).ok(),
            method: Some(Method::Paper(PaperMethod { counters, substream, ..PaperMethod::default() })),
            ..Settings::last_items(1000, 1.0).expect("in range")
        })
        .expect("a plan")
    }

    /// The ranges that `is_sealed` are readable.
    fn substream(plan: &Plan, is_sealed: impl Fn(&Range<u64>) -> bool) -> SealedSubstream {
        let shape = Shape { rows: 1, columns: 4 };
        let fingerprint_key = StreamKey::from_bytes([3; 32]).fingerprint_key();
        let mapping = Mapping { shape, fingerprint_key, columns: Columns::Hashed([1].into()), pinned: None };
        let sealed = (0..plan.ranges().len()).filter(|&index| is_sealed(&plan.ranges()[index].offsets()));
        let sketch = |index| (index, SealedSketch::of_released(shape, &[0; 4], Some(0), Width::Wide));
        SealedSubstream::new(0, mapping).with_sketches(sealed.map(sketch).collect(), plan)
    }

    #[test]
    fn a_window_that_ends_inside_a_substream_takes_what_ends_before() {
        let plan = plan();
        let offsets = |index: Option<usize>| index.map(|index| plan.ranges()[index].offsets());
        let prefixes = plan.ranges().iter().filter(|range| range.role() == Role::Prefix);
        let lens: Vec<u64> = prefixes.map(|range| range.offsets().end).collect();
        let (short, long) = (lens[lens.len() - 1], lens[lens.len() - 2]);
        let running = substream(&plan, |range| range.end <= long);
        for (offset, wanted) in
            [(short - 1, None), (short, Some(0..short)), (long - 1, Some(0..short)), (long, Some(0..long))]
        {
            assert_eq!(offsets(running.range_until(&plan, offset, long)), wanted, "until {offset}");
        }
        let complete = substream(&plan, |_| true);
        // Complete, or sealed short at 70, where the stream is over.
        for (offset, reach, wanted) in
            [(99, 100, None), (100, 100, Some(0..100)), (69, 70, None), (70, 70, Some(0..100))]
        {
            assert_eq!(
                offsets(complete.range_until(&plan, offset, reach)),
                wanted,
                "until {offset} of {reach}"
            );
        }
    }

    #[test]
    fn a_window_that_starts_inside_a_substream_takes_what_starts_before() {
        let plan = plan();
        let offsets = |index: Option<usize>| index.map(|index| plan.ranges()[index].offsets());
        let complete = substream(&plan, |_| true);
        let suffixes = plan.ranges().iter().map(PlannedRange::offsets).filter(|range| range.end == 100);
        let mut starts: Vec<u64> = suffixes.map(|range| range.start).collect();
        starts.sort_unstable();
        for pair in starts.windows(2) {
            assert_eq!(offsets(complete.range_from(&plan, pair[1] - 1)), Some(pair[0]..100));
            assert_eq!(offsets(complete.range_from(&plan, pair[1])), Some(pair[1]..100));
        }
        let running = substream(&plan, |range| range.end < 100);
        assert_eq!(running.range_from(&plan, 99), None);
    }
}
