//! Sealed counters → estimates: least squares on heavy candidates, residual means, debiased minima, and how far each
//! may be off. Pure functions of released numbers, so a view loaded from bytes computes the same.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::item::keys::Keys;
use crate::item::mapping::{Mapping, Shape};
use crate::plan::limits::{CANDIDATE_DEVIATIONS, CANDIDATE_SHARE};
use crate::sealed::sketch::SealedSketch;

/// Random bucket tuples by which the bias of a minimum is measured.
const DUMMIES: usize = 1024;
/// Sweeps of the least-squares fit.
const SWEEPS: usize = 6;

/// Collisions are looked at again where they add this much to the noise.
const COLLISIONS_MIN: f64 = 1.2;

/// How many keys are estimated at a time, so that they stay at hand for the processor.
const BLOCK: usize = 4096;

/// Works on keys block by block: the place of the first, the fingerprints, what is made of each.
pub(crate) fn by_blocks<T>(
    fingerprints: &[u64],
    made: &mut [T],
    mut work: impl FnMut(usize, &[u64], &mut [T]),
) {
    let blocks = fingerprints.chunks(BLOCK).zip(made.chunks_mut(BLOCK)).enumerate();
    blocks.for_each(|(number, (block, made))| work(number * BLOCK, block, made));
}

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

impl Observed<'_> {
    /// Whether counts of keys that share a counter can be told apart.
    pub(crate) fn can_separate(&self) -> bool {
        1 < self.sketch.shape().rows
    }

    /// The smallest counter of each fingerprint, by its place.
    pub(crate) fn minima(&self, fingerprints: &[u64], mut put: impl FnMut(usize, i32)) {
        let (rows, sketch) = (self.mapping.rows(), self.sketch);
        match sketch.narrow() {
            Some(cells) => rows.fold_all(fingerprints, cells, i16::MAX, i16::min, |place, minimum| {
                // Marked counters look like the smallest ones.
                let is_marked = minimum == i16::MIN;
                let exact = || sketch.minimum(rows.cells(fingerprints[place])) as i32;
                put(place, if is_marked { exact() } else { minimum.into() });
            }),
            None => rows.fold_all(fingerprints, &sketch.cells(), i32::MAX, i32::min, put),
        }
    }
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
            Self::Residual { residual, mean, .. } => {
                let (sum, rows) =
                    cells.fold((0.0, 0.0), |(sum, rows), cell| (sum + f64::from(residual[cell]), rows + 1.0));
                let rest = self.scale(sketch.shape()) * (sum / rows - mean);
                rest + candidate.map_or(0.0, |rank| self.count(rank))
            }
        }
    }

    /// What makes up for the share of a key's count that its own counter adds to the mean, and for the share that the fit
    /// gives to candidates on the same counters: one counter a candidate is spent.
    fn scale(&self, shape: Shape) -> f64 {
        let columns = f64::from(shape.columns);
        columns / (columns - 1.0) / self.free(shape)
    }

    /// The share of the counters that the fit leaves free.
    fn free(&self, shape: Shape) -> f64 {
        match self {
            Self::Residual { counts, .. } => 1.0 - counts.len() as f64 / shape.cells() as f64,
            _ => 1.0,
        }
    }

    /// The fitted count of the candidate of this rank.
    pub(crate) fn count(&self, rank: usize) -> f64 {
        match self {
            Self::Residual { counts, .. } => counts[rank].into(),
            _ => 0.0,
        }
    }

    /// The estimates of these keys, which stand in the list from `first` on, without the fitted counts of candidates.
    /// With them each is the same as [`estimate`](Self::estimate) gives.
    pub(crate) fn estimate_all(
        &self,
        observed: Observed<'_>,
        fingerprints: &[u64],
        first: usize,
        mut put: impl FnMut(usize, f64),
    ) {
        let sketch = observed.sketch;
        match self {
            Self::Identity { .. } => {
                (0..fingerprints.len()).for_each(|place| put(place, sketch.cell(first + place).into()));
            }
            Self::Minimum { bias, .. } => {
                observed.minima(fingerprints, |place, minimum| put(place, f64::from(minimum) - bias));
            }
            Self::Residual { residual, mean, .. } => {
                let (scale, rows) = (self.scale(sketch.shape()), f64::from(sketch.shape().rows));
                observed.mapping.rows().fold_all(
                    fingerprints,
                    residual,
                    0.0,
                    |sum, r: f32| sum + f64::from(r),
                    |place, sum: f64| put(place, scale * (sum / rows - mean)),
                );
            }
        }
    }

    /// The variance of an estimate, and the part of it that is privacy noise.
    pub(crate) fn variance(&self, shape: Shape) -> (f64, f64) {
        let rows = f64::from(shape.rows);
        match *self {
            Self::Identity { noise_variance } => (noise_variance, noise_variance),
            Self::Minimum { variance, noise_variance, .. } => (variance, variance.min(noise_variance / rows)),
            Self::Residual { variance, noise_variance, .. } => {
                let scale = self.scale(shape).powi(2) * self.free(shape) / rows;
                (variance * scale, variance.min(noise_variance) * scale)
            }
        }
    }
}

