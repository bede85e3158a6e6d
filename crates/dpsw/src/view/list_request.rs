//! What a list is asked for. Whether its rows were chosen for their size follows from this alone, never from the data.

use std::cell::Cell;

use crate::error::QueryError;
use crate::privacy::parameters::Threshold;
use crate::view::estimate::{Certainty, Shown};
use crate::view::ranking::{at_least, choose_largest};

/// A request for a list: how many rows, of at least which share, and what to do with rows that may be noise alone.
///
/// Rows of a list show what they probably count, as they were chosen for their size. Only a request that hides nothing chooses
/// nothing: [`with_noise`](Self::with_noise), without a threshold, for at least as many rows as there are keys. Its rows are
/// plain estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListRequest {
    most: usize,
    pub(crate) threshold: Option<Threshold>,
    certainty: Certainty,
    has_noise: bool,
    is_strict: bool,
    in_question_max: usize,
}

impl ListRequest {
    /// The keys with the largest counts, at most so many.
    #[must_use]
    pub fn top(most: usize) -> Self {
        Self {
            most,
            threshold: None,
            certainty: Certainty::Plain,
            has_noise: false,
            is_strict: false,
            in_question_max: usize::MAX,
        }
    }

    /// The keys whose count reaches a share of the window.
    #[must_use]
    pub fn heavy_hitters(threshold: Threshold) -> Self {
        Self { threshold: Some(threshold), ..Self::top(usize::MAX) }
    }

    /// At most so many rows; [`List::more`](crate::List::more) says how many others there are.
    #[must_use]
    pub fn at_most(self, rows: usize) -> Self {
        Self { most: rows, ..self }
    }

    /// Makes no rows if more keys than this come into question for a threshold. Rows take memory, and noise may lift very many
    /// keys over a low threshold.
    #[must_use]
    pub fn with_in_question_up_to(self, keys: usize) -> Self {
        Self { in_question_max: keys, ..self }
    }

    /// On which side a threshold errs.
    #[must_use]
    pub fn with_certainty(self, certainty: Certainty) -> Self {
        Self { certainty, ..self }
    }

    /// Whether rows that may be noise alone stand among the others. They are [hidden](crate::List::hidden) by default.
    #[must_use]
    pub fn with_noise(self, has_noise: bool) -> Self {
        Self { has_noise, ..self }
    }

    /// Whether intervals hold for 95 % of the rows whatever the stream is like (false coverage rate; Benjamini and Yekutieli
    /// 2005). The values are the plain estimates, and the intervals are about half as wide again.
    #[must_use]
    pub fn strict(self, is_strict: bool) -> Self {
        Self { is_strict, ..self }
    }
}

/// A request about a window, where a threshold is a count.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selection {
    pub(crate) request: ListRequest,
    /// The least count of a row, if there is a threshold.
    pub(crate) least: Option<f64>,
    /// How many keys came into question, once they were chosen.
    in_question: Cell<usize>,
}

impl Selection {
    pub(crate) fn new(request: ListRequest, least: Option<f64>) -> Self {
        Self { request, least, in_question: Cell::new(0) }
    }

    /// Whether no more keys came into question than the request allows.
    pub(crate) fn check_in_question(&self) -> Result<(), QueryError> {
        let (got, most) = (self.in_question.get(), self.request.in_question_max);
        if got <= most { Ok(()) } else { Err(QueryError::ManyRows { got, most }) }
    }

    /// The indices of the values that rows are made of. Keys are looked at that lie `slack` below a threshold.
    pub(crate) fn choose_indices(&self, values: &[f64], slack: impl Fn(f64) -> f64) -> Vec<usize> {
        match self.least {
            Some(least) => {
                let low = least - slack(least);
                // One more than allowed is enough to refuse: only then are the others counted.
                let most = self.request.in_question_max.saturating_add(1);
                let indices: Vec<usize> = at_least(values, low).take(most).collect();
                self.in_question.set(indices.len());
                if self.check_in_question().is_ok() {
                    return indices;
                }
                self.in_question.set(at_least(values, low).count());
                Vec::new()
            }
            None => choose_largest(values, self.request.most),
        }
    }

    pub(crate) fn most_rows(&self) -> usize {
        self.request.most
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.request.is_strict
    }

    /// Whether the request shows every key, whatever is estimated. Soundness of all intervals rests on asking the request
    /// alone: if all keys happen to be listed, they were still chosen.
    pub(crate) fn hides_nothing(&self, keys: usize) -> bool {
        // What the data happens to hide must not matter (PRIVACY.md: rule 41).
        self.request.has_noise && self.least.is_none() && keys <= self.request.most
    }

    /// Whether a row reaches the threshold.
    pub(crate) fn is_reached(&self, shown: &Shown) -> bool {
        let end = match self.request.certainty {
            Certainty::Plain => shown.value,
            Certainty::Sure => shown.lower,
            Certainty::Possible => shown.upper,
        };
        self.least.is_none_or(|least| least <= end)
    }

    /// Whether a row is kept apart from the others.
    pub(crate) fn is_hidden(&self, shown: &Shown) -> bool {
        !self.request.has_noise && shown.may_be_none()
    }

    /// What the lower end of a row must reach for the row to stand in the list, if that matters.
    pub(crate) fn least_lower(&self) -> Option<f64> {
        let hidden = (!self.request.has_noise).then_some(Shown::LEAST);
        let sure = self.least.filter(|_| self.request.certainty == Certainty::Sure);
        hidden.into_iter().chain(sure).reduce(f64::max)
    }
}
