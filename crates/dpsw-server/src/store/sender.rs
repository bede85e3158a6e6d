//! Which batches of a sender were taken, in a record that never grows.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::key::Key;

/// How many numbers before a sender's highest one are remembered one by one.
pub(crate) const NUMBERS_BEFORE: u64 = 1024;

const WORDS: usize = NUMBERS_BEFORE as usize / 64;
/// Above every number that a batch can have.
const CLOSED: u64 = u64::MAX;

/// The place of a sender, or of all senders of a token, among the records of a source: a keyed hash, because names stay out of
/// what can be read on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SenderKey(pub(crate) [u8; 16]);

/// The key of the hashes that stand for names on the disk.
pub(crate) struct SenderNames(Zeroizing<[u8; 32]>);

impl SenderNames {
    pub(crate) fn new(key: &Key) -> Self {
        let key = Sha256::new().chain_update(b"dpsw names").chain_update(key.expose()).finalize();
        Self(Zeroizing::new(key.into()))
    }

    /// What stands for these names on the disk. Nobody without the key can tell or find names from it. Half of the hash: the rest
    /// of its state stays unknown, so that no hash can be continued.
    pub(crate) fn hash(&self, parts: &[&str]) -> SenderKey {
        let mut hash = Sha256::new().chain_update(*self.0);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let hash: [u8; 32] = hash.finalize().into();
        let (half, _) = hash.split_first_chunk().expect("a hash has 32 bytes");
        SenderKey(*half)
    }
}

/// The state of a batch's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberState {
    New,
    Taken,
    /// Too far below the highest one: nobody knows whether it was taken, so it never counts.
    TooOld,
}

/// The highest number of a sender, which was taken, and which of the [`NUMBERS_BEFORE`] before it were.
///
/// The number `n` among those has the bit `n % NUMBERS_BEFORE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenNumbers {
    highest: u64,
    before: [u64; WORDS],
}

impl TakenNumbers {
    /// A sender that begins with this number. Those before it may still come.
    pub(crate) fn first(number: u64) -> Self {
        Self { highest: number, before: [0; WORDS] }
    }

    /// A sender of which every number is too old.
    pub(crate) fn closed() -> Self {
        Self::first(CLOSED)
    }

    pub(crate) fn state(&self, number: u64) -> NumberState {
        if self.highest < number {
            return NumberState::New;
        }
        let distance = self.highest - number;
        if NUMBERS_BEFORE < distance {
            return NumberState::TooOld;
        }
        let is_taken = distance == 0 || self.has(number);
        if is_taken { NumberState::Taken } else { NumberState::New }
    }

    /// Notes that a new number was taken.
    pub(crate) fn take(&mut self, number: u64) {
        if number < self.highest {
            self.set(number, true);
            return;
        }
        let former = self.highest;
        self.highest = number;
        if NUMBERS_BEFORE < number - former {
            self.before = [0; WORDS];
            return;
        }
        self.set(former, true);
        for skipped in former + 1..number {
            self.set(skipped, false);
        }
    }

    fn has(&self, number: u64) -> bool {
        let bit = number % NUMBERS_BEFORE;
        self.before[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    fn set(&mut self, number: u64, is_taken: bool) {
        let bit = number % NUMBERS_BEFORE;
        let word = &mut self.before[(bit / 64) as usize];
        *word = *word & !(1 << (bit % 64)) | u64::from(is_taken) << (bit % 64);
    }

    /// The highest number, then the words, all in 8 bytes with the lowest first.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [self.highest].iter().chain(&self.before).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// `None` if the bytes are none of [`to_bytes`](Self::to_bytes).
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (highest, before) = words.split_first()?;
        Some(Self { highest: *highest, before: before.try_into().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Against a set of everything that was ever taken, in steps of all sizes up and down.
    #[test]
    fn a_number_is_taken_once_and_never_once_it_is_too_old() {
        let mut random: u64 = 1;
        let mut below = |end: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % end
        };
        let (mut numbers, mut taken) = (TakenNumbers::first(5000), BTreeSet::from([5000_u64]));
        let mut too_old = 0;
        for _ in 0..20_000 {
            let highest = *taken.last().expect("the first");
            let reach = [3, 60, 1030, 5000][below(4) as usize];
            let number = (highest + below(reach)).saturating_sub(below(reach));
            let expected = match taken.contains(&number) {
                _ if number + NUMBERS_BEFORE < highest => NumberState::TooOld,
                true => NumberState::Taken,
                false => NumberState::New,
            };
            assert_eq!(numbers.state(number), expected, "{number} of {highest}");
            too_old += usize::from(expected == NumberState::TooOld);
            if expected == NumberState::New {
                numbers.take(number);
                taken.insert(number);
            }
            assert_eq!(TakenNumbers::from_bytes(&numbers.to_bytes()).as_ref(), Some(&numbers));
        }
        assert!(100 < too_old && 1000 < taken.len());
    }

    #[test]
    fn the_window_has_1024_numbers_before_the_highest() {
        let mut numbers = TakenNumbers::first(0);
        numbers.take(1024);
        assert_eq!([0, 1, 1023, 1024, 1025].map(|number| numbers.state(number)), {
            use NumberState::{New, Taken};
            [Taken, New, New, Taken, New]
        });
        numbers.take(1025);
        assert_eq!((numbers.state(0), numbers.state(1)), (NumberState::TooOld, NumberState::New));
    }

    #[test]
    fn every_number_of_a_closed_sender_is_too_old() {
        let closed = TakenNumbers::closed();
        assert!([0, 1, i64::MAX as u64].iter().all(|number| closed.state(*number) == NumberState::TooOld));
    }

    #[test]
    fn a_cut_record_is_none() {
        let bytes = TakenNumbers::first(7).to_bytes();
        assert!((0..bytes.len()).all(|len| TakenNumbers::from_bytes(&bytes[..len]).is_none()));
    }
}
