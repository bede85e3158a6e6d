//! An empirical privacy audit: the real sketch, run often on two neighbouring streams, must not tell them apart better
//! than the plan promises.
//!
//! The plan is made tiny (two substreams of about 20 items, 64 columns), but keeps its budget, unit, method, rows, noise
//! and kind of window, and everything is sealed by the real code with noise from the system. Of each run the audit
//! takes what an adversary can obtain: all sealed counters, answers just before and after the changed event, the same
//! question many times, totals and slid thresholds, and in some runs what comes back from bytes, from a merge and from 20 restores.
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
mod keys;
mod repeats;
mod report;
mod run;
mod statistics;
#[cfg(test)]
mod tests;
mod tiny;
mod trial;

pub use report::{AuditError, Check, Claimed, Control, Effort, Report, Test, Tightness};
pub use run::run;
