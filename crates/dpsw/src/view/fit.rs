//! Sealed counters → estimates: least squares on heavy candidates, residual means, debiased minima, and how far each
//! may be off. Pure functions of released numbers, so a view loaded from bytes computes the same.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::item::keys::Keys;
use crate::item::mapping::{Mapping, Shape};
use crate::noise::tail::Moments;
use crate::plan::limits::{CANDIDATE_DEVIATIONS, CANDIDATE_SHARE};
use crate::sealed::leases::Leases;
use crate::sealed::sketch::SealedSketch;

/// Random bucket tuples by which the bias of a minimum is measured: to 1/32 of a deviation.
const DUMMIES: usize = 1024;
/// Sweeps of the least-squares fit. More do not lower the errors; docs/estimation.md has the measurement.
const SWEEPS: usize = 6;

/// The share of a normal law that lies more than one deviation below its median.
const DEVIATION_SHARE: f64 = 0.159;

/// Collisions are looked at again where they raise the variance to this many times that of the noise: below it, bars could
/// shrink by at most 9 %.
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
    /// Of the noise on one counter.
    pub(crate) noise: Moments,
    /// Decides the random tuples.
    pub(crate) number: u64,
    /// The part of a planned substream that the stream reaches into.
    pub(crate) length: f64,
    /// Tracked keys count elsewhere.
    pub(crate) leases: &'a Leases,
}

