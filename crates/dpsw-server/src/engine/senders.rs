//! The senders of the batches of one commit: what the database has of them, and what it will have.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::engine::BatchId;
use crate::store::Store;
use crate::store::changes::SenderChange;
use crate::store::read::ReadError;
use crate::store::records::SourceId;
use crate::store::sender::{NumberState, SenderKey, TakenNumbers};

/// The verdict on a batch by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    New,
    Taken,
    TooOld,
    /// Its sender is new, and its owner has this many, which is the most.
    TooManySenders(u32),
}

/// The senders of a source that sent the batches of one commit.
#[derive(Debug, Default)]
pub(crate) struct CommitSenders {
    senders: BTreeMap<SenderKey, Touched<Option<TakenNumbers>>>,
    /// How many senders each owner has.
    counts: BTreeMap<SenderKey, Touched<u32>>,
}

/// A value of the database before the commit and after it.
#[derive(Debug)]
struct Touched<T> {
    before: T,
    now: T,
}

impl<T: Clone> Touched<T> {
    fn new(before: T) -> Self {
        Self { now: before.clone(), before }
    }
}

impl CommitSenders {
    /// What a batch is. From now on a new one is taken, if the commit succeeds.
    pub(crate) fn take(
        &mut self,
        store: &Store,
        source: SourceId,
        id: &BatchId,
        senders_max: u32,
    ) -> Result<Known, ReadError> {
        let key = store.names().hash(&[&id.owner, &id.sender]);
        let sender = match self.senders.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Touched::new(store.sender(source, key)?)),
        };
        match &mut sender.now {
            Some(numbers) => Ok(match numbers.state(id.number) {
                NumberState::New => {
                    numbers.take(id.number);
                    Known::New
                }
                NumberState::Taken => Known::Taken,
                NumberState::TooOld => Known::TooOld,
            }),
            None => {
                let count = count(&mut self.counts, store, source, &id.owner)?;
                if senders_max <= *count {
                    return Ok(Known::TooManySenders(senders_max));
                }
                *count += 1;
                sender.now = Some(TakenNumbers::first(id.number));
                Ok(Known::New)
            }
        }
    }

    /// What the commit writes.
    pub(crate) fn changes(&self, source: SourceId) -> Vec<SenderChange> {
        let mut changes = Vec::new();
        for (key, sender) in self.senders.iter().filter(|(_, sender)| sender.before != sender.now) {
            changes.push(SenderChange::Numbers(source, *key, sender.now.clone()));
        }
        for (key, count) in self.counts.iter().filter(|(_, count)| count.before != count.now) {
            changes.push(SenderChange::Count(source, *key, count.now));
        }
        changes
    }

    /// What takes it back.
    pub(crate) fn undone(&self, source: SourceId) -> Vec<SenderChange> {
        let mut changes = Vec::new();
        for (key, sender) in &self.senders {
            changes.push(SenderChange::Numbers(source, *key, sender.before.clone()));
        }
        for (key, count) in &self.counts {
            changes.push(SenderChange::Count(source, *key, count.before));
        }
        changes
    }
}

fn count<'c>(
    counts: &'c mut BTreeMap<SenderKey, Touched<u32>>,
    store: &Store,
    source: SourceId,
    owner: &str,
) -> Result<&'c mut u32, ReadError> {
    let key = store.names().hash(&[owner]);
    let count = match counts.entry(key) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => place.insert(Touched::new(store.sender_count(source, key)?)),
    };
    Ok(&mut count.now)
}
