//! Whether noise ever occurs twice: between seals, or inside one that has many counters.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::audit::feed::{Arrival, Choices, feed_batches, start_sketch, watermark_lag};
use crate::audit::report::AuditError;
use crate::audit::tiny::{Size, tiny_keys, tiny_settings};
use crate::item::keys::Keys;
use crate::plan::settings::Settings;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Epsilon;
use crate::stream::sketch::DpswSketch;
use crate::view::window_view::Sealed;

/// Counters of a row whose noise is taken for that of a seal, and of a stretch inside a seal: at ε of at most 1 they
/// hold more than 100 bits of noise.
const STRETCH: usize = Size::TINY.columns as usize;
/// The fewest and the most counters of a large sketch. The sampler takes 1,024 at a time.
const LARGE: [u32; 2] = [2_560, 1 << 16];
/// Seals of large sketches.
const LARGE_SEALS: usize = 3;

/// How many of at least `seals` seals of the real sketch repeat the noise of an earlier one with the same law.
///
/// Among n seals two agree by chance with probability below n² 2⁻¹⁰⁰, and their 64-bit hashes with n² 2⁻⁶⁵.
pub(super) fn count_repeated_seals(settings: &Settings, seals: usize) -> Result<u64, AuditError> {
    let stream = NoisyStream::new(settings, Size::TINY)?;
    let noises = stream.collect_noises(seals, |noise| hash_noise(&noise[..STRETCH]))?;
    Ok(count_repeats(noises))
}

/// How many stretches of the noise of large sketches occurred before, wherever they begin.
pub(super) fn count_reused_words(settings: &Settings) -> Result<u64, AuditError> {
    let shape = Plan::new(settings.clone())?.shape();
    let [least, most] = LARGE.map(|cells| cells.div_ceil(shape.rows));
    let columns = shape.columns.clamp(least, most);
    let stream = NoisyStream::new(settings, Size { columns, ..Size::TINY })?;
    Ok(count_repeated_stretches(&stream.collect_noises(LARGE_SEALS, <[i32]>::to_vec)?))
}

/// How many stretches occur twice.
pub(super) fn count_repeated_stretches(noises: &[Vec<i32>]) -> u64 {
    count_repeats(noises.iter().flat_map(|noise| noise.windows(STRETCH).map(hash_noise)).collect())
}

/// A stream of a small plan with ε of at most 1, whose noise is known: all items are.
pub(super) struct NoisyStream {
    pub(super) plan: Plan,
    keys: Keys,
}

impl NoisyStream {
    pub(super) fn new(settings: &Settings, size: Size) -> Result<Self, AuditError> {
        let small = tiny_settings(settings, size)?;
        let epsilon = Epsilon::new(small.epsilon.get().min(1.0))?;
        let keys = tiny_keys(&settings.domain, size.columns);
        Ok(Self { plan: Plan::new(Settings { epsilon, ..small })?, keys })
    }

    /// The position after the last arrival that a substream needs to be sealed.
    pub(super) fn end_of(&self, substream: u64) -> u64 {
        (substream + 1) * self.plan.substream_len() + watermark_lag(self.plan.settings().window)
    }

    pub(super) fn feed_keys(
        &self,
        sketch: &mut DpswSketch,
        positions: Range<u64>,
        key_at: impl Fn(u64) -> usize,
        choices: &mut Choices,
    ) -> Result<(), AuditError> {
        // Each item has its own user, so no cap leaves any out.
        let arrivals: Vec<_> = positions.map(|at| Arrival { at, user: at, key: Some(key_at(at)) }).collect();
        feed_batches(sketch, &self.keys, &arrivals, choices)
    }

    /// What is made of the noise of at least this many seals, in a stream of one key.
    fn collect_noises<T>(&self, seals: usize, mut of: impl FnMut(&[i32]) -> T) -> Result<Vec<T>, AuditError> {
        let mut choices = Choices::new()?;
        let mut sketch = start_sketch(&self.plan, [0; 32])?;
        let mut made = Vec::with_capacity(seals);
        let (mut position, mut substream) = (0, 0);
        while made.len() < seals {
            let end = self.end_of(substream);
            self.feed_keys(&mut sketch, position..end, |_| 0, &mut choices)?;
            let view = sketch.view();
            // Slices of few keys hold too little noise.
            let new = view.sealed().filter(|sealed| {
                sealed.substream() == substream && STRETCH <= sealed.sketch().shape().cells()
            });
            made.extend(new.map(|sealed| of(&self.noise_of(&sealed, |_| 0))));
            (position, substream) = (end, substream + 1);
        }
        Ok(made)
    }

    /// Sealed counters without what they count.
    pub(super) fn noise_of(&self, sealed: &Sealed<'_>, key_at: impl Fn(u64) -> usize) -> Vec<i32> {
        let mut noise = sealed.sketch().cells();
        let start = sealed.substream() * self.plan.substream_len();
        let offsets = self.plan.ranges()[sealed.range()].offsets();
        let keys: Vec<usize> = offsets.map(|offset| key_at(start + offset)).collect();
        // Keys come in long runs, and to hash every item again would take most of the time.
        for run in keys.chunk_by(|one, next| one == next) {
            for cell in sealed.cells(self.keys.get(run[0])) {
                noise[cell] -= run.len() as i32;
            }
        }
        noise
    }
}

pub(super) fn hash_noise(noise: &[i32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    noise.hash(&mut hasher);
    hasher.finish()
}

/// How many values occurred before.
pub(super) fn count_repeats(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}
