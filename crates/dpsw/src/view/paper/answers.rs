//! The paper's answers: the nearest complete ranges cover the window, and row minima add up.

use std::ops::Range;

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::tail::Tail;
use crate::plan::paper::theorems::minimum_error;
use crate::plan::settings::Window;
use crate::view::estimate::{CONFIDENCE, Estimate, Ranked, Shown};
use crate::view::list::{List, show_strictly};
use crate::view::list_request::Selection;
use crate::view::paper::cover::{Cover, Part, count_apart, positions_of};
use crate::view::question::Question;
use crate::view::ranking::by_value;

/// A window with its cover.
pub(crate) struct PaperAnswers<'a> {
    question: Question<'a>,
    cover: Cover,
}

impl<'a> PaperAnswers<'a> {
    pub(crate) fn new(question: Question<'a>) -> Self {
        Self {
            question,
            cover: question.cached.released.choose_cover(question.plan, question.stream, question.window),
        }
    }

    pub(crate) fn covered_span(&self) -> Range<u64> {
        self.cover.span.clone()
    }

    pub(crate) fn estimate_item(&self, item: Item<'_>) -> Estimate {
        self.to_estimate(self.question.cached.released.sum_minima(&self.cover, item), self.error_bound())
    }

    /// Items of the covered span, by noisy counters where presence is private.
    pub(crate) fn count_items(&self) -> u64 {
        let items = self.cover.parts.iter().map(|part| self.question.cached.released.items_in(*part));
        items.fold(0, u64::saturating_add)
    }

    /// The chosen keys, largest first, as they are: their bounds are worst cases, and none is hidden.
    pub(crate) fn list_keys<'k>(&self, keys: &'k Keys, selection: &Selection) -> List<'k> {
        let values = self.question.cached.estimate_keys(&self.cover, keys);
        let bound = self.error_bound();
        self.rank_rows(&values, selection, |index| (keys.get(index), self.to_estimate(values[index], bound)))
    }

    /// The chosen candidates.
    pub(crate) fn list_among<'i>(&self, candidates: &[Item<'i>], selection: &Selection) -> List<'i> {
        let estimates: Vec<Estimate> = candidates.iter().map(|item| self.estimate_item(*item)).collect();
        let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        self.rank_rows(&values, selection, |index| (candidates[index], estimates[index].clone()))
    }

    fn rank_rows<'k>(
        &self,
        values: &[f64],
        selection: &Selection,
        row: impl Fn(usize) -> (Item<'k>, Estimate),
    ) -> List<'k> {
        let chosen = by_value(selection.choose_indices(values, |_| 0.0), values);
        // Worst cases make nearly every row one that may be none: hiding those would leave no list.
        let selection = Selection::new(selection.request.with_noise(true), selection.least);
        let rows: Vec<(Item<'k>, Estimate)> = chosen.into_iter().map(row).collect();
        let estimates = rows.iter().map(|(_, estimate)| estimate);
        let shown = match selection.is_strict() {
            true => show_strictly(estimates, values.len(), &selection),
            false => estimates.map(Shown::plain).collect(),
        };
        let rows = rows.into_iter().zip(shown);
        let ranked = rows.map(|((item, estimate), shown)| Ranked { item, estimate, shown });
        List::new(ranked.collect(), &selection)
    }

    fn to_estimate(&self, value: f64, error_bound: f64) -> Estimate {
        Estimate {
            value,
            error_bound,
            any_order: value - error_bound..value + error_bound,
            deviations: None,
            tail: Tail::NORMAL,
            covered: self.cover.span.clone(),
            window: self.question.window.clone(),
            capped: None,
        }
    }

    /// Each part may fail with an equal share of the probability; the edge error is certain.
    fn error_bound(&self) -> f64 {
        let Question { plan, cached, noises, .. } = self.question;
        if self.cover.parts.is_empty() {
            return self.question.unknown_bound();
        }
        let failure = (1.0 - CONFIDENCE) / self.cover.parts.len() as f64;
        let rows = plan.shape().rows;
        let columns = plan.collision_columns();
        let errors = self.cover.parts.iter().map(|&part| {
            let law = plan.ranges()[part.range].law();
            noises * minimum_error(cached.released.items_in(part), rows, columns, law, failure / noises)
        });
        errors.sum::<f64>() + self.edge_items()
    }

    /// How many items lie in the window or the cover but not in both. For a time window that is estimated by the rate
    /// of the parts at the edges.
    fn edge_items(&self) -> f64 {
        let Cover { parts, span } = &self.cover;
        let window = self.question.window;
        if let Window::Items(_) = self.question.plan.settings().window {
            return count_apart(span, window) as f64;
        }
        let at_start = span.start.abs_diff(window.start) as f64;
        let at_end = span.end.abs_diff(window.end) as f64;
        at_start * self.rate_of(parts.first()) + at_end * self.rate_of(parts.last())
    }

    /// Items per position in a part of the cover.
    fn rate_of(&self, part: Option<&Part>) -> f64 {
        let Question { plan, cached, stream, .. } = self.question;
        let Some(&part) = part else { return 0.0 };
        let span = positions_of(plan, stream, part);
        cached.released.items_in(part) as f64 / (span.end - span.start).max(1) as f64
    }
}
