//! The start: every stream goes on where it stood, and what was acknowledged and not yet counted is counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use dpsw::error::{StateError, StoreError as NoteError};
use dpsw::{DpswSketch, FreshnessStore, Noise, StateId, StateKey};
use dpsw_durable::marker::{Lineage, Marker, Standing};

use crate::engine::count::Counting;
use crate::engine::publish::Published;
use crate::engine::registry::{Shared, Source, Stream};
use crate::engine::{feed, isolate, rollback};
use crate::error::OpenError;
use crate::store::changes::Changes;
use crate::store::journal::reserved;
use crate::store::read::{Catalogue, ReadError};
use crate::store::records::{Meta, SourceId, SourceRecord, StreamId, StreamRecord};
use crate::store::{FORMAT, Store};

/// Everything that the threads start with.
pub(crate) struct Recovered {
    pub(crate) meta: Meta,
    pub(crate) marker: Marker,
    pub(crate) sources: Vec<RecoveredSource>,
    /// The names of all sources that there ever were.
    pub(crate) names: Vec<String>,
    /// The marker could not be moved to the states that the database has: nothing of them may be shown until it is.
    pub(crate) is_unmarked: bool,
}

/// A source with its streams, which have counted everything that is in the journal.
pub(crate) struct RecoveredSource {
    pub(crate) source: Arc<Source>,
    /// The next batch has this number.
    pub(crate) next: u64,
    pub(crate) streams: Vec<Counting>,
    /// The records of the journal: their last batch, and what was reserved for them.
    pub(crate) journal: Vec<(u64, usize)>,
}

/// Reads everything back, and gives up what may have been shown otherwise.
pub(crate) fn recover(store: &mut Store, shared: &Shared, key: &StateKey) -> Result<Recovered, OpenError> {
    let mut meta = first_meta(store)?;
    let catalogue = store.catalogue().map_err(|error| damaged(store, error))?;
    let mut marker = Marker::new(meta.lineage);
    let mut is_unmarked = false;
    let standing = Standing::read(&**store.disk(), store.cipher(), meta.lineage);
    match standing.map_err(|error| unreadable_marker(store, &error))? {
        Standing::Newest => marker.shown = sealed(store, &catalogue)?,
        Standing::New => write_marker(store, &marker)?,
        Standing::Unshown => {
            marker.shown = sealed(store, &catalogue)?;
            is_unmarked = write_marker(store, &marker).is_err();
        }
        Standing::Foreign => return Err(OpenError::OtherMarker(marker_name(store))),
        standing => {
            notice_doubt(shared, &standing);
            let shown = if let Standing::Older(shown) = &standing { Some(shown) } else { None };
            (meta, marker) = rollback::recover_from_rollback(store, shared, key, meta, &catalogue, shown)?;
        }
    }
    if meta.lineage.replaces.is_none() {
        meta = Meta { lineage: meta.lineage.no_longer_new(), ..meta };
        commit(store, &Changes { meta: Some(meta), ..Changes::default() })?;
    }
    let Catalogue { sources, streams } = catalogue;
    let names = sources.iter().map(|(_, record)| record.config.name.clone()).collect();
    let sources = sources.into_iter().filter(|(_, record)| !record.is_deleted);
    let sources = sources.map(|(id, record)| recover_source(store, shared, key, (id, record), &streams));
    let sources = sources.collect::<Result<_, _>>()?;
    if let Some(replaced) = meta.lineage.replaces.filter(|_| is_unmarked) {
        marker.generation = replaced;
    }
    Ok(Recovered { meta, marker, sources, names, is_unmarked })
}

/// Says that nobody can tell whether this is the newest data, and what follows from that.
fn notice_doubt(shared: &Shared, standing: &Standing) {
    let reason = match standing {
        Standing::Gone => "there is no marker",
        Standing::Unreadable => "the marker is damaged or has another key",
        _ => "the marker has another generation than the database",
    };
    shared.health.notice(&format!(
        "{reason}, so this may not be the newest data: what was open was given up, and everything released before is \
        no longer answered. Batches of the senders that the data knows are refused as too old: let producers go on with \
        new events under new sender names. Events sent again without an id, or by a sender that began after the backup, \
        would count a second time"
    ));
}

fn marker_name(store: &Store) -> String {
    format!("the marker of {}", store.disk().name())
}

fn unreadable_marker(store: &Store, error: &std::io::Error) -> OpenError {
    OpenError::Path { path: marker_name(store), reason: error.to_string() }
}

