//! U-Sketch (Upadhyay 2019) as the paper runs it: 100 blocks, each with a count-min sketch of the whole block and
//! one of its second half, which lets the oldest block be cut.
//!
//! Pure ε: replace-one moves two counters of a row by one, and an event lies in the two sketches of one block, which
//! share ε.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Range, RangeInclusive};

use anyhow::{Result, ensure};
use dpsw::error::EntropyError;
use dpsw::noise::{Law, Table};
use dpsw::{Claim, Noise};

use super::Baseline;
use super::budget::{Task, laplace};
use super::columns::Columns;
use super::dyadic::split_at_end;

const BLOCKS: u64 = 100;

/// Rows as results sweep them.
pub(super) const ROWS: RangeInclusive<u32> = 2..=5;
/// What a counter of a sketch takes in all blocks, sealed and open.
pub(super) const BYTES_PER_COUNTER: u64 = 4 * 2 * (BLOCKS + 1);

/// The parts of ε of a block's sketches, which add the least noise to a cover that uses either half of the time.
const FULL_PART: (u64, u64) = (17, 20);
const SUFFIX_PART: (u64, u64) = (3, 20);

/// How sketches of several blocks become one estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Combine {
    /// The counters are added, then the smallest row is taken.
    #[default]
    MinOfSums,
    /// The smallest row of each block, added: as published, with the bias of many noisy minima.
    SumOfMins,
}

/// What is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Release {
    /// Each block, once.
    #[default]
    PerBlock,
    /// The sum of the last 100 blocks, at every block's end: the original's noise, which grows with the blocks. Exact
    /// counters of all blocks must be kept.
    PerWindow,
}

/// What may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    pub rows: u32,
    pub columns: u32,
    pub combine: Combine,
    pub release: Release,
}

/// U-Sketch with every derived number.
#[derive(Debug, Clone)]
pub struct Plan {
    task: Task,
    parameters: Parameters,
    block_len: u64,
    suffix_len: u64,
    laws: Laws,
}

#[derive(Debug, Clone, Copy)]
enum Laws {
    PerBlock { full: Law, suffix: Law },
    PerWindow(Law),
}

/// Which sketches cover a window: perhaps the suffix of a block, and whole blocks after it.
#[derive(Debug, PartialEq, Eq)]
struct Cover {
    suffix: Option<u64>,
    full: Range<u64>,
}

impl Plan {
    pub fn new(task: Task, parameters: Parameters) -> Result<Self> {
        let Parameters { rows, columns, release, .. } = parameters;
        let window_len = task.window_len;
        ensure!(0 < rows && 0 < columns, "a sketch needs rows and columns, got {rows} x {columns}");
        ensure!(
            window_len.is_multiple_of(BLOCKS),
            "a window must be {BLOCKS} blocks, got {window_len} items"
        );
        let block_len = window_len / BLOCKS;
        let laws = laws(&task, u64::from(rows), release)?;
        Ok(Self { task, parameters, block_len, suffix_len: block_len / 2, laws })
    }

    /// Bytes of the counters, sealed and open.
    pub fn sketch_bytes(&self) -> u64 {
        let bytes = match self.parameters.release {
            Release::PerBlock => BYTES_PER_COUNTER,
            // Of every block, the open one, their sum and what was released of it.
            Release::PerWindow => 4 * (BLOCKS + 3),
        };
        bytes * u64::from(self.parameters.rows) * u64::from(self.parameters.columns)
    }

    pub fn claim(&self) -> Claim {
        Claim::Pure(self.task.epsilon)
    }

    pub fn start(&self, mut noise: Noise) -> Result<Box<dyn Baseline>, EntropyError> {
        let Parameters { rows, columns, .. } = self.parameters;
        let columns = Columns::draw(rows as usize, columns, &mut noise.generator()?);
        Ok(match self.laws {
            Laws::PerBlock { full, suffix } => {
                Box::new(PerBlock::new(self.clone(), columns, [full, suffix], noise))
            }
            Laws::PerWindow(law) => Box::new(PerWindow::new(self.clone(), columns, law, noise)),
        })
    }

    /// How far the open block has come.
    fn offset(&self, position: u64) -> u64 {
        position % self.block_len
    }

