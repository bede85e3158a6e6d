//! How far an error reaches: sums of independent noises lie between Laplace's law and the normal one.
//!
//! A sum with a known variance and fourth cumulant is taken for the symmetric law of the same variance and fourth cumulant
//! whose cumulant function is K(s) = -n ln(1 - s² / 2n) in standard errors: n equal Laplace draws, for any n above 0. Its
//! tail and its density have closed saddlepoint forms. docs/design/estimation.md says how near they come.

use std::f64::consts::{PI, SQRT_2};
use std::sync::LazyLock;

use crate::noise::law::Law;
use crate::privacy::accounting::bisect;

/// Variance and fourth cumulant: both add up over independent parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Moments {
    pub(crate) variance: f64,
    pub(crate) fourth: f64,
}

impl Moments {
    /// Those of so many draws from a law, added up.
    pub(crate) fn of_draws(law: Law, draws: f64) -> Self {
        Self { variance: draws * law.variance(), fourth: draws * law.fourth_cumulant() }
    }

    /// Those of the same times a factor, by its square.
    pub(crate) fn times_root(self, square: f64) -> Self {
        Self { variance: square * self.variance, fourth: square * square * self.fourth }
    }

    /// Those of the mean of so many.
    pub(crate) fn mean_of(self, count: f64) -> Self {
        Self { variance: self.variance / count, fourth: self.fourth / count.powi(3) }
    }

    /// Those of values around their mean; `free` of them are free.
    pub(crate) fn measured(squares: f64, fourths: f64, free: f64) -> Self {
        let variance = squares / free;
        Self { variance, fourth: (fourths / free - 3.0 * variance * variance).max(0.0) }
    }
}

impl std::ops::AddAssign for Moments {
    fn add_assign(&mut self, other: Self) {
        self.variance += other.variance;
        self.fourth += other.fourth;
    }
}

/// The law of an error in standard errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tail {
    /// 3 / n: the fourth cumulant over the squared variance; 0 for the normal law.
    excess: f64,
}

/// More than any sum of noises has; the formulas still hold.
const EXCESS_MAX: f64 = 16.0;
/// Below this the law is the normal one for every purpose.
const EXCESS_MIN: f64 = 1e-6;
/// Where the two terms of the tail's formula cancel, its value at 0 and its slope are used.
const NEAR_ZERO: f64 = 0.05;
/// Farther out than any quantile that is asked for.
const FAR: f64 = 400.0;

impl Tail {
    pub(crate) const NORMAL: Self = Self { excess: 0.0 };

    /// The law of a sum with these moments.
    pub(crate) fn new(moments: Moments) -> Self {
        // Exact counters have no variance: the quotient is no number, and there is no tail.
        let excess = moments.fourth / (moments.variance * moments.variance);
        Self { excess: if excess.is_finite() { excess.clamp(0.0, EXCESS_MAX) } else { 0.0 } }
    }

    /// The saddlepoint of a distance: s with K'(s) = s / (1 - s² / 2n) = z, the root of a quadratic.
    fn find_saddlepoint(self, z: f64) -> Point {
        let half = self.excess / 6.0;
        if self.excess < EXCESS_MIN {
            return Point { s: z, cumulant: z * z / 2.0, second: 1.0 };
        }
        // The form of the root that does not cancel where the law is nearly normal.
        let s = 2.0 * z / (1.0 + (1.0 + 4.0 * z * z * half).sqrt());
        let rest = 1.0 - s * s * half;
        Point { s, cumulant: -rest.ln() / (2.0 * half), second: (2.0 - rest) / (rest * rest) }
    }

    /// The density at a distance.
    pub(crate) fn density(self, z: f64) -> f64 {
        let z = z.abs();
        let Point { s, cumulant, second } = self.find_saddlepoint(z);
        (cumulant - s * z).exp() / (2.0 * PI * second).sqrt()
    }

    /// The probability of an error above `z` ≥ 0 standard errors (Lugannani and Rice).
    pub(crate) fn chance_beyond(self, z: f64) -> f64 {
        let Point { s, cumulant, second } = self.find_saddlepoint(z);
        // Rounding may leave less than nothing near 0.
        let r = (2.0 * (s * z - cumulant)).max(0.0).sqrt();
        if r < NEAR_ZERO {
            return 0.5 - z * self.density(0.0);
        }
        let density = (-r * r / 2.0).exp() / (2.0 * PI).sqrt();
        libm::erfc(r / SQRT_2) / 2.0 + density * (1.0 / (s * second.sqrt()) - 1.0 / r)
    }

    /// The standard errors that an error exceeds with this probability, below 1/2, on one side.
    pub(crate) fn reach_at(self, probability: f64) -> f64 {
        bisect(0.0, FAR, |z| probability < self.chance_beyond(z))
    }

