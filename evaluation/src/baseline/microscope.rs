//! Microscope-Sketch (KDD 2023): rows of adaptive zooming counters. It has no privacy and measures its price.

use std::fmt;

use anyhow::{Result, ensure};
use dpsw::error::EntropyError;
use dpsw::{Claim, Noise};

use super::Baseline;
use super::budget::Task;
use super::columns::Columns;
use super::dyadic::split_at_end;
use super::zoom::{Cells, Shape};

pub use super::zoom::Mode;

/// Sub-windows, rows and pixel bits as results sweep them.
pub(super) const SUB_WINDOWS: [u32; 5] = [1, 2, 4, 8, 16];
pub(super) const ROWS: std::ops::RangeInclusive<u32> = 1..=4;
pub(super) const PIXEL_BITS: [u32; 2] = [4, 8];

/// How rows of cells become a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sketch {
    /// Count-min: a cell in every row; the smallest of each sub-window counts.
    #[default]
    CountMin,
    /// Only the rows with the smallest running count grow.
    ConservativeUpdate,
    /// A cell for each sign in every column; the median of the rows counts.
    CountSketch,
}

/// What may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// Sub-windows of a window, which they must divide.
    pub sub_windows: u32,
    pub rows: u32,
    pub columns: u32,
    pub pixel_bits: u32,
    /// log₂ of the factor between two exponents, below `pixel_bits`.
    pub log_base: u32,
    pub mode: Mode,
    pub sketch: Sketch,
}

impl Parameters {
    /// The published defaults, without columns yet: see [`fill`](Self::fill).
    pub const PUBLISHED: Self = Self {
        sub_windows: 1,
        rows: 3,
        columns: 0,
        pixel_bits: 4,
        log_base: 1,
        mode: Mode::Published,
        sketch: Sketch::CountMin,
    };

    /// The same with as many columns as these bytes hold, and no more than 2³² - 1.
    pub fn fill(self, bytes: u64) -> Self {
        let columns = 8 * bytes / (u64::from(self.rows) * self.bits_per_column());
        Self { columns: u32::try_from(columns).unwrap_or(u32::MAX), ..self }
    }

    fn shape(&self) -> Shape {
        let Self { sub_windows, pixel_bits, log_base, mode, .. } = *self;
        Shape { sub_windows: sub_windows as usize, pixel_bits, log_base, mode }
    }

    fn cells_per_column(&self) -> u32 {
        if self.sketch == Sketch::CountSketch { 2 } else { 1 }
    }

    fn bits_per_column(&self) -> u64 {
        u64::from(self.cells_per_column()) * self.shape().bits()
    }
}

/// Microscope-Sketch with every derived number.
#[derive(Debug, Clone)]
pub struct Plan {
    task: Task,
    parameters: Parameters,
    sub_window_len: u64,
}

impl Plan {
    pub fn new(task: Task, parameters: Parameters) -> Result<Self> {
        let Parameters { sub_windows, rows, columns, pixel_bits, log_base, .. } = parameters;
        let window_len = task.window_len;
        ensure!(0 < rows && 0 < columns, "a sketch needs rows and columns, got {rows} x {columns}");
        let divides = 0 < sub_windows && window_len.is_multiple_of(sub_windows.into());
        ensure!(divides, "{sub_windows} sub-windows do not divide a window of {window_len} items");
        ensure!((2..=24).contains(&pixel_bits), "a pixel must have 2 to 24 bits, got {pixel_bits}");
        ensure!((1..pixel_bits).contains(&log_base), "log_base must lie below {pixel_bits}, got {log_base}");
        Ok(Self { task, parameters, sub_window_len: window_len / u64::from(sub_windows) })
    }

    /// Bytes of the cells, packed.
    pub fn sketch_bytes(&self) -> u64 {
        let Parameters { rows, columns, .. } = self.parameters;
        (u64::from(rows) * u64::from(columns) * self.parameters.bits_per_column()).div_ceil(8)
    }

    /// No privacy is promised.
    pub fn claim(&self) -> Claim {
        Claim::None
    }

    pub fn start(&self, noise: Noise) -> Result<Box<dyn Baseline>, EntropyError> {
        Ok(Box::new(self.microscope(noise)?))
    }

    fn microscope(&self, mut noise: Noise) -> Result<Microscope, EntropyError> {
        let Parameters { rows, columns, .. } = self.parameters;
        let mut generator = noise.generator()?;
        let columns = Columns::draw(rows as usize, columns, &mut generator);
        Ok(Microscope::new(self.clone(), columns, generator.next_u64()))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { sub_windows, rows, columns, pixel_bits, log_base, mode, sketch } = self.parameters;
        write!(f, "{sketch:?}, {mode:?}, {sub_windows} sub-windows, {rows} rows, {columns} columns, ")?;
        write!(f, "{pixel_bits}-bit pixels, base 2^{log_base}")
    }
}

