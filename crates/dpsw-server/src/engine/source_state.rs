//! What the committer knows of a source, and the batches that are to be committed together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tokio::sync::oneshot;

use crate::config::Protects;
use crate::engine::count::Work;
use crate::engine::gauge::Busy;
use crate::engine::registry::{Source, Stream};
use crate::engine::senders::CommitSenders;
use crate::engine::{BatchId, Receipt};
use crate::error::IngestError;
use crate::events::Events;
use crate::input::Wanted;
use crate::store::journal::Batch;
use crate::store::position::{Position, Step};
use crate::store::records::{Saved, SourceId, StreamId};

/// A batch that waits to be committed.
pub(crate) struct Ingest {
    pub(crate) source: Arc<Source>,
    pub(crate) id: Option<BatchId>,
    pub(crate) events: Events,
    /// What of a broker it covers.
    pub(crate) step: Option<Step>,
    pub(crate) reply: oneshot::Sender<Result<Receipt, IngestError>>,
    pub(crate) busy: Busy,
}

/// The committer's knowledge of a source.
pub(crate) struct SourceState {
    pub(crate) source: Arc<Source>,
    /// The next batch has this number.
    pub(crate) next: u64,
    /// What is durable of each stream.
    streams: BTreeMap<StreamId, (Arc<Stream>, Saved)>,
    needs: Needs,
    /// The version of [`Wanted`] that added a column last: a batch that was read before may lack it.
    widened: u64,
    /// How far it has read its broker.
    pub(crate) position: Position,
    /// The records of the journal: their last batch, and what was reserved for them.
    journal: VecDeque<(u64, usize)>,
    journal_bytes: usize,
    /// Whether its streams were asked to save, so that the journal can be emptied.
    is_emptying: bool,
    /// Gone with the state, so that the clock no longer tells it the time.
    pub(crate) counter: Arc<Sender<Work>>,
}

/// The parts of events that the streams of a source take.
#[derive(Default)]
struct Needs {
    items: BTreeSet<String>,
    times: bool,
    users: bool,
}

/// The batches of a source that are committed together.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) batches: Vec<Batch>,
    pub(crate) senders: CommitSenders,
    /// How far the source has read its broker with these batches.
    pub(crate) position: Option<Position>,
    rest: Vec<Busy>,
    replies: Vec<(oneshot::Sender<Result<Receipt, IngestError>>, Receipt)>,
}

/// The batches of one transaction, by source.
pub(crate) type Groups = BTreeMap<SourceId, Group>;

impl SourceState {
    pub(crate) fn new(source: Arc<Source>, next: u64, counter: Arc<Sender<Work>>) -> Self {
        Self {
            position: source.position(),
            source,
            next,
            streams: BTreeMap::new(),
            needs: Needs::default(),
            widened: 0,
            journal: VecDeque::new(),
            journal_bytes: 0,
            is_emptying: false,
            counter,
        }
    }

    pub(crate) fn streams(&self) -> &BTreeMap<StreamId, (Arc<Stream>, Saved)> {
        &self.streams
    }

    /// Notes a stream, and what is durable of it.
    pub(crate) fn note(&mut self, stream: Arc<Stream>, saved: Saved) {
        if self.streams.insert(stream.id, (stream, saved)).is_none() {
            self.note_needs();
        }
    }

    pub(crate) fn remove(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
        self.note_needs();
    }

    fn note_needs(&mut self) {
        let takes_times =
            |stream: &Stream| stream.brings_times() && stream.plan.settings().window.time().is_some();
        self.needs = Needs {
            items: self.streams.values().map(|(stream, _)| stream.config.item.clone()).collect(),
            times: self.streams.values().any(|(stream, _)| takes_times(stream)),
            users: self.source.config.protects == Protects::Users,
        };
        let before = self.source.wanted();
        let items = self.needs.items.iter().map(String::as_str);
        let wanted = Wanted::new(&self.source.config, items, before.version + 1);
        if !before.covers(&wanted) {
            self.widened = wanted.version;
        }
        self.source.set_wanted(wanted);
    }

