//! Small wrong mechanisms that the tests of an audit must catch. They never touch the real sketch.

use crate::audit::conversation::{ASKED, Outcome, Signs, log_ratio};
use crate::audit::repeats::{count_repeats, hash};
use crate::audit::report::{AuditError, Claimed, Control, Effort};
use crate::audit::statistics::sign_limit;
use crate::audit::trial::Trial;
use crate::noise::generator::{Generator, Noise};
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::ratio::Ratio;

/// Rows of the toy; each key has one counter in each.
const ROWS: usize = 2;
/// Exact counts of the two keys without the changed event.
const COUNT: i32 = 5;
/// Counters that two ranges are compared by.
const COMPARED: usize = 64;
/// How often a seed that is too short repeats at least, on average.
const REPEATS: u64 = 10;

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
}

impl Mistake {
    const ALL: [(Self, &'static str); 6] = [
        (Self::HalfNoise, "half the noise"),
        (Self::NoNoise, "a sketch without noise"),
        (Self::AddRemoveNoise, "the noise of add/remove for replace-one"),
        (Self::NoisePerQuestion, "new noise for each question"),
        (Self::OpenAnswers, "answers from counters that are filling"),
        (Self::ExactTotals, "exact totals where they are private"),
    ];
}

/// Runs every control. Their budget does not depend on the plan's: it is one at which the runs have power.
pub(super) fn controls(claimed: Claimed, effort: Effort) -> Result<Vec<Control>, AuditError> {
    let mut controls = Vec::new();
    for (mistake, name) in Mistake::ALL {
        let tests = Toy::new(claimed, mistake).trial(effort)?.tests;
        let by = tests.iter().find(|test| !test.ok);
        controls.push(Control { name, caught: by.is_some(), by: by.map(|test| test.name) });
    }
    controls.push(noise_after_restore(claimed)?);
    controls.push(shared_noise(claimed, effort)?);
    controls.push(short_seed(claimed, effort.seals)?);
    Ok(controls)
}

/// Two keys with one counter in each of two rows, sealed once with a wrong mechanism.
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
        let shifts = if mistake == Mistake::ExactTotals { ROWS } else { 2 * ROWS } as u64;
        let (law, half, add_remove) = match claimed {
            Claimed::Epsilon(_) => (laplace(shifts), laplace(shifts / 2), laplace(shifts / 2)),
            Claimed::Mu(_) => (gaussian(shifts), gaussian(shifts.div_ceil(4)), gaussian(shifts / 2)),
        };
        let drawn = match mistake {
            Mistake::HalfNoise => half,
            Mistake::AddRemoveNoise => add_remove,
            _ => law,
        };
        Self { mistake, claimed, law, table: Table::new(drawn) }
    }

    pub(super) fn trial(&self, effort: Effort) -> Result<Trial, AuditError> {
        let mut generator = Noise::from_system().generator()?;
        let shifts = self.exact(true).iter().zip(self.exact(false)).map(|(a, b)| (a - b).abs()).sum::<i32>();
        let planned = match self.law {
            Law::Laplace { scale } => f64::from(shifts) / scale.to_f64(),
            Law::Gaussian { variance } => (f64::from(shifts) / variance as f64).sqrt(),
        };
        Trial::new(self.claimed, planned, effort, |second| Ok(self.run(second, &mut generator)))
    }

    /// The exact counters: those of the first key, then those of the second.
    fn exact(&self, second: bool) -> [i32; 2 * ROWS] {
        let adds = |key: usize| match (self.mistake, second) {
            (Mistake::ExactTotals, false) => false,
            (_, second) => key == usize::from(second),
        };
        std::array::from_fn(|cell| COUNT + i32::from(adds(cell / ROWS)))
    }

    fn sealed(&self, second: bool, generator: &mut Generator) -> [i32; 2 * ROWS] {
        let mut cells = self.exact(second);
        if self.mistake != Mistake::NoNoise {
            self.table.add_to(&mut cells, generator);
        }
        cells
    }

    fn run(&self, second: bool, generator: &mut Generator) -> Outcome {
        let sealed = self.sealed(second, generator);
        let mut again = |mistake: Mistake| {
            if self.mistake == mistake { self.sealed(second, generator) } else { sealed }
        };
        let mean = |values: [f64; ASKED]| values.iter().sum::<f64>() / ASKED as f64;
        let repeated = mean([(); ASKED].map(|()| contrast(&again(Mistake::NoisePerQuestion))));
        let exact = self.exact(second);
        let totals = if self.mistake == Mistake::ExactTotals { total(&exact) } else { 0.0 };
        let around = if self.mistake == Mistake::OpenAnswers { contrast(&exact) } else { 0.0 };
        Outcome { sealed: self.loss(&sealed), around, repeated, totals, slid: totals }
    }

    fn loss(&self, cells: &[i32]) -> f64 {
        let [first, second] = [false, true].map(|second| self.exact(second));
        let noise = |noisy: i32, exact: i32| f64::from(noisy) - f64::from(exact);
        let losses = cells.iter().zip(first).zip(second);
        losses.map(|((&y, first), second)| log_ratio(self.law, noise(y, first), noise(y, second))).sum()
    }
}

