//! Tracked keys: which keys have counters of their own beside hashed ones. Each leases a slot for some substreams; which
//! keys do is a function of what was sealed before.

use std::collections::HashSet;
use std::ops::Range;

use crate::item::slots::Slots;
use crate::plan::limits::LEASE_LEN;
use crate::plan::structure::Plan;
use crate::sealed::horizon::{Decided, Horizon};

/// A slot, and in which substreams a key has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) fingerprint: u64,
    pub(crate) slot: u32,
    /// Counted from the oldest substream that is kept.
    start: u16,
    end: u16,
}

const _: () = assert!(size_of::<Lease>() as u64 == LEASE_LEN, "the plan counts on it");

/// All leases that reach into what is kept or open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Leases {
    horizon: Horizon,
    /// By fingerprint, then by start.
    leases: Vec<Lease>,
}

impl Leases {
    /// Where no key is tracked.
    pub(crate) fn none() -> &'static Self {
        static NONE: Leases = Leases { horizon: Horizon::EVERYTHING, leases: Vec::new() };
        &NONE
    }

    /// Of a stream that begins with this substream: nobody is known to be frequent.
    pub(crate) fn new(plan: &Plan, first: u64) -> Self {
        Self { horizon: Horizon::beginning(first, plan), leases: Vec::new() }
    }

    /// Leases that were made before; `None` unless each slot has at most one key in each substream.
    pub(crate) fn from_parts(
        plan: &Plan,
        decided: Range<u64>,
        leases: &[(u64, u32, Range<u64>)],
    ) -> Option<Self> {
        let horizon = Horizon::from_range(&decided, plan)?;
        let offset = |number: u64| u16::try_from(number.checked_sub(decided.start)?).ok();
        let lease = |&(fingerprint, slot, ref range): &(u64, u32, Range<u64>)| {
            let is_right = range.start < range.end && range.end <= decided.end && slot < plan.tracked();
            let (start, end) = (offset(range.start)?, offset(range.end)?);
            is_right.then_some(Lease { fingerprint, slot, start, end })
        };
        let leases = leases.iter().map(lease).collect::<Option<Vec<_>>>()?;
        let follow = |one: &Lease, next: &Lease| {
            (one.fingerprint, one.end) <= (next.fingerprint, next.start)
                && (one.fingerprint, one.start) < (next.fingerprint, next.start)
        };
        let mut by_slot = leases.clone();
        by_slot.sort_unstable_by_key(|lease| (lease.slot, lease.start));
        let is_alone = |pair: &[Lease]| pair[0].slot != pair[1].slot || pair[0].end <= pair[1].start;
        let is_right = leases.is_sorted_by(follow)
            && by_slot.windows(2).all(is_alone)
            && leases.len() <= plan.leases_max();
        is_right.then_some(Self { horizon, leases })
    }

    /// The substreams for which it is decided who has a lease.
    pub(crate) fn horizon(&self) -> &Horizon {
        &self.horizon
    }

    /// The same substreams are decided, and nobody is tracked.
    pub(crate) fn of_nobody(&self) -> Self {
        Self { horizon: self.horizon.clone(), leases: Vec::new() }
    }

    /// Whether no key is or was tracked.
    pub(crate) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Keys with their slots and substreams, by fingerprint.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u32, Range<u64>)> {
        self.leases.iter().map(|lease| (lease.fingerprint, lease.slot, self.range(lease)))
    }

    /// The slots of a key with their substreams, oldest first.
    pub(crate) fn of(&self, fingerprint: u64) -> impl Iterator<Item = (u32, Range<u64>)> + Clone {
        let start = self.leases.partition_point(|lease| lease.fingerprint < fingerprint);
        let own = self.leases[start..].iter().take_while(move |lease| lease.fingerprint == fingerprint);
        own.map(|lease| (lease.slot, self.range(lease)))
    }

    /// The slot of a key in a substream.
    pub(crate) fn slot(&self, fingerprint: u64, substream: u64) -> Option<u32> {
        slot_in(self.of(fingerprint), substream)
    }

    /// The keys that have a slot in a substream.
    pub(crate) fn at(&self, substream: u64) -> impl Iterator<Item = (u64, u32)> {
        let is_in = move |lease: &&Lease| self.range(lease).contains(&substream);
        self.leases.iter().filter(is_in).map(|lease| (lease.fingerprint, lease.slot))
    }

    /// Their slots by fingerprint.
    pub(crate) fn slots(&self, substream: Decided) -> Slots {
        Slots::new(&self.at(substream.number()).collect::<Vec<_>>())
    }

    fn range(&self, lease: &Lease) -> Range<u64> {
        let first = self.horizon.range().start;
        first + u64::from(lease.start)..first + u64::from(lease.end)
    }

    /// The same from this substream on: those before it are not kept.
    pub(crate) fn since(&self, first: u64, plan: &Plan) -> Self {
        let (gone, horizon) =
            (first.saturating_sub(self.horizon.range().start), self.horizon.since(first, plan));
        let Ok(gone) = u16::try_from(gone) else { return Self { horizon, leases: Vec::new() } };
        let later = |lease: &Lease| Lease {
            start: lease.start.saturating_sub(gone),
            end: lease.end.saturating_sub(gone),
            ..*lease
        };
        let leases = self.leases.iter().map(later).filter(|lease| 0 < lease.end).collect();
        Self { horizon, leases }
    }

    /// The same with one more substream: these keys, the most frequent first, have a slot there if there is room. A key that
    /// has one keeps it.
    pub(crate) fn next(mut self, frequent: &[u64], plan: &Plan) -> Self {
        let Range { start, end } = self.horizon.range();
        let number = (end - start) as u16;
        let frequent = &frequent[..frequent.len().min(plan.tracked() as usize)];
        let chosen: HashSet<u64> = frequent.iter().copied().collect();
        let mut stays = HashSet::new();
        for lease in self.leases.iter_mut().filter(|lease| lease.end == number) {
            if chosen.contains(&lease.fingerprint) {
                lease.end += 1;
                stays.insert(lease.fingerprint);
            }
        }
        let mut is_taken = vec![false; plan.tracked() as usize];
        let held = self.leases.iter().filter(|lease| number < lease.end);
        held.for_each(|lease| is_taken[lease.slot as usize] = true);
        let free = (0..plan.tracked()).filter(|&slot| !is_taken[slot as usize]);
        let new = frequent.iter().filter(|fingerprint| !stays.contains(fingerprint));
        let room = plan.leases_max().saturating_sub(self.leases.len());
        let lease = |(&fingerprint, slot)| Lease { fingerprint, slot, start: number, end: number + 1 };
        self.leases.extend(new.zip(free).take(room).map(lease));
        self.leases.sort_unstable_by_key(|lease| (lease.fingerprint, lease.start));
        self.horizon = self.horizon.with_next();
        self
    }
}

