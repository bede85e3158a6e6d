//! What is handed to the engine and what it hands back: settings, names of batches, receipts.

use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use utoipa::ToSchema;

use crate::error::{IngestError, Unavailable};
use crate::key::Key;
use crate::settings::beside;

/// The steps of the service's own clock.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// The folders of the engine, its key and its limits.
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
    /// The most bytes of a source's journal. Batches wait there until what they seal can be shown; beyond this, none is taken.
    pub journal_bytes_max: usize,
    /// The most senders of one owner that a source remembers. None is ever forgotten.
    pub senders_max: u32,
    /// The steps of the service's own clock: what it moves is sealed and shown at whole multiples of this alone.
    pub clock_step: Duration,
    /// Whether commits wait for the disk. Off only to measure what that costs: a crash then loses what was acknowledged.
    pub is_durable: bool,
}

/// The most senders of one owner that a source remembers, unless the settings say otherwise.
pub const SENDERS_MAX: u32 = 1 << 16;

/// A batch that is on its way to the disk. Await it, or [`wait`](Self::wait) for it.
#[derive(Debug)]
pub struct Pending(pub(crate) oneshot::Receiver<Result<Receipt, IngestError>>);

/// The batch is durable and will be counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[non_exhaustive]
pub struct Receipt {
    /// How many events the batch had.
    pub events: usize,
    /// Whether a batch of this id had been taken before; this one counts nowhere.
    #[serde(rename = "repeated")]
    pub is_repeated: bool,
}

impl EngineSettings {
    /// The usual settings: the marker beside the data folder, durable.
    #[must_use]
    pub fn new(data_folder: impl Into<PathBuf>, key: Key) -> Self {
        let data_folder = data_folder.into();
        Self {
            marker_folder: beside(&data_folder, ".marker"),
            data_folder,
            key,
            waiting_bytes_max: 64 << 20,
            journal_bytes_max: 1 << 30,
            senders_max: SENDERS_MAX,
            clock_step: CLOCK_STEP,
            is_durable: true,
        }
    }
}

impl Pending {
    /// What became of it, if that is known by now.
    pub(crate) fn now(&mut self) -> Option<Result<Receipt, IngestError>> {
        match self.0.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(Err(stopped())),
        }
    }

    /// Blocks the thread until the batch is durable.
    ///
    /// # Errors
    /// It was not taken, or nobody knows whether it was.
    pub fn wait(self) -> Result<Receipt, IngestError> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(stopped()))
    }
}

impl Future for Pending {
    type Output = Result<Receipt, IngestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = Pin::new(&mut self.0).poll(context);
        reply.map(|reply| reply.unwrap_or_else(|_| Err(stopped())))
    }
}

/// Whoever commits has stopped without an answer, perhaps in the middle of it.
fn stopped() -> IngestError {
    Unavailable::Unconfirmed("the service stopped".to_owned()).into()
}
