//! The lines of a ledger: see docs/ledger.md.

use dpsw::{Plan, Unit, Window};
use serde::{Deserialize, Serialize};

/// The version that is written; a file of a later one is refused.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry")]
pub(crate) enum Entry {
    /// The first line.
    #[serde(rename = "dpsw ledger")]
    Start { version: u32 },
    /// From here on, no more than this may be spent on a data set.
    #[serde(rename = "budget")]
    Budget { time: String, data_set: String, epsilon: f64 },
    /// A run spends something.
    #[serde(rename = "charge")]
    Charge(Charge),
    /// A run ended with an error before it answered anything.
    #[serde(rename = "given back")]
    GivenBack { time: String, run: u64 },
}

/// What one run spends on each of its data sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) time: String,
    /// From 1.
    pub(crate) run: u64,
    pub(crate) unit: Protected,
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    pub(crate) window: WindowLen,
    pub(crate) data_sets: Vec<DataSet>,
}

/// Events that belong together, by the name that their owner gives them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataSet {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) files: Vec<FileMark>,
}

/// How a file is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileMark {
    /// Without links and dots.
    pub(crate) path: String,
    /// Device, number and birth of the file, which stay when it is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
}

impl FileMark {
    /// Whether both are the same file, as far as can be told.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.path == other.path || (self.id.is_some() && self.id == other.id)
    }
}

/// What an epsilon is about. Those of different units do not add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protected {
    /// One event is replaced by another.
    ReplaceOne,
    /// One event is there or not.
    AddRemove,
    /// All events of a user in a window.
    Users,
}

impl Protected {
    pub(crate) fn of(plan: &Plan) -> Self {
        match plan.settings().unit {
            Unit::Users { .. } => Self::Users,
            Unit::AddRemove => Self::AddRemove,
            _ => Self::ReplaceOne,
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReplaceOne => "events",
            Self::AddRemove => "events that are there or not",
            Self::Users => "users, in each window",
        }
    }
}

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowLen {
    /// A number of items.
    Items(u64),
    /// A time.
    Milliseconds(u64),
}

impl WindowLen {
    pub(crate) fn of(plan: &Plan) -> Self {
        match plan.settings().window {
            Window::Items(len) => Self::Items(len),
            window => Self::Milliseconds(window.time().map_or(0, |time| time.len)),
        }
    }
}
