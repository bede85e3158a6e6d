//! What can go wrong, in words that say what to do.

use dpsw_durable::disk::DiskError;
use thiserror::Error;

use crate::config::ConfigError;
use crate::engine::{BATCH_NUMBER_MAX, SENDER_LEN_MAX};
use crate::store::sender::NUMBERS_BEFORE;

/// The service cannot start on its folders.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The key cannot be had.
    #[error(transparent)]
    Key(#[from] crate::key::KeyError),
    /// A folder or file cannot be used.
    #[error("{path} cannot be used: {reason}")]
    Path {
        /// Which one.
        path: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Another process has it open.
    #[error("{0} is in use by another process; a data folder has one service")]
    InUse(String),
    /// The key is not the one that the data was written with.
    #[error(
        "the data in {0} was written with another key; give the key that the service had when it was made"
    )]
    OtherKey(String),
    /// The marker folder belongs to another database.
    #[error(
        "{0} is the marker of another database; give each data folder a marker folder of its own. If the data folder was \
        emptied on purpose, remove the marker as well: all budgets then begin anew"
    )]
    OtherMarker(String),
    /// Another version has written the database.
    #[error(
        "{path} was written by another version of dpsw-server: its format is {found}, and this version reads {format}. Start the \
        version that wrote it, or give this one a data folder and a marker folder of its own",
        format = crate::store::FORMAT
    )]
    OtherVersion {
        /// The database.
        path: String,
        /// What it says about its format.
        found: String,
    },
    /// The database is damaged.
    #[error(
        "{what} is damaged: {reason}; restore the data folder from a backup, and leave the marker folder as it is"
    )]
    Damaged {
        /// What cannot be read.
        what: String,
        /// How that shows.
        reason: String,
    },
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    Entropy(String),
}

/// A source or stream that cannot be made or removed. Nothing was changed, unless it is [`Unavailable::Unconfirmed`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The settings cannot be meant.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No plan can be made for them.
    #[error(transparent)]
    Plan(#[from] dpsw::error::PlanError),
    /// The budget of the source does not bear it.
    #[error("{0}; charges outlive their streams, so the source cannot bear this one")]
    OverBudget(#[from] dpsw::error::OverBudget),
    /// There is no such source or stream.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The name is taken.
    #[error("there is already a {what} {name:?}; take another name")]
    Exists {
        /// Source or stream.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// It is there with other settings.
    #[error(
        "there is a {what} of this name with other settings, and it goes on with those; the settings of a source never change, \
        those of a stream with PUT /v1/streams/NAME; else take another name (what it has spent stays spent)"
    )]
    Differs {
        /// Source or stream.
        what: &'static str,
    },
    /// The source still has streams.
    #[error("source {name:?} has streams: {streams}; delete them first")]
    NotEmpty {
        /// The source.
        name: String,
        /// Its streams.
        streams: String,
    },
    /// There are as many as the service takes.
    #[error("the service has {most} {what}s, which is the most; delete one first")]
    Many {
        /// Source or stream.
        what: &'static str,
        /// The most.
        most: usize,
    },
    /// The plan has reproducible noise.
    #[error("a stream with reproducible noise claims no privacy and is not served")]
    NoClaim,
    /// A view that was sent lists too many keys.
    #[error(
        "the view lists {got} keys, and one that is sent may list at most {most}; send one with fewer, or raise view_keys in \
        [limits]"
    )]
    ViewKeys {
        /// How many it lists.
        got: usize,
        /// The most.
        most: usize,
    },
    /// Bytes that are no view.
    #[error(transparent)]
    View(#[from] dpsw::error::SnapshotError),
    /// A view that cannot take the place of the one before.
    #[error(transparent)]
    Succession(#[from] dpsw::SuccessionError),
    /// A view of a stream that is counted here.
    #[error("stream {0:?} is counted here; send the view under another name")]
    CountedHere(String),
    /// Settings for a stream that is sealed elsewhere.
    #[error(
        "stream {0:?} is sealed elsewhere, and so are its settings; send its views with PUT /v1/streams/NAME/view"
    )]
    SealedElsewhere(String),
    /// It could not be made durable.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// A batch that was not taken. Nothing of it is ever counted, unless it is [`Unavailable::Unconfirmed`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IngestError {
    /// There is no such source.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// So much is waiting already that this has to wait. How much is not said: it tells what others send.
    #[error("too much of source {0:?} is waiting to be counted; send the batch again later")]
    Busy(String),
    /// A stream was added while the batch was read, and its column was left out.
    #[error("the streams of source {0:?} changed while the batch was read; nothing was taken, send it again")]
    StreamsChanged(String),
    /// The source has a broker.
    #[error("source {0:?} takes its events from its broker; send them there, or to a source without one")]
    Brokered(String),
    /// What was read of a broker does not begin where the source stands.
    #[error("source {0:?} does not stand where the batch begins; read again from where it stands")]
    OtherPosition(String),
    /// A batch id of another form.
    #[error(
        "a batch id is the name of its sender, a slash, and a number that grows, as in web-1/42: up to {SENDER_LEN_MAX} letters, \
        digits, `-`, `_` and `.`, then 0 to {BATCH_NUMBER_MAX} without leading zeros"
    )]
    BatchId,
    /// Its number is too far below the highest one of its sender: it may have been taken.
    #[error(
        "the batch was taken before, or is too old: its number is more than {NUMBERS_BEFORE} below the highest one of its sender, \
        or the service was restored from a backup; nothing was taken. New batches need higher numbers or another sender"
    )]
    BatchTooOld,
    /// Its sender is new, and there are as many as are remembered.
    #[error(
        "the token has {0} senders at this source, which is the most, and none is ever forgotten; nothing was taken. Give each \
        producer one sender name for life, use a token of another name, or raise `senders` in [limits]"
    )]
    TooManySenders(u32),
    /// It could not be made durable.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// There is no source or stream of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no {what} {name:?}")]
pub struct Unknown {
    /// Source or stream.
    pub what: &'static str,
    /// What was asked for.
    pub name: String,
}

/// A state in which nothing can be made durable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The disk refuses; the service tries again by itself.
    #[error("the storage refuses to take data: {0}; nothing was taken, send it again later")]
    Storage(String),
    /// The disk did not confirm what it took: only a new start can tell what is there.
    #[error(
        "the storage did not confirm that data is durable: {0}; check the disk and start the service again"
    )]
    Lost(String),
    /// The disk failed while it took this, or the service stopped: nobody knows whether it is there.
    #[error(
        "nobody knows whether it was taken: {0}; send a batch again with the same id, and it counts once"
    )]
    Unconfirmed(String),
    /// The service is shutting down.
    #[error("the service is shutting down; send it again when it is back")]
    ShuttingDown,
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::InUse { path } => Self::InUse(path),
            DiskError::Path { path, reason } => Self::Path { path, reason },
            error => Self::Path { path: "the data folder".to_owned(), reason: error.to_string() },
        }
    }
}
