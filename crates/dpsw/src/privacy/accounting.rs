//! What noise costs: zCDP as in the paper, exact Gaussian accounting, and the lattice sum that is exact for
//! discrete Gaussian noise on integer counters. `PRIVACY.md` has the arguments.

use std::f64::consts::{PI, SQRT_2};
use std::ops::Range;

use crate::privacy::parameters::{Delta, Epsilon, Rho};
use crate::ratio::Ratio;

/// Kept back from every floating-point budget, so that rounding errors fall on the side of more noise.
const MARGIN: f64 = 1e-12;

/// Kept back from δ when noise is calibrated on the lattice sum.
const LATTICE_MARGIN: f64 = 1e-6;

/// The paper's ρ for (ε, δ): the largest ρ with ρ + 2√(ρ ln(1/δ)) ≤ ε, in the form that does not cancel.
#[must_use]
pub fn paper_rho(epsilon: Epsilon, delta: Delta) -> Rho {
    let log = -delta.get().ln();
    let root = epsilon.get() / ((epsilon.get() + log).sqrt() + log.sqrt());
    Rho::new(root * root * (1.0 - MARGIN)).expect("epsilon is positive, so rho is")
}

/// The paper's conversion back: ρ-zCDP is (ρ + 2√(ρ ln(1/δ)), δ)-DP.
#[must_use]
pub fn paper_epsilon(rho: f64, delta: Delta) -> f64 {
    rho + 2.0 * (rho * -delta.get().ln()).sqrt()
}

/// The μ of the paper's ρ: √(2ρ).
#[must_use]
pub fn paper_mu(epsilon: Epsilon, delta: Delta) -> f64 {
    (2.0 * paper_rho(epsilon, delta).get()).sqrt()
}

/// The δ of ρ-zCDP at ε by the tighter conversion: the infimum over a > 1 of
/// exp((a - 1)(aρ - ε)) / (a - 1) · (1 - 1/a)^a.
#[must_use]
pub fn zcdp_delta(rho: f64, epsilon: f64) -> f64 {
    // In logarithms, as δ may be below the smallest float; by that of a - 1, as the best order may be near 1 or very
    // large.
    let log_delta = |log_excess: f64| {
        let excess = log_excess.exp();
        let order = 1.0 + excess;
        excess * (order * rho - epsilon) - log_excess + order * (-1.0 / order).ln_1p()
    };
    find_minimum(log_delta, -20.0, 20.0).exp().min(1.0)
}

/// The largest ρ that the tighter conversion allows for (ε, δ).
#[must_use]
pub fn zcdp_rho(epsilon: Epsilon, delta: Delta) -> Rho {
    let rho = find_largest(1e-18, 2.0 * epsilon.get(), |rho| zcdp_delta(rho, epsilon.get()) <= delta.get());
    Rho::new(rho * (1.0 - MARGIN)).expect("the search starts above zero")
}

/// The δ of the Gaussian mechanism with sensitivity over deviation `mu`, at `epsilon`.
#[must_use]
pub fn gaussian_delta(epsilon: f64, mu: f64) -> f64 {
    let first = log_phi(-epsilon / mu + mu / 2.0);
    let second = epsilon + log_phi(-epsilon / mu - mu / 2.0);
    // δ is a difference of two terms that may both be below the smallest float, so only their logarithms are
    // subtracted.
    // Rounding may put the second above the first where they meet.
    (first + (-(second - first).min(0.0).exp()).ln_1p()).exp()
}

/// The largest μ for (ε, δ) by exact Gaussian accounting.
#[must_use]
pub fn gaussian_mu(epsilon: Epsilon, delta: Delta) -> f64 {
    find_largest(1e-9, 1e4, |mu| gaussian_delta(epsilon.get(), mu) <= delta.get())
}

