//! What figures show of an outcome.

use anyhow::{Context, Error, Result};
use serde::Deserialize;

use crate::measure::{Heavy, Outcome};

/// A number of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Metric {
    /// Mean absolute error of frequent items.
    MaeHigh,
    /// Mean absolute error of other items.
    MaeLow,
    /// Mean relative error of frequent items.
    MreHigh,
    /// Mean relative error of other items.
    MreLow,
    F1(f64),
    Precision(f64),
    Recall(f64),
    /// Items inserted per second.
    Throughput,
    /// The absolute error of frequent items over that of Microscope-Sketch.
    PriceHigh,
    /// The absolute error of other items over that of Microscope-Sketch.
    PriceLow,
}

impl Metric {
    pub fn scores(gamma: f64) -> [Self; 3] {
        [Self::F1(gamma), Self::Precision(gamma), Self::Recall(gamma)]
    }

    /// The metric that files name so.
    pub fn named(key: &str) -> Option<Self> {
        use Metric::{MaeHigh, MaeLow, MreHigh, MreLow, PriceHigh, PriceLow, Throughput};
        let plain = [MaeHigh, MaeLow, MreHigh, MreLow, Throughput, PriceHigh, PriceLow];
        let gamma = key.rsplit_once('_').and_then(|(_, gamma)| gamma.parse().ok());
        let scores = gamma.map(Self::scores).into_iter().flatten();
        plain.into_iter().chain(scores).find(|metric| metric.key() == key)
    }

    pub fn gamma(self) -> Option<f64> {
        match self {
            Self::F1(gamma) | Self::Precision(gamma) | Self::Recall(gamma) => Some(gamma),
            _ => None,
        }
    }

    /// The number, where the outcome has one.
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        let score = |gamma: f64, value: fn(&Heavy) -> f64| {
            outcome.heavy.iter().find(|heavy| heavy.gamma == gamma).map(value)
        };
        match self {
            Self::MaeHigh | Self::PriceHigh => Some(outcome.high.absolute),
            Self::MreHigh => Some(outcome.high.relative),
            Self::MaeLow | Self::PriceLow => Some(outcome.low?.absolute),
            Self::MreLow => Some(outcome.low?.relative),
            Self::F1(gamma) => score(gamma, |heavy| heavy.f1),
            Self::Precision(gamma) => score(gamma, |heavy| heavy.precision),
            Self::Recall(gamma) => score(gamma, |heavy| heavy.recall),
            Self::Throughput => Some(outcome.insert_items_per_s),
        }
    }

    /// Whether it is shown as a multiple of Microscope-Sketch's.
    pub fn is_price(self) -> bool {
        matches!(self, Self::PriceHigh | Self::PriceLow)
    }

    /// Whether it lies between 0 and 1 and more is better.
    pub fn is_score(self) -> bool {
        self.gamma().is_some()
    }

    /// As axes show it.
    pub fn label(self) -> String {
        self.with_gamma(self.names()[1])
    }

    /// As files name it.
    pub fn key(self) -> String {
        self.with_gamma(self.names()[0])
    }

    fn with_gamma(self, name: &str) -> String {
        self.gamma().map_or_else(|| name.to_owned(), |gamma| format!("{name}{gamma}"))
    }

    /// The key and the label; those of a score are followed by its threshold.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::MaeHigh => ["mae_high", "MAE, frequent items"],
            Self::MaeLow => ["mae_low", "MAE, other items"],
            Self::MreHigh => ["mre_high", "MRE, frequent items"],
            Self::MreLow => ["mre_low", "MRE, other items"],
            Self::F1(_) => ["f1_", "F1, γ = "],
            Self::Precision(_) => ["precision_", "precision, γ = "],
            Self::Recall(_) => ["recall_", "recall, γ = "],
            Self::Throughput => ["insert_items_per_s", "items a second, fastest seed"],
            Self::PriceHigh => ["price_high", "error ÷ Microscope's, frequent"],
            Self::PriceLow => ["price_low", "error ÷ Microscope's, other"],
        }
    }
}

impl TryFrom<String> for Metric {
    type Error = Error;

    fn try_from(key: String) -> Result<Self> {
        Self::named(&key).with_context(|| {
            format!(
                "there is no metric {key}; there are mae_high, mae_low, mre_high, mre_low, insert_items_per_s, \
                 price_high, price_low and, for a threshold such as 0.01, f1_0.01, precision_0.01, recall_0.01"
            )
        })
    }
}
