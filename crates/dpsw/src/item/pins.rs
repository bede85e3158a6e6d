//! Which slot a pinned key has: asked for every item, so without a branch that depends on it.

use std::hash::{BuildHasher, RandomState};

/// Slots by fingerprint: each is in one of two places.
///
/// Two of n fingerprints share a slot with probability n²/2⁴⁹: where 48 bits of what they are mixed to agree.
#[derive(Debug)]
pub(crate) struct PinIndex {
    /// The upper bits of a mixed fingerprint, and its slot from 1 on; 0 if there is none. A power of two of them.
    places: Box<[u64]>,
    /// Known to nobody, so that nobody can choose keys that crowd in one place.
    seed: u64,
    factor: u64,
}

/// Lower bits of a place, which are those of the slot.
const SLOT_BITS: u32 = 16;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
/// Places for each slot.
const ROOM: usize = 4;
/// A key that finds no place within so many moves of others needs another table.
const MOVES_MAX: usize = 500;

impl PinIndex {
    /// Slots below 2¹⁶ - 1.
    pub(crate) fn new(slots: &[(u64, u32)]) -> Self {
        let mut len = (ROOM * slots.len().max(1)).next_power_of_two();
        loop {
            // Every table gives a key the same slot, so nothing that is shown depends on these.
            let [seed, factor] = [0_u8, 1].map(|number| RandomState::new().hash_one(number));
            let mut table = Self { places: vec![0; len].into_boxed_slice(), seed, factor: factor | 1 };
            if slots.iter().all(|&(fingerprint, slot)| table.put_slot(fingerprint, slot)) {
                return table;
            }
            // Another seed may be enough; twice the room ends it in any case.
            len *= 2;
        }
    }

    /// Heap bytes of this many slots.
    pub(crate) fn heap_bytes(slots: usize) -> usize {
        (ROOM * slots.max(1)).next_power_of_two() * size_of::<u64>()
    }

    #[inline]
    fn mix_fingerprint(&self, fingerprint: u64) -> u64 {
        (fingerprint ^ self.seed).wrapping_mul(self.factor)
    }

    #[inline]
    fn places_of(&self, mixed: u64) -> [usize; 2] {
        let mask = self.places.len() - 1;
        [(mixed >> SLOT_BITS) as usize & mask, (mixed >> 40) as usize & mask]
    }

    /// Gives a fingerprint its slot, unless it has one. False if there is no place.
    fn put_slot(&mut self, fingerprint: u64, slot: u32) -> bool {
        if self.find_slot(fingerprint) != 0 {
            return true;
        }
        let mut moved = (self.mix_fingerprint(fingerprint) & !SLOT_MASK) | (u64::from(slot) + 1);
        let mut place = self.places_of(moved)[0];
        for _ in 0..MOVES_MAX {
            // Whoever is there moves on to its other place.
            std::mem::swap(&mut self.places[place], &mut moved);
            if moved == 0 {
                return true;
            }
            let [one, other] = self.places_of(moved);
            place = if place == one { other } else { one };
        }
        false
    }

    /// The slot from 1 on; 0 if there is none.
    #[inline]
    pub(crate) fn find_slot(&self, fingerprint: u64) -> usize {
        let mixed = self.mix_fingerprint(fingerprint);
        let of = |place: usize| {
            let known = self.places[place];
            let is_it = (known ^ mixed) >> SLOT_BITS == 0;
            // All ones if it is the key, else zero: a mask instead of a branch.
            known & SLOT_MASK & 0_u64.wrapping_sub(is_it.into())
        };
        let [one, other] = self.places_of(mixed).map(of);
        // At most one has it, or both are the same.
        (one | other) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::hash::FingerprintKey;

    #[test]
    fn every_key_finds_its_slot_and_others_find_none() {
        let key = FingerprintKey::new(7);
        for len in [0, 1, 2, 3, 100, 1000, 5000] {
            let slots: Vec<(u64, u32)> = (0..len).map(|slot| (key.hash_integer(slot.into()), slot)).collect();
            let table = PinIndex::new(&slots);
            assert!(
                slots.iter().all(|&(fingerprint, slot)| table.find_slot(fingerprint) == slot as usize + 1)
            );
            assert!((len..3 * len + 100).all(|other| table.find_slot(key.hash_integer(other.into())) == 0));
            assert!(table.places.len() * size_of::<u64>() <= 2 * PinIndex::heap_bytes(slots.len()));
        }
    }

    /// As in damaged bytes, or made by somebody who knows how fingerprints are made.
    #[test]
    fn fingerprints_that_are_alike_or_the_same_find_a_slot() {
        for step in [1, 1 << 16, 1 << 40, 1 << 60] {
            let slots: Vec<(u64, u32)> = (0..16_u32).map(|slot| (u64::from(slot) * step, slot)).collect();
            let table = PinIndex::new(&[&slots[..], &[(0, 15), (0, 14)]].concat());
            assert!(
                slots.iter().all(|&(fingerprint, slot)| table.find_slot(fingerprint) == slot as usize + 1)
            );
        }
    }
}
