//! Small wrong mechanisms that the tests of an audit must catch. They never touch the real sketch.

use crate::audit::conversation::{ASKED, Outcome, cost_of, log_ratio};
use crate::audit::report::{AuditError, Claimed, Control, Effort};
use crate::audit::trial::Trial;
use crate::audit::{pipeline, search};
use crate::noise::generator::{Generator, Noise};
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::ratio::Ratio;

/// Rows of the toy; each key has one counter in each.
const ROWS: usize = 2;
/// Exact counts of the two keys without the changed event.
const COUNT: i32 = 5;
/// Substreams that a window touches; a wrong noise is made for one of them.
const TOUCHED: usize = 21;

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    #[cfg(test)]
    None,
    HalfNoise,
    NoNoise,
    AddRemoveNoise,
    NoisePerQuestion,
    OpenAnswers,
    ExactTotals,
    OneSubstream,
}

impl Mistake {
    const ALL: [(Self, &'static str); 7] = [
        (Self::HalfNoise, "half the noise"),
        (Self::NoNoise, "a sketch without noise"),
        (Self::AddRemoveNoise, "the noise of add/remove for replace-one"),
        (Self::NoisePerQuestion, "new noise for each question"),
        (Self::OpenAnswers, "answers from counters that are filling"),
        (Self::ExactTotals, "exact totals where they are private"),
        (Self::OneSubstream, "the noise of one substream for all that a user's window touches"),
    ];
}

/// Runs with which the weakest mistake, √2 μ instead of μ = 1, is caught whatever the effort. TPR and FPR each have a
/// standard error of 0.0154 in normal quantiles, and each is taken z of them on the safe side. Of the 0.41 that it shows too
/// much, 0.41 - 2 z 0.0154 is left: 0.24 for a false alarm of 1e-6 (z = 5.5) and 0.18 for one of 1e-12 (z = 7.6), which is 11
/// and 8 standard errors (0.022) of the difference.
const RUNS_MIN: usize = 8_000;

/// Runs every control. Their budget does not depend on the plan's: it is one at which the runs have power.
pub(super) fn run_controls(claimed: Claimed, effort: Effort) -> Result<Vec<Control>, AuditError> {
    let enough = Effort { runs: effort.runs.max(RUNS_MIN), ..effort };
    let mut controls = Vec::new();
    for (mistake, name) in Mistake::ALL {
        let tests = Toy::new(claimed, mistake).run_trial(enough)?.tests;
        let by = tests.iter().find(|test| !test.ok);
        controls.push(Control { name, caught: by.is_some(), by: by.map(|test| test.name) });
    }
    controls.extend(pipeline::run_controls(effort)?);
    controls.extend(search::run_controls(enough)?);
    Ok(controls)
}

/// Two keys with one counter in each of two rows, sealed with a wrong mechanism: once, or once in each substream that a
/// user's window touches.
pub(super) struct Toy {
    mistake: Mistake,
    claimed: Claimed,
    /// What the claim needs.
    law: Law,
    /// What is drawn.
    table: Table,
}

impl Toy {
    /// ε = 2 or μ = 1.
    pub(super) fn new(claimed: Claimed, mistake: Mistake) -> Self {
        let claimed = match claimed {
            Claimed::Epsilon(_) => Claimed::Epsilon(2.0),
            Claimed::Mu(_) => Claimed::Mu(1.0),
        };
        // Totals are private under add/remove, where an event moves one counter of each row (PRIVACY.md: rule 18).
        let shifts = match mistake {
            Mistake::ExactTotals => ROWS,
            Mistake::OneSubstream => 2 * ROWS * TOUCHED,
            _ => 2 * ROWS,
        } as u64;
        // Half of the noise is half of the scale, and for Gaussian noise a quarter of the variance.
        let drawn_for = match (mistake, claimed) {
            (Mistake::HalfNoise, Claimed::Mu(_)) => shifts.div_ceil(4),
            (Mistake::HalfNoise | Mistake::AddRemoveNoise, _) => shifts / 2,
            (Mistake::OneSubstream, _) => shifts / TOUCHED as u64,
            _ => shifts,
        };
        let table = Table::new(law_for(claimed, drawn_for));
        Self { mistake, claimed, law: law_for(claimed, shifts), table }
    }

