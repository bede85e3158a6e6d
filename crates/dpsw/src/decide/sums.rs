//! Sums over the substreams of a window that are carried on from seal to seal.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;

/// A substream of the window, and what was worked out of it.
#[derive(Debug, Clone)]
pub(crate) struct SummedSubstream<T> {
    pub(crate) substream: Arc<SealedSubstream>,
    pub(crate) details: T,
}

/// One sum for each key over the substreams of a window.
///
/// The sums are integers: taking one substream off and adding another gives exactly what adding all of them gives. So whoever
/// has followed a stream and whoever has just loaded its bytes decide and answer the same.
#[derive(Debug, Clone)]
pub(crate) struct WindowSums<T = ()> {
    window: VecDeque<SummedSubstream<T>>,
    sums: Vec<i64>,
}

impl<T> Default for WindowSums<T> {
    fn default() -> Self {
        Self { window: VecDeque::new(), sums: Vec::new() }
    }
}

impl WindowSums {
    /// Sums that were made of these substreams.
    pub(crate) fn of_substreams(window: &[Arc<SealedSubstream>], sums: Vec<i64>) -> Self {
        let window = window.iter().map(Arc::clone);
        Self { window: window.map(|substream| SummedSubstream { substream, details: () }).collect(), sums }
    }

    pub(crate) fn into_sums(self) -> Vec<i64> {
        self.sums
    }
}

impl<T> WindowSums<T> {
    pub(crate) fn sums(&self) -> &[i64] {
        &self.sums
    }

    /// The substreams that are summed up, oldest first.
    pub(crate) fn window(&self) -> &VecDeque<SummedSubstream<T>> {
        &self.window
    }

    /// Starts anew at the next slide.
    pub(crate) fn forget(&mut self) {
        self.window.clear();
        self.sums.clear();
    }

    /// Moves on to this window, with sums for so many keys.
    ///
    /// `add` gets what leaves the window with -1 and what comes into it with 1, and adds each that many times to the sums.
    pub(crate) fn slide_to(
        &mut self,
        window: &[Arc<SealedSubstream>],
        keys: usize,
        details: impl Fn(&SealedSubstream) -> T,
        add: impl FnOnce(&mut [(i64, SummedSubstream<T>)], &mut [i64]),
    ) {
        let mut changes = self.take_out_old(window);
        self.sums.resize(keys, 0);
        for substream in &window[self.window.len()..] {
            let details = details(substream);
            changes.push((1, SummedSubstream { substream: Arc::clone(substream), details }));
        }
        add(&mut changes, &mut self.sums);
        self.window.extend(changes.into_iter().filter(|(times, _)| 0 < *times).map(|(_, summed)| summed));
    }

    /// Takes out what is not in this window. If the rest is not how the window begins, everything is forgotten.
    fn take_out_old(&mut self, window: &[Arc<SealedSubstream>]) -> Vec<(i64, SummedSubstream<T>)> {
        let mut left = Vec::new();
        while let Some(oldest) = self.window.front() {
            if window.first().is_some_and(|first| Arc::ptr_eq(first, &oldest.substream)) {
                break;
            }
            left.extend(self.window.pop_front().map(|oldest| (-1, oldest)));
        }
        if self.window.is_empty() || !self.is_start_of(window) {
            self.forget();
            left.clear();
        }
        left
    }

    /// Whether a window begins with what is summed up. The same number is not enough: after a restore it may be sealed anew.
    fn is_start_of(&self, window: &[Arc<SealedSubstream>]) -> bool {
        let mut pairs = self.window.iter().zip(window);
        self.window.len() <= window.len()
            && pairs.all(|(known, sealed)| Arc::ptr_eq(&known.substream, sealed))
    }
}

/// The complete substreams of the newest window, oldest first.
pub(crate) fn newest_window<'a>(
    substreams: &'a [Arc<SealedSubstream>],
    plan: &Plan,
) -> &'a [Arc<SealedSubstream>] {
    // Prefixes of a running substream are released too, but would make its keys look rare.
    let complete = substreams.iter().take_while(|substream| substream.is_complete()).count();
    let complete = &substreams[..complete];
    &complete[complete.len().saturating_sub(plan.substreams_per_window())..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::hash::FingerprintKey;
    use crate::item::mapping::{Columns, Mapping, Shape};

    fn substream(number: u64) -> Arc<SealedSubstream> {
        let mapping = Mapping {
            shape: Shape { rows: 1, columns: 3 },
            fingerprint_key: FingerprintKey::new(1),
            columns: Columns::Range,
            pinned: None,
        };
        Arc::new(SealedSubstream::new(number, mapping))
    }

    /// Adds the number of the substream to every sum, and counts how many were looked at.
    fn slide(sums: &mut WindowSums, window: &[Arc<SealedSubstream>]) -> usize {
        let mut looked_at = 0;
        sums.slide_to(
            window,
            3,
            |_| (),
            |changes, sums| {
                looked_at = changes.len();
                for (times, summed) in changes {
                    sums.iter_mut().for_each(|sum| *sum += *times * summed.substream.number as i64);
                }
            },
        );
        looked_at
    }

    #[test]
    fn sums_that_were_carried_on_are_those_of_the_window() {
        let all: Vec<_> = (1..=40).map(substream).collect();
        let mut sums = WindowSums::default();
        // Where the window begins and ends, and how many substreams had to be looked at: one that leaves and one that comes, or
        // all of a window that does not go on from the one before.
        for (window, looked_at) in [
            (0..1, 1),
            (0..5, 4),
            (1..6, 2),
            (1..6, 0),
            (3..6, 2),
            (3..9, 3),
            (20..25, 5),
            (0..5, 5),
            (0..0, 0),
            (4..6, 2),
        ] {
            let window = &all[window];
            assert_eq!(slide(&mut sums, window), looked_at, "{window:?}");
            let wanted: u64 = window.iter().map(|substream| substream.number).sum();
            assert!(window.is_empty() || sums.sums() == [wanted as i64; 3], "{:?}", sums.sums());
            assert_eq!(sums.window().len(), window.len());
        }
    }

    #[test]
    fn another_substream_of_the_same_number_is_not_taken_for_the_one_that_was_added() {
        let mut all: Vec<_> = (1..=5).map(substream).collect();
        let mut sums = WindowSums::default();
        slide(&mut sums, &all);
        all[3] = substream(4);
        assert_eq!(slide(&mut sums, &all), 5);
        assert_eq!(sums.sums(), [15; 3]);
    }
}
