//! Pinned keys: who is pinned in a substream, and how finely those are cut, is decided when the clock says so, by what was
//! sealed before. Here it is decided again, from what views show.

use std::sync::Arc;

use crate::decide::decision::{Decision, decide};
use crate::plan::structure::Plan;
use crate::sealed::levels::Levels;
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;
use crate::sealed::substream::SealedSubstream;
use crate::view::window_view::WindowView;

/// The decisions of a stream, and what they follow from.
pub(super) struct Replay {
    pins: Pins,
    /// Of the oldest open substream.
    levels: Levels,
    /// The number of that one.
    number: u64,
    /// Complete ones that were kept when the last one was sealed.
    substreams: Vec<Arc<SealedSubstream>>,
}

impl Replay {
    /// Of a stream that begins with this substream: nothing is sealed.
    pub(super) fn new(plan: &Plan, number: u64) -> Self {
        let (pins, levels) = (Pins::new(plan, number), Levels::first(plan));
        Self { pins, levels, number, substreams: Vec::new() }
    }

    /// Counts what a view shows otherwise: substreams with other levels than were decided, and other keys that are pinned. All
    /// that was sealed since the last view must be in it, unless the clock passed over it.
    pub(super) fn check_view(&mut self, view: &WindowView) -> u64 {
        let (plan, released) = (view.plan(), &view.cached.released);
        let len = plan.substream_len();
        let mut wrong = 0;
        for substream in released.substreams() {
            if substream.number < self.number {
                continue;
            }
            self.jump_to(substream.number, plan);
            // These levels follow from what was sealed earlier; this substream has not been used yet (PRIVACY.md: rule 33).
            wrong += u64::from(**substream.levels() != self.levels);
            if (substream.number + 1) * len <= view.stream.end {
                self.complete_substream(substream, plan);
            }
        }
        self.jump_to(view.stream.end / len, plan);
        let first = released.pins().horizon().range().start;
        wrong + u64::from(**released.pins() != self.pins.kept_since(first, plan))
    }

    pub(super) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// If the clock jumped here, it passed over what was open before this substream.
    fn jump_to(&mut self, number: u64, plan: &Plan) {
        if self.number < number {
            *self = Self { pins: self.pins.kept_since(number, plan), ..Self::new(plan, number) };
        }
    }

    /// The oldest open substream is complete. Nothing but what is kept decides: no earlier decision is carried on.
    fn complete_substream(&mut self, substream: &Arc<SealedSubstream>, plan: &Plan) {
        let len = plan.substream_len();
        self.number += 1;
        self.substreams.push(Arc::clone(substream));
        let oldest = (self.number * len).saturating_sub(plan.retained_len());
        // The stream no longer keeps older substreams, so they must not decide here either.
        self.substreams.retain(|kept| oldest < (kept.number + 1) * len);
        let pins = Arc::new(self.pins.kept_since(self.substreams[0].number, plan));
        let released = Released::new(self.substreams.clone(), substream.mapping.clone()).with_pins(pins);
        let Decision { pins, levels } = decide(plan, &released);
        (self.pins, self.levels) = (Pins::clone(&pins), levels);
    }
}
