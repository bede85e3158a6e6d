//! The list of found keys: what was released stays, up to a limit that the plan sets.

use std::cmp::Ordering;

use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::item::value::{Item, Kind};
use crate::plan::search::ListLimits;

/// The keys that were found and are kept, in the order of their keyed hashes, each once.
///
/// Where there is no room for all keys, those that count least in the newest window go. What a key counts there is a sum of sealed
/// counters that are released with the list: it is in no bytes, and is made again from those counters when a view is loaded. So
/// nothing can hide in it, and nothing that is no longer kept decides who stays. (PRIVACY.md: rule 38.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundKeys {
    keys: Keys,
    /// What the smallest counters of each key add up to in the newest window.
    sums: Vec<i64>,
}

/// A key of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundKey<'k> {
    pub(crate) hash: u64,
    pub(crate) item: Item<'k>,
    pub(crate) sum: i64,
}

impl FoundKey<'_> {
    /// What the list is sorted by.
    fn compare_with(&self, other: &Self) -> Ordering {
        (self.hash, self.item).cmp(&(other.hash, other.item))
    }

    fn bytes_len(&self) -> usize {
        if let Item::Bytes(bytes) = self.item { bytes.len() } else { 0 }
    }
}

/// The fingerprints of all keys, in their order.
pub(crate) fn fingerprint_keys(keys: &Keys, by: FingerprintKey) -> Vec<u64> {
    match keys {
        Keys::Range(end) => (0..*end).map(|value| by.hash_integer(value)).collect(),
        _ => keys.iter().map(|item| by.hash_item(item)).collect(),
    }
}

/// How many of the first keys there is room for. A key that is too long ends the list: shorter ones after it count less.
fn count_fitting(kept: &[FoundKey<'_>], limits: ListLimits) -> usize {
    let mut bytes = 0;
    for (count, key) in kept.iter().take(limits.keys).enumerate() {
        bytes += key.bytes_len();
        if limits.bytes < bytes {
            return count;
        }
    }
    kept.len().min(limits.keys)
}

impl Default for FoundKeys {
    fn default() -> Self {
        Self { keys: Keys::Range(0), sums: Vec::new() }
    }
}

impl FoundKeys {
    /// The list of these keys; those with the smallest sums are left out where they are too many or too long, of equal ones
    /// those with the largest hashes.
    pub(crate) fn new(kind: Kind, mut kept: Vec<FoundKey<'_>>, limits: ListLimits) -> Self {
        let bytes: usize = kept.iter().map(FoundKey::bytes_len).sum();
        if limits.keys < kept.len() || limits.bytes < bytes {
            // Equal sums go by keyed hash, so that no key stays for its name.
            kept.sort_unstable_by(|a, b| b.sum.cmp(&a.sum).then_with(|| a.compare_with(b)));
            kept.truncate(count_fitting(&kept, limits));
        }
        if kept.is_empty() {
            return Self::default();
        }
        // By keyed hash: the order of arrival must not be shown.
        kept.sort_unstable_by(FoundKey::compare_with);
        planted!(fault::listed(&mut kept));
        Self {
            keys: Keys::collect_kind(kind, kept.iter().map(|kept| kept.item)),
            sums: kept.iter().map(|kept| kept.sum).collect(),
        }
    }

    /// The same keys with other sums.
    pub(crate) fn with_sums(&self, sums: Vec<i64>) -> Self {
        debug_assert!(sums.len() == self.keys.len(), "one each");
        Self { keys: self.keys.clone(), sums }
    }

    /// The same when nothing sealed is left.
    pub(crate) fn without_substreams(&self) -> Self {
        self.with_sums(vec![0; self.sums.len()])
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn sums(&self) -> &[i64] {
        &self.sums
    }

    /// The keys with their sums, in order.
    pub(crate) fn iter_kept(&self, by: FingerprintKey) -> impl Iterator<Item = FoundKey<'_>> {
        self.keys.iter().zip(&self.sums).map(move |(item, &sum)| FoundKey {
            hash: by.hash_item(item),
            item,
            sum,
        })
    }

    /// Whether a key is listed.
    pub(crate) fn contains(&self, hash: u64, item: Item<'_>, by: FingerprintKey) -> bool {
        let (mut low, mut high) = (0, self.keys.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let known = self.keys.get(middle);
            match (by.hash_item(known), known).cmp(&(hash, item)) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return true,
                Ordering::Greater => high = middle,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: FingerprintKey = FingerprintKey::new(7);

    fn kept<'k>(keys: &[(&'k str, i64)]) -> Vec<FoundKey<'k>> {
        let kept = |&(key, sum): &(&'k str, i64)| {
            let item = Item::from(key);
            FoundKey { hash: BY.hash_item(item), item, sum }
        };
        keys.iter().map(kept).collect()
    }

    fn names(found: &FoundKeys) -> Vec<String> {
        let mut names: Vec<String> = found.keys().iter().map(|item| item.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_smallest_sums_go_where_there_is_no_room() {
        let all = [("a", 5), ("bb", -1), ("ccc", 9), ("dddd", 7)];
        for (keys, bytes, wanted) in [
            (4, 10, &["a", "bb", "ccc", "dddd"][..]),
            (3, 100, &["a", "ccc", "dddd"]),
            (9, 9, &["a", "ccc", "dddd"]),
            (9, 7, &["ccc", "dddd"]),
            (9, 6, &["ccc"]),
            (0, 100, &[]),
        ] {
            let found = FoundKeys::new(Kind::Bytes, kept(&all), ListLimits { keys, bytes });
            assert_eq!(names(&found), wanted, "{keys} keys, {bytes} bytes");
            let hashes: Vec<u64> = found.iter_kept(BY).map(|kept| kept.hash).collect();
            assert!(hashes.is_sorted());
        }
    }

    #[test]
    fn of_equal_sums_the_largest_hashes_go() {
        let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let all: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let limits = ListLimits { keys: 5, bytes: 100 };
        let found = FoundKeys::new(Kind::Bytes, kept(&all), limits);
        let mut hashes: Vec<u64> = kept(&all).iter().map(|kept| kept.hash).collect();
        hashes.sort_unstable();
        assert!(found.iter_kept(BY).map(|kept| kept.hash).eq(hashes[..5].iter().copied()));
    }

    #[test]
    fn a_list_knows_its_keys_and_no_others() {
        let names: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let (listed, others) = names.split_at(100);
        let all: Vec<(&str, i64)> = listed.iter().map(|name| (name.as_str(), 1)).collect();
        let found = FoundKeys::new(Kind::Bytes, kept(&all), ListLimits { keys: 1000, bytes: 1000 });
        let is_listed = |name: &String| found.contains(BY.hash_item(Item::from(name)), Item::from(name), BY);
        assert!(listed.iter().all(is_listed));
        assert!(!others.iter().any(is_listed));
    }
}
