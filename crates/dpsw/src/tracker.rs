//! The keys of an epoch: counted in secret while it runs, and released once, those whose noisy counts pass the threshold.

use hashbrown::HashTable;
use zeroize::Zeroize;

use crate::codec::{Reader, Writer};
use crate::error::SnapshotError;
use crate::fault::{self, Fault};
use crate::hash::FingerprintKey;
use crate::item::{Item, Keys, Kind};
use crate::noise::Generator;
use crate::plan::{PlannedDiscovery, TRACKED_LEN};

/// A key and how often it came.
struct Entry {
    hash: u64,
    key: Key,
    count: u32,
}

/// A key of its own.
enum Key {
    Integer(u64),
    Bytes(Box<[u8]>),
}

const _: () = assert!(size_of::<Entry>() <= TRACKED_LEN, "the plan counts on it");

impl Key {
    fn of(item: Item<'_>) -> Self {
        match item {
            Item::Integer(value) => Self::Integer(value),
            Item::Bytes(bytes) => Self::Bytes(bytes.into()),
        }
    }

    fn item(&self) -> Item<'_> {
        match self {
            Self::Integer(value) => Item::Integer(*value),
            Self::Bytes(bytes) => Item::Bytes(bytes),
        }
    }
}

/// The keys of a running epoch. Secret, like counters: no `Clone`, a `Debug` that shows nothing, wiped when dropped.
pub(crate) struct Tracker {
    entries: HashTable<Entry>,
    /// The most entries; a summary that is full lowers all counts instead.
    limit: Option<usize>,
    /// Items of the epoch so far, null items included.
    arrivals: u64,
    /// How often a full summary lowered all counts.
    lowered: u64,
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tracker")
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        for entry in &mut self.entries {
            entry.count.zeroize();
            match &mut entry.key {
                Key::Integer(value) => value.zeroize(),
                Key::Bytes(bytes) => bytes.zeroize(),
            }
        }
    }
}

impl Tracker {
    pub(crate) fn new(plan: &PlannedDiscovery) -> Self {
        Self { entries: HashTable::new(), limit: plan.limit(), arrivals: 0, lowered: 0 }
    }

    /// How many of the next items still count: the epoch's length is a constant of the plan.
    pub(crate) fn room(&self, plan: &PlannedDiscovery) -> usize {
        usize::try_from(plan.items_max().saturating_sub(self.arrivals)).unwrap_or(usize::MAX)
    }

    /// So many items arrived, whether they count or not.
    pub(crate) fn arrive(&mut self, items: usize) {
        self.arrivals += items as u64;
    }

    /// Counts an item by the hash of its key.
    #[inline]
    pub(crate) fn count(&mut self, hash: u64, item: Item<'_>) {
        let is_it = |entry: &Entry| entry.hash == hash && entry.key.item() == item;
        if let Some(entry) = self.entries.find_mut(hash, is_it) {
            entry.count = entry.count.saturating_add(1);
        } else {
            self.insert(hash, item);
        }
    }

    #[inline(never)]
    fn insert(&mut self, hash: u64, item: Item<'_>) {
        if fault::is(Fault::FirstKeysCap) && self.entries.len() == fault::FEW_KEYS {
            return;
        }
        if self.limit.is_some_and(|limit| limit <= self.entries.len()) {
            return self.lower();
        }
        let entry = Entry { hash, key: Key::of(item), count: 1 };
        self.entries.insert_unique(hash, entry, |entry| entry.hash);
    }

    /// Lowers all counts by one. The item that had no room is not stored.
    fn lower(&mut self) {
        self.lowered += 1;
        self.entries.retain(|entry| {
            entry.count -= 1;
            0 < entry.count
        });
    }

