//! Sealed counters → estimates: least squares on heavy candidates, residual means, debiased minima, and how far each
//! may be off. Pure functions of released numbers, so a view loaded from bytes computes the same.

use crate::counters::Mapping;
use crate::item::Keys;
use crate::plan::CANDIDATE_SHARE;
use crate::sketch::SealedSketch;

/// Random bucket tuples by which the bias of a minimum is measured.
const DUMMIES: usize = 1024;
/// Sweeps of the least-squares fit.
const SWEEPS: usize = 12;
/// A candidate stands out by this many deviations of the bulk of all keys.
const CANDIDATE_DEVIATIONS: f64 = 4.0;

/// A sealed whole substream to be fitted.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) sketch: &'a SealedSketch,
    pub(crate) mapping: &'a Mapping,
    /// The variance of the noise on one counter.
    pub(crate) noise_variance: f64,
    /// Decides the random tuples.
    pub(crate) number: u64,
}

/// How one substream answers: an unbiased estimate for any key, and its variance.
#[derive(Debug)]
pub(crate) enum Fitted {
    /// A counter for each key.
    Identity { noise_variance: f64 },
    /// The smallest counter of a key minus what an absent key would see.
    Minimum { bias: f64, variance: f64, noise_variance: f64 },
    /// Fitted counts of the candidates and the mean over rows of what they leave.
    Residual { residual: Box<[f32]>, mean: f64, counts: Box<[f32]>, variance: f64, noise_variance: f64 },
}

impl Fitted {
    /// The estimate of the key with these cells; `candidate` is its place among the candidates, if it is one.
    #[inline]
    pub(crate) fn estimate(
        &self,
        sketch: &SealedSketch,
        cells: impl Iterator<Item = usize>,
        candidate: Option<usize>,
    ) -> f64 {
        match self {
            Self::Identity { .. } => sketch.minimum(cells) as f64,
            Self::Minimum { bias, .. } => sketch.minimum(cells) as f64 - bias,
            Self::Residual { residual, mean, counts, .. } => {
                let (sum, rows) =
                    cells.fold((0.0, 0.0), |(sum, rows), cell| (sum + f64::from(residual[cell]), rows + 1.0));
                let columns = f64::from(sketch.shape().columns);
                let rest = columns / (columns - 1.0) * (sum / rows - mean);
                rest + candidate.map_or(0.0, |place| f64::from(counts[place]))
            }
        }
    }

    /// The estimates of all keys of a list, whose fingerprints and places among the candidates are given. Each is the same
    /// as [`estimate`](Self::estimate) gives.
    pub(crate) fn estimate_all(
        &self,
        observed: Observed<'_>,
        fingerprints: &[u64],
        candidate: impl Fn(usize) -> Option<usize>,
    ) -> Vec<f64> {
        let sketch = observed.sketch;
        let rows = observed.mapping.rows();
        match self {
            Self::Identity { .. } => sketch.cells().into_iter().map(f64::from).collect(),
            Self::Minimum { bias, .. } => {
                let minima = rows.fold_all(fingerprints, &sketch.cells(), i32::MAX, i32::min);
                minima.into_iter().map(|minimum| f64::from(minimum) - bias).collect()
            }
            Self::Residual { residual, mean, counts, .. } => {
                let (columns, count) = (f64::from(sketch.shape().columns), f64::from(sketch.shape().rows));
                let mut sums = rows.fold_all(fingerprints, residual, 0.0, |sum, r: f32| sum + f64::from(r));
                for (place, sum) in sums.iter_mut().enumerate() {
                    let rest = columns / (columns - 1.0) * (*sum / count - mean);
                    *sum = rest + candidate(place).map_or(0.0, |place| f64::from(counts[place]));
                }
                sums
            }
        }
    }

    /// The variance of an estimate, and the part of it that is privacy noise.
    pub(crate) fn variance(&self, rows: u32, columns: u32) -> (f64, f64) {
        let rows = f64::from(rows);
        match *self {
            Self::Identity { noise_variance } => (noise_variance, noise_variance),
            Self::Minimum { variance, noise_variance, .. } => (variance, variance.min(noise_variance / rows)),
            Self::Residual { variance, noise_variance, ref counts, .. } => {
                // The fit spends one counter a candidate, so that much less is left to average over.
                let free = 1.0 - counts.len() as f64 / (rows * f64::from(columns));
                let scale = (f64::from(columns) / (f64::from(columns) - 1.0)).powi(2) / (rows * free);
                (variance * scale, variance.min(noise_variance) * scale)
            }
        }
    }
}

