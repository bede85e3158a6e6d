//! What is promised and what it costs: parameters, accounting, the ledger.

pub mod accounting;
pub(crate) mod ledger;
pub(crate) mod parameters;

pub use ledger::{Cost, Ledger};
pub use parameters::{Claim, Delta, Epsilon, Rho, Threshold};
