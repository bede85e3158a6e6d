//! How an item moves: the newer part of what is kept against the older, and its history substream by substream. All of
//! it comes from the same sealed sketches, so it costs no more privacy.

use std::ops::Range;

use crate::error::QueryError;
use crate::item::value::Item;
use crate::view::estimate::Estimate;
use crate::view::window_view::WindowView;

/// The direction in which an item moved, if that is beyond chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More frequent than before.
    Rising,
    /// No difference that noise, collisions and chance could not make.
    Steady,
    /// Less frequent than before.
    Falling,
}

/// An item now and before.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trend {
    /// Beyond what errors and chance explain, or steady.
    pub direction: Direction,
    /// The newer window.
    pub now: Estimate,
    /// The older window of the same length.
    pub before: Estimate,
}

impl WindowView {
    /// This window against the one before it, if that is retained; else its newer half against its older half.
    ///
    /// # Errors
    /// See [`frequency`](Self::frequency), or the window is too short to be halved.
    pub fn trend<'i>(&self, item: impl Into<Item<'i>>) -> Result<Trend, QueryError> {
        let item = item.into();
        let Range { start, end } = self.window();
        let len = end - start;
        // A window that the stream's start has cut short has none before it.
        let previous = self.last(len).and_then(|view| view.as_of(start)).ok();
        let previous = previous.filter(|view| view.window().end - view.window().start == len);
        let (now, before) = match previous {
            Some(previous) => (self.clone(), previous),
            None => {
                let newer = self.last(len / 2)?;
                let older = newer.as_of(end - len / 2)?;
                (newer, older)
            }
        };
        Ok(compare_estimates(now.frequency(item)?, before.frequency(item)?))
    }

    /// The estimates of an item in each retained substream that is complete, oldest first; at the ends those too in
    /// which the stream began or ended, as far as it reaches into them.
    ///
    /// # Errors
    /// See [`frequency`](Self::frequency).
    pub fn history<'i>(&self, item: impl Into<Item<'i>>) -> Result<Vec<Estimate>, QueryError> {
        let item = item.into();
        let len = self.plan().substream_len();
        let retained = self.retained();
        let is_first = retained.start == self.stream.start;
        let first = if is_first { retained.start / len } else { retained.start.div_ceil(len) };
        let last = if self.finished().is_some() { retained.end.div_ceil(len) } else { retained.end / len };
        let mut history = Vec::new();
        for number in first..last {
            let end = retained.end.min((number + 1) * len);
            history.push(self.with_window(end - number * len, end)?.frequency(item)?);
        }
        Ok(history)
    }
}

/// A difference is a change beyond this many standard errors. Chance alone makes one in 400, and rows that were chosen for
/// their size now look one standard error larger than before.
const BEYOND_CHANCE: f64 = 3.0;

/// The counts of an item that does not change differ by chance, besides the errors of their estimates.
fn compare_estimates(now: Estimate, before: Estimate) -> Trend {
    // The count is taken for its own variance, as for items that come one by one.
    let [now_variance, before_variance] =
        [&now, &before].map(|estimate| estimate.standard_error().powi(2) + estimate.value.max(0.0));
    let bound = BEYOND_CHANCE * (now_variance + before_variance).sqrt();
    let is_known = now.error_bound.is_finite() && before.error_bound.is_finite();
    let difference = now.value - before.value;
    let direction = match () {
        () if is_known && bound < difference => Direction::Rising,
        () if is_known && bound < -difference => Direction::Falling,
        () => Direction::Steady,
    };
    Trend { direction, now, before }
}
