//! Keys that are cut more finely than most: each has slices of its own.

use std::ops::Range;

use crate::noise::tail::Moments;
use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;
use crate::view::tuned::evidence::Evidence;
use crate::view::tuned::fit::Spread;
use crate::view::tuned::forecast::{ForecastCosts, is_jump};
use crate::view::tuned::series::KeySeries;
use crate::view::tuned::weights::{Slice, WHOLE, Weights};
use crate::view::tuned::window_model::{Answer, WindowModel};

/// Spans are judged by the slices of so many substreams.
const JUDGED_SUBSTREAMS: usize = 2;

/// The keys that have slices of their own: those that are cut more finely in some substream, or pinned there.
#[derive(Debug, Default)]
pub(crate) struct SeriesIndex {
    /// All slices that there are.
    slices: Vec<Slice>,
    series: Vec<KeySeries>,
    /// Their indices in the list of keys, ascending, and which of the series it is.
    listed: Vec<(u32, u32)>,
    /// The same by fingerprint, where keys are pinned.
    fingerprints: Vec<(u64, u32)>,
    /// How far hashed counters are off, by substream.
    hashed: Vec<Option<Spread>>,
}

impl SeriesIndex {
    /// Of keys that all have counters of their own.
    pub(crate) fn with_own_counters(evidence: Evidence<'_>) -> Self {
        let listed = evidence.substreams.iter().flat_map(|substream| substream.levels().listed_keys());
        let mut key_indices: Vec<u32> = listed.map(|(key_index, _)| key_index).collect();
        key_indices.sort_unstable();
        key_indices.dedup();
        let mut index = Self {
            series: key_indices.iter().map(|_| KeySeries::new()).collect(),
            listed: key_indices.into_iter().zip(0..).collect(),
            ..Self::default()
        };
        for (number, substream) in evidence.substreams.iter().enumerate() {
            let slices = index.slices_of(evidence, number, substream);
            index.add_substream(evidence, substream, &slices);
        }
        index.choose_spans(evidence);
        index
    }

    /// The sealed slices of a substream, by range.
    fn slices_of(
        &mut self,
        evidence: Evidence<'_>,
        index: usize,
        substream: &SealedSubstream,
    ) -> Vec<Option<u32>> {
        let mut slices = vec![None; evidence.plan.ranges().len()];
        for (range, _) in substream.sketches() {
            let slice = Slice::new((index, substream.number), *range, evidence.plan, evidence.stream);
            slices[*range] = slice.is_some().then_some(self.slices.len() as u32);
            self.slices.extend(slice);
        }
        slices
    }

    /// Of pinned keys, with the indices of those that are listed. Where one is not pinned, hashed counters hold it.
    pub(crate) fn with_pinned_keys(
        evidence: Evidence<'_>,
        listed: &[(u64, usize)],
        hashed: impl Fn(&Slice, u64) -> f64,
        spread: impl Fn(&Slice) -> Spread,
    ) -> Self {
        let mut fingerprints: Vec<u64> =
            evidence.pins.iter().map(|(fingerprint, _, _)| fingerprint).collect();
        // Pins are sorted by fingerprint; a key that was pinned twice has two of them side by side.
        fingerprints.dedup();
        let mut index = Self::default();
        let mut slices = Vec::new();
        for (number, substream) in evidence.substreams.iter().enumerate() {
            slices.push(index.slices_of(evidence, number, substream));
        }
        let mut wholes = vec![None; evidence.substreams.len()];
        for slice in evidence.slices() {
            let substream = slice.substream;
            wholes[substream] = Some(slice);
        }
        for fingerprint in fingerprints {
            let series = KeySeries::of_pinned_key(evidence, fingerprint, &slices, &wholes, &hashed);
            // Pins are decided ahead of what is sealed: such a key has nothing to be read from yet.
            if !series.is_empty() {
                index.fingerprints.push((fingerprint, index.series.len() as u32));
                index.series.push(series);
            }
        }
        index.hashed = wholes.iter().map(|slice| slice.as_ref().map(&spread)).collect();
        for &(fingerprint, key_index) in listed {
            index.listed.extend(index.rank_of(fingerprint).map(|rank| (key_index as u32, rank)));
        }
        index.listed.sort_unstable();
        index.choose_spans(evidence);
        index
    }

