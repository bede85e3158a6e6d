//! A window from whole substreams alone: the oldest one counts by the share of it that is inside, and what runs since
//! the last seal is predicted from the newest one.

use std::ops::Range;
use std::sync::Arc;

use crate::plan::predict::edges::{Misfit, Piece};
pub(crate) use crate::plan::range::WHOLE;
use crate::plan::settings::Window;
use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;

/// A stretch of the stream with a counter of a key, as far as the stream reaches into it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slice {
    /// Its index among the slices that are sealed.
    pub(crate) index: usize,
    /// The index of its substream, and its range in there.
    pub(crate) substream: usize,
    pub(crate) range: usize,
    /// Its positions.
    pub(crate) span: Range<u64>,
    /// The part of a planned substream that it is.
    pub(crate) length: f64,
    /// Whether it is as long as planned: it is shorter where the stream begins or ends inside it.
    pub(crate) is_whole: bool,
    /// The part of what is sealed of its substream that it is, for most keys.
    pub(crate) part: f64,
    /// How often it counts in the window.
    pub(crate) weight: f64,
}

impl Slice {
    /// The sealed slices of most keys that the stream reaches into, oldest first, each without weight.
    pub(crate) fn all_sealed(
        substreams: &[Arc<SealedSubstream>],
        plan: &Plan,
        stream: &Range<u64>,
    ) -> Vec<Self> {
        let mut slices: Vec<Self> = Vec::new();
        for (index, substream) in substreams.iter().enumerate() {
            let first = slices.len();
            let ranges = plan.ranges_of_most(substream.levels().base_level());
            for range in ranges.take_while(|&range| substream.sketch(range).is_some()) {
                let slice = Self::new((index, substream.number), range, plan, stream);
                slices.extend(slice.map(|slice| Self { index: slices.len(), ..slice }));
            }
            // Totals are kept per substream: each of its slices stands for an equal part of it.
            let part = 1.0 / (slices.len() - first) as f64;
            for slice in &mut slices[first..] {
                slice.part = part;
            }
        }
        slices
    }

    /// The range of a substream, of which the index and the number are given; `None` if the stream does not reach into it.
    pub(crate) fn new(
        (substream, number): (usize, u64),
        range: usize,
        plan: &Plan,
        stream: &Range<u64>,
    ) -> Option<Self> {
        let origin = number * plan.substream_len();
        let offsets = plan.ranges()[range].offsets();
        let planned = origin + offsets.start..origin + offsets.end;
        let span = planned.start.max(stream.start)..planned.end.min(stream.end);
        let length = span.end.saturating_sub(span.start) as f64 / plan.substream_len() as f64;
        if span.is_empty() {
            return None;
        }
        let is_whole = span == planned;
        Some(Self { index: 0, substream, range, span, length, is_whole, part: 1.0, weight: 0.0 })
    }

    /// Where so many slices of this length begin that end with it.
    pub(crate) fn start_of_last(&self, slices: u32) -> u64 {
        let len = self.span.end - self.span.start;
        self.span.end.saturating_sub(len.saturating_mul(slices.into()))
    }

    /// So many positions, in slices of this length.
    pub(crate) fn in_slices(&self, positions: u64) -> f64 {
        positions as f64 / (self.span.end - self.span.start) as f64
    }

    /// The same, counted by the share of it that a window covers.
    fn weigh_inside(&self, window: &Range<u64>) -> Option<Self> {
        let weight = self.share_covered(window);
        (0.0 < weight).then(|| Self { weight, ..self.clone() })
    }

    /// The share of it that a window covers.
    fn share_covered(&self, window: &Range<u64>) -> f64 {
        self.in_slices(self.span.end.min(window.end).saturating_sub(self.span.start.max(window.start)))
    }

    fn is_touched(&self, window: &Range<u64>) -> bool {
        self.span.start < window.end && window.start < self.span.end
    }

    fn is_inside(&self, window: &Range<u64>) -> bool {
        window.start <= self.span.start && self.span.end <= window.end
    }

    /// Its pieces inside and outside a window, oldest first.
    fn cut_by(&self, window: &Range<u64>, unit: f64) -> [Piece; 3] {
        let start = window.start.clamp(self.span.start, self.span.end);
        let end = window.end.clamp(start, self.span.end);
        [(start - self.span.start, false), (end - start, true), (self.span.end - end, false)]
            .map(|(len, is_inside)| Piece { len: len as f64 / unit, weight: self.weight, is_inside })
    }
}

