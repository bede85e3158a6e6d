//! The slices of one key.

use crate::view::tuned::weights::Slice;

/// The slices of one key, oldest first, with prefix sums of what they hold.
///
/// Slices are named by their index among all that are sealed, which every method is given again: keys share them.
#[derive(Debug)]
pub(crate) struct KeySeries {
    slices: Vec<u32>,
    /// What all before each slice hold, and what all hold.
    sums: Vec<f64>,
    /// From how many slices the next one is predicted.
    pub(crate) span: u32,
}

impl KeySeries {
    pub(crate) fn new() -> Self {
        Self { slices: Vec::new(), sums: vec![0.0], span: 1 }
    }

    pub(crate) fn push(&mut self, slice: u32, count: f64) {
        self.slices.push(slice);
        self.sums.push(self.total() + count);
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.slices.shrink_to_fit();
        self.sums.shrink_to_fit();
    }

    pub(crate) fn len(&self) -> usize {
        self.slices.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    pub(crate) fn slices<'a>(
        &'a self,
        all: &'a [Slice],
    ) -> impl DoubleEndedIterator<Item = &'a Slice> + ExactSizeIterator {
        self.slices.iter().map(|&slice| &all[slice as usize])
    }

    pub(crate) fn newest_slice<'a>(&self, all: &'a [Slice]) -> Option<&'a Slice> {
        self.slices.last().map(|&slice| &all[slice as usize])
    }

    /// Where the oldest slice begins.
    pub(crate) fn start(&self, all: &[Slice]) -> u64 {
        self.slices.first().map_or(0, |&slice| all[slice as usize].span.start)
    }

    pub(crate) fn count_of(&self, index: usize) -> f64 {
        self.sums[index + 1] - self.sums[index]
    }

    pub(crate) fn counts(&self) -> Vec<f64> {
        (0..self.len()).map(|index| self.count_of(index)).collect()
    }

    pub(crate) fn total(&self) -> f64 {
        self.sums[self.sums.len() - 1]
    }

    /// What the slices hold up to a position: of a slice that it cuts, a share.
    pub(crate) fn count_until(&self, position: u64, all: &[Slice]) -> f64 {
        let next = self.slices.partition_point(|&slice| all[slice as usize].span.end <= position);
        let cut = self.slices.get(next).map(|&slice| &all[slice as usize]);
        // Items are taken to come evenly inside a slice.
        match cut.filter(|slice| slice.span.start < position) {
            Some(cut) => self.sums[next] + self.count_of(next) * cut.in_slices(position - cut.span.start),
            None => self.sums[next],
        }
    }

    /// What the next slice will hold, by so many before it.
    pub(crate) fn predict_next(&self, span: u32, all: &[Slice]) -> f64 {
        let Some(newest) = self.newest_slice(all) else { return 0.0 };
        let start = newest.start_of_last(span).max(self.start(all));
        (self.total() - self.count_until(start, all)) / newest.in_slices(newest.span.end - start)
    }
}