    /// Keys of the same level are predicted from as many slices.
    fn choose_spans(&mut self, evidence: Evidence<'_>) {
        let levels = evidence.plan.levels();
        let noise = evidence.plan.own_law().variance() * evidence.noises;
        let window = evidence.plan.settings().window.len();
        let mut costs = vec![ForecastCosts::default(); levels.count() as usize];
        for series in &self.series {
            let level = series.current_level(&self.slices, evidence.plan);
            costs[level as usize].judge_spans(
                series,
                &self.slices,
                JUDGED_SUBSTREAMS << level,
                noise,
                window,
            );
        }
        let spans: Vec<u32> = costs.iter().map(ForecastCosts::best_span).collect();
        for series in &mut self.series {
            series.shrink_to_fit();
            let span = spans[series.current_level(&self.slices, evidence.plan) as usize];
            let newest = series.len().checked_sub(1).map_or(0.0, |newest| series.count_of(newest));
            let is_jump = is_jump(newest, series.predict_next(span, &self.slices), noise, span.into());
            series.span = if is_jump { 1 } else { span };
        }
    }

    fn add_substream(&mut self, evidence: Evidence<'_>, substream: &SealedSubstream, slices: &[Option<u32>]) {
        let mut levels = vec![(substream.levels().base_level(), None); self.listed.len()];
        for (level, key_indices) in (1..).zip(substream.levels().finer_lists()) {
            for (cell, key_index) in key_indices.iter().enumerate() {
                let entry = self.listed.binary_search_by_key(key_index, |(listed, _)| *listed);
                levels[entry.expect("all that are listed have a series")] = (level, Some(cell));
            }
        }
        for (((key_index, _), series), (level, cell)) in self.listed.iter().zip(&mut self.series).zip(levels)
        {
            for range in evidence.plan.levels().ranges_of(level) {
                let Some((sketch, slice)) = substream.sketch(range).zip(slices[range]) else { continue };
                // Slices of the base level have a counter for every key, those of finer ones for their own keys alone.
                series.push(slice, sketch.cell(cell.unwrap_or(*key_index as usize)).into());
            }
        }
    }

    /// The slices of a key of the list, if they are its own.
    pub(crate) fn get(&self, key_index: usize) -> Option<&KeySeries> {
        let key_index = u32::try_from(key_index).ok()?;
        let entry = self.listed.binary_search_by_key(&key_index, |(listed, _)| *listed).ok()?;
        Some(&self.series[self.listed[entry].1 as usize])
    }

    fn rank_of(&self, fingerprint: u64) -> Option<u32> {
        let index = self.fingerprints.binary_search_by_key(&fingerprint, |(known, _)| *known).ok()?;
        Some(self.fingerprints[index].1)
    }

    /// The slices of a pinned key.
    pub(crate) fn get_pinned(&self, fingerprint: u64) -> Option<&KeySeries> {
        self.rank_of(fingerprint).map(|rank| &self.series[rank as usize])
    }

    /// All of them that are listed, by index of the key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &KeySeries)> {
        self.listed.iter().map(|&(key_index, rank)| (key_index as usize, &self.series[rank as usize]))
    }

    /// The estimate of a window: the same as [`answer_series`](Self::answer_series) gives.
    pub(crate) fn estimate_value(&self, series: &KeySeries, window: &Range<u64>) -> f64 {
        let Some(newest) = series.newest_slice(&self.slices) else { return 0.0 };
        let ahead = window.end.saturating_sub(newest.span.end.max(window.start));
        let sealed =
            series.count_until(window.end, &self.slices) - series.count_until(window.start, &self.slices);
        sealed + series.predict_next(series.span, &self.slices) * newest.in_slices(ahead)
    }

    /// The estimate of a window and its error.
    pub(crate) fn answer_series(
        &self,
        series: &KeySeries,
        plan: &Plan,
        noises: f64,
        window: &Range<u64>,
    ) -> Answer {
        let slices =
            series.slices(&self.slices).enumerate().map(|(index, slice)| Slice { index, ..slice.clone() });
        let weights = Weights::new(&slices.collect::<Vec<_>>(), plan, window, series.span);
        let law = Moments::of_draws(plan.own_law(), noises);
        let own = Spread { all: law, noise: law.variance };
        let model = WindowModel::of_own(weights, |slice| self.hashed_spread(slice, plan).unwrap_or(own));
        model.answer_key(&model.sums_of(&series.counts()))
    }

    /// How far a count is off that hashed counters hold; `None` for a counter of the key's own.
    fn hashed_spread(&self, slice: &Slice, plan: &Plan) -> Option<Spread> {
        let is_hashed = !plan.is_identity() && slice.range == WHOLE;
        if is_hashed { self.hashed.get(slice.substream).copied().flatten() } else { None }
    }
}

