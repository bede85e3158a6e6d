//! Answers: a value, how far it may be off, and what it covers.

use std::fmt;
use std::ops::Range;

use crate::error::{Fraction, ParameterError};
use crate::item::value::Item;
use crate::noise::tail::Tail;
use crate::privacy::accounting::normal_quantile;
use crate::words::grouped;

/// The probability with which an [`Estimate`] keeps its error bound.
pub const CONFIDENCE: f64 = 0.95;

/// The estimate of how often an item occurred in a window.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// The estimated count; noise can make it negative.
    pub value: f64,
    /// With probability [`CONFIDENCE`] the true count is at most this far from the value. In the tuned method it is about two
    /// standard errors, by the law of their sum; in the paper's it adds up worst cases: noise, collisions, and every item by
    /// which the covered span misses the window (for a time window as many as the rates at its edges suggest).
    ///
    /// Where users are protected, the count is that of the items which the caps of users let count; see
    /// [`capped`](Self::capped).
    pub error_bound: f64,
    /// Where the true count lies with probability [`CONFIDENCE`] however the item is spread inside the substreams that the
    /// window cuts, and after the last seal. The error bound takes it that an item arrives evenly there; one that comes in
    /// bursts at the same place of every substream looks the same, and its count may lie anywhere in here. The window of the
    /// plan has little at its edges; a window shorter than a substream is all edge.
    pub any_order: Range<f64>,
    /// Where the standard error comes from, in the tuned method.
    pub deviations: Option<Deviations>,
    /// How far errors of this kind reach.
    pub(crate) tail: Tail,
    /// The positions that sealed sketches cover: in the tuned method the sealed part of the window, in the paper's the complete
    /// ranges nearest to it.
    pub covered: Range<u64>,
    /// The positions that were asked for.
    pub window: Range<u64>,
    /// About how many events of the window, whatever their item, count nowhere: their users had sent enough, or there was no
    /// room for further users. `None` where single events are protected, or if it is not known.
    pub capped: Option<u64>,
}

/// The parts of a standard error: independent deviations, whose squares add up.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Deviations {
    /// From the noise that protects events.
    pub noise: f64,
    /// From keys that share counters.
    pub collisions: f64,
    /// From the edges of the window: chance and drift in what has expired or is not yet sealed.
    pub misfit: f64,
}

impl Deviations {
    /// The standard error.
    #[must_use]
    pub fn total(self) -> f64 {
        (self.noise.powi(2) + self.collisions.powi(2) + self.misfit.powi(2)).sqrt()
    }
}

/// The side on which the threshold of heavy hitters errs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certainty {
    /// The estimate reaches the threshold.
    Plain,
    /// The lower end of its 95 % interval does: few wrong ones.
    Sure,
    /// The upper end does: few missed ones.
    Possible,
}

impl Estimate {
    /// Where the true count lies with this probability, strictly between 0 and 1.
    ///
    /// # Errors
    /// The confidence is out of range.
    pub fn interval(&self, confidence: f64) -> Result<Range<f64>, ParameterError> {
        if !(0.0 < confidence && confidence < 1.0) {
            return Err(ParameterError::Fraction { name: Fraction::Confidence, value: confidence });
        }
        let reach = self.reach_at((1.0 - confidence) / 2.0);
        Ok(self.value - reach..self.value + reach)
    }

    /// What the error exceeds with this probability on one side.
    pub(crate) fn reach_at(&self, probability: f64) -> f64 {
        match self.deviations {
            Some(deviations) if self.error_bound.is_finite() => {
                self.tail.reach_at(probability) * deviations.total() + WHOLE_COUNTS
            }
            _ => -normal_quantile(probability) / NORMAL_95 * self.error_bound,
        }
    }

    /// The probability on one side, at most 1/2, for which the lower end of the interval is this count.
    pub(crate) fn chance_below(&self, count: f64) -> f64 {
        let distance = self.value - count;
        let (tail, deviations) = match self.deviations {
            Some(deviations) if self.error_bound.is_finite() => {
                (self.tail, (distance - WHOLE_COUNTS) / deviations.total())
            }
            // The paper's bounds come without a law; a normal one of the same 95 % stands in.
            _ => (Tail::NORMAL, distance / self.error_bound * NORMAL_95),
        };
        // The tail is that of one side: for counts above the value there is nothing less than a half.
        if 0.0 < deviations { tail.chance_beyond(deviations) } else { 0.5 }
    }

    /// Whether the count cannot be told from zero: it lies below the noise floor.
    #[must_use]
    pub fn is_below_noise(&self) -> bool {
        self.value < self.error_bound
    }

    /// The value for people: counts are not negative.
    #[must_use]
    pub fn display_value(&self) -> f64 {
        self.value.max(0.0)
    }

    /// The standard error; in the paper's method, the error bound divided by 1.96.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        self.deviations.map_or(self.error_bound / NORMAL_95, Deviations::total)
    }
}

/// True counts are whole numbers: what lies within half of one is not told apart.
pub(crate) const WHOLE_COUNTS: f64 = 0.5;

/// The normal quantile of a two-sided 95 % interval.
pub(crate) const NORMAL_95: f64 = 1.96;

