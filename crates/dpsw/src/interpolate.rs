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
    /// The share of the newest substream that is outside, for a window that ended before it.
    later: f64,
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
        Self { parts, span, expired, later, ahead }
    }

    fn ends(&self) -> Ends {
        Some((self.parts.first()?.0, self.parts.last()?.0))
    }

    /// The weights of the oldest and the newest substream; those between count in full. A single one is the newest.
    fn outer(&self) -> [f64; 2] {
        match self.parts[..] {
            [] => [0.0, 0.0],
            [(_, only)] => [0.0, only],
            [(_, oldest), .., (_, newest)] => [oldest, newest],
        }
    }

    /// The variance that the edges add for an item with this count and this drift from substream to substream.
    fn misfit_variance(&self, count: f64, drift: f64) -> f64 {
        let (x, y, z) = (self.ahead, self.expired, self.later);
        let total: f64 = self.parts.iter().map(|(_, weight)| weight).sum();
        let per_substream = count.max(0.0) / total.max(1.0);
        let cut = y * (1.0 - y) + z * (1.0 - z);
        let sampling = per_substream * (cut + x + x * x);
        let walk = (x.powi(2) + x.powi(3) + (y * (1.0 - y)).powi(2) + (z * (1.0 - z)).powi(2)) / 3.0;
        sampling + drift * walk
    }
}

/// The indices of the oldest and the newest substream of a window.
type Ends = Option<(usize, usize)>;

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
    /// For the whole window, by the substreams at its ends.
    sums: Mutex<Option<(Ends, Arc<[KeySums]>)>>,
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

/// The estimates of a key in the oldest and the newest substream of a window, the sum of those between, and how much it
/// drifts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeySums {
    oldest: f64,
    between: f64,
    newest: f64,
    pub(crate) drift: f32,
}

impl KeySums {
    pub(crate) fn value(&self, weights: &Weights) -> f64 {
        let [oldest, newest] = weights.outer();
        oldest * self.oldest + self.between + newest * self.newest
    }
}

/// Variances of the estimates of a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variances {
    all: f64,
    noise: f64,
    /// Of one substream, on average.
    mean: f64,
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

    /// What all estimates of a window have in common.
    pub(crate) fn variances(&self, source: Source<'_>, weights: &Weights) -> Variances {
        let made = self.made(source);
        let mut variances = Variances::default();
        for &(index, weight) in &weights.parts {
            let (variance, noise) = made.variance(source, index);
            variances.all += weight * weight * variance;
            variances.noise += weight * weight * noise;
            variances.mean += variance / weights.parts.len() as f64;
        }
        variances
    }

    /// The estimate of any item, from the substreams themselves.
    pub(crate) fn answer(&self, source: Source<'_>, reading: &Reading, item: Item<'_>) -> Answer {
        let sums = self.made(source).key_sums(source, reading, item);
        reading.answer(sums.value(&reading.weights), sums.drift)
    }

    /// The estimates of all keys of the public list, in its order.
    pub(crate) fn all(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Vec<KeySums> {
        self.made(source).all_sums(source, reading, keys)
    }

    /// The same for the whole window, computed when it is first needed and again when its ends reach other substreams.
    pub(crate) fn cached(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Arc<[KeySums]> {
        let ends = reading.weights.ends();
        let mut cached = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sums)) = cached.as_ref().filter(|(known, _)| *known == ends) {
            return Arc::clone(sums);
        }
        let sums: Arc<[KeySums]> = self.all(source, reading, keys).into();
        *cached = Some((ends, Arc::clone(&sums)));
        sums
    }
}

/// The weights of a window, and the variances that follow from them.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) weights: Weights,
    variances: Variances,
}

impl Reading {
    pub(crate) fn new(fits: &Fits, source: Source<'_>, weights: Weights) -> Self {
        let variances = fits.variances(source, &weights);
        Self { weights, variances }
    }

    pub(crate) fn answer(&self, value: f64, drift: f32) -> Answer {
        let Variances { all, noise, .. } = self.variances;
        let misfit = self.weights.misfit_variance(value, drift.into());
        Answer { value, noise, collisions: all - noise, misfit }
    }
}

impl Made {
    fn key_sums(&self, source: Source<'_>, reading: &Reading, item: Item<'_>) -> KeySums {
        let Some(substream) = source.substreams.first() else { return KeySums::default() };
        let fingerprint = substream.mapping.fingerprint_key.item(item);
        let candidate = self.candidates.get(&fingerprint).copied();
        let mut running = Running::default();
        for &(index, _) in &reading.weights.parts {
            let substream = &source.substreams[index];
            let sketch = substream.sketch(WHOLE).expect("weights name complete substreams");
            let cells = substream.mapping.cells_of(item, fingerprint);
            running.add(self.fitted[index].estimate(sketch, cells, candidate));
        }
        running.sums(reading.variances.mean)
    }

    /// The same for all keys, substream by substream, whose counters then stay at hand for the processor.
    fn all_sums(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Vec<KeySums> {
        let observed = source.observed();
        let Some(first) = observed.first() else { return vec![KeySums::default(); keys.len()] };
        let key = first.mapping.fingerprint_key;
        let fingerprints: Vec<u64> = (0..keys.len()).map(|place| key.item(keys.get(place))).collect();
        let ranks: Vec<Option<usize>> =
            fingerprints.iter().map(|f| self.candidates.get(f).copied()).collect();
        let mut running = vec![Running::default(); keys.len()];
        for &(index, _) in &reading.weights.parts {
            let steps = self.fitted[index].estimate_all(observed[index], &fingerprints, |place| ranks[place]);
            running.iter_mut().zip(steps).for_each(|(running, step)| running.add(step));
        }
        running.into_iter().map(|running| running.sums(reading.variances.mean)).collect()
    }

    fn variance(&self, source: Source<'_>, index: usize) -> (f64, f64) {
        let shape = source.plan.shape();
        self.fitted[index].variance(shape.rows, shape.columns)
    }
}

/// The estimates of a key, one substream after the other.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    count: u32,
    sum: f64,
    squares: f64,
    oldest: f64,
    newest: f64,
}

impl Running {
    fn add(&mut self, step: f64) {
        if self.count == 0 {
            self.oldest = step;
        } else {
            self.squares += (step - self.newest) * (step - self.newest);
        }
        self.sum += step;
        self.newest = step;
        self.count += 1;
    }

    /// `variance` is that of one estimate.
    fn sums(self, variance: f64) -> KeySums {
        let between = if self.count < 2 { 0.0 } else { self.sum - self.oldest - self.newest };
        let drift = drift(self.count.into(), self.squares, self.sum, variance);
        KeySums { oldest: self.oldest, between, newest: self.newest, drift: drift as f32 }
    }
}

/// How much the count changes from substream to substream beyond noise and chance.
fn drift(count: f64, squares: f64, sum: f64, variance: f64) -> f64 {
    if count < 3.0 {
        return 0.0;
    }
    let chance = 2.0 * variance + 2.0 * sum.max(0.0) / count;
    1.5 * (squares / (count - 1.0) - chance).max(0.0)
}
