//! Whether noise ever occurs twice: between seals, or inside one that has many counters.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::audit::feed::{Arrival, Choices, feed_batches, start_sketch, watermark_lag};
use crate::audit::report::AuditError;
use crate::audit::tiny::{Size, tiny_keys, tiny_settings};
use crate::item::keys::Keys;
use crate::plan::settings::Settings;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Epsilon;
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
    let stream = Stream::new(settings, Size::TINY)?;
    let noises = stream.collect_noises(seals, |noise| hash_noise(&noise[..STRETCH]))?;
    Ok(count_repeats(noises))
}

/// How many stretches of the noise of large sketches occurred before, wherever they begin.
pub(super) fn count_reused_words(settings: &Settings) -> Result<u64, AuditError> {
    let shape = Plan::new(settings.clone())?.shape();
    let [least, most] = LARGE.map(|cells| cells.div_ceil(shape.rows));
    let columns = shape.columns.clamp(least, most);
    let stream = Stream::new(settings, Size { columns, ..Size::TINY })?;
    Ok(count_repeated_stretches(&stream.collect_noises(LARGE_SEALS, <[i32]>::to_vec)?))
}

/// How many stretches occur twice.
pub(super) fn count_repeated_stretches(noises: &[Vec<i32>]) -> u64 {
    count_repeats(noises.iter().flat_map(|noise| noise.windows(STRETCH).map(hash_noise)).collect())
}

/// A stream of one key.
struct Stream {
    plan: Plan,
    keys: Keys,
}

impl Stream {
    fn new(settings: &Settings, size: Size) -> Result<Self, AuditError> {
        let small = tiny_settings(settings, size)?;
        let epsilon = Epsilon::new(small.epsilon.get().min(1.0))?;
        let keys = tiny_keys(&settings.domain, size.columns);
        Ok(Self { plan: Plan::new(Settings { epsilon, ..small })?, keys })
    }

    /// What is made of the noise of so many seals or some more.
    fn collect_noises<T>(&self, seals: usize, mut of: impl FnMut(&[i32]) -> T) -> Result<Vec<T>, AuditError> {
        let mut choices = Choices::new()?;
        let mut sketch = start_sketch(&self.plan, [0; 32])?;
        let mut made = Vec::with_capacity(seals);
        let (mut position, mut substream) = (0, 0);
        while made.len() < seals {
            let end =
                (substream + 1) * self.plan.substream_len() + watermark_lag(self.plan.settings().window);
            let arrivals: Vec<_> = (position..end).map(|at| Arrival { at, user: at, key: Some(0) }).collect();
            feed_batches(&mut sketch, &self.keys, &arrivals, &mut choices)?;
            let view = sketch.view();
            // Slices of few keys hold too little noise.
            let new = view.sealed().filter(|sealed| {
                sealed.substream() == substream && STRETCH <= sealed.sketch().shape().cells()
            });
            made.extend(new.map(|sealed| of(&self.noise_of(&sealed))));
            (position, substream) = (end, substream + 1);
        }
        Ok(made)
    }

    fn noise_of(&self, sealed: &Sealed<'_>) -> Vec<i32> {
        let mut noise = sealed.sketch().cells();
        let offsets = self.plan.ranges()[sealed.range()].offsets();
        // All items have this key, and each has its own user, so no cap leaves any out.
        for cell in sealed.cells(self.keys.get(0)) {
            noise[cell] -= (offsets.end - offsets.start) as i32;
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
