//! Adaptive zooming counters: the counts of the last few sub-windows as small pixels that share an exponent.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// How a cell rounds when its exponent grows, and what becomes of the rest below one pixel at the end of a sub-window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Rounds up; always adds one unit, even for no rest: as the published code does.
    #[default]
    Published,
    /// Rounds, and adds a unit, with the probability that makes the mean right.
    Unbiased,
    /// Rounds up; the rest counts in the next sub-window.
    Carry,
}

/// The numbers of a cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) sub_windows: usize,
    pub(super) pixel_bits: u32,
    /// log₂ of the factor between two exponents.
    pub(super) log_base: u32,
    pub(super) mode: Mode,
}

impl Shape {
    /// The running sub-window, the older ones, and an empty one ahead.
    pub(super) fn slots(&self) -> usize {
        self.sub_windows + 2
    }

    /// Bits of a cell, packed: pixels, exponent and rest.
    pub(super) fn bits(&self) -> u64 {
        let exponent = 5_u32.saturating_sub(self.log_base.ilog2());
        self.slots() as u64 * u64::from(self.pixel_bits) + u64::from(32 - self.pixel_bits + exponent)
    }

    /// A pixel from here on is large enough to keep the exponent.
    fn half(&self) -> u32 {
        1 << (self.pixel_bits - self.log_base)
    }
}

/// Many cells.
///
/// Invariant: the exponent of a cell is 0 or some pixel is at least 2^(`pixel_bits` - `log_base`).
pub(super) struct Cells {
    shape: Shape,
    /// `slots` pixels for each cell.
    pixels: Vec<u32>,
    exponents: Vec<u8>,
    /// Arrivals that do not make a pixel unit.
    rests: Vec<u32>,
    random: ChaCha12Rng,
}

impl Cells {
    pub(super) fn new(shape: Shape, len: usize, seed: u64) -> Self {
        let pixels = vec![0; len * shape.slots()];
        let random = ChaCha12Rng::seed_from_u64(seed);
        Self { shape, pixels, exponents: vec![0; len], rests: vec![0; len], random }
    }

    /// Counts an arrival in the running sub-window.
    #[inline]
    pub(super) fn add(&mut self, cell: usize, slot: usize) {
        self.rests[cell] += 1;
        while self.unit(cell) <= u64::from(self.rests[cell]) {
            self.rests[cell] -= self.unit(cell) as u32;
            self.bump(cell, slot);
        }
    }

    /// Ends the sub-window in slot `old` of every cell, and clears the one that left the window.
    pub(super) fn rotate(&mut self, old: usize, new: usize) {
        let cleared = (new + 1) % self.shape.slots();
        for cell in 0..self.exponents.len() {
            self.settle(cell, old);
            if std::mem::take(&mut self.pixels[cell * self.shape.slots() + cleared]) != 0 {
                self.zoom_in(cell);
            }
        }
    }

    /// The count of a sub-window, without the rest.
    #[inline]
    pub(super) fn older(&self, cell: usize, slot: usize) -> u64 {
        u64::from(self.pixels[cell * self.shape.slots() + slot]) * self.unit(cell)
    }

    /// The count of the running sub-window.
    #[inline]
    pub(super) fn running(&self, cell: usize, slot: usize) -> u64 {
        self.older(cell, slot) + u64::from(self.rests[cell])
    }

