//! What is decided when a substream is complete: which keys are tracked in the next one that no event can have reached, and how finely
//! keys are cut in the oldest open one. A function of the plan and of what is released, so that a neighbour, a restored stream and
//! whoever has the bytes decide the same.

use std::sync::Arc;

use crate::plan::structure::Plan;
use crate::sealed::leases::Leases;
use crate::sealed::nodes::Totals;
use crate::sealed::released::Released;
use crate::sealed::rungs::Rungs;
use crate::view::tracking::Standing;

/// What was decided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) leases: Arc<Leases>,
    pub(crate) rungs: Rungs,
}

/// Decides from nothing but the plan and the release.
pub(crate) fn decide(plan: &Plan, released: &Released) -> Decision {
    Decider::default().decide(plan, released)
}

/// Decides the same as [`decide`], and remembers what it has added up: sums over substreams that are still the newest ones.
#[derive(Debug, Default)]
pub(crate) struct Decider {
    /// Where some keys are tracked.
    standing: Standing,
    /// Where all keys have counters of their own.
    totals: Totals,
}

impl Decider {
    pub(crate) fn decide(&mut self, plan: &Plan, released: &Released) -> Decision {
        if plan.tracked() == 0 {
            let rungs = self.totals.next(plan, released.substreams());
            return Decision { leases: Arc::clone(released.leases()), rungs };
        }
        let (leases, rungs) = self.standing.next(plan, released);
        Decision { leases: Arc::new(leases), rungs }
    }
}