/// Fits substreams that have no candidates.
pub(crate) fn fit(observed: &[Observed<'_>]) -> Vec<Fitted> {
    let one = |observed: &Observed<'_>| match observed.mapping.is_identity() {
        true => Fitted::Identity { noise_variance: observed.noise_variance },
        false => debiased_minimum(observed),
    };
    observed.iter().map(one).collect()
}

/// The mean of the minimum over rows of random buckets is what a key that never occurred sees.
fn debiased_minimum(observed: &Observed<'_>) -> Fitted {
    let shape = observed.sketch.shape();
    let mut random = SplitMix(observed.number);
    let mut minimum = || {
        let cell = |row: u32| row as usize * shape.columns as usize + random.below(shape.columns);
        observed.sketch.minimum((0..shape.rows).map(cell)) as f64
    };
    let minima: Vec<f64> = (0..DUMMIES).map(|_| minimum()).collect();
    let bias = minima.iter().sum::<f64>() / DUMMIES as f64;
    let squares: f64 = minima.iter().map(|m| (m - bias).powi(2)).sum();
    let variance = squares / (DUMMIES - 1) as f64;
    Fitted::Minimum { bias, variance, noise_variance: observed.noise_variance }
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

/// Keys of a list that stand out, most frequent first.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) places: Vec<usize>,
    /// What the smallest counters of a key sum up to, at least, if it stands out.
    least: f64,
    /// Other keys that may stand out from what the candidates leave: their smallest counters lie above the bulk.
    near: Vec<usize>,
}

impl Candidates {
    /// `totals` are the smallest counters of each key, summed over the substreams. The bulk of the keys is noise; not more
    /// candidates are taken than a share of the cells.
    pub(crate) fn new(totals: &[i64], cells: usize) -> Self {
        let mut sorted = totals.to_vec();
        let mut quantile = |share: f64| {
            let index = (sorted.len().saturating_sub(1) as f64 * share) as usize;
            *sorted.select_nth_unstable(index).1 as f64
        };
        let (median, lower) = (quantile(0.5), quantile(0.159));
        let deviation = median - lower;
        let near = (0..totals.len()).filter(|&place| median + deviation < totals[place] as f64).collect();
        Self { near, ..Self::above(median + CANDIDATE_DEVIATIONS * deviation, totals, cells) }
    }

    /// All keys, most frequent first.
    pub(crate) fn all(totals: &[i64], cells: usize) -> Self {
        Self::above(f64::NEG_INFINITY, totals, cells)
    }

    fn above(least: f64, totals: &[i64], cells: usize) -> Self {
        let mut places: Vec<usize> =
            (0..totals.len()).filter(|&place| least < totals[place] as f64).collect();
        places.sort_unstable_by_key(|&place| (Reverse(totals[place]), place));
        places.truncate((CANDIDATE_SHARE * cells as f64) as usize);
        Self { places, least, near: Vec::new() }
    }

