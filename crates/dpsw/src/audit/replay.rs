//! Tracked keys: who is tracked in a substream, and how finely those are cut, is decided when the clock says so, by what was
//! sealed before. Here it is decided again, from what views show.

use std::sync::Arc;

use crate::plan::structure::Plan;
use crate::sealed::leases::Leases;
use crate::sealed::released::Released;
use crate::sealed::rungs::Rungs;
use crate::sealed::substream::SealedSubstream;
use crate::view::decide::{Decision, decide};
use crate::view::window_view::WindowView;

/// The decisions of a stream, and what they follow from.
pub(super) struct Replay {
    leases: Leases,
    /// Of the oldest open substream.
    rungs: Rungs,
    /// The number of that one.
    number: u64,
    /// Complete ones that were kept when the last one was sealed.
    substreams: Vec<Arc<SealedSubstream>>,
}

impl Replay {
    /// Of a stream that begins with this substream: nothing is sealed.
    pub(super) fn new(plan: &Plan, number: u64) -> Self {
        let (leases, rungs) = (Leases::new(plan, number), Rungs::first(plan));
        Self { leases, rungs, number, substreams: Vec::new() }
    }

    /// Counts what a view shows otherwise: substreams with other rungs than were decided, and other keys that are tracked. All
    /// that was sealed since the last view must be in it, unless the clock passed over it.
    pub(super) fn look(&mut self, view: &WindowView) -> u64 {
        let (plan, released) = (view.plan(), &view.readable.released);
        let len = plan.substream_len();
        let mut wrong = 0;
        for substream in released.substreams() {
            if substream.number < self.number {
                continue;
            }
            self.jump_to(substream.number, plan);
            wrong += u64::from(**substream.rungs() != self.rungs);
            if (substream.number + 1) * len <= view.stream.end {
                self.seal(substream, plan);
            }
        }
        self.jump_to(view.stream.end / len, plan);
        let first = released.leases().horizon().range().start;
        wrong + u64::from(**released.leases() != self.leases.since(first, plan))
    }

    pub(super) fn rungs(&self) -> &Rungs {
        &self.rungs
    }

    /// If the clock jumped here, it passed over what was open before this substream.
    fn jump_to(&mut self, number: u64, plan: &Plan) {
        if self.number < number {
            *self = Self { leases: self.leases.since(number, plan), ..Self::new(plan, number) };
        }
    }

    /// The oldest open substream is complete. Nothing but what is kept decides: no earlier decision is carried on.
    fn seal(&mut self, substream: &Arc<SealedSubstream>, plan: &Plan) {
        let len = plan.substream_len();
        self.number += 1;
        self.substreams.push(Arc::clone(substream));
        let oldest = (self.number * len).saturating_sub(plan.retained_len());
        self.substreams.retain(|kept| oldest < (kept.number + 1) * len);
        let leases = Arc::new(self.leases.since(self.substreams[0].number, plan));
        let released = Released::new(self.substreams.clone(), substream.mapping.clone()).with_leases(leases);
        let Decision { leases, rungs } = decide(plan, &released);
        (self.leases, self.rungs) = (Leases::clone(&leases), rungs);
    }
}
