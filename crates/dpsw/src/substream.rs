//! OpenSubstream counts; SealedSubstream answers. A range becomes readable when it is complete and noised.

use std::ops::Range;
use std::sync::Arc;

use crate::checkpoint::Role;
use crate::counters::{Counters, Mapping};
use crate::error::EntropyError;
use crate::noise::Noise;
use crate::plan::Plan;
use crate::sketch::SealedSketch;

/// The running substream. Invariant: `segment` holds the items since the last boundary, `ranges` those before it for
/// each range that has started and is not complete.
#[derive(Debug)]
pub(crate) struct OpenSubstream {
    mapping: Mapping,
    /// Items so far.
    offset: u64,
    segment_start: u64,
    segment: Counters,
    ranges: Vec<(usize, Counters)>,
}

impl OpenSubstream {
    pub(crate) fn new(mapping: Mapping) -> Self {
        let segment = Counters::new(mapping.shape);
        Self { mapping, offset: 0, segment_start: 0, segment, ranges: Vec::new() }
    }

    /// Turns a substream whose last segment was closed into the empty next one.
    pub(crate) fn turn_over(&mut self, mapping: Mapping) {
        debug_assert!(self.ranges.is_empty(), "every range ends with its substream");
        (self.offset, self.segment_start) = (0, 0);
        self.mapping = mapping;
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// How many items fit before the next boundary; 0 when the segment waits to be closed.
    pub(crate) fn room(&self, plan: &Plan) -> u64 {
        let boundaries = plan.boundaries();
        let next = boundaries.partition_point(|&boundary| boundary <= self.segment_start);
        boundaries[next] - self.offset
    }

    /// Counts items that fit into the room.
    pub(crate) fn count(&mut self, items: u64, count: impl FnOnce(&mut Counters, &Mapping)) {
        count(&mut self.segment, &self.mapping);
        self.offset += items;
    }

    /// Ends the segment and seals the ranges that end with it, by index. Without randomness nothing changes.
    pub(crate) fn close_segment(
        &mut self,
        plan: &Plan,
        noise: &mut Noise,
    ) -> Result<Vec<(usize, SealedSketch)>, EntropyError> {
        let ends = |index: &usize| plan.ranges()[*index].offsets().end == self.offset;
        let ending: Vec<usize> = (0..plan.ranges().len()).filter(ends).collect();
        let generators = ending.iter().map(|_| noise.generator()).collect::<Result<Vec<_>, _>>()?;
        self.fold_segment(plan);
        let sealed = ending.into_iter().zip(generators).map(|(index, mut generator)| {
            let counters = self.take_range(index);
            (index, counters.seal(plan.ranges()[index].table(), &mut generator))
        });
        Ok(sealed.collect())
    }

    /// Adds the segment to every range that covers it and starts the next one.
    fn fold_segment(&mut self, plan: &Plan) {
        for (_, counters) in &mut self.ranges {
            counters.add(&self.segment);
        }
        let starts = |index: &usize| plan.ranges()[*index].offsets().start == self.segment_start;
        for index in (0..plan.ranges().len()).filter(starts) {
            self.ranges.push((index, self.segment.copy()));
        }
        // Counting goes on in the same array, which the processor has at hand.
        self.segment.clear();
        self.segment_start = self.offset;
    }

    fn take_range(&mut self, index: usize) -> Counters {
        let at = self.ranges.iter().position(|(range, _)| *range == index);
        self.ranges.swap_remove(at.expect("a range that ends here started before")).1
    }
}

/// What is readable of one substream: the sketches of its complete ranges.
#[derive(Debug)]
pub(crate) struct SealedSubstream {
    pub(crate) number: u64,
    pub(crate) mapping: Mapping,
    /// By index of the planned range.
    sketches: Vec<(usize, Arc<SealedSketch>)>,
}

impl SealedSubstream {
    pub(crate) fn new(number: u64, mapping: Mapping) -> Self {
        Self { number, mapping, sketches: Vec::new() }
    }

    /// The same with more sketches; once the substream is complete its prefixes are left out.
    pub(crate) fn with(&self, sealed: Vec<(usize, SealedSketch)>, plan: &Plan) -> Self {
        let new = sealed.into_iter().map(|(index, sketch)| (index, Arc::new(sketch)));
        let mut sketches: Vec<_> = self.sketches.iter().cloned().chain(new).collect();
        if sketches.iter().any(|(index, _)| plan.ranges()[*index].role() == Role::Whole) {
            sketches.retain(|(index, _)| plan.ranges()[*index].role() != Role::Prefix);
        }
        Self { number: self.number, mapping: self.mapping.clone(), sketches }
    }

    pub(crate) fn sketch(&self, index: usize) -> Option<&SealedSketch> {
        self.sketches.iter().find(|(range, _)| *range == index).map(|(_, sketch)| &**sketch)
    }

    /// The readable range that satisfies `fits` and is the longest by `len`.
    fn best<K: Ord>(
        &self,
        plan: &Plan,
        fits: impl Fn(&Range<u64>) -> bool,
        len: impl Fn(&Range<u64>) -> K,
    ) -> Option<usize> {
        let offsets = |index: usize| plan.ranges()[index].offsets();
        let readable = self.sketches.iter().map(|(index, _)| *index);
        readable.filter(|&index| fits(&offsets(index))).max_by_key(|&index| len(&offsets(index)))
    }

    /// The readable range that reaches the end of the substream and starts nearest before `offset`.
    pub(crate) fn from(&self, plan: &Plan, offset: u64) -> Option<usize> {
        let fits = |range: &Range<u64>| range.end == plan.substream_len() && range.start <= offset;
        self.best(plan, fits, |range| range.start)
    }

    /// The readable range that starts with the substream and ends nearest before `offset`.
    pub(crate) fn until(&self, plan: &Plan, offset: u64) -> Option<usize> {
        let fits = |range: &Range<u64>| range.start == 0 && range.end <= offset;
        self.best(plan, fits, |range| range.end)
    }
}
