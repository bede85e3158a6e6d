//! The lines of a ledger, and the marks by which files are known again: see docs/guide/budget.md.

use std::path::Path;

use dpsw::{Plan, Unit, Window};
use jiff::Timestamp;
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

/// The charge of one run, on each of its data sets.
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

/// The marks by which a file is known again.
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

    /// The marks of a file that keeps its path; pipes do not.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        if is_stdin(path) {
            return None;
        }
        match std::fs::metadata(path) {
            Ok(metadata) => {
                let path = path.canonicalize().ok()?;
                let path = path.to_str().filter(|_| metadata.is_file())?.to_owned();
                Some(Self { path, id: id(&metadata) })
            }
            // A file that is waited for.
            Err(_) => {
                let path = folder(path).canonicalize().ok()?.join(path.file_name()?);
                Some(Self { path: path.to_str()?.to_owned(), id: None })
            }
        }
    }
}

/// The unit that an epsilon protects. Those of different units do not add up.
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

/// The length of a window.
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

/// Whether this name means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The folder that a file lies in.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Device, number and birth. Numbers are used again, so without the birth there is no telling.
#[cfg(unix)]
fn id(metadata: &std::fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let born = metadata.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{}:{}:{}", metadata.dev(), metadata.ino(), born.as_nanos()))
}

#[cfg(not(unix))]
fn id(_: &std::fs::Metadata) -> Option<String> {
    None
}

/// `2026-01-31T12:00:00.123Z`.
pub(crate) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}
