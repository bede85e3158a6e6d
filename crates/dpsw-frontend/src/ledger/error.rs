//! What a ledger refuses and what it remarks. What to do about it is said by the front end, in its own words.

use std::fmt;
use std::io;
use std::path::PathBuf;

use dpsw::Claim;
use dpsw::error::ParameterError;

use crate::ledger::amount::Amount;
use crate::ledger::entry::Protected;

/// A reason why something was not charged, read or changed.
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
    /// What is to be read has no lasting path, such as a pipe.
    #[error("{} has no path by which it is known again", .0.display())]
    NoPath(PathBuf),
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
    /// The system does not open or read it.
    #[error("{} cannot be {step}: {error}", ledger.display())]
    Unread {
        /// The file.
        ledger: PathBuf,
        /// "opened" or "read".
        step: &'static str,
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

/// The kinds of failures.
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
            Self::NoPath(_) | Self::Several { .. } => Failure::Usage,
            Self::OtherUnit { .. } | Self::OtherBudget { .. } | Self::OverBudget { .. } => Failure::Refused,
            Self::Unread { .. } => Failure::Unread,
            Self::Foreign { .. } | Self::Damaged { .. } => Failure::Corrupt,
            Self::Unwritten { .. } => Failure::Unwritten,
        }
    }
}

/// A remark of a ledger beside its results.
#[derive(Debug)]
#[non_exhaustive]
pub enum Remark {
    /// Nothing goes on until another run lets this file go.
    Waiting(PathBuf),
    /// A run that had not begun to count was cut off while it was charged in this file.
    CutOff(PathBuf),
    /// A file is known by a name that is not its path.
    Again {
        /// Its path.
        file: String,
        /// The data set that is charged.
        data_set: String,
    },
    /// A file is charged to another data set than before.
    Elsewhere {
        /// Its path.
        file: String,
        /// The data set that was charged before.
        data_set: String,
    },
    /// A budget was set for a data set that nobody has charged.
    Unspent(String),
    /// A run ended before it answered.
    GivenBack {
        /// The file.
        ledger: PathBuf,
        /// Its number.
        run: u64,
    },
    /// A run ended before it answered, and could not be given back.
    StaysCharged {
        /// Its number.
        run: u64,
        /// Why.
        error: LedgerError,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(ledger) => write!(f, "waiting for another run that holds {}", ledger.display()),
            Self::CutOff(ledger) => {
                write!(f, "the last line of {} was cut off; it does not count", ledger.display())
            }
            Self::Again { file, data_set } => {
                write!(f, "{file} was charged to {data_set} before, and is again")
            }
            Self::Elsewhere { file, data_set } => write!(
                f,
                "{file} was charged to {data_set} before; if its events are the same, charge them there"
            ),
            Self::Unspent(data_set) => write!(f, "nothing was spent on {data_set} so far"),
            Self::GivenBack { ledger, run } => {
                write!(f, "nothing was answered, so run {run} is given back in {}", ledger.display())
            }
            Self::StaysCharged { run, error } => write!(f, "run {run} stays charged: {error}"),
        }
    }
}
