//! What is kept on a disk: a database in a folder ([`disk`], [`watched`]), what it is encrypted with ([`cipher`]), and what says
//! whether it is the newest ([`marker`]). The service has its own records in such a database; a [`Sealer`] has one stream.
//!
//! *The sealer of a cluster.* Workers count their share of a stream into partial counters, and one process takes them, adds the
//! noise once, and shows what is durable.
//!
//! An engine such as Spark repeats what failed: a task, a step, a whole driver. So a [`Sealer`] takes each step of the engine
//! once, by its number, in one transaction with the counts; it shows nothing before that transaction is durable and read back;
//! and of two sealers over one state the second is refused.
//!
//! *What a sealer has on the disk.* A database with the newest state of the stream (encrypted), the partial counters of the steps that came
//! after it (encrypted), and what was said when the stream began. Beside it, in another folder, a *marker*: which generation of
//! the database was shown last, and up to where. A database that is older than its marker was brought back from a backup: what it
//! holds may have been shown with other noise, so it is given up, and the stream goes on after what was shown.

#![forbid(unsafe_code)]

pub mod cipher;
mod database;
pub mod disk;
mod error;
mod keys;
pub mod marker;
mod sealer;
pub mod watched;

pub use error::SealerError;
pub use keys::SealerKeys;
pub use sealer::{Beginning, Sealer, Step, Taken};
