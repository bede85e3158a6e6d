//! How a sketch is fed: in batches of random sizes, as callers do.

use crate::audit::report::AuditError;
use crate::error::{StateError, StoreError};
use crate::item::batch::Batch;
use crate::item::hash::StreamKey;
use crate::item::keys::Keys;
use crate::item::value::{Item, Kind};
use crate::noise::generator::{Generator, Noise};
use crate::plan::settings::{Clock, TimeWindow, Unit, Window};
use crate::plan::structure::Plan;
use crate::stream::freshness::{FreshnessStore, StateId};
use crate::stream::sketch::DpswSketch;
use crate::stream::state::StateKey;

/// The longest batch: more than what is hashed at a time.
const BATCH_MAX: u64 = 300;
/// Half of the batches are this short or shorter.
const BATCH_SHORT: u64 = 4;

/// An event at a position or tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The time, for time windows.
    pub(super) at: u64,
    /// Who sends it, where users are protected.
    pub(super) user: u64,
    /// The index of the key; without one the item is null, and under add/remove there is no event.
    pub(super) key: Option<usize>,
}

/// Random choices about how a stream is fed, never about its noise.
#[derive(Debug)]
pub(super) struct Choices(Generator);

impl Choices {
    pub(super) fn new() -> Result<Self, AuditError> {
        Ok(Self(Noise::from_system().generator()?))
    }

    /// Below a bound of at least 1; even enough for choices.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Cuts items into batches of random sizes.
    pub(super) fn cut_batches<'i, T>(&mut self, items: &'i [T]) -> Vec<&'i [T]> {
        let (mut batches, mut rest) = (Vec::new(), items);
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(1 + self.below(rest.len() as u64) as usize);
            batches.push(batch);
            rest = after;
        }
        batches
    }

    /// The length of a batch: at most what is there and at most a substream, so that no event lies ahead of the clock.
    fn batch_len(&mut self, there: usize, substream_len: u64) -> usize {
        let most = substream_len.min(BATCH_MAX).min(there as u64);
        // Short batches often begin or end at the changed event, where mistakes of batches show (PRIVACY.md: rule 35).
        let most = if self.coin() { most } else { most.min(BATCH_SHORT) };
        1 + self.below(most) as usize
    }
}

/// Lets every state be restored as often as one likes, as if its notes came back with a backup.
pub(super) struct Backup;

impl FreshnessStore for Backup {
    fn note(&mut self, _: StateId) -> Result<(), StoreError> {
        Ok(())
    }

    fn consume(&mut self, _: StateId) -> Result<bool, StoreError> {
        Ok(true)
    }
}

/// A new sketch at position or tick 0.
pub(super) fn start_sketch(plan: &Plan, hash_key: [u8; 32]) -> Result<DpswSketch, AuditError> {
    let key = StreamKey::from_bytes(hash_key);
    let mut sketch = DpswSketch::with_key(plan.clone(), key, Noise::from_system());
    // The first call sets where the stream begins; earlier events would be late.
    if is_callers(plan) {
        sketch.advance(0)?;
    }
    Ok(sketch)
}

/// The key of all states that an audit saves.
pub(super) fn state_key() -> StateKey {
    StateKey::from_bytes([7; 32])
}

/// The bytes of a stream that is saved.
pub(super) fn save_state(sketch: DpswSketch) -> Result<Vec<u8>, AuditError> {
    Ok(sketch.save(&state_key(), &mut Backup)?.bytes)
}

/// The stream that goes on from a saved state, as if nobody had ever restored it.
pub(super) fn restore_state(bytes: &[u8]) -> Result<DpswSketch, StateError> {
    DpswSketch::restore(bytes, &state_key(), Noise::from_system(), &mut Backup)
}

/// How many ticks the watermark stays behind the next event.
pub(super) fn watermark_lag(window: Window) -> u64 {
    match window.time() {
        Some(TimeWindow { clock: Clock::Events, lateness, .. }) => lateness + 1,
        _ => 0,
    }
}