    /// What a key counts for: exactly, or the reduced count of a summary, which one event moves by at most one.
    fn value(&self, entry: &Entry, plan: &PlannedDiscovery) -> u32 {
        let Some(limit) = self.limit else { return self.exact_value(entry, plan) };
        let items = if fault::is(Fault::SummaryOfKnown) {
            self.entries.iter().map(|entry| u64::from(entry.count)).sum::<u64>()
                + self.lowered * (limit as u64 + 1)
        } else {
            plan.items_max()
        };
        let taken = items / (limit as u64 + 1);
        (u64::from(entry.count) + self.lowered).saturating_sub(taken) as u32
    }

    fn exact_value(&self, entry: &Entry, plan: &PlannedDiscovery) -> u32 {
        if fault::is(Fault::SummaryWhenFull) && fault::FEW_KEYS < self.entries.len() {
            let taken = plan.items_max() / (fault::FEW_KEYS as u64 + 1);
            return u64::from(entry.count).saturating_sub(taken) as u32;
        }
        entry.count
    }

    /// The keys whose counts plus noise exceed the threshold, in the order of their keyed hashes.
    pub(crate) fn release(self, plan: &PlannedDiscovery, kind: Kind, generator: &mut Generator) -> Keys {
        let present: Vec<&Entry> = self.entries.iter().filter(|entry| 0 < self.value(entry, plan)).collect();
        let count = |entry: &&Entry| self.value(entry, plan).min(i32::MAX as u32 >> 1) as i32;
        let mut scores: Vec<i32> = present.iter().map(count).collect();
        plan.table().add_to(&mut scores, generator);
        let threshold = plan.threshold();
        let passes = |score: i32| match fault::planted_now() {
            Some(Fault::LowThreshold) => threshold / 2 < i64::from(score),
            Some(Fault::ReachedThreshold) => threshold <= i64::from(score),
            _ => threshold < i64::from(score),
        };
        let mut found: Vec<&Entry> = present
            .into_iter()
            .zip(&scores)
            .filter(|(_, score)| passes(**score))
            .map(|(entry, _)| entry)
            .collect();
        if !fault::is(Fault::MapOrder) {
            found.sort_unstable_by(|a, b| (a.hash, a.key.item()).cmp(&(b.hash, b.key.item())));
        }
        scores.zeroize();
        collect(kind, found.into_iter().map(|entry| entry.key.item()))
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u64(self.arrivals);
        writer.u64(self.lowered);
        writer.len(self.entries.len());
        for entry in &self.entries {
            writer.u32(entry.count);
            writer.item(entry.key.item());
        }
    }

    pub(crate) fn read(
        reader: &mut Reader<'_>,
        plan: &PlannedDiscovery,
        kind: Kind,
        fingerprint_key: FingerprintKey,
    ) -> Result<Self, SnapshotError> {
        let mut tracker = Self::new(plan);
        tracker.arrivals = reader.u64()?;
        tracker.lowered = reader.u64()?;
        let len = reader.len(4 + 8)?;
        if tracker.limit.is_some_and(|limit| limit < len) {
            return Err(SnapshotError::Invalid("a summary holds too many keys"));
        }
        for _ in 0..len {
            let count = reader.u32()?;
            let item = reader.item(kind)?;
            let hash = fingerprint_key.item(item);
            let is_it = |entry: &Entry| entry.hash == hash && entry.key.item() == item;
            if count == 0 || tracker.entries.find(hash, is_it).is_some() {
                return Err(SnapshotError::Invalid("a key has no count or occurs twice"));
            }
            tracker
                .entries
                .insert_unique(hash, Entry { hash, key: Key::of(item), count }, |entry| entry.hash);
        }
        Ok(tracker)
    }
}

/// A list of keys of one kind.
pub(crate) fn collect<'i>(kind: Kind, items: impl Iterator<Item = Item<'i>>) -> Keys {
    let integer = |item| if let Item::Integer(value) = item { Some(value) } else { None };
    let bytes = |item| if let Item::Bytes(bytes) = item { Some(bytes.into()) } else { None };
    match kind {
        Kind::Integers => Keys::Integers(items.filter_map(integer).collect()),
        Kind::Bytes => Keys::Bytes(items.filter_map(bytes).collect()),
    }
}