/// What the database says about itself. A new one says it from now on.
fn first_meta(store: &mut Store) -> Result<Meta, OpenError> {
    check_format(store)?;
    match store.meta() {
        Ok(Some(meta)) => return Ok(meta),
        Ok(None) => {}
        Err(ReadError::Damaged { .. }) => return Err(OpenError::OtherKey(store.disk().name())),
        Err(error) => return Err(damaged(store, error)),
    }
    if store.disk().read_marker().map_err(|error| unusable(store, &error))?.is_some() {
        return Err(OpenError::OtherMarker(format!("the marker beside {}", store.disk().name())));
    }
    let lineage = Lineage::draw().map_err(|error| OpenError::Entropy(error.to_string()))?;
    let meta = Meta { lineage, next_source: SourceId(0), next_stream: StreamId(0) };
    commit(store, &Changes { meta: Some(meta), ..Changes::default() })?;
    Ok(meta)
}

/// A database of another version is not looked into.
fn check_format(store: &Store) -> Result<(), OpenError> {
    let format = store.format().map_err(|error| damaged(store, error))?;
    if format == Some(FORMAT) || store.is_new().map_err(|error| damaged(store, error))? {
        return Ok(());
    }
    let found = format.map_or_else(|| "no number".to_owned(), |format| format.to_string());
    Err(OpenError::OtherVersion { path: store.disk().name(), found })
}

pub(crate) fn write_marker(store: &Store, marker: &Marker) -> Result<(), OpenError> {
    marker.write(&**store.disk(), store.cipher()).map_err(|error| unusable(store, &error))
}

pub(crate) fn commit(store: &mut Store, changes: &Changes<'_>) -> Result<(), OpenError> {
    store.commit(changes).map_err(|error| unusable(store, &error))
}

pub(crate) fn damaged(store: &Store, error: ReadError) -> OpenError {
    match error {
        ReadError::Damaged { what, reason } => {
            OpenError::Damaged { what: format!("{what} in {}", store.disk().name()), reason }
        }
        ReadError::Store(error) => unusable(store, &error),
    }
}

/// The state of a stream that is there and cannot be counted on.
pub(crate) fn damaged_state(store: &Store, record: &StreamRecord, error: &StateError) -> OpenError {
    let what = format!("the state of stream {:?} in {}", record.config.name, store.disk().name());
    OpenError::Damaged { what, reason: error.to_string() }
}

fn unusable(store: &Store, error: &dyn std::fmt::Display) -> OpenError {
    OpenError::Path { path: store.disk().name(), reason: error.to_string() }
}

/// Up to where each stream is sealed in its checkpoint.
fn sealed(store: &Store, catalogue: &Catalogue) -> Result<BTreeMap<u64, u64>, OpenError> {
    let sealed = |(id, _): &(StreamId, StreamRecord)| Ok((id.0, store.saved(*id)?.sealed_until));
    catalogue.streams.iter().map(sealed).collect::<Result<_, _>>().map_err(|error| damaged(store, error))
}

fn recover_source(
    store: &mut Store,
    shared: &Shared,
    key: &StateKey,
    (id, record): (SourceId, SourceRecord),
    streams: &[(StreamId, StreamRecord)],
) -> Result<RecoveredSource, OpenError> {
    let ends = record.charges.iter().map(|charge| charge.until.unwrap_or(charge.from));
    let next = ends.max().unwrap_or(0);
    let position = store.position(id).map_err(|error| damaged(store, error))?;
    let source = Arc::new(Source::new(id, record.config, record.charges, position));
    let own = streams.iter().filter(|(_, stream)| stream.source == id).collect::<Vec<_>>();
    let streams = restore_all(store, shared, key, &source, &own)?;
    let next = streams.iter().map(|counting| counting.counted).fold(next, u64::max);
    let mut recovered = RecoveredSource { source, next, streams, journal: Vec::new() };
    for stream in recovered.count_journal(store, shared)? {
        recovered.count_without_what_panics(store, shared, key, stream, &own)?;
    }
    recovered.come_to_now(shared)?;
    Ok(recovered)
}

