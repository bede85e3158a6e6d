//! What the database holds.

use std::collections::BTreeMap;

use bytes::Bytes;
use dpsw_durable::cipher::ADDED_LEN;
use redb::{
    AccessGuard, Database, Key, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition, TableError,
};
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::store::journal::{Batch, decode};
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

macro_rules! read_error_from {
    ($($error:ty),*) => {$(
        impl From<$error> for ReadError {
            fn from(error: $error) -> Self {
                Self::Store(error.into())
            }
        }
    )*};
}
read_error_from!(redb::TransactionError, TableError, redb::StorageError);

/// Everything but states and journal.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) sources: Vec<(SourceId, SourceRecord)>,
    pub(crate) streams: Vec<(StreamId, StreamRecord)>,
}

type Table<K> = ReadOnlyTable<K, &'static [u8]>;
type Record = AccessGuard<'static, &'static [u8]>;

impl Store {
    /// The format of the database; `None` if it says none.
    pub(crate) fn format(&self) -> Result<Option<u32>, ReadError> {
        let record = self.meta_record("format")?;
        Ok(record.and_then(|record| Some(u32::from_le_bytes(record.value().try_into().ok()?))))
    }

    /// Whether nothing was ever written to the database.
    pub(crate) fn is_new(&self) -> Result<bool, ReadError> {
        Ok(self.database()?.begin_read()?.list_tables()?.next().is_none())
    }

    /// What the database says about itself; `None` if it is new.
    pub(crate) fn meta(&self) -> Result<Option<Meta>, ReadError> {
        let Some(record) = self.meta_record("meta")? else { return Ok(None) };
        self.parsed("the database's first page", Place::Meta, record.value()).map(Some)
    }

    fn meta_record(&self, name: &str) -> Result<Option<Record>, ReadError> {
        match self.database()?.begin_read()?.open_table(META) {
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            table => Ok(table?.get(name)?),
        }
    }

