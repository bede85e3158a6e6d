//! Exact counts by key, in a map that is made for speed. Secret, like counters.

use std::ops::Range;

use zeroize::Zeroize;

use crate::item::hash::FingerprintKey;
use crate::item::value::Item;
use crate::plan::limits::SEARCHED_LEN;
use crate::wipe;

/// A key, how often it came, and where it stands in its search.
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) count: u32,
    pub(super) standing: KeyState,
}

impl<K: Key> Zeroize for Entry<K> {
    fn zeroize(&mut self) {
        self.count.zeroize();
        self.standing.0.zeroize();
        self.key.wipe();
    }
}

/// The state of a key in its search: never looked at, looked at with the lasting noise that it got then, or released.
/// No `Debug`: it is noise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyState(u32);

impl KeyState {
    pub(crate) const NEW: Self = Self(u32::MAX);
    pub(crate) const OUT: Self = Self(u32::MAX - 1);
    /// More than any count, so that larger noise means the same.
    const LASTING_MAX: u32 = u32::MAX - 2;

    /// Looked at, with this noise.
    pub(crate) fn with_lasting(lasting: u32) -> Self {
        // Noise that looked like NEW would be drawn again, noise that looked like OUT would end the search for its key
        // (PRIVACY.md: rule 32).
        Self(lasting.min(Self::LASTING_MAX))
    }

    /// The noise that it got, if it was looked at and not released.
    pub(super) fn lasting_noise(self) -> Option<u32> {
        (self.0 <= Self::LASTING_MAX).then_some(self.0)
    }

    /// As it is saved.
    pub(super) fn to_word(self) -> u32 {
        self.0
    }

    /// As it was saved; every word is one.
    pub(super) fn from_word(word: u32) -> Self {
        Self(word)
    }
}

/// A byte string: its hash, and where it lies in the arena.
pub(super) struct Placed {
    hash: u64,
    start: u32,
    len: u32,
}

const _: () = assert!(size_of::<Entry<Placed>>() <= SEARCHED_LEN, "the plan counts on it");

/// A key of the map, as it is stored.
pub(super) trait Key: Sized {
    /// As it is looked up.
    type Borrowed<'a>: Copy;
    fn new(hash: u64, key: Self::Borrowed<'_>, arena: &mut Vec<u8>) -> Self;
    fn is_equal_to(&self, hash: u64, key: Self::Borrowed<'_>, arena: &[u8]) -> bool;
    fn hash_by(&self, by: FingerprintKey) -> u64;
    fn to_item<'a>(&self, arena: &'a [u8]) -> Item<'a>;
    /// Moves its bytes into a new arena.
    fn move_to(&mut self, old: &[u8], new: &mut Vec<u8>);
    fn wipe(&mut self);
}

impl Key for u64 {
    type Borrowed<'a> = u64;

    fn new(_: u64, key: u64, _: &mut Vec<u8>) -> Self {
        key
    }

    #[inline]
    fn is_equal_to(&self, _: u64, key: u64, _: &[u8]) -> bool {
        *self == key
    }

    fn hash_by(&self, by: FingerprintKey) -> u64 {
        by.hash_integer(*self)
    }

    fn to_item<'a>(&self, _: &'a [u8]) -> Item<'a> {
        Item::Integer(*self)
    }

    fn move_to(&mut self, _: &[u8], _: &mut Vec<u8>) {}

    fn wipe(&mut self) {
        self.zeroize();
    }
}

impl Placed {
    fn bytes_in<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.start as usize..][..self.len as usize]
    }
}

impl Key for Placed {
    type Borrowed<'a> = &'a [u8];

    fn new(hash: u64, key: &[u8], arena: &mut Vec<u8>) -> Self {
        let start = arena.len() as u32;
        // An arena that grew by itself would leave keys behind in freed memory.
        wipe::extend(arena, key);
        Self { hash, start, len: key.len() as u32 }
    }

    #[inline]
    fn is_equal_to(&self, hash: u64, key: &[u8], arena: &[u8]) -> bool {
        self.hash == hash && are_equal(self.bytes_in(arena), key)
    }

    fn hash_by(&self, _: FingerprintKey) -> u64 {
        self.hash
    }

    fn to_item<'a>(&self, arena: &'a [u8]) -> Item<'a> {
        Item::Bytes(self.bytes_in(arena))
    }

    fn move_to(&mut self, old: &[u8], new: &mut Vec<u8>) {
        *self = Self::new(self.hash, self.bytes_in(old), new);
    }

    fn wipe(&mut self) {
        self.hash.zeroize();
        self.start.zeroize();
        self.len.zeroize();
    }
}

