//! What an audit of a release concludes from counts of one event under two neighbouring streams.

/// How often an event happened under the stream that it speaks for, and under the neighbour.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trials {
    pub(super) hits: usize,
    pub(super) false_hits: usize,
    pub(super) runs: usize,
}

impl Trials {
    /// Runs both sides; `hit` is told which stream to use: the one that the event speaks for, or the neighbour.
    pub(super) fn run(runs: usize, mut hit: impl FnMut(Side) -> bool) -> Self {
        let mut count = |side| (0..runs).filter(|_| hit(side)).count();
        Self { hits: count(Side::Stream), false_hits: count(Side::Neighbour), runs }
    }

    /// ln of the ratio of the shares.
    pub(super) fn loss(self) -> f64 {
        (self.hits as f64 / self.false_hits as f64).ln()
    }

    /// The loss is below this with probability at most 1e-6.
    pub(super) fn bound(self) -> f64 {
        let [hit, false_hit] = self.limits();
        (hit / false_hit).ln()
    }

    /// The δ at `epsilon` is below this with probability at most 1e-6.
    pub(super) fn delta_bound(self, epsilon: f64) -> f64 {
        let [hit, false_hit] = self.limits();
        hit - epsilon.exp() * false_hit
    }

    /// A lower limit of the one probability and an upper limit of the other (Clopper-Pearson, 5e-7 per side).
    fn limits(self) -> [f64; 2] {
        let doubt = 5e-7;
        [low(self.hits, self.runs, doubt), 1.0 - low(self.runs - self.false_hits, self.runs, doubt)]
    }

    /// A correct release passes except with probability 1e-6 for the bound. The nearness has a fixed seed; the runs
    /// should make 0.15 at least five standard errors.
    #[track_caller]
    pub(super) fn check_costs(self, epsilon: f64) {
        assert!(self.bound() <= epsilon, "{self:?} costs at least {}, not {epsilon}", self.bound());
        assert!((self.loss() - epsilon).abs() <= 0.15, "{self:?} costs {}, not {epsilon}", self.loss());
    }

    #[track_caller]
    pub(super) fn check_leaks(self, epsilon: f64) {
        assert!(epsilon < self.bound(), "{self:?} shows only {} of a leak beyond {epsilon}", self.bound());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Stream,
    Neighbour,
}

impl Side {
    pub(super) fn of<T>(self, stream: T, neighbour: T) -> T {
        if self == Self::Stream { stream } else { neighbour }
    }
}

/// The most revealing event: each cell in which the streams differ lies beyond its exact value, away from the
/// neighbour. Discrete Laplace noise calibrated to the distance gives a loss of exactly ε.
pub(super) fn reveals(released: &[i32], stream: &[i32], neighbour: &[i32]) -> bool {
    released
        .iter()
        .zip(stream.iter().zip(neighbour))
        .all(|(cell, (own, other))| if other < own { own <= cell } else { own == other || cell <= own })
}

/// The success probability at which `hits` or more of `runs` have probability `doubt`.
fn low(hits: usize, runs: usize, doubt: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    let logs: Vec<f64> = (0..=runs).scan(0.0, add_log).collect();
    let tail = |p: f64| -> f64 {
        let term = |k: usize| {
            let choices = logs[runs] - logs[k] - logs[runs - k];
            (choices + k as f64 * p.ln() + (runs - k) as f64 * (-p).ln_1p()).exp()
        };
        (hits..=runs).map(term).sum()
    };
    let (mut low, mut high) = (0.0, hits as f64 / runs as f64);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if tail(middle) < doubt { low = middle } else { high = middle }
    }
    low
}

/// ln k! from ln (k - 1)!.
fn add_log(sum: &mut f64, k: usize) -> Option<f64> {
    *sum += (k.max(1) as f64).ln();
    Some(*sum)
}

/// That the variance of the draws lies within five standard errors of the wanted one: a false alarm has
/// probability below 6e-7 where the sum of squares is near normal. `kurtosis` is that of the law: 6 for Laplace.
#[track_caller]
pub(super) fn check_variance(draws: &[f64], wanted: f64, kurtosis: f64) {
    let variance = draws.iter().map(|draw| draw * draw).sum::<f64>() / draws.len() as f64;
    let error = wanted * ((kurtosis - 1.0) / draws.len() as f64).sqrt();
    assert!((variance - wanted).abs() <= 5.0 * error, "variance {variance}, wanted {wanted} ± {error}");
}

/// That two sequences of independent draws are uncorrelated, within five standard errors.
#[track_caller]
pub(super) fn check_uncorrelated(a: &[f64], b: &[f64]) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let correlation = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    assert!(correlation.abs() <= 5.0 / (a.len() as f64).sqrt(), "correlation {correlation}");
}

mod tests {
    use dpsw::Noise;
    use dpsw::noise::Table;

    use super::*;
    use crate::baseline::budget::laplace_of;

    #[test]
    fn the_limit_agrees_with_the_closed_forms_and_the_usual_example() {
        assert_eq!(low(0, 10, 1e-3), 0.0);
        assert!((low(1000, 1000, 1e-3) - 1e-3_f64.powf(1e-3)).abs() < 1e-9);
        assert!((low(5, 10, 0.025) - 0.187_086).abs() < 1e-6);
    }

    /// A histogram of one item: (1, 0) or (0, 1).
    fn histogram(scale: u64) -> Trials {
        let table = Table::new(laplace_of(scale));
        let mut generator = Noise::seeded(1).generator().expect("seeded");
        Trials::run(20_000, |side| {
            let mut cells = side.of([1, 0], [0, 1]);
            table.add_to(&mut cells, &mut generator);
            reveals(&cells, &[1, 0], &[0, 1])
        })
    }

    #[test]
    fn a_histogram_costs_its_epsilon_and_half_the_noise_is_caught() {
        let trials = histogram(2);
        let share = |hits: usize| hits as f64 / trials.runs as f64;
        // Five standard errors of 20,000 runs.
        assert!((share(trials.hits) - 0.3875).abs() < 0.0173);
        assert!((share(trials.false_hits) - 0.1425).abs() < 0.0124);
        trials.check_costs(1.0);
        histogram(1).check_leaks(1.0);
    }
}