    pub(crate) fn journal_bytes(&self) -> usize {
        self.journal_bytes
    }

    /// Whether the journal has more bytes than this and nobody was asked to save yet; from now on somebody is.
    pub(crate) fn begins_emptying(&mut self, bytes_max: usize) -> bool {
        let is_long = bytes_max < self.journal_bytes && !self.is_emptying;
        self.is_emptying |= is_long;
        is_long
    }

    pub(crate) fn note_record(&mut self, last: u64, bytes: usize) {
        self.journal.push_back((last, bytes));
        self.journal_bytes += bytes;
    }

    /// The records of these batches are gone.
    pub(crate) fn note_counted(&mut self, counted: u64) {
        while self.journal.front().is_some_and(|(last, _)| *last < counted) {
            let (_, bytes) = self.journal.pop_front().expect("there is a first one");
            self.journal_bytes -= bytes;
            self.is_emptying = false;
        }
    }

    /// It has read its broker so far, durably.
    fn move_to(&mut self, position: Position) {
        self.source.note_position(position.clone());
        self.position = position;
    }

    /// Leaves out the columns that no stream takes.
    fn needed(&self, mut events: Events) -> Events {
        let Needs { items, times, users } = &self.needs;
        events.keep(|name| items.contains(name), *times, *users);
        events
    }
}

impl Group {
    /// Whether a batch may be taken, whoever sent it.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn check(&self, ingest: &Ingest, state: &SourceState) -> Result<(), IngestError> {
        let name = &ingest.source.config.name;
        // The batch would count as null items in a stream that was made meanwhile.
        if ingest.events.is_read_before(state.widened) {
            return Err(IngestError::StreamsChanged(name.clone()));
        }
        match &ingest.step {
            Some(step) if step.from != *self.position(state) => Err(IngestError::OtherPosition(name.clone())),
            _ => Ok(()),
        }
    }

    /// Adds a batch, whose sender is told when the commit has returned: also one that was taken before, since the first may be in
    /// the same commit.
    pub(crate) fn push(&mut self, ingest: Ingest, state: &SourceState, now_ms: u64, is_repeated: bool) {
        let Ingest { events, step, reply, busy, .. } = ingest;
        self.replies.push((reply, Receipt { events: events.len(), is_repeated }));
        if is_repeated {
            return;
        }
        self.position = step.map(|step| step.to).or(self.position.take());
        let sequence = state.next + self.batches.len() as u64;
        let reserved = events.reserved_or_size();
        let events = Arc::new(state.needed(events));
        self.batches.push(Batch { sequence, arrival_ms: now_ms, reserved, events });
        self.rest.push(busy);
    }

    /// How far the source has read its broker.
    fn position<'p>(&'p self, state: &'p SourceState) -> &'p Position {
        self.position.as_ref().unwrap_or(&state.position)
    }

    /// The batches are durable: their senders are told, and they are counted.
    pub(crate) fn accept(self, state: &mut SourceState) {
        if let Some(batch) = self.batches.last() {
            state.next = batch.sequence + 1;
        }
        if let Some(position) = self.position {
            state.move_to(position);
        }
        // Counted first: a batch that was acknowledged is before every later step of the clock.
        for (batch, busy) in self.batches.into_iter().zip(self.rest) {
            // An owner that is gone means that the engine stops; the batch is in the journal.
            let _ = state.counter.send(Work::Count { batch, busy });
        }
        for (reply, receipt) in self.replies {
            // A client that went away learns it when it sends the batch again.
            let _ = reply.send(Ok(receipt));
        }
    }

    /// The commit failed, and the senders of the batches are told.
    pub(crate) fn refuse(self, error: &IngestError) {
        for (reply, _) in self.replies {
            let _ = reply.send(Err(error.clone()));
        }
    }
}
