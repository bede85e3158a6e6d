//! The database: one file, in which everything is encrypted and every change is one transaction.

pub(crate) mod changes;
pub(crate) mod journal;
mod overlay;
pub(crate) mod position;
pub(crate) mod read;
pub(crate) mod records;
pub(crate) mod sender;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dpsw_durable::cipher::{Cipher, NoRandomness};
use dpsw_durable::disk::Disk;
use dpsw_durable::watched::Watched;
use redb::{Database, DatabaseError, TableDefinition};

use crate::error::{OpenError, Unavailable};
use crate::key::Key;
use crate::store::overlay::Overlay;
use crate::store::records::{SourceId, StreamId};
use crate::store::sender::{SenderKey, SenderNames};

/// Bytes of the database that are kept in memory.
const CACHE_BYTES: usize = 64 << 20;

/// How everything in the data folder is written. Another number than this is another version's, and is not read.
pub(crate) const FORMAT: u32 = 1;

/// What the database says about itself: its format, which can be read without the key, and all else under one name.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const SOURCES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("sources");
const STREAMS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("streams");
const STATES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("states");
/// By source, the number of the last batch of the record, and the piece of it.
const JOURNAL: TableDefinition<'_, (u32, u64, u32), &[u8]> = TableDefinition::new("journal");
/// Which batches were taken, by source and sender.
const SENDERS: TableDefinition<'_, (u32, [u8; 16]), &[u8]> = TableDefinition::new("senders");
/// How many senders there are, by source and owner.
const SENDER_COUNTS: TableDefinition<'_, (u32, [u8; 16]), &[u8]> = TableDefinition::new("sender counts");
/// How far each source has read its broker.
const POSITIONS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("positions");
/// Which events of a batch are null items, by stream and the number of the batch.
const NULLS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("nulls");
/// The views of streams that are sealed elsewhere.
const VIEWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("views");

/// The database refuses.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct StoreError {
    pub(crate) reason: String,
    /// Whether the changes may be there all the same: a commit had begun, and nobody knows how far it came.
    pub(crate) is_unconfirmed: bool,
}

impl StoreError {
    /// Nothing has changed.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_unconfirmed: false }
    }

    pub(crate) fn unconfirmed(self) -> Self {
        Self { is_unconfirmed: true, ..self }
    }
}

/// The database. After a failure it is closed until it is opened again.
pub(crate) struct Store {
    disk: Arc<dyn Disk>,
    cipher: Cipher,
    names: SenderNames,
    is_durable: bool,
    is_lost: Arc<AtomicBool>,
    database: Option<Arc<Database>>,
    /// Why the database can be read and not written: the disk was full when it was opened.
    unwritable: Option<String>,
    /// A record of the journal while it is made, kept for its room.
    scratch: Vec<u8>,
}

impl Store {
    /// Opens the database, or makes it, and checks every page. Whether all of them were right.
    pub(crate) fn open(disk: Arc<dyn Disk>, key: &Key, is_durable: bool) -> Result<(Self, bool), OpenError> {
        let mut store = Self {
            disk,
            cipher: Cipher::new(key.expose()),
            names: SenderNames::new(key),
            is_durable,
            is_lost: Arc::default(),
            database: None,
            unwritable: None,
            scratch: Vec::new(),
        };
        let mut opened = store.opened_whole();
        if let Err(Failure::Refused(DatabaseError::Storage(redb::StorageError::Io(error)))) = &opened
            && is_full(error)
        {
            store.unwritable = Some(error.to_string());
            opened = store.opened_whole();
        }
        let (database, is_whole) = opened.map_err(|failure| store.failed_to_open(failure))?;
        store.database = Some(Arc::new(database));
        Ok((store, is_whole))
    }

    fn opened_whole(&self) -> Result<(Database, bool), Failure> {
        caught(|| {
            let mut database = self.opened()?;
            let is_whole = database.check_integrity()?;
            Ok((database, is_whole))
        })
    }

    /// Why the database can be read and not written, until it is opened again.
    pub(crate) fn unwritable(&self) -> Option<&str> {
        self.unwritable.as_deref()
    }

