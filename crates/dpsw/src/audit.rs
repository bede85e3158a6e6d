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
//! # use dpsw::{Domain, Epsilon, Keys, Method, Settings, TunedMethod, Unit, Window};
//! # let settings = Settings { window: Window::Items(10_000), unit: Unit::ReplaceOne, epsilon: Epsilon::new(1.0)?, delta: None,
//! #     domain: Domain::Public(Keys::Range(100)), method: Method::Tuned(TunedMethod::default()), retention: 1 };
//! let effort = Effort { runs: 2_000, seals: 36_000, false_alarm: 1e-6 };
//! let report = audit::run(&settings, effort)?;
//! println!("{report}");
//! assert!(report.holds());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use crate::error::{EntropyError, IngestError, ParameterError, PlanError, QueryError, StateError};
use crate::settings::Settings;

mod tiny;
mod statistics;
mod conversation;
mod trial;
mod repeats;
mod keys;
mod control;

use conversation::{Conversation, Tally, claimed};
use trial::Trial;

/// The fewest runs and seals with which the controls are caught.
const EFFORT_MIN: usize = 2_000;
/// Limits on probabilities that one audit uses: two for each of 20 tests, four for the tightness, one for the signs, one for
/// what counts, two for the threshold of keys.
const LIMITS: f64 = 48.0;

/// How much work an audit does. The default takes some seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Runs on each of the two streams, at least 2,000; a quarter more choose the thresholds.
    pub runs: usize,
    /// Seals among which no noise may repeat, at least 2,000. A 32-bit seed repeats 18 times in 400,000.
    pub seals: usize,
    /// The probability with which the audit of a correct build may fail, above 0 and below 1.
    pub false_alarm: f64,
}

impl Default for Effort {
    /// 20,000 runs, 400,000 seals, one false alarm in 500 audits.
    fn default() -> Self {
        Self { runs: 20_000, seals: 400_000, false_alarm: 2e-3 }
    }
}

impl Effort {
    fn check(self) -> Result<(), AuditError> {
        for (name, value) in [("runs", self.runs), ("seals", self.seals)] {
            if value < EFFORT_MIN {
                return Err(AuditError::Effort { name, value });
            }
        }
        if 0.0 < self.false_alarm && self.false_alarm < 1.0 {
            return Ok(());
        }
        Err(ParameterError::Fraction { name: "the probability of a false alarm", value: self.false_alarm }
            .into())
    }

    fn pilot_runs(self) -> usize {
        self.runs / 4
    }

    /// The probability with which each limit may be wrong.
    fn doubt(self) -> f64 {
        self.false_alarm / LIMITS
    }
}

/// Why an audit could not be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// There is no plan, or no tiny one.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A number outside its range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// An event was not taken.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// A question was refused.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// There is no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// A stream could not be saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// Too little work to say anything.
    #[error("an audit needs at least 2000 {name}, got {value}")]
    Effort {
        /// Runs or seals.
        name: &'static str,
        /// What was given.
        value: usize,
    },
    /// Explicit shares for so many checkpoints that no short substream has them.
    #[error("the plan has too many checkpoints with explicit shares to be audited on a short substream")]
    TooManyCheckpoints,
    /// No hash key gives two keys different counters in every row.
    #[error("no hash key separates two keys in every row")]
    Collisions,
    /// The plan promises nothing.
    #[error("the plan claims no privacy, so there is nothing to audit")]
    NoClaim,
}

/// What the plan promises, in the measure in which it is tested.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Claimed {
    /// Pure ε: no event is more than exp(ε) times as likely under one stream as under the other.
    Epsilon(f64),
    /// The μ of Gaussian privacy: Φ⁻¹(TPR) - Φ⁻¹(FPR) is at most μ for every event.
    Mu(f64),
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epsilon(value) => write!(f, "epsilon {value:.4}"),
            Self::Mu(value) => write!(f, "mu {value:.4}"),
        }
    }
}

/// One statistical test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// What the adversary looks at.
    pub name: &'static str,
    /// Whether the event speaks for the second stream; else the roles are exchanged.
    pub forward: bool,
    /// How often the event happened on the stream that it speaks for.
    pub tpr: f64,
    /// How often it happened on the other.
    pub fpr: f64,
    /// The privacy loss is at least this.
    pub bound: f64,
    /// The loss of this event is at most this.
    pub upper: f64,
    /// What is claimed.
    pub limit: f64,
    /// Whether the bound keeps the limit.
    pub ok: bool,
}

/// Whether the sealed counters show as much as they are planned to: an audit of the wrong counters would not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tightness {
    /// The loss that the planned noise allows on the counters of the changed event.
    pub planned: f64,
    /// The measured loss is at most this.
    pub upper: f64,
    /// Whether that is at least 85 % of the plan.
    pub ok: bool,
}

/// Something that must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// What must hold.
    pub name: &'static str,
    /// How often it did not.
    pub violations: u64,
}

/// A wrong mechanism that the tests must catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// The mistake.
    pub name: &'static str,
    /// Whether it was caught.
    pub caught: bool,
    /// By which test.
    pub by: Option<&'static str>,
}

