//! A window from whole substreams alone: the oldest one counts by the share of it that is inside, and what runs since
//! the last seal is predicted from the newest one.

use std::ops::Range;
use std::sync::Arc;

use crate::plan::misfit::Edges;
use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;

/// How much of each sealed substream a window takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    /// Index of the substream and its weight, oldest first.
    pub(crate) parts: Vec<(usize, f64)>,
    /// The part of the window that is sealed.
    pub(crate) span: Range<u64>,
    edges: Edges,
}

/// The index of the whole sketch among the planned ranges.
pub(crate) const WHOLE: usize = 0;

/// The indices of the oldest and the newest substream of a window.
pub(crate) type Ends = Option<(usize, usize)>;

impl Weights {
    pub(crate) fn new(substreams: &[Arc<SealedSubstream>], plan: &Plan, window: &Range<u64>) -> Self {
        let len = plan.substream_len();
        let complete = substreams.iter().take_while(|substream| substream.sketch(WHOLE).is_some());
        let bounds: Vec<Range<u64>> = complete.map(|s| s.number * len..(s.number + 1) * len).collect();
        let overlap = |range: &Range<u64>| {
            range.end.min(window.end).saturating_sub(range.start.max(window.start)) as f64 / len as f64
        };
        let inside = bounds.iter().map(overlap).enumerate().filter(|(_, weight)| 0.0 < *weight);
        let mut parts: Vec<(usize, f64)> = inside.collect();
        let expired = parts.first().map_or(0.0, |(_, weight)| 1.0 - weight.min(1.0));
        let sealed = bounds.last().map_or(window.start, |last| last.end);
        let newest_end = parts.last().map_or(window.end, |(last, _)| bounds[*last].end);
        let later = newest_end.saturating_sub(window.end) as f64 / len as f64;
        let span = parts.first().map_or(window.end, |(first, _)| bounds[*first].start.max(window.start));
        let span = span..sealed.clamp(span, window.end);
        let ahead = window.end.saturating_sub(sealed.max(window.start)) as f64 / len as f64;
        if let (true, Some(newest)) = (0.0 < ahead, bounds.len().checked_sub(1)) {
            match parts.last_mut().filter(|(index, _)| *index == newest) {
                Some((_, weight)) => *weight += ahead,
                None => parts.push((newest, ahead)),
            }
        }
        Self { parts, span, edges: Edges { ahead, expired, later } }
    }

    pub(crate) fn ends(&self) -> Ends {
        Some((self.parts.first()?.0, self.parts.last()?.0))
    }

    /// The weights of the oldest and the newest substream; those between count in full. A single one is the newest.
    pub(crate) fn outer(&self) -> [f64; 2] {
        match self.parts[..] {
            [] => [0.0, 0.0],
            [(_, only)] => [0.0, only],
            [(_, oldest), .., (_, newest)] => [oldest, newest],
        }
    }

    /// The variance that the edges add for an item with this count and this drift from substream to substream.
    pub(crate) fn misfit_variance(&self, count: f64, drift: f64) -> f64 {
        let total: f64 = self.parts.iter().map(|(_, weight)| weight).sum();
        let per_substream = count.max(0.0) / total.max(1.0);
        per_substream * self.edges.sampling() + drift * self.edges.walk()
    }
}