    /// The open block is not used. Once it is half full, only the second half of the oldest block counts.
    fn cover(&self, position: u64) -> Cover {
        let (end, offset) = (position / self.block_len, self.offset(position));
        let first = end.saturating_sub(BLOCKS);
        let is_cut = BLOCKS <= end && 0 < offset && self.block_len - self.suffix_len <= offset;
        if is_cut {
            Cover { suffix: Some(first), full: first + 1..end }
        } else {
            Cover { suffix: None, full: first..end }
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { rows, columns, combine, release } = self.parameters;
        write!(f, "{rows} rows, {columns} columns, {combine:?}, {release:?}")
    }
}

fn laws(task: &Task, rows: u64, release: Release) -> Result<Laws> {
    Ok(match release {
        Release::PerBlock => {
            let part = |(numerator, denominator)| task.part(numerator, denominator);
            let (full, suffix) = (part(FULL_PART)?, part(SUFFIX_PART)?);
            task.ensure_covers(&[full, suffix])?;
            Laws::PerBlock { full: laplace(2 * rows, full)?, suffix: laplace(2 * rows, suffix)? }
        }
        Release::PerWindow => {
            let cost = task.part(1, BLOCKS)?;
            task.ensure_covers(&[cost; BLOCKS as usize])?;
            Laws::PerWindow(laplace(2 * rows, cost)?)
        }
    })
}

/// The smallest counter of the item's cells.
fn min_row(columns: &Columns, item: u64, count: impl Fn(usize) -> i64) -> f64 {
    columns.of(item).map(count).min().expect("a sketch has at least one row") as f64
}

/// The sketches of a block.
struct Block {
    full: Box<[i32]>,
    suffix: Box<[i32]>,
}

struct PerBlock {
    plan: Plan,
    columns: Columns,
    full_table: Table,
    suffix_table: Table,
    open: Block,
    sealed: VecDeque<Block>,
    position: u64,
    noise: Noise,
}

impl PerBlock {
    fn new(plan: Plan, columns: Columns, [full, suffix]: [Law; 2], noise: Noise) -> Self {
        let (full_table, suffix_table) = (Table::new(full), Table::new(suffix));
        let open = empty_block(&columns);
        Self { plan, columns, full_table, suffix_table, open, sealed: VecDeque::new(), position: 0, noise }
    }

    fn count(&mut self, items: &[u64]) {
        let in_suffix = self.plan.block_len - self.plan.suffix_len <= self.plan.offset(self.position);
        for cell in items.iter().flat_map(|&item| self.columns.of(item)) {
            self.open.full[cell] += 1;
            if in_suffix {
                self.open.suffix[cell] += 1;
            }
        }
    }

    fn seal(&mut self) -> Result<(), EntropyError> {
        let mut generator = self.noise.generator()?;
        let mut block = std::mem::replace(&mut self.open, empty_block(&self.columns));
        self.full_table.add_to(&mut block.full, &mut generator);
        self.suffix_table.add_to(&mut block.suffix, &mut generator);
        self.sealed.push_back(block);
        if BLOCKS < self.sealed.len() as u64 {
            self.sealed.pop_front();
        }
        Ok(())
    }

    /// The sealed arrays that cover the window.
    fn cover(&self) -> impl Iterator<Item = &[i32]> {
        let Cover { suffix, full } = self.plan.cover(self.position);
        let first = self.position / self.plan.block_len - self.sealed.len() as u64;
        let block = move |index: u64| &self.sealed[(index - first) as usize];
        let suffix = suffix.map(move |index| &*block(index).suffix);
        suffix.into_iter().chain(full.map(move |index| &*block(index).full))
    }