/// The weight of each sealed slice in a window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    /// All that are read, oldest first.
    pub(crate) slices: Vec<Slice>,
    ends: Ends,
    parts: Parts,
    predicted: Predicted,
    /// All by which changes are judged: a whole window of them, whatever is asked.
    pub(crate) seen: Vec<Slice>,
    /// The part of the window that is sealed.
    pub(crate) span: Range<u64>,
    pub(crate) edges: Edges,
    /// What is certain whatever the order of the items is.
    pub(crate) any_order: AnyOrder,
}

/// The variance that the edges of a window add to an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Edges {
    pub(crate) edge: Misfit,
    /// The variance by chance that they add for each item of a rare key.
    pub(crate) chance_per_item: f64,
    /// Items of the window, where every position holds one.
    pub(crate) items: Option<f64>,
}

impl Edges {
    /// The variance by chance that they add for an item with this count.
    pub(crate) fn chance_variance(&self, count: f64) -> f64 {
        let share = self.items.map_or(0.0, |items| (count / items).clamp(0.0, 1.0));
        self.chance_per_item * count.max(0.0) * (1.0 - share)
    }

    /// The variance that they add for an item that changes like this, by clumps where these explain more than a walk;
    /// below 0 if it changes less than by chance.
    pub(crate) fn unrest_variance(&self, changes: KeyDrift) -> f64 {
        let walk = changes.walk * self.edge.walk;
        let clumps = changes.real_clumps() * self.edge.sampling;
        // Both explain the same changes: adding them up would count these twice.
        if walk.max(0.0) < clumps { clumps } else { walk }
    }
}

/// The part of a window that is certain whatever the order of the items inside its substreams is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnyOrder {
    /// How often the oldest and the newest slice count at least: once if all of them lies inside.
    pub(crate) least: [f64; 2],
    /// How often they count at most: once if any of them does.
    pub(crate) most: [f64; 2],
    /// The items that may lie beyond what is sealed.
    pub(crate) beyond: f64,
    /// The items of the window, where that is known.
    pub(crate) items: f64,
}

impl AnyOrder {
    fn new(slices: &[Slice], window: &Range<u64>, ahead: u64, is_time: bool) -> Self {
        let ends = outer_slices(slices);
        let is_inside = ends.map(|slice| slice.is_some_and(|slice| slice.is_inside(window)));
        let is_touched = ends.map(|slice| slice.is_some_and(|slice| slice.is_touched(window)));
        // Nothing bounds how many items come in a tick.
        let items = |positions: u64| if is_time { f64::INFINITY } else { positions as f64 };
        Self {
            least: is_inside.map(|is_counted| f64::from(u8::from(is_counted))),
            most: is_touched.map(|is_counted| f64::from(u8::from(is_counted))),
            beyond: if ahead == 0 { 0.0 } else { items(ahead) },
            items: items(window.end - window.start),
        }
    }
}

/// The oldest and the newest of some slices. A single one is the newest.
fn outer_slices(slices: &[Slice]) -> [Option<&Slice>; 2] {
    match slices {
        [] => [None, None],
        [only] => [None, Some(only)],
        [oldest, .., newest] => [Some(oldest), Some(newest)],
    }
}

/// The indices of the oldest and the newest slice of a window.
pub(crate) type Ends = Option<(usize, usize)>;

impl Weights {
    /// From the sealed slices, oldest first. What is not sealed is predicted from so many slices, each as long as the newest.
    pub(crate) fn new(sealed: &[Slice], plan: &Plan, window: &Range<u64>, span: u32) -> Self {
        let sealed_end = sealed.last().map_or(window.start, |last| last.span.end);
        let ahead = window.end.saturating_sub(sealed_end.max(window.start));
        let mut read: Vec<Slice> = sealed.iter().filter_map(|slice| slice.weigh_inside(window)).collect();
        let start = read.first().map_or(window.end, |first| first.span.start.max(window.start));
        // A window that ended before the last seal is all sealed: nothing is predicted.
        let newest = sealed.last().filter(|_| sealed_end <= window.end);
        // A window after the last seal is a prediction alone: the newest slice is read for it, without weight of its own.
        if read.is_empty() && 0 < ahead {
            read.extend(newest.cloned());
        }
        let predicted = newest.map(|newest| Predicted::new(sealed, newest, ahead, span)).unwrap_or_default();
        let slices: Vec<Slice> =
            sealed.iter().filter_map(|slice| predicted.weigh_slice(slice, window)).collect();
        let unit = plan.substream_len() as f64;
        let edge = Misfit::of_pieces(&cut_pieces(&slices, sealed_end, window, unit));
        let len: f64 = slices.iter().map(|slice| slice.weight * slice.length).sum();
        Self {
            seen: slices_seen(sealed, &read, plan),
            edges: Edges {
                edge,
                chance_per_item: if len == 0.0 { 0.0 } else { edge.sampling / len },
                items: match plan.settings().window {
                    Window::Items(_) => Some((window.end - window.start) as f64),
                    Window::Time(_) => None,
                },
            },
            any_order: AnyOrder::new(&read, window, ahead, plan.settings().window.time().is_some()),
            slices,
            ends: read.first().zip(read.last()).map(|(oldest, newest)| (oldest.index, newest.index)),
            parts: Parts {
                outer: outer_slices(&read).map(|slice| slice.map_or(0.0, |slice| slice.weight)),
                ahead: predicted.slices,
            },
            predicted,
            span: start..sealed_end.clamp(start, window.end),
        }
    }

