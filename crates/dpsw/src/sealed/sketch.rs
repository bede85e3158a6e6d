//! A sealed sketch: noisy, frozen, safe to show.

use crate::item::mapping::Shape;
use crate::noise::noised::Noised;
use crate::plan::limits::{OVERFLOW_LEN, Width};

/// Noisy counters of one range. Nothing changes them after they are made.
#[derive(Debug, PartialEq, Eq)]
pub struct SealedSketch {
    shape: Shape,
    cells: Cells,
    items: Option<u64>,
    total: i64,
}

#[derive(Debug, PartialEq, Eq)]
enum Cells {
    Wide(Box<[i32]>),
    /// Invariant: a cell is [`OVERFLOWN`] exactly if the list, ascending by index, has it.
    Narrow {
        cells: Box<[i16]>,
        overflow: Box<[(u32, i32)]>,
    },
}

/// Marks a narrow counter whose value is in the list.
const OVERFLOWN: i16 = i16::MIN;

const _: () = assert!(size_of::<(u32, i32)>() as u64 == OVERFLOW_LEN, "the plan counts on it");

impl SealedSketch {
    /// Of counters that have their noise; `items` is how many items were counted, where that is public.
    pub(crate) fn new(shape: Shape, noised: &Noised<'_>, items: Option<u64>, width: Width) -> Self {
        // PRIVACY.md: rule 39. Only the sampler makes a `Noised`.
        Self::of_released(shape, noised.counters(), items, width)
    }

    /// Of counters that were released before: from the bytes of a view, or sums of those of several. What counts and what
    /// seals never comes in by this door; `tests/boundary.rs` holds that.
    pub(crate) fn of_released(shape: Shape, cells: &[i32], items: Option<u64>, width: Width) -> Self {
        // PRIVACY.md: rule 18. Where presence is private the total comes from noisy counters.
        let total = items.map_or_else(|| sum_cells(cells) / i64::from(shape.rows), |items| items as i64);
        let cells = match width {
            Width::Wide => Cells::Wide(cells.into()),
            Width::Narrow => Cells::narrow_from(cells),
        };
        Self { shape, cells, items, total }
    }

    /// How many items were counted, where that is public.
    #[must_use]
    pub fn items(&self) -> Option<u64> {
        self.items
    }

    /// How many items were counted: exactly where that is public, else by the noisy counters.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.total
    }

    /// The noisy counters, row after row.
    #[must_use]
    pub fn cells(&self) -> Vec<i32> {
        match &self.cells {
            Cells::Wide(cells) => cells.to_vec(),
            Cells::Narrow { cells, overflow } => {
                let mut wide: Vec<i32> = cells.iter().map(|&cell| cell.into()).collect();
                for &(index, cell) in overflow {
                    wide[index as usize] = cell;
                }
                wide
            }
        }
    }

    /// The noisy counters for calculations, and their sum.
    pub(crate) fn to_floats(&self) -> (Box<[f32]>, i64) {
        match &self.cells {
            Cells::Wide(cells) => (cells.iter().map(|&cell| cell as f32).collect(), sum_cells(cells)),
            Cells::Narrow { cells, overflow } => {
                let mut floats: Box<[f32]> = cells.iter().map(|&cell| cell.into()).collect();
                let mut sum = sum_cells(cells);
                // The mark was summed up as if it were a count.
                for &(index, cell) in overflow {
                    floats[index as usize] = cell as f32;
                    sum += i64::from(cell) - i64::from(OVERFLOWN);
                }
                (floats, sum)
            }
        }
    }

    /// One noisy counter.
    ///
    /// # Panics
    /// There is no counter of this index.
    #[must_use]
    #[inline]
    pub fn cell(&self, index: usize) -> i32 {
        match &self.cells {
            Cells::Wide(cells) => cells[index],
            Cells::Narrow { cells, overflow } => match cells[index] {
                OVERFLOWN => find_overflown(overflow, index),
                cell => cell.into(),
            },
        }
    }

    /// Adds the noisy counters to sums.
    pub(crate) fn add_to(&self, sums: &mut [i64]) {
        self.add_times::<1>(sums);
    }

    /// The same so many times; -1 takes them off.
    pub(crate) fn add_times<const TIMES: i64>(&self, sums: &mut [i64]) {
        match &self.cells {
            Cells::Wide(cells) => add_cells::<TIMES, _>(cells, sums),
            Cells::Narrow { cells, overflow } => {
                add_cells::<TIMES, _>(cells, sums);
                for &(index, cell) in overflow {
                    sums[index as usize] += TIMES * (i64::from(cell) - i64::from(OVERFLOWN));
                }
            }
        }
    }

    /// The indices of counters above a limit.
    pub(crate) fn indices_above(&self, least: i64) -> Vec<u32> {
        match &self.cells {
            Cells::Wide(cells) => {
                let counters = (0..).zip(cells).filter(|(_, cell)| least < i64::from(**cell));
                counters.map(|(index, _)| index).collect()
            }
            Cells::Narrow { cells, overflow } => {
                let large =
                    overflow.iter().filter(|(_, cell)| least < i64::from(*cell)).map(|(index, _)| *index);
                large.chain(narrow_above(cells, least)).collect()
            }
        }
    }

    /// Copies the counters from this index on.
    pub(crate) fn copy_from(&self, first: usize, copies: &mut [f64]) {
        let end = first + copies.len();
        match &self.cells {
            Cells::Wide(cells) => copy_cells(&cells[first..end], copies),
            Cells::Narrow { cells, overflow } => {
                copy_cells(&cells[first..end], copies);
                let start = overflow.partition_point(|(index, _)| (*index as usize) < first);
                for &(index, cell) in
                    overflow[start..].iter().take_while(|(index, _)| (*index as usize) < end)
                {
                    copies[index as usize - first] = cell.into();
                }
            }
        }
    }

    /// The counters that are stored in 16 bits; `i16::MIN` marks those that are not.
    pub(crate) fn narrow_cells(&self) -> Option<&[i16]> {
        match &self.cells {
            Cells::Wide(_) => None,
            Cells::Narrow { cells, .. } => Some(cells),
        }
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How wide a counter is stored.
    #[must_use]
    pub fn width(&self) -> Width {
        match self.cells {
            Cells::Wide(_) => Width::Wide,
            Cells::Narrow { .. } => Width::Narrow,
        }
    }

    /// The smallest of these cells; 0 for an item that has none.
    #[inline]
    pub(crate) fn minimum_of(&self, cells: impl Iterator<Item = usize>) -> i64 {
        cells.map(|cell| i64::from(self.cell(cell))).min().unwrap_or(0)
    }
}

