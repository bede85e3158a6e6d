//! The boundaries of a law's table, certified by interval arithmetic on big integers.

use dashu_int::UBig;

use crate::noise::law::Law;

/// floor(2^bits F(z)) for z from -reach - 1 to reach, certified: the precision is raised until each enclosure holds
/// no multiple of 2^-bits. F(z) is irrational, so this ends, and F(-z - 1) = 1 - F(z) gives the upper half.
pub(crate) fn certify_boundaries(law: Law, reach: u64, bits: usize) -> Vec<UBig> {
    raise_precision(law, reach, bits, GUARD_BITS)
}

/// Digits beyond those of the boundaries at first: more than rounding takes from any table.
const GUARD_BITS: usize = 96;
/// A boundary needs more of them with probability below 2⁻¹⁰⁰⁰.
const GUARD_BITS_MAX: usize = 1536;

/// The same, from this precision on.
fn raise_precision(law: Law, reach: u64, bits: usize, mut guard: usize) -> Vec<UBig> {
    let lower = loop {
        if let Some(lower) = certify_floors(&lower_half(law, reach, bits + guard), guard) {
            break lower;
        }
        guard *= 2;
        assert!(guard <= GUARD_BITS_MAX, "no boundary is so near to a multiple of 2^-bits");
    };
    // No F is a multiple of 2^-bits, so the floor of 2^bits (1 - F) is this minus the floor of 2^bits F.
    let all = (UBig::ONE << bits) - UBig::ONE;
    let upper: Vec<UBig> = lower.iter().rev().map(|floor| &all - floor).collect();
    [lower, upper].concat()
}

fn certify_floors(enclosures: &[Enclosure], guard: usize) -> Option<Vec<UBig>> {
    let floor = |enclosure: &Enclosure| {
        let low = &enclosure.low >> guard;
        (low == &enclosure.high >> guard).then_some(low)
    };
    enclosures.iter().map(floor).collect()
}

/// low ≤ 2^bits x < high + 1 for a real x.
#[derive(Debug, Clone)]
struct Enclosure {
    low: UBig,
    high: UBig,
}

impl Enclosure {
    fn one(bits: usize) -> Self {
        Self { low: UBig::ONE << bits, high: UBig::ONE << bits }
    }

    fn times(&self, other: &Self, bits: usize) -> Self {
        // Factors lie below their high + 1, so that the product of these ends is the first number out of reach.
        let high = (&self.high + UBig::ONE) * (&other.high + UBig::ONE);
        Self { low: (&self.low * &other.low) >> bits, high: high >> bits }
    }

    fn plus(&self, other: &Self) -> Self {
        Self { low: &self.low + &other.low, high: &self.high + &other.high + UBig::ONE }
    }

    /// The quotient, where the divisor is at least 1.
    fn over(&self, divisor: &Self, bits: usize) -> Self {
        let low = (&self.low << bits) / (&divisor.high + UBig::ONE);
        Self { low, high: ((&self.high + UBig::ONE) << bits) / &divisor.low }
    }
}

/// Enclosures of F(z) for z from -reach - 1 to -1.
fn lower_half(law: Law, reach: u64, bits: usize) -> Vec<Enclosure> {
    match law {
        Law::Laplace { scale } => laplace_half(scale.denominator(), scale.numerator(), reach, bits),
        Law::Gaussian { variance } => gaussian_half(variance, reach, bits),
    }
}

/// F(-k) = q^k / (1 + q), q = exp(-numerator / denominator).
fn laplace_half(numerator: u64, denominator: u64, reach: u64, bits: usize) -> Vec<Enclosure> {
    let q = exp_minus(numerator, denominator, bits);
    let norm = q.plus(&Enclosure::one(bits));
    let mut power = q.clone();
    let mut half = Vec::new();
    for _ in 0..=reach {
        half.push(power.over(&norm, bits));
        power = power.times(&q, bits);
    }
    // Powers fall towards the tail; boundaries ascend from it.
    half.reverse();
    half
}

/// F(-k) = (sum of g(i) for i ≥ k) / (1 + 2 · sum of g(i) for i ≥ 1), g(i) = exp(-i² / (2 variance)).
fn gaussian_half(variance: u64, reach: u64, bits: usize) -> Vec<Enclosure> {
    let weights = gaussian_weights(variance, reach, bits);
    let mut sum = weights.tail;
    let mut half = Vec::new();
    // From the tail inwards: each boundary is the sum of all that lies beyond it.
    for (index, weight) in weights.inside.iter().enumerate().rev() {
        sum = sum.plus(weight);
        if index as u64 <= reach {
            half.push(sum.clone());
        }
    }
    let norm = sum.plus(&sum).plus(&Enclosure::one(bits));
    half.iter().map(|sum| sum.over(&norm, bits)).collect()
}

struct CertifiedWeights {
    /// g(1), g(2), ...
    inside: Vec<Enclosure>,
    /// The sum of all further ones.
    tail: Enclosure,
}

/// g(i + 1) = g(i) r^(2i + 1) with r = exp(-1 / (2 variance)), until g falls below the precision. The terms after
/// g(n) add up to less than g(n) / (1 - r^(2n + 1)) ≤ g(n) · (2 variance + 1).
fn gaussian_weights(variance: u64, reach: u64, bits: usize) -> CertifiedWeights {
    let r = exp_minus(1, 2 * variance, bits);
    let square = r.times(&r, bits);
    let (mut weight, mut ratio) = (r.clone(), r.times(&square, bits));
    let mut inside = vec![weight.clone()];
    while inside.len() as u64 <= reach || weight.low != UBig::ZERO {
        weight = weight.times(&ratio, bits);
        ratio = ratio.times(&square, bits);
        inside.push(weight.clone());
    }
    let high = (&weight.high + UBig::ONE) * UBig::from(2 * variance + 1);
    CertifiedWeights { inside, tail: Enclosure { low: UBig::ZERO, high } }
}

