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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::item::hash::FingerprintKey;
    use crate::item::keys::Keys;
    use crate::item::mapping::{Columns, Mapping};
    use crate::noise::generator::Noise;
    use crate::plan::settings::{CounterLayout, Method, NoiseChoice, Settings, TunedMethod, Unit, Window};
    use crate::privacy::parameters::Epsilon;
    use crate::sealed::sketch::SealedSketch;

    /// Substreams of ten items, eight in a window.
    const LEN: u64 = 10;

    fn plan() -> Plan {
        let counters = CounterLayout::Identity;
        let settings = Settings {
            window: Window::Items(8 * LEN),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(1.0).expect("in range"),
            delta: None,
            domain: Domain::Public(Keys::Range(2)),
            method: Some(Method::Tuned(TunedMethod { substreams: 8, counters, noise: NoiseChoice::Laplace })),
            retention: 1,
        };
        Plan::new(settings).expect("a valid plan")
    }

    fn substream(plan: &Plan, number: u64) -> Arc<SealedSubstream> {
        let shape = plan.shape();
        let mapping = Mapping { shape, fingerprint_key: FingerprintKey::new(7), columns: Columns::Range };
        let whole = SealedSketch::new(shape, &[0, 0], Some(LEN), plan.width());
        Arc::new(SealedSubstream::from_parts(number, mapping, vec![(WHOLE, Arc::new(whole))]))
    }

    /// How a window is read when these substreams are sealed.
    fn read(sealed: Range<u64>, window: Range<u64>) -> Weights {
        let plan = plan();
        let substreams: Vec<_> = sealed.map(|number| substream(&plan, number)).collect();
        Weights::new(&substreams, &plan, &window)
    }

    #[track_caller]
    fn check(window: Range<u64>, wanted: &[(usize, f64)], span: Range<u64>) {
        let read = read(2..8, window.clone());
        let close = |(got, wanted): (&(usize, f64), &(usize, f64))| {
            got.0 == wanted.0 && (got.1 - wanted.1).abs() < 1e-12
        };
        let is_same = read.parts.len() == wanted.len() && read.parts.iter().zip(wanted).all(close);
        assert!(is_same, "{window:?}: {:?}, not {wanted:?}", read.parts);
        assert_eq!(read.span, span, "{window:?}");
    }

    #[test]
    fn weights_add_up_to_the_window() {
        for (start, end) in (0..95).flat_map(|start| (start + 1..=95).map(move |end| (start, end))) {
            let parts = read(0..8, start..end).parts;
            let total: f64 = parts.iter().map(|(_, weight)| weight * LEN as f64).sum();
            assert!((total - (end - start) as f64).abs() < 1e-9, "{start}..{end}: {parts:?}");
        }
    }

    #[test]
    fn the_oldest_substream_counts_by_its_share_inside() {
        check(20..50, &[(0, 1.0), (1, 1.0), (2, 1.0)], 20..50);
        check(23..50, &[(0, 0.7), (1, 1.0), (2, 1.0)], 23..50);
        check(39..50, &[(1, 0.1), (2, 1.0)], 39..50);
    }

    #[test]
    fn what_runs_since_the_last_seal_is_predicted_from_the_newest_substream() {
        check(53..86, &[(3, 0.7), (4, 1.0), (5, 1.6)], 53..80);
        check(73..86, &[(5, 1.3)], 73..80);
        check(82..86, &[(5, 0.4)], 86..86);
    }

    #[test]
    fn a_window_that_ended_before_the_newest_seal_takes_nothing_that_came_later() {
        check(33..54, &[(1, 0.7), (2, 1.0), (3, 0.4)], 33..54);
    }

    #[test]
    fn a_window_inside_one_substream_takes_the_share_that_it_covers() {
        check(43..45, &[(2, 0.2)], 43..45);
        check(40..45, &[(2, 0.5)], 40..45);
        check(45..50, &[(2, 0.5)], 45..50);
    }

    #[test]
    fn a_window_before_all_that_is_kept_weighs_nothing() {
        check(0..20, &[], 20..20);
        check(13..23, &[(0, 0.3)], 20..23);
    }

    #[test]
    fn a_running_substream_weighs_nothing() {
        let plan = plan();
        let whole = substream(&plan, 0);
        let running = Arc::new(SealedSubstream::new(1, whole.mapping.clone()));
        let weights = Weights::new(&[whole, running], &plan, &(5..16));
        assert_eq!((weights.parts, weights.span), (vec![(0, 1.1)], 5..10));
    }

    #[test]
    fn a_lone_substream_counts_once() {
        assert_eq!(read(0..8, 12..15).outer(), [0.0, 0.3]);
        assert_eq!(read(0..8, 15..40).outer(), [0.5, 1.0]);
        assert_eq!(read(0..0, 0..5).outer(), [0.0, 0.0]);
    }

    /// The prediction of errors takes the sum of squared weights of a window of W substreams for W + 2x².
    #[test]
    fn the_squares_of_the_weights_are_those_of_the_prediction() {
        for running in 0..LEN {
            let parts = read(0..9, 10 + running..90 + running).parts;
            let squares: f64 = parts.iter().map(|(_, weight)| weight * weight).sum();
            let x = running as f64 / LEN as f64;
            assert!((squares - (8.0 + 2.0 * x * x)).abs() < 1e-9, "{running}: {parts:?}");
        }
    }

    /// Positions hold the key with probability p, so that a substream's count has variance 10 p (1 - p). Estimates take the
    /// expected counts as if they were Poisson, hence the factor 1 - p. The mean of 20,000 squares has a relative deviation
    /// of at most sqrt(3 / 20,000) = 1.2 %; six of them are exceeded by chance with probability 2e-9 per case.
    #[test]
    fn the_misfit_of_a_window_is_that_of_a_simulated_stream() {
        const RUNS: usize = 20_000;
        let mut generator = Noise::seeded(3).generator().expect("seeded");
        for window in [13..80, 10..77, 14..75, 13..83, 15..89, 73..86] {
            let weights = read(0..8, window.clone());
            let mut error = || {
                let is_key: [bool; 90] = std::array::from_fn(|_| generator.next_u64() >> 62 == 0);
                let count = |range: Range<u64>| {
                    is_key[range.start as usize..range.end as usize].iter().filter(|is_key| **is_key).count()
                };
                let part = |&(index, weight): &(usize, f64)| {
                    let start = index as u64 * LEN;
                    weight * count(start..start + LEN) as f64
                };
                weights.parts.iter().map(part).sum::<f64>() - count(window.clone()) as f64
            };
            let measured = (0..RUNS).map(|_| error().powi(2)).sum::<f64>() / RUNS as f64;
            let expected = 0.25 * (window.end - window.start) as f64;
            let claimed = 0.75 * weights.misfit_variance(expected, 0.0);
            assert!((measured / claimed - 1.0).abs() < 0.075, "{window:?}: {measured}, {claimed} claimed");
        }
    }

    #[test]
    fn a_negative_estimate_adds_drift_alone() {
        let weights = read(0..8, 13..86);
        assert_eq!(weights.misfit_variance(-5.0, 0.0), 0.0);
        let walk = Edges { ahead: 0.6, expired: 1.0 - 0.7, later: 0.0 }.walk();
        assert!((weights.misfit_variance(-5.0, 2.0) - 2.0 * walk).abs() < 1e-12);
    }
}
