//! A window from whole substreams alone: the oldest one counts by the share of it that is inside, and what runs since
//! the last seal is predicted from the newest one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::estimate::{Fitted, Observed, fit};
use crate::item::{Item, Keys};
use crate::plan::Plan;
use crate::substream::SealedSubstream;

/// How much of each sealed substream a window takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    /// Index of the substream and its weight, oldest first.
    pub(crate) parts: Vec<(usize, f64)>,
    /// The part of the window that is sealed.
    pub(crate) span: Range<u64>,
    /// The share of the oldest substream that is outside.
    expired: f64,
    /// The share of a substream that is predicted.
    ahead: f64,
}

/// The index of the whole sketch among the planned ranges.
const WHOLE: usize = 0;

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
        let span = parts.first().map_or(window.end, |(first, _)| bounds[*first].start.max(window.start));
        let span = span..sealed.clamp(span, window.end);
        let ahead = window.end.saturating_sub(sealed.max(window.start)) as f64 / len as f64;
        if let (true, Some(newest)) = (0.0 < ahead, bounds.len().checked_sub(1)) {
            match parts.last_mut().filter(|(index, _)| *index == newest) {
                Some((_, weight)) => *weight += ahead,
                None => parts.push((newest, ahead)),
            }
        }
        Self { parts, span, expired, ahead }
    }

    /// The variance that the edges add for an item with this count and this drift from substream to substream.
    fn misfit_variance(&self, count: f64, drift: f64) -> f64 {
        let (x, y) = (self.ahead, self.expired);
        let total: f64 = self.parts.iter().map(|(_, weight)| weight).sum();
        let per_substream = count.max(0.0) / total.max(1.0);
        let sampling = per_substream * (y * (1.0 - y) + x + x * x);
        let walk = x.powi(2) / 3.0 + x.powi(3) / 3.0 + (y * (1.0 - y)).powi(2) / 3.0;
        sampling + drift * walk
    }
}

/// An estimate and the variances behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    pub(crate) value: f64,
    pub(crate) noise: f64,
    pub(crate) collisions: f64,
    pub(crate) misfit: f64,
}

/// The fits of all sealed substreams, made once when a view is first asked.
#[derive(Debug, Default)]
pub(crate) struct Fits {
    made: OnceLock<Made>,
    sums: Mutex<Option<Arc<Sums>>>,
}

/// Fingerprints are hashes already.
#[derive(Debug, Default, Clone, Copy)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

#[derive(Debug)]
struct Made {
    /// By fingerprint: the place among the candidates.
    candidates: HashMap<u64, usize, BuildHasherDefault<FingerprintHasher>>,
    /// By index of the substream.
    fitted: Vec<Fitted>,
}

/// For every key of the domain: the estimates in the oldest and the newest substream of a window and the sum of those
/// between, and how much it drifts.
#[derive(Debug)]
struct Sums {
    first: usize,
    last: usize,
    keys: Vec<KeySums>,
}

#[derive(Debug, Clone, Copy, Default)]
struct KeySums {
    oldest: f32,
    between: f32,
    newest: f32,
    drift: f32,
}

/// What an estimate is made from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) substreams: &'a [Arc<SealedSubstream>],
    /// How many independent noises are in each counter.
    pub(crate) noises: f64,
}

impl Source<'_> {
    fn observed(&self) -> Vec<Observed<'_>> {
        let noise_variance = self.plan.ranges()[WHOLE].law().variance() * self.noises;
        let whole = self.substreams.iter().map_while(|substream| {
            let sketch = substream.sketch(WHOLE)?;
            Some(Observed { sketch, mapping: &substream.mapping, noise_variance, number: substream.number })
        });
        whole.collect()
    }
}

impl Fits {
    fn made(&self, source: Source<'_>) -> &Made {
        self.made.get_or_init(|| {
            let keys = source.plan.settings().domain.keys();
            let observed = source.observed();
            let (places, fitted) = fit(&observed, keys, source.plan.is_identity());
            let fingerprint = |place: usize| {
                let keys = keys.expect("candidates come from a list");
                observed.first().map(|o| o.mapping.fingerprint_key.item(keys.get(place)))
            };
            let candidates =
                places.iter().enumerate().filter_map(|(rank, &place)| Some((fingerprint(place)?, rank)));
            Made { candidates: candidates.collect(), fitted }
        })
    }

    /// The estimate of any item.
    pub(crate) fn answer(&self, source: Source<'_>, weights: &Weights, item: Item<'_>) -> Answer {
        let made = self.made(source);
        let steps = made.steps(source, weights, item);
        let value = steps.iter().zip(&weights.parts).map(|(step, (_, weight))| step * weight).sum();
        made.answer(source, weights, value, made.drift(source, weights, &steps, value))
    }