    pub(crate) fn catalogue(&self) -> Result<Catalogue, ReadError> {
        let transaction = self.database()?.begin_read()?;
        let mut catalogue = Catalogue::default();
        for entry in transaction.open_table(SOURCES)?.iter()? {
            let (key, record) = entry?;
            let id = SourceId(key.value());
            catalogue.sources.push((id, self.parsed("a source", Place::Source(id), record.value())?));
        }
        for entry in transaction.open_table(STREAMS)?.iter()? {
            let (key, record) = entry?;
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
        let record = self.get(STATES, id.0)?.ok_or_else(|| missing(what))?;
        let (head, state) =
            record.value().split_at_checked(Saved::LEN + ADDED_LEN).ok_or_else(|| cut(what))?;
        let saved = self.decoded(what, Place::State(id), head, Saved::from_bytes)?;
        Ok(take(saved, state))
    }

    /// Hands over the records of a source's journal that have batches from this number on, in order.
    pub(crate) fn journal(
        &self,
        id: SourceId,
        from: u64,
        mut take: impl FnMut(Vec<Batch>),
    ) -> Result<(), ReadError> {
        let mut record = Vec::new();
        let mut last = from;
        for entry in self.table(JOURNAL)?.range((id.0, from, 0)..(id.0 + 1, 0, 0))? {
            let (key, piece) = entry?;
            let (_, of, number) = key.value();
            if number == 0 && !record.is_empty() {
                take(self.batches(id, last, &record)?);
                record.clear();
            }
            last = of;
            record.extend_from_slice(piece.value());
        }
        if !record.is_empty() {
            take(self.batches(id, last, &record)?);
        }
        Ok(())
    }

    fn batches(&self, id: SourceId, last: u64, record: &[u8]) -> Result<Vec<Batch>, ReadError> {
        let what = "a record of the journal";
        let secret = self.decrypted(what, Place::Journal(id, last), record)?;
        decode(Bytes::from_owner(Wiped(secret))).map_err(|error| damaged(what, &error))
    }

    /// Which batches of a sender were taken; `None` if nothing is known of it.
    pub(crate) fn sender(&self, id: SourceId, key: SenderKey) -> Result<Option<TakenNumbers>, ReadError> {
        let Some(record) = self.get(SENDERS, (id.0, key.0))? else { return Ok(None) };
        let what = "what is known of a sender";
        let place = Place::Sender(id, key);
        self.decoded(what, place, record.value(), TakenNumbers::from_bytes).map(Some)
    }

    /// How many senders of a source an owner has.
    pub(crate) fn sender_count(&self, id: SourceId, key: SenderKey) -> Result<u32, ReadError> {
        let Some(record) = self.get(SENDER_COUNTS, (id.0, key.0))? else { return Ok(0) };
        let count = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
        self.decoded("a number of senders", Place::SenderCount(id, key), record.value(), count)
    }

    pub(crate) fn all_senders(&self) -> Result<Vec<(SourceId, SenderKey)>, ReadError> {
        let mut all = Vec::new();
        for entry in self.table(SENDERS)?.iter()? {
            let (source, key) = entry?.0.value();
            all.push((SourceId(source), SenderKey(key)));
        }
        Ok(all)
    }

    /// Which events are null items in a stream, by the number of their batch.
    pub(crate) fn nulls(&self, id: StreamId) -> Result<BTreeMap<u64, Nulls>, ReadError> {
        let mut nulls = BTreeMap::new();
        for entry in self.table(NULLS)?.range((id.0, 0)..(id.0 + 1, 0))? {
            let (key, record) = entry?;
            let batch = key.value().1;
            nulls.insert(batch, self.parsed("a list of nulls", Place::Nulls(id, batch), record.value())?);
        }
        Ok(nulls)
    }

    /// How far a source has read its broker; `None` if it never did.
    pub(crate) fn position(&self, id: SourceId) -> Result<Option<Position>, ReadError> {
        let Some(record) = self.get(POSITIONS, id.0)? else { return Ok(None) };
        let what = "how far a source has read its broker";
        let place = Place::Position(id);
        self.decoded(what, place, record.value(), Position::from_bytes).map(Some)
    }

    /// Hands over the views of streams that are sealed elsewhere.
    pub(crate) fn views(
        &self,
        mut take: impl FnMut(StreamId, ViewRecord) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        for entry in self.table(VIEWS)?.iter()? {
            let (key, record) = entry?;
            let id = StreamId(key.value());
            take(id, self.view_record(id, record.value())?)?;
        }
        Ok(())
    }

    /// The view of a stream that is sealed elsewhere.
    pub(crate) fn view(&self, id: StreamId) -> Result<ViewRecord, ReadError> {
        let record = self.get(VIEWS, id.0)?.ok_or_else(|| missing("the view of a stream"))?;
        self.view_record(id, record.value())
    }

    fn view_record(&self, id: StreamId, record: &[u8]) -> Result<ViewRecord, ReadError> {
        self.decoded("the view of a stream", Place::View(id), record, ViewRecord::from_bytes)
    }

    fn table<K: Key>(&self, table: TableDefinition<'_, K, &'static [u8]>) -> Result<Table<K>, ReadError> {
        Ok(self.database()?.begin_read()?.open_table(table)?)
    }

    fn get<K: Key>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
        key: K::SelfType<'_>,
    ) -> Result<Option<Record>, ReadError> {
        Ok(self.table(table)?.get(key)?)
    }

    /// What a record in JSON says.
    fn parsed<T: DeserializeOwned>(&self, what: &str, place: Place, record: &[u8]) -> Result<T, ReadError> {
        let text = self.decrypted(what, place, record)?;
        serde_json::from_slice(&text).map_err(|error| damaged(what, &error))
    }

    /// What a record in bytes of its own form says.
    fn decoded<T>(
        &self,
        what: &str,
        place: Place,
        record: &[u8],
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, ReadError> {
        decode(&self.decrypted(what, place, record)?).ok_or_else(|| cut(what))
    }

    fn decrypted(&self, what: &str, place: Place, record: &[u8]) -> Result<Zeroizing<Vec<u8>>, ReadError> {
        self.cipher().open(&place.bytes(), record).map_err(|error| damaged(what, &error))
    }
}

fn damaged(what: &str, reason: &dyn std::fmt::Display) -> ReadError {
    ReadError::Damaged { what: what.to_owned(), reason: reason.to_string() }
}

fn cut(what: &str) -> ReadError {
    damaged(what, &"it is cut")
}

fn missing(what: &str) -> ReadError {
    damaged(what, &"it is missing")
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
