//! From how much of the past the newest part of a window is predicted: from much where counts stand still, from little where
//! they move. Learned from how well what is sealed would have been predicted.

use crate::plan::limits::{LONGEST_SPAN, SPANS};
use crate::view::tuned::evidence::Evidence;
use crate::view::tuned::series::KeySeries;
use crate::view::tuned::weights::{Slice, WHOLE};

/// A span needs this many predictions to be judged by.
const SAMPLES_MIN: u32 = 20;
/// One prediction counts at most this much, in variances: a jump says nothing about the next.
const WORST: f64 = 25.0;
/// A newest slice that is this many deviations from what the others predict is the beginning of something new.
const JUMP: f64 = 3.5;

/// The errors with which slices would have been predicted, by span.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ForecastCosts {
    sums: [f64; SPANS.len()],
    samples: [u32; SPANS.len()],
}

impl ForecastCosts {
    /// Adds the last slices of a key that are as long as its newest one. `noise` is the variance of a count, `window` the
    /// length of a window.
    pub(crate) fn judge_spans(
        &mut self,
        series: &KeySeries,
        all: &[Slice],
        last: usize,
        noise: f64,
        window: u64,
    ) {
        let Some(newest) = series.newest_slice(all) else { return };
        let len = newest.span.end - newest.span.start;
        let start = series.start(all);
        for (index, slice) in series.slices(all).enumerate().rev().take(last) {
            // A shorter slice holds less: its error says nothing about slices of this length.
            if !slice.is_whole || slice.span.end - slice.span.start != len {
                break;
            }
            for (choice, span) in SPANS.into_iter().enumerate() {
                let reach = len.saturating_mul(span.into());
                // Longer spans reach back further still.
                if slice.span.start < start + reach || LONGEST_SPAN * (window as f64) < reach as f64 {
                    break;
                }
                let until = slice.span.start;
                let before = series.count_until(until, all) - series.count_until(until - reach, all);
                let predicted = before / f64::from(span);
                let error = (series.count_of(index) - predicted).powi(2);
                self.sums[choice] += (error / (noise + predicted.max(1.0))).min(WORST);
                self.samples[choice] += 1;
            }
        }
    }

    /// The span that predicts best.
    pub(crate) fn best_span(&self) -> u32 {
        let costs = self.sums.iter().zip(self.samples).zip(SPANS);
        let judged = costs.filter(|((_, samples), _)| SAMPLES_MIN <= *samples);
        let means = judged.map(|((sum, samples), span)| (sum / f64::from(samples), span));
        // Until there are enough samples, the newest slice predicts: nothing in it is out of date.
        means.min_by(|(one, _), (other, _)| one.total_cmp(other)).map_or(1, |(_, span)| span)
    }
}

/// Whether the newest count is the beginning of something new.
pub(crate) fn is_jump(newest: f64, predicted: f64, noise: f64, span: f64) -> bool {
    let variance = (noise + predicted.max(0.0)) * (1.0 + 1.0 / span);
    JUMP * JUMP * variance < (newest - predicted).powi(2)
}

/// Keys that are cut like most are told apart by their counts.
pub(crate) const CLASSES: usize = 3;
/// Classes end at these parts of the count from which on more slices are worth their noise.
const ENDS: [f64; CLASSES - 1] = [1.0 / 16.0, 1.0 / 4.0];
/// Spans of them are judged by so many slices, and by about so many keys of a class.
const JUDGED_SLICES: usize = 4;
const JUDGED_KEYS: usize = 1024;
/// No longer span fits into a window of the fewest substreams that are worth it.
const LONGEST_SLICES: usize = 16;

/// From how many slices keys that are cut like most are predicted, by what they count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ForecastClasses {
    /// Where classes end, in items per substream.
    ends: [f64; CLASSES - 1],
    pub(crate) spans: [u32; CLASSES],
    /// The variance of a count.
    noise: f64,
}

/// The class of a key, and what its next slice will hold. The last class is for keys that jump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Forecast {
    pub(crate) class: u8,
    pub(crate) predicted: f64,
}

impl ForecastClasses {
    /// Of keys with counters of their own.
    pub(crate) fn new(evidence: Evidence<'_>, slices: &[Slice]) -> Self {
        let noise = evidence.plan.ranges()[WHOLE].law().variance() * evidence.noises;
        let substreams = evidence.plan.settings().window.len().div_ceil(evidence.plan.substream_len());
        let ends = ENDS.map(|part| part * evidence.plan.levels().unit_count() * substreams as f64);
        let mut classes = Self { ends, spans: [1; CLASSES], noise };
        let last = &slices[slices.len().saturating_sub(JUDGED_SLICES + LONGEST_SLICES)..];
        // A single slice has none before it that could have predicted it.
        if last.len() < 2 {
            return classes;
        }
        let mut costs = [ForecastCosts::default(); CLASSES];
        for (costs, members) in costs.iter_mut().zip(classes.group_keys(evidence, last)) {
            let step = members.len().div_ceil(JUDGED_KEYS).max(1);
            for key_index in members.into_iter().step_by(step) {
                judge_key(costs, evidence, last, key_index, noise);
            }
        }
        classes.spans = costs.map(|costs| costs.best_span());
        classes
    }

    /// The indices of the keys of each class, by what these slices hold.
    fn group_keys(&self, evidence: Evidence<'_>, slices: &[Slice]) -> [Vec<usize>; CLASSES] {
        let mut sums = vec![0; evidence.plan.shape().columns as usize];
        for slice in slices {
            evidence.sketch_of(slice).add_to(&mut sums);
        }
        let length: f64 = slices.iter().map(|slice| slice.length).sum();
        let mut members = [const { Vec::new() }; CLASSES];
        for (key_index, sum) in sums.into_iter().enumerate() {
            members[self.class_of(sum as f64 / length)].push(key_index);
        }
        members
    }

    fn class_of(&self, rate: f64) -> usize {
        self.ends.iter().filter(|end| **end < rate).count()
    }

    /// Of a key that comes this often in a substream, by what each span predicts.
    pub(crate) fn forecast_key(&self, rate: f64, newest: f64, predicted: [f64; CLASSES]) -> Forecast {
        let class = self.class_of(rate);
        match is_jump(newest, predicted[class], self.noise, self.spans[class].into()) {
            true => Forecast { class: CLASSES as u8, predicted: newest },
            false => Forecast { class: class as u8, predicted: predicted[class] },
        }
    }
}

fn judge_key(costs: &mut ForecastCosts, evidence: Evidence<'_>, slices: &[Slice], key: usize, noise: f64) {
    let mut series = KeySeries::new();
    for (index, slice) in (0..).zip(slices) {
        series.push(index, evidence.sketch_of(slice).cell(key).into());
    }
    costs.judge_spans(&series, slices, JUDGED_SLICES, noise, evidence.plan.settings().window.len());
}
