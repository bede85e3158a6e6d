//! How sources and streams come and go: in one transaction each, between two commits of batches.

use std::sync::Arc;

use dpsw::{DpswSketch, Plan};

use crate::config::{ConfigError, SourceConfig, StreamConfig};
use crate::engine::commit::Committer;
use crate::engine::count::{Counting, Work};
use crate::engine::feed;
use crate::engine::publish::Published;
use crate::engine::registry::{Shared, Source, Stream};
use crate::engine::source_state::SourceState;
use crate::error::{ChangeError, Unavailable, Unknown};
use crate::ledger::{self, Charge};
use crate::store::changes::Changes;
use crate::store::records::{Meta, Saved, SourceId, SourceRecord, StateRecord, StreamId, StreamRecord};

/// The most sources, each of which has a thread.
pub const SOURCES_MAX: usize = 1000;
/// The most streams.
pub const STREAMS_MAX: usize = 10_000;

impl Committer {
    pub(crate) fn create_source(&mut self, config: SourceConfig) -> Result<(), ChangeError> {
        config.check()?;
        if self.names.contains(&config.name) {
            return Err(ChangeError::Exists { what: "source", name: config.name });
        }
        at_most("source", self.sources.len(), SOURCES_MAX)?;
        let id = self.meta.next_source;
        if !config.streams.is_empty() {
            let text = format!("source {:?} is made without streams; make them one by one", config.name);
            return Err(ConfigError::Contradiction(text).into());
        }
        let record = SourceRecord { config, is_deleted: false, charges: Vec::new() };
        let meta = Meta { next_source: SourceId(id.0 + 1), ..self.meta };
        self.make(meta, Changes { sources: vec![(id, &record)], ..Changes::default() })?;
        let name = record.config.name.clone();
        let source = Arc::new(Source::new(id, record.config, Vec::new(), None));
        let counter = (self.start_counter)(&name, Vec::new());
        self.sources.insert(id, SourceState::new(Arc::clone(&source), 0, counter));
        self.names.insert(name.clone());
        self.shared.sources.insert(&name, source);
        Ok(())
    }

    pub(crate) fn delete_source(&mut self, name: &str) -> Result<(), ChangeError> {
        let source = self.shared.sources.get(name)?;
        let state = self.sources.get(&source.id).ok_or_else(|| unknown("source", name))?;
        if !state.streams().is_empty() {
            let streams = state.streams().values().map(|(stream, _)| stream.config.name.as_str());
            let streams = streams.collect::<Vec<_>>().join(", ");
            return Err(ChangeError::NotEmpty { name: name.to_owned(), streams });
        }
        let record = SourceRecord {
            config: source.config.clone(),
            is_deleted: true,
            charges: source.charges().clone(),
        };
        let changes =
            Changes { sources: vec![(source.id, &record)], gone: vec![source.id], ..Changes::default() };
        self.make(self.meta, changes)?;
        self.sources.remove(&source.id);
        self.shared.sources.remove(name);
        Ok(())
    }

    pub(crate) fn create_stream(
        &mut self,
        source: &str,
        config: StreamConfig,
        plan: Plan,
    ) -> Result<(), ChangeError> {
        let source = self.shared.sources.get(source)?;
        self.shared.check_free(&config.name)?;
        check_room(&self.shared)?;
        self.start_stream(&source, config, plan, None)
    }

    /// Ends a stream and starts it with other settings, in one step. No batch is counted by both, and no substream or search has
    /// counters of both: what is open is given up, as in [`delete_stream`](Self::delete_stream).
    pub(crate) fn replace_stream(&mut self, config: StreamConfig, plan: Plan) -> Result<(), ChangeError> {
        let old = self.shared.counted(&config.name)?;
        old.config.check_successor(&config)?;
        self.start_stream(&Arc::clone(&old.source), config, plan, Some(&old))
    }

