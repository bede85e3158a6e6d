//! What changes in one transaction.

use dpsw_durable::cipher::{ADDED_LEN, Cipher, secret_part};
use redb::WriteTransaction;
use serde::Serialize;

use crate::store::journal::{Batch, encode_into, encoded_len};
use crate::store::position::Position;
use crate::store::records::{
    Meta, Nulls, Saved, SourceId, SourceRecord, StateRecord, StreamId, StreamRecord, ViewRecord,
};
use crate::store::sender::{SenderKey, TakenNumbers};
use crate::store::{
    FORMAT, JOURNAL, META, NULLS, POSITIONS, Place, SENDER_COUNTS, SENDERS, SOURCES, STATES, STREAMS, Store,
    StoreError, VIEWS,
};

/// Everything that one transaction changes: all of it or nothing.
#[derive(Default)]
pub(crate) struct Changes<'a> {
    pub(crate) meta: Option<Meta>,
    pub(crate) sources: Vec<(SourceId, &'a SourceRecord)>,
    pub(crate) streams: Vec<(StreamId, &'a StreamRecord)>,
    pub(crate) ended: Vec<StreamId>,
    /// The batches of a source, in order.
    pub(crate) journal: Vec<(SourceId, &'a [Batch])>,
    /// What is remembered of senders of batches.
    pub(crate) senders: Vec<SenderChange>,
    pub(crate) states: Vec<(StreamId, &'a StateRecord)>,
    /// Batches before this one are in the states of all streams.
    pub(crate) counted: Vec<(SourceId, u64)>,
    /// Batches from this one on were not acknowledged.
    pub(crate) refused: Vec<(SourceId, u64)>,
    /// Sources that are gone, with all their senders: their names are never given again.
    pub(crate) gone: Vec<SourceId>,
    /// Views of streams that are sealed elsewhere.
    pub(crate) views: Vec<(StreamId, &'a ViewRecord)>,
    /// How far sources have read their brokers.
    pub(crate) positions: Vec<(SourceId, &'a Position)>,
    /// Which events of a batch are null items in a stream. Forgotten with the batch.
    pub(crate) nulls: Vec<(StreamId, u64, &'a Nulls)>,
}

/// A change of what is remembered of senders of batches.
#[derive(Debug, Clone)]
pub(crate) enum SenderChange {
    /// Which batches of a sender were taken; `None` if nothing is known of it.
    Numbers(SourceId, SenderKey, Option<TakenNumbers>),
    /// How many senders an owner has.
    Count(SourceId, SenderKey, u32),
}

impl Store {
    /// Makes all changes in one transaction. Durable when it returns.
    ///
    /// # Errors
    /// The database refuses, and has to be opened again. Where the error is unconfirmed, whether the changes are there then can
    /// only be told by looking.
    pub(crate) fn commit(&mut self, changes: &Changes<'_>) -> Result<(), StoreError> {
        if let Some(reason) = self.unwritable() {
            return Err(StoreError::new(reason));
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let transaction = self.database()?.begin_write()?;
        changes.write(&transaction, self.cipher(), &mut scratch)?;
        transaction.commit().map_err(|error| StoreError::from(error).unconfirmed())?;
        if scratch.capacity() <= SCRATCH_LEN_MAX {
            self.scratch = scratch;
        }
        Ok(())
    }
}

impl Changes<'_> {
    fn write(
        &self,
        transaction: &WriteTransaction,
        cipher: &Cipher,
        scratch: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        self.write_records(transaction, cipher)?;
        self.write_states(transaction, cipher)?;
        self.write_views(transaction, cipher)?;
        self.write_journal(transaction, cipher, scratch)?;
        self.write_positions(transaction, cipher)?;
        self.write_nulls(transaction, cipher)?;
        self.write_senders(transaction, cipher)
    }

    fn write_records(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        if let Some(meta) = &self.meta {
            let record = sealed(cipher, Place::Meta, meta)?;
            let mut table = transaction.open_table(META)?;
            table.insert("meta", record.as_slice())?;
            table.insert("format", FORMAT.to_le_bytes().as_slice())?;
        }
        let mut sources = transaction.open_table(SOURCES)?;
        for (id, source) in &self.sources {
            sources.insert(id.0, sealed(cipher, Place::Source(*id), source)?.as_slice())?;
        }
        let mut streams = transaction.open_table(STREAMS)?;
        for (id, stream) in &self.streams {
            streams.insert(id.0, sealed(cipher, Place::Stream(*id), stream)?.as_slice())?;
        }
        for id in &self.ended {
            streams.remove(id.0)?;
        }
        Ok(())
    }

    fn write_states(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        let mut states = transaction.open_table(STATES)?;
        for (id, StateRecord { saved, state }) in &self.states {
            let mut record = states.insert_reserve(id.0, Saved::LEN + ADDED_LEN + state.len())?;
            let (head, rest) = record.as_mut().split_at_mut(Saved::LEN + ADDED_LEN);
            head.copy_from_slice(&cipher.seal(&Place::State(*id).bytes(), &saved.to_bytes())?);
            rest.copy_from_slice(state);
        }
        for id in &self.ended {
            states.remove(id.0)?;
        }
        Ok(())
    }

    fn write_views(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        let mut views = transaction.open_table(VIEWS)?;
        for (id, view) in &self.views {
            views.insert(id.0, cipher.seal(&Place::View(*id).bytes(), &view.to_bytes())?.as_slice())?;
        }
        for id in &self.ended {
            views.remove(id.0)?;
        }
        Ok(())
    }

    fn write_journal(
        &self,
        transaction: &WriteTransaction,
        cipher: &Cipher,
        scratch: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let mut journal = transaction.open_table(JOURNAL)?;
        for (id, batches) in &self.journal {
            let Some(last) = batches.last() else { continue };
            let len = encoded_len(batches) + ADDED_LEN;
            // All of it is written: nothing needs to be cleared.
            scratch.resize(len.max(scratch.len()), 0);
            let record = &mut scratch[..len];
            encode_into(batches, secret_part(record));
            cipher.seal_in_place(&Place::Journal(*id, last.sequence).bytes(), record)?;
            for (number, piece) in (0..).zip(record.chunks(PIECE_LEN)) {
                journal.insert((id.0, last.sequence, number), piece)?;
            }
        }
        for (id, next) in &self.counted {
            journal.retain_in((id.0, 0, 0)..(id.0, *next, 0), |_, _| false)?;
        }
        for (id, next) in &self.refused {
            journal.retain_in((id.0, *next, 0)..(id.0 + 1, 0, 0), |_, _| false)?;
        }
        Ok(())
    }

    fn write_positions(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        let mut positions = transaction.open_table(POSITIONS)?;
        for (id, position) in &self.positions {
            let record = cipher.seal(&Place::Position(*id).bytes(), &position.to_bytes())?;
            positions.insert(id.0, record.as_slice())?;
        }
        Ok(())
    }

    fn write_nulls(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        let mut nulls = transaction.open_table(NULLS)?;
        for (id, batch, which) in &self.nulls {
            let record = sealed(cipher, Place::Nulls(*id, *batch), which)?;
            nulls.insert((id.0, *batch), record.as_slice())?;
        }
        for (id, StateRecord { saved, .. }) in &self.states {
            nulls.retain_in((id.0, 0)..(id.0, saved.counted), |_, _| false)?;
        }
        for id in &self.ended {
            nulls.retain_in((id.0, 0)..(id.0 + 1, 0), |_, _| false)?;
        }
        Ok(())
    }

    fn write_senders(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        let mut senders = transaction.open_table(SENDERS)?;
        let mut counts = transaction.open_table(SENDER_COUNTS)?;
        for change in &self.senders {
            match change {
                SenderChange::Numbers(id, key, Some(numbers)) => {
                    let record = cipher.seal(&Place::Sender(*id, *key).bytes(), &numbers.to_bytes())?;
                    senders.insert((id.0, key.0), record.as_slice())?;
                }
                SenderChange::Numbers(id, key, None) => drop(senders.remove((id.0, key.0))?),
                SenderChange::Count(id, key, count) => {
                    let record = cipher.seal(&Place::SenderCount(*id, *key).bytes(), &count.to_le_bytes())?;
                    counts.insert((id.0, key.0), record.as_slice())?;
                }
            }
        }
        for id in &self.gone {
            senders.retain_in((id.0, [0; 16])..=(id.0, [u8::MAX; 16]), |_, _| false)?;
            counts.retain_in((id.0, [0; 16])..=(id.0, [u8::MAX; 16]), |_, _| false)?;
        }
        Ok(())
    }
}

/// The room of longer records is given back.
const SCRATCH_LEN_MAX: usize = 16 << 20;
/// Records of the journal are cut into pieces that fill a page of the database: it has pages of powers of two, and fills up what
/// is left with zeros. A little less, for what the database adds.
const PIECE_LEN: usize = (128 << 10) - 256;

fn sealed(cipher: &Cipher, place: Place, record: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let text = serde_json::to_vec(record).map_err(|error| StoreError::new(error.to_string()))?;
    Ok(cipher.seal(&place.bytes(), &text)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dpsw_durable::disk::Memory;

    use super::*;
    use crate::column::Strings;
    use crate::events::{Column, Events};
    use crate::key::Key;

    fn store() -> Store {
        Store::open(Arc::new(Memory::default()), &Key::from_bytes([3; 32]), true).expect("memory").0
    }

    fn batch(sequence: u64, events: usize) -> Batch {
        let strings: Strings = (0..events).map(|event| Some(format!("{sequence}/{event}"))).collect();
        let events =
            Events::new(events).and_then(|events| events.with_column("page", Column::Strings(strings)));
        Batch { sequence, arrival_ms: 7, reserved: 0, events: Arc::new(events.expect("one column")) }
    }

    /// The numbers of all batches that the journal of a source has from one on.
    fn numbers(store: &Store, source: u32, from: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        let take = |batches: Vec<Batch>| numbers.extend(batches.iter().map(|batch| batch.sequence));
        store.journal(SourceId(source), from, take).expect("records");
        numbers
    }

    #[test]
    fn batches_are_kept_until_all_have_counted_them_and_taken_out_if_they_were_refused() {
        let mut store = store();
        let groups = [vec![batch(0, 3), batch(1, 3)], vec![batch(2, 3)], vec![batch(3, 3), batch(4, 3)]];
        for group in &groups {
            let journal = vec![(SourceId(1), group.as_slice()), (SourceId(2), group.as_slice())];
            store.commit(&Changes { journal, ..Changes::default() }).expect("memory");
        }
        assert_eq!(
            (numbers(&store, 1, 0), numbers(&store, 1, 1)),
            (vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3, 4])
        );
        assert_eq!(numbers(&store, 1, 2), [2, 3, 4], "from the record on that has it");
        let counted = vec![(SourceId(1), 2)];
        store.commit(&Changes { counted, ..Changes::default() }).expect("memory");
        assert_eq!((numbers(&store, 1, 0), numbers(&store, 2, 0)), (vec![2, 3, 4], vec![0, 1, 2, 3, 4]));
        let refused = vec![(SourceId(1), 3)];
        store.commit(&Changes { refused, ..Changes::default() }).expect("memory");
        assert_eq!((numbers(&store, 1, 0), numbers(&store, 2, 0)), (vec![2], vec![0, 1, 2, 3, 4]));
    }

    #[test]
    fn senders_are_remembered_until_their_source_is_gone() {
        let mut store = store();
        let (one, other) = (store.names().hash(&["token", "a"]), store.names().hash(&["tokena", ""]));
        assert_ne!(one, other, "names cannot run into each other");
        let numbers =
            |source, key| SenderChange::Numbers(SourceId(source), key, Some(TakenNumbers::first(7)));
        let senders = vec![
            numbers(1, one),
            numbers(1, other),
            numbers(2, one),
            SenderChange::Count(SourceId(1), one, 2),
        ];
        store.commit(&Changes { senders, ..Changes::default() }).expect("memory");
        let known = |store: &Store| {
            let has = |source, key| store.sender(SourceId(source), key).expect("a record").is_some();
            let count = store.sender_count(SourceId(1), one).expect("a record");
            (has(1, one), has(1, other), has(2, one), count)
        };
        assert_eq!(known(&store), (true, true, true, 2));
        let senders = vec![SenderChange::Numbers(SourceId(1), other, None)];
        store.commit(&Changes { senders, ..Changes::default() }).expect("memory");
        assert_eq!(known(&store), (true, false, true, 2));
        store.commit(&Changes { gone: vec![SourceId(1)], ..Changes::default() }).expect("memory");
        assert_eq!(known(&store), (false, false, true, 0));
        assert_eq!(store.all_senders().expect("records"), [(SourceId(2), one)]);
    }

    #[test]
    fn a_record_of_many_pieces_is_read_as_it_was_written() {
        let mut store = store();
        let group = [batch(0, 50_000), batch(1, 1)];
        assert!(3 * PIECE_LEN < encoded_len(&group));
        let journal = vec![(SourceId(1), group.as_slice())];
        store.commit(&Changes { journal, ..Changes::default() }).expect("memory");
        let mut read = Vec::new();
        store.journal(SourceId(1), 0, |batches| read.extend(batches)).expect("a record");
        assert_eq!(read.len(), 2);
        assert!(read[0].events == group[0].events && read[1].events == group[1].events);
    }
}
