//! A tree of blocks with one released list of items and counts each, which two baselines share.

use std::collections::VecDeque;

use dpsw::Noise;
use dpsw::error::EntropyError;
use dpsw::noise::Generator;

use super::Baseline;
use super::budget::Task;
use super::dyadic::{Block, Tree, split_at_end};
use super::misra_gries::Summary;

/// Which items are listed as heavy hitters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing {
    /// Those whose estimate reaches the threshold.
    #[default]
    Threshold,
    /// Every item that a block of the cover kept, which is how the paper reads it.
    AllKeys,
}

/// A released item of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) item: u32,
    pub(super) count: i32,
}

/// How a complete block is released.
pub(super) trait Seal: Send {
    /// The kept items in ascending order. `cells` is scratch space, one cell per item of the domain.
    fn seal(&self, summary: &Summary, cells: &mut [i32], generator: &mut Generator) -> Box<[Kept]>;

    /// Heap bytes of its samplers.
    fn bytes(&self) -> usize;
}

/// One level: an open block, and the sealed blocks that a window can still need.
pub(super) struct Level<S> {
    open: Summary,
    seal: S,
    sealed: VecDeque<Box<[Kept]>>,
    /// The index of the first sealed block.
    first: u64,
}

impl<S> Level<S> {
    pub(super) fn new(open: Summary, seal: S) -> Self {
        Self { open, seal, sealed: VecDeque::new(), first: 0 }
    }
}

/// A method on a tree of blocks.
pub(super) struct Hierarchy<S> {
    pub(super) task: Task,
    pub(super) tree: Tree,
    /// From the leaves up.
    pub(super) levels: Vec<Level<S>>,
    pub(super) listing: Listing,
    pub(super) noise: Noise,
    position: u64,
    cells: Vec<i32>,
}

impl<S: Seal> Hierarchy<S> {
    pub(super) fn new(task: Task, tree: Tree, levels: Vec<Level<S>>, listing: Listing, noise: Noise) -> Self {
        let cells = vec![0; task.domain_len];
        Self { task, tree, levels, listing, noise, position: 0, cells }
    }

    /// The released lists of the cover.
    pub(super) fn cover(&self) -> impl Iterator<Item = &[Kept]> {
        self.tree.cover(self.position).into_iter().map(|Block { level, index }| {
            let level = &self.levels[level as usize];
            &*level.sealed[(index - level.first) as usize]
        })
    }

    fn seal_complete(&mut self) -> Result<(), EntropyError> {
        for (number, level) in (0..).zip(&mut self.levels) {
            if self.position.is_multiple_of(self.tree.block_len(number)) {
                let mut generator = self.noise.generator()?;
                level.sealed.push_back(level.seal.seal(&level.open, &mut self.cells, &mut generator));
                level.open.clear();
            }
            let expired = self.tree.first_live(number, self.position).saturating_sub(level.first);
            let expired = (expired as usize).min(level.sealed.len());
            level.sealed.drain(..expired);
            level.first += expired as u64;
        }
        self.cells.fill(0);
        Ok(())
    }
}

impl<S: Seal> Baseline for Hierarchy<S> {
    fn insert(&mut self, mut items: &[u64]) -> Result<(), EntropyError> {
        self.task.check(items);
        while !items.is_empty() {
            let (leaf, rest) = split_at_end(items, self.position, self.tree.leaf_len);
            for level in &mut self.levels {
                leaf.iter().for_each(|&item| level.open.add(item as u32));
            }
            self.position += leaf.len() as u64;
            if self.position.is_multiple_of(self.tree.leaf_len) {
                self.seal_complete()?;
            }
            items = rest;
        }
        Ok(())
    }

    fn frequency(&self, item: u64) -> f64 {
        let count = |kept: &[Kept]| match kept.binary_search_by_key(&item, |kept| kept.item.into()) {
            Ok(place) => f64::from(kept[place].count),
            Err(_) => 0.0,
        };
        self.cover().map(count).sum()
    }

    fn estimates(&self) -> Vec<f64> {
        let mut estimates = vec![0.0; self.task.domain_len];
        for kept in self.cover().flatten() {
            estimates[kept.item as usize] += f64::from(kept.count);
        }
        estimates
    }

    fn heavy_hitters(&self, least: f64) -> Vec<u64> {
        let mut items: Vec<u64> = self.cover().flatten().map(|kept| kept.item.into()).collect();
        items.sort_unstable();
        items.dedup();
        if self.listing == Listing::Threshold {
            items.retain(|&item| least <= self.frequency(item));
        }
        items
    }

    fn resident_bytes(&self) -> u64 {
        let of_level = |level: &Level<S>| {
            let sealed: usize = level.sealed.iter().map(|kept| size_of_val(&**kept)).sum();
            let list = level.sealed.capacity() * size_of::<Box<[Kept]>>();
            level.open.bytes() + level.seal.bytes() + sealed + list
        };
        let levels: usize = self.levels.iter().map(of_level).sum();
        (levels + self.cells.capacity() * size_of::<i32>()) as u64
    }
}

/// The items of the largest cells in ascending order; of equal cells the smaller item is larger.
pub(super) fn largest(cells: &[i32], len: usize) -> Vec<u32> {
    let mut items: Vec<u32> = (0..cells.len() as u32).collect();
    if 0 < len && len < items.len() {
        items.select_nth_unstable_by_key(len - 1, |&item| (std::cmp::Reverse(cells[item as usize]), item));
    }
    items.truncate(len);
    items.sort_unstable();
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_cells_win_and_ties_go_to_the_smaller_item() {
        let cells = [3, -1, 7, 3, 3, 0];
        for (len, wanted) in
            [(0, &[][..]), (1, &[2]), (2, &[0, 2]), (3, &[0, 2, 3]), (9, &[0, 1, 2, 3, 4, 5])]
        {
            assert_eq!(largest(&cells, len), wanted);
        }
    }
}
