//! Where nobody can tell that the data is the newest: what is open is given up, and each stream goes on after everything
//! that may have been shown.

use std::collections::BTreeMap;

use dpsw::error::StateError;
use dpsw::{DpswSketch, Noise, StateKey};
use dpsw_durable::marker::Marker;

use crate::engine::recover::{commit, damaged, damaged_state, write_marker};
use crate::engine::registry::Shared;
use crate::error::OpenError;
use crate::quantity::Span;
use crate::store::Store;
use crate::store::changes::{Changes, SenderChange};
use crate::store::journal::Batch;
use crate::store::position::Position;
use crate::store::read::Catalogue;
use crate::store::records::{Meta, SourceId, StateRecord, StreamId, StreamRecord};
use crate::store::sender::TakenNumbers;

/// Where nobody knows how far a count window was shown, it goes on this many positions later: no source sends so many events
/// between a backup and its restore.
const LEAP: u64 = 1 << 40;

/// Starts every stream anew, without the journal, and commits that before the marker moves on to it.
pub(crate) fn recover_from_rollback(
    store: &mut Store,
    shared: &Shared,
    key: &StateKey,
    meta: Meta,
    catalogue: &Catalogue,
    shown: Option<&Marker>,
) -> Result<(Meta, Marker), OpenError> {
    let next = next_batches(store, catalogue)?;
    let mut states = Vec::new();
    let mut until = BTreeMap::new();
    for (id, record) in &catalogue.streams {
        let mut sketch = resumed(store, shared, key, (*id, record), shown)?;
        let state = sketch.checkpoint(key).map_err(|error| OpenError::Entropy(error.to_string()))?;
        let counted = next.get(&record.source).copied().unwrap_or(0);
        states.push((*id, StateRecord::new(counted, sketch.sealed_until(), state)));
        until.insert(id.0, sketch.sealed_until());
        let name = &record.config.name;
        let position = sketch.position();
        shared.health.notice(&format!("stream {name:?} goes on at {position}"));
    }
    let marked = shown.map_or(meta.lineage.generation, |shown| shown.generation);
    let lineage = meta.lineage.after(marked).map_err(|error| OpenError::Entropy(error.to_string()))?;
    // A stream that was made after the backup keeps its number.
    let newest = shown.and_then(|shown| shown.shown.last_key_value()).map_or(0, |(id, _)| id + 1);
    let next_stream = meta.next_stream.max(StreamId(newest));
    let meta = Meta { lineage, next_stream, ..meta };
    let marker = Marker { shown: until, ..Marker::new(lineage) };
    let states = states.iter().map(|(id, state)| (*id, state)).collect();
    let counted = next.into_iter().collect();
    let positions = ends_of_topics(store, catalogue)?;
    let positions = positions.iter().map(|(id, position)| (*id, position)).collect();
    let senders = closed_senders(store)?;
    commit(store, &Changes { meta: Some(meta), states, counted, positions, senders, ..Changes::default() })?;
    write_marker(store, &marker)?;
    Ok((meta, marker))
}

/// A sender may have gone on after the backup, and nobody knows how far: none of its numbers counts any more.
fn closed_senders(store: &Store) -> Result<Vec<SenderChange>, OpenError> {
    let senders = store.all_senders().map_err(|error| damaged(store, error))?.into_iter();
    Ok(senders.map(|(id, key)| SenderChange::Numbers(id, key, Some(TakenNumbers::closed()))).collect())
}

/// What brokers have now may have been counted before: their sources go on after it.
fn ends_of_topics(store: &Store, catalogue: &Catalogue) -> Result<Vec<(SourceId, Position)>, OpenError> {
    let mut ends = Vec::new();
    for (id, _) in catalogue.sources.iter().filter(|(_, record)| record.config.broker.is_some()) {
        let read = store.position(*id).map_err(|error| damaged(store, error))?;
        ends.push((*id, Position { begins_at_end: true, ..read.unwrap_or_default() }));
    }
    Ok(ends)
}

/// The number of the next batch of each source, after all that are in the journal.
fn next_batches(store: &Store, catalogue: &Catalogue) -> Result<BTreeMap<SourceId, u64>, OpenError> {
    let mut next = BTreeMap::new();
    for (id, record) in &catalogue.streams {
        let saved = store.saved(*id).map_err(|error| damaged(store, error))?;
        let counted = next.entry(record.source).or_insert(saved.counted);
        *counted = saved.counted.max(*counted);
    }
    for (id, next) in &mut next {
        let last =
            |batches: Vec<Batch>| *next = batches.last().map_or(0, |last| last.sequence + 1).max(*next);
        store.journal(*id, 0, last).map_err(|error| damaged(store, error))?;
    }
    Ok(next)
}

fn resumed(
    store: &Store,
    shared: &Shared,
    key: &StateKey,
    (id, record): (StreamId, &StreamRecord),
    shown: Option<&Marker>,
) -> Result<DpswSketch, OpenError> {
    let (saved, state) = store.state(id).map_err(|error| damaged(store, error))?;
    // A marker says nothing of streams that were never shown, nor of those that ended after the backup.
    let shown = shown.and_then(|shown| shown.shown.get(&id.0).copied());
    let now_ms = shared.time.now_ms();
    let begin = match (record.config.window, shown) {
        (Span::Items(_), None) => saved.sealed_until + LEAP,
        (Span::Items(_), Some(shown)) => shown,
        // Events bring their time: nothing more than a window ahead of the clock was ever counted.
        (Span::Time(len), None) => now_ms + len.0,
        (Span::Time(_), Some(shown)) => shown.max(now_ms),
    };
    let resume = |at| DpswSketch::resume(&state, key, Noise::from_system(), at);
    let resumed = match resume(begin) {
        Err(StateError::Resume { saved, .. }) => resume(saved),
        resumed => resumed,
    };
    resumed.map_err(|error| damaged_state(store, record, &error))
}