/// The δ at `epsilon` of discrete Gaussian noise with integer variance `variance` when a neighbour moves
/// `shifts` counters by one each. It takes the sum of the draws as a discrete Gaussian of its own, which errs by a
/// factor of 1 ± 1e-7 at variance 2 and of 1 ± 1e-60 from variance 16 on; below 1e-80 the sum is cut too early.
#[must_use]
pub fn lattice_delta(epsilon: f64, shifts: u64, variance: u64) -> f64 {
    let (shifts, variance) = (shifts as f64, variance as f64);
    let spread = shifts * variance;
    // The loss (2s + shifts) / (2 variance) exceeds epsilon from here on.
    let first = (epsilon * variance - shifts / 2.0).floor() + 1.0;
    let reach = 20.0 * spread.sqrt() + 1.0;
    let mut sum = 0.0;
    let mut s = first.max(-reach);
    while s <= reach {
        let loss = (2.0 * s + shifts) / (2.0 * variance);
        let term = (-s * s / (2.0 * spread)).exp() * -(epsilon - loss).min(0.0).exp_m1();
        sum += term;
        // From here on the terms are log-concave, so once they fall this far they stay below.
        if 0.0 < s && term < sum * 1e-18 {
            break;
        }
        s += 1.0;
    }
    sum / lattice_norm(spread)
}

/// Sum of exp(-s² / (2 spread)) over all integers.
fn lattice_norm(spread: f64) -> f64 {
    if 16.0 <= spread {
        return (2.0 * PI * spread).sqrt();
    }
    let reach = (20.0 * spread.sqrt()).ceil() as i64;
    (-reach..=reach).map(|s| (-(s as f64).powi(2) / (2.0 * spread)).exp()).sum()
}

/// The δ at `epsilon` when discrete Gaussian noise guards `shifts` counters with `variance` and, for the same
/// event, `key_shifts` other values with `key_variance`.
#[must_use]
pub fn joint_delta(epsilon: f64, shifts: u64, variance: u64, key_shifts: u64, key_variance: u64) -> f64 {
    let spread = key_shifts as f64 * key_variance as f64;
    let reach = (20.0 * spread.sqrt()) as i64;
    let weighted = |s: i64| {
        let loss = (2.0 * s as f64 + key_shifts as f64) / (2.0 * key_variance as f64);
        let weight = (-(s as f64).powi(2) / (2.0 * spread)).exp();
        weight * lattice_delta(epsilon - loss, shifts, variance)
    };
    (-reach..=reach).map(weighted).sum::<f64>() / lattice_norm(spread)
}

/// The smallest integer variance, at least 2, of discrete Gaussian noise that keeps `shifts` unit changes (ε, δ)-private.
/// Where the lattice sum does not reach (δ below 1e-80, variances above 2³³) the zCDP bound is used instead.
#[must_use]
pub fn gaussian_variance(epsilon: Epsilon, delta: Delta, shifts: u64) -> u64 {
    let fits = |variance: u64| {
        lattice_delta(epsilon.get(), shifts, variance) <= delta.get() * (1.0 - LATTICE_MARGIN)
    };
    let guess = shifts as f64 / gaussian_mu(epsilon, delta).powi(2);
    if delta.get() < 1e-80 || 2_f64.powi(33) < guess {
        return zcdp_variance(shifts, zcdp_rho(epsilon, delta).get()).max(2);
    }
    // The continuous law is off by less than a tenth wherever it was tried; the loops hold where it is not.
    let (mut low, mut high) = ((guess * 0.9) as u64, (guess * 1.1) as u64 + 2);
    while 0 < low && fits(low) {
        low /= 2;
    }
    while !fits(high) {
        high *= 2;
    }
    while low + 1 < high {
        let middle = low.midpoint(high);
        if fits(middle) { high = middle } else { low = middle }
    }
    high.max(2)
}

/// The variance of Gaussian noise that keeps changes whose squares add up to `squares` ρ-zCDP: `squares` / (2 ρ), rounded up
/// also where it is an integer but for rounding errors.
pub(crate) fn zcdp_variance(squares: u64, rho: f64) -> u64 {
    (squares as f64 / (2.0 * rho) * (1.0 + MARGIN)).ceil() as u64
}

