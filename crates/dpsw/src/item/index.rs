//! Which place a key has in a public list.

use std::hash::{BuildHasher, RandomState};

use crate::error::PlanError;
use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;

/// The places of keys in a public list, by fingerprint: open addressing at a load of at most one half.
///
/// Two keys with one fingerprint would share the first one's place; among n keys that has probability n²/2⁶⁵.
#[derive(Debug)]
pub(crate) struct Index {
    /// Fingerprint and place; `u32::MAX` marks an empty slot.
    slots: Box<[(u64, u32)]>,
    /// Odd, and known to nobody, so that nobody can choose keys that crowd in one place.
    factor: u64,
}

impl Index {
    pub(crate) fn new(keys: &Keys, key: FingerprintKey) -> Self {
        let mut index = Self::with_room(keys.len());
        (0..keys.len()).for_each(|place| {
            index.put_key(key.hash_item(keys.get(place)), place);
        });
        index
    }

    /// The places of the first key that is in the list twice.
    pub(crate) fn find_repeated(keys: &Keys) -> Option<(usize, usize)> {
        let key = FingerprintKey::new(RandomState::new().hash_one(1_u8));
        let fingerprints = (0..keys.len()).map(|place| key.hash_item(keys.get(place)));
        // Sorting is faster than an index, and nearly always enough.
        let mut sorted: Vec<u64> = fingerprints.clone().collect();
        sorted.sort_unstable();
        if sorted.windows(2).all(|pair| pair[0] != pair[1]) {
            return None;
        }
        let mut index = Self::with_room(keys.len());
        fingerprints.enumerate().find_map(|(second, fingerprint)| {
            let first = index.put_key(fingerprint, second)?;
            (keys.get(first) == keys.get(second)).then_some((first, second))
        })
    }

    fn with_room(keys: usize) -> Self {
        let slots = vec![(0, u32::MAX); Self::slots_for(keys)].into_boxed_slice();
        Self { slots, factor: RandomState::new().hash_one(0_u8) | 1 }
    }

    /// Gives a fingerprint its place, unless it has one already.
    fn put_key(&mut self, fingerprint: u64, place: usize) -> Option<usize> {
        let slot = self.find_slot(fingerprint);
        match self.slots[slot].1 {
            u32::MAX => {
                self.slots[slot] = (fingerprint, place as u32);
                None
            }
            before => Some(before as usize),
        }
    }

    /// The slot that holds the fingerprint, or the empty one that it would take.
    #[inline]
    fn find_slot(&self, fingerprint: u64) -> usize {
        let mask = self.slots.len() - 1;
        // The upper bits of a product with a random odd number are spread evenly whatever is multiplied.
        let mut slot = (fingerprint.wrapping_mul(self.factor) >> (mask as u64).leading_zeros()) as usize;
        while self.slots[slot].1 != u32::MAX && self.slots[slot].0 != fingerprint {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline]
    pub(crate) fn find_key(&self, fingerprint: u64) -> Option<usize> {
        match self.slots[self.find_slot(fingerprint)].1 {
            u32::MAX => None,
            place => Some(place as usize),
        }
    }

    fn slots_for(keys: usize) -> usize {
        // At least half of the slots are free, so a search ends soon.
        (2 * keys.max(1)).next_power_of_two()
    }

    /// Heap bytes of the index of this many keys.
    pub(crate) fn heap_bytes(keys: usize) -> usize {
        Self::slots_for(keys) * size_of::<(u64, u32)>()
    }
}

/// # Errors
/// A key is in the list twice.
pub(crate) fn check_distinct(keys: &Keys) -> Result<(), PlanError> {
    match keys {
        Keys::Range(_) => Ok(()),
        _ => match Index::find_repeated(keys) {
            None => Ok(()),
            Some((first, second)) => Err(PlanError::DuplicateKey { first, second }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_is_found() {
        for keys in [Keys::text(["a", "b", "c", "b"]), Keys::integers([9, 4, 0, 4])] {
            let error = check_distinct(&keys).expect_err("one twice");
            assert_eq!(error, PlanError::DuplicateKey { first: 1, second: 3 });
        }
        assert!(check_distinct(&Keys::text((0..100_000).map(|number| number.to_string()))).is_ok());
        assert!(check_distinct(&Keys::integers([3, 1, 2])).is_ok());
    }

    #[test]
    fn every_key_of_a_list_finds_its_place_and_others_find_none() {
        let keys = Keys::text((0..1000).map(|i| format!("key {i}")));
        let fingerprint_key = FingerprintKey::new(7);
        let index = Index::new(&keys, fingerprint_key);
        for place in 0..keys.len() {
            assert_eq!(index.find_key(fingerprint_key.hash_item(keys.get(place))), Some(place));
        }
        assert_eq!(index.find_key(fingerprint_key.hash_bytes(b"another")), None);
    }
}