/// A row as a list shows it. The largest of many noisy numbers are large because of their noise; this takes it into account
/// that the row was chosen for its size.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Shown {
    /// The count that is expected.
    pub value: f64,
    /// The true count lies between this and `upper` with probability 95 %.
    pub lower: f64,
    /// See `lower`.
    pub upper: f64,
    /// Whether the count may be less than a quarter of what is shown.
    pub marked: bool,
}

/// A row is marked if its lower end is a smaller part of the value than this.
const MARKED: f64 = 0.25;

impl Shown {
    /// A count below this may be none.
    pub(crate) const LEAST: f64 = 1.0;

    pub(crate) fn new(value: f64, lower: f64, upper: f64) -> Self {
        Self { value, lower, upper, marked: lower < MARKED * value }
    }

    /// What is shown of an item that was chosen beforehand: counts are not negative.
    pub(crate) fn plain(estimate: &Estimate) -> Self {
        Self::with_reach(estimate.value, estimate.error_bound)
    }

    /// An estimate that may be off by so much either way; counts are not negative.
    pub(crate) fn with_reach(value: f64, reach: f64) -> Self {
        Self::new(value.max(0.0), (value - reach).max(0.0), (value + reach).max(0.0))
    }

    /// An estimate that is off by more with these probabilities, downwards and upwards; counts are not negative.
    pub(crate) fn with_chances(estimate: &Estimate, [below, above]: [f64; 2]) -> Self {
        let lower = estimate.value - estimate.reach_at(below);
        let upper = estimate.value + estimate.reach_at(above);
        Self::new(estimate.value.max(0.0), lower.max(0.0), upper.max(0.0))
    }

    /// Whether the key may not have occurred at all.
    #[must_use]
    pub fn may_be_none(&self) -> bool {
        self.lower < Self::LEAST
    }
}

/// A key with its estimate.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ranked<'a> {
    /// The key.
    pub item: Item<'a>,
    /// Its estimated count: what it would be if the key had been chosen beforehand.
    pub estimate: Estimate,
    /// What to show. In a list it takes into account that the key was chosen for its size.
    pub shown: Shown,
}

impl<'a> Ranked<'a> {
    /// An item that was chosen beforehand.
    pub(crate) fn plain(item: Item<'a>, estimate: Estimate) -> Self {
        Self { item, shown: Shown::plain(&estimate), estimate }
    }
}

/// The value for people and its 95 % error: `1,204 ± 18`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} ± {}", grouped(self.display_value()), grouped(self.error_bound)))
    }
}

/// The key and what to show of it: `/cart 1,204 (1,186 to 1,222)`.
impl fmt::Display for Ranked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { value, lower, upper, marked, .. } = self.shown;
        // A row whose count may be far smaller is marked, so that nobody reads its digits as certain.
        let mark = if marked { "~" } else { "" };
        let [value, lower, upper] = [value, lower, upper].map(grouped);
        f.pad(&format!("{} {mark}{value} ({lower} to {upper})", self.item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_print_as_people_write_them() {
        let estimate = |value, error_bound| Estimate {
            value,
            error_bound,
            any_order: 0.0..1.0,
            deviations: None,
            tail: Tail::NORMAL,
            covered: 0..10,
            window: 0..10,
            capped: None,
        };
        assert_eq!(estimate(1_203.6, 18.2).to_string(), "1,204 ± 18");
        assert_eq!(estimate(-3.0, 12.0).to_string(), "0 ± 12");
        assert_eq!(estimate(999.0, 1_000_000.0).to_string(), "999 ± 1,000,000");
        assert_eq!(estimate(5.0, f64::INFINITY).to_string(), "5 ± unknown");
        let ranked = Ranked::plain(Item::from("/cart"), estimate(12_345.0, 1.0));
        assert_eq!(format!("{ranked:>35}"), "    /cart 12,345 (12,344 to 12,346)");
        let marked = Ranked::plain(Item::from("/cart"), estimate(12.0, 10.0));
        assert_eq!(marked.to_string(), "/cart ~12 (2 to 22)");
    }

    fn estimate(value: f64, deviations: Option<Deviations>) -> Estimate {
        Estimate {
            value,
            error_bound: 19.6,
            any_order: 80.0..120.0,
            deviations,
            tail: Tail::NORMAL,
            covered: 0..10,
            window: 0..10,
            capped: None,
        }
    }

    #[test]
    fn the_error_bound_is_the_interval_of_95_percent() {
        for (confidence, reach) in [(CONFIDENCE, 19.6), (0.682_689_5, 10.0), (0.99, 25.758)] {
            let interval = estimate(100.0, None).interval(confidence).expect("a confidence");
            assert!((interval.start - (100.0 - reach)).abs() < 1e-3, "{confidence}: {interval:?}");
            assert!((interval.end - (100.0 + reach)).abs() < 1e-3, "{confidence}: {interval:?}");
        }
        for confidence in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(estimate(100.0, None).interval(confidence).is_err(), "{confidence}");
        }
    }

    #[test]
    fn squares_of_deviations_add_up_to_that_of_the_standard_error() {
        let deviations = Deviations { noise: 2.0, collisions: 3.0, misfit: 6.0 };
        assert_eq!(estimate(0.0, Some(deviations)).standard_error(), 7.0);
        assert!((estimate(0.0, None).standard_error() - 10.0).abs() < 1e-9);
    }
}
