//! A tree of blocks over the stream, and how a window is covered by complete ones.

use std::ops::Range;

/// Blocks of `leaf_len · 2^level` positions, for levels 0 to `top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) leaf_len: u64,
    pub(super) top: u32,
    pub(super) window_len: u64,
}

/// The block `index · len .. (index + 1) · len` of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) level: u32,
    pub(super) index: u64,
}

impl Tree {
    pub(super) fn block_len(&self, level: u32) -> u64 {
        self.leaf_len << level
    }

    /// The window that complete leaves can cover: it lags by up to a leaf.
    pub(super) fn covered(&self, position: u64) -> Range<u64> {
        let end = position / self.leaf_len * self.leaf_len;
        let start = end.saturating_sub(self.window_len).next_multiple_of(self.leaf_len);
        start..end
    }

    /// The largest complete blocks that make up the covered window, oldest first.
    pub(super) fn cover(&self, position: u64) -> Vec<Block> {
        let covered = self.covered(position);
        let (mut leaf, end) = (covered.start / self.leaf_len, covered.end / self.leaf_len);
        let mut blocks = Vec::new();
        while leaf < end {
            let fits = |level: &u32| leaf.is_multiple_of(1 << level) && leaf + (1 << level) <= end;
            let level = (0..=self.top).rev().find(fits).expect("a leaf always fits");
            blocks.push(Block { level, index: leaf >> level });
            leaf += 1 << level;
        }
        blocks
    }

    /// The first block of a level that can still be in a cover.
    pub(super) fn first_live(&self, level: u32, position: u64) -> u64 {
        self.covered(position).start.div_ceil(self.block_len(level))
    }
}

/// The items that complete the running block of `len` items or come before its end, and the rest.
pub(super) fn split_at_end(items: &[u64], position: u64, len: u64) -> (&[u64], &[u64]) {
    let room = len - position % len;
    items.split_at(items.len().min(room as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_cover(tree: Tree, position: u64, wanted: &[(u32, u64)]) {
        let blocks: Vec<_> = tree.cover(position).iter().map(|block| (block.level, block.index)).collect();
        assert_eq!(blocks, wanted);
    }

    #[test]
    fn windows_are_covered_as_in_the_vectors() {
        let tree = Tree { leaf_len: 10, top: 3, window_len: 160 };
        assert_eq!(tree.covered(237), 70..230);
        check_cover(tree, 237, &[(0, 7), (3, 1), (2, 4), (1, 10), (0, 22)]);
        let tree = Tree { leaf_len: 2, top: 3, window_len: 16 };
        check_cover(tree, 21, &[(1, 1), (2, 1), (1, 4)]);
        check_cover(tree, 13, &[(2, 0), (1, 2)]);
        check_cover(tree, 1, &[]);
        let tree = Tree { leaf_len: 9375, top: 6, window_len: 1_000_000 };
        check_cover(tree, 1_234_567, &[(0, 25), (1, 13), (2, 7), (5, 1), (6, 1), (1, 64), (0, 130)]);
    }

    #[test]
    fn a_cover_is_the_covered_window_in_live_and_complete_blocks() {
        for (leaf_len, top, window_len) in [(1, 0, 5), (3, 2, 20), (4, 3, 33), (10, 3, 160), (7, 5, 100)] {
            let tree = Tree { leaf_len, top, window_len };
            for position in 0..4 * window_len {
                let covered = tree.covered(position);
                let mut end = covered.start;
                for Block { level, index } in tree.cover(position) {
                    assert_eq!(index * tree.block_len(level), end);
                    assert!(tree.first_live(level, position) <= index);
                    end += tree.block_len(level);
                }
                assert_eq!(end, covered.end);
                assert!(position - covered.end < leaf_len);
                if window_len <= covered.end {
                    assert_eq!(covered.end - covered.start, window_len / leaf_len * leaf_len);
                }
            }
        }
    }
}
