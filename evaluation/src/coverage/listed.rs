//! Rows listed by `top`.

use anyhow::Result;
use dpsw::{Item, ListRequest, Ranked, WindowView};
use serde::{Deserialize, Serialize};

use super::arrivals::Occurrences;
use super::shown::{Shown, shown};

/// Rows that are listed.
pub(super) const LISTED: usize = 20;
/// A row is right if its true count reaches the 20th largest but for this many standard errors.
const RIGHT_DEVIATIONS: f64 = 3.0;
/// The true top is clear if its last count exceeds this many standard errors.
const CLEAR_DEVIATIONS: f64 = 8.0;

/// The last count of the true top, and how well its key can be told.
#[derive(Debug, Clone, Copy)]
struct Bar {
    count: f64,
    standard_error: f64,
}

/// A listed row and the truth about it.
#[derive(Debug, Clone, Copy)]
struct Judged {
    shown: Shown,
    naive_width: f64,
    count: u64,
}

/// What lists showed; sums over query times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub queries: u64,
    pub rows: u64,
    /// Rows whose 95 % interval holds the true count.
    pub covered: u64,
    /// Rows that were chosen as well and are hidden, as they may be noise alone.
    pub hidden: u64,
    /// Of those, rows whose interval holds the true count.
    pub hidden_covered: u64,
    /// The sum of the widths of the intervals of listed rows.
    pub width: f64,
    /// The sum of the widths of the intervals for keys chosen beforehand.
    pub naive_width: f64,
    /// Rows without a mark of doubt.
    pub unmarked: u64,
    /// Of those, rows whose true count is below a quarter of what is shown.
    pub ghosts: u64,
    /// Of those, rows whose true count reaches the 20th largest but for 3 standard errors.
    pub right: u64,
    /// Of those, rows that belong to the true top 20; equally frequent keys all belong.
    pub recalled: u64,
    /// Query times at which the 20th largest true count exceeds 8 standard errors.
    pub clear: u64,
    /// Rows, also hidden ones, whose strict interval holds the true count.
    pub strict: u64,
}

