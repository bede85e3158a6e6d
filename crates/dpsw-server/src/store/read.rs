//! What the database holds.

use std::collections::BTreeMap;

use bytes::Bytes;
use redb::{AccessGuard, Database, ReadableDatabase, ReadableTable, TableError};
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::store::cipher::ADDED_LEN;
use crate::store::journal::{Batch, Malformed, decode};
use crate::store::position::Position;
use crate::store::records::{Meta, Nulls, Saved, SourceId, SourceRecord, StreamId, StreamRecord, ViewRecord};
use crate::store::sender::{SenderKey, TakenNumbers};
use crate::store::{
    JOURNAL, META, NULLS, POSITIONS, Place, SENDER_COUNTS, SENDERS, SOURCES, STATES, STREAMS, Store,
    StoreError, VIEWS,
};

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{what} is damaged: {reason}")]
    Damaged { what: String, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Everything but states and journal.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) sources: Vec<(SourceId, SourceRecord)>,
    pub(crate) streams: Vec<(StreamId, StreamRecord)>,
}

impl Store {
    /// The format of the database; `None` if it says none.
    pub(crate) fn format(&self) -> Result<Option<u32>, ReadError> {
        let transaction = self.database()?.begin_read().map_err(StoreError::from)?;
        let table = match transaction.open_table(META) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table.map_err(StoreError::from)?,
        };
        let record = table.get("format").map_err(StoreError::from)?;
        Ok(record.and_then(|record| Some(u32::from_le_bytes(record.value().try_into().ok()?))))
    }

    /// Whether nothing was ever written to the database.
    pub(crate) fn is_new(&self) -> Result<bool, ReadError> {
        let transaction = self.database()?.begin_read().map_err(StoreError::from)?;
        Ok(transaction.list_tables().map_err(StoreError::from)?.next().is_none())
    }

    /// What the database says about itself; `None` if it is new.
    pub(crate) fn meta(&self) -> Result<Option<Meta>, ReadError> {
        let transaction = self.database()?.begin_read().map_err(StoreError::from)?;
        let table = match transaction.open_table(META) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table.map_err(StoreError::from)?,
        };
        let record = table.get("meta").map_err(StoreError::from)?;
        record.map(|record| self.parsed("the database's first page", Place::Meta, record.value())).transpose()
    }

    pub(crate) fn catalogue(&self) -> Result<Catalogue, ReadError> {
        let transaction = self.database()?.begin_read().map_err(StoreError::from)?;
        let mut catalogue = Catalogue::default();
        let sources = transaction.open_table(SOURCES).map_err(StoreError::from)?;
        for entry in sources.iter().map_err(StoreError::from)? {
            let (key, record) = entry.map_err(StoreError::from)?;
            let id = SourceId(key.value());
            catalogue.sources.push((id, self.parsed("a source", Place::Source(id), record.value())?));
        }
        let streams = transaction.open_table(STREAMS).map_err(StoreError::from)?;
        for entry in streams.iter().map_err(StoreError::from)? {
            let (key, record) = entry.map_err(StoreError::from)?;
            let id = StreamId(key.value());
            catalogue.streams.push((id, self.parsed("a stream", Place::Stream(id), record.value())?));
        }
        Ok(catalogue)
    }

    /// The checkpoint of a stream.
    pub(crate) fn state(&self, id: StreamId) -> Result<(Saved, Vec<u8>), ReadError> {
        self.with_state(id, |saved, state| (saved, state.to_vec()))
    }

    /// What the checkpoint of a stream holds.
    pub(crate) fn saved(&self, id: StreamId) -> Result<Saved, ReadError> {
        self.with_state(id, |saved, _| saved)
    }

    fn with_state<T>(&self, id: StreamId, take: impl FnOnce(Saved, &[u8]) -> T) -> Result<T, ReadError> {
        let what = "the state of a stream";
        let damaged = |reason: &str| ReadError::Damaged { what: what.to_owned(), reason: reason.to_owned() };
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(STATES);
        let record = table.map_err(StoreError::from)?.get(id.0).map_err(StoreError::from)?;
        let record = record.ok_or_else(|| damaged("it is missing"))?;
        let head = record.value().split_at_checked(Saved::LEN + ADDED_LEN);
        let (head, state) = head.ok_or_else(|| damaged("it is cut"))?;
        let head = self.decrypted(what, Place::State(id), head)?;
        Ok(take(Saved::from_bytes(&head).ok_or_else(|| damaged("it is cut"))?, state))
    }

    /// Hands over the records of a source's journal that have batches from this number on, in order.
    pub(crate) fn journal(
        &self,
        id: SourceId,
        from: u64,
        mut take: impl FnMut(Vec<Batch>),
    ) -> Result<(), ReadError> {
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(JOURNAL);
        let table = table.map_err(StoreError::from)?;
        let (mut record, mut last) = (Vec::new(), from);
        for entry in table.range((id.0, from, 0)..(id.0 + 1, 0, 0)).map_err(StoreError::from)? {
            let (key, piece) = entry.map_err(StoreError::from)?;
            let (_, of, number) = key.value();
            if number == 0 && !record.is_empty() {
                take(self.decoded(id, last, &record)?);
                record.clear();
            }
            last = of;
            record.extend_from_slice(piece.value());
        }
        if !record.is_empty() {
            take(self.decoded(id, last, &record)?);
        }
        Ok(())
    }

    fn decoded(&self, id: SourceId, last: u64, record: &[u8]) -> Result<Vec<Batch>, ReadError> {
        let what = "a record of the journal";
        let secret = self.decrypted(what, Place::Journal(id, last), record)?;
        let damaged =
            |error: Malformed| ReadError::Damaged { what: what.to_owned(), reason: error.to_string() };
        decode(Bytes::from_owner(Wiped(secret))).map_err(damaged)
    }

    /// Which batches of a sender were taken; `None` if nothing is known of it.
    pub(crate) fn sender(&self, id: SourceId, key: SenderKey) -> Result<Option<TakenNumbers>, ReadError> {
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(SENDERS);
        let record = table.map_err(StoreError::from)?.get((id.0, key.0)).map_err(StoreError::from)?;
        let Some(record) = record else { return Ok(None) };
        let what = "what is known of a sender";
        let bytes = self.decrypted(what, Place::Sender(id, key), record.value())?;
        TakenNumbers::from_bytes(&bytes).ok_or_else(|| cut(what)).map(Some)
    }

    /// How many senders of a source an owner has.
    pub(crate) fn sender_count(&self, id: SourceId, key: SenderKey) -> Result<u32, ReadError> {
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(SENDER_COUNTS);
        let record = table.map_err(StoreError::from)?.get((id.0, key.0)).map_err(StoreError::from)?;
        let Some(record) = record else { return Ok(0) };
        let what = "a number of senders";
        let bytes = self.decrypted(what, Place::SenderCount(id, key), record.value())?;
        Ok(u32::from_le_bytes(bytes.as_slice().try_into().map_err(|_| cut(what))?))
    }

    /// All senders of all sources.
    pub(crate) fn all_senders(&self) -> Result<Vec<(SourceId, SenderKey)>, ReadError> {
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(SENDERS);
        let mut all = Vec::new();
        for entry in table.map_err(StoreError::from)?.iter().map_err(StoreError::from)? {
            let (source, key) = entry.map_err(StoreError::from)?.0.value();
            all.push((SourceId(source), SenderKey(key)));
        }
        Ok(all)
    }

    /// Which events are null items in a stream, by the number of their batch.
    pub(crate) fn nulls(&self, id: StreamId) -> Result<BTreeMap<u64, Nulls>, ReadError> {
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(NULLS);
        let table = table.map_err(StoreError::from)?;
        let mut nulls = BTreeMap::new();
        for entry in table.range((id.0, 0)..(id.0 + 1, 0)).map_err(StoreError::from)? {
            let (key, record) = entry.map_err(StoreError::from)?;
            let batch = key.value().1;
            nulls.insert(batch, self.parsed("a list of nulls", Place::Nulls(id, batch), record.value())?);
        }
        Ok(nulls)
    }

    /// How far a source has read its broker; `None` if it never did.
    pub(crate) fn position(&self, id: SourceId) -> Result<Option<Position>, ReadError> {
        let what = "how far a source has read its broker";
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(POSITIONS);
        let table = table.map_err(StoreError::from)?;
        let Some(record) = table.get(id.0).map_err(StoreError::from)? else { return Ok(None) };
        let bytes = self.decrypted(what, Place::Position(id), record.value())?;
        Position::from_bytes(&bytes).ok_or_else(|| cut(what)).map(Some)
    }

    /// Hands over the views of streams that are sealed elsewhere.
    pub(crate) fn views(
        &self,
        mut take: impl FnMut(StreamId, ViewRecord) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(VIEWS);
        let table = table.map_err(StoreError::from)?;
        for entry in table.iter().map_err(StoreError::from)? {
            let (key, record) = entry.map_err(StoreError::from)?;
            let id = StreamId(key.value());
            take(id, self.view_record(id, Some(record.value()))?)?;
        }
        Ok(())
    }

    /// The view of a stream that is sealed elsewhere.
    pub(crate) fn view(&self, id: StreamId) -> Result<ViewRecord, ReadError> {
        let table = self.database()?.begin_read().map_err(StoreError::from)?.open_table(VIEWS);
        let record = table.map_err(StoreError::from)?.get(id.0).map_err(StoreError::from)?;
        self.view_record(id, record.as_ref().map(AccessGuard::value))
    }

    fn view_record(&self, id: StreamId, record: Option<&[u8]>) -> Result<ViewRecord, ReadError> {
        let what = "the view of a stream";
        let damaged = |reason: &str| ReadError::Damaged { what: what.to_owned(), reason: reason.to_owned() };
        let record = record.ok_or_else(|| damaged("it is missing"))?;
        let bytes = self.decrypted(what, Place::View(id), record)?;
        ViewRecord::from_bytes(&bytes).ok_or_else(|| damaged("it is cut"))
    }

    fn parsed<T: DeserializeOwned>(&self, what: &str, place: Place, record: &[u8]) -> Result<T, ReadError> {
        let text = self.decrypted(what, place, record)?;
        let damaged = |error: serde_json::Error| ReadError::Damaged {
            what: what.to_owned(),
            reason: error.to_string(),
        };
        serde_json::from_slice(&text).map_err(damaged)
    }

    fn decrypted(&self, what: &str, place: Place, record: &[u8]) -> Result<Zeroizing<Vec<u8>>, ReadError> {
        let damaged = |error: crate::store::cipher::Unopened| ReadError::Damaged {
            what: what.to_owned(),
            reason: error.to_string(),
        };
        self.cipher().open(&place.bytes(), record).map_err(damaged)
    }
}

fn cut(what: &str) -> ReadError {
    ReadError::Damaged { what: what.to_owned(), reason: "it is cut".to_owned() }
}

/// Whether the checkpoint of a stream in the database is this one.
pub(crate) fn has_state(database: &Database, id: StreamId, state: &[u8]) -> Result<bool, StoreError> {
    let table = database.begin_read()?.open_table(STATES)?;
    let record = table.get(id.0)?;
    Ok(record.is_some_and(|record| record.value().get(Saved::LEN + ADDED_LEN..) == Some(state)))
}

/// Bytes that are wiped when the last part of them is dropped.
struct Wiped(Zeroizing<Vec<u8>>);

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