/// Most keys are short: comparing them takes less time than a call that does.
#[inline]
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let ends = |key: &[u8]| Some([*key.first_chunk()?, *key.last_chunk()?].map(u64::from_ne_bytes));
    match one.len() {
        // The first and the last eight bytes cover such a key.
        8..=16 if one.len() == other.len() => ends(one) == ends(other),
        _ => one == other,
    }
}

/// No search sees more arrivals; saved ones with more are refused.
pub(super) const ARRIVALS_MAX: u64 = 1 << 62;
/// Keys that are counted at a time.
pub(super) const BLOCK: usize = 128;
/// The fewest slots of a map.
const SLOTS_MIN: usize = 64;

/// Counts by key: a list of entries, and a map of their places with open addressing, at most three quarters full.
pub(super) struct KeyTable<K> {
    pub(super) entries: Vec<Entry<K>>,
    /// The bytes of the keys.
    pub(super) arena: Vec<u8>,
    /// The last 32 bits of a hash, and a place plus one; 0 is free.
    slots: Vec<u64>,
    /// The hash of a key.
    pub(super) by: FingerprintKey,
}

impl<K: Key> KeyTable<K> {
    pub(super) fn new(by: FingerprintKey) -> Self {
        Self { entries: Vec::new(), arena: Vec::new(), slots: vec![0; SLOTS_MIN], by }
    }

    /// Counts at most a block of keys. Where they may be is looked up first, so that none waits for another.
    pub(super) fn count_block<'b>(
        &mut self,
        block: Range<usize>,
        at: impl Fn(usize) -> Option<(u64, K::Borrowed<'b>)>,
    ) {
        let mut places = [0; BLOCK];
        for (place, index) in places.iter_mut().zip(block.clone()) {
            *place = at(index).map_or(0, |(hash, _)| self.find_likely(hash));
        }
        for (place, index) in places.into_iter().zip(block) {
            let Some((hash, key)) = at(index) else { continue };
            let is_it = |entry: &&mut Entry<K>| entry.key.is_equal_to(hash, key, &self.arena);
            // A likely entry may hold another key, and this key may have come in earlier in the block: then it is looked up
            // again. 0, for no entry, wraps to a place that no list has.
            if let Some(entry) = self.entries.get_mut((place as usize).wrapping_sub(1)).filter(is_it) {
                entry.count = entry.count.saturating_add(1);
            } else if !self.count_known(hash, key) {
                self.insert_key(hash, key, 1, KeyState::NEW);
            }
        }
    }

