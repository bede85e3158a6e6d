//! The error bounds of the paper, with its constants where it states them.

use crate::noise::law::Law;

/// The noise term ξ of the paper's theorem on the private count-min sketch.
#[must_use]
pub fn sketch_noise(relative_error: f64, failure_probability: f64, rho: f64) -> f64 {
    let log = (2.0 / failure_probability).ln();
    (2.0 / rho * log).sqrt() * (4.0 / (relative_error * failure_probability) * log).ln().sqrt()
}

/// Theorem on the private count-min sketch: with probability at least 1 - η an estimate over `items` items errs by
/// at most ζ · items + ξ.
#[must_use]
pub fn sketch_error(items: f64, relative_error: f64, failure_probability: f64, rho: f64) -> f64 {
    relative_error * items + sketch_noise(relative_error, failure_probability, rho)
}

/// The quantities of the paper's lemma on frequency.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperStructure<'a> {
    /// w, in items.
    pub window_len: u64,
    /// α.
    pub alpha: f64,
    /// ζ.
    pub relative_error: f64,
    /// η.
    pub failure_probability: f64,
    /// Length and ρ of each checkpoint, the whole substream first.
    pub checkpoints: &'a [(u64, f64)],
}

/// Lemma on frequency (its last equation before the constants are dropped), for the worst pair of partial ranges:
/// the error that an estimate exceeds with probability at most ([`parts`](frequency_parts)) · η.
#[must_use]
pub fn frequency_error(structure: &PaperStructure<'_>) -> f64 {
    let (zeta, eta) = (structure.relative_error, structure.failure_probability);
    let (whole_len, whole_rho) = structure.checkpoints[0];
    let whole = sketch_error(whole_len as f64, zeta, eta, whole_rho);
    let partial = structure
        .checkpoints
        .iter()
        .map(|&(len, rho)| (structure.alpha + zeta) * len as f64 + sketch_noise(zeta, eta, rho))
        .fold(0.0, f64::max);
    (frequency_parts(structure) - 2.0) * whole + 2.0 * partial
}

/// How many sketches a window needs at most: ⌈w/L⌉ + 1.
#[must_use]
pub fn frequency_parts(structure: &PaperStructure<'_>) -> f64 {
    structure.window_len.div_ceil(structure.checkpoints[0].0) as f64 + 1.0
}

/// The quantities of the paper's main theorem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asymptotic {
    /// w, in items.
    pub window_len: f64,
    /// m, the number of possible items.
    pub domain_len: f64,
    /// ζ.
    pub relative_error: f64,
    /// η.
    pub failure_probability: f64,
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

/// Main theorem: the error of a frequency for β = 1/2, up to the constant that the paper leaves open:
/// ζw + √(w ln(1/δ)) / ε · ln(wm / (ζη)).
#[must_use]
pub fn main_error(case: Asymptotic) -> f64 {
    let log = (case.window_len * case.domain_len / (case.relative_error * case.failure_probability)).ln();
    case.relative_error * case.window_len + (case.window_len * -case.delta.ln()).sqrt() / case.epsilon * log
}

/// What a minimum over `rows` rows of noisy counters errs by, except with probability `failure`, over `items` items:
/// some row has at most `failure`-quantile collisions by Markov's inequality, and all rows have bounded noise.
/// `columns` is `None` for identity counters, which do not collide.
#[must_use]
pub fn minimum_error(items: u64, rows: u32, columns: Option<u32>, law: Law, failure: f64) -> f64 {
    let Some(columns) = columns else {
        return law.tail_bound(failure);
    };
    let half = failure / 2.0;
    let collisions = items as f64 / f64::from(columns) * half.powf(-1.0 / f64::from(rows));
    collisions.min(items as f64) + law.tail_bound(half / f64::from(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_close(got: f64, wanted: f64) {
        assert!((got / wanted - 1.0).abs() < 1e-6, "got {got}, wanted {wanted}");
    }

    #[test]
    fn the_bounds_are_the_printed_formulas() {
        // By hand: ln(2/0.01) = 5.298317, ln(4/(0.001·0.01) · 5.298317) = 14.566609.
        check_close(
            sketch_noise(0.001, 0.01, 0.5),
            (4.0 * 5.298_317_367_f64).sqrt() * 14.566_609_118_f64.sqrt(),
        );
        check_close(sketch_error(1e5, 0.001, 0.01, 0.5), 100.0 + sketch_noise(0.001, 0.01, 0.5));
        let checkpoints = [(100, 0.9), (30, 0.01)];
        let structure = PaperStructure {
            window_len: 1000,
            alpha: 0.75,
            relative_error: 0.01,
            failure_probability: 0.1,
            checkpoints: &checkpoints,
        };
        let noise = |rho| sketch_noise(0.01, 0.1, rho);
        let partial = f64::max(0.76 * 100.0 + noise(0.9), 0.76 * 30.0 + noise(0.01));
        check_close(frequency_error(&structure), 9.0 * (1.0 + noise(0.9)) + 2.0 * partial);
    }

    #[test]
    fn the_main_bound_falls_with_epsilon_and_grows_with_the_root_of_the_window() {
        let case = Asymptotic {
            window_len: 1e6,
            domain_len: 25_600.0,
            relative_error: 1e-9,
            failure_probability: 0.1,
            epsilon: 1.0,
            delta: 1e-9,
        };
        let error = main_error(case);
        check_close(main_error(Asymptotic { epsilon: 2.0, ..case }) / error, 0.5);
        let wider = main_error(Asymptotic { window_len: 4e6, ..case });
        assert!(2.0 < wider / error && wider / error < 2.1);
    }
}
