//! A ledger: what was spent on each data set, in a file of its own, charged before any item is counted. docs/guide/budget.md has
//! its format.

mod accounts;
mod amount;
mod charge;
mod entry;
mod error;
mod file;

pub use accounts::{Balance, Document, RunDocument};
pub use amount::Amount;
pub use charge::{Account, Spending, charge, preview, read, set_budget};
pub use entry::{Protected, WindowLen, is_stdin};
pub use error::{Failure, LedgerError, Remark};
pub use file::is_ledger;