impl Cells {
    fn narrow_from(cells: &[i32]) -> Self {
        // Without an early end the processor checks many cells at once; nearly always all of them are small.
        if cells.iter().fold(true, |fits, &cell| fits & (cell.unsigned_abs() <= i16::MAX as u32)) {
            let cells = cells.iter().map(|&cell| cell as i16).collect();
            return Self::Narrow { cells, overflow: Box::default() };
        }
        let mut narrow = Vec::with_capacity(cells.len());
        let mut overflow = Vec::new();
        for (index, &cell) in (0..).zip(cells) {
            match i16::try_from(cell) {
                Ok(cell) if cell != OVERFLOWN => narrow.push(cell),
                _ => {
                    overflow.push((index, cell));
                    narrow.push(OVERFLOWN);
                }
            }
        }
        Self::Narrow { cells: narrow.into(), overflow: overflow.into() }
    }
}

/// Counters are looked at in blocks first: few are large.
const BLOCK: usize = 64;

fn narrow_above(cells: &[i16], least: i64) -> impl Iterator<Item = u32> {
    // Marked counters are smaller than all others.
    let least = i16::try_from(least.max(i16::MIN.into())).unwrap_or(i16::MAX);
    let blocks = cells.chunks(BLOCK).zip((0_u32..).step_by(BLOCK));
    let large = blocks.filter(move |(block, _)| block.iter().fold(false, |any, &cell| any | (least < cell)));
    large.flat_map(move |(block, first)| {
        (first..).zip(block).filter(move |(_, cell)| least < **cell).map(|(index, _)| index)
    })
}

fn add_cells<const TIMES: i64, T: Copy + Into<i64>>(cells: &[T], sums: &mut [i64]) {
    for (sum, &cell) in sums.iter_mut().zip(cells) {
        *sum += TIMES * cell.into();
    }
}

fn copy_cells<T: Copy + Into<f64>>(cells: &[T], copies: &mut [f64]) {
    for (copy, &cell) in copies.iter_mut().zip(cells) {
        *copy = cell.into();
    }
}

fn sum_cells<T: Copy + Into<i64>>(cells: &[T]) -> i64 {
    cells.iter().map(|&cell| cell.into()).sum()
}

#[cold]
fn find_overflown(overflow: &[(u32, i32)], index: usize) -> i32 {
    let entry = overflow.binary_search_by_key(&(index as u32), |(index, _)| *index);
    overflow[entry.expect("a marked counter is in the list")].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_counters_keep_every_value() {
        let values = [0, 5, -7, 32_767, -32_767, -32_768, 32_768, 100_000, i32::MIN, i32::MAX];
        // All; those that fit in 16 bits; those that do not.
        for values in [&values[..], &values[..5], &values[5..]] {
            let shape = Shape { rows: 1, columns: values.len() as u32 };
            for width in [Width::Wide, Width::Narrow] {
                let sketch = SealedSketch::of_released(shape, values, None, width);
                assert_eq!(sketch.cells(), values);
                let (floats, sum) = sketch.to_floats();
                let wanted: Vec<f32> = values.iter().map(|&value| value as f32).collect();
                assert_eq!(*floats, wanted[..]);
                assert_eq!(sum, values.iter().map(|&value| i64::from(value)).sum::<i64>());
                assert_eq!(sketch.width(), width);
                for first in 0..values.len() {
                    let mut copies = vec![0.0; values.len() - first];
                    sketch.copy_from(first, &mut copies);
                    assert!(
                        copies.iter().zip(&values[first..]).all(|(copy, &value)| *copy == f64::from(value))
                    );
                }
            }
        }
    }

    #[test]
    fn only_counters_that_do_not_fit_are_in_the_list() {
        let values = [0, 5, -32_767, -32_768, 32_768, 7];
        let shape = Shape { rows: 1, columns: 6 };
        let narrow = SealedSketch::of_released(shape, &values, None, Width::Narrow);
        assert_eq!(narrow.narrow_cells(), Some(&[0, 5, -32_767, OVERFLOWN, OVERFLOWN, 7][..]));
        assert_eq!(SealedSketch::of_released(shape, &values, None, Width::Wide).narrow_cells(), None);
    }
}