    /// Heap bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.pixels) + size_of_val(&*self.exponents) + size_of_val(&*self.rests)
    }

    #[inline]
    fn unit(&self, cell: usize) -> u64 {
        1 << (self.shape.log_base * u32::from(self.exponents[cell]))
    }

    fn bump(&mut self, cell: usize, slot: usize) {
        let pixel = &mut self.pixels[cell * self.shape.slots() + slot];
        if *pixel < (1 << self.shape.pixel_bits) - 1 {
            *pixel += 1;
        } else {
            self.zoom_out(cell, slot);
        }
    }

    fn settle(&mut self, cell: usize, old: usize) {
        match self.shape.mode {
            Mode::Published => {
                self.rests[cell] = 0;
                self.bump(cell, old);
            }
            Mode::Unbiased => {
                let unit = self.unit(cell);
                if self.random.random_range(0..unit) < u64::from(std::mem::take(&mut self.rests[cell])) {
                    self.bump(cell, old);
                }
            }
            Mode::Carry => {}
        }
    }

    /// A full pixel gets one more unit: it becomes a power of the base, the others are divided and rounded.
    fn zoom_out(&mut self, cell: usize, slot: usize) {
        self.exponents[cell] += 1;
        let base = 1 << self.shape.log_base;
        let slots = self.shape.slots();
        for (other, pixel) in self.pixels[cell * slots..][..slots].iter_mut().enumerate() {
            let rest = *pixel % base;
            let up = match self.shape.mode {
                Mode::Published | Mode::Carry => 0 < rest,
                Mode::Unbiased => 0 < rest && self.random.random_range(0..base) < rest,
            };
            *pixel = if other == slot { self.shape.half() } else { *pixel / base + u32::from(up) };
        }
    }

    fn zoom_in(&mut self, cell: usize) {
        let slots = self.shape.slots();
        let half = self.shape.half();
        let pixels = &mut self.pixels[cell * slots..][..slots];
        while 0 < self.exponents[cell] && pixels.iter().all(|&pixel| pixel < half) {
            self.exponents[cell] -= 1;
            pixels.iter_mut().for_each(|pixel| *pixel <<= self.shape.log_base);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(sub_windows: usize, pixel_bits: u32, log_base: u32, mode: Mode) -> Cells {
        Cells::new(Shape { sub_windows, pixel_bits, log_base, mode }, 1, 1)
    }

    impl Cells {
        fn add_many(&mut self, count: usize, slot: usize) {
            (0..count).for_each(|_| self.add(0, slot));
        }

        #[track_caller]
        fn check(&self, pixels: &[u32], exponent: u8, rest: u32) {
            assert_eq!((&*self.pixels, self.exponents[0], self.rests[0]), (pixels, exponent, rest));
        }

        /// The estimate of a window of two sub-windows whose oldest part counts with weight `part`.
        fn window_of_two(&self, slot: usize, part: f64) -> f64 {
            let back = |steps| self.older(0, (slot + 4 - steps) % 4) as f64;
            self.running(0, slot) as f64 + back(1) + part * back(2)
        }
    }

    #[test]
    fn the_published_mode_follows_its_example() {
        let mut cell = cell(2, 4, 1, Mode::Published);
        cell.add_many(15, 0);
        cell.check(&[15, 0, 0, 0], 0, 0);
        cell.add_many(1, 0);
        cell.check(&[8, 0, 0, 0], 1, 0);
        cell.add_many(1, 0);
        cell.check(&[8, 0, 0, 0], 1, 1);
        cell.add_many(1, 0);
        cell.check(&[9, 0, 0, 0], 1, 0);
        cell.add_many(22, 0);
        cell.check(&[10, 0, 0, 0], 2, 0);
        cell.rotate(0, 1);
        cell.check(&[11, 0, 0, 0], 2, 0);
        cell.add_many(10, 1);
        cell.check(&[11, 2, 0, 0], 2, 2);
        cell.rotate(1, 2);
        cell.check(&[11, 3, 0, 0], 2, 0);
        cell.add_many(5, 2);
        cell.check(&[11, 3, 1, 0], 2, 1);
        assert_eq!(cell.window_of_two(2, 0.75), 50.0);
        cell.rotate(2, 3);
        cell.check(&[0, 12, 8, 0], 0, 0);
        cell.add_many(3, 3);
        cell.check(&[0, 12, 8, 3], 0, 0);
        assert_eq!(cell.window_of_two(3, 0.5), 17.0);
        cell.rotate(3, 0);
        cell.check(&[0, 0, 8, 4], 0, 0);
    }

    #[test]
    fn the_carrying_mode_follows_its_example() {
        let mut cell = cell(2, 4, 1, Mode::Carry);
        cell.add_many(40, 0);
        cell.rotate(0, 1);
        cell.add_many(10, 1);
        cell.rotate(1, 2);
        cell.add_many(5, 2);
        cell.check(&[10, 2, 1, 0], 2, 3);
        assert_eq!(cell.window_of_two(2, 0.75), 45.0);
        cell.rotate(2, 3);
        cell.check(&[0, 8, 4, 0], 0, 3);
        cell.add_many(3, 3);
        cell.check(&[0, 8, 4, 6], 0, 0);
        assert_eq!(cell.window_of_two(3, 0.5), 14.0);
    }

    #[test]
    fn a_base_of_four_zooms_in_steps_of_four() {
        for (count, pixel, exponent, rest) in [(16, 4, 1, 0), (63, 15, 1, 3), (64, 4, 2, 0)] {
            let mut cell = cell(1, 4, 2, Mode::Published);
            cell.add_many(count, 0);
            cell.check(&[pixel, 0, 0], exponent, rest);
        }
    }

    #[test]
    fn before_the_first_rotation_nothing_is_lost() {
        for (pixel_bits, log_base) in [(4, 1), (4, 2), (6, 1), (6, 2)] {
            let mut cell = cell(2, pixel_bits, log_base, Mode::Published);
            for count in 1..=5000 {
                cell.add(0, 0);
                assert_eq!(cell.running(0, 0), count);
                assert!(u64::from(cell.rests[0]) < cell.unit(0));
            }
        }
    }

    #[test]
    fn an_exponent_is_kept_only_by_a_large_pixel() {
        let mut random = ChaCha12Rng::seed_from_u64(1);
        for mode in [Mode::Published, Mode::Unbiased, Mode::Carry] {
            let mut cell = cell(3, 4, 1, mode);
            for sub_window in 0..300 {
                let slot = sub_window % 5;
                if 0 < sub_window {
                    cell.rotate((sub_window - 1) % 5, slot);
                }
                cell.add_many(random.random_range(0..400) * random.random_range(0..2), slot);
                let is_large = cell.pixels.iter().any(|&pixel| cell.shape.half() <= pixel);
                assert!(cell.exponents[0] == 0 || is_large);
            }
        }
    }

    #[test]
    fn a_cell_has_the_bits_of_the_table() {
        for (sub_windows, pixel_bits, bits) in [(1, 4, 45), (1, 8, 53), (2, 8, 61)] {
            let shape = Shape { sub_windows, pixel_bits, log_base: 1, mode: Mode::Published };
            assert_eq!(shape.bits(), bits);
        }
    }
}
