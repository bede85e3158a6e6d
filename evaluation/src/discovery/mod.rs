//! How well keys are found without a list: which of the true top are there, how soon a new key is listed, and when the
//! first answer comes.

mod case;
pub(crate) mod draw;
mod outcome;
mod run;
mod surge;
mod table;

pub use case::Case;
pub use outcome::Outcome;
pub use run::{Measured, Row, run};
pub use surge::{SHARES, Surge};
pub use table::table;
