//! How many nodes a key has in a substream: a frequent key is cut more finely than a rare one.
//!
//! On rung r a substream of a key is cut into 2^r nodes of equal length. The ranges of a plan are all nodes of all rungs:
//! the whole first, then the two halves, then the four quarters.

use std::ops::Range;

use crate::error::{PlanError, Quantity};
use crate::noise::law::Law;
use crate::plan::checkpoint::{Role, Span};
use crate::plan::limits::{RUNGS_MAX, check};
use crate::plan::settings::{CounterLayout, NoiseChoice, TunedMethod};

/// The relative variance per window by which rates are expected to walk, where nothing is known of them.
pub(crate) const WALK: f64 = 0.4;
/// What a walk adds to the variance of a count, at all phases on average.
const MEAN_WALK: f64 = 0.2056;

/// There is room for this part of the keys that a window can hold above a count, as Zipf's law has about it.
const MOST: f64 = 16.0;

/// Which counts are cut how finely.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PlannedRungs {
    /// The index of the first range with nodes: behind that of hashed counters, if there are some.
    start: usize,
    /// The variance of the noise on a counter.
    noise: f64,
    /// Of a window.
    substreams: f64,
    /// A key above the first r of these counts per window has the rung r.
    thresholds: Vec<f64>,
    /// The most keys of each rung from 1 on.
    most: Vec<usize>,
}

impl PlannedRungs {
    /// For windows of so many substreams and items.
    pub(crate) fn new(rungs: u32, substreams: u64, items: u64, keys: usize, law: Law) -> Self {
        let (noise, substreams) = (law.variance(), substreams as f64);
        let thresholds = vec![0.0; rungs as usize - 1];
        let planned = Self { start: 0, noise, substreams, thresholds, most: Vec::new() };
        let planned = planned.for_walk(WALK);
        let most = |count: &f64| ((items as f64 / (MOST * count)).ceil() as usize).clamp(1, keys);
        Self { most: planned.thresholds.iter().map(most).collect(), ..planned }
    }

    /// The same beside hashed counters.
    pub(crate) fn beside_hashed(self) -> Self {
        Self { start: 1, ..self }
    }

    /// The rung of a range with nodes; the first one for that of hashed counters.
    pub(crate) fn rung_of(&self, range: usize) -> u32 {
        (range.saturating_sub(self.start) + 1).ilog2()
    }

    /// The ranges of a rung, in time.
    pub(crate) fn ranges_of(&self, rung: u32) -> Range<usize> {
        self.start + (1 << rung) - 1..self.start + (1 << (rung + 1)) - 1
    }

    /// The same for rates that walk with this relative variance per window.
    pub(crate) fn for_walk(self, walk: f64) -> Self {
        let unit = unit(self.noise, walk);
        let threshold = |rung: usize| unit * (self.substreams * f64::from(1 << rung)).powi(2);
        let thresholds = (0..self.thresholds.len()).map(threshold).collect();
        Self { thresholds, ..self }
    }

    /// The count per window from which on two nodes are worth their noise in a window of one. In windows of more it grows
    /// with the square of how many.
    pub(crate) fn unit(&self) -> f64 {
        unit(self.noise, WALK)
    }

    /// The number of rungs.
    pub(crate) fn count(&self) -> u32 {
        self.thresholds.len() as u32 + 1
    }

    /// The rung of a key with this count per window.
    pub(crate) fn rung(&self, count: f64) -> u32 {
        self.thresholds.iter().take_while(|threshold| **threshold < count).count() as u32
    }

    /// The smallest count above the first rung; infinite if there is one rung alone.
    pub(crate) fn first(&self) -> f64 {
        self.thresholds.first().copied().unwrap_or(f64::INFINITY)
    }

    /// Bytes of the sealed nodes of so many substreams, beside one counter for each key in each of them, and of the places of
    /// their keys. In the first substream all keys are cut in two.
    pub(crate) fn bytes(&self, substreams: u64, keys: u64) -> u64 {
        let of_rung = |rung: u32| {
            let each = size_of::<u32>() + (size_of::<i16>() << rung);
            (self.most(rung) * each) as u64
        };
        let first = if self.count() == 1 { 0 } else { 2 * keys * size_of::<i16>() as u64 };
        substreams * (1..self.count()).map(of_rung).sum::<u64>() + first
    }

    /// The most keys of a rung from 1 on.
    pub(crate) fn most(&self, rung: u32) -> usize {
        self.most[rung as usize - 1]
    }
}

/// More nodes are worth their noise v from the root of drift f² + f / 2 = v on, for a substream in one node.
fn unit(noise: f64, walk: f64) -> f64 {
    let drift = 7.0 / 8.0 * MEAN_WALK * walk;
    2.0 * noise / (0.5 + (0.25 + 4.0 * drift * noise).sqrt())
}

