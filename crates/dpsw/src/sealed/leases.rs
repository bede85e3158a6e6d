//! Tracked keys: which keys have counters of their own beside hashed ones. Each leases a slot for some substreams; which
//! keys do is a function of what was sealed before.

use std::collections::HashSet;
use std::ops::Range;

use crate::item::slots::Slots;
use crate::plan::limits::LEASE_LEN;
use crate::plan::structure::Plan;

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
    /// The substreams for which it is decided who has a lease.
    decided: Range<u64>,
    /// By fingerprint, then by start.
    leases: Vec<Lease>,
}

impl Leases {
    /// Where no key is tracked.
    pub(crate) fn none() -> &'static Self {
        static NONE: Leases = Leases { decided: 0..0, leases: Vec::new() };
        &NONE
    }

    /// Of a stream that begins with this substream: nobody is known to be frequent.
    pub(crate) fn new(plan: &Plan, first: u64) -> Self {
        Self { decided: first..first + plan.open_substreams_max(), leases: Vec::new() }
    }

    /// Leases that were made before; `None` unless each slot has at most one key in each substream.
    pub(crate) fn from_parts(
        plan: &Plan,
        decided: Range<u64>,
        leases: &[(u64, u32, Range<u64>)],
    ) -> Option<Self> {
        let most = plan.substreams_kept() + plan.open_substreams_max() + 1;
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
            && leases.len() <= plan.leases_max()
            && decided.end.checked_sub(decided.start)? <= most;
        is_right.then_some(Self { decided, leases })
    }

    /// The substreams for which it is decided who has a lease.
    pub(crate) fn decided(&self) -> Range<u64> {
        self.decided.clone()
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
    pub(crate) fn slots(&self, substream: u64) -> Slots {
        Slots::new(&self.at(substream).collect::<Vec<_>>())
    }

    fn range(&self, lease: &Lease) -> Range<u64> {
        let first = self.decided.start;
        first + u64::from(lease.start)..first + u64::from(lease.end)
    }

    /// The same from this substream on: those before it are not kept.
    pub(crate) fn since(&self, first: u64, plan: &Plan) -> Self {
        let gone = first.saturating_sub(self.decided.start);
        let decided = first.max(self.decided.start)..self.decided.end.max(first + plan.open_substreams_max());
        let Ok(gone) = u16::try_from(gone) else { return Self { decided, leases: Vec::new() } };
        let later = |lease: &Lease| Lease {
            start: lease.start.saturating_sub(gone),
            end: lease.end.saturating_sub(gone),
            ..*lease
        };
        let leases = self.leases.iter().map(later).filter(|lease| 0 < lease.end).collect();
        Self { decided, leases }
    }

    /// The same with one more substream: these keys, the most frequent first, have a slot there if there is room. A key that
    /// has one keeps it.
    pub(crate) fn next(mut self, frequent: &[u64], plan: &Plan) -> Self {
        let number = (self.decided.end - self.decided.start) as u16;
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
        self.decided.end += 1;
        self
    }
}

/// The one of a key's slots that it has in a substream.
pub(crate) fn slot_in(mut slots: impl Iterator<Item = (u32, Range<u64>)>, substream: u64) -> Option<u32> {
    slots.find(|(_, range)| range.contains(&substream)).map(|(slot, _)| slot)
}
