//! Exact counts of one range, while it fills. Secret: they can be added to, noised and sealed, but not read.

use std::mem;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::hash::{FingerprintKey, Index, column};
use crate::item::Item;
use crate::noise::Generator;
use crate::settings::Unit;
use crate::sketch::SealedSketch;
use crate::table::Table;

/// The shape of an array of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many rows; one for identity counters.
    pub rows: u32,
    /// How many columns in a row; the number of keys for identity counters.
    pub columns: u32,
}

impl Shape {
    /// The number of counters.
    #[must_use]
    pub fn cells(self) -> usize {
        self.rows as usize * self.columns as usize
    }
}

/// How items fall on the counters of one substream. Its `Debug` shows no keys.
#[derive(Clone)]
pub(crate) struct Mapping {
    pub(crate) shape: Shape,
    pub(crate) fingerprint_key: FingerprintKey,
    pub(crate) columns: Columns,
}

/// Which columns an item has.
#[derive(Clone)]
pub(crate) enum Columns {
    /// One per row, by hashing with the row's key.
    Hashed(Arc<[u64]>),
    /// The item itself, if it is below the number of columns.
    Range,
    /// The item's place in the public list.
    Listed(Arc<Index>),
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mapping({} x {})", self.shape.rows, self.shape.columns)
    }
}

impl Mapping {
    /// The cells of an item: one per row, or none for an item outside the public list.
    #[inline]
    pub(crate) fn cells(&self, item: Item<'_>) -> impl Iterator<Item = usize> {
        let fingerprint = self.fingerprint_key.item(item);
        let place = match (&self.columns, item) {
            (Columns::Hashed(_), _) => None,
            (Columns::Range, Item::Integer(value)) => self.place_in_range(value),
            (Columns::Range, Item::Bytes(_)) => None,
            (Columns::Listed(index), _) => index.place(fingerprint),
        };
        let keys: &[u64] = if let Columns::Hashed(keys) = &self.columns { keys } else { &[] };
        let columns = self.shape.columns;
        let hashed = keys
            .iter()
            .enumerate()
            .map(move |(row, &key)| row * columns as usize + column(fingerprint, key, columns));
        place.into_iter().chain(hashed)
    }

    fn place_in_range(&self, value: u64) -> Option<usize> {
        usize::try_from(value).ok().filter(|&place| place < self.shape.columns as usize)
    }
}

/// Exact counters. No `Clone`, no bytes, and a `Debug` that shows the shape alone; wiped when dropped.
pub(crate) struct Counters {
    shape: Shape,
    /// Items counted, null items included.
    items: u64,
    cells: Zeroizing<Vec<i32>>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counters({} x {})", self.shape.rows, self.shape.columns)
    }
}

impl Counters {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, items: 0, cells: Zeroizing::new(vec![0; shape.cells()]) }
    }

    pub(crate) fn count_integers(&mut self, items: &[u64], mapping: &Mapping) {
        self.items += items.len() as u64;
        let key = mapping.fingerprint_key;
        let fingerprints = items.iter().map(|&item| key.integer(item));
        match &mapping.columns {
            Columns::Hashed(keys) => self.count_hashed(fingerprints, keys),
            Columns::Listed(index) => self.count_listed(fingerprints, index),
            Columns::Range => self.count_range(items),
        }
    }

    /// Counts byte strings by their fingerprints.
    pub(crate) fn count_fingerprints(&mut self, fingerprints: &[u64], mapping: &Mapping) {
        self.items += fingerprints.len() as u64;
        let fingerprints = fingerprints.iter().copied();
        match &mapping.columns {
            Columns::Hashed(keys) => self.count_hashed(fingerprints, keys),
            Columns::Listed(index) => self.count_listed(fingerprints, index),
            Columns::Range => unreachable!("a range of integers is a domain of integers"),
        }
    }

    fn count_range(&mut self, items: &[u64]) {
        let cells = &mut self.cells[..];
        for &item in items {
            if let Some(cell) = usize::try_from(item).ok().and_then(|place| cells.get_mut(place)) {
                *cell += 1;
            }
        }
    }

    fn count_listed(&mut self, fingerprints: impl Iterator<Item = u64>, index: &Index) {
        for place in fingerprints.filter_map(|fingerprint| index.place(fingerprint)) {
            self.cells[place] += 1;
        }
    }

    fn count_hashed(&mut self, fingerprints: impl Iterator<Item = u64>, keys: &[u64]) {
        match keys.len() {
            1 => self.count_rows::<1>(fingerprints, keys),
            2 => self.count_rows::<2>(fingerprints, keys),
            3 => self.count_rows::<3>(fingerprints, keys),
            4 => self.count_rows::<4>(fingerprints, keys),
            5 => self.count_rows::<5>(fingerprints, keys),
            _ => self.count_any_rows(fingerprints, keys),
        }
    }

    fn count_rows<const ROWS: usize>(&mut self, fingerprints: impl Iterator<Item = u64>, keys: &[u64]) {
        let keys: [u64; ROWS] = keys.try_into().expect("the caller matched the number of rows");
        let columns = self.shape.columns;
        let cells = &mut self.cells[..];
        for fingerprint in fingerprints {
            for (row, key) in keys.iter().enumerate() {
                cells[row * columns as usize + column(fingerprint, *key, columns)] += 1;
            }
        }
    }

    fn count_any_rows(&mut self, fingerprints: impl Iterator<Item = u64>, keys: &[u64]) {
        let columns = self.shape.columns;
        for fingerprint in fingerprints {
            for (row, key) in keys.iter().enumerate() {
                self.cells[row * columns as usize + column(fingerprint, *key, columns)] += 1;
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.items += other.items;
        for (cell, more) in self.cells.iter_mut().zip(other.cells.iter()) {
            *cell += more;
        }
    }

    pub(crate) fn copy(&self) -> Self {
        Self { shape: self.shape, items: self.items, cells: self.cells.clone() }
    }

    pub(crate) fn clear(&mut self) {
        self.items = 0;
        self.cells.fill(0);
    }

    /// Adds the noise in place: afterwards the exact counts are nowhere. The number of items stays where the unit makes
    /// it public.
    pub(crate) fn seal(mut self, unit: Unit, table: &Table, generator: &mut Generator) -> SealedSketch {
        table.add_to(&mut self.cells, generator);
        let items = match unit {
            Unit::ReplaceOne => Some(self.items),
            Unit::AddRemove => None,
        };
        SealedSketch::new(self.shape, mem::take(&mut *self.cells).into_boxed_slice(), items)
    }
}
