//! Pinned keys: which keys have counters of their own beside hashed ones. Each pins a slot for some substreams; which
//! keys do is a function of what was sealed before.

use std::collections::HashSet;
use std::ops::Range;

use crate::item::pins::PinIndex;
use crate::plan::limits::PIN_LEN;
use crate::plan::structure::Plan;
use crate::sealed::horizon::{Decided, Horizon};

/// A slot, and in which substreams a key has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) fingerprint: u64,
    pub(crate) slot: u32,
    /// Counted from the oldest substream that is kept.
    start: u16,
    end: u16,
}

impl Pin {
    /// Whether it stands before another: by key, and of one key without overlap.
    fn is_before(&self, next: &Self) -> bool {
        (self.fingerprint, self.end) <= (next.fingerprint, next.start)
            && (self.fingerprint, self.start) < (next.fingerprint, next.start)
    }
}

const _: () = assert!(size_of::<Pin>() as u64 == PIN_LEN, "the plan counts on it");

/// All pins that reach into what is kept or open.
///
/// A pinned key has counters of its own beside hashed ones: one slot, for a run of substreams. Pins are kept by key, not by
/// substream, as a frequent key keeps its slot for many substreams and questions ask for all slots of one key.
///
/// In each substream a slot has at most one key and a key at most one slot, so that an event moves the counters of its slot or
/// hashed ones, never both. Who is pinned follows from what was sealed before, and stands before the first event can reach
/// the substream: counting needs a [`Decided`] of the horizon (PRIVACY.md: rule 33). Pins are in the bytes of every view, so
/// that a restored stream decides nothing again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pins {
    horizon: Horizon,
    /// By fingerprint, then by start.
    pins: Vec<Pin>,
}