/// The one of a key's slots that it has in a substream.
pub(crate) fn slot_in(mut slots: impl Iterator<Item = (u32, Range<u64>)>, substream: u64) -> Option<u32> {
    slots.find(|(_, range)| range.contains(&substream)).map(|(slot, _)| slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::settings::{CounterLayout, Settings, TunedMethod};

    /// Three substreams are kept, one is open; four slots and one key that left.
    fn plan() -> Plan {
        let counters = CounterLayout::Hashed { rows: 2, columns: 8 };
        let method = TunedMethod { substreams: 3, counters, tracked: 4, ..TunedMethod::default() };
        let settings = Settings::last_items(30, 1.0).expect("in range").with_keys(0..50);
        let plan = Plan::new(settings.with_method(method)).expect("a plan");
        assert_eq!((plan.leases_max(), plan.substreams_kept(), plan.open_substreams_max()), (5, 3, 1));
        plan
    }

    fn at(leases: &Leases, substream: u64) -> Vec<(u64, u32)> {
        leases.at(substream).collect()
    }

    /// As they are read back.
    fn read(leases: &Leases, plan: &Plan) -> Option<Leases> {
        Leases::from_parts(plan, leases.horizon().range(), &leases.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_key_keeps_its_slot_and_others_get_those_that_are_free() {
        let plan = plan();
        let leases = Leases::new(&plan, 7);
        assert_eq!((leases.horizon().range(), leases.is_empty()), (7..8, true));
        let leases = leases.next(&[30, 10, 20], &plan);
        assert_eq!(at(&leases, 8), [(10, 1), (20, 2), (30, 0)], "the most frequent ones first");
        let leases = leases.next(&[40, 20, 10], &plan);
        assert_eq!(at(&leases, 9), [(10, 1), (20, 2), (40, 0)], "30 has left its slot");
        assert_eq!(at(&leases, 8), [(10, 1), (20, 2), (30, 0)], "what was decided stays");
        assert_eq!((at(&leases, 7), at(&leases, 10)), (vec![], vec![]));
        assert_eq!(leases.horizon().range(), 7..10);
        assert_eq!(leases.of(10).collect::<Vec<_>>(), [(1, 8..10)]);
        assert_eq!([8, 9, 10].map(|number| leases.slot(40, number)), [None, Some(0), None]);
        let ninth = leases.horizon().get(9).expect("decided");
        let slots = |fingerprint| leases.slots(ninth).find(fingerprint);
        assert_eq!((leases.slot(15, 8), slots(40), slots(30)), (None, 1, 0));
        let again = leases.clone().next(&[30], &plan).next(&[30], &plan);
        assert_eq!(again.of(30).collect::<Vec<_>>(), [(0, 8..9), (0, 10..12)], "a slot of its own again");
        assert_eq!(read(&again, &plan), Some(again));
    }

    #[test]
    fn there_are_no_more_tracked_keys_than_slots_and_no_more_leases_than_planned() {
        let plan = plan();
        let all: Vec<u64> = (1..=9).collect();
        let leases = Leases::new(&plan, 0).next(&all, &plan);
        assert_eq!(at(&leases, 1), [(1, 0), (2, 1), (3, 2), (4, 3)], "the most frequent four");
        let leases = leases.next(&[9, 8, 7, 6], &plan);
        assert_eq!(at(&leases, 2), [(9, 0)], "what left is remembered, and takes up room");
        assert_eq!(leases.iter().len(), plan.leases_max());
        let leases = leases.next(&[8, 9], &plan);
        assert_eq!(at(&leases, 3), [(9, 0)]);
        let leases = leases.since(2, &plan).next(&[8, 9], &plan);
        assert_eq!(at(&leases, 4), [(8, 1), (9, 0)], "what is no longer kept makes room");
        assert_eq!(read(&leases, &plan), Some(leases));
    }

    #[test]
    fn leases_of_what_is_no_longer_kept_go_and_others_stay() {
        let plan = plan();
        let leases = Leases::new(&plan, 5).next(&[1, 2], &plan).next(&[2], &plan).next(&[2, 3], &plan);
        let later = leases.since(7, &plan);
        assert_eq!(later.horizon().range(), 7..9);
        assert_eq!(later.iter().collect::<Vec<_>>(), [(2, 1, 7..9), (3, 0, 8..9)]);
        for number in 7..9 {
            assert_eq!(at(&later, number), at(&leases, number));
        }
        assert_eq!(leases.since(5, &plan), leases);
        for jump in [9, 1000, 1 << 40] {
            let none = leases.since(jump, &plan);
            assert_eq!(
                (none.horizon().range(), none.is_empty()),
                (jump..jump + 1, true),
                "nobody is tracked there"
            );
        }
    }

    #[test]
    fn leases_that_cannot_be_are_refused() {
        let plan = plan();
        let parts = |decided, leases: &[(u64, u32, Range<u64>)]| Leases::from_parts(&plan, decided, leases);
        let right = [(1, 0, 5..7), (1, 2, 7..9), (2, 0, 7..9), (3, 3, 5..9), (4, 1, 6..9)];
        assert!(parts(5..9, &right).is_some());
        let changed = |place: usize, lease: (u64, u32, Range<u64>)| {
            let mut leases = right.to_vec();
            leases[place] = lease;
            parts(5..9, &leases)
        };
        assert_eq!(changed(1, (1, 2, 6..9)), None, "two slots of one key");
        assert_eq!(changed(2, (2, 0, 6..9)), None, "two keys on one slot");
        assert_eq!(changed(3, (3, 4, 5..9)), None, "no slot of the plan");
        assert_eq!(changed(4, (4, 1, 6..10)), None, "not decided yet");
        assert_eq!(changed(4, (4, 1, 4..9)), None, "no longer kept");
        assert_eq!(changed(4, (4, 1, 6..6)), None, "nowhere");
        assert_eq!(changed(4, (2, 1, 9..9)), None);
        assert_eq!(changed(0, (9, 0, 5..7)), None, "out of order");
        assert_eq!(parts(5..9, &[(3, 3, 5..9), (1, 0, 5..7)]), None, "out of order");
        let many: Vec<_> = (0..6).map(|key| (key, key as u32 % 3, 5 + key / 3..6 + key / 3)).collect();
        assert_eq!(parts(5..9, &many), None, "too many");
        assert!(parts(5..9, &many[..5]).is_some());
        assert!(parts(5..10, &[]).is_some() && parts(5..11, &[]).is_none(), "more than is kept");
        #[expect(clippy::reversed_empty_ranges, reason = "damaged bytes may say so")]
        let reversed = 9..5;
        assert_eq!(parts(reversed, &[]), None);
    }
}
