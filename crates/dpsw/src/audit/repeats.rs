//! Whether two seals ever share their noise.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::audit::report::AuditError;
use crate::audit::tiny::{COLUMNS, arrive, lag, start, tiny_keys};
use crate::plan::settings::Settings;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Epsilon;
use crate::view::window_view::Sealed;

/// How many of at least `seals` seals of the real sketch repeat the noise of an earlier one with the same law.
///
/// The budget is at most ε = 1, so that 64 counters hold more than 100 bits of noise: among n seals two agree by chance
/// with probability below n² 2⁻¹⁰⁰, and their 64-bit hashes with n² 2⁻⁶⁵.
pub(super) fn repeated_seals(tiny: &Settings, seals: usize) -> Result<u64, AuditError> {
    let epsilon = Epsilon::new(tiny.epsilon.get().min(1.0))?;
    let plan = Plan::new(Settings { epsilon, ..tiny.clone() })?;
    let keys = tiny_keys(&tiny.domain);
    let item = keys.get(0);
    let len = plan.substream_len();
    let mut sketch = start(&plan, [0; 32])?;
    let mut seen = Vec::with_capacity(seals);
    let (mut position, mut substream) = (0, 0);
    while seen.len() < seals {
        while position < (substream + 1) * len + lag(tiny.window) {
            arrive(&mut sketch, position, position, Some(item))?;
            position += 1;
        }
        let view = sketch.view();
        let new = view.sealed().filter(|sealed| sealed.substream() == substream);
        seen.extend(new.map(|sealed| noise_hash(&plan, &sealed, &sealed.cells(item))));
        substream += 1;
    }
    Ok(count_repeats(seen))
}

/// A hash of the noise of the first row.
fn noise_hash(plan: &Plan, sealed: &Sealed<'_>, counted: &[usize]) -> u64 {
    let mut noise = sealed.sketch().cells()[..COLUMNS as usize].to_vec();
    let offsets = plan.ranges()[sealed.range()].offsets();
    for cell in counted.iter().filter(|&&cell| cell < COLUMNS as usize) {
        noise[*cell] -= (offsets.end - offsets.start) as i32;
    }
    hash(&noise)
}

pub(super) fn hash(noise: &[i32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    noise.hash(&mut hasher);
    hasher.finish()
}

/// How many values occurred before.
pub(super) fn count_repeats(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}
