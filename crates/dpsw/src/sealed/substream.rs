//! What is readable of one substream.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::item::mapping::Mapping;
use crate::plan::checkpoint::Role;
use crate::plan::structure::Plan;
use crate::sealed::sketch::SealedSketch;

/// What is readable of one substream: the sketches of its complete ranges.
#[derive(Debug)]
pub(crate) struct SealedSubstream {
    pub(crate) number: u64,
    pub(crate) mapping: Mapping,
    /// Events that count nowhere because of the caps of users, where those are: which ones depends on arrivals alone.
    capped: Option<u64>,
    /// By index of the planned range.
    sketches: Vec<(usize, Arc<SealedSketch>)>,
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
        Self { number, mapping, capped: None, sketches, absent: OnceLock::new() }
    }

    /// The same with so many events that count nowhere.
    pub(crate) fn with_capped(self, capped: Option<u64>) -> Self {
        Self { capped, ..self }
    }

    pub(crate) fn capped(&self) -> Option<u64> {
        self.capped
    }

    /// The same with more sketches; once the substream is complete its prefixes are left out.
    pub(crate) fn with(&self, sealed: Vec<(usize, SealedSketch)>, plan: &Plan) -> Self {
        let new = sealed.into_iter().map(|(index, sketch)| (index, Arc::new(sketch)));
        let mut sketches: Vec<_> = self.sketches.iter().cloned().chain(new).collect();
        if sketches.iter().any(|(index, _)| plan.ranges()[*index].role() == Role::Whole) {
            sketches.retain(|(index, _)| plan.ranges()[*index].role() != Role::Prefix);
        }
        Self::from_parts(self.number, self.mapping.clone(), sketches).with_capped(self.capped)
    }

    pub(crate) fn sketch(&self, index: usize) -> Option<&SealedSketch> {
        self.sketches.iter().find(|(range, _)| *range == index).map(|(_, sketch)| &**sketch)
    }

    pub(crate) fn sketches(&self) -> &[(usize, Arc<SealedSketch>)] {
        &self.sketches
    }

    /// The readable range that satisfies `fits` and is the best by `rank`.
    fn best(
        &self,
        plan: &Plan,
        fits: impl Fn(&Range<u64>) -> bool,
        rank: impl Fn(&Range<u64>) -> u64,
    ) -> Option<usize> {
        let offsets = |index: usize| plan.ranges()[index].offsets();
        let readable = self.sketches.iter().map(|(index, _)| *index);
        readable.filter(|&index| fits(&offsets(index))).max_by_key(|&index| rank(&offsets(index)))
    }

    /// The readable range that reaches the end of the substream and starts nearest before `offset`.
    pub(crate) fn from(&self, plan: &Plan, offset: u64) -> Option<usize> {
        let fits = |range: &Range<u64>| range.end == plan.substream_len() && range.start <= offset;
        self.best(plan, fits, |range| range.start)
    }

    /// The readable range that starts with the substream and ends nearest before `offset`, in a stream that reaches no
    /// further than `reach`.
    pub(crate) fn until(&self, plan: &Plan, offset: u64, reach: u64) -> Option<usize> {
        let fits = |range: &Range<u64>| range.start == 0 && range.end.min(reach) <= offset;
        self.best(plan, fits, |range| range.end)
    }
}
