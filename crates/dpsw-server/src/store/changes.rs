//! What changes in one transaction.

use redb::WriteTransaction;
use serde::Serialize;

use crate::store::cipher::{ADDED_LEN, Cipher, secret_part};
use crate::store::journal::{Batch, encode_into, encoded_len};
use crate::store::records::{Meta, Saved, SourceId, SourceRecord, StateRecord, StreamId, StreamRecord};
use crate::store::{BATCH_IDS, JOURNAL, META, Place, SOURCES, STATES, STREAMS, Store, StoreError};

/// Everything that one transaction changes: all of it or nothing.
#[derive(Default)]
pub(crate) struct Changes<'a> {
    pub(crate) meta: Option<Meta>,
    pub(crate) sources: Vec<(SourceId, &'a SourceRecord)>,
    pub(crate) streams: Vec<(StreamId, &'a StreamRecord)>,
    pub(crate) ended: Vec<StreamId>,
    /// The batches of a source, in order.
    pub(crate) journal: Vec<(SourceId, &'a [Batch])>,
    /// The ids of batches up to this one.
    pub(crate) batch_ids: Vec<(SourceId, u64, Vec<u8>)>,
    pub(crate) states: Vec<(StreamId, &'a StateRecord)>,
    /// Batches before this one are in the states of all streams.
    pub(crate) counted: Vec<(SourceId, u64)>,
    /// Batches up to this one were not acknowledged.
    pub(crate) refused: Vec<(SourceId, u64)>,
    /// Ids of batches up to this one are forgotten.
    pub(crate) forgotten: Vec<(SourceId, u64)>,
}

impl Store {
    /// Makes all changes in one transaction. Durable when it returns.
    ///
    /// # Errors
    /// The database refuses, and has to be opened again. Whether the changes are there then can only be told by looking.
    pub(crate) fn commit(&mut self, changes: &Changes<'_>) -> Result<(), StoreError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let transaction = self.database()?.begin_write()?;
        changes.write(&transaction, self.cipher(), &mut scratch)?;
        transaction.commit()?;
        self.scratch = scratch;
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
        self.write_journal(transaction, cipher, scratch)?;
        self.write_batch_ids(transaction, cipher)
    }

    fn write_records(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        if let Some(meta) = &self.meta {
            let record = sealed(cipher, Place::Meta, meta)?;
            transaction.open_table(META)?.insert("meta", record.as_slice())?;
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

    fn write_journal(
        &self,
        transaction: &WriteTransaction,
        cipher: &Cipher,
        scratch: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let mut journal = transaction.open_table(JOURNAL)?;
        for (id, batches) in &self.journal {
            let Some(last) = batches.last() else { continue };
            scratch.clear();
            scratch.resize(encoded_len(batches) + ADDED_LEN, 0);
            encode_into(batches, secret_part(scratch));
            cipher.seal_in_place(&Place::Journal(*id, last.sequence).bytes(), scratch)?;
            for (number, piece) in (0..).zip(scratch.chunks(PIECE_LEN)) {
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

    fn write_batch_ids(&self, transaction: &WriteTransaction, cipher: &Cipher) -> Result<(), StoreError> {
        let mut batch_ids = transaction.open_table(BATCH_IDS)?;
        for (id, last, ids) in &self.batch_ids {
            let record = cipher.seal(&Place::BatchIds(*id, *last).bytes(), ids)?;
            batch_ids.insert((id.0, *last), record.as_slice())?;
        }
        for (id, last) in &self.forgotten {
            batch_ids.retain_in((id.0, 0)..(id.0, *last + 1), |_, _| false)?;
        }
        for (id, next) in &self.refused {
            batch_ids.retain_in((id.0, *next)..(id.0 + 1, 0), |_, _| false)?;
        }
        Ok(())
    }
}

/// Records of the journal are cut into pieces that fill a page of the database: it has pages of powers of two, and fills up what
/// is left with zeros. A little less, for what the database adds.
const PIECE_LEN: usize = (128 << 10) - 256;

fn sealed(cipher: &Cipher, place: Place, record: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let text = serde_json::to_vec(record).map_err(|error| StoreError(error.to_string()))?;
    Ok(cipher.seal(&place.bytes(), &text)?)
}
