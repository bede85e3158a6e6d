//! Sealed counters → estimates: least squares on heavy candidates, residual means, debiased minima, and how far each
//! may be off. Pure functions of released numbers, so a view loaded from bytes computes the same.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::item::keys::Keys;
use crate::item::mapping::{Mapping, Shape};
use crate::noise::tail::Moments;
use crate::plan::limits::{CANDIDATE_DEVIATIONS, CANDIDATE_SHARE};
use crate::sealed::absent::{DEVIATION_SHARE, absent_minima, select_quantile, sum_of};
use crate::sealed::pins::Pins;
use crate::sealed::sketch::SealedSketch;

/// Sweeps of the least-squares fit. More do not lower the errors; docs/design/estimation.md has the measurement.
const SWEEPS: usize = 6;

/// Collisions are looked at again where they raise the variance to this many times that of the noise: below it, bars could
/// shrink by at most 9 %.
const COLLISIONS_MIN: f64 = 1.2;

/// How many keys are estimated at a time, so that they stay at hand for the processor.
const BLOCK: usize = 4096;

/// Works on keys block by block: the index of the first, the fingerprints, what is made of each.
pub(crate) fn by_blocks<T>(
    fingerprints: &[u64],
    made: &mut [T],
    mut work: impl FnMut(usize, &[u64], &mut [T]),
) {
    for (number, (block, made)) in fingerprints.chunks(BLOCK).zip(made.chunks_mut(BLOCK)).enumerate() {
        work(number * BLOCK, block, made);
    }
}

/// Adds values to sums, one by one.
pub(crate) fn add_each(sums: &mut [f64], values: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// A sealed whole substream to be fitted.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) sketch: &'a SealedSketch,
    pub(crate) mapping: &'a Mapping,
    /// Of the noise on one counter.
    pub(crate) noise: Moments,
    /// Decides the random tuples.
    pub(crate) number: u64,
    /// The part of a planned substream that the stream reaches into.
    pub(crate) length: f64,
    /// Pinned keys count elsewhere.
    pub(crate) pins: &'a Pins,
}

impl Observed<'_> {
    /// Whether counts of keys that share a counter can be told apart.
    pub(crate) fn can_separate(&self) -> bool {
        1 < self.sketch.shape().rows
    }

    /// Whether a key is counted here.
    pub(crate) fn counts_key(&self, fingerprint: u64) -> bool {
        self.pins.slot_at(fingerprint, self.number).is_none()
    }

    /// The smallest counter of each fingerprint, by its index.
    pub(crate) fn visit_minima(&self, fingerprints: &[u64], put: impl FnMut(usize, i32)) {
        self.sketch.visit_minima(self.mapping.rows(), fingerprints, put);
    }
}

/// The fit of one substream: an unbiased estimate for any key, and its variance.
#[derive(Debug)]
pub(crate) enum SubstreamFit {
    /// A counter for each key.
    Identity { noise: Moments },
    /// The smallest counter of a key minus what an absent key would see.
    Minimum { bias: f64, all: Moments, noise: Moments },
    /// Fitted counts of the candidates and the mean over rows of what they leave.
    Residual {
        residual: Box<[f32]>,
        mean: f64,
        counts: Box<[f32]>,
        scale: f64,
        /// The share of the counters that the fit leaves free.
        free: f64,
        all: Moments,
        noise: Moments,
    },
}

impl SubstreamFit {
    /// The estimate of the key with these cells; `candidate` is its rank among the candidates, if it is one.
    #[inline]
    pub(crate) fn estimate_key(
        &self,
        sketch: &SealedSketch,
        cells: impl Iterator<Item = usize>,
        candidate: Option<usize>,
    ) -> f64 {
        match self {
            Self::Identity { .. } => sketch.minimum_of(cells) as f64,
            Self::Minimum { bias, .. } => {
                self.own_scale(sketch.shape()) * (sketch.minimum_of(cells) as f64 - bias)
            }
            Self::Residual { residual, mean, .. } => {
                let mut sum = 0.0;
                let mut rows = 0.0;
                for cell in cells {
                    sum += f64::from(residual[cell]);
                    rows += 1.0;
                }
                let rest = self.own_scale(sketch.shape()) * (sum / rows - mean);
                rest + candidate.map_or(0.0, |rank| self.fitted_count(rank))
            }
        }
    }

    /// What makes up for the share of a key's count that its own counter adds to the mean, and for the share that the fit
    /// gives to candidates on the same counters: each candidate uses up one counter. The smallest of several counters is
    /// rarely the key's own.
    fn own_scale(&self, shape: Shape) -> f64 {
        let columns = f64::from(shape.columns);
        match self {
            Self::Minimum { .. } if 1 < shape.rows => 1.0,
            Self::Residual { scale, .. } => *scale,
            _ => columns / (columns - 1.0),
        }
    }

    /// The fitted count of the candidate of this rank.
    pub(crate) fn fitted_count(&self, rank: usize) -> f64 {
        match self {
            Self::Residual { counts, .. } => counts[rank].into(),
            _ => 0.0,
        }
    }

