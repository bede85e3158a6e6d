//! Discrete Laplace and Gaussian laws on the integers, and exact draws from them.
//!
//! [`Law::draw_exactly`] is the textbook rejection sampler, slow and simple. The sketches use the tables of
//! [`table`](crate::noise::table), which draw from the same law without any error, so that δ = 0 means zero.

use std::fmt;

use crate::noise::generator::{Generator, clamp_draw};
use crate::ratio::Ratio;
use crate::words::{decimal, grouped};

/// The law of the noise on one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// P(z) proportional to exp(-|z| / scale).
    Laplace {
        /// The exact scale, above zero.
        scale: Ratio,
    },
    /// P(z) proportional to exp(-z² / (2 variance)).
    Gaussian {
        /// The variance parameter, at least 1 and below 2³².
        variance: u64,
    },
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Laplace { scale } => {
                write!(f, "{} noise of scale {}", self.name(), decimal(scale.to_f64()))
            }
            Self::Gaussian { variance } => {
                write!(f, "{} noise of variance {}", self.name(), grouped(*variance as f64))
            }
        }
    }
}

impl Law {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Laplace { .. } => "discrete Laplace",
            Self::Gaussian { .. } => "discrete Gaussian",
        }
    }

    /// The scale of a Laplace law.
    #[must_use]
    pub fn scale(self) -> Option<f64> {
        match self {
            Self::Laplace { scale } => Some(scale.to_f64()),
            Self::Gaussian { .. } => None,
        }
    }

    /// The variance of a draw; for the Gaussian its parameter, which the true variance does not exceed.
    #[must_use]
    pub fn variance(self) -> f64 {
        match self {
            Self::Laplace { scale } => {
                let q = (-1.0 / scale.to_f64()).exp();
                2.0 * q / (1.0 - q).powi(2)
            }
            Self::Gaussian { variance } => variance as f64,
        }
    }

    /// The fourth cumulant of a draw: 0 for the Gaussian.
    pub(crate) fn fourth_cumulant(self) -> f64 {
        match self {
            Self::Laplace { .. } => self.variance() + 3.0 * self.variance().powi(2),
            Self::Gaussian { .. } => 0.0,
        }
    }

    /// The smallest bound z for which P[|draw| > z] ≤ `probability` is guaranteed by the usual tail bounds.
    #[must_use]
    pub fn tail_bound(self, probability: f64) -> f64 {
        let log = (2.0 / probability).ln();
        match self {
            Self::Laplace { scale } => scale.to_f64() * log,
            Self::Gaussian { variance } => (2.0 * variance as f64 * log).sqrt(),
        }
    }

    /// Whether the samplers' arithmetic holds for this law.
    pub(crate) fn is_drawable(self) -> bool {
        match self {
            Self::Laplace { scale } => scale.numerator() != 0,
            Self::Gaussian { variance } => (1..1 << 32).contains(&variance),
        }
    }

    /// One exact draw by rejection (Canonne, Kamath, Steinke 2020). Some hundred nanoseconds.
    ///
    /// # Panics
    /// As [`Table::new`](crate::noise::Table::new).
    pub fn draw_exactly(self, generator: &mut Generator) -> i64 {
        assert!(self.is_drawable(), "no noise can be drawn from {self:?}");
        match self {
            Self::Laplace { scale } => generator.draw_laplace(scale.numerator(), scale.denominator()),
            Self::Gaussian { variance } => generator.draw_gaussian(variance),
        }
    }

    /// One exact draw given that it is at least `first` > 0.
    pub(crate) fn draw_tail(self, first: u64, generator: &mut Generator) -> i64 {
        let beyond = match self {
            // A geometric law has no memory: beyond any point it is the same law again.
            Self::Laplace { scale } => generator.draw_geometric(scale.denominator(), scale.numerator()),
            Self::Gaussian { variance } => generator.gaussian_excess(first, variance),
        };
        clamp_draw(u128::from(first) + beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laplace(scale: u64) -> Law {
        Law::Laplace { scale: Ratio::new(scale, 1).expect("a ratio") }
    }

    fn gaussian(variance: u64) -> Law {
        Law::Gaussian { variance }
    }

    #[test]
    fn a_law_says_what_it_is() {
        assert_eq!(laplace(20).to_string(), "discrete Laplace noise of scale 20");
        assert_eq!(gaussian(220).to_string(), "discrete Gaussian noise of variance 220");
        assert_eq!((laplace(20).scale(), gaussian(220).scale()), (Some(20.0), None));
    }

    #[test]
    fn laws_without_spread_or_beyond_the_arithmetic_are_not_drawn_from() {
        for (law, is_drawable) in [
            (laplace(1), true),
            (laplace(0), false),
            (gaussian(0), false),
            (gaussian(1), true),
            (gaussian((1 << 32) - 1), true),
            (gaussian(1 << 32), false),
        ] {
            assert_eq!(law.is_drawable(), is_drawable, "{law:?}");
        }
    }

    #[test]
    fn the_variance_is_the_sum_over_the_law() {
        for scale in [1, 4, 20] {
            let weight = |z: i64| (-(z.abs() as f64) / scale as f64).exp();
            let all = || -1000..=1000_i64;
            let wanted =
                all().map(|z| (z * z) as f64 * weight(z)).sum::<f64>() / all().map(weight).sum::<f64>();
            assert!((laplace(scale).variance() / wanted - 1.0).abs() < 1e-9);
        }
        assert_eq!(gaussian(220).variance(), 220.0);
    }

    #[test]
    fn tail_bounds_are_the_usual_ones() {
        // P[|z| > t] <= 2 exp(-t / scale), and 2 exp(-t² / (2 variance)).
        assert!((laplace(20).tail_bound(0.01) - 20.0 * 200_f64.ln()).abs() < 1e-9);
        assert!((gaussian(220).tail_bound(0.01) - (440.0 * 200_f64.ln()).sqrt()).abs() < 1e-9);
    }
}
