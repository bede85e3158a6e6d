//! An empirical privacy audit: the real sketch, run often on two neighbouring streams, must not tell them apart better
//! than the plan promises.
//!
//! The plan is made tiny (three substreams of about 20 items, 64 columns; for users as many substreams as it has, up to
//! 12), but keeps its budget, unit, method, rows, noise and kind of window, and everything is fed in batches of random sizes
//! and sealed by the real code with noise from the system. Of each run the audit takes what an adversary can obtain: all
//! sealed counters, whole answers just before and after the changed event, the same question many times, totals, error
//! bounds and slid thresholds, and in some runs what comes back from bytes, from a merge and from 20 restores.
//!
//! What does not depend on chance is checked exactly, in few runs with more than 1,024 counters: on walks with late and
//! early events, clocks that jump, restores and batches of random sizes neighbours may differ in sealed counters and in
//! nothing else; with a budget so large that the noise is zero, by no more than the noise is made for; a view from bytes
//! gives the same whole answers; tails fed to one saved state, and stretches of counters, never share their noise.
//!
//! Where frequent keys are cut into slices, which slices a key has depends on earlier noise. The two keys are then about as
//! frequent as it takes to be cut, the loss of a run is summed along the path that it has taken, and which keys are cut is
//! made again from what was sealed before. So is who is pinned, where some keys have counters of their own beside hashed ones.
//!
//! An audit can show that a claim is false; it cannot prove that it is true. It sees losses of the size of the claim when
//! ε is about 0.3 to 5; below that the runs have no power and above that the events are too rare. The controls, small
//! wrong mechanisms with a budget of their own, show that the tests would catch the usual mistakes.
//!
//! ```
//! use dpsw::audit::{self, Effort};
//! # use dpsw::Settings;
//! let settings = Settings::last_items(10_000, 1.0)?.with_keys(0..100);
//! let effort = Effort { runs: 2_000, seals: 36_000, false_alarm: 1e-6 };
//! let report = audit::run(&settings, effort)?;
//! println!("{report}");
//! assert!(report.holds());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod control;
mod conversation;
mod cost;
mod feed;
mod keys;
mod pipeline;
mod repeats;
mod replay;
mod report;
mod run;
mod search;
mod statistics;
mod tables;
mod tails;
mod tally;
#[cfg(test)]
mod tests;
mod tiny;
pub(crate) mod transcript;
mod trial;
mod walk;

pub use report::{AuditError, Check, Claimed, Control, Effort, Report, Test, Tightness};
pub use run::run;