    /// The estimates of these keys, which begin at `first` in the list, without the fitted counts of candidates.
    /// With them each is the same as [`estimate_key`](Self::estimate_key) gives.
    pub(crate) fn estimate_all(
        &self,
        observed: Observed<'_>,
        fingerprints: &[u64],
        first: usize,
        steps: &mut [f64],
    ) {
        let sketch = observed.sketch;
        let scale = self.own_scale(sketch.shape());
        match self {
            Self::Identity { .. } => sketch.copy_from(first, &mut steps[..fingerprints.len()]),
            Self::Minimum { bias, .. } => observed.visit_minima(fingerprints, |key_index, minimum| {
                steps[key_index] = scale * (f64::from(minimum) - bias);
            }),
            Self::Residual { residual, mean, .. } => {
                let rows = f64::from(sketch.shape().rows);
                observed.mapping.rows().fold_all(
                    fingerprints,
                    residual,
                    0.0,
                    |sum, r: f32| sum + f64::from(r),
                    |key_index, sum: f64| steps[key_index] = scale * (sum / rows - mean),
                );
            }
        }
    }

    /// How far an estimate is off.
    pub(crate) fn estimate_spread(&self, shape: Shape) -> Spread {
        let rows = f64::from(shape.rows);
        let square = self.own_scale(shape).powi(2);
        match *self {
            Self::Identity { noise } => Spread { all: noise, noise: noise.variance },
            Self::Minimum { all, noise, .. } => {
                let all = all.times_root(square);
                Spread { all, noise: all.variance.min(noise.mean_of(rows).variance) }
            }
            Self::Residual { all, noise, free, .. } => {
                let square = square * free;
                let noise = all.variance.min(noise.variance) * square / rows;
                Spread { all: all.mean_of(rows).times_root(square), noise }
            }
        }
    }
}

/// The law of what an estimate is off by, and the part of its variance that is privacy noise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) all: Moments,
    pub(crate) noise: f64,
}

/// Fits substreams that have no candidates.
pub(crate) fn fit_minima(observed: &[Observed<'_>]) -> Vec<SubstreamFit> {
    observed.iter().map(fit_minimum).collect()
}

fn fit_minimum(observed: &Observed<'_>) -> SubstreamFit {
    if observed.mapping.is_identity() {
        return SubstreamFit::Identity { noise: observed.noise };
    }
    // The smallest of several noisy counters lies below the mean: what an absent key sees is taken off.
    let minima = absent_minima(observed.sketch, observed.number);
    let count = minima.len() as f64;
    let bias = sum_of(&minima, f64::from) / count;
    SubstreamFit::Minimum { bias, all: measure_moments(&minima, bias, count - 1.0), noise: observed.noise }
}

/// A key that is pinned in some substreams, and what its smallest counters sum up to in the others.
pub(crate) struct PartlyPinned {
    pub(crate) key_index: usize,
    pub(crate) sum: i64,
    /// The share of those others.
    pub(crate) share: f64,
}

/// The total of a key that is pinned everywhere.
const NOWHERE: i64 = i64::MIN;

impl PartlyPinned {
    /// A total in all substreams that stands out as much.
    fn scaled_total(&self, middle: f64) -> i64 {
        if self.share == 0.0 {
            return NOWHERE;
        }
        // Noise grows with the root of the number of substreams: a key keeps its distance in deviations.
        (middle + (self.sum as f64 - middle * self.share) / self.share.sqrt()).round() as i64
    }
}

/// Keys of a list that stand out, most frequent first.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) key_indices: Vec<usize>,
    /// What the smallest counters of a key sum up to if it is absent, and by how much at least it is more if it stands out.
    middle: f64,
    reach: f64,
    /// Other keys that may stand out from what the candidates leave: their smallest counters lie above the bulk.
    near: Vec<usize>,
}

impl Candidates {
    /// `totals` are the smallest counters of each key, summed over the substreams. The bulk of the keys is noise; not more
    /// candidates are taken than a share of the cells.
    pub(crate) fn new(mut totals: Vec<i64>, pinned: &[PartlyPinned], cells: usize) -> Self {
        let mut sorted = totals.clone();
        let median = select_quantile(&mut sorted, 0.5) as f64;
        // Frequent keys lie above the median: only what is below it shows how far noise reaches.
        let deviation = median - select_quantile(&mut sorted, DEVIATION_SHARE) as f64;
        for key in pinned {
            totals[key.key_index] = key.scaled_total(median);
        }
        let near = (0..totals.len()).filter(|&index| median + deviation < totals[index] as f64).collect();
        Self { near, ..Self::standing_out([median, CANDIDATE_DEVIATIONS * deviation], &totals, cells) }
    }

