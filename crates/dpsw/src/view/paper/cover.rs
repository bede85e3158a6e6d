//! Which sealed ranges cover a window in the paper's method.

use std::ops::Range;

use crate::item::value::Item;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;

/// One sketch of a cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Number of the substream.
    pub(crate) substream: u64,
    /// Index of the planned range.
    pub(crate) range: usize,
}

/// The sketches whose ranges together come nearest to a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    pub(crate) parts: Vec<Part>,
    /// The positions that they cover; empty at the window's end if there are none.
    pub(crate) span: Range<u64>,
}

impl Released {
    /// Algorithm 3, lines 1-2, for any window: the nearest complete checkpoints.
    pub(crate) fn choose_cover(&self, plan: &Plan, stream: &Range<u64>, window: &Range<u64>) -> Cover {
        let len = plan.substream_len();
        let (first, last) = (window.start / len, window.end / len);
        let mut parts = Vec::new();
        if first < last {
            let oldest = self.substream(first).and_then(|s| s.range_from(plan, window.start - first * len));
            parts.extend(oldest.map(|range| Part { substream: first, range }));
            let numbers = first + 1..last;
            let whole = numbers
                .take_while(|number| self.substream(*number).is_some_and(SealedSubstream::is_complete));
            parts.extend(whole.map(|substream| Part { substream, range: WHOLE }));
        }
        // Where the stream ended early, a prefix that reaches beyond it holds all of it.
        let reach = stream.end.saturating_sub(last * len);
        let newest = self.substream(last).and_then(|s| s.range_until(plan, window.end - last * len, reach));
        let newest = newest.map(|range| Part { substream: last, range });
        parts.extend(newest.filter(|part| first < last || is_worth_taking(plan, stream, *part, window)));
        let span = span_of(plan, stream, &parts, window.end);
        Cover { parts, span }
    }

    /// The sum over the parts of a cover of the smallest counter of an item.
    pub(crate) fn sum_minima(&self, cover: &Cover, item: Item<'_>) -> f64 {
        let mut sum = 0;
        for part in &cover.parts {
            let (substream, sketch) = self.sketch_of(*part);
            sum += sketch.minimum_of(substream.mapping.cells(item));
        }
        sum as f64
    }

    /// How many items a part holds, exactly where that is public, else by its noisy counters; never negative.
    pub(crate) fn items_in(&self, part: Part) -> u64 {
        self.sketch_of(part).1.total().max(0) as u64
    }

    fn sketch_of(&self, part: Part) -> (&SealedSubstream, &SealedSketch) {
        let substream = self.substream(part.substream).expect("a cover names substreams that are kept");
        (substream, substream.sketch(part.range).expect("a cover names ranges that are readable"))
    }
}

/// The positions of a part, as far as the stream reaches into it.
pub(crate) fn positions_of(plan: &Plan, stream: &Range<u64>, part: Part) -> Range<u64> {
    let start = part.substream * plan.substream_len();
    let offsets = plan.ranges()[part.range].offsets();
    let positions = start + offsets.start..start + offsets.end;
    let start = positions.start.max(stream.start).min(positions.end);
    start..positions.end.min(stream.end).max(start)
}

/// The parts of a cover follow each other without a gap.
fn span_of(plan: &Plan, stream: &Range<u64>, parts: &[Part], end: u64) -> Range<u64> {
    match (parts.first(), parts.last()) {
        (Some(&first), Some(&last)) => {
            positions_of(plan, stream, first).start..positions_of(plan, stream, last).end
        }
        _ => end..end,
    }
}

/// Whether to take a prefix of the only substream that a window touches. The paper always does; for a window that was
/// made shorter, a prefix that starts before it must come nearer to it than no sketch at all.
fn is_worth_taking(plan: &Plan, stream: &Range<u64>, part: Part, window: &Range<u64>) -> bool {
    let len = window.end - window.start;
    len == plan.settings().window.len() || count_apart(&positions_of(plan, stream, part), window) < len
}

/// How many positions lie in one of the spans but not in both.
pub(crate) fn count_apart(covered: &Range<u64>, window: &Range<u64>) -> u64 {
    let both = covered.end.min(window.end).saturating_sub(covered.start.max(window.start));
    covered.end.saturating_sub(covered.start) + window.end.saturating_sub(window.start) - 2 * both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_one_span_but_not_in_both_are_misfits() {
        for (covered, wanted) in [
            (10..20, 0),
            (12..20, 2),
            (5..20, 5),
            (12..25, 7),
            (0..30, 20),
            (20..30, 20),
            (40..50, 20),
            (20..20, 10),
        ] {
            assert_eq!(count_apart(&covered, &(10..20)), wanted, "{covered:?}");
        }
    }
}
