//! What estimates are made from.

use std::ops::Range;
use std::sync::Arc;

use crate::item::keys::Keys;
use crate::plan::structure::Plan;
use crate::sealed::pins::Pins;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::tuned::weights::Slice;

/// Everything that estimates are made from, whatever the window is.
#[derive(Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) substreams: &'a [Arc<SealedSubstream>],
    /// Where the stream began and how far it has come.
    pub(crate) stream: &'a Range<u64>,
    /// The keys that may be listed.
    pub(crate) keys: Option<&'a Keys>,
    /// Which keys are pinned.
    pub(crate) pins: &'a Pins,
    /// How many independent noises are in each counter.
    pub(crate) noises: f64,
}

impl<'a> Evidence<'a> {
    /// The counters of a slice.
    pub(crate) fn sketch_of(&self, slice: &Slice) -> &'a SealedSketch {
        self.substreams[slice.substream].sketch(slice.range).expect("slices are sealed")
    }

    /// The sealed slices of most keys.
    pub(crate) fn slices(&self) -> Vec<Slice> {
        Slice::all_sealed(self.substreams, self.plan, self.stream)
    }
}
