//! What a sealer refuses.

use dpsw::error::{EntropyError, IngestError, PartialError, SnapshotError, StateError};

use crate::cipher::NoRandomness;
use crate::disk::DiskError;

/// A reason why a sealer cannot be opened or does not take a step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealerError {
    /// A folder cannot be used, or is in use.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The database is damaged.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// What is damaged.
        what: String,
        /// How.
        reason: String,
    },
    /// The database cannot be written or read now.
    #[error("{0}; nothing of this step was shown, and it is taken again after a restart")]
    Storage(String),
    /// The state belongs to a stream with other settings.
    #[error(
        "the state in {state} is of a stream with {name} = {was}, and {asked} is asked for; give the same, or another folder \
        for the state: a new stream, which spends its epsilon on the same events again"
    )]
    Other {
        /// Where the state is.
        state: String,
        /// Which setting differs.
        name: String,
        /// As the stream began.
        was: String,
        /// As it is asked for.
        asked: String,
    },
    /// Nobody knows what was shown.
    #[error("{0}")]
    Marker(String),
    /// Steps are missing, or those of another engine come.
    #[error(
        "step {got} came where step {wanted} was to come: the engine's checkpoint is not the one that goes with this state; \
        use both as they were, or a new checkpoint with a new state"
    )]
    Gap {
        /// The step that should have come.
        wanted: u64,
        /// The step that came.
        got: u64,
    },
    /// Steps of another engine, whose numbers mean something else.
    #[error(
        "the state has taken steps of checkpoint {was}, and these are of checkpoint {got}: events could count twice; use the \
        checkpoint that goes with this state, or a new state with a new checkpoint"
    )]
    Engine {
        /// Whose steps were taken.
        was: String,
        /// Whose step came.
        got: String,
    },
    /// The stream is over.
    #[error("the stream was finished; a new one needs a new state, and spends again")]
    Finished,
    /// A failure before this call.
    #[error("an earlier step failed ({0}); open the state again")]
    Broken(String),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// What a worker counted cannot be taken.
    #[error(transparent)]
    Partial(#[from] PartialError),
    /// The bytes that a worker sent cannot be read.
    #[error("partial counters cannot be read: {0}")]
    Snapshot(#[from] SnapshotError),
    /// The clock cannot be moved.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

macro_rules! storage_from {
    ($($error:ty),*) => {$(
        impl From<$error> for SealerError {
            fn from(error: $error) -> Self {
                Self::Storage(error.to_string())
            }
        }
    )*};
}
storage_from!(redb::TransactionError, redb::TableError, redb::StorageError, redb::CommitError, NoRandomness);