/// The scale of discrete Laplace noise that keeps a change of L1 norm `l1` ε-private: exactly `l1`/ε.
/// `None` if the exact ratio does not fit.
#[must_use]
pub fn laplace_scale(epsilon: Epsilon, l1: u64) -> Option<Ratio> {
    // As an exact ratio, and by L1 alone: a rounded scale would leave a δ above 0 (PRIVACY.md: rule 4).
    epsilon.ratio().checked_divide(l1)
}

/// The most that one event can cost: the largest sum of costs over the ranges that cover one offset. An event at
/// that offset changes those sketches and no others.
#[must_use]
pub fn heaviest(ranges: &[(Range<u64>, f64)]) -> f64 {
    let cost_at = |offset: u64| -> f64 {
        ranges.iter().filter(|(range, _)| range.contains(&offset)).map(|(_, cost)| cost).sum()
    };
    // A sum grows only where a range starts, so that no other offset can be worse.
    ranges.iter().map(|(range, _)| cost_at(range.start)).fold(0.0, f64::max)
}

/// ln Φ(x), with small relative error far into the lower tail.
fn log_phi(x: f64) -> f64 {
    if -30.0 < x {
        return (0.5 * libm::erfc(-x / SQRT_2)).ln();
    }
    // Here erfc has lost its digits; three terms of its asymptotic series have enough.
    let square = x * x;
    -square / 2.0 - (-x * (2.0 * PI).sqrt()).ln() + (-1.0 / square + 3.0 / (square * square)).ln_1p()
}

/// Φ⁻¹, by bisection.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 || 1.0 <= p {
        return if p <= 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    bisect(-40.0, 40.0, |x| 0.5 * libm::erfc(-x / SQRT_2) < p)
}

/// Where `is_below` turns false.
pub(crate) fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    low
}

/// The largest value in [low, high] that fits, by bisection in the logarithm; `fits` must be monotone.
fn find_largest(low: f64, high: f64, fits: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low.ln(), high.ln());
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if fits(middle.exp()) { low = middle } else { high = middle }
    }
    low.exp()
}

