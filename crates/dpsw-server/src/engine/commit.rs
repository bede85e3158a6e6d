//! The committer: everything that waits is made durable in one transaction, and the next one while that is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use dpsw::{StateKey, WindowView};
use dpsw_durable::marker::Generation;
use tokio::sync::oneshot;

use crate::engine::count::{Counting, Work};
use crate::engine::gauge::Busy;
use crate::engine::registry::{Shared, Stream};
use crate::engine::release::{Committed, Release};
use crate::engine::senders::Known;
use crate::engine::source_state::{Groups, Ingest, SourceState};
use crate::error::{ChangeError, IngestError, Unavailable, Unknown};
use crate::store::changes::{Changes, SenderChange};
use crate::store::journal::reserved;
use crate::store::read::has_state;
use crate::store::records::{Meta, SourceId, StateRecord, StreamId};
use crate::store::{Store, StoreError};

/// The most batches of one transaction.
const GROUP_MAX: usize = 4096;
/// The most bytes of one transaction, unless one batch is larger.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// Beyond this part of the most bytes of journal the streams of a source are saved, so that it can be emptied.
const EMPTIED_AT: usize = 4;
/// How often a database that refused is tried again, at most.
const PAUSE: Duration = Duration::from_millis(100);

/// A request to the committer.
pub(crate) enum Request {
    Ingest(Ingest),
    Checkpoint(Checkpoint),
    /// The marker has moved to this generation, and what it has may be seen.
    Released {
        generation: Generation,
        busy: Busy,
    },
    SaveAll {
        busy: Busy,
    },
    /// Make or remove a source or a stream, between two commits of batches.
    Change {
        change: Change,
        reply: oneshot::Sender<Result<(), ChangeError>>,
    },
    /// All work is done: end.
    Stop,
}

impl Request {
    /// Says that it was not touched, because the service shuts down.
    fn refuse(self) {
        match self {
            Self::Ingest(ingest) => drop(ingest.reply.send(Err(Unavailable::ShuttingDown.into()))),
            Self::Change { reply, .. } => drop(reply.send(Err(Unavailable::ShuttingDown.into()))),
            Self::Checkpoint(_) | Self::Released { .. } | Self::SaveAll { .. } | Self::Stop => {}
        }
    }
}

/// A change of sources or streams, which the committer makes.
pub(crate) type Change = Box<dyn FnOnce(&mut Committer) -> Result<(), ChangeError> + Send>;

/// The saved state of a stream, and what can be seen of it once it is durable.
pub(crate) struct Checkpoint {
    pub(crate) stream: Arc<Stream>,
    pub(crate) record: StateRecord,
    pub(crate) view: WindowView,
    pub(crate) busy: Busy,
}

/// Starts the owner of a source with this name and these streams.
pub(crate) type StartCounter = Box<dyn Fn(&str, Vec<Counting>) -> Arc<Sender<Work>> + Send>;

/// The one thread that writes to the database.
///
/// Everything that waits (batches of all sources, checkpoints of their streams) goes into one transaction, so that one wait for the
/// disk serves all. While that transaction is counted by the threads of the sources, the next one is made. Changes of sources and
/// streams are made between two of these transactions, alone.
///
/// What must stay true:
///
/// - A batch is acknowledged, and counted, after the commit that has it has returned, and not before.
/// - A checkpoint is handed on to be shown after it was committed and read back, byte for byte (PRIVACY.md: rule 8).
/// - While the marker moves, no commit has anything new to show: at most one generation is between database and marker (rule 10).
/// - A batch stays in the journal until the checkpoints of all streams of its source have it (rule 12).
/// - What a commit may have written and nobody was told of is taken out when the database is open again.
pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) meta: Meta,
    /// The generation that the marker has, or is being moved to.
    pub(crate) marked: Generation,
    pub(crate) state_key: StateKey,
    pub(crate) sources: BTreeMap<SourceId, SourceState>,
    pub(crate) requests: Receiver<Request>,
    pub(crate) releaser: Sender<Release>,
    /// Checkpoints that are not durable yet, the newest of each stream.
    pub(crate) checkpoints: BTreeMap<StreamId, Checkpoint>,
    /// Whether the marker is being moved: no commit with anything new to show is made meanwhile.
    pub(crate) is_releasing: bool,
    /// When the database refused, and why; it is opened again before the next commit.
    pub(crate) failed: Option<(Instant, Unavailable)>,
    /// The names of all sources that there ever were.
    pub(crate) names: BTreeSet<String>,
    pub(crate) start_counter: StartCounter,
    /// Beyond this many bytes of a source's journal no batch is taken until some are gone.
    pub(crate) journal_bytes_max: usize,
    /// The most senders of one owner that a source remembers.
    pub(crate) senders_max: u32,
    /// What takes back what a commit that was not confirmed has noted of senders.
    pub(crate) unconfirmed: Vec<SenderChange>,
}

