//! Why a source does not read its broker, in words that say what to do. None of them tells how much was read.

use thiserror::Error;

use crate::error::{IngestError, Unavailable};
use crate::input::InputError;

/// A reason why a source does not read its broker. The words stand after its name.
#[derive(Debug, Error)]
pub(crate) enum BrokerError {
    #[error("cannot read its broker, and tries again: {0}")]
    Failed(String),
    #[error(
        "is refused by its broker, and tries again: {0}. See user and password of its [[broker]] in the settings"
    )]
    Refused(String),
    #[error(
        "does not trust its broker, and tries again: {0}. See tls of its [[broker]] in the settings, and for whom the broker's \
        certificate is"
    )]
    Untrusted(String),
    #[error("cannot log in at its broker, and tries again: {0}. See its [[broker]] in the settings")]
    Secret(String),
    #[error("reads a topic that its broker does not have; make the topic, and it is read from its beginning")]
    NoTopic,
    #[error(
        "wants a topic that {0} reads already. Each event is charged to one ledger: read the topic there, or see in the page for \
        operators how a topic changes its reader"
    )]
    Taken(String),
    #[error(
        "was read further by another copy of this data: what this copy would release may be known already. Go on with the \
        other copy, or remove the marker of this one, which then gives up what is open and goes on after the end of the topic"
    )]
    Older,
    #[error("was taken over by another copy of this data, which reads its topic now; there must be one")]
    Fenced,
    #[error(
        "stands after the end of its topic, which was made anew or has lost records; new records would be taken for old ones. \
        Make another source for the new topic"
    )]
    Ahead,
    #[error(
        "has a broker that needs {0:?}, which this program was built without; build it with --features {0}"
    )]
    NotBuilt(&'static str),
    #[error("cannot keep what it reads, and tries again: {0}")]
    Engine(IngestError),
    #[error("begins to read again, because its topic has more partitions or the source has more streams")]
    Grown,
    /// Nobody wants the source read any more.
    #[error("is read no longer")]
    Over,
}

/// What clients say where a login is refused.
const REFUSED: [&str; 7] =
    ["WRONGPASS", "NOAUTH", "NOPERM", "authentication", "authorization", "password", "AUTH failed"];

impl BrokerError {
    /// What a client says of its broker. Certificates first: who is not trusted is told no password.
    pub(crate) fn of_client(said: String) -> Self {
        if said.contains("certificate") {
            return Self::Untrusted(said);
        }
        let is_refused = REFUSED.iter().any(|word| said.to_lowercase().contains(&word.to_lowercase()));
        if is_refused { Self::Refused(said) } else { Self::Failed(said) }
    }
}

impl From<IngestError> for BrokerError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Unknown(_) | IngestError::Unavailable(Unavailable::ShuttingDown) => Self::Over,
            IngestError::StreamsChanged(_) => Self::Grown,
            error => Self::Engine(error),
        }
    }
}

impl From<InputError> for BrokerError {
    fn from(error: InputError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<crate::error::Unknown> for BrokerError {
    fn from(_: crate::error::Unknown) -> Self {
        Self::Over
    }
}