impl Observed<'_> {
    /// Whether counts of keys that share a counter can be told apart.
    pub(crate) fn can_separate(&self) -> bool {
        1 < self.sketch.shape().rows
    }

    /// Whether a key is counted here.
    pub(crate) fn counts(&self, fingerprint: u64) -> bool {
        self.leases.slot(fingerprint, self.number).is_none()
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
            Self::Minimum { bias, .. } => self.scale(sketch.shape()) * (sketch.minimum(cells) as f64 - bias),
            Self::Residual { residual, mean, .. } => {
                let (sum, rows) =
                    cells.fold((0.0, 0.0), |(sum, rows), cell| (sum + f64::from(residual[cell]), rows + 1.0));
                let rest = self.scale(sketch.shape()) * (sum / rows - mean);
                rest + candidate.map_or(0.0, |rank| self.count(rank))
            }
        }
    }

    /// What makes up for the share of a key's count that its own counter adds to the mean, and for the share that the fit
    /// gives to candidates on the same counters: each candidate uses up one counter. The smallest of several counters is
    /// rarely the key's own.
    fn scale(&self, shape: Shape) -> f64 {
        let columns = f64::from(shape.columns);
        match self {
            Self::Minimum { .. } if 1 < shape.rows => 1.0,
            Self::Residual { scale, .. } => *scale,
            _ => columns / (columns - 1.0),
        }
    }

    /// The fitted count of the candidate of this rank.
    pub(crate) fn count(&self, rank: usize) -> f64 {
        match self {
            Self::Residual { counts, .. } => counts[rank].into(),
            _ => 0.0,
        }
    }

    /// The estimates of these keys, which begin at `first` in the list, without the fitted counts of candidates.
    /// With them each is the same as [`estimate`](Self::estimate) gives.
    pub(crate) fn estimate_all(
        &self,
        observed: Observed<'_>,
        fingerprints: &[u64],
        first: usize,
        steps: &mut [f64],
    ) {
        let sketch = observed.sketch;
        let mut put = |place: usize, step: f64| steps[place] = step;
        match self {
            Self::Identity { .. } => sketch.copy_from(first, &mut steps[..fingerprints.len()]),
            Self::Minimum { bias, .. } => {
                let scale = self.scale(sketch.shape());
                observed
                    .minima(fingerprints, |place, minimum| put(place, scale * (f64::from(minimum) - bias)));
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

    /// How far an estimate is off.
    pub(crate) fn spread(&self, shape: Shape) -> Spread {
        let rows = f64::from(shape.rows);
        let square = self.scale(shape).powi(2);
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
pub(crate) fn fit(observed: &[Observed<'_>]) -> Vec<Fitted> {
    let one = |observed: &Observed<'_>| match observed.mapping.is_identity() {
        true => Fitted::Identity { noise: observed.noise },
        false => debiased_minimum(observed),
    };
    observed.iter().map(one).collect()
}

/// What a key that never occurred sees: the minimum over rows of random buckets, or any counter of a single row.
fn absent_minima(observed: &Observed<'_>) -> Vec<f32> {
    match observed.can_separate() {
        true => {
            let sketch = observed.sketch;
            random_minima(sketch.shape(), observed.number, |cell| sketch.cell(cell))
                .map(|least| least as f32)
                .collect()
        }
        false => observed.sketch.floats().0.into_vec(),
    }
}

/// The mean of what a key that never occurred sees.
pub(crate) fn absent_level(observed: &Observed<'_>) -> f64 {
    let minima = absent_minima(observed);
    sum_of(&minima, f64::from) / minima.len() as f64
}

/// The share of a normal law that lies less than two deviations above its median.
const TWO_DEVIATIONS_SHARE: f64 = 0.977;

/// The middle of what a key that never occurred sees in these counters, and how far it deviates downwards and upwards.
pub(crate) fn absent_middle(shape: Shape, counters: &[i32], seed: u64) -> (f64, [f64; 2]) {
    let mut minima = match shape.rows {
        1 => counters.to_vec(),
        _ => random_minima(shape, seed, |cell| counters[cell]).collect(),
    };
    let mut quantile = |share: f64| {
        let index = (minima.len().saturating_sub(1) as f64 * share) as usize;
        f64::from(*minima.select_nth_unstable(index).1)
    };
    let middle = quantile(0.5);
    (middle, [middle - quantile(DEVIATION_SHARE), (quantile(TWO_DEVIATIONS_SHARE) - middle) / 2.0])
}

fn debiased_minimum(observed: &Observed<'_>) -> Fitted {
    let minima = absent_minima(observed);
    let count = minima.len() as f64;
    let bias = sum_of(&minima, f64::from) / count;
    Fitted::Minimum { bias, all: measured(&minima, bias, count - 1.0), noise: observed.noise }
}

fn random_minima(shape: Shape, seed: u64, counter: impl Fn(usize) -> i32) -> impl Iterator<Item = i32> {
    let mut random = SplitMix(seed);
    let minimum = move |_| {
        let mut cell = |row: u32| row as usize * shape.columns as usize + random.below(shape.columns);
        (0..shape.rows).map(|row| counter(cell(row))).min().unwrap_or(0)
    };
    (0..DUMMIES).map(minimum)
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

/// A key that is tracked in some substreams, and what its smallest counters sum up to in the others.
pub(crate) struct Partly {
    pub(crate) place: usize,
    pub(crate) sum: i64,
    /// The share of those others.
    pub(crate) share: f64,
}

/// The total of a key that is tracked everywhere.
const NOWHERE: i64 = i64::MIN;

impl Partly {
    /// A total in all substreams that stands out as much.
    fn total(&self, middle: f64) -> i64 {
        if self.share == 0.0 {
            return NOWHERE;
        }
        (middle + (self.sum as f64 - middle * self.share) / self.share.sqrt()).round() as i64
    }
}

/// Keys of a list that stand out, most frequent first.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) places: Vec<usize>,
    /// What the smallest counters of a key sum up to if it is absent, and by how much at least it is more if it stands out.
    middle: f64,
    reach: f64,
    /// Other keys that may stand out from what the candidates leave: their smallest counters lie above the bulk.
    near: Vec<usize>,
}

impl Candidates {
    /// `totals` are the smallest counters of each key, summed over the substreams. The bulk of the keys is noise; not more
    /// candidates are taken than a share of the cells.
    pub(crate) fn new(mut totals: Vec<i64>, tracked: &[Partly], cells: usize) -> Self {
        let mut sorted = totals.clone();
        let mut quantile = |share: f64| {
            let index = (sorted.len().saturating_sub(1) as f64 * share) as usize;
            *sorted.select_nth_unstable(index).1 as f64
        };
        let (median, lower) = (quantile(0.5), quantile(DEVIATION_SHARE));
        let deviation = median - lower;
        tracked.iter().for_each(|key| totals[key.place] = key.total(median));
        let near = (0..totals.len()).filter(|&place| median + deviation < totals[place] as f64).collect();
        Self { near, ..Self::above([median, CANDIDATE_DEVIATIONS * deviation], &totals, cells) }
    }

    /// All keys, most frequent first.
    pub(crate) fn all(mut totals: Vec<i64>, tracked: &[Partly], cells: usize) -> Self {
        tracked.iter().for_each(|key| totals[key.place] = key.total(0.0));
        Self::above([0.0, f64::NEG_INFINITY], &totals, cells)
    }

    fn above([middle, reach]: [f64; 2], totals: &[i64], cells: usize) -> Self {
        let stands_out = |&place: &usize| totals[place] != NOWHERE && middle + reach < totals[place] as f64;
        let mut places: Vec<usize> = (0..totals.len()).filter(stands_out).collect();
        places.sort_unstable_by_key(|&place| (Reverse(totals[place]), place));
        places.truncate((CANDIDATE_SHARE * cells as f64) as usize);
        Self { places, middle, reach, near: Vec::new() }
    }

    /// Whether a key stands out whose smallest counters sum up to this, in a share of the substreams.
    fn stands_out(&self, sum: f64, share: f64) -> bool {
        0.0 < share && self.middle * share + self.reach * share.sqrt() < sum
    }

    /// Least squares on the counts of the candidates in each substream. Candidates that only seemed to stand out, because
    /// they share counters with others, are dropped.
    pub(crate) fn fit(&mut self, observed: &[Observed<'_>], keys: &Keys) -> Vec<Fitted> {
        let mut fits: Vec<Fit> = observed.iter().map(|o| Fit::new(o, keys, &self.places)).collect();
        let kept = self.peel(&mut fits);
        let mut kept_places = kept.iter();
        self.places.retain(|_| *kept_places.next().expect("one a candidate"));
        // What tracked keys leave is the same in all rows.
        let are_rare = observed.iter().any(|observed| !observed.leases.is_empty() && observed.can_separate());
        if self.places.is_empty() && !are_rare {
            return fit(observed);
        }
        let finish = |(mut fit, observed): (Fit, &Observed<'_>)| {
            fit.keep(&kept);
            fit.sweep();
            fit.finish(observed.noise)
        };
        fits.into_iter().zip(observed).map(finish).collect()
    }

    /// Adds the keys that stand out from what the candidates left: their estimates, summed over the substreams, exceed their
    /// standard error by far. Says whether there were any.
    pub(crate) fn add(&mut self, observed: &[Observed<'_>], fitted: &[Fitted], fingerprints: &[u64]) -> bool {
        let Some(shape) = observed.first().map(|o| o.sketch.shape()) else { return false };
        let spreads = fitted.iter().map(|fitted| fitted.spread(shape));
        let (all, noise) =
            spreads.fold((0.0, 0.0), |(all, noise), s| (all + s.all.variance, noise + s.noise));
        let room = (CANDIDATE_SHARE * shape.cells() as f64) as usize;
        if self.places.is_empty() || room <= self.places.len() || all < COLLISIONS_MIN * noise {
            return false;
        }
        let fingerprints: Vec<u64> = self.near.iter().map(|&place| fingerprints[place]).collect();
        let mut totals = vec![0.0; fingerprints.len()];
        by_blocks(&fingerprints, &mut totals, |first, block, totals| {
            let mut steps = vec![0.0; block.len()];
            for (observed, fitted) in observed.iter().zip(fitted) {
                fitted.estimate_all(*observed, block, first, &mut steps);
                totals.iter_mut().zip(&steps).for_each(|(total, step)| *total += step);
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
        self.reach = f64::NEG_INFINITY;
        !more.is_empty()
    }

    /// Takes the candidates away one after the other, each with what its counters have in common, and keeps those that
    /// still stand out when their turn comes. Each starts in a substream from what it has in those around it: where two
    /// cannot be told apart in one substream, its neighbours decide. A shorter substream starts from its share of that.
    fn peel(&self, fits: &mut [Fit]) -> Vec<bool> {
        let mut leasts = vec![None; fits.len()];
        let is_alone = fits.len() == 1;
        let stands_out = |candidate: usize| {
            leasts.iter_mut().zip(&*fits).for_each(|(least, fit)| *least = fit.least(candidate));
            let here = leasts.iter().flatten().count();
            let is_kept = self.stands_out(leasts.iter().flatten().sum(), here as f64 / leasts.len() as f64);
            if is_kept {
                let above = |least: f64, fit: &Fit| (least - fit.level).max(0.0);
                leasts.iter_mut().zip(&*fits).for_each(|(least, fit)| *least = least.map(|l| above(l, fit)));
                for (index, fit) in fits.iter_mut().enumerate().filter(|(index, _)| leasts[*index].is_some())
                {
                    let share = if is_alone { 1.0 } else { fit.length };
                    fit.take(candidate, share * around(&leasts, index));
                }
            }
            is_kept
        };
        (0..self.places.len()).map(stands_out).collect()
    }
}

/// The middle of the two values before and the two after a place, or of as many as there are; a lone value itself.
fn around(values: &[Option<f64>], place: usize) -> f64 {
    let at = |index: Option<usize>| index.and_then(|index| values.get(index).copied().flatten());
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
        0 => values[place].unwrap_or(0.0),
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
    /// Of each candidate that counts here.
    counts: Vec<f64>,
    /// Which of them each candidate is, if it counts here.
    ranks: Vec<Option<u32>>,
    /// The mean of what is left of all cells.
    level: f64,
    /// That of the substream.
    length: f64,
}

impl Fit {
    fn new(observed: &Observed<'_>, keys: &Keys, candidates: &[usize]) -> Self {
        const UNSEEN: u32 = u32::MAX;
        let shape = observed.sketch.shape();
        let (cells, sum) = observed.sketch.floats();
        let mut place_of = vec![UNSEEN; cells.len()];
        let (mut touched, mut places, mut count) = (Vec::new(), Vec::new(), 0);
        let mut ranks = Vec::with_capacity(candidates.len());
        for item in candidates.iter().map(|&place| keys.get(place)) {
            let fingerprint = observed.mapping.fingerprint_key.item(item);
            let rank = observed.counts(fingerprint).then_some(count);
            ranks.push(rank);
            if rank.is_none() {
                continue;
            }
            count += 1;
            for cell in observed.mapping.cells_of(item, fingerprint) {
                if place_of[cell] == UNSEEN {
                    place_of[cell] = touched.len() as u32;
                    touched.push(cell);
                }
                places.push(place_of[cell]);
            }
        }
        Self {
            rows: shape.rows as usize,
            columns: f64::from(shape.columns),
            values: touched.iter().map(|&cell| cells[cell].into()).collect(),
            touched,
            places,
            counts: vec![0.0; count as usize],
            ranks,
            level: sum as f64 / cells.len() as f64,
            length: observed.length,
            cells,
        }
    }

    fn rank(&self, candidate: usize) -> Option<usize> {
        self.ranks[candidate].map(|rank| rank as usize)
    }

    /// The smallest counter of a candidate, if it counts here.
    fn least(&self, candidate: usize) -> Option<f64> {
        let rank = self.rank(candidate)?;
        let places = self.places[rank * self.rows..(rank + 1) * self.rows].iter();
        Some(places.fold(f64::INFINITY, |least, &place| least.min(self.values[place as usize])))
    }

    fn take(&mut self, candidate: usize, count: f64) {
        let Some(rank) = self.rank(candidate) else { return };
        for place in rank * self.rows..(rank + 1) * self.rows {
            self.values[self.places[place] as usize] -= count;
        }
        self.counts[rank] += count;
        self.level -= count / self.columns;
    }

    fn keep(&mut self, kept: &[bool]) {
        let here = || kept.iter().zip(&self.ranks).filter(|(_, rank)| rank.is_some()).map(|(kept, _)| *kept);
        let mut keep = here();
        self.counts.retain(|_| keep.next().expect("one a candidate"));
        let mut keep = here().flat_map(|kept| std::iter::repeat_n(kept, self.rows));
        self.places.retain(|_| keep.next().expect("one a candidate and row"));
        let mut count = 0;
        let ranks = kept.iter().zip(&self.ranks).filter(|(kept, _)| **kept).map(|(_, rank)| {
            rank.map(|_| {
                count += 1;
                count - 1
            })
        });
        self.ranks = ranks.collect();
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

    fn finish(mut self, noise: Moments) -> Fitted {
        self.touched.iter().zip(&self.values).for_each(|(&cell, &value)| self.cells[cell] = value as f32);
        let free = (self.cells.len() - self.counts.len()) as f64;
        let free_share = 1.0 - self.counts.len() as f64 / self.cells.len() as f64;
        let count = |rank: &Option<u32>| rank.map_or(0.0, |rank| self.counts[rank as usize] as f32);
        Fitted::Residual {
            all: measured(&self.cells, self.level, free),
            scale: self.columns / (self.columns - 1.0) / free_share,
            free: free_share,
            counts: self.ranks.iter().map(count).collect(),
            residual: self.cells,
            mean: self.level,
            noise,
        }
    }
}

/// The moments of values around their mean; `free` of them are free.
fn measured(values: &[f32], mean: f64, free: f64) -> Moments {
    let squares = sum_of(values, |value| (f64::from(value) - mean).powi(2));
    let fourths = sum_of(values, |value| (f64::from(value) - mean).powi(4));
    Moments::measured(squares, fourths, free)
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
            let mapping = Mapping { shape, fingerprint_key, columns, tracked: None };
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
            Self { sketch, noise: Moments::of(law, 1.0), ..self }
        }

        fn observed(&self) -> Observed<'_> {
            let Self { sketch, mapping, noise, number } = self;
            let leases = Leases::none();
            Observed { sketch, mapping, noise: *noise, number: *number, length: 1.0, leases }
        }

        fn fingerprints(&self, keys: u64) -> Vec<u64> {
            (0..keys).map(|key| self.mapping.fingerprint_key.integer(key)).collect()
        }

        fn estimate(&self, fitted: &Fitted, candidates: &Candidates, key: u64) -> f64 {
            let rank = candidates.places.iter().position(|&place| place as u64 == key);
            fitted.estimate(&self.sketch, self.mapping.cells(key.into()), rank)
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
        Candidates::all(totals, &[], shape.cells())
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
            let fitted = candidates.fit(&[sample.observed()], &list).remove(0);
            let error = |key: u64| {
                let truth = counts.get(key as usize).copied().unwrap_or(0);
                sample.estimate(&fitted, &candidates, key) - f64::from(truth)
            };
            (keys.clone().map(error).collect(), fitted.spread(SHAPE).all.variance)
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
            let fitted = candidates.fit(&observed, &Keys::Range(ABSENT.end)).remove(7);
            let error =
                |key: u64| samples[7].estimate(&fitted, &candidates, key) - f64::from(short[key as usize]);
            squares += HEAVY.map(|key| error(key).powi(2)).sum::<f64>() / 13.0;
            claims += fitted.spread(SHAPE).all.variance;
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
            let fitted = candidates.fit(&[sample.observed()], &Keys::Range(41)).remove(0);
            let Fitted::Residual { counts, mean, .. } = &fitted else { panic!("there are candidates") };
            let got = counts.iter().map(|&count| f64::from(count)).chain([*mean]);
            check_least_squares(got, &least_squares(&sample, &candidates.places), 0.01);
        }
    }

    #[test]
    fn sweeps_approach_least_squares_however_crowded_the_counters_are() {
        let (counts, mut generator) = (counts(), generator(2));
        for number in 0..20 {
            let sample =
                Sample::new(Shape { rows: 3, columns: 50 }, number, &counts).with_noise(&mut generator);
            let places: Vec<usize> = (0..13).collect();
            let mut fit = Fit::new(&sample.observed(), &Keys::Range(41), &places);
            (0..100).for_each(|_| fit.sweep());
            let got = fit.counts.iter().copied().chain([fit.level]);
            check_least_squares(got, &least_squares(&sample, &places), 1e-6);
        }
    }

    #[test]
    fn candidates_stand_out_by_four_deviations_of_the_bulk() {
        let bulk =
            (0..10_000).map(|rank| (1000.0 * normal_quantile((f64::from(rank) + 0.5) / 10_000.0)) as i64);
        let totals: Vec<i64> = bulk.chain([3900, 4100, 5000, 4200]).collect();
        assert_eq!(Candidates::new(totals.clone(), &[], 100_000).places, [10_002, 10_003, 10_001]);
        // A cell in seven can be spent.
        assert_eq!(Candidates::new(totals.clone(), &[], 14).places, [10_002, 10_003]);
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
        sample.observed().minima(&fingerprints, |place, minimum| totals[place] = minimum.into());
        let seen: Vec<usize> = (2..5000).filter(|&place| totals[place] == 900).collect();
        assert!(!seen.is_empty(), "one in 1,600 shares a counter with both");
        let mut candidates = Candidates::above([200.0, 0.0], &totals, shape.cells());
        assert!(2 < candidates.places.len());
        let fitted = candidates.fit(&[sample.observed()], &Keys::Range(5000)).remove(0);
        assert_eq!(candidates.places, [0, 1]);
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
            let known = candidates.places.clone();
            let fitted = candidates.fit(&observed, &keys);
            assert_eq!(candidates.add(&observed, &fitted, &fingerprints), !added.is_empty());
            assert_eq!(candidates.places, [&known, added].concat());
        }
    }

    #[test]
    fn the_smallest_counters_of_many_keys_are_those_of_each() {
        let shape = Shape { rows: 2, columns: 5 };
        let sample = Sample::new(shape, 4, &[40_000, -50_000, 7, -32_768, 32_767]);
        let wide = SealedSketch::of_released(shape, &sample.sketch.cells(), None, Width::Wide);
        let fingerprints = sample.fingerprints(100);
        for sketch in [&sample.sketch, &wide] {
            Observed { sketch, ..sample.observed() }.minima(&fingerprints, |place, minimum| {
                let cells = sample.mapping.cells((place as u64).into());
                assert_eq!(i64::from(minimum), wide.minimum(cells), "{place}");
            });
        }
    }

    #[test]
    fn around_takes_the_middle() {
        let values = [10.0, 2.0, 100.0, 4.0, 8.0, 1.0];
        let wanted = [51.0, 10.0, 6.0, 5.0, 4.0, 6.0];
        for (place, wanted) in wanted.into_iter().enumerate() {
            assert_eq!(around(&values.map(Some), place), wanted, "place {place}");
        }
        assert_eq!([around(&[Some(3.0)], 0), around(&[Some(3.0), Some(5.0)], 0)], [3.0, 5.0]);
        // Where a key is tracked its neighbours do not count.
        assert_eq!(around(&[Some(1.0), None, Some(3.0), Some(9.0), None], 2), 5.0);
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
