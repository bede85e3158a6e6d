//! The database: the newest state, what came after it, and what was said when the stream began.

use std::collections::BTreeMap;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, DiskError};
use crate::error::SealerError;
use crate::marker::Generation;
use crate::sealer::Step;
use crate::watched::Watched;

/// `meta`, `state` and, of a stream that is over, `view`.
const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// Steps that came after the state, by their numbers.
const STEPS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("steps");

const NONCE_LEN: usize = 24;

/// What the database says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) database: Generation,
    pub(crate) generation: Generation,
    /// The generation that the marker had when this one was committed.
    pub(crate) replaces: Option<Generation>,
    /// What was said when the stream began.
    pub(crate) said: BTreeMap<String, String>,
    /// Whose steps are taken.
    pub(crate) engine: Option<String>,
    /// The last step that was taken.
    pub(crate) last: Option<u64>,
    /// Whether steps may be missing: the state is newer or older than the engine's.
    pub(crate) has_gap: bool,
    /// Events that came too late or too early, where that is public.
    pub(crate) late: u64,
    pub(crate) early: u64,
    pub(crate) is_finished: bool,
}

/// What one commit changes beside the meta record.
#[derive(Clone, Copy)]
pub(crate) enum Change<'a> {
    /// Nothing.
    None,
    /// A step that sealed nothing waits for the next state.
    Wait(u64, &'a Step),
    /// A state that holds all steps.
    State(&'a [u8]),
    /// The view of a stream that is over; the state is gone.
    View(&'a [u8]),
}

pub(crate) struct Store {
    database: Database,
    cipher: XChaCha20Poly1305,
}

impl Store {
    pub(crate) fn open(disk: &dyn Disk, key: [u8; 32]) -> Result<Self, SealerError> {
        let unusable =
            |error: std::io::Error| DiskError::Path { path: disk.name(), reason: error.to_string() };
        let backend =
            Watched { inner: disk.database().map_err(unusable)?, is_durable: true, is_lost: Arc::default() };
        let database = Database::builder().create_with_backend(backend).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => DiskError::InUse { path: disk.name() }.into(),
            DatabaseError::Storage(redb::StorageError::Io(error)) => unusable(error).into(),
            error => SealerError::Damaged { what: disk.name(), reason: error.to_string() },
        })?;
        Ok(Self { database, cipher: XChaCha20Poly1305::new(&Key::from(key)) })
    }

    /// What the database says about itself; `None` if it is new.
    pub(crate) fn meta(&self) -> Result<Option<Meta>, SealerError> {
        let damaged = |error: serde_json::Error| SealerError::Damaged {
            what: "what the state says of itself".to_owned(),
            reason: error.to_string(),
        };
        self.record("meta")?.map(|bytes| serde_json::from_slice(&bytes).map_err(damaged)).transpose()
    }

    pub(crate) fn record(&self, name: &str) -> Result<Option<Vec<u8>>, SealerError> {
        let read = self.database.begin_read()?;
        match read.open_table(RECORDS) {
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            table => Ok(table?.get(name)?.map(|bytes| bytes.value().to_vec())),
        }
    }

    /// The steps that came after the state, in their order.
    pub(crate) fn steps(&self) -> Result<Vec<(u64, Step)>, SealerError> {
        let read = self.database.begin_read()?;
        let table = match read.open_table(STEPS) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            table => table?,
        };
        let step = |entry: Result<(redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &[u8]>), _>| {
            let (number, bytes) = entry?;
            Ok((number.value(), self.decrypt(number.value(), bytes.value())?))
        };
        table.iter()?.map(step).collect()
    }

    /// One transaction, durable when it returns.
    pub(crate) fn commit(&self, meta: &Meta, change: Change<'_>) -> Result<(), SealerError> {
        let write = self.database.begin_write()?;
        {
            let mut records = write.open_table(RECORDS)?;
            let text = serde_json::to_vec(meta).expect("text and numbers can be written");
            records.insert("meta", &text[..])?;
            match change {
                Change::None => {}
                Change::Wait(number, step) => {
                    write.open_table(STEPS)?.insert(number, &self.encrypt(number, step)?[..])?;
                }
                Change::State(bytes) => {
                    records.insert("state", bytes)?;
                    write.open_table(STEPS)?.retain(|_, _| false)?;
                }
                Change::View(bytes) => {
                    records.insert("view", bytes)?;
                    records.remove("state")?;
                    write.open_table(STEPS)?.retain(|_, _| false)?;
                }
            }
        }
        write.commit()?;
        Ok(())
    }

    fn encrypt(&self, number: u64, step: &Step) -> Result<Vec<u8>, SealerError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)?;
        let text = step.to_bytes();
        let payload = Payload { msg: &text, aad: &number.to_le_bytes() };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed =
            sealed.map_err(|_| SealerError::Storage("a step is too long to be encrypted".to_owned()))?;
        Ok([&nonce[..], &sealed[..]].concat())
    }

    fn decrypt(&self, number: u64, bytes: &[u8]) -> Result<Step, SealerError> {
        let damaged =
            |reason: &str| SealerError::Damaged { what: format!("step {number}"), reason: reason.to_owned() };
        let (nonce, sealed) =
            bytes.split_first_chunk::<NONCE_LEN>().ok_or_else(|| damaged("it is too short"))?;
        let payload = Payload { msg: sealed, aad: &number.to_le_bytes() };
        let text = self.cipher.decrypt(&XNonce::from(*nonce), payload);
        let text = text.map_err(|_| damaged("it was changed, or has another key"))?;
        Step::from_bytes(&text).ok_or_else(|| damaged("its parts do not fit together"))
    }
}
