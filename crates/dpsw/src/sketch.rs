//! A sealed sketch: noisy, frozen, safe to show.

use crate::counters::Shape;

/// Noisy counters of one range. Nothing changes them after they are made.
#[derive(Debug, PartialEq, Eq)]
pub struct SealedSketch {
    shape: Shape,
    cells: Box<[i32]>,
    items: Option<u64>,
    total: i64,
}

impl SealedSketch {
    /// `items` is how many items were counted, where that is public.
    pub(crate) fn new(shape: Shape, cells: Box<[i32]>, items: Option<u64>) -> Self {
        let noisy = || cells.iter().map(|&cell| i64::from(cell)).sum::<i64>() / i64::from(shape.rows);
        let total = items.map_or_else(noisy, |items| items as i64);
        Self { shape, cells, items, total }
    }

    /// How many items were counted, where that is public.
    pub(crate) fn items(&self) -> Option<u64> {
        self.items
    }

    /// How many items were counted: exactly where that is public, else by the noisy counters.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.total
    }

    /// The noisy counters, row after row.
    #[must_use]
    pub fn cells(&self) -> &[i32] {
        &self.cells
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The smallest of these cells; 0 for an item that has none.
    pub(crate) fn minimum(&self, cells: impl Iterator<Item = usize>) -> i64 {
        cells.map(|cell| i64::from(self.cells[cell])).min().unwrap_or(0)
    }
}