struct Microscope {
    plan: Plan,
    columns: Columns,
    cells: Cells,
    position: u64,
}

impl Microscope {
    fn new(plan: Plan, columns: Columns, seed: u64) -> Self {
        let len = columns.cells() * plan.parameters.cells_per_column() as usize;
        let cells = Cells::new(plan.parameters.shape(), len, seed);
        Self { plan, columns, cells, position: 0 }
    }

    fn slot(&self, sub_window: u64) -> usize {
        (sub_window % self.plan.parameters.shape().slots() as u64) as usize
    }

    fn add(&mut self, item: u64, slot: usize) {
        match self.plan.parameters.sketch {
            Sketch::CountMin => self.columns.of(item).for_each(|cell| self.cells.add(cell, slot)),
            Sketch::ConservativeUpdate => self.add_to_smallest(item, slot),
            Sketch::CountSketch => (0..self.columns.rows()).for_each(|row| {
                let [own, _] = self.signed_cells(row, item);
                self.cells.add(own, slot);
            }),
        }
    }

    fn add_to_smallest(&mut self, item: u64, slot: usize) {
        let running = |cell| self.cells.running(cell, slot);
        let least = self.columns.of(item).map(running).min().expect("a sketch has at least one row");
        for cell in self.columns.of(item) {
            if self.cells.running(cell, slot) == least {
                self.cells.add(cell, slot);
            }
        }
    }

    /// The cell of the item's sign in a row, and that of the other sign.
    fn signed_cells(&self, row: usize, item: u64) -> [usize; 2] {
        let cell = 2 * self.columns.cell(row, item);
        if self.columns.sign(row, item) { [cell + 1, cell] } else { [cell, cell + 1] }
    }

    /// The estimate of a window from the counts of its running sub-window and the older slots: the oldest counts with
    /// the part that the running one has not replaced.
    fn combine(&self, running: impl Fn(usize) -> f64, older: impl Fn(usize) -> f64) -> f64 {
        let Some(last) = self.position.checked_sub(1) else { return 0.0 };
        let len = self.plan.sub_window_len;
        let slots = self.plan.parameters.shape().slots() as u64;
        let current = self.slot(last / len) as u64;
        let back = |steps: u64| older(((current + slots - steps) % slots) as usize);
        let sub_windows = slots - 2;
        let replaced = (last % len + 1) as f64 / len as f64;
        let between: f64 = (1..sub_windows).map(back).sum();
        running(current as usize) + between + (1.0 - replaced) * back(sub_windows)
    }

    fn smallest(&self, item: u64, count: impl Fn(usize) -> u64) -> f64 {
        self.columns.of(item).map(count).min().expect("a sketch has at least one row") as f64
    }