/// Fits substreams that share a list of keys. Candidates are places in the list, most frequent first.
pub(crate) fn fit(
    observed: &[Observed<'_>],
    keys: Option<&Keys>,
    is_identity: bool,
) -> (Vec<usize>, Vec<Fitted>) {
    if is_identity {
        let fitted = observed.iter().map(|o| Fitted::Identity { noise_variance: o.noise_variance });
        return (Vec::new(), fitted.collect());
    }
    let minima: Vec<(f64, f64)> = observed.iter().map(dummy_minima).collect();
    let candidates = keys.map_or_else(Vec::new, |keys| candidates(observed, &minima, keys));
    let is_narrow = observed.first().is_some_and(|o| o.sketch.shape().rows < 2);
    if candidates.is_empty() || is_narrow {
        let fitted = observed.iter().zip(&minima).map(|(o, &(bias, variance))| Fitted::Minimum {
            bias,
            variance,
            noise_variance: o.noise_variance,
        });
        return (Vec::new(), fitted.collect());
    }
    let keys = keys.expect("candidates come from a list");
    let fitted = observed.iter().map(|o| least_squares(o, keys, &candidates)).collect();
    (candidates, fitted)
}

/// Mean and variance of the minimum over rows of random buckets: what a key that never occurred sees.
fn dummy_minima(observed: &Observed<'_>) -> (f64, f64) {
    let shape = observed.sketch.shape();
    let mut random = SplitMix(observed.number);
    let mut minimum = || {
        let cell = |row: u32| row as usize * shape.columns as usize + random.below(shape.columns);
        observed.sketch.minimum((0..shape.rows).map(cell)) as f64
    };
    let minima: Vec<f64> = (0..DUMMIES).map(|_| minimum()).collect();
    let mean = minima.iter().sum::<f64>() / DUMMIES as f64;
    let squares: f64 = minima.iter().map(|m| (m - mean).powi(2)).sum();
    (mean, squares / (DUMMIES - 1) as f64)
}

/// Numbers that look random, the same for the same seed.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: u32) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((z ^ (z >> 31)) >> 32) * u64::from(bound)) >> 32) as usize
    }
}

/// The keys whose debiased minima, summed over the substreams, stand out from the bulk, largest first.
fn candidates(observed: &[Observed<'_>], minima: &[(f64, f64)], keys: &Keys) -> Vec<usize> {
    let Some(first) = observed.first() else { return Vec::new() };
    let key = first.mapping.fingerprint_key;
    let fingerprints: Vec<u64> = (0..keys.len()).map(|place| key.item(keys.get(place))).collect();
    let mut totals = vec![0.0_f64; keys.len()];
    for (observed, (bias, _)) in observed.iter().zip(minima) {
        let rows = observed.mapping.rows();
        let minima = rows.fold_all(&fingerprints, &observed.sketch.cells(), i32::MAX, i32::min);
        totals.iter_mut().zip(minima).for_each(|(total, minimum)| *total += f64::from(minimum) - bias);
    }
    let mut sorted = totals.clone();
    let mut quantile = |share: f64| {
        let index = ((sorted.len() - 1) as f64 * share) as usize;
        *sorted.select_nth_unstable_by(index, f64::total_cmp).1
    };
    let (median, lower) = (quantile(0.5), quantile(0.159));
    let least = median + CANDIDATE_DEVIATIONS * (median - lower);
    let mut places: Vec<usize> = (0..totals.len()).filter(|&place| least < totals[place]).collect();
    places.sort_unstable_by(|&a, &b| totals[b].total_cmp(&totals[a]).then(a.cmp(&b)));
    places.truncate((CANDIDATE_SHARE * first.sketch.shape().cells() as f64) as usize);
    places
}

/// Gauss-Seidel on the counts of the candidates, largest first, starting from row minima.
fn least_squares(observed: &Observed<'_>, keys: &Keys, candidates: &[usize]) -> Fitted {
    let shape = observed.sketch.shape();
    let (rows, cells) = (shape.rows as usize, shape.cells());
    let mut residual: Vec<f64> = observed.sketch.cells().into_iter().map(f64::from).collect();
    let places: Vec<usize> =
        candidates.iter().flat_map(|&place| observed.mapping.cells(keys.get(place))).collect();
    let mut counts = vec![0.0; candidates.len()];
    let remove = |count: &mut f64, cells: &[usize], amount: f64, residual: &mut [f64], level: &mut f64| {
        *count += amount;
        for &cell in cells {
            residual[cell] -= amount;
        }
        *level -= amount / f64::from(shape.columns);
    };
    let mut level = residual.iter().sum::<f64>() / cells as f64;
    for (count, cells) in counts.iter_mut().zip(places.chunks_exact(rows)) {
        let least = cells.iter().map(|&cell| residual[cell]).fold(f64::INFINITY, f64::min) - level;
        if 0.0 < least {
            remove(count, cells, least, &mut residual, &mut level);
        }
    }
    for _ in 0..SWEEPS {
        for (count, cells) in counts.iter_mut().zip(places.chunks_exact(rows)) {
            let amount = cells.iter().map(|&cell| residual[cell]).sum::<f64>() / rows as f64 - level;
            remove(count, cells, amount, &mut residual, &mut level);
        }
    }
    let squares: f64 = residual.iter().map(|r| (r - level).powi(2)).sum();
    Fitted::Residual {
        residual: residual.iter().map(|&r| r as f32).collect(),
        mean: level,
        counts: counts.iter().map(|&count| count as f32).collect(),
        variance: squares / (cells - candidates.len()) as f64,
        noise_variance: observed.noise_variance,
    }
}