    pub(crate) fn ends(&self) -> Ends {
        self.ends
    }

    /// How much of the ends of the window counts.
    pub(crate) fn parts(&self) -> Parts {
        self.parts
    }

    /// How much of a slice a predicted slice of the newest one's length takes.
    pub(crate) fn predicted_share(&self, slice: &Slice) -> f64 {
        self.predicted.share_of(slice)
    }
}

/// The changes of an item's counts from substream to substream, beyond noise and chance.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct KeyDrift {
    /// The variance with which its rate walks over a substream, if it walks; below 0 if it changes less than by chance.
    pub(crate) walk: f64,
    /// The variance of its count in a substream, if it comes in clumps: an unbiased estimate.
    pub(crate) excess: f64,
    /// The deviation of the excess by noise and chance alone.
    pub(crate) deviation: f64,
    /// How often it comes in a substream, on average.
    pub(crate) rate: f64,
}

impl KeyDrift {
    /// The part of the excess that is taken for real.
    pub(crate) fn real_clumps(&self) -> f64 {
        self.excess - self.deviation
    }
}

/// The parts of the ends of a window that count; all between counts in full.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Parts {
    /// The shares of the oldest and the newest slice that lie inside. A single one is the newest.
    pub(crate) outer: [f64; 2],
    /// How often a predicted slice counts.
    pub(crate) ahead: f64,
}

/// The unsealed part of a window, and what it is predicted from.
#[derive(Debug, Clone, PartialEq, Default)]
struct Predicted {
    /// How many slices of the newest one's length run.
    slices: f64,
    /// The positions that it is predicted from, and how many slices they are.
    from: Range<u64>,
    span: f64,
}

impl Predicted {
    fn new(sealed: &[Slice], newest: &Slice, ahead: u64, span: u32) -> Self {
        let oldest = sealed.first().unwrap_or(newest);
        let start = newest.start_of_last(span).max(oldest.span.start);
        Self {
            slices: newest.in_slices(ahead),
            from: start..newest.span.end,
            span: newest.in_slices(newest.span.end - start),
        }
    }

    /// The share of a slice that one predicted slice takes.
    fn share_of(&self, slice: &Slice) -> f64 {
        if self.from.is_empty() { 0.0 } else { slice.share_covered(&self.from) / self.span }
    }

    /// A slice with its weight in a window, if it has one.
    fn weigh_slice(&self, slice: &Slice, window: &Range<u64>) -> Option<Slice> {
        let weight = slice.share_covered(window) + self.slices * self.share_of(slice);
        (0.0 < weight).then(|| Slice { weight, ..slice.clone() })
    }
}

/// The last of the sealed slices that a window reaches, over a whole window, or more if more are read.
fn slices_seen(sealed: &[Slice], read: &[Slice], plan: &Plan) -> Vec<Slice> {
    let (Some(oldest), Some(newest)) = (read.first(), read.last()) else { return Vec::new() };
    let window = plan.settings().window.len().next_multiple_of(plan.substream_len());
    let until_newest = sealed.iter().filter(|slice| slice.index <= newest.index);
    let seen = until_newest
        .filter(|slice| oldest.index <= slice.index || newest.span.start < slice.span.start + window);
    seen.cloned().collect()
}

