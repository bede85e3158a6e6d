//! The database: the newest state, what came after it, and what was said when the stream began.

use std::collections::BTreeMap;
use std::sync::Arc;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

use crate::cipher::Cipher;
use crate::disk::{Disk, DiskError};
use crate::error::SealerError;
use crate::marker::{Generation, Lineage, Marker, MarkerError, Standing};
use crate::sealer::Step;
use crate::watched::Watched;

/// `meta`, `state` and, of a stream that is over, `view`.
const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// Steps that came after the state, by their numbers.
const STEPS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("steps");

/// The database's record about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) lineage: Lineage,
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

/// The change that one commit makes beside the meta record.
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

/// The database of one stream, its disk and its cipher.
pub(crate) struct Store {
    // Closed before the disk lets go of its locks.
    database: Database,
    disk: Box<dyn Disk>,
    cipher: Cipher,
}

impl Store {
    pub(crate) fn open(disk: Box<dyn Disk>, cipher: Cipher) -> Result<Self, SealerError> {
        let unusable =
            |error: std::io::Error| DiskError::Path { path: disk.name(), reason: error.to_string() };
        let inner = disk.database().map_err(unusable)?;
        let backend = Watched { inner, is_durable: true, is_lost: Arc::default() };
        let database = Database::builder().create_with_backend(backend).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => DiskError::InUse { path: disk.name() }.into(),
            DatabaseError::Storage(redb::StorageError::Io(error)) => unusable(error).into(),
            error => SealerError::Damaged { what: disk.name(), reason: error.to_string() },
        })?;
        Ok(Self { database, disk, cipher })
    }

    /// What messages call the database.
    pub(crate) fn name(&self) -> String {
        self.disk.name()
    }

    /// Whether there is a marker, of this stream or another.
    pub(crate) fn has_marker(&self) -> Result<bool, SealerError> {
        self.disk.read_marker().map(|marker| marker.is_some()).map_err(|error| self.unreadable_marker(&error))
    }

    /// How the database stands to its marker, where that can be told.
    pub(crate) fn standing(&self, meta: &Meta) -> Result<Standing, SealerError> {
        let name = self.name();
        let standing = Standing::read(&*self.disk, &self.cipher, meta.lineage);
        match standing.map_err(|error| self.unreadable_marker(&error))? {
            Standing::Gone => Err(SealerError::Marker(format!(
                "the marker of {name} is gone, so nobody knows what was shown of this stream; bring it back, or begin a new stream \
                with another state, which spends its epsilon on the same events again"
            ))),
            Standing::Foreign => {
                Err(SealerError::Marker(format!("the marker of {name} belongs to another stream")))
            }
            Standing::Unreadable => Err(SealerError::Damaged {
                what: format!("the marker of {name}"),
                reason: "it was changed, or has another key".to_owned(),
            }),
            standing => Ok(standing),
        }
    }

    /// Moves the marker, from the generation that it has by now if it is there.
    pub(crate) fn mark(&self, marker: &Marker, from: Option<Generation>) -> Result<(), SealerError> {
        let moved = match from {
            Some(from) => marker.move_on(&*self.disk, &self.cipher, from),
            None => marker.write(&*self.disk, &self.cipher),
        };
        moved.map_err(|error| match error {
            MarkerError::Moved => SealerError::Marker(format!(
                "the marker of {} is not where this sealer left it: another one went on with a copy of the state",
                self.name()
            )),
            error => {
                SealerError::Storage(format!("the marker of {} cannot be moved: {error}", self.name()))
            }
        })
    }

    fn unreadable_marker(&self, error: &std::io::Error) -> SealerError {
        SealerError::Marker(format!("the marker of {}: {error}", self.name()))
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
        let mut steps = Vec::new();
        for entry in table.iter()? {
            let (number, bytes) = entry?;
            steps.push((number.value(), self.decrypt(number.value(), bytes.value())?));
        }
        Ok(steps)
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
        Ok(self.cipher.seal(&number.to_le_bytes(), &step.to_bytes())?)
    }

    fn decrypt(&self, number: u64, bytes: &[u8]) -> Result<Step, SealerError> {
        let damaged =
            |reason: &str| SealerError::Damaged { what: format!("step {number}"), reason: reason.to_owned() };
        let text = self.cipher.open(&number.to_le_bytes(), bytes);
        let text = text.map_err(|_| damaged("it was changed, or has another key"))?;
        Step::from_bytes(&text).ok_or_else(|| damaged("its parts do not fit together"))
    }
}