    fn sums(&self) -> Vec<i64> {
        let mut sums = vec![0; self.columns.cells()];
        for cells in self.cover() {
            sums.iter_mut().zip(cells).for_each(|(sum, &cell)| *sum += i64::from(cell));
        }
        sums
    }
}

fn empty_block(columns: &Columns) -> Block {
    let cells = || vec![0; columns.cells()].into_boxed_slice();
    Block { full: cells(), suffix: cells() }
}

impl Baseline for PerBlock {
    fn insert(&mut self, mut items: &[u64]) -> Result<(), EntropyError> {
        self.plan.task.check(items);
        while !items.is_empty() {
            let offset = self.plan.offset(self.position);
            let cut = self.plan.block_len - self.plan.suffix_len;
            let room = if offset < cut { cut - offset } else { self.plan.block_len - offset };
            let (part, rest) = items.split_at(items.len().min(room as usize));
            self.count(part);
            self.position += part.len() as u64;
            if self.plan.offset(self.position) == 0 {
                self.seal()?;
            }
            items = rest;
        }
        Ok(())
    }

    fn frequency(&self, item: u64) -> f64 {
        match self.plan.parameters.combine {
            Combine::MinOfSums => {
                min_row(&self.columns, item, |cell| self.cover().map(|cells| i64::from(cells[cell])).sum())
            }
            Combine::SumOfMins => {
                self.cover().map(|cells| min_row(&self.columns, item, |cell| cells[cell].into())).sum()
            }
        }
    }

    fn estimates(&self) -> Vec<f64> {
        let items = 0..self.plan.task.domain_len as u64;
        match self.plan.parameters.combine {
            Combine::MinOfSums => {
                let sums = self.sums();
                items.map(|item| min_row(&self.columns, item, |cell| sums[cell])).collect()
            }
            Combine::SumOfMins => items.map(|item| self.frequency(item)).collect(),
        }
    }

    fn resident_bytes(&self) -> u64 {
        let block = size_of::<Block>() + 2 * self.columns.cells() * size_of::<i32>();
        let tables = Table::bytes(self.full_table.law()) + Table::bytes(self.suffix_table.law());
        (block * (self.sealed.len() + 1) + tables + self.columns.bytes()) as u64
    }
}

struct PerWindow {
    plan: Plan,
    columns: Columns,
    table: Table,
    /// Exact, secret: the open block, the last blocks, and the sum of those.
    open: Vec<i32>,
    blocks: VecDeque<Vec<i32>>,
    sum: Vec<i32>,
    released: Vec<i32>,
    position: u64,
    noise: Noise,
}

impl PerWindow {
    fn new(plan: Plan, columns: Columns, law: Law, noise: Noise) -> Self {
        let cells = || vec![0; columns.cells()];
        let (open, sum, released) = (cells(), cells(), cells());
        let table = Table::new(law);
        Self { plan, columns, table, open, blocks: VecDeque::new(), sum, released, position: 0, noise }
    }

    fn release(&mut self) -> Result<(), EntropyError> {
        // First, since without noise nothing may be released.
        let mut generator = self.noise.generator()?;
        self.sum.iter_mut().zip(&self.open).for_each(|(sum, cell)| *sum += cell);
        let empty = vec![0; self.open.len()];
        self.blocks.push_back(std::mem::replace(&mut self.open, empty));
        if BLOCKS < self.blocks.len() as u64 {
            let oldest = self.blocks.pop_front().expect("there are more than 100 blocks");
            self.sum.iter_mut().zip(&oldest).for_each(|(sum, cell)| *sum -= cell);
        }
        self.released.copy_from_slice(&self.sum);
        self.table.add_to(&mut self.released, &mut generator);
        Ok(())
    }
}

impl Baseline for PerWindow {
    fn insert(&mut self, mut items: &[u64]) -> Result<(), EntropyError> {
        self.plan.task.check(items);
        while !items.is_empty() {
            let (part, rest) = split_at_end(items, self.position, self.plan.block_len);
            part.iter().flat_map(|&item| self.columns.of(item)).for_each(|cell| self.open[cell] += 1);
            self.position += part.len() as u64;
            if self.plan.offset(self.position) == 0 {
                self.release()?;
            }
            items = rest;
        }
        Ok(())
    }

    fn frequency(&self, item: u64) -> f64 {
        min_row(&self.columns, item, |cell| self.released[cell].into())
    }

    fn estimates(&self) -> Vec<f64> {
        (0..self.plan.task.domain_len as u64).map(|item| self.frequency(item)).collect()
    }