    /// The estimates of all keys of the public list, in its order.
    pub(crate) fn answers(&self, source: Source<'_>, weights: &Weights, keys: &Keys) -> Vec<f64> {
        let (Some(&(first, oldest)), Some(&(last, newest))) = (weights.parts.first(), weights.parts.last())
        else {
            return vec![0.0; keys.len()];
        };
        let oldest = if first == last { 0.0 } else { oldest };
        let value = |sums: &KeySums| {
            oldest * f64::from(sums.oldest) + f64::from(sums.between) + newest * f64::from(sums.newest)
        };
        self.sums(source, weights, (first, last), keys).keys.iter().map(value).collect()
    }

    /// The estimate of a key of the public list, by its place in it.
    pub(crate) fn answer_at(
        &self,
        source: Source<'_>,
        weights: &Weights,
        value: f64,
        place: usize,
        keys: &Keys,
    ) -> Answer {
        let made = self.made(source);
        let drift = match (weights.parts.first(), weights.parts.last()) {
            (Some(&(first, _)), Some(&(last, _))) => {
                f64::from(self.sums(source, weights, (first, last), keys).keys[place].drift)
            }
            _ => 0.0,
        };
        made.answer(source, weights, value, drift)
    }

    fn sums(&self, source: Source<'_>, weights: &Weights, ends: (usize, usize), keys: &Keys) -> Arc<Sums> {
        let mut cached = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sums) = cached.as_ref().filter(|sums| (sums.first, sums.last) == ends) {
            return Arc::clone(sums);
        }
        let made = self.made(source);
        let sums = Arc::new(Sums {
            first: ends.0,
            last: ends.1,
            keys: (0..keys.len()).map(|place| made.key_sums(source, weights, keys.get(place))).collect(),
        });
        *cached = Some(Arc::clone(&sums));
        sums
    }
}

impl Made {
    /// The estimates of an item in the substreams of a window, oldest first.
    fn steps(&self, source: Source<'_>, weights: &Weights, item: Item<'_>) -> Vec<f64> {
        let Some(substream) = source.substreams.first() else { return Vec::new() };
        let fingerprint = substream.mapping.fingerprint_key.item(item);
        let candidate = self.candidates.get(&fingerprint).copied();
        let step = |&(index, _): &(usize, f64)| {
            let substream = &source.substreams[index];
            let sketch = substream.sketch(WHOLE).expect("weights name complete substreams");
            self.fitted[index].estimate(sketch, substream.mapping.cells_of(item, fingerprint), candidate)
        };
        weights.parts.iter().map(step).collect()
    }

    fn key_sums(&self, source: Source<'_>, weights: &Weights, item: Item<'_>) -> KeySums {
        let steps = self.steps(source, weights, item);
        let [oldest, newest] = [steps.first(), steps.last()].map(|step| step.copied().unwrap_or(0.0));
        let between = if steps.len() < 3 { 0.0 } else { steps[1..steps.len() - 1].iter().sum() };
        let value = steps.iter().sum();
        let drift = self.drift(source, weights, &steps, value);
        KeySums { oldest: oldest as f32, between: between as f32, newest: newest as f32, drift: drift as f32 }
    }

    /// How much the count changes from substream to substream beyond noise and chance.
    fn drift(&self, source: Source<'_>, weights: &Weights, steps: &[f64], value: f64) -> f64 {
        if steps.len() < 3 {
            return 0.0;
        }
        let squares: f64 = steps.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        let variance: f64 = weights.parts.iter().map(|&(index, _)| self.variance(source, index).0).sum();
        let count = steps.len() as f64;
        let chance = 2.0 * variance / count + 2.0 * value.max(0.0) / count;
        1.5 * (squares / (count - 1.0) - chance).max(0.0)
    }

    fn variance(&self, source: Source<'_>, index: usize) -> (f64, f64) {
        let shape = source.plan.shape();
        self.fitted[index].variance(shape.rows, shape.columns)
    }

    fn answer(&self, source: Source<'_>, weights: &Weights, value: f64, drift: f64) -> Answer {
        let (mut all, mut noise) = (0.0, 0.0);
        for &(index, weight) in &weights.parts {
            let (variance, of_noise) = self.variance(source, index);
            all += weight * weight * variance;
            noise += weight * weight * of_noise;
        }
        Answer { value, noise, collisions: all - noise, misfit: weights.misfit_variance(value, drift) }
    }
}