impl RecoveredSource {
    /// Counts what was acknowledged and is not in the checkpoints. The streams in which that panicked: they are counted in part.
    fn count_journal(&mut self, store: &Store, shared: &Shared) -> Result<Vec<StreamId>, OpenError> {
        let from = self.streams.iter().map(|counting| counting.counted).min().unwrap_or(self.next);
        let mut is_over = false;
        let mut panicked = Vec::new();
        let read = store.journal(self.source.id, from, |batches| {
            let Some(last) = batches.last() else { return };
            self.journal.push((last.sequence, reserved(&batches)));
            self.next = self.next.max(last.sequence + 1);
            for batch in &batches {
                let whole = |counting: &&mut Counting| !panicked.contains(&counting.stream.id);
                let mut failed = Vec::new();
                for counting in self.streams.iter_mut().filter(whole) {
                    match isolate::caught(|| counting.count_again(batch, shared, None)) {
                        Some(counted) => is_over |= counted.is_err(),
                        None => failed.push(counting.stream.id),
                    }
                }
                panicked.append(&mut failed);
            }
        });
        read.map_err(|error| damaged(store, error))?;
        if is_over { Err(unsealed()) } else { Ok(panicked) }
    }

    /// Counts a stream anew, in which something panicked.
    fn count_without_what_panics(
        &mut self,
        store: &mut Store,
        shared: &Shared,
        key: &StateKey,
        stream: StreamId,
        own: &[&(StreamId, StreamRecord)],
    ) -> Result<(), OpenError> {
        let (_, record) = own.iter().find(|(id, _)| *id == stream).expect("it was restored from its record");
        let source = Arc::clone(&self.source);
        let restored = |store: &Store| restore(store, shared, key, &source, stream, record);
        let counting = isolate::count_without_what_panics(store, shared, self.source.id, restored)?;
        let place = self.streams.iter_mut().find(|counting| counting.stream.id == stream);
        *place.expect("it was restored before") = counting;
        Ok(())
    }

    /// What is saved next follows from the clock, not from when the last batch came.
    fn come_to_now(&mut self, shared: &Shared) -> Result<(), OpenError> {
        let now_ms = shared.time.now_ms();
        let mut streams = self.streams.iter_mut();
        streams.try_for_each(|counting| counting.advance(now_ms, shared)).map_err(|_| unsealed())
    }
}

pub(crate) fn unsealed() -> OpenError {
    OpenError::Entropy("a substream could not be sealed".to_owned())
}

/// Restores streams on all processors.
fn restore_all(
    store: &Store,
    shared: &Shared,
    key: &StateKey,
    source: &Arc<Source>,
    streams: &[&(StreamId, StreamRecord)],
) -> Result<Vec<Counting>, OpenError> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part_len = streams.len().div_ceil(threads).max(1);
    let restored =
        |(id, record): &&(StreamId, StreamRecord)| restore(store, shared, key, source, *id, record);
    std::thread::scope(|scope| {
        let mut parts = Vec::new();
        for part in streams.chunks(part_len) {
            parts.push(scope.spawn(move || part.iter().map(restored).collect::<Result<Vec<_>, _>>()));
        }
        let mut all = Vec::with_capacity(streams.len());
        for part in parts {
            all.extend(part.join().map_err(|_| restore_panicked(store))??);
        }
        Ok(all)
    })
}

fn restore_panicked(store: &Store) -> OpenError {
    OpenError::Damaged { what: store.disk().name(), reason: "a stream could not be restored".to_owned() }
}

fn restore(
    store: &Store,
    shared: &Shared,
    key: &StateKey,
    source: &Arc<Source>,
    id: StreamId,
    record: &StreamRecord,
) -> Result<Counting, OpenError> {
    let (saved, state) = store.state(id).map_err(|error| damaged(store, error))?;
    let restored = DpswSketch::restore(&state, key, Noise::from_system(), &mut Newest(saved.id));
    let mut sketch = restored.map_err(|error| damaged_state(store, record, &error))?;
    feed::approach(&mut sketch, shared.time.now_ms());
    let first = Published::first(&sketch);
    let stream = Stream::new(id, Arc::clone(source), record.clone(), first);
    let nulls = store.nulls(id).map_err(|error| damaged(store, error))?;
    let mut counting = Counting::new(Arc::new(stream), sketch, saved);
    counting.nulls = nulls;
    Ok(counting)
}

/// The store that lets the database's own state be restored, after the marker has shown that the database is the newest (see
/// [`marker`](dpsw_durable::marker)). A crash later it may be restored again: nothing was shown of what was sealed meanwhile,
/// or else the database would have its successor.
struct Newest(StateId);

impl FreshnessStore for Newest {
    fn note(&mut self, _: StateId) -> Result<(), NoteError> {
        Ok(())
    }

    fn consume(&mut self, id: StateId) -> Result<bool, NoteError> {
        Ok(id == self.0)
    }
}