impl KeySeries {
    /// Of a pinned key: its own slices where it has them.
    fn of_pinned_key(
        evidence: Evidence<'_>,
        fingerprint: u64,
        slices: &[Vec<Option<u32>>],
        wholes: &[Option<Slice>],
        hashed: impl Fn(&Slice, u64) -> f64,
    ) -> Self {
        let mut series = Self::new();
        for ((substream, slices), whole) in evidence.substreams.iter().zip(slices).zip(wholes) {
            let Some(slot) = evidence.pins.slot_at(fingerprint, substream.number) else {
                if let (Some(whole), Some(slice)) = (whole, slices[WHOLE]) {
                    series.push(slice, hashed(whole, fingerprint));
                }
                continue;
            };
            for range in evidence.plan.levels().ranges_of(substream.levels().level_of(slot)) {
                let count = substream.count_in_slice(slot, range, evidence.plan);
                if let (Some(count), Some(slice)) = (count, slices[range]) {
                    series.push(slice, count as f64);
                }
            }
        }
        series
    }

    /// The level that the key has now.
    fn current_level(&self, all: &[Slice], plan: &Plan) -> u32 {
        self.newest_slice(all).map_or(0, |newest| plan.levels().level_of(newest.range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::batch::Batch;
    use crate::noise::generator::Noise;
    use crate::plan::settings::{CounterLayout, Settings, TunedMethod};
    use crate::sealed::pins::Pins;
    use crate::stream::sketch::DpswSketch;

    /// Lists choose by the one and show the other.
    #[test]
    fn the_value_of_a_key_is_that_of_its_answer_in_every_window() {
        let counters = CounterLayout::Identity;
        let method = TunedMethod { substreams: 4, counters, levels: 4, ..TunedMethod::default() };
        let settings = Settings::last_items(256, 4.0).expect("in range").with_keys(0..40).with_method(method);
        let plan = Plan::new(settings.with_retention(2)).expect("a plan");
        let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(4)).expect("seeded");
        let item = |i: u64| if i * i % 7 < 3 { 0 } else { 1 + i * i * i % 39 };
        let mut keys = 0;
        for step in 0..90_u64 {
            let items: Vec<u64> = (11 * step..11 * (step + 1)).map(item).collect();
            sketch.extend(Batch::integers(&items)).expect("valid items");
            let view = sketch.view();
            for (end, len) in [(0, 256), (0, 100), (0, 5), (30, 200), (70, 9)] {
                let Some(end) = view.window().end.checked_sub(end) else { continue };
                let Ok(view) = view.last(len).and_then(|view| view.as_of(end)) else { continue };
                let window = view.window();
                let (plan, substreams) = (view.plan(), view.cached.released.substreams());
                let evidence = Evidence {
                    plan,
                    substreams,
                    stream: &view.stream,
                    keys: None,
                    pins: Pins::none(),
                    noises: 1.0,
                };
                let paths = SeriesIndex::with_own_counters(evidence);
                for (_, path) in paths.iter() {
                    let answer = paths.answer_series(path, plan, 1.0, &window).value;
                    assert!(
                        (paths.estimate_value(path, &window) - answer).abs() < 1e-9,
                        "{window:?}: {answer}"
                    );
                    keys += 1;
                }
            }
        }
        assert!(100 < keys, "{keys}");
    }
}
