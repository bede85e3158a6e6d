//! A ledger: what was spent on each data set, in a file of its own, charged before any item is counted. docs/ledger.md has
//! its format.

mod amount;
mod entry;
mod error;
mod remark;
mod accounts;
mod source;
mod file;
mod balance;
mod charge;
mod spending;
mod budget;
mod document;

pub use amount::Amount;
pub use balance::Balance;
pub use budget::set_budget;
pub use charge::{Account, charge, preview};
pub use document::{Document, RunDocument, SetDocument, read};
pub use entry::{Protected, WindowLen};
pub use error::{Failure, LedgerError};
pub use file::is_ledger;
pub use remark::Remark;
pub use source::is_stdin;
pub use spending::Spending;