    /// Least squares on the counts of the candidates in each substream. Candidates that only seemed to stand out, because
    /// they share counters with others, are dropped.
    pub(crate) fn fit(&mut self, observed: &[Observed<'_>], keys: &Keys) -> Vec<Fitted> {
        let mut fits: Vec<Fit> = observed.iter().map(|o| Fit::new(o, keys, &self.places)).collect();
        let kept = self.peel(&mut fits);
        let mut kept_places = kept.iter();
        self.places.retain(|_| *kept_places.next().expect("one a candidate"));
        if self.places.is_empty() {
            return fit(observed);
        }
        let finish = |(mut fit, observed): (Fit, &Observed<'_>)| {
            fit.keep(&kept);
            fit.sweep();
            fit.finish(observed.noise_variance)
        };
        fits.into_iter().zip(observed).map(finish).collect()
    }

    /// Adds the keys that stand out from what the candidates left: their estimates, summed over the substreams, exceed their
    /// standard error by far. Says whether there were any.
    pub(crate) fn add(&mut self, observed: &[Observed<'_>], fitted: &[Fitted], fingerprints: &[u64]) -> bool {
        let Some(shape) = observed.first().map(|o| o.sketch.shape()) else { return false };
        let variances = fitted.iter().map(|fitted| fitted.variance(shape));
        let (all, noise) = variances.fold((0.0, 0.0), |(all, noise), v| (all + v.0, noise + v.1));
        let room = (CANDIDATE_SHARE * shape.cells() as f64) as usize;
        if self.places.is_empty() || room <= self.places.len() || all < COLLISIONS_MIN * noise {
            return false;
        }
        let fingerprints: Vec<u64> = self.near.iter().map(|&place| fingerprints[place]).collect();
        let mut totals = vec![0.0; fingerprints.len()];
        by_blocks(&fingerprints, &mut totals, |first, block, totals| {
            for (observed, fitted) in observed.iter().zip(fitted) {
                fitted.estimate_all(*observed, block, first, |place, step| totals[place] += step);
            }
        });
        let known: HashSet<usize> = self.places.iter().copied().collect();
        let least = CANDIDATE_DEVIATIONS * all.sqrt();
        let stands_out = |&(total, place): &(f64, usize)| least < total && !known.contains(&place);
        let mut more: Vec<(f64, usize)> =
            totals.into_iter().zip(self.near.iter().copied()).filter(stands_out).collect();
        more.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        more.truncate(room - self.places.len());
        self.places.extend(more.iter().map(|(_, place)| place));
        self.least = f64::NEG_INFINITY;
        !more.is_empty()
    }

    /// Takes the candidates away one after the other, each with what its counters have in common, and keeps those that
    /// still stand out when their turn comes. Each starts in a substream from what it has in those around it: where two
    /// cannot be told apart in one substream, its neighbours decide.
    fn peel(&self, fits: &mut [Fit]) -> Vec<bool> {
        let mut leasts = vec![0.0; fits.len()];
        let stands_out = |candidate: usize| {
            leasts.iter_mut().zip(&*fits).for_each(|(least, fit)| *least = fit.least(candidate));
            let is_kept = self.least < leasts.iter().sum();
            if is_kept {
                leasts.iter_mut().zip(&*fits).for_each(|(least, fit)| *least = (*least - fit.level).max(0.0));
                for (index, fit) in fits.iter_mut().enumerate() {
                    fit.take(candidate, around(&leasts, index));
                }
            }
            is_kept
        };
        (0..self.places.len()).map(stands_out).collect()
    }
}

/// The middle of the two values before and the two after a place, or of as many as there are; a lone value itself.
fn around(values: &[f64], place: usize) -> f64 {
    let at = |index: Option<usize>| index.and_then(|index| values.get(index)).copied();
    let near = [
        at(place.checked_sub(2)),
        at(place.checked_sub(1)),
        at(place.checked_add(1)),
        at(place.checked_add(2)),
    ];
    if let [Some(a), Some(b), Some(c), Some(d)] = near {
        // Without the largest and the smallest.
        return (a + b + c + d - a.max(b).max(c.max(d)) - a.min(b).min(c.min(d))) / 2.0;
    }
    let mut near: Vec<f64> = near.into_iter().flatten().collect();
    near.sort_unstable_by(f64::total_cmp);
    match near.len() {
        0 => values[place],
        len => f64::midpoint(near[(len - 1) / 2], near[len / 2]),
    }
}

/// Candidates between two looks at the mean of what is left, so that a step need not wait for the one before it.
const STRIDE: usize = 16;

/// What candidates leave of one substream.
struct Fit {
    rows: usize,
    columns: f64,
    cells: Box<[f32]>,
    /// The cells that candidates fall on, side by side, so that they stay at hand for the processor.
    touched: Vec<usize>,
    /// What is left of the touched cells.
    values: Vec<f64>,
    /// The values of each candidate, one per row.
    places: Vec<u32>,
    /// Of each candidate.
    counts: Vec<f64>,
    /// The mean of what is left of all cells.
    level: f64,
}

impl Fit {
    fn new(observed: &Observed<'_>, keys: &Keys, candidates: &[usize]) -> Self {
        const UNSEEN: u32 = u32::MAX;
        let shape = observed.sketch.shape();
        let (cells, sum) = observed.sketch.floats();
        let mut place_of = vec![UNSEEN; cells.len()];
        let (mut touched, mut places) = (Vec::new(), Vec::new());
        for cell in candidates.iter().flat_map(|&place| observed.mapping.cells(keys.get(place))) {
            if place_of[cell] == UNSEEN {
                place_of[cell] = touched.len() as u32;
                touched.push(cell);
            }
            places.push(place_of[cell]);
        }
        Self {
            rows: shape.rows as usize,
            columns: f64::from(shape.columns),
            values: touched.iter().map(|&cell| cells[cell].into()).collect(),
            touched,
            places,
            counts: vec![0.0; candidates.len()],
            level: sum as f64 / cells.len() as f64,
            cells,
        }
    }

    fn places(&self, candidate: usize) -> &[u32] {
        &self.places[candidate * self.rows..(candidate + 1) * self.rows]
    }

    fn least(&self, candidate: usize) -> f64 {
        self.places(candidate)
            .iter()
            .fold(f64::INFINITY, |least, &place| least.min(self.values[place as usize]))
    }

    fn take(&mut self, candidate: usize, count: f64) {
        for place in candidate * self.rows..(candidate + 1) * self.rows {
            self.values[self.places[place] as usize] -= count;
        }
        self.counts[candidate] += count;
        self.level -= count / self.columns;
    }

    fn keep(&mut self, kept: &[bool]) {
        let mut keep = kept.iter();
        self.counts.retain(|_| *keep.next().expect("one a candidate"));
        let mut keep = kept.iter().flat_map(|kept| std::iter::repeat_n(kept, self.rows));
        self.places.retain(|_| *keep.next().expect("one a candidate and row"));
    }

    /// Gauss-Seidel, largest first. The usual numbers of rows are unrolled.
    fn sweep(&mut self) {
        for _ in 0..SWEEPS {
            match self.rows {
                2 => self.sweep_rows(2),
                3 => self.sweep_rows(3),
                rows => self.sweep_rows(rows),
            }
        }
    }

    #[inline(always)]
    fn sweep_rows(&mut self, rows: usize) {
        let Self { values, places, counts, .. } = self;
        for (counts, places) in counts.chunks_mut(STRIDE).zip(places.chunks(STRIDE * rows)) {
            let mut taken = 0.0;
            for (count, places) in counts.iter_mut().zip(places.chunks_exact(rows)) {
                let sum = places.iter().fold(0.0, |sum, &place| sum + values[place as usize]);
                let step = sum / rows as f64 - self.level;
                *count += step;
                places.iter().for_each(|&place| values[place as usize] -= step);
                taken += step;
            }
            self.level -= taken / self.columns;
        }
    }

    fn finish(mut self, noise_variance: f64) -> Fitted {
        self.touched.iter().zip(&self.values).for_each(|(&cell, &value)| self.cells[cell] = value as f32);
        let squares = sum_of(&self.cells, |cell| (f64::from(cell) - self.level).powi(2));
        Fitted::Residual {
            variance: squares / (self.cells.len() - self.counts.len()) as f64,
            residual: self.cells,
            mean: self.level,
            counts: self.counts.iter().map(|&count| count as f32).collect(),
            noise_variance,
        }
    }
}

/// Several sums side by side, so that an addition need not wait for the one before it.
fn sum_of(values: &[f32], of: impl Fn(f32) -> f64) -> f64 {
    let (lanes, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for lane in lanes {
        sums.iter_mut().zip(lane).for_each(|(sum, &value)| *sum += of(value));
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&value| of(value)).sum::<f64>()
}
