//! The fits of all sealed substreams, and the estimates of keys that come from them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::plan::limits::LEFT_MAX;
use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;
use crate::view::fit::{Candidates, Fitted, Observed, by_blocks, fit};
use crate::view::weights::{Ends, WHOLE, Weights};

/// How often candidates are looked for again in what the others leave.
const MORE_ROUNDS: usize = 2;

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
    /// Of a view before this one.
    earlier: Option<Earlier>,
    made: OnceLock<Made>,
    /// For the whole window, by the substreams at its ends.
    sums: Mutex<Option<(Ends, Arc<Vec<KeySums>>)>>,
}

/// The sum over some substreams of the smallest counter of each key. Integers, so that taking one substream away and
/// adding another gives the same as adding all.
#[derive(Debug)]
struct Totals {
    substreams: Range<u64>,
    sums: Vec<i64>,
}

/// Totals of which some substreams have left since.
#[derive(Debug, Clone)]
struct Earlier {
    totals: Arc<Totals>,
    left: Vec<Arc<SealedSubstream>>,
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
    totals: Option<Arc<Totals>>,
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
    /// The keys that may be listed.
    pub(crate) keys: Option<&'a Keys>,
    /// How many independent noises are in each counter.
    pub(crate) noises: f64,
}

impl<'a> Source<'a> {
    fn observe(&self, substream: &'a SealedSubstream) -> Option<Observed<'a>> {
        let noise_variance = self.plan.ranges()[WHOLE].law().variance() * self.noises;
        let sketch = substream.sketch(WHOLE)?;
        Some(Observed { sketch, mapping: &substream.mapping, noise_variance, number: substream.number })
    }

    fn observed(&self) -> Vec<Observed<'a>> {
        self.substreams.iter().map_while(|substream| self.observe(substream)).collect()
    }

    /// The smallest counters of all keys, summed over the substreams.
    fn totals(&self, observed: &[Observed<'_>], fingerprints: &[u64], earlier: Option<&Earlier>) -> Totals {
        let numbers = observed.first().map_or(0, |o| o.number)..observed.last().map_or(0, |o| o.number + 1);
        let mut sums = earlier.map_or_else(|| vec![0; fingerprints.len()], |e| e.totals.sums.clone());
        let known = earlier.map_or(numbers.start, |e| e.totals.substreams.end);
        let left = earlier.iter().flat_map(|e| &e.left).filter_map(|left| self.observe(left));
        let left: Vec<Observed<'_>> = left.collect();
        by_blocks(fingerprints, &mut sums, |_, block, sums| {
            for left in &left {
                left.minima(block, |place, minimum| sums[place] -= i64::from(minimum));
            }
            for new in observed.iter().filter(|o| known <= o.number) {
                new.minima(block, |place, minimum| sums[place] += i64::from(minimum));
            }
        });
        Totals { substreams: numbers, sums }
    }
}

impl Fits {
    /// Those of the view after this one, which no longer has the substreams before `first`.
    pub(crate) fn next(&self, substreams: &[Arc<SealedSubstream>], first: u64) -> Self {
        let earlier = match self.made.get() {
            Some(made) => made.totals.as_ref().map(|t| Earlier { totals: Arc::clone(t), left: Vec::new() }),
            None => self.earlier.clone(),
        };
        let earlier = earlier.and_then(|mut earlier| {
            let known = &earlier.totals.substreams;
            let leaves = |s: &&Arc<SealedSubstream>| s.number < first && known.contains(&s.number);
            earlier.left.extend(substreams.iter().filter(leaves).cloned());
            (earlier.left.len() <= LEFT_MAX).then_some(earlier)
        });
        Self { earlier, ..Self::default() }
    }

