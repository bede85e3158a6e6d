//! The boundaries of a law's table, certified by interval arithmetic on big integers.

use dashu_int::UBig;

use crate::noise::law::Law;

/// floor(2^bits F(z)) for z from -reach - 1 to reach, certified: the precision is raised until each enclosure holds
/// no multiple of 2^-bits. F(z) is irrational, so this ends, and F(-z - 1) = 1 - F(z) gives the upper half.
pub(crate) fn cumulative(law: Law, reach: u64, bits: usize) -> Vec<UBig> {
    let mut guard = 96;
    let lower = loop {
        if let Some(lower) = certified(&lower_half(law, reach, bits + guard), guard) {
            break lower;
        }
        guard *= 2;
    };
    let all = (UBig::ONE << bits) - UBig::ONE;
    let upper: Vec<UBig> = lower.iter().rev().map(|floor| &all - floor).collect();
    [lower, upper].concat()
}

fn certified(enclosures: &[Enclosure], guard: usize) -> Option<Vec<UBig>> {
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
    fn times(&self, other: &Self, bits: usize) -> Self {
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
    let unit = UBig::ONE << bits;
    let norm = Enclosure { low: &q.low + &unit, high: &q.high + &unit };
    let mut power = q.clone();
    let mut half = Vec::new();
    for _ in 0..=reach {
        half.push(power.over(&norm, bits));
        power = power.times(&q, bits);
    }
    half.reverse();
    half
}

/// F(-k) = (sum of g(i) for i ≥ k) / (1 + 2 · sum of g(i) for i ≥ 1), g(i) = exp(-i² / (2 variance)).
fn gaussian_half(variance: u64, reach: u64, bits: usize) -> Vec<Enclosure> {
    let weights = gaussian_weights(variance, reach, bits);
    let mut sum = weights.tail;
    let mut half = Vec::new();
    for (index, weight) in weights.inside.iter().enumerate().rev() {
        sum = sum.plus(weight);
        if index as u64 <= reach {
            half.push(sum.clone());
        }
    }
    let unit = UBig::ONE << bits;
    let norm = Enclosure { low: &unit + (&sum.low << 1), high: unit + (sum.high << 1) + UBig::ONE };
    half.iter().map(|sum| sum.over(&norm, bits)).collect()
}

struct Weights {
    /// g(1), g(2), ...
    inside: Vec<Enclosure>,
    /// The sum of all further ones.
    tail: Enclosure,
}

/// g(i + 1) = g(i) r^(2i + 1) with r = exp(-1 / (2 variance)), until g falls below the precision. The terms after
/// g(n) add up to less than g(n) / (1 - r^(2n + 1)) ≤ g(n) · (2 variance + 1).
fn gaussian_weights(variance: u64, reach: u64, bits: usize) -> Weights {
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
    Weights { inside, tail: Enclosure { low: UBig::ZERO, high } }
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
