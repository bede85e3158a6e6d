//! Item → fingerprint → one column per row. This is part of the format: docs/design/architecture.md gives the formulas and the
//! vectors that the tests here hold.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zeroize::Zeroizing;

use crate::error::EntropyError;
use crate::item::value::Item;
use crate::noise::generator::Noise;

/// The multiplier of the fold of integers: 2⁶⁴ divided by the golden ratio.
const FOLD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The master key of a stream, from which all its hash keys come by a one-way function. Workers and sites that
/// share it count alike. It is in no view.
///
/// Privacy does not depend on it. Accuracy does, against people who choose items so that they collide.
pub struct StreamKey(Zeroizing<[u8; 32]>);

impl StreamKey {
    /// A key that the operator hands to several workers or sites.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn draw_from(noise: &mut Noise) -> Result<Self, EntropyError> {
        noise.draw_key().map(Self)
    }

    /// The key of fingerprints: the same for the whole stream, known to its views.
    pub(crate) fn fingerprint_key(&self) -> FingerprintKey {
        // Substreams have the numbers from 0 up, so these from the top down are never theirs.
        FingerprintKey(self.derive_words(u64::MAX, 1)[0])
    }

    /// One odd multiplier per row for the substream of this number.
    pub(crate) fn row_keys(&self, substream: u64, rows: usize) -> Vec<u64> {
        // Odd: an even multiplier would drop bits of the fingerprint.
        self.derive_words(substream, rows).iter().map(|word| word | 1).collect()
    }

    /// A word that is the same for two holders of the same key and tells nobody what the key is.
    pub(crate) fn check_word(&self) -> u64 {
        self.derive_words(u64::MAX - 1, 1)[0]
    }

    /// The key itself, for the secret state.
    pub(crate) fn expose_bytes(&self) -> &[u8; 32] {
        // Views must not have it: the encrypted state alone asks (PRIVACY.md: rule 25).
        &self.0
    }

    /// The first words of the ChaCha20 stream of this number.
    fn derive_words(&self, stream: u64, count: usize) -> Vec<u64> {
        let mut generator = ChaCha20Rng::from_seed(*self.0);
        generator.set_stream(stream);
        (0..count).map(|_| generator.next_u64()).collect()
    }
}

impl std::fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamKey")
    }
}

/// The key under which items become fingerprints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FingerprintKey(u64);

impl std::fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FingerprintKey")
    }
}

impl FingerprintKey {
    pub(crate) const fn new(word: u64) -> Self {
        Self(word)
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn hash_integer(self, value: u64) -> u64 {
        let product = u128::from(value ^ self.0) * u128::from(FOLD);
        product as u64 ^ (product >> 64) as u64
    }

    #[inline]
    pub(crate) fn hash_bytes(self, value: &[u8]) -> u64 {
        xxh3_64_with_seed(value, self.0)
    }

    pub(crate) fn hash_item(self, item: Item<'_>) -> u64 {
        match item {
            Item::Integer(value) => self.hash_integer(value),
            Item::Bytes(value) => self.hash_bytes(value),
        }
    }
}

/// The column of a fingerprint in the row with this key: the upper half of the product, scaled to the columns.
#[inline]
pub(crate) fn column_of(fingerprint: u64, row_key: u64, columns: u32) -> usize {
    let upper = fingerprint.wrapping_mul(row_key) >> 32;
    ((upper * u64::from(columns)) >> 32) as usize
}

/// The cell of a fingerprint in the row of this number and key, where rows lie one after the other.
#[inline]
pub(crate) fn cell_of(fingerprint: u64, (row, row_key): (usize, u64), columns: u32) -> usize {
    row * columns as usize + column_of(fingerprint, row_key, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> StreamKey {
        StreamKey::from_bytes(std::array::from_fn(|i| i as u8))
    }

    #[track_caller]
    fn check_vector(item: Item<'_>, fingerprint: u64, columns_of_0: [usize; 2], columns_of_7: [usize; 2]) {
        let got = key().fingerprint_key().hash_item(item);
        assert_eq!(got, fingerprint, "{item}: {got:016x}");
        for (substream, wanted) in [(0, columns_of_0), (7, columns_of_7)] {
            let keys = key().row_keys(substream, 2);
            assert_eq!([column_of(got, keys[0], 6666), column_of(got, keys[1], 6666)], wanted, "{item}");
        }
    }

    /// The vectors of docs/design/architecture.md, made with independent implementations of ChaCha20 and XXH3.
    #[test]
    fn the_hash_agrees_with_the_vectors_of_the_format() {
        assert_eq!(key().fingerprint_key(), FingerprintKey(0x5dce_289d_e5ee_85d5));
        assert_eq!(key().row_keys(0, 2), [0x6a19_c5d9_7d2b_fd39, 0x494a_dcb8_7703_bd8d]);
        assert_eq!(key().row_keys(7, 2), [0x32b8_dbe9_3f44_0f49, 0xf79a_f24f_1a75_0a57]);
        check_vector(Item::Integer(0), 0x8457_6f61_285e_0faf, [4126, 1300], [104, 5460]);
        check_vector(Item::Integer(5), 0x9f60_0e0e_d429_93c3, [165, 1961], [2780, 4357]);
        check_vector(Item::Integer(u64::MAX), 0xc024_6e6c_271d_0f4f, [5771, 2211], [5091, 964]);
        check_vector(Item::from(""), 0x4382_348e_b814_4884, [4053, 4057], [5046, 3370]);
        check_vector(Item::from("5"), 0xb18b_7973_ff2f_bd50, [472, 536], [2666, 153]);
        let long = "a much longer key of a stream, more than sixteen bytes";
        check_vector(Item::from(long), 0xe672_49f3_9ab7_e84b, [259, 1270], [5044, 110]);
    }

    #[test]
    fn columns_are_spread_evenly_and_pairs_collide_as_often_as_chance() {
        // Sequential integers are the hard case of a multiply-fold. Expected pairs in one column: n²/2b.
        let (n, columns) = (4000_u64, 1000_u32);
        let expected = (n * (n - 1)) as f64 / (2.0 * f64::from(columns));
        let mut ratios = Vec::new();
        for number in 0..200 {
            let fingerprint_key = FingerprintKey(key().derive_words(number, 8)[7]);
            let row_key = key().row_keys(number, 1)[0];
            let mut loads = vec![0_u64; columns as usize];
            for item in 0..n {
                loads[column_of(fingerprint_key.hash_integer(item), row_key, columns)] += 1;
            }
            let pairs: u64 = loads.iter().map(|load| load * (load.max(&1) - 1) / 2).sum();
            ratios.push(pairs as f64 / expected);
        }
        // Pairs in one column have variance about n²/2b for independent hashing, so one ratio deviates by 0.012 and the
        // mean of 200 by 0.0008; 0.02 leaves room for what multiply-shift does worse, not for a bias that matters.
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "mean {mean}");
        assert!(ratios.iter().all(|ratio| *ratio < 1.6), "{:?}", ratios.iter().copied().fold(0.0, f64::max));
    }
}