/// The result of an audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What is claimed of the sealed counters; the tests of found keys have limits of their own.
    pub claimed: Claimed,
    /// The largest loss that was shown.
    pub observed: f64,
    /// The work that was done.
    pub effort: Effort,
    /// The statistical tests.
    pub tests: Vec<Test>,
    /// Whether the audit looked at the right counters.
    pub tightness: Tightness,
    /// The exact checks.
    pub checks: Vec<Check>,
    /// The wrong mechanisms.
    pub controls: Vec<Control>,
}

impl Report {
    /// Whether every test and check holds and every control was caught.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.claim_holds() && self.controls.iter().all(|control| control.caught)
    }

    /// Whether every test and check holds.
    #[must_use]
    pub fn claim_holds(&self) -> bool {
        let exact = self.checks.iter().all(|check| check.violations == 0);
        exact && self.tightness.ok && self.tests.iter().all(|test| test.ok)
    }
}

/// Audits the plan of these settings. A correct build fails with probability at most [`Effort::false_alarm`], and with
/// 5e-5 more for the control with a short seed (1e-8 at 400,000 seals).
///
/// # Errors
/// See [`AuditError`].
pub fn run(settings: &Settings, effort: Effort) -> Result<Report, AuditError> {
    let mut report = audit_claim(settings, effort)?;
    report.controls = control::controls(report.claimed, effort)?;
    Ok(report)
}

/// The audit without the controls.
fn audit_claim(settings: &Settings, effort: Effort) -> Result<Report, AuditError> {
    effort.check()?;
    let tiny = tiny::tiny(settings)?;
    let conversation = Conversation::new(tiny.clone())?;
    let claimed = claimed(&tiny, conversation.plan().claim())?;
    let mut tally = Tally::default();
    let trial =
        Trial::new(claimed, conversation.planned(), effort, |second| conversation.run(second, &mut tally))?;
    let mut report = Report {
        claimed,
        observed: trial.tests.iter().map(|test| test.bound).fold(0.0, f64::max),
        effort,
        tests: trial.tests,
        tightness: trial.tightness,
        checks: checks(&tally, effort, repeats::repeated_seals(&tiny, effort.seals)?),
        controls: Vec::new(),
    };
    let violations = conversation.miscounted(&tally, effort.doubt());
    report.checks.push(Check { name: "what should count is in the counters, and nothing else", violations });
    if let Some(discovery) = settings.domain.discovery() {
        let verdict = keys::audit(settings, discovery, effort)?;
        report.tests.extend(verdict.tests);
        report.checks.extend(verdict.checks);
    }
    Ok(report)
}

fn checks(tally: &Tally, effort: Effort, repeats: u64) -> Vec<Check> {
    let limit = statistics::sign_limit(tally.signs.pairs, effort.doubt());
    let check = |name, violations| Check { name, violations };
    vec![
        check("answers inside a segment change through the position alone", tally.moved),
        check("every arrival takes its position", tally.shifted),
        check("the same question has the same answer", tally.wavered),
        check("sealed counters are the same in every view", tally.altered),
        check("bytes, merged views and restored streams hold the same sealed counters", tally.lost),
        check(
            "the signs of the noise of two seals are unrelated",
            u64::from(!tally.signs.are_unrelated(limit)),
        ),
        check("no noise repeats in as many seals as asked for", repeats),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.holds() { "HOLDS" } else { "FAILS" };
        writeln!(f, "{verdict}: claimed {}, shown at least {:.4}", self.claimed, self.observed)?;
        let Effort { runs, seals, false_alarm } = self.effort;
        writeln!(
            f,
            "{runs} runs on each of two neighbouring streams, {seals} seals; a correct build fails with"
        )?;
        writeln!(f, "probability at most {false_alarm:e}\n")?;
        writeln!(f, "{:<42} {:>7} {:>7} {:>8} {:>8}", "test", "TPR", "FPR", "bound", "limit")?;
        for test in &self.tests {
            let name = if test.forward { test.name } else { "  the other way round" };
            let Test { tpr, fpr, bound, limit, .. } = test;
            writeln!(f, "{name:<42} {tpr:>7.4} {fpr:>7.4} {bound:>8.4} {limit:>8.4}  {}", word(test.ok))?;
        }
        let Tightness { planned, upper, ok } = self.tightness;
        writeln!(f, "\nthe noise is planned to show {planned:.4}, shown at most {upper:.4}: {}", word(ok))?;
        for check in &self.checks {
            writeln!(f, "{}: {}", check.name, word(check.violations == 0))?;
        }
        for control in &self.controls {
            let by = control.by.unwrap_or("nothing");
            write!(
                f,
                "\ncontrol: {}: {}",
                control.name,
                if control.caught { "caught by " } else { "MISSED by all, " }
            )?;
            f.write_str(by)?;
        }
        Ok(())
    }
}

fn word(ok: bool) -> &'static str {
    if ok { "ok" } else { "FAILS" }
}

#[cfg(test)]
mod tests;
