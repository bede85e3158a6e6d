//! Lists: rows that were chosen for their size, shown as what they probably count.

use std::ops::Deref;

use crate::view::estimate::{CONFIDENCE, Certainty, Estimate, Ranked, Shown, WHOLE_COUNTS};
use crate::view::prior::{Errors, Posterior, Prior, Row};

/// Keys chosen for their size, largest first: those that occurred, and apart from them those that may be noise alone.
///
/// It can be used like a slice of the rows that are shown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct List<'a> {
    /// Rows whose true count is at least 1 with probability 95 %.
    pub rows: Vec<Ranked<'a>>,
    /// Rows that were chosen as well and may be noise alone.
    pub hidden: Vec<Ranked<'a>>,
    /// How many keys the rows were chosen from.
    keys: usize,
}

impl<'a> List<'a> {
    /// Sorts rows that were chosen from so many keys.
    pub(crate) fn new(mut rows: Vec<Ranked<'a>>, keys: usize) -> Self {
        let by_shown = |a: &Ranked<'_>, b: &Ranked<'_>| {
            b.shown.value.total_cmp(&a.shown.value).then(b.estimate.value.total_cmp(&a.estimate.value))
        };
        rows.sort_by(by_shown);
        let (hidden, rows) = rows.into_iter().partition(|row| row.shown.may_be_none());
        Self { rows, hidden, keys }
    }

    /// All rows as they are.
    pub(crate) fn of(rows: Vec<Ranked<'a>>) -> Self {
        Self { keys: rows.len(), rows, hidden: Vec::new() }
    }

    /// Only the rows that reach a count.
    pub(crate) fn at_least(mut self, count: f64, certainty: Certainty) -> Self {
        let reaches = |row: &Ranked<'_>| {
            let end = match certainty {
                Certainty::Plain => row.shown.value,
                Certainty::Sure => row.shown.lower,
                Certainty::Possible => row.shown.upper,
            };
            count <= end
        };
        self.rows.retain(reaches);
        self.hidden.retain(reaches);
        self
    }

    /// The same rows with intervals that hold for 95 % of them whatever the stream is like (false coverage rate; Benjamini and
    /// Yekutieli 2005). The values are the plain estimates, and the intervals are half as wide again.
    #[must_use]
    pub fn strict(self) -> Self {
        let side = (1.0 - CONFIDENCE) / 2.0;
        let rows: Vec<Ranked<'a>> = self.rows.into_iter().chain(self.hidden).collect();
        let chosen = rows.len() as f64 / self.keys.max(1) as f64;
        let strict = |row: Ranked<'a>| {
            let Estimate { value, .. } = row.estimate;
            let lower = (value - row.estimate.reach(side * chosen)).max(0.0);
            let upper = (value + row.estimate.reach(side)).max(0.0);
            Ranked { shown: Shown::new(value.max(0.0), lower, upper), ..row }
        };
        Self::new(rows.into_iter().map(strict).collect(), self.keys)
    }

    /// Every row, also those that may be noise alone.
    pub fn all(&self) -> impl Iterator<Item = &Ranked<'a>> {
        self.rows.iter().chain(&self.hidden)
    }
}

impl<'a> Deref for List<'a> {
    type Target = [Ranked<'a>];

    fn deref(&self) -> &Self::Target {
        &self.rows
    }
}

impl<'a> IntoIterator for List<'a> {
    type Item = Ranked<'a>;
    type IntoIter = std::vec::IntoIter<Ranked<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'l, 'a> IntoIterator for &'l List<'a> {
    type Item = &'l Ranked<'a>;
    type IntoIter = std::slice::Iter<'l, Ranked<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

/// What is shown of rows that were chosen from these values.
pub(crate) fn shown(errors: Errors, values: &[f64], rows: &[(Row, Estimate)]) -> Vec<Shown> {
    let plain = |(_, estimate): &(Row, Estimate)| Shown::plain(estimate);
    // Where all are listed none was chosen, and exact counters have nothing to shrink.
    if rows.len() == values.len() || errors.base.variance <= 0.0 {
        return rows.iter().map(plain).collect();
    }
    let only: Vec<Row> = rows.iter().map(|(row, _)| *row).collect();
    let prior = Prior::new(errors, values, &only);
    let one = |row: &(Row, Estimate)| match prior.posterior(row.0) {
        Some(Posterior { value, lower, upper }) => {
            let (lower, upper) = ((lower - WHOLE_COUNTS).max(0.0), upper + WHOLE_COUNTS);
            Shown::new(value, lower, upper)
        }
        None => plain(row),
    };
    rows.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::value::Item;
    use crate::noise::tail::Tail;
    use crate::view::estimate::Deviations;

    fn estimate(value: f64) -> Estimate {
        let deviations = Deviations { noise: 10.0, collisions: 0.0, misfit: 0.0 };
        Estimate {
            value,
            error_bound: 20.1,
            any_order: 0.0..value,
            deviations: Some(deviations),
            tail: Tail::NORMAL,
            covered: 0..10,
            window: 0..10,
            capped: None,
        }
    }

    fn list(values: &[f64], keys: usize) -> List<'static> {
        let row = |&value: &f64| Ranked::plain(Item::from(value as u64), estimate(value));
        List::new(values.iter().map(row).collect(), keys)
    }

    fn values(rows: &[Ranked<'_>]) -> Vec<f64> {
        rows.iter().map(|row| row.estimate.value).collect()
    }

    #[test]
    fn rows_that_may_be_noise_alone_are_apart() {
        let list = list(&[5.0, 300.0, 24.0, 20.0, 100.0], 1000);
        assert_eq!(values(&list), [300.0, 100.0, 24.0]);
        assert_eq!(values(&list.hidden), [20.0, 5.0]);
        assert_eq!((list.len(), list.all().count()), (3, 5));
        assert_eq!(list.iter().map(|row| row.shown.marked).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn strict_intervals_reach_farther_down_the_fewer_keys_were_chosen() {
        let lower = |keys: usize| list(&[300.0], keys).strict().rows[0].shown.lower;
        assert!((lower(1) - (300.0 - 19.6 - WHOLE_COUNTS)).abs() < 0.01);
        // A tail of 0.025 / 1000 lies 4.06 deviations away.
        assert!((lower(1000) - (300.0 - 40.6 - WHOLE_COUNTS)).abs() < 0.1);
        assert!(list(&[30.0], 1000).strict().rows.is_empty(), "a row may turn out to be noise");
    }

    #[test]
    fn a_threshold_is_held_against_the_end_that_was_asked_for() {
        let of = |certainty| values(&list(&[300.0, 100.0, 85.0], 3).at_least(90.0, certainty));
        assert_eq!(of(Certainty::Plain), [300.0, 100.0]);
        assert_eq!(of(Certainty::Sure), [300.0]);
        assert_eq!(of(Certainty::Possible), [300.0, 100.0, 85.0]);
    }

    #[test]
    fn where_all_are_listed_none_was_chosen() {
        let errors = Errors { base: Default::default(), chance_per_item: 0.0 };
        let rows = [
            (Row { value: -3.0, unrest: 0.0, errors }, estimate(-3.0)),
            (Row { value: 50.0, unrest: 0.0, errors }, estimate(50.0)),
        ];
        let shown = shown(errors, &[-3.0, 50.0], &rows);
        assert_eq!((shown[0].value, shown[0].lower, shown[0].upper), (0.0, 0.0, 17.1));
        assert_eq!((shown[1].value, shown[1].lower, shown[1].upper), (50.0, 29.9, 70.1));
    }
}