    fn resident_bytes(&self) -> u64 {
        let arrays =
            (self.blocks.len() + 3) * (self.columns.cells() * size_of::<i32>() + size_of::<Vec<i32>>());
        (arrays + Table::bytes(self.table.law()) + self.columns.bytes()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::audit::{Trials, check_uncorrelated, check_variance, reveals};
    use crate::baseline::budget::task;
    use crate::baseline::columns::injective;
    use crate::baseline::model::{counts, stream};

    fn shape(rows: u32, columns: u32) -> Parameters {
        Parameters { rows, columns, combine: Combine::MinOfSums, release: Release::PerBlock }
    }

    fn plan(window_len: u64, domain_len: usize, parameters: Parameters) -> Plan {
        Plan::new(task(window_len, domain_len, 1.0), parameters).expect("a plan")
    }

    fn per_block(plan: &Plan, columns: Columns, noise: Noise) -> PerBlock {
        let Laws::PerBlock { full, suffix } = plan.laws else { panic!("a plan per block") };
        PerBlock::new(plan.clone(), columns, [full, suffix], noise)
    }

    /// The positions that a cover holds.
    fn covered(plan: &Plan, position: u64) -> Range<usize> {
        let Cover { suffix, full } = plan.cover(position);
        let start = match suffix {
            Some(index) => (index + 1) * plan.block_len - plan.suffix_len,
            None => full.start * plan.block_len,
        };
        start as usize..(full.end * plan.block_len) as usize
    }

    #[test]
    fn windows_are_covered_as_in_the_vectors() {
        let plan = plan(1000, 5, shape(2, 3));
        assert_eq!((plan.block_len, plan.suffix_len), (10, 5));
        for (position, suffix, full, positions) in [
            (9, None, 0..0, 0..0),
            (1234, None, 23..123, 230..1230),
            (1237, Some(23), 24..123, 235..1230),
            (1240, None, 24..124, 240..1240),
        ] {
            assert_eq!(plan.cover(position), Cover { suffix, full });
            assert_eq!(covered(&plan, position), positions);
        }
        for position in 1000..3000 {
            let wanted = if 5 <= position % 10 { 995 } else { 1000 };
            assert_eq!(covered(&plan, position).len(), wanted);
        }
    }

    #[test]
    fn without_noise_and_collisions_the_cover_is_exact() {
        let items = stream(1500, 5, 1);
        for combine in [Combine::MinOfSums, Combine::SumOfMins] {
            let plan = plan(300, 5, Parameters { combine, ..shape(2, 500) });
            let mut method = per_block(&plan, injective(2, 500, 5), Noise::off());
            for t in 1..=items.len() {
                method.insert(&items[t - 1..t]).expect("no entropy needed");
                let window = &items[covered(&plan, t as u64)];
                let wanted = counts(window, 5);
                assert_eq!(method.estimates(), wanted);
                assert_eq!(method.frequency(3), wanted[3]);
            }
        }
    }

    #[test]
    fn without_noise_nothing_is_underestimated() {
        let items = stream(2500, 50, 2);
        for combine in [Combine::MinOfSums, Combine::SumOfMins] {
            let plan = plan(1000, 50, Parameters { combine, ..shape(3, 8) });
            let columns = Columns::draw(3, 8, &mut Noise::seeded(1).generator().expect("seeded"));
            let mut method = per_block(&plan, columns, Noise::off());
            for part in items.chunks(7) {
                method.insert(part).expect("no entropy needed");
                let window = &items[covered(&plan, method.position)];
                let counts = counts(window, 50);
                for (item, estimate) in (0..).zip(method.estimates()) {
                    assert!(counts[item as usize] <= estimate);
                    assert_eq!(estimate, method.frequency(item));
                }
            }
        }
    }

    #[test]
    fn per_window_releases_cover_whole_blocks() {
        let items = stream(1000, 5, 3);
        let plan = plan(300, 5, Parameters { release: Release::PerWindow, ..shape(2, 500) });
        let Laws::PerWindow(law) = plan.laws else { panic!("a plan per window") };
        assert_eq!(law, laplace(400, plan.task.part(1, 1).expect("fits")).expect("fits"));
        let mut method = PerWindow::new(plan, injective(2, 500, 5), law, Noise::off());
        for t in 1..=items.len() {
            method.insert(&items[t - 1..t]).expect("no entropy needed");
            let end = t / 3 * 3;
            let window = &items[end.saturating_sub(300)..end];
            assert_eq!(method.estimates(), counts(window, 5));
        }
    }

    #[test]
    fn counters_have_the_noise_of_their_part_and_blocks_are_independent() {
        let plan = plan(1000, 5, shape(2, 3000));
        let columns = Columns::draw(2, 3000, &mut Noise::seeded(1).generator().expect("seeded"));
        let mut method = per_block(&plan, columns, Noise::seeded(2));
        method.insert(&[0; 40]).expect("seeded");
        let counted: Vec<usize> = method.columns.of(0).collect();
        let free = |cells: &[i32]| -> Vec<f64> {
            (0..cells.len()).filter(|cell| !counted.contains(cell)).map(|cell| cells[cell].into()).collect()
        };
        let blocks: Vec<_> =
            method.sealed.iter().map(|block| (free(&block.full), free(&block.suffix))).collect();
        let full: Vec<f64> = blocks.iter().flat_map(|block| block.0.clone()).collect();
        let suffix: Vec<f64> = blocks.iter().flat_map(|block| block.1.clone()).collect();
        assert!((method.full_table.law().variance() - 44.1).abs() < 0.05);
        check_variance(&full, method.full_table.law().variance(), 6.0);
        check_variance(&suffix, method.suffix_table.law().variance(), 6.0);
        check_uncorrelated(&full, &suffix);
        check_uncorrelated(&blocks[0].0, &blocks[1].0);
    }

    #[test]
    fn answers_change_only_when_the_cover_does() {
        let items = stream(1500, 20, 4);
        let mut method = plan(1000, 20, shape(2, 10)).start(Noise::seeded(1)).expect("seeded");
        let mut before = method.estimates();
        for (t, item) in (1..).zip(&items) {
            method.insert(&[*item]).expect("seeded");
            let after = method.estimates();
            assert_eq!(after, method.estimates());
            let turns = t % 10 == 0 || 1000 <= t && t % 10 == 5;
            assert_eq!(after != before, turns, "at {t}");
            before = after;
        }
    }

    /// Both sketches of one block of eight items whose last item differs, sealed again and again.
    fn audited(full: Law, suffix: Law) -> Trials {
        let plan = plan(800, 2, shape(1, 100));
        let columns = injective(1, 100, 2);
        let cells: Vec<usize> = (0..2).map(|item| columns.cell(0, item)).collect();
        let mut method = PerBlock::new(plan, columns, [full, suffix], Noise::seeded(5));
        Trials::run(100_000, |side| {
            method.insert(&[0; 7]).expect("seeded");
            method.insert(&[side.of(0, 1)]).expect("seeded");
            let block = method.sealed.back().expect("a block is complete");
            let released =
                [block.full[cells[0]], block.full[cells[1]], block.suffix[cells[0]], block.suffix[cells[1]]];
            reveals(&released, &[8, 0, 4, 0], &[7, 1, 3, 1])
        })
    }

    #[test]
    fn a_sealed_block_costs_epsilon_and_less_noise_is_caught() {
        let plan = plan(800, 2, shape(1, 100));
        let Laws::PerBlock { full, suffix } = plan.laws else { panic!("a plan per block") };
        audited(full, suffix).check_costs(1.0);
        let halved = laplace(1, plan.task.part(17, 20).expect("fits")).expect("fits");
        audited(halved, suffix).check_leaks(1.0);
        // The noise of the whole of epsilon on each sketch costs twice as much as there is.
        let whole = laplace(2, plan.task.part(1, 1).expect("fits")).expect("fits");
        audited(whole, whole).check_leaks(1.0);
    }

    #[test]
    fn noise_redrawn_at_each_question_is_caught() {
        let law = laplace(2, task(800, 2, 1.0).part(1, 1).expect("fits")).expect("fits");
        let table = Table::new(law);
        let mut generator = Noise::seeded(6).generator().expect("seeded");
        let redrawn = Trials::run(5_000, |side| {
            let mut answers = [side.of(8, 7); 20];
            table.add_to(&mut answers, &mut generator);
            20 * 8 <= answers.iter().sum::<i32>()
        });
        redrawn.check_leaks(1.0);
    }
}