impl Pins {
    /// Where no key is pinned.
    pub(crate) fn none() -> &'static Self {
        static NONE: Pins = Pins { horizon: Horizon::EVERYTHING, pins: Vec::new() };
        &NONE
    }

    /// Of a stream that begins with this substream: nobody is known to be frequent.
    pub(crate) fn new(plan: &Plan, first: u64) -> Self {
        Self { horizon: Horizon::starting_with(first, plan), pins: Vec::new() }
    }

    /// Pins that were made before; `None` unless each slot has at most one key in each substream.
    pub(crate) fn from_parts(
        plan: &Plan,
        decided: Range<u64>,
        pins: &[(u64, u32, Range<u64>)],
    ) -> Option<Self> {
        let horizon = Horizon::from_range(&decided, plan)?;
        let mut checked = Vec::with_capacity(pins.len());
        for (fingerprint, slot, range) in pins {
            if range.is_empty() || decided.end < range.end || plan.pinned() <= *slot {
                return None;
            }
            let start = u16::try_from(range.start.checked_sub(decided.start)?).ok()?;
            let end = u16::try_from(range.end.checked_sub(decided.start)?).ok()?;
            checked.push(Pin { fingerprint: *fingerprint, slot: *slot, start, end });
        }
        let mut by_slot = checked.clone();
        by_slot.sort_unstable_by_key(|pin| (pin.slot, pin.start));
        // Bytes from elsewhere must not give a slot two keys, or a key two slots (PRIVACY.md: rule 33).
        let is_right = checked.is_sorted_by(Pin::is_before)
            && by_slot.is_sorted_by(|one, next| one.slot != next.slot || one.end <= next.start)
            && checked.len() <= plan.pins_max();
        is_right.then_some(Self { horizon, pins: checked })
    }

    /// The substreams for which it is decided who has a pin.
    pub(crate) fn horizon(&self) -> &Horizon {
        &self.horizon
    }

    /// The same substreams are decided, and nobody is pinned.
    pub(crate) fn of_nobody(&self) -> Self {
        Self { horizon: self.horizon.clone(), pins: Vec::new() }
    }

    /// Whether no key is or was pinned.
    pub(crate) fn is_empty(&self) -> bool {
        self.pins.is_empty()
    }

    /// Keys with their slots and substreams, by fingerprint.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u32, Range<u64>)> {
        self.pins.iter().map(|pin| (pin.fingerprint, pin.slot, self.range_of(pin)))
    }

    /// The slots of a key with their substreams, oldest first.
    pub(crate) fn slots_of(&self, fingerprint: u64) -> impl Iterator<Item = (u32, Range<u64>)> + Clone {
        let start = self.pins.partition_point(|pin| pin.fingerprint < fingerprint);
        let own = self.pins[start..].iter().take_while(move |pin| pin.fingerprint == fingerprint);
        own.map(|pin| (pin.slot, self.range_of(pin)))
    }

    /// The slot of a key in a substream.
    pub(crate) fn slot_at(&self, fingerprint: u64, substream: u64) -> Option<u32> {
        slot_in(self.slots_of(fingerprint), substream)
    }

    /// The keys that have a slot in a substream.
    pub(crate) fn keys_at(&self, substream: u64) -> impl Iterator<Item = (u64, u32)> {
        let pins = self.pins.iter().filter(move |pin| self.range_of(pin).contains(&substream));
        pins.map(|pin| (pin.fingerprint, pin.slot))
    }

    /// Their slots by fingerprint.
    pub(crate) fn index_slots(&self, substream: Decided) -> PinIndex {
        PinIndex::new(&self.keys_at(substream.number()).collect::<Vec<_>>())
    }

    fn range_of(&self, pin: &Pin) -> Range<u64> {
        let first = self.horizon.range().start;
        first + u64::from(pin.start)..first + u64::from(pin.end)
    }

    /// The same from this substream on: those before it are not kept.
    pub(crate) fn kept_since(&self, first: u64, plan: &Plan) -> Self {
        let gone = first.saturating_sub(self.horizon.range().start);
        let horizon = self.horizon.kept_since(first, plan);
        // Further than any pin reaches.
        let Ok(gone) = u16::try_from(gone) else { return Self { horizon, pins: Vec::new() } };
        let mut pins = self.pins.clone();
        for pin in &mut pins {
            pin.start = pin.start.saturating_sub(gone);
            pin.end = pin.end.saturating_sub(gone);
        }
        pins.retain(|pin| 0 < pin.end);
        Self { horizon, pins }
    }

    /// The same with one more substream: these keys, the most frequent first, have a slot there if there is room. A key that
    /// has one keeps it.
    pub(crate) fn with_next_substream(mut self, frequent: &[u64], plan: &Plan) -> Self {
        let Range { start, end } = self.horizon.range();
        let number = (end - start) as u16;
        let frequent = &frequent[..frequent.len().min(plan.pinned() as usize)];
        let chosen: HashSet<u64> = frequent.iter().copied().collect();
        let mut stays = HashSet::new();
        for pin in self.pins.iter_mut().filter(|pin| pin.end == number) {
            if chosen.contains(&pin.fingerprint) {
                pin.end += 1;
                stays.insert(pin.fingerprint);
            }
        }
        let mut is_taken = vec![false; plan.pinned() as usize];
        for pin in self.pins.iter().filter(|pin| number < pin.end) {
            is_taken[pin.slot as usize] = true;
        }
        let free = (0..plan.pinned()).filter(|&slot| !is_taken[slot as usize]);
        let new = frequent.iter().filter(|fingerprint| !stays.contains(fingerprint));
        // The plan counts the bytes of every pin: beyond that nobody is pinned, and hashed counters go on counting.
        let room = plan.pins_max().saturating_sub(self.pins.len());
        for (&fingerprint, slot) in new.zip(free).take(room) {
            self.pins.push(Pin { fingerprint, slot, start: number, end: number + 1 });
        }
        self.pins.sort_unstable_by_key(|pin| (pin.fingerprint, pin.start));
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
        let method = TunedMethod { substreams: 3, counters, pinned: 4, ..TunedMethod::default() };
        let settings = Settings::last_items(30, 1.0).expect("in range").with_keys(0..50);
        let plan = Plan::new(settings.with_method(method)).expect("a plan");
        assert_eq!((plan.pins_max(), plan.substreams_kept(), plan.open_substreams_max()), (5, 3, 1));
        plan
    }

    fn keys_at(pins: &Pins, substream: u64) -> Vec<(u64, u32)> {
        pins.keys_at(substream).collect()
    }

    /// As they are read back.
    fn read(pins: &Pins, plan: &Plan) -> Option<Pins> {
        Pins::from_parts(plan, pins.horizon().range(), &pins.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_key_keeps_its_slot_and_others_get_those_that_are_free() {
        let plan = plan();
        let pins = Pins::new(&plan, 7);
        assert_eq!((pins.horizon().range(), pins.is_empty()), (7..8, true));
        let pins = pins.with_next_substream(&[30, 10, 20], &plan);
        assert_eq!(keys_at(&pins, 8), [(10, 1), (20, 2), (30, 0)], "the most frequent ones first");
        let pins = pins.with_next_substream(&[40, 20, 10], &plan);
        assert_eq!(keys_at(&pins, 9), [(10, 1), (20, 2), (40, 0)], "30 has left its slot");
        assert_eq!(keys_at(&pins, 8), [(10, 1), (20, 2), (30, 0)], "what was decided stays");
        assert_eq!((keys_at(&pins, 7), keys_at(&pins, 10)), (vec![], vec![]));
        assert_eq!(pins.horizon().range(), 7..10);
        assert_eq!(pins.slots_of(10).collect::<Vec<_>>(), [(1, 8..10)]);
        assert_eq!([8, 9, 10].map(|number| pins.slot_at(40, number)), [None, Some(0), None]);
        let ninth = pins.horizon().get(9).expect("decided");
        let slots = |fingerprint| pins.index_slots(ninth).find_slot(fingerprint);
        assert_eq!((pins.slot_at(15, 8), slots(40), slots(30)), (None, 1, 0));
        let again = pins.clone().with_next_substream(&[30], &plan).with_next_substream(&[30], &plan);
        assert_eq!(
            again.slots_of(30).collect::<Vec<_>>(),
            [(0, 8..9), (0, 10..12)],
            "a slot of its own again"
        );
        assert_eq!(read(&again, &plan), Some(again));
    }

    #[test]
    fn there_are_no_more_pinned_keys_than_slots_and_no_more_pins_than_planned() {
        let plan = plan();
        let all: Vec<u64> = (1..=9).collect();
        let pins = Pins::new(&plan, 0).with_next_substream(&all, &plan);
        assert_eq!(keys_at(&pins, 1), [(1, 0), (2, 1), (3, 2), (4, 3)], "the most frequent four");
        let pins = pins.with_next_substream(&[9, 8, 7, 6], &plan);
        assert_eq!(keys_at(&pins, 2), [(9, 0)], "what left is remembered, and takes up room");
        assert_eq!(pins.iter().len(), plan.pins_max());
        let pins = pins.with_next_substream(&[8, 9], &plan);
        assert_eq!(keys_at(&pins, 3), [(9, 0)]);
        let pins = pins.kept_since(2, &plan).with_next_substream(&[8, 9], &plan);
        assert_eq!(keys_at(&pins, 4), [(8, 1), (9, 0)], "what is no longer kept makes room");
        assert_eq!(read(&pins, &plan), Some(pins));
    }

    #[test]
    fn pins_of_what_is_no_longer_kept_go_and_others_stay() {
        let plan = plan();
        let pins = Pins::new(&plan, 5)
            .with_next_substream(&[1, 2], &plan)
            .with_next_substream(&[2], &plan)
            .with_next_substream(&[2, 3], &plan);
        let later = pins.kept_since(7, &plan);
        assert_eq!(later.horizon().range(), 7..9);
        assert_eq!(later.iter().collect::<Vec<_>>(), [(2, 1, 7..9), (3, 0, 8..9)]);
        for number in 7..9 {
            assert_eq!(keys_at(&later, number), keys_at(&pins, number));
        }
        assert_eq!(pins.kept_since(5, &plan), pins);
        for jump in [9, 1000, 1 << 40] {
            let none = pins.kept_since(jump, &plan);
            assert_eq!(
                (none.horizon().range(), none.is_empty()),
                (jump..jump + 1, true),
                "nobody is pinned there"
            );
        }
    }

    #[test]
    fn pins_that_cannot_be_are_refused() {
        let plan = plan();
        let parts = |decided, pins: &[(u64, u32, Range<u64>)]| Pins::from_parts(&plan, decided, pins);
        let right = [(1, 0, 5..7), (1, 2, 7..9), (2, 0, 7..9), (3, 3, 5..9), (4, 1, 6..9)];
        assert!(parts(5..9, &right).is_some());
        let changed = |place: usize, pin: (u64, u32, Range<u64>)| {
            let mut pins = right.to_vec();
            pins[place] = pin;
            parts(5..9, &pins)
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