    /// All keys, most frequent first.
    pub(crate) fn all_keys(mut totals: Vec<i64>, pinned: &[PartlyPinned], cells: usize) -> Self {
        for key in pinned {
            totals[key.key_index] = key.scaled_total(0.0);
        }
        Self::standing_out([0.0, f64::NEG_INFINITY], &totals, cells)
    }

    fn standing_out([middle, reach]: [f64; 2], totals: &[i64], cells: usize) -> Self {
        let mut key_indices: Vec<usize> = (0..totals.len())
            .filter(|&index| totals[index] != NOWHERE && middle + reach < totals[index] as f64)
            .collect();
        // By index where totals are equal: a view that is loaded must fit in the same order.
        key_indices.sort_unstable_by_key(|&index| (Reverse(totals[index]), index));
        key_indices.truncate((CANDIDATE_SHARE * cells as f64) as usize);
        Self { key_indices, middle, reach, near: Vec::new() }
    }

    /// Whether a key stands out whose smallest counters sum up to this, in a share of the substreams.
    fn stands_out(&self, sum: f64, share: f64) -> bool {
        0.0 < share && self.middle * share + self.reach * share.sqrt() < sum
    }

    /// Least squares on the counts of the candidates in each substream. Candidates that only seemed to stand out, because
    /// they share counters with others, are dropped.
    pub(crate) fn fit_substreams(&mut self, observed: &[Observed<'_>], keys: &Keys) -> Vec<SubstreamFit> {
        let mut fits: Vec<LeastSquares> =
            observed.iter().map(|observed| LeastSquares::new(observed, keys, &self.key_indices)).collect();
        let kept = self.peel_off(&mut fits);
        retain_marked(&mut self.key_indices, kept.iter().copied());
        // What pinned keys leave is the same in all rows.
        let are_rare = observed.iter().any(|observed| !observed.pins.is_empty() && observed.can_separate());
        if self.key_indices.is_empty() && !are_rare {
            return fit_minima(observed);
        }
        let fits = fits.into_iter().zip(observed);
        fits.map(|(fit, observed)| fit.fit_kept(&kept, observed.noise)).collect()
    }

    /// Adds the keys that stand out from what the candidates left: their estimates, summed over the substreams, exceed their
    /// standard error by far. Says whether there were any.
    pub(crate) fn add_more(
        &mut self,
        observed: &[Observed<'_>],
        fitted: &[SubstreamFit],
        fingerprints: &[u64],
    ) -> bool {
        let Some(shape) = observed.first().map(|o| o.sketch.shape()) else { return false };
        let mut variance = 0.0;
        let mut noise = 0.0;
        for spread in fitted.iter().map(|fitted| fitted.estimate_spread(shape)) {
            variance += spread.all.variance;
            noise += spread.noise;
        }
        let room = (CANDIDATE_SHARE * shape.cells() as f64) as usize;
        if self.key_indices.is_empty() || room <= self.key_indices.len() || variance < COLLISIONS_MIN * noise
        {
            return false;
        }
        let known: HashSet<usize> = self.key_indices.iter().copied().collect();
        let least = CANDIDATE_DEVIATIONS * variance.sqrt();
        let totals = self.sum_near(observed, fitted, fingerprints).into_iter().zip(self.near.iter().copied());
        let mut more: Vec<(f64, usize)> =
            totals.filter(|(total, index)| least < *total && !known.contains(index)).collect();
        // By index where totals are equal, as above.
        more.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        more.truncate(room - self.key_indices.len());
        self.key_indices.extend(more.iter().map(|(_, index)| index));
        // They were chosen by their estimates: their smallest counters need not stand out as well.
        self.reach = f64::NEG_INFINITY;
        !more.is_empty()
    }

    /// The estimates of the keys that may stand out, summed over the substreams.
    fn sum_near(&self, observed: &[Observed<'_>], fitted: &[SubstreamFit], fingerprints: &[u64]) -> Vec<f64> {
        let fingerprints: Vec<u64> = self.near.iter().map(|&index| fingerprints[index]).collect();
        let mut totals = vec![0.0; fingerprints.len()];
        by_blocks(&fingerprints, &mut totals, |first, block, totals| {
            let mut steps = vec![0.0; block.len()];
            for (observed, fitted) in observed.iter().zip(fitted) {
                fitted.estimate_all(*observed, block, first, &mut steps);
                add_each(totals, &steps);
            }
        });
        totals
    }

    /// Takes the candidates away one after the other, each with what its counters have in common, and keeps those that
    /// still stand out when their turn comes. Each starts in a substream from what it has in those around it: where two
    /// cannot be told apart in one substream, its neighbours decide. A shorter substream starts from its share of that.
    fn peel_off(&self, fits: &mut [LeastSquares]) -> Vec<bool> {
        let mut leasts = vec![None; fits.len()];
        let mut kept = vec![false; self.key_indices.len()];
        for (candidate, is_kept) in kept.iter_mut().enumerate() {
            for (least, fit) in leasts.iter_mut().zip(&*fits) {
                *least = fit.least_counter(candidate);
            }
            let here = leasts.iter().flatten().count();
            *is_kept = self.stands_out(leasts.iter().flatten().sum(), here as f64 / leasts.len() as f64);
            if *is_kept {
                take_candidate(candidate, fits, &mut leasts);
            }
        }
        kept
    }
}

/// Takes a candidate with these smallest counters off all substreams in which it counts.
fn take_candidate(candidate: usize, fits: &mut [LeastSquares], leasts: &mut [Option<f64>]) {
    for (least, fit) in leasts.iter_mut().zip(&*fits) {
        // What all counters hold on average is not the candidate's.
        *least = least.map(|least| (least - fit.level).max(0.0));
    }
    let is_alone = fits.len() == 1;
    for (index, fit) in fits.iter_mut().enumerate().filter(|(index, _)| leasts[*index].is_some()) {
        let share = if is_alone { 1.0 } else { fit.length };
        fit.take_off(candidate, share * middle_around(leasts, index));
    }
}

/// The middle of the two values before and the two after an index, or of as many as there are; a lone value itself.
fn middle_around(values: &[Option<f64>], index: usize) -> f64 {
    let near = [index.checked_sub(2), index.checked_sub(1), index.checked_add(1), index.checked_add(2)]
        .map(|near| values.get(near?).copied().flatten());
    if let [Some(a), Some(b), Some(c), Some(d)] = near {
        // Without the largest and the smallest.
        return (a + b + c + d - a.max(b).max(c.max(d)) - a.min(b).min(c.min(d))) / 2.0;
    }
    let mut near: Vec<f64> = near.into_iter().flatten().collect();
    near.sort_unstable_by(f64::total_cmp);
    match near.len() {
        0 => values[index].unwrap_or(0.0),
        len => f64::midpoint(near[(len - 1) / 2], near[len / 2]),
    }
}

/// Candidates between two looks at the mean of what is left, so that a step need not wait for the one before it.
const STRIDE: usize = 16;

/// A least-squares fit in progress: what candidates leave of one substream.
struct LeastSquares {
    rows: usize,
    columns: f64,
    cells: Box<[f32]>,
    /// The cells that candidates fall on, side by side, so that they stay at hand for the processor.
    touched: Vec<usize>,
    /// What is left of the touched cells.
    values: Vec<f64>,
    /// The indices of the values of each candidate, one per row.
    value_indices: Vec<u32>,
    /// Of each candidate that counts here.
    counts: Vec<f64>,
    /// Which of them each candidate is, if it counts here.
    ranks: Vec<Option<u32>>,
    /// The mean of what is left of all cells.
    level: f64,
    /// That of the substream.
    length: f64,
}

impl LeastSquares {
    fn new(observed: &Observed<'_>, keys: &Keys, candidates: &[usize]) -> Self {
        const UNSEEN: u32 = u32::MAX;
        let shape = observed.sketch.shape();
        let (cells, sum) = observed.sketch.to_floats();
        let mut touched_at = vec![UNSEEN; cells.len()];
        let mut touched = Vec::new();
        let mut value_indices = Vec::new();
        let mut count = 0;
        let mut ranks = Vec::with_capacity(candidates.len());
        for item in candidates.iter().map(|&key_index| keys.get(key_index)) {
            let fingerprint = observed.mapping.fingerprint_key.hash_item(item);
            let rank = observed.counts_key(fingerprint).then_some(count);
            ranks.push(rank);
            if rank.is_none() {
                continue;
            }
            count += 1;
            for cell in observed.mapping.cells_of(item, fingerprint) {
                if touched_at[cell] == UNSEEN {
                    touched_at[cell] = touched.len() as u32;
                    touched.push(cell);
                }
                value_indices.push(touched_at[cell]);
            }
        }
        Self {
            rows: shape.rows as usize,
            columns: f64::from(shape.columns),
            values: touched.iter().map(|&cell| cells[cell].into()).collect(),
            touched,
            value_indices,
            counts: vec![0.0; count as usize],
            ranks,
            level: sum as f64 / cells.len() as f64,
            length: observed.length,
            cells,
        }
    }

    fn rank_of(&self, candidate: usize) -> Option<usize> {
        self.ranks[candidate].map(|rank| rank as usize)
    }

    /// The smallest counter of a candidate, if it counts here.
    fn least_counter(&self, candidate: usize) -> Option<f64> {
        let rank = self.rank_of(candidate)?;
        let indices = self.value_indices[rank * self.rows..(rank + 1) * self.rows].iter();
        Some(indices.fold(f64::INFINITY, |least, &index| least.min(self.values[index as usize])))
    }

    fn take_off(&mut self, candidate: usize, count: f64) {
        let Some(rank) = self.rank_of(candidate) else { return };
        for &index in &self.value_indices[rank * self.rows..(rank + 1) * self.rows] {
            self.values[index as usize] -= count;
        }
        self.counts[rank] += count;
        self.level -= count / self.columns;
    }

    /// Forgets all candidates but these.
    fn keep_candidates(&mut self, kept: &[bool]) {
        let mut kept_here = Vec::new();
        let mut ranks = Vec::new();
        let mut count = 0;
        for (&is_kept, rank) in kept.iter().zip(&self.ranks) {
            if rank.is_some() {
                kept_here.push(is_kept);
            }
            if is_kept {
                ranks.push(rank.map(|_| count));
                count += u32::from(rank.is_some());
            }
        }
        retain_marked(&mut self.counts, kept_here.iter().copied());
        let rows = self.rows;
        let kept_rows = kept_here.into_iter().flat_map(|is_kept| std::iter::repeat_n(is_kept, rows));
        retain_marked(&mut self.value_indices, kept_rows);
        self.ranks = ranks;
    }

    /// Gauss-Seidel, largest first. The usual numbers of rows are unrolled.
    fn sweep_candidates(&mut self) {
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
        let Self { values, value_indices, counts, .. } = self;
        for (counts, indices) in counts.chunks_mut(STRIDE).zip(value_indices.chunks(STRIDE * rows)) {
            let mut taken = 0.0;
            for (count, indices) in counts.iter_mut().zip(indices.chunks_exact(rows)) {
                let sum = indices.iter().fold(0.0, |sum, &index| sum + values[index as usize]);
                let step = sum / rows as f64 - self.level;
                *count += step;
                for &index in indices {
                    values[index as usize] -= step;
                }
                taken += step;
            }
            self.level -= taken / self.columns;
        }
    }

    /// Fits the candidates that are kept.
    fn fit_kept(mut self, kept: &[bool], noise: Moments) -> SubstreamFit {
        self.keep_candidates(kept);
        self.sweep_candidates();
        for (&cell, &value) in self.touched.iter().zip(&self.values) {
            self.cells[cell] = value as f32;
        }
        let free = (self.cells.len() - self.counts.len()) as f64;
        let free_share = 1.0 - self.counts.len() as f64 / self.cells.len() as f64;
        // A candidate that is pinned here has nothing in these counters.
        let counts = self
            .ranks
            .iter()
            .map(|rank| rank.map_or(0.0, |rank| self.counts[rank as usize] as f32))
            .collect();
        SubstreamFit::Residual {
            all: measure_moments(&self.cells, self.level, free),
            scale: self.columns / (self.columns - 1.0) / free_share,
            free: free_share,
            counts,
            residual: self.cells,
            mean: self.level,
            noise,
        }
    }
}

/// Keeps the values with a mark, in their order; there is one mark for each.
fn retain_marked<T>(values: &mut Vec<T>, mut marks: impl Iterator<Item = bool>) {
    values.retain(|_| marks.next().expect("a mark for each"));
}

/// The moments of values around their mean; `free` of them are free.
fn measure_moments(values: &[f32], mean: f64, free: f64) -> Moments {
    let squares = sum_of(values, |value| (f64::from(value) - mean).powi(2));
    let fourths = sum_of(values, |value| (f64::from(value) - mean).powi(4));
    Moments::measured(squares, fourths, free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    use crate::item::hash::StreamKey;
    use crate::item::mapping::Columns;
    use crate::noise::generator::{Generator, Noise};
    use crate::noise::law::Law;
    use crate::plan::limits::Width;
    use crate::privacy::accounting::normal_quantile;
    use crate::ratio::Ratio;

    const SHAPE: Shape = Shape { rows: 3, columns: 30 };

    /// A sealed substream whose true counts are known.
    struct Sample {
        sketch: SealedSketch,
        mapping: Mapping,
        noise: Moments,
        number: u64,
    }

    impl Sample {
        /// Holds each key this many times.
        fn new(shape: Shape, number: u64, counts: &[i32]) -> Self {
            let stream = StreamKey::from_bytes([9; 32]);
            let columns = Columns::Hashed(stream.row_keys(number, shape.rows as usize).into());
            let fingerprint_key = stream.fingerprint_key();
            let mapping = Mapping { shape, fingerprint_key, columns, pinned: None };
            let mut cells = vec![0; shape.cells()];
            for (key, count) in counts.iter().enumerate() {
                mapping.cells((key as u64).into()).for_each(|cell| cells[cell] += count);
            }
            let sketch = SealedSketch::of_released(shape, &cells, None, Width::Narrow);
            Self { sketch, mapping, noise: Moments::default(), number }
        }

        fn with_noise(self, generator: &mut Generator) -> Self {
            let law = Law::Laplace { scale: Ratio::new(6, 1).expect("a ratio") };
            let noisy = self.sketch.cells().into_iter().map(|cell| cell + law.draw_exactly(generator) as i32);
            let cells: Vec<i32> = noisy.collect();
            let sketch = SealedSketch::of_released(self.sketch.shape(), &cells, None, Width::Narrow);
            Self { sketch, noise: Moments::of_draws(law, 1.0), ..self }
        }

        fn observed(&self) -> Observed<'_> {
            let Self { sketch, mapping, noise, number } = self;
            let pins = Pins::none();
            Observed { sketch, mapping, noise: *noise, number: *number, length: 1.0, pins }
        }

        fn fingerprints(&self, keys: u64) -> Vec<u64> {
            (0..keys).map(|key| self.mapping.fingerprint_key.hash_integer(key)).collect()
        }

        fn estimate(&self, fitted: &SubstreamFit, candidates: &Candidates, key: u64) -> f64 {
            let rank = candidates.key_indices.iter().position(|&place| place as u64 == key);
            fitted.estimate_key(&self.sketch, self.mapping.cells(key.into()), rank)
        }
    }

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
    }

    /// 13 keys that stand out, which is the most that 3 x 30 counters can fit, 27 rare ones and one of middling size.
    fn counts() -> Vec<i32> {
        let heavy = (0..13).map(|rank| 1000 - 50 * rank);
        heavy.chain((0..27).map(|rank| 1 + rank % 4)).chain([40]).collect()
    }

    const HEAVY: Range<u64> = 0..13;
    const MIDDLING: Range<u64> = 40..41;
    const ABSENT: Range<u64> = 41..91;

    fn heaviest(counts: &[i32], shape: Shape) -> Candidates {
        let totals: Vec<i64> = counts.iter().map(|&count| count.into()).collect();
        Candidates::all_keys(totals, &[], shape.cells())
    }

    fn no_candidates() -> Candidates {
        Candidates::default()
    }

    /// Over many substreams: the errors of some keys, and the variance claimed for each.
    fn errors(keys: Range<u64>, candidates: impl Fn(&[i32]) -> Candidates) -> Vec<(Vec<f64>, f64)> {
        let (counts, mut generator) = (counts(), generator(1));
        let list = Keys::Range(ABSENT.end);
        let mut one = |number: u64| {
            let sample = Sample::new(SHAPE, number, &counts).with_noise(&mut generator);
            let mut candidates = candidates(&counts);
            let fitted = candidates.fit_substreams(&[sample.observed()], &list).remove(0);
            let error = |key: u64| {
                let truth = counts.get(key as usize).copied().unwrap_or(0);
                sample.estimate(&fitted, &candidates, key) - f64::from(truth)
            };
            (keys.clone().map(error).collect(), fitted.estimate_spread(SHAPE).all.variance)
        };
        (0..SUBSTREAMS).map(&mut one).collect()
    }

    const SUBSTREAMS: u64 = 2000;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// The mean over independent substreams lies within five of its standard errors but for chance: 6e-7.
    #[track_caller]
    fn check_unbiased(errors: &[(Vec<f64>, f64)]) {
        let means: Vec<f64> = errors.iter().map(|(errors, _)| mean(errors)).collect();
        let squares: Vec<f64> = means.iter().map(|m| (m - mean(&means)).powi(2)).collect();
        let deviation = (mean(&squares) / means.len() as f64).sqrt();
        assert!(mean(&means).abs() < 5.0 * deviation, "{} ± {deviation}", mean(&means));
    }

    /// The mean square against the mean variance that is claimed, with five standard errors of their difference: 6e-7. The
    /// claim itself may be too large by one part in the number of columns.
    #[track_caller]
    fn check_variance(errors: &[(Vec<f64>, f64)]) {
        let square = |errors: &Vec<f64>| errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64;
        let differences: Vec<f64> = errors.iter().map(|(errors, claimed)| square(errors) - claimed).collect();
        let squares: Vec<f64> = differences.iter().map(|d| (d - mean(&differences)).powi(2)).collect();
        let deviation = (mean(&squares) / differences.len() as f64).sqrt();
        let claimed = mean(&errors.iter().map(|(_, claimed)| *claimed).collect::<Vec<_>>());
        let off = mean(&differences);
        let slack = claimed / f64::from(SHAPE.columns);
        assert!(off.abs() < slack + 5.0 * deviation, "{off} of {claimed} ± {deviation}");
    }

    #[test]
    fn a_key_that_never_occurred_is_estimated_at_zero_on_average() {
        check_unbiased(&errors(ABSENT, |_| no_candidates()));
        check_unbiased(&errors(ABSENT, |counts| heaviest(counts, SHAPE)));
    }

    #[test]
    fn a_key_that_occurred_is_estimated_at_its_count_on_average() {
        check_unbiased(&errors(MIDDLING, |counts| heaviest(counts, SHAPE)));
        check_unbiased(&errors(HEAVY, |counts| heaviest(counts, SHAPE)));
    }

    #[test]
    fn errors_are_as_large_as_their_variance_says() {
        check_variance(&errors(ABSENT, |_| no_candidates()));
        check_variance(&errors(ABSENT, |counts| heaviest(counts, SHAPE)));
    }

    /// Seven whole substreams and a 20th of one, with as many candidates as they can fit. If it started from what whole ones
    /// have, six sweeps would leave five times the claimed variance. The mean of 500 squares deviates by at most
    /// sqrt(3 / 500) = 8 % even if the 13 errors of a substream move together: six deviations happen with probability 2e-9.
    #[test]
    fn a_shorter_substream_is_fitted_as_well_as_others() {
        const RUNS: u64 = 500;
        let (counts, mut generator) = (counts(), generator(4));
        let short: Vec<i32> = counts.iter().map(|count| count / 20).collect();
        let (mut squares, mut claims) = (0.0, 0.0);
        for run in 0..RUNS {
            let all = [[&counts; 7].as_slice(), &[&short]].concat();
            let sample = |(number, counts): (u64, &Vec<i32>)| {
                Sample::new(SHAPE, 8 * run + number, counts).with_noise(&mut generator)
            };
            let samples: Vec<Sample> = (0..).zip(all).map(sample).collect();
            let mut observed: Vec<Observed<'_>> = samples.iter().map(Sample::observed).collect();
            observed[7].length = 0.05;
            let mut candidates = heaviest(&counts, SHAPE);
            let fitted = candidates.fit_substreams(&observed, &Keys::Range(ABSENT.end)).remove(7);
            let error =
                |key: u64| samples[7].estimate(&fitted, &candidates, key) - f64::from(short[key as usize]);
            squares += HEAVY.map(|key| error(key).powi(2)).sum::<f64>() / 13.0;
            claims += fitted.estimate_spread(SHAPE).all.variance;
        }
        assert!((squares / claims - 1.0).abs() < 0.5, "{squares} for {claims}");
    }

    /// The counts and the level that leave the least sum of squares, by the normal equations.
    fn least_squares(sample: &Sample, candidates: &[usize]) -> Vec<f64> {
        let cells_of = |place: usize| -> Vec<usize> { sample.mapping.cells((place as u64).into()).collect() };
        let cells = sample.sketch.cells();
        let touches: Vec<Vec<f64>> = candidates
            .iter()
            .map(|&place| (0..cells.len()).map(|cell| f64::from(cells_of(place).contains(&cell))).collect())
            .chain([vec![1.0; cells.len()]])
            .collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let counters: Vec<f64> = cells.iter().map(|&cell| cell.into()).collect();
        let row = |of: &Vec<f64>| touches.iter().chain([&counters]).map(|t| product(of, t)).collect();
        eliminate(touches.iter().map(row).collect())
    }

    /// Solves linear equations that are given with their right sides.
    fn eliminate(mut equations: Vec<Vec<f64>>) -> Vec<f64> {
        for pivot in 0..equations.len() {
            let of_pivot = equations[pivot].clone();
            for (_, equation) in equations.iter_mut().enumerate().filter(|(row, _)| *row != pivot) {
                let factor = equation[pivot] / of_pivot[pivot];
                equation.iter_mut().zip(&of_pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
        let right = |(row, equation): (usize, &Vec<f64>)| equation[equation.len() - 1] / equation[row];
        equations.iter().enumerate().map(right).collect()
    }

    fn check_least_squares(got: impl Iterator<Item = f64>, wanted: &[f64], slack: f64) {
        let off = got.zip(wanted).map(|(got, wanted)| (got - wanted).abs()).fold(0.0, f64::max);
        assert!(off < slack, "{off}");
    }

    /// Six sweeps suffice where candidates have room; what is left is far below the noise, whose deviation is 8.5.
    #[test]
    fn fitted_counts_equal_least_squares_solved_directly() {
        let (counts, mut generator) = (counts(), generator(2));
        for number in 0..20 {
            let sample =
                Sample::new(Shape { rows: 3, columns: 400 }, number, &counts).with_noise(&mut generator);
            let mut candidates = heaviest(&counts[..13], SHAPE);
            let fitted = candidates.fit_substreams(&[sample.observed()], &Keys::Range(41)).remove(0);
            let SubstreamFit::Residual { counts, mean, .. } = &fitted else { panic!("there are candidates") };
            let got = counts.iter().map(|&count| f64::from(count)).chain([*mean]);
            check_least_squares(got, &least_squares(&sample, &candidates.key_indices), 0.01);
        }
    }

    #[test]
    fn sweeps_approach_least_squares_however_crowded_the_counters_are() {
        let (counts, mut generator) = (counts(), generator(2));
        for number in 0..20 {
            let sample =
                Sample::new(Shape { rows: 3, columns: 50 }, number, &counts).with_noise(&mut generator);
            let places: Vec<usize> = (0..13).collect();
            let mut fit = LeastSquares::new(&sample.observed(), &Keys::Range(41), &places);
            (0..100).for_each(|_| fit.sweep_candidates());
            let got = fit.counts.iter().copied().chain([fit.level]);
            check_least_squares(got, &least_squares(&sample, &places), 1e-6);
        }
    }

    #[test]
    fn candidates_stand_out_by_four_deviations_of_the_bulk() {
        let bulk =
            (0..10_000).map(|rank| (1000.0 * normal_quantile((f64::from(rank) + 0.5) / 10_000.0)) as i64);
        let totals: Vec<i64> = bulk.chain([3900, 4100, 5000, 4200]).collect();
        assert_eq!(Candidates::new(totals.clone(), &[], 100_000).key_indices, [10_002, 10_003, 10_001]);
        // A cell in seven can be spent.
        assert_eq!(Candidates::new(totals.clone(), &[], 14).key_indices, [10_002, 10_003]);
        let near = Candidates::new(totals.clone(), &[], 100_000).near.len();
        assert!((1580..1610).contains(&near), "{near} keys lie one deviation above the middle");
    }

    /// Without noise: two keys, and one that never occurred but shares a counter with each of them.
    #[test]
    fn a_key_that_only_shares_counters_with_others_is_dropped() {
        let shape = Shape { rows: 2, columns: 40 };
        let counts = [1000, 900];
        let sample = Sample::new(shape, 1, &counts);
        let fingerprints = sample.fingerprints(5000);
        let mut totals = vec![0; fingerprints.len()];
        sample.observed().visit_minima(&fingerprints, |place, minimum| totals[place] = minimum.into());
        let seen: Vec<usize> = (2..5000).filter(|&place| totals[place] == 900).collect();
        assert!(!seen.is_empty(), "one in 1,600 shares a counter with both");
        let mut candidates = Candidates::standing_out([200.0, 0.0], &totals, shape.cells());
        assert!(2 < candidates.key_indices.len());
        let fitted = candidates.fit_substreams(&[sample.observed()], &Keys::Range(5000)).remove(0);
        assert_eq!(candidates.key_indices, [0, 1]);
        for (key, wanted) in [(0, 1000.0), (1, 900.0), (seen[0] as u64, 0.0)] {
            assert!((sample.estimate(&fitted, &candidates, key) - wanted).abs() < 1e-3, "key {key}");
        }
    }

    /// While three large keys are left, the middling one does not stand out.
    #[test]
    fn keys_that_stand_out_from_what_the_others_leave_are_added() {
        let (counts, mut generator) = (counts(), generator(3));
        let shape = Shape { rows: 3, columns: 40 };
        let samples: Vec<Sample> =
            (0..8).map(|number| Sample::new(shape, number, &counts).with_noise(&mut generator)).collect();
        let observed: Vec<Observed<'_>> = samples.iter().map(Sample::observed).collect();
        let (keys, fingerprints) = (Keys::Range(ABSENT.end), samples[0].fingerprints(ABSENT.end));
        let near = (0..keys.len()).collect();
        let mut candidates = Candidates { near, ..heaviest(&counts[..10], shape) };
        for added in [&[10, 11, 12][..], &[40], &[]] {
            let known = candidates.key_indices.clone();
            let fitted = candidates.fit_substreams(&observed, &keys);
            assert_eq!(candidates.add_more(&observed, &fitted, &fingerprints), !added.is_empty());
            assert_eq!(candidates.key_indices, [&known, added].concat());
        }
    }

    #[test]
    fn the_smallest_counters_of_many_keys_are_those_of_each() {
        let shape = Shape { rows: 2, columns: 5 };
        let sample = Sample::new(shape, 4, &[40_000, -50_000, 7, -32_768, 32_767]);
        let wide = SealedSketch::of_released(shape, &sample.sketch.cells(), None, Width::Wide);
        let fingerprints = sample.fingerprints(100);
        for sketch in [&sample.sketch, &wide] {
            Observed { sketch, ..sample.observed() }.visit_minima(&fingerprints, |place, minimum| {
                let cells = sample.mapping.cells((place as u64).into());
                assert_eq!(i64::from(minimum), wide.minimum_of(cells), "{place}");
            });
        }
    }

    #[test]
    fn around_takes_the_middle() {
        let values = [10.0, 2.0, 100.0, 4.0, 8.0, 1.0];
        let wanted = [51.0, 10.0, 6.0, 5.0, 4.0, 6.0];
        for (place, wanted) in wanted.into_iter().enumerate() {
            assert_eq!(middle_around(&values.map(Some), place), wanted, "place {place}");
        }
        assert_eq!([middle_around(&[Some(3.0)], 0), middle_around(&[Some(3.0), Some(5.0)], 0)], [3.0, 5.0]);
        // Where a key is pinned its neighbours do not count.
        assert_eq!(middle_around(&[Some(1.0), None, Some(3.0), Some(9.0), None], 2), 5.0);
    }

    #[test]
    fn every_key_is_in_one_block() {
        let fingerprints: Vec<u64> = (0..2 * BLOCK as u64 + 5).collect();
        let mut made = vec![0; fingerprints.len()];
        by_blocks(&fingerprints, &mut made, |first, block, made| {
            assert_eq!(block[0], first as u64);
            made.iter_mut().zip(block).for_each(|(made, fingerprint)| *made += fingerprint + 1);
        });
        assert!(made.into_iter().eq(1..=fingerprints.len() as u64));
    }
}
