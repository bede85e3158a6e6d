//! Which slot a tracked key has: asked for every item, so without a branch that depends on it.

/// Slots by fingerprint: each is in one of two places.
///
/// Two fingerprints that agree in 48 bits would share a slot; one of n keys does that with probability n/2⁴⁸.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The upper bits of a fingerprint, and its slot from 1 on; 0 if there is none. A power of two of them.
    places: Box<[u64]>,
}

/// Lower bits of a place, which are those of the slot.
const SLOT_BITS: u32 = 16;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
/// Places for each slot.
const ROOM: usize = 4;
/// A key that finds no place within so many moves of others needs a larger table.
const MOVES_MAX: usize = 500;

impl Slots {
    /// Slots below 2¹⁶ - 1.
    pub(crate) fn new(slots: &[(u64, u32)]) -> Self {
        let mut len = (ROOM * slots.len().max(1)).next_power_of_two();
        loop {
            let mut table = Self { places: vec![0; len].into_boxed_slice() };
            if slots.iter().all(|&(fingerprint, slot)| table.put(fingerprint, slot)) {
                return table;
            }
            len *= 2;
        }
    }

    /// Heap bytes of this many slots.
    pub(crate) fn bytes(slots: usize) -> usize {
        (ROOM * slots.max(1)).next_power_of_two() * size_of::<u64>()
    }

    #[inline]
    fn places_of(&self, fingerprint: u64) -> [usize; 2] {
        let mask = self.places.len() - 1;
        [(fingerprint >> SLOT_BITS) as usize & mask, (fingerprint >> 40) as usize & mask]
    }

    fn put(&mut self, fingerprint: u64, slot: u32) -> bool {
        let mut moved = (fingerprint & !SLOT_MASK) | (u64::from(slot) + 1);
        let mut place = self.places_of(moved)[0];
        for _ in 0..MOVES_MAX {
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
    pub(crate) fn find(&self, fingerprint: u64) -> usize {
        let of = |place: usize| {
            let known = self.places[place];
            let is_it = (known ^ fingerprint) >> SLOT_BITS == 0;
            known & SLOT_MASK & 0_u64.wrapping_sub(is_it.into())
        };
        let [one, other] = self.places_of(fingerprint).map(of);
        // At most one has it, or both have the same.
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
            let slots: Vec<(u64, u32)> = (0..len).map(|slot| (key.integer(slot.into()), slot)).collect();
            let table = Slots::new(&slots);
            assert!(slots.iter().all(|&(fingerprint, slot)| table.find(fingerprint) == slot as usize + 1));
            assert!((len..3 * len + 100).all(|other| table.find(key.integer(other.into())) == 0));
            assert!(table.places.len() * size_of::<u64>() <= 2 * Slots::bytes(slots.len()));
        }
    }
}
