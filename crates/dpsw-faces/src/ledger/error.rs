//! Why a ledger refuses. What to do about it is said by the face, in its own words.

use std::io;
use std::path::PathBuf;

use dpsw::Claim;
use dpsw::error::ParameterError;

use crate::ledger::amount::Amount;
use crate::ledger::entry::Protected;

/// Why something was not charged, read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// A budget that is no epsilon.
    #[error("budget: {0}")]
    Budget(ParameterError),
    /// A claim that cannot be added up.
    #[error("what promises nothing cannot be charged: {0}")]
    Unpromised(Claim),
    /// A data set that is given an empty name.
    #[error("the data set needs a name")]
    Nameless,
    /// Without a name, events are known by the files that they come from, and there are none.
    #[error("events that come from no file have no path by which they are known again: name their data set")]
    NoFiles,
    /// What is read has no lasting path, such as a pipe.
    #[error("{} has no path by which it is known again", path.display())]
    NoPath {
        /// What was to be read.
        path: PathBuf,
    },
    /// A file belongs to several data sets, and none is named.
    #[error("{file} was charged to several data sets: {}", data_sets.join(", "))]
    Several {
        /// Its path.
        file: String,
        /// By name.
        data_sets: Vec<String>,
    },
    /// Epsilons that do not add up.
    #[error(
        "{data_set} was charged for {} so far, and this run would be for {}: their epsilons do not add up",
        charged.name(), asked.name()
    )]
    OtherUnit {
        /// Its name.
        data_set: String,
        /// What the first charge was about.
        charged: Protected,
        /// What this one is about.
        asked: Protected,
    },
    /// A budget that is not the one that was set.
    #[error("{data_set} has a budget of epsilon = {budget}, and {asked} was given")]
    OtherBudget {
        /// Its name.
        data_set: String,
        /// What was set.
        budget: Amount,
        /// What was given now.
        asked: Amount,
    },
    /// More than is left.
    #[error(
        "{data_set} has a budget of epsilon = {budget}: {spent} is spent, this run asks for {asked}, and {} is left",
        budget.without(*spent)
    )]
    OverBudget {
        /// Its name.
        data_set: String,
        /// What may be spent in all.
        budget: Amount,
        /// What was spent by others.
        spent: Amount,
        /// What this run costs.
        asked: Amount,
    },
    /// A file of something else, or of a later version.
    #[error("{} is not a ledger that can be read: {reason}; name another file, or a new one", ledger.display())]
    Foreign {
        /// The file.
        ledger: PathBuf,
        /// What its first line lacks.
        reason: String,
    },
    /// A line that cannot be read.
    #[error(
        "{}:{line}: {reason}; correct this line, so that nothing that was spent is forgotten",
        ledger.display()
    )]
    Damaged {
        /// The file.
        ledger: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The system does not open it.
    #[error("{} cannot be opened: {error}", ledger.display())]
    Unopened {
        /// The file.
        ledger: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The system does not read it.
    #[error("{} cannot be read: {error}", ledger.display())]
    Unread {
        /// The file.
        ledger: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The system does not write it.
    #[error("{} cannot be written: {error}", ledger.display())]
    Unwritten {
        /// The file.
        ledger: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// What was asked makes no sense.
    Usage,
    /// It would spend what must not be spent.
    Refused,
    /// The ledger cannot be read.
    Unread,
    /// The ledger is damaged, or none.
    Corrupt,
    /// The ledger cannot be written.
    Unwritten,
}

impl LedgerError {
    /// The kind of this failure.
    pub fn kind(&self) -> Failure {
        match self {
            Self::Budget(_) | Self::Unpromised(_) | Self::Nameless | Self::NoFiles => Failure::Usage,
            Self::NoPath { .. } | Self::Several { .. } => Failure::Usage,
            Self::OtherUnit { .. } | Self::OtherBudget { .. } | Self::OverBudget { .. } => Failure::Refused,
            Self::Unopened { .. } | Self::Unread { .. } => Failure::Unread,
            Self::Foreign { .. } | Self::Damaged { .. } => Failure::Corrupt,
            Self::Unwritten { .. } => Failure::Unwritten,
        }
    }
}
