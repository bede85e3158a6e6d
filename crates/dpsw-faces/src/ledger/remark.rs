//! What a ledger has to say beside its results.

use std::fmt;
use std::path::PathBuf;

use crate::ledger::error::LedgerError;

/// Something that people want to know.
#[derive(Debug)]
#[non_exhaustive]
pub enum Remark {
    /// Nothing goes on until another run lets the ledger go.
    Waiting {
        /// The file.
        ledger: PathBuf,
    },
    /// A run that had not begun to count was cut off while it was charged.
    CutOff {
        /// The file.
        ledger: PathBuf,
    },
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
    /// A budget was set for what nobody has charged.
    Unspent {
        /// The data set.
        data_set: String,
    },
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
            Self::Waiting { ledger } => write!(f, "waiting for another run that holds {}", ledger.display()),
            Self::CutOff { ledger } => {
                write!(f, "the last line of {} was cut off; it does not count", ledger.display())
            }
            Self::Again { file, data_set } => {
                write!(f, "{file} was charged to {data_set} before, and is again")
            }
            Self::Elsewhere { file, data_set } => write!(
                f,
                "{file} was charged to {data_set} before; if its events are the same, charge them there"
            ),
            Self::Unspent { data_set } => write!(f, "nothing was spent on {data_set} so far"),
            Self::GivenBack { ledger, run } => {
                write!(f, "nothing was answered, so run {run} is given back in {}", ledger.display())
            }
            Self::StaysCharged { run, error } => write!(f, "run {run} stays charged: {error}"),
        }
    }
}
