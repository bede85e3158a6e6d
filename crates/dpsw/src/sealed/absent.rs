//! What hashed counters show of a key that never occurred: others fall on them, and noise.

use crate::item::mapping::{Rows, Shape};
use crate::sealed::sketch::SealedSketch;

/// Random bucket tuples by which the bias of a minimum is measured: to 1/32 of a deviation.
const DUMMIES: usize = 1024;

/// The share of a normal law that lies more than one deviation below its median.
pub(crate) const DEVIATION_SHARE: f64 = 0.159;

impl SealedSketch {
    /// The smallest counter of each fingerprint, by its index.
    pub(crate) fn visit_minima(&self, rows: Rows<'_>, fingerprints: &[u64], mut put: impl FnMut(usize, i32)) {
        let Some(cells) = self.narrow_cells() else {
            return rows.fold_all(fingerprints, &self.cells(), i32::MAX, i32::min, put);
        };
        rows.fold_all(fingerprints, cells, i16::MAX, i16::min, |key_index, minimum| {
            let minimum = match minimum {
                // Marked counters look like the smallest ones; their values stand in another list.
                i16::MIN => self.minimum_of(rows.cells_of(fingerprints[key_index])) as i32,
                minimum => minimum.into(),
            };
            put(key_index, minimum);
        });
    }
}

/// What a key that never occurred sees: the minimum over rows of random buckets, or any counter of a single row.
pub(crate) fn absent_minima(sketch: &SealedSketch, number: u64) -> Vec<f32> {
    if sketch.shape().rows == 1 {
        return sketch.to_floats().0.into_vec();
    }
    random_minima(sketch.shape(), number, |cell| sketch.cell(cell)).map(|least| least as f32).collect()
}

/// The mean of what a key that never occurred sees.
pub(crate) fn absent_level(sketch: &SealedSketch, number: u64) -> f64 {
    let minima = absent_minima(sketch, number);
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
    let middle = f64::from(select_quantile(&mut minima, 0.5));
    let below = middle - f64::from(select_quantile(&mut minima, DEVIATION_SHARE));
    let above = f64::from(select_quantile(&mut minima, TWO_DEVIATIONS_SHARE)) - middle;
    (middle, [below, above / 2.0])
}

/// The value that this share of the values does not exceed. Changes their order.
pub(crate) fn select_quantile<T: Ord + Copy>(values: &mut [T], share: f64) -> T {
    let index = (values.len().saturating_sub(1) as f64 * share) as usize;
    *values.select_nth_unstable(index).1
}

fn random_minima(shape: Shape, seed: u64, counter: impl Fn(usize) -> i32) -> impl Iterator<Item = i32> {
    // The seed is public (the number of a substream): whoever has the bytes draws the same buckets and answers the same.
    let mut random = SplitMix(seed);
    (0..DUMMIES).map(move |_| {
        let cells = (0..shape.rows)
            .map(|row| row as usize * shape.columns as usize + random.draw_below(shape.columns));
        cells.map(&counter).min().unwrap_or(0)
    })
}

/// Numbers that look random, the same for the same seed.
struct SplitMix(u64);

impl SplitMix {
    fn draw_below(&mut self, bound: u32) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((z ^ (z >> 31)) >> 32) * u64::from(bound)) >> 32) as usize
    }
}

/// Several sums side by side, so that an addition need not wait for the one before it.
pub(crate) fn sum_of(values: &[f32], of: impl Fn(f32) -> f64) -> f64 {
    let (lanes, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for lane in lanes {
        for (sum, &value) in sums.iter_mut().zip(lane) {
            *sum += of(value);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&value| of(value)).sum::<f64>()
}