    fn row_estimate(&self, row: usize, item: u64) -> f64 {
        let of = |cell| {
            let running = |slot| self.cells.running(cell, slot) as f64;
            self.combine(running, |slot| self.cells.older(cell, slot) as f64)
        };
        let [own, other] = self.signed_cells(row, item);
        of(own) - of(other)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

impl Baseline for Microscope {
    fn insert(&mut self, mut items: &[u64]) -> Result<(), EntropyError> {
        self.plan.task.check(items);
        let len = self.plan.sub_window_len;
        while !items.is_empty() {
            let sub_window = self.position / len;
            if 0 < self.position && self.position.is_multiple_of(len) {
                self.cells.rotate(self.slot(sub_window - 1), self.slot(sub_window));
            }
            let (part, rest) = split_at_end(items, self.position, len);
            let slot = self.slot(sub_window);
            part.iter().for_each(|&item| self.add(item, slot));
            self.position += part.len() as u64;
            items = rest;
        }
        Ok(())
    }

    fn frequency(&self, item: u64) -> f64 {
        if self.plan.parameters.sketch == Sketch::CountSketch {
            return median((0..self.columns.rows()).map(|row| self.row_estimate(row, item)).collect());
        }
        self.combine(
            |slot| self.smallest(item, |cell| self.cells.running(cell, slot)),
            |slot| self.smallest(item, |cell| self.cells.older(cell, slot)),
        )
    }

    fn estimates(&self) -> Vec<f64> {
        (0..self.plan.task.domain_len as u64).map(|item| self.frequency(item)).collect()
    }

    fn resident_bytes(&self) -> u64 {
        (self.cells.bytes() + self.columns.bytes()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::budget::task;
    use crate::baseline::columns::injective;
    use crate::baseline::model::{counts, stream};

    const WIDE: Parameters = Parameters {
        sub_windows: 4,
        rows: 1,
        columns: 500,
        pixel_bits: 20,
        log_base: 1,
        mode: Mode::Carry,
        sketch: Sketch::CountMin,
    };

    fn plan(window_len: u64, domain_len: usize, parameters: Parameters) -> Plan {
        Plan::new(task(window_len, domain_len, 1.0), parameters).expect("a plan")
    }

    fn start(plan: &Plan, seed: u64) -> Microscope {
        plan.microscope(Noise::seeded(seed)).expect("seeded")
    }

    #[test]
    fn columns_fill_the_bytes_of_the_examples() {
        for (rows, sub_windows, pixel_bits, columns) in [(3, 1, 4, 5925), (2, 1, 8, 7547), (2, 2, 8, 6557)] {
            let parameters = Parameters { rows, sub_windows, pixel_bits, ..WIDE }.fill(100_000);
            assert_eq!(parameters.columns, columns);
            let bytes = plan(1000, 5, parameters).sketch_bytes();
            assert!((99_900..=100_000).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn with_wide_pixels_and_no_collisions_whole_sub_windows_are_exact() {
        let items = stream(700, 6, 1);
        for sketch in [Sketch::CountMin, Sketch::ConservativeUpdate, Sketch::CountSketch] {
            let plan = plan(100, 6, Parameters { sketch, ..WIDE });
            let mut method = Microscope::new(plan, injective(1, 500, 6), 1);
            for (end, part) in (1..).map(|number| 25 * number).zip(items.chunks(25)) {
                method.insert(part).expect("no entropy needed");
                let window = &items[end.max(100) - 100..end];
                assert_eq!(method.estimates(), counts(window, 6), "{sketch:?} at {end}");
            }
        }
    }

    #[test]
    fn conservative_updates_touch_only_the_smallest_row() {
        let parameters = Parameters { rows: 2, columns: 3, sketch: Sketch::ConservativeUpdate, ..WIDE };
        let mut method = start(&plan(100, 1, parameters), 1);
        let cells: Vec<usize> = method.columns.of(0).collect();
        (0..5).for_each(|_| method.cells.add(cells[0], 0));
        (0..3).for_each(|_| method.cells.add(cells[1], 0));
        method.insert(&[0]).expect("no entropy needed");
        assert_eq!([0, 1].map(|row| method.cells.running(cells[row], 0)), [5, 4]);
    }

    #[test]
    fn conservative_updates_never_exceed_count_min_nor_underestimate() {
        let items = stream(1000, 60, 2);
        let run = |sketch| {
            let parameters = Parameters { sub_windows: 1, rows: 3, columns: 12, sketch, ..WIDE };
            let mut method = start(&plan(1000, 60, parameters), 1);
            method.insert(&items).expect("no entropy needed");
            method.estimates()
        };
        let (lean, plain) = (run(Sketch::ConservativeUpdate), run(Sketch::CountMin));
        for ((lean, plain), count) in lean.iter().zip(&plain).zip(counts(&items, 60)) {
            assert!(count <= *lean && lean <= plain);
        }
        assert!(lean.iter().sum::<f64>() < plain.iter().sum());
    }

    #[test]
    fn unbiased_rounding_has_the_right_mean() {
        let items = stream(175, 3, 3);
        let (seeds, at) = (2000, 175);
        let parameters = Parameters { sub_windows: 2, pixel_bits: 4, mode: Mode::Unbiased, ..WIDE };
        let plan = plan(100, 3, parameters);
        // 25 items of the running sub-window, 50 of the one before, and half of the 50 before that.
        let part = |range: std::ops::Range<usize>| counts(&items[range], 3)[0];
        let wanted = part(150..at) + part(100..150) + 0.5 * part(50..100);
        let estimates: Vec<f64> = (0..seeds)
            .map(|seed| {
                let mut method = Microscope::new(plan.clone(), injective(1, 500, 3), seed);
                method.insert(&items).expect("no entropy needed");
                method.frequency(0)
            })
            .collect();
        let mean = estimates.iter().sum::<f64>() / seeds as f64;
        let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / seeds as f64;
        let error = (variance / seeds as f64).sqrt();
        assert!(0.0 < error && (mean - wanted).abs() <= 4.0 * error, "{mean} ± {error}, wanted {wanted}");
    }

    #[test]
    fn the_published_mode_adds_a_unit_to_every_cell_in_each_sub_window() {
        let parameters = Parameters { mode: Mode::Published, ..WIDE };
        let mut method = Microscope::new(plan(100, 6, parameters), injective(1, 500, 6), 1);
        method.insert(&[0; 101]).expect("no entropy needed");
        assert!((method.frequency(5) - (3.0 + 24.0 / 25.0)).abs() < 1e-9);
    }

    #[test]
    fn a_median_of_an_even_number_is_the_middle_of_the_two_middle_ones() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), 3.0);
    }

    #[test]
    fn before_the_first_item_nothing_is_known() {
        assert_eq!(start(&plan(100, 2, WIDE), 1).estimates(), [0.0; 2]);
    }
}