    /// The place plus one of a key that is probably the one of this hash; 0 if there is none.
    #[inline]
    fn find_likely(&self, hash: u64) -> u32 {
        let mut slot = self.first_slot(hash);
        // Ends at a free slot: a quarter of them are.
        while self.slots[slot] != 0 && (self.slots[slot] >> 32) as u32 != hash as u32 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] as u32
    }

    /// Counts a known key; `false` for one that is not known.
    pub(super) fn count_known(&mut self, hash: u64, key: K::Borrowed<'_>) -> bool {
        let Some(place) = self.find_entry(hash, key) else { return false };
        let count = &mut self.entries[place as usize].count;
        *count = count.saturating_add(1);
        true
    }

    #[inline]
    pub(super) fn find_entry(&self, hash: u64, key: K::Borrowed<'_>) -> Option<u32> {
        let mut slot = self.first_slot(hash);
        loop {
            let held = self.slots[slot];
            let place = (held as u32).checked_sub(1)?;
            let is_it = || self.entries[place as usize].key.is_equal_to(hash, key, &self.arena);
            if (held >> 32) as u32 == hash as u32 && is_it() {
                return Some(place);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Where the search for a hash begins: by its first bits.
    #[inline]
    pub(super) fn first_slot(&self, hash: u64) -> usize {
        // Slots keep the lower bits of a hash, so the upper ones decide where they are.
        (hash >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    pub(super) fn insert_key(&mut self, hash: u64, key: K::Borrowed<'_>, count: u32, standing: KeyState) {
        if self.slots.len() * 3 <= self.entries.len() * 4 {
            self.map_again(self.slots.len() * 2);
        }
        let key = K::new(hash, key, &mut self.arena);
        wipe::push(&mut self.entries, Entry { key, count, standing });
        self.note_entry(hash, self.entries.len());
    }

    /// Notes an entry by its place plus one.
    pub(super) fn note_entry(&mut self, hash: u64, next: usize) {
        let mut slot = self.first_slot(hash);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = hash << 32 | next as u64;
    }

    pub(super) fn map_again(&mut self, slots: usize) {
        // They hold parts of the hashes of keys.
        self.slots.zeroize();
        wipe::reserve(&mut self.slots, slots);
        self.slots.resize(slots, 0);
        for place in 0..self.entries.len() {
            self.note_entry(self.entries[place].key.hash_by(self.by), place + 1);
        }
    }

    /// Puts back a key; `false` if it is there.
    pub(super) fn restore_key(
        &mut self,
        hash: u64,
        key: K::Borrowed<'_>,
        count: u32,
        standing: KeyState,
    ) -> bool {
        let is_new = self.find_entry(hash, key).is_none();
        if is_new {
            self.insert_key(hash, key, count, standing);
        }
        is_new
    }

    pub(super) fn clear(&mut self) {
        self.entries.zeroize();
        self.arena.zeroize();
        self.slots.fill(0);
    }

    /// Lowers all counts by one and forgets keys without a count.
    pub(super) fn lower_all(&mut self) {
        let before = self.entries.len();
        let mut left = 0;
        for place in 0..before {
            self.entries[place].count -= 1;
            if 0 < self.entries[place].count {
                self.entries.swap(left, place);
                left += 1;
            }
        }
        // Those that go are behind the others now: wiped before the list is cut.
        self.entries[left..].iter_mut().for_each(Zeroize::zeroize);
        self.entries.truncate(left);
        if left < before {
            // Places have changed, and keys that are forgotten must not stay in the arena.
            let mut kept = Vec::with_capacity(self.arena.len());
            self.entries.iter_mut().for_each(|entry| entry.key.move_to(&self.arena, &mut kept));
            std::mem::swap(&mut self.arena, &mut kept);
            kept.zeroize();
            self.map_again(self.slots.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::hash::StreamKey;

    fn counts<K: Key>(keys: &[(u64, K::Borrowed<'_>)]) -> KeyTable<K> {
        let mut counts = KeyTable::new(StreamKey::from_bytes([3; 32]).fingerprint_key());
        keys.iter().for_each(|&(hash, key)| counts.insert_key(hash, key, 1, KeyState::NEW));
        counts
    }

    #[test]
    fn keys_of_one_hash_are_told_apart() {
        let mut counts = counts::<Placed>(&[(7, b"a"), (7, b"b")]);
        assert_eq!([&b"a"[..], b"b", b"c"].map(|key| counts.find_entry(7, key)), [Some(0), Some(1), None]);
        assert_eq!([&b"a"[..], b"b", b"c"].map(|key| counts.count_known(7, key)), [true, true, false]);
        assert_eq!(counts.entries.iter().map(|entry| entry.count).collect::<Vec<_>>(), [2, 2]);
        let keys: [&[u8]; 5] = [b"b", b"c", b"a", b"c", b"b"];
        counts.count_block(0..5, |index| Some((7, keys[index])));
        assert_eq!(counts.entries.iter().map(|entry| entry.count).collect::<Vec<_>>(), [3, 4, 2]);
    }

    #[test]
    fn keys_are_equal_if_all_their_bytes_are() {
        for len in 0..40 {
            let key: Vec<u8> = (0..len).collect();
            assert!(are_equal(&key, &key.clone()));
            for place in 0..key.len() {
                let mut other = key.clone();
                other[place] ^= 1;
                assert!(!are_equal(&key, &other) && !are_equal(&key, &key[..place]), "{place} of {len}");
            }
        }
    }

    #[test]
    fn the_map_doubles_when_it_is_three_quarters_full() {
        for (keys, slots) in [(1, 64), (48, 64), (49, 128), (96, 128), (97, 256)] {
            let keys: Vec<(u64, u64)> = (0..keys).map(|key| (key << 40, key)).collect();
            assert_eq!(counts::<u64>(&keys).slots.len(), slots, "{} keys", keys.len());
        }
    }

    #[test]
    fn no_noise_makes_a_key_look_new_or_released() {
        for lasting in [0, 7, u32::MAX - 2, u32::MAX - 1, u32::MAX] {
            let standing = KeyState::with_lasting(lasting);
            assert!(standing != KeyState::NEW && standing != KeyState::OUT, "{lasting}");
            assert_eq!(standing.lasting_noise(), Some(lasting.min(u32::MAX - 2)));
        }
        assert_eq!([KeyState::NEW, KeyState::OUT].map(KeyState::lasting_noise), [None, None]);
    }

    #[test]
    fn a_wiped_key_is_gone() {
        let mut integer = 5_u64;
        Key::wipe(&mut integer);
        assert_eq!(integer, 0);
        let mut bytes = counts::<Placed>(&[(7, b"a")]).entries.remove(0).key;
        bytes.wipe();
        assert_eq!((bytes.hash, bytes.start, bytes.len), (0, 0, 0));
    }
}