impl Listed {
    /// Lists the top 20 of a view and holds it against the truth about the first `keys` items, which are on its list.
    pub fn ask(&mut self, view: &WindowView, truth: &Occurrences, keys: usize) -> Result<()> {
        let window = view.window();
        let top = truth.top(LISTED, keys, &window);
        let Some(&(last, last_count)) = top.last() else { return Ok(()) };
        let bar = Bar { count: last_count as f64, standard_error: view.frequency(last)?.standard_error() };
        let judged = |ranked: &Ranked<'_>| {
            let Item::Integer(item) = ranked.item else { return None };
            let naive_width = 2.0 * ranked.estimate.error_bound;
            Some(Judged { shown: shown(ranked), naive_width, count: truth.count(item, &window) })
        };
        let list = view.top(LISTED)?;
        let strict = view.list(ListRequest::top(LISTED).with_noise(true).strict(true))?;
        self.strict +=
            strict.all().filter_map(judged).filter(|row| row.shown.holds(row.count)).count() as u64;
        self.judge(&list.rows.iter().filter_map(judged).collect::<Vec<_>>(), bar, top.len() as u64);
        self.note_hidden(&list.hidden.iter().filter_map(judged).collect::<Vec<_>>());
        Ok(())
    }

    fn note_hidden(&mut self, rows: &[Judged]) {
        self.hidden += rows.len() as u64;
        self.hidden_covered += rows.iter().filter(|row| row.shown.holds(row.count)).count() as u64;
    }

    /// Adds one list; the true top has this many keys.
    fn judge(&mut self, rows: &[Judged], bar: Bar, top: u64) {
        self.queries += 1;
        self.clear += u64::from(CLEAR_DEVIATIONS * bar.standard_error < bar.count);
        let mut recalled = 0;
        for Judged { shown, naive_width, count } in rows {
            self.rows += 1;
            self.covered += u64::from(shown.holds(*count));
            // Before the first seal nothing is known, and intervals have no width.
            if shown.width().is_finite() {
                self.width += shown.width();
                self.naive_width += naive_width;
            }
            if !shown.marked {
                self.unmarked += 1;
                self.ghosts += u64::from(shown.is_ghost(*count));
                self.right += u64::from(bar.count - RIGHT_DEVIATIONS * bar.standard_error <= *count as f64);
                recalled += u64::from(bar.count <= *count as f64);
            }
        }
        self.recalled += recalled.min(top);
    }

    pub fn add(&mut self, other: &Self) {
        self.queries += other.queries;
        self.rows += other.rows;
        self.covered += other.covered;
        self.hidden += other.hidden;
        self.hidden_covered += other.hidden_covered;
        self.width += other.width;
        self.naive_width += other.naive_width;
        self.unmarked += other.unmarked;
        self.ghosts += other.ghosts;
        self.right += other.right;
        self.recalled += other.recalled;
        self.clear += other.clear;
        self.strict += other.strict;
    }

    /// The share of rows whose interval holds the truth.
    pub fn coverage(&self) -> Option<f64> {
        share(self.covered, self.rows)
    }

    /// The same of all rows, also of those that are hidden.
    pub fn coverage_of_all(&self) -> Option<f64> {
        share(self.covered + self.hidden_covered, self.rows + self.hidden)
    }

    /// The share of all rows whose strict interval holds the truth.
    pub fn strict_coverage(&self) -> Option<f64> {
        share(self.strict, self.rows + self.hidden)
    }

    /// The mean width of the intervals over that for keys chosen beforehand.
    pub fn relative_width(&self) -> Option<f64> {
        (0.0 < self.naive_width).then(|| self.width / self.naive_width)
    }

    /// The share of unmarked rows whose true count is below a quarter of what is shown.
    pub fn ghost_share(&self) -> Option<f64> {
        share(self.ghosts, self.unmarked)
    }

    /// The share of unmarked rows that are right.
    pub fn precision(&self) -> Option<f64> {
        share(self.right, self.unmarked)
    }

    /// The share of the true top 20 that is listed unmarked.
    pub fn recall(&self) -> Option<f64> {
        share(self.recalled, self.queries * LISTED as u64)
    }

    /// The share of query times at which the true top is clear.
    pub fn clear_share(&self) -> Option<f64> {
        share(self.clear, self.queries)
    }
}

/// A share of at least one thing.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (0 < whole).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_judged_by_what_they_show() {
        let row = |value: f64, reach: f64, marked, count| Judged {
            shown: Shown { value, lower: value - reach, upper: value + reach, marked },
            naive_width: 20.0,
            count,
        };
        let rows = [
            row(100.0, 10.0, false, 95),
            row(90.0, 20.0, false, 60),
            row(80.0, 20.0, false, 19),
            row(70.0, 80.0, true, 0),
            row(60.0, f64::INFINITY, true, 50),
        ];
        let mut listed = Listed::default();
        listed.judge(&rows, Bar { count: 90.0, standard_error: 10.0 }, 20);
        let wanted = Listed {
            queries: 1,
            rows: 5,
            covered: 3,
            hidden: 0,
            hidden_covered: 0,
            width: 20.0 + 40.0 + 40.0 + 160.0,
            naive_width: 80.0,
            unmarked: 3,
            ghosts: 1,
            right: 2,
            recalled: 1,
            clear: 1,
            strict: 0,
        };
        assert_eq!(listed, wanted);
        listed.judge(&rows, Bar { count: 0.0, standard_error: 10.0 }, 2);
        assert_eq!((listed.right, listed.recalled, listed.clear), (5, 3, 1));
        assert_eq!((listed.coverage(), listed.relative_width()), (Some(0.6), Some(3.25)));
        assert_eq!((listed.ghost_share(), listed.precision()), (Some(2.0 / 6.0), Some(5.0 / 6.0)));
        assert_eq!((listed.recall(), listed.clear_share()), (Some(3.0 / 40.0), Some(0.5)));
        listed.note_hidden(&rows[2..]);
        assert_eq!((listed.coverage(), listed.coverage_of_all()), (Some(0.6), Some(8.0 / 13.0)));
        assert_eq!(Listed::default().coverage(), None);
    }
}
