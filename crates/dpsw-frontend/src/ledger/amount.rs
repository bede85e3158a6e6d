//! Epsilons that add up exactly: an epsilon has at most nine decimal places.

use std::fmt;
use std::iter::Sum;

use dpsw::Epsilon;
use dpsw::error::ParameterError;
use serde::Serialize;

const NANOS: u128 = 1_000_000_000;

/// An amount of epsilon, in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "f64")]
pub struct Amount(u128);

impl Amount {
    /// The amount that this number means as an epsilon.
    pub(crate) fn new(epsilon: f64) -> Result<Self, ParameterError> {
        Epsilon::new(epsilon).map(Self::from)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// What is left after this is taken away; nothing, if it is more.
    pub fn without(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The nearest floating-point number.
    pub fn get(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
}

impl From<Epsilon> for Amount {
    fn from(epsilon: Epsilon) -> Self {
        let ratio = epsilon.ratio();
        // Rounded up, so that no sum is too small; a decimal of nine places needs no rounding.
        Self((u128::from(ratio.numerator()) * NANOS).div_ceil(ratio.denominator().into()))
    }
}

impl From<Amount> for f64 {
    fn from(amount: Amount) -> Self {
        amount.get()
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Self::plus)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:09}", self.0 / NANOS, self.0 % NANOS);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_tenths_are_one() {
        let tenth = Amount::new(0.1).expect("in range");
        let whole: Amount = std::iter::repeat_n(tenth, 10).sum();
        assert_eq!(Some(whole), Amount::new(1.0).ok());
        assert_eq!(whole.without(tenth).to_string(), "0.9");
        assert_eq!((whole.to_string(), whole.get()), ("1".to_owned(), 1.0));
        assert_eq!(tenth.without(whole), Amount::default());
    }

    #[test]
    fn the_smallest_and_the_largest_amount_are_exact() {
        for text in ["0.000001", "0.123456789", "1000000"] {
            let amount = Amount::new(text.parse().expect("a number")).expect("in range");
            assert_eq!(amount.to_string(), text);
        }
    }
}
