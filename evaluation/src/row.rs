//! One row of a table.

use serde::{Deserialize, Serialize};

/// A case and what was measured, or why it could not be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row<Case, Measured> {
    pub case: Case,
    pub result: Result<Measured, String>,
}