    fn made(&self, source: Source<'_>) -> &Made {
        self.made.get_or_init(|| {
            let observed = source.observed();
            match (observed.first(), source.keys.filter(|keys| !keys.is_empty())) {
                (Some(first), Some(keys)) if first.can_separate() || source.plan.discovery().is_some() => {
                    Made::with_candidates(source, &observed, keys, self.earlier.as_ref())
                }
                _ => Made { totals: None, candidates: HashMap::default(), fitted: fit(&observed) },
            }
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
    pub(crate) fn cached(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Arc<Vec<KeySums>> {
        let ends = reading.weights.ends();
        let mut cached = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sums)) = cached.as_ref().filter(|(known, _)| *known == ends) {
            return Arc::clone(sums);
        }
        let sums = Arc::new(self.all(source, reading, keys));
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
    fn with_candidates(
        source: Source<'_>,
        observed: &[Observed<'_>],
        keys: &Keys,
        earlier: Option<&Earlier>,
    ) -> Self {
        let fingerprints = fingerprints(&observed[0], keys);
        let totals = source.totals(observed, &fingerprints, earlier);
        let cells = source.plan.shape().cells();
        // Found keys all stand out; in a public list the bulk of the keys does not.
        let (mut candidates, rounds) = match source.plan.discovery() {
            Some(_) => (Candidates::all(&totals.sums, cells), 0),
            None => (Candidates::new(&totals.sums, cells), MORE_ROUNDS),
        };
        let mut fitted = candidates.fit(observed, keys);
        for _ in 0..rounds {
            if !candidates.add(observed, &fitted, &fingerprints) {
                break;
            }
            fitted = candidates.fit(observed, keys);
        }
        let ranks = candidates.places.iter().enumerate();
        let candidates = ranks.map(|(rank, &place)| (fingerprints[place], rank)).collect();
        Self { totals: Some(Arc::new(totals)), candidates, fitted }
    }

    fn key_sums(&self, source: Source<'_>, reading: &Reading, item: Item<'_>) -> KeySums {
        let Some(substream) = source.substreams.first() else { return KeySums::default() };
        let fingerprint = substream.mapping.fingerprint_key.item(item);
        let candidate = self.candidates.get(&fingerprint).copied();
        let mut running = Running::new(1);
        for &(index, _) in &reading.weights.parts {
            let substream = &source.substreams[index];
            let sketch = substream.sketch(WHOLE).expect("weights name complete substreams");
            let cells = substream.mapping.cells_of(item, fingerprint);
            running.add(&[self.fitted[index].estimate(sketch, cells, candidate)]);
        }
        running.sums(0, reading.variances.mean)
    }

    /// The same for all keys.
    fn all_sums(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Vec<KeySums> {
        let observed = source.observed();
        let Some(first) = observed.first() else { return vec![KeySums::default(); keys.len()] };
        let fingerprints = fingerprints(first, keys);
        let mut all = vec![KeySums::default(); keys.len()];
        by_blocks(&fingerprints, &mut all, |first, block, all| {
            let ranks = block.iter().enumerate().filter_map(|(i, f)| Some((i, *self.candidates.get(f)?)));
            let ranks: Vec<(usize, usize)> = ranks.collect();
            let mut running = Running::new(block.len());
            let mut steps = vec![0.0; block.len()];
            for &(index, _) in &reading.weights.parts {
                let fitted = &self.fitted[index];
                fitted.estimate_all(observed[index], block, first, |place, step| steps[place] = step);
                ranks.iter().for_each(|&(place, rank)| steps[place] += fitted.count(rank));
                running.add(&steps);
            }
            let sums =
                |(place, sums): (usize, &mut KeySums)| *sums = running.sums(place, reading.variances.mean);
            all.iter_mut().enumerate().for_each(sums);
        });
        all
    }

    fn variance(&self, source: Source<'_>, index: usize) -> (f64, f64) {
        self.fitted[index].variance(source.plan.shape())
    }
}

fn fingerprints(observed: &Observed<'_>, keys: &Keys) -> Vec<u64> {
    let key = observed.mapping.fingerprint_key;
    (0..keys.len()).map(|place| key.item(keys.get(place))).collect()
}

/// The estimates of some keys, one substream after the other.
#[derive(Debug)]
struct Running {
    substreams: u32,
    sums: Vec<f64>,
    /// Of the changes from substream to substream.
    squares: Vec<f64>,
    oldest: Vec<f64>,
    newest: Vec<f64>,
}

impl Running {
    fn new(keys: usize) -> Self {
        let zeros = vec![0.0; keys];
        Self {
            substreams: 0,
            sums: zeros.clone(),
            squares: zeros.clone(),
            oldest: zeros.clone(),
            newest: zeros,
        }
    }

    fn add(&mut self, steps: &[f64]) {
        if self.substreams == 0 {
            self.oldest.copy_from_slice(steps);
        } else {
            for ((square, newest), step) in self.squares.iter_mut().zip(&self.newest).zip(steps) {
                *square += (step - newest) * (step - newest);
            }
        }
        self.sums.iter_mut().zip(steps).for_each(|(sum, step)| *sum += step);
        self.newest.copy_from_slice(steps);
        self.substreams += 1;
    }

    /// `variance` is that of one estimate.
    fn sums(&self, place: usize, variance: f64) -> KeySums {
        let (sum, oldest, newest) = (self.sums[place], self.oldest[place], self.newest[place]);
        let between = if self.substreams < 2 { 0.0 } else { sum - oldest - newest };
        let drift = drift(self.substreams.into(), self.squares[place], sum, variance);
        KeySums { oldest, between, newest, drift: drift as f32 }
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