/// The window and all that is read for it, piece by piece: the substreams, then what is not sealed.
fn cut_pieces(slices: &[Slice], sealed: u64, window: &Range<u64>, unit: f64) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = slices.iter().flat_map(|slice| slice.cut_by(window, unit)).collect();
    let skipped = window.start.saturating_sub(sealed);
    let ahead = window.end.saturating_sub(sealed.max(window.start));
    for (len, is_inside) in [(skipped, false), (ahead, true)] {
        pieces.push(Piece { len: len as f64 / unit, weight: 0.0, is_inside });
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::item::hash::FingerprintKey;
    use crate::item::keys::Keys;
    use crate::item::mapping::{Columns, Mapping};
    use crate::noise::generator::Noise;
    use crate::plan::settings::{CounterLayout, Method, Settings, TunedMethod, Unit, Window};
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
            method: Some(Method::Tuned(TunedMethod { substreams: 8, counters, ..TunedMethod::default() })),
            retention: 1,
        };
        Plan::new(settings).expect("a valid plan")
    }

    fn substream(plan: &Plan, number: u64) -> Arc<SealedSubstream> {
        let shape = plan.shape();
        let mapping =
            Mapping { shape, fingerprint_key: FingerprintKey::new(7), columns: Columns::Range, pinned: None };
        let whole = SealedSketch::of_released(shape, &[0, 0], Some(LEN), plan.width());
        Arc::new(SealedSubstream::from_parts(number, mapping, vec![(WHOLE, Arc::new(whole))]))
    }

    /// How a window is read when these substreams are sealed.
    fn read(sealed: Range<u64>, window: Range<u64>) -> Weights {
        read_of(0..u64::MAX, sealed, window)
    }

    /// The same of a stream that begins and is over there.
    fn read_of(stream: Range<u64>, sealed: Range<u64>, window: Range<u64>) -> Weights {
        let plan = plan();
        let substreams: Vec<_> = sealed.map(|number| substream(&plan, number)).collect();
        Weights::new(&Slice::all_sealed(&substreams, &plan, &stream), &plan, &window, 1)
    }

    fn parts(weights: &Weights) -> Vec<(usize, f64)> {
        weights.slices.iter().map(|slice| (slice.index, slice.weight)).collect()
    }

    #[track_caller]
    fn check(window: Range<u64>, wanted: &[(usize, f64)], span: Range<u64>) {
        check_read(&read(2..8, window.clone()), window, wanted, span);
    }

    #[track_caller]
    fn check_read(read: &Weights, window: Range<u64>, wanted: &[(usize, f64)], span: Range<u64>) {
        let parts = parts(read);
        let close = |(got, wanted): (&(usize, f64), &(usize, f64))| {
            got.0 == wanted.0 && (got.1 - wanted.1).abs() < 1e-12
        };
        let is_same = parts.len() == wanted.len() && parts.iter().zip(wanted).all(close);
        assert!(is_same, "{window:?}: {parts:?}, not {wanted:?}");
        assert_eq!(read.span, span, "{window:?}");
    }

    #[test]
    fn weights_add_up_to_the_window() {
        for (start, end) in (0..95).flat_map(|start| (start + 1..=95).map(move |end| (start, end))) {
            let parts = parts(&read(0..8, start..end));
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
    fn a_stream_that_begins_inside_a_substream_counts_it_once_and_predicts_by_its_length() {
        let check = |sealed: Range<u64>, window: Range<u64>, wanted: &[(usize, f64)], span: Range<u64>| {
            check_read(&read_of(24..u64::MAX, sealed, window.clone()), window, wanted, span);
        };
        check(2..4, 24..40, &[(0, 1.0), (1, 1.0)], 24..40);
        check(2..4, 27..40, &[(0, 0.5), (1, 1.0)], 27..40);
        check(2..3, 24..33, &[(0, 1.5)], 24..30);
        check(2..4, 24..43, &[(0, 1.0), (1, 1.3)], 24..40);
    }

    #[test]
    fn a_stream_that_is_over_inside_a_substream_counts_it_once_and_predicts_nothing() {
        let check = |window: Range<u64>, wanted: &[(usize, f64)], span: Range<u64>| {
            check_read(&read_of(0..36, 0..4, window.clone()), window, wanted, span);
        };
        check(0..36, &[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)], 0..36);
        check(15..36, &[(1, 0.5), (2, 1.0), (3, 1.0)], 15..36);
        check(15..33, &[(1, 0.5), (2, 1.0), (3, 0.5)], 15..33);
        check(33..36, &[(3, 0.5)], 33..36);
        assert_eq!(read_of(0..36, 0..4, 0..36).edges.edge, Misfit::default());
        let lone = read_of(24..27, 2..3, 24..27);
        assert_eq!((parts(&lone), lone.edges.edge), (vec![(0, 1.0)], Misfit::default()));
    }

    #[test]
    fn a_running_substream_weighs_nothing() {
        let plan = plan();
        let whole = substream(&plan, 0);
        let running = Arc::new(SealedSubstream::new(1, whole.mapping.clone()));
        let weights =
            Weights::new(&Slice::all_sealed(&[whole, running], &plan, &(0..16)), &plan, &(5..16), 1);
        assert_eq!((parts(&weights), weights.span), (vec![(0, 1.1)], 5..10));
    }

    #[test]
    fn a_lone_substream_counts_once() {
        assert_eq!(read(0..8, 12..15).parts().outer, [0.0, 0.3]);
        assert_eq!(read(0..8, 15..40).parts().outer, [0.5, 1.0]);
        assert_eq!(read(0..0, 0..5).parts().outer, [0.0, 0.0]);
    }

    /// The prediction of errors takes the sum of squared weights of a window of W substreams for W + 2x².
    #[test]
    fn the_squares_of_the_weights_are_those_of_the_prediction() {
        for running in 0..LEN {
            let parts = parts(&read(0..9, 10 + running..90 + running));
            let squares: f64 = parts.iter().map(|(_, weight)| weight * weight).sum();
            let x = running as f64 / LEN as f64;
            assert!((squares - (8.0 + 2.0 * x * x)).abs() < 1e-9, "{running}: {parts:?}");
        }
    }

    /// Positions hold the key with probability p = 1/4. The mean of 20,000 squares has a relative deviation of at most
    /// sqrt(3 / 20,000) = 1.2 %, for the short windows, whose errors have few values, of 2 %; six deviations and more are
    /// exceeded by chance with probability 2e-9 per case.
    #[test]
    fn the_misfit_of_a_window_is_that_of_a_simulated_stream() {
        const RUNS: usize = 20_000;
        let mut generator = Noise::seeded(3).generator().expect("seeded");
        let windows = [13..80, 10..77, 14..75, 13..83, 15..89, 73..86, 43..45, 41..49, 82..86, 84..86];
        let whole = windows.map(|window| (0..90, 8, window));
        let cut = [(4..90, 8, 6..80), (4..90, 1, 4..15), (4..77, 8, 23..77), (4..77, 8, 23..74)];
        for (stream, sealed, window) in whole.into_iter().chain(cut) {
            let weights = read_of(stream, 0..sealed, window.clone());
            let mut error = || {
                let is_key: [bool; 90] = std::array::from_fn(|_| generator.next_u64() >> 62 == 0);
                let count = |range: Range<u64>| {
                    is_key[range.start as usize..range.end as usize].iter().filter(|is_key| **is_key).count()
                };
                let part = |slice: &Slice| slice.weight * count(slice.span.clone()) as f64;
                weights.slices.iter().map(part).sum::<f64>() - count(window.clone()) as f64
            };
            let measured = (0..RUNS).map(|_| error().powi(2)).sum::<f64>() / RUNS as f64;
            let expected = 0.25 * (window.end - window.start) as f64;
            let claimed = weights.edges.chance_variance(expected);
            assert!((measured / claimed - 1.0).abs() < 0.12, "{window:?}: {measured}, {claimed} claimed");
        }
    }

    #[test]
    fn a_negative_estimate_adds_no_chance() {
        assert_eq!(read(0..8, 13..86).edges.chance_variance(-5.0), 0.0);
    }

    #[test]
    fn changes_count_by_what_explains_more() {
        let weights = read(0..8, 13..86);
        let Misfit { sampling, walk } = weights.edges.edge;
        let unrest =
            |walk, excess| weights.edges.unrest_variance(KeyDrift { walk, excess, ..KeyDrift::default() });
        assert_eq!((unrest(-1.0, -1.0), unrest(2.0, 0.0)), (-walk, 2.0 * walk));
        assert_eq!((unrest(0.0, 2.0), unrest(1.0, 50.0)), (2.0 * sampling, 50.0 * sampling));
    }

    #[test]
    fn drift_is_judged_by_a_whole_window_of_substreams() {
        for (sealed, window, seen) in
            [(0..9, 80..90, 1..9), (0..9, 5..85, 0..9), (0..4, 35..40, 0..4), (0..9, 42..45, 0..5)]
        {
            let places: Vec<usize> =
                read(sealed, window.clone()).seen.iter().map(|slice| slice.index).collect();
            assert_eq!(places, seen.collect::<Vec<_>>(), "{window:?}");
        }
    }

    /// A rate that walks with variance 1 per substream, of which 0.6 is counted before 0.3 is predicted from it: the
    /// integrals over both have variances 0.6³/3 and 0.3³/3.
    #[test]
    fn the_drift_at_a_shorter_slice_is_that_of_its_length() {
        let walk = read_of(4..90, 0..1, 4..13).edges.edge.walk;
        let wanted = (0.3_f64.powi(3) + 0.5_f64.powi(2) * 0.6_f64.powi(3)) / 3.0;
        assert!((walk - wanted).abs() < 1e-12, "{walk}, not {wanted}");
    }
}
