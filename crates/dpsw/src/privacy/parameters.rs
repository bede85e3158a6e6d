//! The privacy parameters as types, and the claim that a stream makes.

use std::fmt;
use std::str::FromStr;

use crate::error::ParameterError;
use crate::ratio::Ratio;

/// The ε of (ε, δ)-differential privacy, between 1e-6 and 1e6, as an exact rational.
///
/// A value means its printed decimal; digits after the ninth decimal place are cut off, towards more noise.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Epsilon(Ratio);

impl Epsilon {
    /// # Errors
    /// The value is not between 1e-6 and 1e6.
    pub fn new(value: f64) -> Result<Self, ParameterError> {
        let ratio = Ratio::from_decimal(value).map_err(|_| ParameterError::Epsilon(value))?;
        Self::from_ratio(ratio).map_err(|_| ParameterError::Epsilon(value))
    }

    /// # Errors
    /// The ratio is not between 1e-6 and 1e6.
    pub fn from_ratio(ratio: Ratio) -> Result<Self, ParameterError> {
        let value = ratio.to_f64();
        if (1e-6..=1e6).contains(&value) { Ok(Self(ratio)) } else { Err(ParameterError::Epsilon(value)) }
    }

    /// The exact value.
    #[must_use]
    pub fn ratio(self) -> Ratio {
        self.0
    }

    /// The nearest floating-point number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0.to_f64()
    }
}

/// The δ of (ε, δ)-differential privacy, strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Delta(f64);

impl Delta {
    /// # Errors
    /// The value is not strictly between 0 and 1.
    pub fn new(value: f64) -> Result<Self, ParameterError> {
        if 0.0 < value && value < 1.0 { Ok(Self(value)) } else { Err(ParameterError::Delta(value)) }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The ρ of ρ-zCDP, the paper's privacy budget: positive and finite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rho(f64);

impl Rho {
    /// # Errors
    /// The value is not positive and finite.
    pub fn new(value: f64) -> Result<Self, ParameterError> {
        if value.is_finite() && 0.0 < value { Ok(Self(value)) } else { Err(ParameterError::Rho(value)) }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The γ of heavy hitters: a fraction of the window, above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Threshold(f64);

impl Threshold {
    /// # Errors
    /// The value is not above 0 and at most 1.
    pub fn new(value: f64) -> Result<Self, ParameterError> {
        if 0.0 < value && value <= 1.0 { Ok(Self(value)) } else { Err(ParameterError::Threshold(value)) }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Epsilon {
    type Error = ParameterError;

    fn try_from(value: f64) -> Result<Self, ParameterError> {
        Self::new(value)
    }
}

impl FromStr for Epsilon {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        Self::new(parse_number(text)?)
    }
}

impl TryFrom<f64> for Delta {
    type Error = ParameterError;

    fn try_from(value: f64) -> Result<Self, ParameterError> {
        Self::new(value)
    }
}

impl FromStr for Delta {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        Self::new(parse_number(text)?)
    }
}

impl TryFrom<f64> for Threshold {
    type Error = ParameterError;

    fn try_from(value: f64) -> Result<Self, ParameterError> {
        Self::new(value)
    }
}

impl FromStr for Threshold {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        Self::new(parse_number(text)?)
    }
}

fn parse_number(text: &str) -> Result<f64, ParameterError> {
    text.trim().parse().map_err(|_| ParameterError::Number(text.to_owned()))
}

impl fmt::Display for Epsilon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

/// The promise about everything that a stream ever releases, for what its plan protects (see [`Unit`](crate::Unit)).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Claim {
    /// ε-differential privacy, δ = 0.
    Pure(Epsilon),
    /// (ε, δ)-differential privacy.
    Approximate(Epsilon, Delta),
    /// No privacy: the noise was seeded or switched off.
    None,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pure(epsilon) => write!(f, "epsilon = {epsilon}, delta = 0"),
            Self::Approximate(epsilon, delta) => {
                write!(f, "epsilon = {epsilon}, delta = {delta}")
            }
            Self::None => write!(f, "none (reproducible noise)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused_with_the_value() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7, 1e-7] {
            let message = Epsilon::new(value).expect_err("out of range").to_string();
            assert_eq!(message, format!("epsilon must lie between 1e-6 and 1e6, got {value}"));
        }
        for value in [0.0, 1.0, 1.5, f64::NAN] {
            let message = Delta::new(value).expect_err("out of range").to_string();
            assert_eq!(message, format!("delta must lie strictly between 0 and 1, got {value}"));
        }
        assert!(Rho::new(0.0).is_err());
        assert!(Threshold::new(0.0).is_err());
        assert!(Threshold::new(1.0).is_ok());
    }

    #[test]
    fn epsilon_is_never_more_than_what_was_written() {
        let epsilon = Epsilon::new(0.123_456_789_9).expect("in range");
        assert_eq!(epsilon.ratio(), Ratio::new(123_456_789, 1_000_000_000).expect("a ratio"));
    }

    #[test]
    fn a_claim_names_epsilon_and_delta() {
        let (epsilon, delta) = (Epsilon::new(0.5).expect("in range"), Delta::new(1e-9).expect("in range"));
        for (claim, wanted) in [
            (Claim::Pure(epsilon), "epsilon = 0.5, delta = 0"),
            (Claim::Approximate(epsilon, delta), "epsilon = 0.5, delta = 1e-9"),
            (Claim::None, "none (reproducible noise)"),
        ] {
            assert_eq!(claim.to_string(), wanted);
        }
    }
}