/// Feeds arrivals in order of their times, in batches, and moves the caller's clock behind each batch.
pub(super) fn feed_batches(
    sketch: &mut DpswSketch,
    keys: &Keys,
    arrivals: &[Arrival],
    choices: &mut Choices,
) -> Result<(), AuditError> {
    let mut rest = arrivals;
    while let Some(last) = rest.len().checked_sub(1) {
        let (batch, after) = rest.split_at(choices.batch_len(last + 1, sketch.plan().substream_len()));
        send_batch(sketch, keys, batch)?;
        if is_callers(sketch.plan()) {
            sketch.advance(batch[batch.len() - 1].at + 1)?;
        }
        rest = after;
    }
    Ok(())
}

/// One batch, and no word about the clock.
pub(super) fn send_batch(sketch: &mut DpswSketch, keys: &Keys, batch: &[Arrival]) -> Result<(), AuditError> {
    // A batch holds items or nulls, so it is split into runs that keep the order of arrival.
    for run in batch.chunk_by(|one, next| one.key.is_some() == next.key.is_some()) {
        match run[0].key {
            Some(_) => send_items(sketch, keys, run)?,
            None => send_nulls(sketch, run)?,
        }
    }
    Ok(())
}

fn send_items(sketch: &mut DpswSketch, keys: &Keys, run: &[Arrival]) -> Result<(), AuditError> {
    with_items(keys, run, |batch| extend_sketch(sketch, batch, run))
}

/// Gives the items of arrivals as a batch.
fn with_items<T>(keys: &Keys, run: &[Arrival], take: impl FnOnce(Batch<'_>) -> T) -> T {
    let items: Vec<Item<'_>> = run.iter().filter_map(|one| one.key).map(|key| keys.get(key)).collect();
    let words: Vec<u64> = items.iter().filter_map(as_integer).collect();
    let strings: Vec<&[u8]> = items.iter().filter_map(as_bytes).collect();
    take(match keys.kind() {
        Kind::Integers => Batch::integers(&words),
        Kind::Bytes => Batch::bytes(&strings),
    })
}

/// Gives the items of arrivals with their times.
pub(super) fn with_batch<T>(keys: &Keys, run: &[Arrival], take: impl FnOnce(Batch<'_>) -> T) -> T {
    let times: Vec<u64> = run.iter().map(|one| one.at).collect();
    with_items(keys, run, |batch| take(batch.at(&times)))
}

fn send_nulls(sketch: &mut DpswSketch, run: &[Arrival]) -> Result<(), AuditError> {
    // Under add/remove the neighbour lacks the whole event, not only its item.
    if sketch.plan().settings().unit == Unit::AddRemove {
        return Ok(());
    }
    extend_sketch(sketch, Batch::nulls(run.len()), run)
}

/// Adds the times and users that the plan asks for.
fn extend_sketch(sketch: &mut DpswSketch, batch: Batch<'_>, run: &[Arrival]) -> Result<(), AuditError> {
    let times: Vec<u64> = run.iter().map(|one| one.at).collect();
    let users: Vec<u64> = run.iter().map(|one| one.user).collect();
    let settings = sketch.plan().settings();
    let batch = if settings.window.time().is_some() { batch.at(&times) } else { batch };
    let batch = if settings.unit.per_substream().is_some() { batch.by(&users) } else { batch };
    sketch.extend(batch)?;
    Ok(())
}

fn as_integer(item: &Item<'_>) -> Option<u64> {
    if let Item::Integer(value) = item { Some(*value) } else { None }
}

fn as_bytes<'k>(item: &Item<'k>) -> Option<&'k [u8]> {
    if let Item::Bytes(value) = item { Some(value) } else { None }
}

/// Whether the caller moves the clock.
pub(super) fn is_callers(plan: &Plan) -> bool {
    plan.settings().window.time().is_some_and(|time| time.clock.is_callers())
}
