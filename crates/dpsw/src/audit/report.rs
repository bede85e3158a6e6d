//! What an audit says.

use std::fmt;

use crate::error::{
    EntropyError, Fraction, IngestError, ParameterError, PartialError, PlanError, QueryError, StateError,
    StoreError,
};
use crate::words::{count, decimal, tiny};

/// The fewest runs and seals with which the controls are caught.
const EFFORT_MIN: usize = 2_000;
/// Limits on probabilities that one audit uses. Of 9 scores of the counters and 5 of the keys, each both ways, two limits:
/// 56. For the tightness 4, for a lone key 1, for three paths of counts with five outcomes each 30, for one such path in two
/// controls 20, for the signs of seals, of tails and of the control 3, for what counts 3, as sums of few draws are not quite
/// normal. Everything else is exact.
const LIMITS: f64 = 117.0;

/// The amount of work of an audit. The default takes some seconds.
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
    pub(super) fn check_limits(self) -> Result<(), AuditError> {
        for (name, value) in [("runs", self.runs), ("seals", self.seals)] {
            if value < EFFORT_MIN {
                return Err(AuditError::Effort { name, value });
            }
        }
        if 0.0 < self.false_alarm && self.false_alarm < 1.0 {
            return Ok(());
        }
        Err(ParameterError::Fraction { name: Fraction::FalseAlarm, value: self.false_alarm }.into())
    }

    pub(super) fn pilot_runs(self) -> usize {
        self.runs / 4
    }

    /// The probability with which each limit may be wrong.
    pub(super) fn doubt(self) -> f64 {
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
    /// A worker's counters were not made.
    #[error(transparent)]
    Partial(#[from] PartialError),
    /// A stream could not be saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// A note could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
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

/// The promise of the plan, in the measure in which it is tested.
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
            Self::Epsilon(value) => write!(f, "epsilon {}", decimal(*value)),
            Self::Mu(value) => write!(f, "mu {}", decimal(*value)),
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

/// The check that sealed counters show as much as they are planned to: an audit of the wrong counters would not.
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

impl Check {
    pub(super) fn new(name: &'static str, violations: u64) -> Self {
        Self { name, violations }
    }
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

impl Control {
    /// By what a test found wrong with the right mechanism and with the wrong one.
    pub(super) fn judge(name: &'static str, by: &'static str, right: u64, wrong: u64) -> Self {
        // A test that also rejects the right mechanism proves nothing.
        let caught = right == 0 && wrong != 0;
        Self { name, caught, by: caught.then_some(by) }
    }
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.holds() { "HOLDS" } else { "FAILS" };
        writeln!(
            f,
            "{verdict}: {} is claimed, and attacks show at least {:.4}",
            self.claimed, self.observed
        )?;
        let Effort { runs, seals, false_alarm } = self.effort;
        let (runs, seals) = (count(runs as u64, "run"), count(seals as u64, "seal"));
        writeln!(f, "{runs} on each of two streams that differ in one event, and {seals}.")?;
        writeln!(f, "A correct build fails with probability {} at most.\n", tiny(false_alarm))?;
        self.write_tests(f)?;
        let Tightness { planned, upper, ok } = self.tightness;
        writeln!(
            f,
            "\nThe noise is planned to lose {planned:.4}; at most {upper:.4} was lost: {}\n",
            verdict_word(ok)
        )?;
        writeln!(f, "What must always hold:")?;
        for check in &self.checks {
            writeln!(f, "  {}: {}", check.name, verdict_word(check.violations == 0))?;
        }
        write!(f, "\nWrong mechanisms that these tests must catch:")?;
        for control in &self.controls {
            let by = match (control.caught, control.by) {
                (true, by) => format!("caught by {}", by.unwrap_or("nothing")),
                (false, _) => "MISSED by all".to_owned(),
            };
            write!(f, "\n  {}: {by}", control.name)?;
        }
        Ok(())
    }
}

impl Report {
    fn write_tests(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "An attacker guesses which stream it was: how often that is right and how often a false"
        )?;
        writeln!(f, "alarm, the privacy loss that this shows, and the most that is claimed.\n")?;
        writeln!(
            f,
            "{:<42} {:>7} {:>7} {:>7} {:>7}",
            "what is looked at", "right", "false", "loss", "limit"
        )?;
        for test in &self.tests {
            let name = if test.forward { test.name } else { "  the other way round" };
            let Test { tpr, fpr, bound, limit, .. } = test;
            writeln!(
                f,
                "{name:<42} {tpr:>7.4} {fpr:>7.4} {bound:>7.4} {limit:>7.4}  {}",
                verdict_word(test.ok)
            )?;
        }
        Ok(())
    }
}

fn verdict_word(ok: bool) -> &'static str {
    if ok { "ok" } else { "FAILS" }
}
