//! How items fall on counters.

use std::sync::Arc;

use crate::item::hash::{FingerprintKey, cell_of};
use crate::item::index::Index;
use crate::item::pins::PinIndex;
use crate::item::value::Item;

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

/// The way from items to the counters of one substream. Its `Debug` shows no keys.
#[derive(Clone)]
pub(crate) struct Mapping {
    pub(crate) shape: Shape,
    pub(crate) fingerprint_key: FingerprintKey,
    pub(crate) columns: Columns,
    /// Pinned keys have a counter of their own behind the hashed ones, and count there alone.
    pub(crate) pinned: Option<Arc<PinIndex>>,
}

/// The rows of hashed counters, for passes over many keys.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    keys: &'a [u64],
    columns: u32,
}

impl<'a> Rows<'a> {
    const NONE: Self = Self { keys: &[], columns: 0 };

    /// The cells of a fingerprint, one per row.
    #[inline]
    pub(crate) fn cells_of(self, fingerprint: u64) -> impl Iterator<Item = usize> + use<'a> {
        let columns = self.columns;
        self.keys.iter().enumerate().map(move |(row, key)| cell_of(fingerprint, (row, *key), columns))
    }
}

impl Rows<'_> {
    /// Puts for each fingerprint, by its place, the fold of its cells' values, row by row.
    pub(crate) fn fold_all<T: Copy, A: Copy>(
        self,
        fingerprints: &[u64],
        values: &[T],
        start: A,
        fold: impl Fn(A, T) -> A,
        put: impl FnMut(usize, A),
    ) {
        match self.keys.len() {
            2 => self.fold_rows(2, fingerprints, values, start, fold, put),
            3 => self.fold_rows(3, fingerprints, values, start, fold, put),
            rows => self.fold_rows(rows, fingerprints, values, start, fold, put),
        }
    }

    /// Inlined so that the usual numbers of rows are unrolled.
    #[inline(always)]
    fn fold_rows<T: Copy, A: Copy>(
        self,
        rows: usize,
        fingerprints: &[u64],
        values: &[T],
        start: A,
        fold: impl Fn(A, T) -> A,
        mut put: impl FnMut(usize, A),
    ) {
        let (keys, columns) = (&self.keys[..rows], self.columns);
        for (place, fingerprint) in fingerprints.iter().enumerate() {
            let mut so_far = start;
            for (row, key) in keys.iter().enumerate() {
                so_far = fold(so_far, values[cell_of(*fingerprint, (row, *key), columns)]);
            }
            put(place, so_far);
        }
    }
}

/// The columns of an item.
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
        self.cells_of(item, self.fingerprint_key.hash_item(item))
    }

    /// The cells of an item whose fingerprint is known.
    #[inline]
    pub(crate) fn cells_of(&self, item: Item<'_>, fingerprint: u64) -> impl Iterator<Item = usize> {
        let in_range = match (&self.columns, item) {
            (Columns::Range, Item::Integer(value)) => self.place_in_range(value),
            _ => None,
        };
        in_range.into_iter().chain(self.hashed_cells(fingerprint))
    }

    /// The cells of a fingerprint, unless the items themselves are the places.
    pub(crate) fn hashed_cells(&self, fingerprint: u64) -> impl Iterator<Item = usize> {
        let place = match &self.columns {
            Columns::Hashed(_) | Columns::Range => self.own_cell(fingerprint),
            Columns::Listed(index) => index.find_key(fingerprint),
        };
        // A pinned key counts in its own counter and not in the rows (PRIVACY.md: rule 33).
        let rows = if place.is_some() { Rows::NONE } else { self.rows() };
        place.into_iter().chain(rows.cells_of(fingerprint))
    }

    /// The counter of a pinned key.
    #[inline]
    pub(crate) fn own_cell(&self, fingerprint: u64) -> Option<usize> {
        let slot = self.pinned.as_ref()?.find_slot(fingerprint).checked_sub(1)?;
        Some(self.shape.cells() + slot)
    }

    /// The same without pinned keys, as sealed sketches are read.
    pub(crate) fn without_pins(&self) -> Self {
        Self { pinned: None, ..self.clone() }
    }

    /// The rows of hashed counters; none for others.
    pub(crate) fn rows(&self) -> Rows<'_> {
        let keys: &[u64] = if let Columns::Hashed(keys) = &self.columns { keys } else { &[] };
        Rows { keys, columns: self.shape.columns }
    }

    /// Whether each key has a counter of its own.
    pub(crate) fn is_identity(&self) -> bool {
        !matches!(self.columns, Columns::Hashed(_))
    }

    /// Whether items fall on the same counters.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let columns = match (&self.columns, &other.columns) {
            (Columns::Hashed(keys), Columns::Hashed(others)) => keys == others,
            (Columns::Range, Columns::Range) | (Columns::Listed(_), Columns::Listed(_)) => true,
            _ => false,
        };
        columns && self.shape == other.shape && self.fingerprint_key == other.fingerprint_key
    }

    fn place_in_range(&self, value: u64) -> Option<usize> {
        // Integers outside the list have no counter (PRIVACY.md: rule 13).
        usize::try_from(value).ok().filter(|&place| place < self.shape.columns as usize)
    }
}
