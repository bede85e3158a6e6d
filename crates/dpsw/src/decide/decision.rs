//! What is decided when a substream is complete: which keys are pinned in the next one that no event can have reached, and how finely
//! keys are cut in the oldest open one. A function of the plan and of what is released, so that a neighbour, a restored stream and
//! whoever has the bytes decide the same.

use std::sync::Arc;

use crate::decide::levels::LevelChooser;
use crate::decide::pins::PinChooser;
use crate::plan::structure::Plan;
use crate::sealed::levels::Levels;
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;

/// The outcome of a decision: who is pinned, and how finely keys are cut.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) pins: Arc<Pins>,
    pub(crate) levels: Levels,
}

/// Decides from nothing but the plan and the release.
pub(crate) fn decide(plan: &Plan, released: &Released) -> Decision {
    Decider::default().decide(plan, released)
}

/// Decides the same as [`decide`], and remembers what it has added up: sums over substreams that are still the newest ones.
#[derive(Debug, Default)]
pub(crate) struct Decider {
    /// Where some keys are pinned.
    pins: PinChooser,
    /// Where all keys have counters of their own.
    levels: LevelChooser,
}

impl Decider {
    pub(crate) fn decide(&mut self, plan: &Plan, released: &Released) -> Decision {
        // PRIVACY.md: rule 33. Nothing but the plan and what is released comes in here.
        if plan.pinned() == 0 {
            let levels = self.levels.choose_levels(plan, released.substreams());
            return Decision { pins: Arc::clone(released.pins()), levels };
        }
        let (pins, levels) = self.pins.choose_pins(plan, released);
        Decision { pins: Arc::new(pins), levels }
    }
}
