//! Exact non-negative rationals for shares, smooth factors, epsilon splits and noise scales.

use std::cmp::Ordering;
use std::fmt;

use crate::error::ParameterError;

/// An exact non-negative rational in lowest terms.
///
/// A floating-point number is read as the shortest decimal that denotes it, which is the number that people
/// wrote and that is printed: `0.1` is exactly 1/10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// The ratio 1.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`.
    ///
    /// # Errors
    /// The denominator is zero.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self, ParameterError> {
        if denominator == 0 {
            return Err(ParameterError::Denominator(numerator));
        }
        let divisor = gcd(numerator, denominator);
        Ok(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// The shortest decimal that denotes `value`; digits after the ninth decimal place are cut off.
    ///
    /// # Errors
    /// The value is negative, not finite, or at least 1e9.
    pub fn from_decimal(value: f64) -> Result<Self, ParameterError> {
        if !(0.0..1e9).contains(&value) {
            return Err(ParameterError::Ratio(value));
        }
        let text = format!("{value}");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        // Cut and not rounded: an epsilon or a share never becomes larger than what was written.
        let digits = &fraction[..fraction.len().min(9)];
        let denominator = 10_u64.pow(digits.len() as u32);
        let parse = |part: &str| if part.is_empty() { Ok(0) } else { part.parse::<u64>() };
        let (whole, digits) = (parse(whole), parse(digits));
        match (whole, digits) {
            (Ok(whole), Ok(digits)) => Self::new(whole * denominator + digits, denominator),
            _ => Err(ParameterError::Ratio(value)),
        }
    }

    /// The numerator in lowest terms.
    #[must_use]
    pub fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator in lowest terms, at least 1.
    #[must_use]
    pub fn denominator(self) -> u64 {
        self.denominator
    }

    /// The nearest floating-point number.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The exact sum, if it fits.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let numerator =
            wide(self.numerator, other.denominator).checked_add(wide(other.numerator, self.denominator))?;
        Self::from_wide(numerator, wide(self.denominator, other.denominator))
    }

    /// The exact product, if it fits.
    #[must_use]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        Self::from_wide(wide(self.numerator, other.numerator), wide(self.denominator, other.denominator))
    }

    /// The exact difference, if it fits and is not negative.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let numerator =
            wide(self.numerator, other.denominator).checked_sub(wide(other.numerator, self.denominator))?;
        Self::from_wide(numerator, wide(self.denominator, other.denominator))
    }

    /// The exact quotient `factor / self`, if it fits. `None` for zero.
    #[must_use]
    pub fn checked_divide(self, factor: u64) -> Option<Self> {
        let numerator = u128::from(factor) * u128::from(self.denominator);
        (self.numerator != 0).then(|| Self::from_wide(numerator, self.numerator.into()))?
    }

    fn from_wide(numerator: u128, denominator: u128) -> Option<Self> {
        let divisor = gcd_wide(numerator, denominator);
        Some(Self {
            numerator: u64::try_from(numerator / divisor).ok()?,
            denominator: u64::try_from(denominator / divisor).ok()?,
        })
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = u128::from(self.numerator) * u128::from(other.denominator);
        left.cmp(&(u128::from(other.numerator) * u128::from(self.denominator)))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_f64(), f)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    // Never 0, as both sides are divided by it.
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

fn gcd_wide(a: u128, b: u128) -> u128 {
    if b == 0 { a.max(1) } else { gcd_wide(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_decimal(value: f64, numerator: u64, denominator: u64) {
        let ratio = Ratio::from_decimal(value).expect("a valid decimal");
        assert_eq!((ratio.numerator(), ratio.denominator()), (numerator, denominator));
    }

    #[test]
    fn a_decimal_means_the_number_that_is_printed() {
        check_decimal(0.1, 1, 10);
        check_decimal(0.3, 3, 10);
        check_decimal(1e-6, 1, 1_000_000);
        check_decimal(12.5, 25, 2);
        check_decimal(0.0, 0, 1);
        check_decimal(1.0 / 3.0, 333_333_333, 1_000_000_000);
    }

    #[test]
    fn shares_that_look_like_one_add_up_to_one() {
        let whole = Ratio::from_decimal(0.8).expect("a share");
        let part = Ratio::from_decimal(0.05).expect("a share");
        let sum = [part; 4].iter().try_fold(whole, |sum, &part| sum.checked_add(part));
        assert_eq!(sum, Some(Ratio::ONE));
    }

    #[test]
    fn what_is_no_ratio_is_refused() {
        for value in [-0.1, f64::NAN, f64::INFINITY, 1e9] {
            let error = Ratio::from_decimal(value).expect_err("no ratio");
            assert!(error.to_string().contains("below 1e9"));
        }
        assert_eq!(Ratio::new(3, 0), Err(ParameterError::Denominator(3)));
    }
}
