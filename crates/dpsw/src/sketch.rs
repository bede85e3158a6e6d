//! A sealed sketch: noisy, frozen, safe to show.

use crate::counters::Shape;

/// Noisy counters of one range. Nothing changes them after they are made.
#[derive(Debug, PartialEq, Eq)]
pub struct SealedSketch {
    shape: Shape,
    cells: Box<[i32]>,
}

impl SealedSketch {
    pub(crate) fn new(shape: Shape, cells: Box<[i32]>) -> Self {
        Self { shape, cells }
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