fn contrast(cells: &[i32]) -> f64 {
    let least = |cells: &[i32]| cells.iter().copied().fold(i32::MAX, i32::min);
    f64::from(least(&cells[ROWS..])) - f64::from(least(&cells[..ROWS]))
}

fn total(cells: &[i32]) -> f64 {
    f64::from(cells.iter().sum::<i32>()) / ROWS as f64
}

/// The noise that ε = 2 needs when so many counters move by one.
fn laplace(shifts: u64) -> Law {
    Law::Laplace { scale: Ratio::new(shifts, 2).expect("2 is not zero") }
}

/// The noise that μ = 1 needs when so many counters move by one.
fn gaussian(shifts: u64) -> Law {
    Law::Gaussian { variance: shifts }
}

/// A restored stream that seals what was sealed again.
fn noise_after_restore(claimed: Claimed) -> Result<Control, AuditError> {
    let toy = Toy::new(claimed, Mistake::NoisePerQuestion);
    let mut generator = Noise::from_system().generator()?;
    let sealed = toy.sealed(true, &mut generator);
    let caught = (0..ASKED).any(|_| toy.sealed(true, &mut generator) != sealed);
    let by = caught.then_some("sealed counters that differ after a restore");
    Ok(Control { name: "new noise after each restore", caught, by })
}

/// Two ranges sealed with the same noise.
fn shared_noise(claimed: Claimed, effort: Effort) -> Result<Control, AuditError> {
    let toy = Toy::new(claimed, Mistake::NoNoise);
    let mut generator = Noise::from_system().generator()?;
    let mut signs = Signs::default();
    for _ in 0..effort.runs.div_ceil(COMPARED) {
        let mut noise = [0; COMPARED];
        toy.table.add_to(&mut noise, &mut generator);
        signs.compare(noise.into_iter(), noise.into_iter());
    }
    let caught = !signs.are_unrelated(sign_limit(signs.pairs, effort.doubt()));
    Ok(Control { name: "noise shared by two ranges", caught, by: caught.then_some("signs of the noise") })
}

/// Seals keyed with a seed that is too short: 32 bits, or fewer where there are too few seals for ten repeats.
fn short_seed(claimed: Claimed, seals: usize) -> Result<Control, AuditError> {
    let toy = Toy::new(claimed, Mistake::NoNoise);
    let bits = ((seals as u64).pow(2) / 2 / REPEATS).ilog2().min(32);
    let mut seeds = Noise::from_system().generator()?;
    let seal = |_| {
        let seed = seeds.next_u64() >> (64 - bits);
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut noise = [0; COMPARED];
        toy.table.add_to(&mut noise, &mut Generator::new(&key));
        hash(&noise)
    };
    let caught = 0 < count_repeats((0..seals).map(seal).collect());
    let name = if bits == 32 { "a seed of 32 bits" } else { "a seed too short for so many seals" };
    Ok(Control { name, caught, by: caught.then_some("noise repeats") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: Effort = Effort { runs: 10_000, seals: 36_000, false_alarm: 1e-7 };

    #[test]
    fn the_toy_without_a_mistake_passes_every_test() {
        // A correct mechanism fails with probability at most 1e-7 each.
        for claimed in [Claimed::Epsilon(1.0), Claimed::Mu(1.0)] {
            let trial = Toy::new(claimed, Mistake::None).trial(EFFORT).expect("the system has randomness");
            assert!(trial.holds(), "{:#?}", trial.tests);
        }
    }

    #[test]
    fn every_control_is_caught() {
        // The nearest miss is the noise of add/remove under the Gaussian: μ = 1.41 against 1. With 10,000 runs the
        // limits cost 0.15 and a standard error is 0.02. The short seed repeats 19 times on average, and never with
        // probability 4e-9.
        for claimed in [Claimed::Epsilon(1.0), Claimed::Mu(1.0)] {
            for control in controls(claimed, EFFORT).expect("the system has randomness") {
                assert!(control.caught, "{claimed:?}: {control:?}");
            }
        }
    }
}
