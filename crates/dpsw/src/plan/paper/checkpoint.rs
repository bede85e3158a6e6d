//! Where the prefixes and suffixes of a substream end. The paper's 1-based indices are translated here.

use std::ops::Range;

use crate::ratio::Ratio;

/// The lengths at which the paper's recursion keeps a checkpoint, longest first, in grid units:
/// I\[1\] = units and I\[k+1\] = min(I\[k\] - 1, max(1, ⌈(1 - α) I\[k\]⌉)) until 1.
pub fn checkpoints(units: u64, alpha: Ratio) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(units), move |&last| {
        // With a small α rounding up would stay at the same length.
        (1 < last).then(|| shrink_length(last, alpha).clamp(1, last - 1))
    })
}

/// ⌈(1 - α) length⌉ in integers.
fn shrink_length(length: u64, alpha: Ratio) -> u64 {
    let rest = u128::from(alpha.denominator() - alpha.numerator());
    let product = rest * u128::from(length);
    product.div_ceil(u128::from(alpha.denominator())) as u64
}

/// The role of a range in its substream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// All of it.
    Whole,
    /// A part of it, for keys that are cut more finely.
    Slice,
    /// From its start to a checkpoint; kept until the substream is complete.
    Prefix,
    /// From a checkpoint to its end.
    Suffix,
}

/// A range of a substream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) role: Role,
    /// The positions it covers, counted from the start of its substream.
    pub(crate) offsets: Range<u64>,
    /// The index of its checkpoint; 0 is the whole.
    pub(crate) checkpoint: usize,
}

/// The ranges of a substream with these checkpoint lengths: the whole, then prefix and suffix of each further length.
pub(crate) fn cut_ranges(lengths: &[u64]) -> Vec<Span> {
    let whole = lengths[0];
    let mut spans = vec![Span { role: Role::Whole, offsets: 0..whole, checkpoint: 0 }];
    for (checkpoint, &length) in lengths.iter().enumerate().skip(1) {
        spans.push(Span { role: Role::Prefix, offsets: 0..length, checkpoint });
        spans.push(Span { role: Role::Suffix, offsets: whole - length..whole, checkpoint });
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines 2-6 of Algorithm 2, word for word, on 1-based lists.
    fn literal(units: u64, alpha: Ratio) -> Vec<u64> {
        let mut list: Vec<u64> = Vec::new();
        for i in (1..=units).rev() {
            list.push(i);
            let mut j = 1;
            while j + 2 <= list.len() {
                let keeps = |k: usize| {
                    let left = u128::from(list[k - 1]) * u128::from(alpha.denominator());
                    let rest = u128::from(alpha.denominator() - alpha.numerator());
                    rest * u128::from(list[j - 1]) <= left
                };
                if let Some(k) = (j + 1..=list.len()).rev().find(|&k| keeps(k)) {
                    list.drain(j..k - 1);
                }
                j += 1;
            }
        }
        list
    }

    #[test]
    fn the_closed_form_equals_the_loop_of_algorithm_2() {
        for alpha in [0.1, 0.25, 0.5, 0.6, 0.75, 0.9, 0.99] {
            let alpha = Ratio::from_decimal(alpha).expect("a ratio");
            for units in 1..90 {
                let lengths: Vec<u64> = checkpoints(units, alpha).collect();
                assert_eq!(lengths, literal(units, alpha), "{units} units, alpha {alpha}");
            }
        }
    }

    #[track_caller]
    fn check_count(alpha: f64, count: usize) {
        let alpha = Ratio::from_decimal(alpha).expect("a ratio");
        assert_eq!(checkpoints(10, alpha).count(), count, "alpha {alpha}");
    }

    #[test]
    fn ten_units_give_the_counts_of_the_paper() {
        let alpha = Ratio::from_decimal(0.75).expect("a ratio");
        assert!(checkpoints(10, alpha).eq([10, 3, 1]));
        assert_eq!(checkpoints(100_000, alpha).count(), 10);
        check_count(0.9, 2);
        check_count(0.5, 5);
        check_count(0.25, 8);
        check_count(0.1, 10);
    }

    #[test]
    fn comparisons_are_exact() {
        // 0.01 * 1000 exceeds 10 in floating point.
        let alpha = Ratio::from_decimal(0.99).expect("a ratio");
        assert!(checkpoints(1000, alpha).eq([1000, 10, 1]));
    }
}
