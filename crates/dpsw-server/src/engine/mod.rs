//! The engine: takes batches, makes them durable, counts them, seals, and publishes what is sealed.

pub(crate) mod published;
pub(crate) mod report;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{oneshot, watch};

use crate::clock::Clock;
use crate::config::{SourceConfig, StreamConfig};
use crate::engine::published::Published;
use crate::engine::report::{Contract, Health, SourceReport, StreamReport};
use crate::error::{ChangeError, IngestError, OpenError, Unavailable, Unknown};
use crate::events::Events;
use crate::key::Key;

/// Where the engine keeps its data, and how much may wait.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineSettings {
    /// The folder of the database.
    pub data_folder: PathBuf,
    /// The folder of the marker, which must not be in backups of the data folder.
    pub marker_folder: PathBuf,
    /// The key of everything on the disk.
    pub key: Key,
    /// The most bytes of a source that may wait to be made durable and counted.
    pub waiting_bytes_max: usize,
    /// Whether commits wait for the disk. Off only to measure what that costs: a crash then loses what was acknowledged.
    pub is_durable: bool,
}

/// What a batch of a source is called, so that it counts once however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(Box<[u8]>);

/// A batch that is on its way to the disk. Await it, or [`wait`](Self::wait) for it.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Result<Receipt, IngestError>>);

/// The batch is durable and will be counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// How many events it had.
    pub events: usize,
    /// Whether a batch of this id had been taken before; this one counts nowhere.
    pub is_repeated: bool,
}

/// The engine. All methods may be called from any thread; those that change sources or streams, and
/// [`shutdown`](Self::shutdown), wait for the disk and belong on a thread that may block.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
}

impl EngineSettings {
    /// The usual settings: the marker beside the data folder, durable.
    #[must_use]
    pub fn new(data_folder: impl Into<PathBuf>, key: Key) -> Self {
        let data_folder = data_folder.into();
        let mut marker = data_folder.clone().into_os_string();
        marker.push(".marker");
        Self { data_folder, marker_folder: marker.into(), key, waiting_bytes_max: 64 << 20, is_durable: true }
    }
}

impl BatchId {
    /// # Errors
    /// It is empty or longer than [`BATCH_ID_LEN_MAX`](crate::error::BATCH_ID_LEN_MAX).
    pub fn new(id: impl Into<Vec<u8>>) -> Result<Self, IngestError> {
        let id = id.into();
        if (1..=crate::error::BATCH_ID_LEN_MAX).contains(&id.len()) {
            Ok(Self(id.into()))
        } else {
            Err(IngestError::BatchId(id.len()))
        }
    }
}

impl Pending {
    /// Blocks the thread until the batch is durable.
    ///
    /// # Errors
    /// It was not taken.
    pub fn wait(self) -> Result<Receipt, IngestError> {
        self.0.blocking_recv().unwrap_or(Err(Unavailable::ShuttingDown.into()))
    }
}

impl Future for Pending {
    type Output = Result<Receipt, IngestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = Pin::new(&mut self.0).poll(context);
        reply.map(|reply| reply.unwrap_or(Err(Unavailable::ShuttingDown.into())))
    }
}

impl Engine {
    /// Opens the data folder, or makes it; restores every stream and counts what was acknowledged and not yet counted.
    ///
    /// # Errors
    /// The folders cannot be used, are in use, damaged, or belong to another key.
    #[expect(clippy::needless_pass_by_value, reason = "skeleton")]
    pub fn open(settings: EngineSettings, _clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Ok(Self { settings })
    }

    /// Makes a source. Its streams, if it brings any, are made one by one with [`create_stream`](Self::create_stream).
    ///
    /// # Errors
    /// The settings cannot be meant, or the name was ever taken: the ledger of a source outlives it.
    pub fn create_source(&self, config: SourceConfig) -> Result<(), ChangeError> {
        config.check()?;
        Err(Unavailable::ShuttingDown.into())
    }

    /// Removes a source without streams. Its ledger stays.
    ///
    /// # Errors
    /// There is no such source, or it has streams.
    pub fn delete_source(&self, name: &str) -> Result<(), ChangeError> {
        Err(unknown("source", name).into())
    }

    /// Charges a stream to its source and starts it with the next batch.
    ///
    /// # Errors
    /// The settings cannot be meant, no plan fits them, or the budget of the source does not bear it.
    pub fn create_stream(&self, source: &str, _config: StreamConfig) -> Result<(), ChangeError> {
        Err(unknown("source", source).into())
    }

    /// Ends a stream. What is open is given up; its charge stays.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn delete_stream(&self, stream: &str) -> Result<(), ChangeError> {
        Err(unknown("stream", stream).into())
    }

    /// Hands over a batch. It is acknowledged, through [`Pending`], when it is durable.
    ///
    /// # Errors
    /// There is no such source, or too much is waiting. What fails later is the result of [`Pending`].
    pub fn ingest(
        &self,
        source: &str,
        _batch: Option<BatchId>,
        _events: Events,
    ) -> Result<Pending, IngestError> {
        Err(unknown("source", source).into())
    }

    /// What can be seen of a stream.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn view(&self, stream: &str) -> Result<Arc<Published>, Unknown> {
        Err(unknown("stream", stream))
    }

    /// What can be seen of a stream, whenever it changes. Ends with the stream.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn subscribe(&self, stream: &str) -> Result<watch::Receiver<Arc<Published>>, Unknown> {
        Err(unknown("stream", stream))
    }

    /// All sources with their ledgers, by name.
    #[must_use]
    pub fn sources(&self) -> Vec<SourceReport> {
        Vec::new()
    }

    /// One source with its ledger.
    ///
    /// # Errors
    /// There is no such source.
    pub fn source(&self, name: &str) -> Result<SourceReport, Unknown> {
        Err(unknown("source", name))
    }

    /// All streams, by name.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamReport> {
        Vec::new()
    }

    /// One stream with its plan.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn stream(&self, name: &str) -> Result<StreamReport, Unknown> {
        Err(unknown("stream", name))
    }

    /// What is promised of a stream, from its plan and the ledger of its source.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn contract(&self, stream: &str) -> Result<Contract, Unknown> {
        Err(unknown("stream", stream))
    }

    /// Whether the engine takes batches, and what the operator should know.
    #[must_use]
    pub fn health(&self) -> Health {
        Health::default()
    }

    /// Looks at the clock now rather than soon, and returns when all that was handed over before is durable, counted,
    /// sealed where the clock says so, and published. For tests, and for those who must see what they sent.
    ///
    /// # Errors
    /// The storage refuses data meanwhile.
    pub fn settle(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Takes no more batches, makes durable what was handed over, and saves every stream. Nothing is sealed early. Later calls
    /// of other methods say that the service is shutting down.
    ///
    /// # Errors
    /// Streams could not be saved; what was acknowledged is in the journal and is counted at the next start.
    pub fn shutdown(&self) -> Result<(), Unavailable> {
        let _ = &self.settings;
        Ok(())
    }
}

fn unknown(what: &'static str, name: &str) -> Unknown {
    Unknown { what, name: name.to_owned() }
}