    /// The standard errors within which an error stays with probability 95 %, to four digits: from a table.
    pub(crate) fn reach_95(self) -> f64 {
        let place = self.excess * STEPS_PER_EXCESS;
        let before = (place as usize).min(REACHES_95.len() - 2);
        let [one, next] = [REACHES_95[before], REACHES_95[before + 1]];
        one + (next - one) * (place - before as f64)
    }
}

/// The saddlepoint of a distance, with the cumulant function there and its second derivative.
struct Point {
    s: f64,
    cumulant: f64,
    second: f64,
}

const STEPS_PER_EXCESS: f64 = 8.0;

static REACHES_95: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let steps = (EXCESS_MAX * STEPS_PER_EXCESS) as usize;
    (0..=steps).map(|step| Tail { excess: step as f64 / STEPS_PER_EXCESS }.reach_at(0.025)).collect()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Ratio;

    fn of(draws: f64) -> Tail {
        Tail { excess: 3.0 / draws }
    }

    /// P[error > z standard errors] of sums of Laplace draws with these weights and scale 20, by inversion of the
    /// characteristic function.
    #[test]
    fn tails_of_sums_of_noises_are_met() {
        let law = Law::Laplace { scale: Ratio::new(20, 1).expect("a ratio") };
        let edges = [vec![0.5], vec![1.0; 4], vec![1.5]].concat();
        for (weights, z, exact) in [
            (vec![1.0], 1.0, 0.120),
            (vec![1.0], 1.96, 0.0312),
            (vec![1.0], 4.0, 1.71e-3),
            (vec![1.0; 2], 1.96, 0.0292),
            (vec![1.0; 2], 4.0, 8.57e-4),
            (vec![1.0; 5], 1.96, 0.0276),
            (vec![1.0; 5], 4.0, 3.05e-4),
            (vec![1.0; 5], 6.0, 1.96e-6),
            (vec![1.0; 20], 4.0, 8.42e-5),
            (edges.clone(), 1.96, 0.0272),
            (edges, 4.0, 3.40e-4),
        ] {
            let mut moments = Moments::default();
            weights
                .iter()
                .for_each(|weight| moments += Moments::of_draws(law, 1.0).times_root(weight * weight));
            let got = Tail::new(moments).chance_beyond(z);
            assert!((got / exact - 1.0).abs() < 0.06, "{weights:?}, {z}: {got} {exact}");
        }
    }

    #[test]
    fn without_a_fourth_cumulant_the_law_is_normal() {
        for (z, exact) in [(0.0, 0.5), (0.02, 0.492_021_7), (1.959_964, 0.025), (4.0, 3.167_1e-5)] {
            assert!((Tail::NORMAL.chance_beyond(z) / exact - 1.0).abs() < 1e-4, "{z}");
        }
        assert!((Tail::NORMAL.reach_95() - 1.959_964).abs() < 1e-4);
        assert!((Tail::NORMAL.density(1.0).ln() + 0.5 + (2.0 * PI).ln() / 2.0).abs() < 1e-12);
        let tail = Tail::new(Moments { variance: 0.0, fourth: 0.0 });
        assert_eq!(tail, Tail::NORMAL);
    }

    #[test]
    fn densities_are_the_slopes_of_tails() {
        for draws in [1.0, 3.0, 20.0, 1e9] {
            for z in [1.0, 2.0, 5.0] {
                let slope = (of(draws).chance_beyond(z - 1e-3) - of(draws).chance_beyond(z + 1e-3)) / 2e-3;
                let density = of(draws).density(z);
                assert!((slope / density - 1.0).abs() < 0.1, "{draws}, {z}: {slope} {density}");
                assert_eq!(of(draws).density(-z), of(draws).density(z));
            }
        }
    }

    #[test]
    fn reaches_are_where_tails_have_their_probability() {
        for draws in [0.5, 1.0, 5.0, 1e9] {
            for probability in [0.4, 0.025, 1e-6, 1e-12] {
                let reach = of(draws).reach_at(probability);
                assert!(
                    (of(draws).chance_beyond(reach) / probability - 1.0).abs() < 1e-6,
                    "{draws}, {probability}"
                );
            }
            assert!((of(draws).reach_95() - of(draws).reach_at(0.025)).abs() < 2e-3, "{draws}");
        }
        assert!(of(1.0).reach_95() > of(5.0).reach_95());
    }

    #[test]
    fn moments_add_up_like_independent_parts() {
        let one = Moments { variance: 2.0, fourth: 12.0 };
        let mut sum = one;
        sum += one;
        assert_eq!((sum.variance, sum.fourth), (4.0, 24.0));
        assert_eq!(sum.mean_of(2.0), Moments { variance: 2.0, fourth: 3.0 });
        assert_eq!(one.times_root(4.0), Moments { variance: 8.0, fourth: 192.0 });
        // A coin of -1 and 1 has less of a tail than the normal law: none is claimed.
        assert_eq!(Moments::measured(100.0, 100.0, 100.0), Moments { variance: 1.0, fourth: 0.0 });
    }
}