    /// Opens the database again after a failure.
    ///
    /// # Errors
    /// It cannot be opened, somebody still reads, or a disk that did not confirm what it took cannot be trusted.
    pub(crate) fn reopen(&mut self) -> Result<(), Unavailable> {
        if self.is_lost.load(Ordering::SeqCst) {
            self.database = None;
            return Err(Unavailable::Lost(self.disk.name()));
        }
        // A database has one owner: this one is closed before the next is opened.
        if let Some(database) = self.database.take() {
            let closed = Arc::try_unwrap(database).map_err(|database| self.database = Some(database));
            if closed.is_err() {
                return Err(Unavailable::Storage("what was committed before is still being read".to_owned()));
            }
        }
        self.unwritable = None;
        let opened = caught(|| self.opened());
        let opened =
            opened.map_err(|failure| Unavailable::Storage(self.failed_to_open(failure).to_string()))?;
        self.database = Some(Arc::new(opened));
        Ok(())
    }

    fn opened(&self) -> Result<Database, DatabaseError> {
        let mut inner = self.disk.database()?;
        if self.unwritable.is_some() {
            inner = Box::new(Overlay::new(inner)?);
        }
        let is_durable = self.is_durable;
        let is_lost = Arc::clone(&self.is_lost);
        let backend = Watched { inner, is_durable, is_lost };
        Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend)
    }

    fn failed_to_open(&self, failure: Failure) -> OpenError {
        let name = self.disk.name();
        match failure {
            Failure::Refused(DatabaseError::DatabaseAlreadyOpen) => OpenError::InUse(name),
            Failure::Refused(DatabaseError::Storage(redb::StorageError::Io(error))) => {
                OpenError::Path { path: name, reason: error.to_string() }
            }
            Failure::Refused(DatabaseError::UpgradeRequired(_)) => {
                OpenError::OtherVersion { path: name, found: "another file format".to_owned() }
            }
            Failure::Refused(error) => OpenError::Damaged { what: name, reason: error.to_string() },
            Failure::Panicked => {
                OpenError::Damaged { what: name, reason: "its pages contradict each other".to_owned() }
            }
        }
    }

    /// What an error of the database means.
    pub(crate) fn refusal(&self, error: &StoreError) -> Unavailable {
        if self.is_lost.load(Ordering::SeqCst) {
            Unavailable::Lost(error.reason.clone())
        } else {
            Unavailable::Storage(error.reason.clone())
        }
    }

    pub(crate) fn database(&self) -> Result<&Arc<Database>, StoreError> {
        self.database.as_ref().ok_or_else(|| StoreError::new("the database is closed"))
    }

    pub(crate) fn cipher(&self) -> &Cipher {
        &self.cipher
    }

    pub(crate) fn names(&self) -> &SenderNames {
        &self.names
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

enum Failure {
    Refused(DatabaseError),
    Panicked,
}

/// Runs what reads pages that may be damaged: the database trusts its pages, and panics where they contradict each other.
fn caught<T>(open: impl FnOnce() -> Result<T, DatabaseError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(Failure::Refused),
        Err(_) => Err(Failure::Panicked),
    }
}

macro_rules! store_error_from {
    ($($error:ty),*) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> Self {
                Self::new(error.to_string())
            }
        }
    )*};
}
store_error_from!(
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError,
    NoRandomness
);

/// The place of a record, which its encryption is bound to.
enum Place {
    Meta,
    Source(SourceId),
    Stream(StreamId),
    State(StreamId),
    Journal(SourceId, u64),
    Sender(SourceId, SenderKey),
    Position(SourceId),
    View(StreamId),
    SenderCount(SourceId, SenderKey),
    Nulls(StreamId, u64),
}

impl Place {
    fn bytes(self) -> [u8; 25] {
        let (table, major, minor) = match self {
            Self::Meta => (0, 0, 0),
            Self::Source(id) => (1, u64::from(id.0), 0),
            Self::Stream(id) => (2, id.0, 0),
            Self::State(id) => (3, id.0, 0),
            Self::Journal(id, last) => (4, u64::from(id.0), u128::from(last)),
            Self::Sender(id, key) => (5, u64::from(id.0), u128::from_le_bytes(key.0)),
            Self::Position(id) => (6, u64::from(id.0), 0),
            Self::View(id) => (7, id.0, 0),
            Self::SenderCount(id, key) => (8, u64::from(id.0), u128::from_le_bytes(key.0)),
            Self::Nulls(id, batch) => (9, id.0, u128::from(batch)),
        };
        let mut bytes = [table; 25];
        bytes[1..9].copy_from_slice(&u64::to_le_bytes(major));
        bytes[9..].copy_from_slice(&u128::to_le_bytes(minor));
        bytes
    }
}
