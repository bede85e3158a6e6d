//! Different tails fed to one saved state: each must get noise of its own.

use std::collections::BTreeSet;

use crate::audit::feed::{Arrival, Backup, Choices, feed_batches, start_sketch, watermark_lag};
use crate::audit::repeats::{count_repeats, hash_noise};
use crate::audit::report::AuditError;
use crate::audit::tally::{Signs, Tally};
use crate::audit::tiny::{Size, tiny_keys, tiny_settings};
use crate::item::keys::Keys;
use crate::noise::generator::Noise;
use crate::plan::settings::Settings;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Epsilon;
use crate::stream::sketch::DpswSketch;
use crate::stream::state::{SavedState, StateKey};
use crate::view::window_view::{Sealed, WindowView};

/// Saved states, and tails that each of them gets.
const STATES: usize = 4;
const TAILS: usize = 5;
/// The substream in which a state is saved: something is sealed before it.
const SAVED_IN: u64 = 1;
const STATE_KEY: [u8; 32] = [9; 32];

/// Feeds tails to saved states. At ε of at most 1 two seals agree by chance with probability below 2⁻¹⁰⁰.
pub(super) fn check_tails(
    settings: &Settings,
    choices: &mut Choices,
    tally: &mut Tally,
) -> Result<(), AuditError> {
    let small = tiny_settings(settings, Size::TINY)?;
    let epsilon = Epsilon::new(small.epsilon.get().min(1.0))?;
    let plan = Plan::new(Settings { epsilon, ..small })?;
    let state = State { keys: tiny_keys(&settings.domain, Size::TINY.columns), plan };
    for _ in 0..STATES {
        match state.tail_noises(choices)? {
            Some(noises) => judge_tails(&noises, &mut tally.retold, &mut tally.tail_signs),
            None => tally.lost += 1,
        }
    }
    Ok(())
}

/// Holds the noise of the tails of one state against each other.
pub(super) fn judge_tails(tails: &[Vec<i32>], retold: &mut u64, signs: &mut Signs) {
    *retold += count_repeats(tails.iter().map(|noise| hash_noise(noise)).collect());
    for pair in tails.windows(2) {
        signs.compare(&pair[0], &pair[1]);
    }
}

/// A stream that is saved inside a substream.
struct State {
    plan: Plan,
    keys: Keys,
}

impl State {
    /// The position at which the state is saved, between two boundaries.
    fn saved_at(&self) -> u64 {
        let last = self.plan.boundaries().iter().rev().nth(1).copied().unwrap_or(0);
        SAVED_IN * self.plan.substream_len() + last + watermark_lag(self.plan.settings().window) + 1
    }

    /// The key of a position, where the tail has a key of its own.
    fn key_at(&self, at: u64, tail: usize) -> usize {
        if at < self.saved_at() { 0 } else { 1 + tail % 2 }
    }

    fn make_arrivals(&self, from: u64, until: u64, tail: usize) -> Vec<Arrival> {
        (from..until).map(|at| Arrival { at, user: at, key: Some(self.key_at(at, tail)) }).collect()
    }

    /// The noise of each tail; `None` if the state does not come back.
    fn tail_noises(&self, choices: &mut Choices) -> Result<Option<Vec<Vec<i32>>>, AuditError> {
        let mut sketch = start_sketch(&self.plan, [0; 32])?;
        feed_batches(&mut sketch, &self.keys, &self.make_arrivals(0, self.saved_at(), 0), choices)?;
        let known: BTreeSet<_> = sketch.view().sealed().map(|sealed| place_of(&sealed)).collect();
        let key = StateKey::from_bytes(STATE_KEY);
        let saved = sketch.save(&key, &mut Backup)?;
        let tail = |tail| {
            // All tails start from the same bytes, so noise that two of them share was in the state (PRIVACY.md: rule 31).
            let Some(mut sketch) = restore_state(&saved, &key) else { return Ok(None) };
            let end = (SAVED_IN + 1) * self.plan.substream_len() + watermark_lag(self.plan.settings().window);
            feed_batches(&mut sketch, &self.keys, &self.make_arrivals(self.saved_at(), end, tail), choices)?;
            Ok(Some(self.new_noise(&sketch.view(), &known, tail)))
        };
        (0..TAILS).map(tail).collect()
    }

    /// The noise of everything that the state had not sealed.
    fn new_noise(&self, view: &WindowView, known: &BTreeSet<(u64, usize)>, tail: usize) -> Vec<i32> {
        let new = view.sealed().filter(|sealed| !known.contains(&place_of(sealed)));
        new.flat_map(|sealed| {
            let mut noise = sealed.sketch().cells();
            let start = sealed.substream() * self.plan.substream_len();
            for offset in self.plan.ranges()[sealed.range()].offsets() {
                let item = self.keys.get(self.key_at(start + offset, tail));
                sealed.cells(item).into_iter().for_each(|cell| noise[cell] -= 1);
            }
            noise
        })
        .collect()
    }
}

fn place_of(sealed: &Sealed<'_>) -> (u64, usize) {
    (sealed.substream(), sealed.range())
}

/// As if nobody had ever restored it.
fn restore_state(saved: &SavedState, key: &StateKey) -> Option<DpswSketch> {
    DpswSketch::restore(&saved.bytes, key, Noise::from_system(), &mut Backup).ok()
}