    /// The charge and the stream are durable together, before it counts anything.
    fn start_stream(
        &mut self,
        source: &Arc<Source>,
        config: StreamConfig,
        plan: Plan,
        replaced: Option<&Stream>,
    ) -> Result<(), ChangeError> {
        let state = self.sources.get_mut(&source.id).ok_or_else(|| unknown("source", &source.config.name))?;
        // The time of the service, not of the stream before: one whose clock was ahead is left behind here.
        let counted = state.next;
        let from_ms = self.shared.time.now_ms();
        let mut charges = source.charges().clone();
        if replaced.is_some() {
            end_charges(&mut charges, &config.name, (counted, from_ms));
        }
        charges.push(charge(source, &charges, &config, &plan, (counted, from_ms))?);
        let mut sketch = DpswSketch::new(plan).map_err(|error| no_randomness(&error))?;
        feed::advance(&mut sketch, from_ms, &mut |_| false).map_err(|_| no_randomness(&"no seal"))?;
        let state = sketch.checkpoint(&self.state_key).map_err(|error| no_randomness(&error))?;
        let saved = StateRecord::new(counted, sketch.sealed_until(), state);
        let id = self.meta.next_stream;
        let source_record = SourceRecord { config: source.config.clone(), is_deleted: false, charges };
        let origin = replaced.map_or(id, |old| old.origin);
        let stream_record = StreamRecord { source: source.id, config, from_ms, origin };
        let changes = Changes {
            sources: vec![(source.id, &source_record)],
            streams: vec![(id, &stream_record)],
            states: vec![(id, &saved)],
            ended: replaced.iter().map(|old| old.id).collect(),
            ..Changes::default()
        };
        self.make(Meta { next_stream: StreamId(id.0 + 1), ..self.meta }, changes)?;
        *source.charges() = source_record.charges;
        let first = Published::first(&sketch);
        let stream = Arc::new(Stream::new(id, Arc::clone(source), stream_record, first));
        let counting = Counting::new(Arc::clone(&stream), sketch, saved.saved);
        self.add(stream, counting, saved.saved);
        if let Some(old) = replaced {
            self.forget(old);
        }
        Ok(())
    }

    fn add(&mut self, stream: Arc<Stream>, counting: Counting, saved: Saved) {
        if let Some(state) = self.sources.get_mut(&stream.source.id) {
            state.note(Arc::clone(&stream), saved);
            let _ = state.counter.send(Work::Add { counting: Box::new(counting), busy: self.shared.begin() });
        }
        self.shared.streams.insert(&stream.config.name.clone(), stream);
    }

    /// A stream that is no longer in the database is counted no longer.
    fn forget(&mut self, stream: &Stream) {
        self.checkpoints.remove(&stream.id);
        if let Some(state) = self.sources.get_mut(&stream.source.id) {
            state.remove(stream.id);
            let _ = state.counter.send(Work::Remove { stream: stream.id });
        }
    }

    pub(crate) fn delete_stream(&mut self, name: &str) -> Result<(), ChangeError> {
        if self.delete_remote(name)? {
            return Ok(());
        }
        let stream = self.shared.streams.get(name)?;
        let source = &stream.source;
        let state = self.sources.get_mut(&source.id).ok_or_else(|| unknown("stream", name))?;
        let until = state.next;
        let until_ms = self.shared.time.now_ms();
        let mut charges = source.charges().clone();
        end_charges(&mut charges, name, (until, until_ms));
        let is_last = state.streams().len() == 1;
        let counted = is_last.then_some((source.id, until)).into_iter().collect();
        let record = SourceRecord { config: source.config.clone(), is_deleted: false, charges };
        let changes = Changes {
            sources: vec![(source.id, &record)],
            ended: vec![stream.id],
            counted,
            ..Changes::default()
        };
        self.make(self.meta, changes)?;
        *source.charges() = record.charges;
        self.shared.streams.remove(name);
        self.forget(&stream);
        if let Some(state) = self.sources.get_mut(&source.id).filter(|_| is_last) {
            state.note_counted(until);
        }
        Ok(())
    }

    pub(crate) fn make(&mut self, meta: Meta, changes: Changes<'_>) -> Result<(), Unavailable> {
        self.ensure_open()?;
        let meta = Meta { lineage: self.meta.lineage, ..meta };
        let changes = Changes { meta: Some(meta), ..changes };
        self.store.commit(&changes).map_err(|error| self.fail(&error))?;
        self.meta = meta;
        Ok(())
    }
}

/// A stream counts no longer from this batch and this time on.
fn end_charges(charges: &mut [Charge], stream: &str, (until, until_ms): (u64, u64)) {
    for charge in charges.iter_mut().filter(|charge| charge.stream == stream && charge.until.is_none()) {
        charge.until = Some(until);
        charge.until_ms = Some(until_ms);
    }
}

/// The charge of a stream that counts from this batch on, if the budget of its source bears it beside these.
pub(crate) fn charge(
    source: &Source,
    charges: &[Charge],
    config: &StreamConfig,
    plan: &Plan,
    (from, from_ms): (u64, u64),
) -> Result<Charge, ChangeError> {
    let charge = Charge::new(&config.name, plan.claim(), from, from_ms).ok_or(ChangeError::NoClaim)?;
    ledger::check(&source.config, charges, &charge)?;
    Ok(charge)
}

fn no_randomness(error: &dyn std::fmt::Display) -> Unavailable {
    Unavailable::Storage(error.to_string())
}

fn unknown(what: &'static str, name: &str) -> Unknown {
    Unknown { what, name: name.to_owned() }
}

pub(crate) fn check_room(shared: &Shared) -> Result<(), ChangeError> {
    at_most("stream", shared.streams.len() + shared.remote.len(), STREAMS_MAX)
}

fn at_most(what: &'static str, now: usize, most: usize) -> Result<(), ChangeError> {
    if now < most { Ok(()) } else { Err(ChangeError::Many { what, most }) }
}