/// The smallest value of a unimodal function on [low, high], by ternary search.
fn find_minimum(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..200 {
        let third = (high - low) / 3.0;
        if f(low + third) < f(high - third) { high -= third } else { low += third }
    }
    f(f64::midpoint(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("in range")
    }

    fn delta(value: f64) -> Delta {
        Delta::new(value).expect("in range")
    }

    fn tiny() -> Delta {
        delta(10_f64.powf(-10.5))
    }

    #[track_caller]
    fn check_close(got: f64, wanted: f64, tolerance: f64) {
        assert!((got - wanted).abs() <= tolerance, "got {got}, wanted {wanted} within {tolerance}");
    }

    #[test]
    fn rho_and_mu_agree_with_the_table_of_the_conversions() {
        for (value, rho, mu_paper, mu_tight, mu_exact) in [
            (0.1, 0.000_103, 0.01437, 0.01697, 0.01782),
            (0.5, 0.002_559, 0.07154, 0.08094, 0.08473),
            (1.0, 0.010_132, 0.14235, 0.15822, 0.16538),
            (2.0, 0.039_734, 0.28190, 0.30784, 0.32123),
            (4.0, 0.153_029, 0.55322, 0.59373, 0.61823),
        ] {
            check_close(paper_rho(epsilon(value), tiny()).get(), rho, 6e-7);
            check_close(paper_mu(epsilon(value), tiny()), mu_paper, 6e-6);
            check_close((2.0 * zcdp_rho(epsilon(value), tiny()).get()).sqrt(), mu_tight, 6e-6);
            check_close(gaussian_mu(epsilon(value), tiny()), mu_exact, 6e-6);
        }
        check_close(paper_rho(epsilon(1.0), tiny()).get(), 0.010_131_872, 6e-10);
        check_close(gaussian_mu(epsilon(1.0), tiny()), 0.165_380_39, 6e-9);
        check_close(gaussian_mu(epsilon(0.1), tiny()), 0.017_820_42, 6e-9);
        check_close(gaussian_mu(epsilon(2.0), delta(1e-6)), 0.448_334_74, 6e-9);
        for (value, mu) in [(0.1, 0.02754), (0.5, 0.12411), (1.0, 0.23670), (4.0, 0.83786)] {
            check_close(gaussian_mu(epsilon(value), delta(1e-6)), mu, 6e-6);
        }
    }

    #[test]
    fn the_paper_conversion_there_and_back_never_exceeds_epsilon() {
        for value in [1e-6, 0.01, 0.3, 1.0, 7.0, 1000.0] {
            for d in [1e-15, 1e-6, 0.1] {
                let back = paper_epsilon(paper_rho(epsilon(value), delta(d)).get(), delta(d));
                assert!(back <= value && value * (1.0 - 1e-9) < back, "{value} became {back}");
            }
        }
    }

    #[test]
    fn the_smallest_variances_agree_with_the_table() {
        for (rows, variances) in [
            (1, [6298, 279, 74, 20]),
            (2, [12596, 558, 147, 39]),
            (3, [18894, 836, 220, 59]),
            (4, [25192, 1115, 293, 78]),
            (5, [31490, 1393, 366, 97]),
        ] {
            for (value, variance) in [0.1, 0.5, 1.0, 2.0].into_iter().zip(variances) {
                assert_eq!(gaussian_variance(epsilon(value), tiny(), 2 * rows), variance);
            }
        }
    }

    #[test]
    fn extreme_budgets_are_calibrated_in_time_and_never_too_low() {
        for d in [1e-300, 1e-100, 1e-10, 0.4] {
            for value in [1e-6, 1e-3, 8.0, 1e6] {
                let variance = gaussian_variance(epsilon(value), delta(d), 2);
                assert!(2 <= variance);
                // The zCDP bound is looser, so it asks for at least as much noise.
                let loose = 1.0 / zcdp_rho(epsilon(value), delta(d)).get();
                assert!(
                    variance as f64 <= loose.max(2.0) * (1.0 + 1e-9) + 1.0,
                    "epsilon {value}, delta {d:e}"
                );
                if 1e-80 < d && variance < 1 << 20 {
                    assert!(lattice_delta(value, 2, variance) <= d);
                }
            }
        }
    }

    #[test]
    fn the_lattice_sum_equals_the_convolved_law() {
        // Two unit shifts, variance 3: the law of X1 - X2 by direct convolution.
        let variance = 3.0_f64;
        let weight = |k: i64| (-(k as f64).powi(2) / (2.0 * variance)).exp();
        let norm: f64 = (-60..=60).map(weight).sum();
        for value in [0.01, 0.1, 0.7, 2.0] {
            let mut sum = 0.0;
            for s in -60..=60_i64 {
                let ways = (-60..=60).map(|x| weight(x) * weight(s - x)).sum::<f64>();
                let loss = (2.0 * s as f64 + 2.0) / (2.0 * variance);
                sum += ways / (norm * norm) * (1.0 - (value - loss).exp()).max(0.0);
            }
            check_close(lattice_delta(value, 2, 3) / sum, 1.0, 1e-6);
        }
        // From here on the sum over all integers equals the integral far beyond the last digit.
        check_close(lattice_norm(15.9) / (2.0 * PI * 15.9).sqrt(), 1.0, 1e-12);
    }

    #[test]
    fn a_variance_that_fits_by_less_than_the_margin_is_not_taken() {
        let of_variance = |variance| lattice_delta(1.0, 6, variance);
        for (over, wanted) in [(5e-7, 221), (2e-6, 220)] {
            let delta = delta(of_variance(220) * (1.0 + over));
            assert_eq!(gaussian_variance(epsilon(1.0), delta, 6), wanted, "{over:e} above");
        }
        let rho = zcdp_rho(epsilon(1.0), tiny()).get();
        let fits = |rho: f64| zcdp_delta(rho, 1.0) <= tiny().get();
        assert!(fits(rho * (1.0 + 5e-13)) && !fits(rho * (1.0 + 2e-12)));
    }

    #[test]
    fn joint_noise_of_sketch_and_keys_agrees_with_the_appendix() {
        for (value, variance, key_variance) in [(0.5, 934, 2802), (1.0, 246, 736), (2.0, 65, 195)] {
            let limit = 0.9 * tiny().get() * (1.0 - 1e-6);
            let cost = |variance| joint_delta(value, 6, variance, 2, key_variance);
            assert!(cost(variance) <= limit && limit < cost(variance - 1), "epsilon {value}");
        }
    }

    #[test]
    fn the_variance_of_zcdp_is_rounded_up_and_more_than_an_integer_quotient() {
        for (squares, rho, variance) in
            [(6, 0.25, 13), (6, 0.24, 13), (7, 0.25, 15), (13, 1.0, 7), (90, 0.5, 91)]
        {
            assert_eq!(zcdp_variance(squares, rho), variance, "{squares} / (2 x {rho})");
        }
    }

    #[test]
    fn laplace_noise_agrees_with_the_table_of_deviations() {
        for (value, deviations) in [(1.0, [2.8, 5.6, 8.5, 11.3]), (0.1, [28.3, 56.6, 84.9, 113.1])] {
            for (rows, wanted) in (1..).zip(deviations) {
                let scale = laplace_scale(epsilon(value), 2 * rows).expect("fits").to_f64();
                let q = (-1.0 / scale).exp();
                check_close((2.0 * q).sqrt() / (1.0 - q), wanted, 0.06);
            }
        }
        // Averaged over rows, Laplace is quieter up to 9 rows at delta 10^-10.5 and up to 4 at 1e-6.
        for (d, last) in [(tiny(), 9), (delta(1e-6), 4)] {
            let quieter = |rows: u64| {
                let scale = 2.0 * rows as f64;
                2.0 * scale * scale < gaussian_variance(epsilon(1.0), d, 2 * rows) as f64
            };
            assert!(quieter(last) && !quieter(last + 1));
        }
    }

    #[test]
    fn a_delta_below_the_reach_of_the_lattice_sum_is_kept_by_zcdp() {
        let least = delta(1e-90);
        for value in [0.1, 1.0, 5.0] {
            let rho = zcdp_rho(epsilon(value), least).get();
            assert_eq!(gaussian_variance(epsilon(value), least, 2), zcdp_variance(2, rho));
        }
    }

    #[test]
    fn far_into_the_tail_the_logarithm_of_phi_agrees_with_erfc() {
        // The series leaves out 15/x⁶, which is below 2e-8 here; beyond -38 erfc is zero.
        for x in [-30.5, -31.0, -33.0, -37.0] {
            check_close(log_phi(x), (0.5 * libm::erfc(-x / SQRT_2)).ln(), 2e-8);
        }
        check_close(log_phi(-40.0), -804.608_442_013_8, 4e-9);
    }

    #[test]
    fn quantiles_of_certain_and_impossible_events_are_infinite() {
        for (p, wanted) in
            [(0.0, f64::NEG_INFINITY), (-0.1, f64::NEG_INFINITY), (1.0, f64::INFINITY), (1.1, f64::INFINITY)]
        {
            assert_eq!(normal_quantile(p), wanted, "{p}");
        }
    }

    #[test]
    fn only_the_ranges_over_one_offset_are_paid_together() {
        let share = |range, cost| (range, cost);
        let ranges = [share(0..100, 0.5), share(0..30, 0.2), share(70..100, 0.3), share(90..100, 0.1)];
        check_close(heaviest(&ranges), 0.9, 1e-12);
        check_close(heaviest(&[share(0..10, 0.5), share(10..20, 0.4)]), 0.5, 1e-12);
    }
}
