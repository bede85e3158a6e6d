//! Different tails fed to one saved state: each must get noise of its own.

use std::collections::BTreeSet;

use crate::audit::feed::{Choices, restore_state, save_state, start_sketch, watermark_lag};
use crate::audit::repeats::{NoisyStream, count_repeats, hash_noise};
use crate::audit::report::AuditError;
use crate::audit::tally::{Signs, Tally};
use crate::audit::tiny::Size;
use crate::plan::settings::Settings;
use crate::plan::structure::Plan;
use crate::view::window_view::Sealed;

/// Saved states, and tails that each of them gets.
const STATES: usize = 4;
const TAILS: usize = 5;
/// The substream in which a state is saved: something is sealed before it.
const SAVED_IN: u64 = 1;

/// Feeds tails to saved states. At ε of at most 1 two seals agree by chance with probability below 2⁻¹⁰⁰.
pub(super) fn check_tails(
    settings: &Settings,
    choices: &mut Choices,
    tally: &mut Tally,
) -> Result<(), AuditError> {
    let stream = NoisyStream::new(settings, Size::TINY)?;
    for _ in 0..STATES {
        match tail_noises(&stream, choices)? {
            Some(noises) => judge_tails(&noises, &mut tally.retold, &mut tally.tail_signs),
            None => tally.lost += 1,
        }
    }
    Ok(())
}

/// Holds the noise of the tails of one state against each other.
pub(super) fn judge_tails(tails: &[Vec<i32>], retold: &mut u64, signs: &mut Signs) {
    *retold += count_repeats(tails.iter().map(|noise| hash_noise(noise)).collect());
    signs.compare_adjacent(tails);
}

/// The noise of all that each tail of one state seals; `None` if the state does not come back.
fn tail_noises(stream: &NoisyStream, choices: &mut Choices) -> Result<Option<Vec<Vec<i32>>>, AuditError> {
    let saved_at = saved_at(&stream.plan);
    let mut sketch = start_sketch(&stream.plan, [0; 32])?;
    stream.feed_keys(&mut sketch, 0..saved_at, |_| 0, choices)?;
    let known: BTreeSet<_> = sketch.view().sealed().map(|sealed| place_of(&sealed)).collect();
    let state = save_state(sketch)?;
    let mut noises = Vec::with_capacity(TAILS);
    for tail in 0..TAILS {
        // All tails start from the same bytes, so noise that two of them share was in the state (PRIVACY.md: rule 31).
        let Ok(mut sketch) = restore_state(&state) else { return Ok(None) };
        let key_at = |at: u64| if at < saved_at { 0 } else { 1 + tail % 2 };
        stream.feed_keys(&mut sketch, saved_at..stream.end_of(SAVED_IN), key_at, choices)?;
        let view = sketch.view();
        let new = view.sealed().filter(|sealed| !known.contains(&place_of(sealed)));
        noises.push(new.flat_map(|sealed| stream.noise_of(&sealed, key_at)).collect());
    }
    Ok(Some(noises))
}

/// The position at which a state is saved, between two boundaries.
fn saved_at(plan: &Plan) -> u64 {
    let last = plan.boundaries().iter().rev().nth(1).copied().unwrap_or(0);
    SAVED_IN * plan.substream_len() + last + watermark_lag(plan.settings().window) + 1
}

fn place_of(sealed: &Sealed<'_>) -> (u64, usize) {
    (sealed.substream(), sealed.range())
}