impl Committer {
    /// Works until it is told to stop.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopped() {
            let first = match self.requests.recv_timeout(self.pause()) {
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
            };
            if !self.work(first) {
                break;
            }
            if self.failed.is_some() {
                // What is wrong is in the health.
                let _ = self.ensure_open();
            }
        }
        // What came after the last commit was not touched. Whoever gets no answer has to take it for unconfirmed.
        for request in self.requests.try_iter() {
            request.refuse();
        }
    }

    fn pause(&self) -> Duration {
        let waits =
            self.failed.is_none() && self.checkpoints.values().any(|checkpoint| self.may_commit(checkpoint));
        if waits { Duration::ZERO } else { PAUSE }
    }

    /// Takes all that waits, commits it, and does what changes sources and streams one by one. Whether it goes on.
    fn work(&mut self, first: Option<Request>) -> bool {
        let mut groups = Groups::new();
        let after = self.take_waiting(first, &mut groups);
        self.commit(groups);
        match after {
            None => {}
            Some(Request::SaveAll { busy: _busy }) => self.save_all(),
            Some(Request::Change { change, reply }) => {
                // Whoever asked may have gone away; the change is made all the same.
                let _ = reply.send(change(self));
            }
            // To stop: all others were taken before.
            Some(_) => return false,
        }
        true
    }

    /// Takes what goes into one transaction, until nothing waits or it is full. A request that is no part of a transaction ends it
    /// and is returned: it is done after what came before it is committed.
    fn take_waiting(&mut self, first: Option<Request>, groups: &mut Groups) -> Option<Request> {
        let mut taken = 0;
        let mut bytes = 0;
        let mut next = first;
        while let Some(request) = next {
            match request {
                Request::Ingest(ingest) => {
                    taken += 1;
                    bytes += ingest.events.reserved_or_size();
                    self.take(ingest, groups);
                }
                Request::Checkpoint(checkpoint) => self.take_checkpoint(checkpoint),
                Request::Released { generation, busy: _busy } => self.released(generation),
                other => return Some(other),
            }
            let has_room = taken < GROUP_MAX && bytes < GROUP_BYTES_MAX;
            next = if has_room { self.requests.try_recv().ok() } else { None };
        }
        None
    }

    fn save_all(&self) {
        for state in self.sources.values() {
            let _ = state.counter.send(Work::SaveAll { busy: self.shared.begin() });
        }
    }

    fn take(&mut self, ingest: Ingest, groups: &mut Groups) {
        let id = ingest.source.id;
        match self.is_repeated(&ingest, groups) {
            Ok(is_repeated) => {
                let now_ms = self.shared.time.now_ms();
                groups.entry(id).or_default().push(ingest, &self.sources[&id], now_ms, is_repeated);
            }
            Err(refusal) => drop(ingest.reply.send(Err(refusal))),
        }
    }

    /// Whether a batch was taken before. From now on a new one is taken, if the commit succeeds.
    ///
    /// # Errors
    /// It cannot be taken.
    fn is_repeated(&mut self, ingest: &Ingest, groups: &mut Groups) -> Result<bool, IngestError> {
        // What is known of senders is in the database.
        self.ensure_open()?;
        let id = ingest.source.id;
        let Some(state) = self.sources.get(&id) else {
            return Err(Unknown { what: "source", name: ingest.source.config.name.clone() }.into());
        };
        // Something keeps checkpoints from being committed.
        if self.journal_bytes_max < state.journal_bytes() {
            let full = "the journal is full, because what was sealed cannot be shown; the status says why";
            return Err(Unavailable::Storage(full.to_owned()).into());
        }
        let group = groups.entry(id).or_default();
        group.check(ingest, state)?;
        let Some(batch) = &ingest.id else { return Ok(false) };
        match group.senders.take(&self.store, id, batch, self.senders_max) {
            Ok(Known::New) => Ok(false),
            Ok(Known::Taken) => Ok(true),
            Ok(Known::TooOld) => Err(IngestError::BatchTooOld),
            Ok(Known::TooManySenders(most)) => Err(IngestError::TooManySenders(most)),
            Err(error) => {
                self.fail(&StoreError::new(error.to_string()));
                Err(Unavailable::Storage(error.to_string()).into())
            }
        }
    }

    /// A newer checkpoint takes the place of one that waits. One of a stream that was deleted meanwhile is dropped.
    fn take_checkpoint(&mut self, checkpoint: Checkpoint) {
        let id = checkpoint.stream.id;
        let state = self.sources.get(&checkpoint.stream.source.id);
        if state.is_some_and(|state| state.streams().contains_key(&id)) {
            self.checkpoints.insert(id, checkpoint);
        }
    }

    fn released(&mut self, generation: Generation) {
        self.marked = generation;
        self.is_releasing = false;
    }

    fn has_news(&self, checkpoint: &Checkpoint) -> bool {
        let state = self.sources.get(&checkpoint.stream.source.id);
        let durable = state.and_then(|state| state.streams().get(&checkpoint.stream.id));
        durable.is_none_or(|(_, saved)| saved.sealed_until < checkpoint.record.saved.sealed_until)
    }

    fn may_commit(&self, checkpoint: &Checkpoint) -> bool {
        !self.is_releasing || !self.has_news(checkpoint)
    }

    fn commit(&mut self, groups: Groups) {
        let ready = self.checkpoints.iter().filter(|(_, checkpoint)| self.may_commit(checkpoint));
        let ready: Vec<StreamId> = ready.map(|(id, _)| *id).collect();
        if groups.is_empty() && ready.is_empty() {
            return;
        }
        let began = Instant::now();
        match self.try_commit(&groups, &ready) {
            Ok(meta) => self.committed(groups, &ready, meta, began.elapsed()),
            Err(unavailable) => {
                let undone = groups.iter().flat_map(|(id, group)| group.senders.undone(*id));
                self.unconfirmed.extend(undone);
                let refusal = unavailable.into();
                for group in groups.into_values() {
                    group.refuse(&refusal);
                }
            }
        }
    }

    /// One transaction with all batches, and these checkpoints. What the database says about itself afterwards.
    fn try_commit(&mut self, groups: &Groups, ready: &[StreamId]) -> Result<Meta, Unavailable> {
        self.ensure_open()?;
        self.write(groups, ready).map_err(|error| self.fail(&error))
    }

    fn write(&mut self, groups: &Groups, ready: &[StreamId]) -> Result<Meta, StoreError> {
        let mut changes = Changes::default();
        for (id, group) in groups {
            if group.batches.is_empty() {
                continue;
            }
            let state = &self.sources[id];
            if !state.streams().is_empty() {
                changes.journal.push((*id, &group.batches));
            }
            changes.senders.extend(group.senders.changes(*id));
            changes.positions.extend(group.position.as_ref().map(|position| (*id, position)));
        }
        changes.states = ready.iter().map(|id| (*id, &self.checkpoints[id].record)).collect();
        changes.counted = self.counted_with(ready);
        let meta = self.meta_with(ready)?;
        changes.meta = (meta != self.meta).then_some(meta);
        self.store.commit(&changes)?;
        self.read_back(ready).map_err(StoreError::unconfirmed)?;
        Ok(meta)
    }

    /// Up to where the journal of each source is no longer needed once these checkpoints are durable.
    fn counted_with(&self, ready: &[StreamId]) -> Vec<(SourceId, u64)> {
        let touched: BTreeSet<SourceId> =
            ready.iter().map(|id| self.checkpoints[id].stream.source.id).collect();
        let mut counted = Vec::new();
        for source in touched {
            let Some(state) = self.sources.get(&source) else { continue };
            let least = state.streams().iter().map(|(id, (_, saved))| match ready.contains(id) {
                true => self.checkpoints[id].record.saved.counted,
                false => saved.counted,
            });
            counted.extend(least.min().map(|least| (source, least)));
        }
        counted
    }

    /// A new generation, if there is anything new to show.
    fn meta_with(&self, ready: &[StreamId]) -> Result<Meta, StoreError> {
        if !ready.iter().any(|id| self.has_news(&self.checkpoints[id])) {
            return Ok(self.meta);
        }
        Ok(Meta { lineage: self.meta.lineage.after(self.marked)?, ..self.meta })
    }

    /// Only what is in the database may be seen: the bytes there are those that the view was saved with.
    fn read_back(&self, ready: &[StreamId]) -> Result<(), StoreError> {
        for id in ready {
            // PRIVACY.md: rule 8.
            if !has_state(self.store.database()?, *id, &self.checkpoints[id].record.state)? {
                return Err(StoreError::new("what was read back is not what was committed"));
            }
        }
        Ok(())
    }

    fn committed(&mut self, groups: Groups, ready: &[StreamId], meta: Meta, took: Duration) {
        let counted = self.counted_with(ready);
        for (id, group) in groups {
            let Some(state) = self.sources.get_mut(&id) else { continue };
            if let Some(last) = group.batches.last().filter(|_| !state.streams().is_empty()) {
                state.note_record(last.sequence, reserved(&group.batches));
            }
            group.accept(state);
        }
        self.checkpointed(ready, meta, took);
        for (id, counted) in counted {
            if let Some(state) = self.sources.get_mut(&id) {
                state.note_counted(counted);
            }
        }
        self.empty_long_journals();
    }

    fn checkpointed(&mut self, ready: &[StreamId], meta: Meta, commit_took: Duration) {
        let mut states = Vec::new();
        for id in ready {
            let Some(checkpoint) = self.checkpoints.remove(id) else { continue };
            let has_news = self.has_news(&checkpoint);
            let Checkpoint { stream, record, view, busy } = checkpoint;
            let Some(state) = self.sources.get_mut(&stream.source.id) else { continue };
            state.note(Arc::clone(&stream), record.saved);
            let told = self.shared.begin();
            let saved = record.saved;
            let _ = state.counter.send(Work::Saved { stream: *id, saved, commit_took, busy: told });
            if has_news {
                states.push(Committed { stream, sealed_until: record.saved.sealed_until, view, busy });
            }
        }
        if !states.is_empty() {
            self.meta = meta;
            self.is_releasing = true;
            let streams = self.sources.values().flat_map(|state| state.streams().keys().copied()).collect();
            let generation = meta.lineage.generation;
            let busy = self.shared.begin();
            let _ = self.releaser.send(Release { generation, states, streams, busy });
        }
    }

    fn empty_long_journals(&mut self) {
        for state in self.sources.values_mut() {
            if state.begins_emptying(self.journal_bytes_max / EMPTIED_AT) {
                let _ = state.counter.send(Work::SaveAll { busy: self.shared.begin() });
            }
        }
    }
}
