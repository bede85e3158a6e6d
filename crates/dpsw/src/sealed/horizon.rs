//! For which substreams it is decided who is pinned.

use std::ops::Range;

use crate::plan::structure::Plan;

/// The substreams for which it is decided which keys are pinned: from the oldest one that is kept to the last one that an event can
/// reach. Where no key is ever pinned, all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Horizon {
    start: u64,
    end: u64,
}

/// A substream inside a horizon: who is pinned there stands for good. Only a horizon makes one, and nothing is counted in a substream
/// without one, so no item can fall on counters that are still to be decided. (PRIVACY.md: rule 33.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided(u64);

impl Decided {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// Of streams in which no key is pinned.
impl Default for Horizon {
    fn default() -> Self {
        Self::EVERYTHING
    }
}

impl Horizon {
    /// No key is ever pinned, so nothing is left to decide.
    pub(crate) const EVERYTHING: Self = Self { start: 0, end: u64::MAX };

    /// Of a stream that begins with this substream: nobody is pinned in those that events can reach at once.
    pub(crate) fn starting_with(first: u64, plan: &Plan) -> Self {
        match plan.pinned() {
            0 => Self::EVERYTHING,
            _ => Self { start: first, end: first + plan.open_substreams_max() },
        }
    }

    /// One that was made before; `None` unless it is as long as one of this plan can be.
    pub(crate) fn from_range(range: &Range<u64>, plan: &Plan) -> Option<Self> {
        // A longer one would make room for pins that no stream of this plan can have.
        let most = plan.substreams_kept() + plan.open_substreams_max() + 1;
        let len = range.end.checked_sub(range.start)?;
        (len <= most).then_some(Self { start: range.start, end: range.end })
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// A substream, if it is decided.
    pub(crate) fn get(&self, number: u64) -> Option<Decided> {
        self.range().contains(&number).then_some(Decided(number))
    }

    /// The newest substream that is decided.
    pub(crate) fn last_decided(&self) -> u64 {
        self.end.saturating_sub(1)
    }

    /// Whether exactly those substreams are decided that events can reach while this one is the oldest open one.
    pub(crate) fn ends_for(&self, oldest_open: u64, plan: &Plan) -> bool {
        plan.pinned() == 0 || oldest_open.checked_add(plan.open_substreams_max()) == Some(self.end)
    }

    /// The oldest open substream once one more is decided.
    pub(crate) fn next_oldest_open(&self, plan: &Plan) -> u64 {
        (self.end + 1).saturating_sub(plan.open_substreams_max())
    }

    /// The same from this substream on. Where the clock has jumped beyond what was decided, nobody is pinned.
    pub(crate) fn kept_since(&self, first: u64, plan: &Plan) -> Self {
        match plan.pinned() {
            0 => self.clone(),
            _ => Self { start: first.max(self.start), end: self.end.max(first + plan.open_substreams_max()) },
        }
    }

    /// The same with one more substream.
    pub(crate) fn with_next(&self) -> Self {
        Self { start: self.start, end: self.end + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::settings::{Clock, CounterLayout, Settings, TunedMethod};

    /// Three substreams can be open, where keys are pinned and where none are.
    fn plan(pinned: u32) -> Plan {
        let counters = CounterLayout::Hashed { rows: 2, columns: 8 };
        let method = TunedMethod { substreams: 5, counters, pinned, ..TunedMethod::default() };
        let settings = Settings::last_ticks(100, 1000, 1.0).expect("in range").with_clock(Clock::Caller);
        let plan =
            Plan::new(settings.with_lateness(20).with_keys(0..50).with_method(method)).expect("a plan");
        assert_eq!(plan.open_substreams_max(), 3);
        plan
    }

    #[test]
    fn a_substream_is_decided_from_the_moment_on_at_which_events_can_reach_it() {
        let plan = plan(4);
        let horizon = Horizon::starting_with(7, &plan);
        let decided =
            |horizon: &Horizon| (0..30).filter(|&number| horizon.get(number).is_some()).collect::<Vec<_>>();
        assert_eq!(decided(&horizon), [7, 8, 9]);
        assert!(horizon.ends_for(7, &plan) && !horizon.ends_for(8, &plan) && !horizon.ends_for(6, &plan));
        assert_eq!((horizon.last_decided(), horizon.next_oldest_open(&plan)), (9, 8));
        let next = horizon.with_next();
        assert_eq!(decided(&next), [7, 8, 9, 10]);
        assert!(next.ends_for(8, &plan));
        assert_eq!(
            decided(&next.kept_since(9, &plan)),
            [9, 10, 11],
            "the clock jumped: nobody is pinned in the last one"
        );
        assert_eq!(decided(&next.kept_since(8, &plan)), [8, 9, 10]);
        assert_eq!(decided(&next.kept_since(20, &plan)), [20, 21, 22]);
        assert_eq!(horizon.get(8).map(Decided::number), Some(8));
    }

    #[test]
    fn where_no_key_is_pinned_everything_is_decided() {
        let plan = plan(0);
        let horizon = Horizon::starting_with(7, &plan).kept_since(9, &plan);
        assert_eq!(horizon, Horizon::EVERYTHING);
        assert!([0, 7, 1 << 60].iter().all(|&number| horizon.get(number).is_some()));
        assert!(horizon.ends_for(3, &plan));
    }
}