    pub(super) fn run_trial(&self, effort: Effort) -> Result<Trial, AuditError> {
        let mut generator = Noise::from_system().generator()?;
        let cost: f64 = self.exact_pairs().map(|exact| cost_of(self.law, exact)).sum();
        let planned = if let Claimed::Epsilon(_) = self.claimed { cost } else { cost.sqrt() };
        Trial::new(self.claimed, planned, effort, |second| Ok(self.run_once(second, &mut generator)))
    }

    /// The exact counters: those of the first key, then those of the second.
    fn exact_cells(&self, second: bool) -> Vec<i32> {
        let each = if self.mistake == Mistake::OneSubstream { ROWS * TOUCHED } else { ROWS };
        let mut cells = vec![COUNT; 2 * each];
        if second || self.mistake != Mistake::ExactTotals {
            let key = usize::from(second);
            cells[key * each..(key + 1) * each].fill(COUNT + 1);
        }
        cells
    }

    /// Each exact counter on the first stream and on the second.
    fn exact_pairs(&self) -> impl Iterator<Item = [i32; 2]> {
        self.exact_cells(false).into_iter().zip(self.exact_cells(true)).map(<[i32; 2]>::from)
    }

    fn seal_cells(&self, second: bool, generator: &mut Generator) -> Vec<i32> {
        let mut cells = self.exact_cells(second);
        if self.mistake != Mistake::NoNoise {
            self.table.add_to(&mut cells, generator);
        }
        cells
    }

    fn run_once(&self, second: bool, generator: &mut Generator) -> Outcome {
        let sealed = self.seal_cells(second, generator);
        let answers = [(); ASKED].map(|()| match self.mistake {
            Mistake::NoisePerQuestion => contrast(&self.seal_cells(second, generator)),
            _ => contrast(&sealed),
        });
        let repeated = answers.iter().sum::<f64>() / ASKED as f64;
        let exact = self.exact_cells(second);
        let totals = if self.mistake == Mistake::ExactTotals { row_total(&exact) } else { 0.0 };
        let around = if self.mistake == Mistake::OpenAnswers { contrast(&exact) } else { 0.0 };
        let sealed = self.sum_losses(&sealed);
        // An exact total also shows in a slid threshold and in an error bound.
        Outcome { sealed, own: 0.0, around, repeated, totals, slid: totals, bound: totals, levels: 0.0 }
    }

    fn sum_losses(&self, cells: &[i32]) -> f64 {
        cells.iter().zip(self.exact_pairs()).map(|(&cell, exact)| log_ratio(self.law, cell, exact)).sum()
    }
}

fn contrast(cells: &[i32]) -> f64 {
    let (first, second) = cells.split_at(cells.len() / 2);
    let [first, second] = [first, second].map(|cells| cells.iter().copied().fold(i32::MAX, i32::min));
    f64::from(second) - f64::from(first)
}

fn row_total(cells: &[i32]) -> f64 {
    f64::from(cells.iter().sum::<i32>()) / ROWS as f64
}

/// The noise that ε = 2 or μ = 1 needs when this many counters move by one.
fn law_for(claimed: Claimed, shifts: u64) -> Law {
    match claimed {
        Claimed::Epsilon(_) => Law::Laplace { scale: Ratio::new(shifts, 2).expect("2 is not zero") },
        Claimed::Mu(_) => Law::Gaussian { variance: shifts },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: Effort = Effort { runs: 10_000, seals: 36_000, false_alarm: 1e-7 };

    #[test]
    fn the_toy_without_a_mistake_passes_every_test() {
        // A correct mechanism fails with probability at most 1e-7 each.
        for claimed in [Claimed::Epsilon(1.0), Claimed::Mu(1.0)] {
            let trial =
                Toy::new(claimed, Mistake::None).run_trial(EFFORT).expect("the system has randomness");
            assert!(trial.holds(), "{:#?}", trial.tests);
        }
    }

    #[test]
    fn every_control_is_caught() {
        // The nearest miss is the noise of add/remove under the Gaussian: μ = 1.41 against 1. With 10,000 runs the
        // limits cost 0.15 and a standard error is 0.02. The short seed repeats 19 times on average, and never with
        // probability 4e-9.
        for claimed in [Claimed::Epsilon(1.0), Claimed::Mu(1.0)] {
            for control in run_controls(claimed, EFFORT).expect("the system has randomness") {
                assert!(control.caught, "{claimed:?}: {control:?}");
            }
        }
    }
}