/// All nodes of all rungs, the whole substream first.
pub(crate) fn spans(substream_len: u64, rungs: u32) -> Vec<Span> {
    let nodes = |rung: u32| {
        let len = substream_len >> rung;
        (0..1 << rung).map(move |part| (rung, part * len..(part + 1) * len))
    };
    let span = |(rung, offsets)| {
        let role = if rung == 0 { Role::Whole } else { Role::Node };
        Span { role, offsets, checkpoint: 0 }
    };
    (0..rungs).flat_map(nodes).map(span).collect()
}

/// The length of a substream of at least this length that can be cut into the nodes of all rungs.
///
/// # Errors
/// It is too short, or these counters or this noise have one rung alone.
pub(crate) fn cut_len(substream_len: u64, method: &TunedMethod) -> Result<u64, PlanError> {
    let most = RUNGS_MAX.min(substream_len.ilog2() + 1);
    check(Quantity::Rungs, method.rungs.into(), 1, most.into())?;
    let has_own = method.counters == CounterLayout::Identity || 0 < method.tracked;
    if 1 < method.rungs && !(has_own && method.noise == NoiseChoice::Laplace) {
        return Err(PlanError::RungsNeedOwnCounters);
    }
    Ok(substream_len.next_multiple_of(1 << (method.rungs - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Ratio;

    fn laplace(scale: u64) -> Law {
        Law::Laplace { scale: Ratio::new(scale, 1).expect("a ratio") }
    }

    #[test]
    fn thresholds_are_where_half_the_nodes_have_the_same_variance() {
        for (scale, wanted) in
            [(2, [752.0, 3_010.0, 12_038.0, 48_152.0]), (20, [10_201.0, 40_804.0, 163_216.0, 652_864.0])]
        {
            let law = laplace(scale);
            let planned = PlannedRungs::new(5, 10, 1_000_000, 25_600, law);
            for (rung, wanted) in (0..).zip(wanted) {
                let count = planned.thresholds[rung as usize];
                assert!((count / wanted - 1.0).abs() < 1e-3, "rung {rung}: {count}");
                assert_eq!((planned.rung(0.99 * count), planned.rung(1.01 * count)), (rung, rung + 1));
                let variance = |nodes: f64| {
                    law.variance() * nodes + count / nodes + MEAN_WALK * WALK * count * count / nodes.powi(3)
                };
                let nodes = 10.0 * f64::from(1 << rung);
                assert!((variance(nodes) / variance(2.0 * nodes) - 1.0).abs() < 1e-9, "rung {rung}");
            }
            assert!(planned.most(1) < 1_000 && 1 <= planned.most(4));
        }
        assert_eq!(PlannedRungs::new(1, 10, 1_000_000, 25_600, laplace(2)).rung(1e18), 0);
    }

    #[test]
    fn the_nodes_of_each_rung_cut_the_substream_evenly() {
        let spans = spans(80, 4);
        assert_eq!(spans.len(), 15);
        let own = PlannedRungs::new(4, 10, 800, 40, laplace(2));
        for (rungs, before) in [(own.clone(), 0), (own.beside_hashed(), 1)] {
            for rung in 0..4 {
                let ranges = rungs.ranges_of(rung);
                let nodes: Vec<_> =
                    ranges.clone().map(|range| spans[range - before].offsets.clone()).collect();
                let len = 80 >> rung;
                let wanted: Vec<_> = (0..1 << rung).map(|part| part * len..(part + 1) * len).collect();
                assert_eq!(nodes, wanted);
                assert!(ranges.into_iter().all(|range| rungs.rung_of(range) == rung));
            }
            assert_eq!(rungs.rung_of(0), 0);
        }
    }

    #[test]
    fn substreams_are_multiples_of_the_shortest_node() {
        let method =
            |rungs| TunedMethod { counters: CounterLayout::Identity, rungs, ..TunedMethod::default() };
        for (len, rungs, wanted) in [(100, 1, 100), (100, 4, 104), (81, 4, 88), (8, 4, 8)] {
            assert_eq!(cut_len(len, &method(rungs)), Ok(wanted));
        }
        for (len, rungs) in [(7, 4), (100, 0), (100_000, RUNGS_MAX + 1)] {
            assert!(
                matches!(cut_len(len, &method(rungs)), Err(PlanError::OutOfRange { .. })),
                "{len} {rungs}"
            );
        }
        let gaussian = TunedMethod { noise: NoiseChoice::Gaussian, ..method(2) };
        assert_eq!(cut_len(100, &gaussian), Err(PlanError::RungsNeedOwnCounters));
        assert_eq!(
            cut_len(100, &TunedMethod { rungs: 2, ..TunedMethod::default() }),
            Err(PlanError::RungsNeedOwnCounters)
        );
    }
}