/// exp(-numerator / denominator): the series at an argument halved until it is at most 1, squared back.
fn exp_minus(numerator: u64, denominator: u64, bits: usize) -> Enclosure {
    let mut halvings = 0;
    while u128::from(denominator) << halvings < u128::from(numerator) {
        halvings += 1;
    }
    let mut value = exp_minus_unit(numerator, &(UBig::from(denominator) << halvings), bits);
    for _ in 0..halvings {
        value = value.times(&value, bits);
    }
    value
}

/// The same for numerator ≤ denominator. A term errs by less than two units: what it inherits, divided by its number,
/// plus its own cut. The series errs by less than its first missing term.
fn exp_minus_unit(numerator: u64, denominator: &UBig, bits: usize) -> Enclosure {
    let mut term = UBig::ONE << bits;
    let (mut positive, mut negative) = (term.clone(), UBig::ZERO);
    let mut count = 0_u64;
    while term != UBig::ZERO {
        count += 1;
        term = term * UBig::from(numerator) / (denominator * UBig::from(count));
        if count % 2 == 1 { negative += &term } else { positive += &term }
    }
    let slack = UBig::from(2 * count + 2);
    let sum = positive - negative;
    let low = if slack < sum { &sum - &slack } else { UBig::ZERO };
    Enclosure { low, high: sum + slack }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: usize = 4;

    fn at(low: u32, width: u32) -> Enclosure {
        Enclosure { low: low.into(), high: (low + width).into() }
    }

    /// Every pair of narrow enclosures with a few digits, where a unit shows.
    fn pairs() -> impl Iterator<Item = (Enclosure, Enclosure)> {
        let all = || (0..40_u32).flat_map(|low| (0..3).map(move |width| at(low, width)));
        all().flat_map(move |one| all().map(move |other| (one.clone(), other)))
    }

    fn end(enclosure: &Enclosure) -> UBig {
        &enclosure.high + UBig::ONE
    }

    #[test]
    fn products_sums_and_quotients_enclose_all_that_their_parts_can_be() {
        let unit = UBig::ONE << BITS;
        for (one, other) in pairs() {
            let product = one.times(&other, BITS);
            assert!(&product.low * &unit <= &one.low * &other.low, "{one:?} {other:?}");
            assert!(end(&one) * end(&other) <= end(&product) * &unit, "{one:?} {other:?}");
            let sum = one.plus(&other);
            assert!(sum.low <= &one.low + &other.low && end(&one) + end(&other) <= end(&sum));
            if unit <= other.low {
                let quotient = one.over(&other, BITS);
                assert!(&quotient.low * end(&other) <= &one.low * &unit, "{one:?} {other:?}");
                assert!(end(&one) * &unit <= end(&quotient) * &other.low, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn the_precision_is_raised_until_all_boundaries_are_certain() {
        for law in [Law::Gaussian { variance: 20 }, Law::Gaussian { variance: 3 }] {
            assert_eq!(raise_precision(law, 12, 64, 1), certify_boundaries(law, 12, 64));
        }
    }

    #[test]
    fn an_enclosure_that_holds_a_multiple_is_not_certified() {
        assert_eq!(certify_floors(&[at(17, 14), at(32, 0)], BITS), Some(vec![1_u8.into(), 2_u8.into()]));
        assert_eq!(certify_floors(&[at(17, 14), at(17, 15)], BITS), None);
    }

    /// How many terms of the series of exp(-x) are at least one unit, and the first that is not.
    fn terms(x: f64, bits: i32) -> f64 {
        let (mut term, mut count) = (2_f64.powi(bits), 0.0);
        while 1.0 <= term {
            count += 1.0;
            term *= x / count;
        }
        count
    }

    fn float(value: &UBig) -> f64 {
        u64::try_from(value).expect("few digits") as f64
    }

    #[test]
    fn powers_of_e_are_enclosed_with_two_units_for_each_term() {
        for (numerator, denominator) in
            [(1, 1), (1, 2), (2, 3), (1, 40), (999, 1000), (3, 1), (7, 2), (20, 3), (100, 1)]
        {
            for bits in [12, 20, 30] {
                let got = exp_minus(numerator, denominator, bits as usize);
                let x = numerator as f64 / denominator as f64;
                let wanted = (-x).exp() * 2_f64.powi(bits);
                let (low, high) = (float(&got.low), float(&got.high));
                assert!(low <= wanted && wanted < high + 1.0, "exp(-{x}): {wanted} in {low}..{high}");
                if x <= 1.0 {
                    let spare = high - low - 4.0 * terms(x, bits);
                    assert!((0.0..=8.0).contains(&spare), "exp(-{x}): {low}..{high}");
                }
            }
        }
    }

    #[test]
    fn what_lies_beyond_the_last_weight_is_within_the_tail() {
        for variance in [1, 3, 50, 2_000, 100_000] {
            for bits in [8, 16] {
                let weights = gaussian_weights(variance, 1, bits as usize);
                let weight =
                    |i: usize| (-((i * i) as f64) / (2.0 * variance as f64)).exp() * 2_f64.powi(bits);
                let last = weights.inside.len();
                let beyond: f64 = (last + 1..last + 10_000).map(weight).sum();
                assert!(beyond < float(&weights.tail.high) + 1.0, "variance {variance}, {bits} digits");
                for (i, got) in (1..).zip(&weights.inside) {
                    let (low, high) = (float(&got.low), float(&got.high));
                    assert!(low <= weight(i) && weight(i) < high + 1.0, "variance {variance}, weight {i}");
                }
            }
        }
    }
}
