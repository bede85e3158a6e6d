//! The paper's answers: the nearest complete ranges cover the window, and row minima add up.

use std::ops::Range;

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::tail::Tail;
use crate::plan::bound::minimum_error;
use crate::plan::settings::Window;
use crate::view::asked::Asked;
use crate::view::cover::{Cover, Part, misfit, positions};
use crate::view::estimate::{CONFIDENCE, Estimate, Ranked, Shown};
use crate::view::list::{List, strict};
use crate::view::list_request::Selection;
use crate::view::ranking::by_value;

/// A window with its cover.
pub(crate) struct Nearest<'a> {
    asked: Asked<'a>,
    cover: Cover,
}

impl<'a> Nearest<'a> {
    pub(crate) fn new(asked: Asked<'a>) -> Self {
        Self { asked, cover: asked.readable.released.cover(asked.plan, asked.stream, asked.window) }
    }

    pub(crate) fn span(&self) -> Range<u64> {
        self.cover.span.clone()
    }

    pub(crate) fn frequency(&self, item: Item<'_>) -> Estimate {
        self.estimate(self.asked.readable.released.estimate(&self.cover, item), self.error_bound())
    }

    /// Items of the covered span, by noisy counters where presence is private.
    pub(crate) fn items(&self) -> u64 {
        let items = self.cover.parts.iter().map(|part| self.asked.readable.released.items(*part));
        items.fold(0, u64::saturating_add)
    }

    /// The chosen keys, largest first, as they are: their bounds are worst cases, and none is hidden.
    pub(crate) fn list<'k>(&self, keys: &'k Keys, selection: &Selection) -> List<'k> {
        let values = self.asked.readable.estimates(&self.cover, keys);
        let bound = self.error_bound();
        self.ranked(&values, selection, |place| (keys.get(place), self.estimate(values[place], bound)))
    }

    /// The chosen candidates.
    pub(crate) fn list_among<'i>(&self, candidates: &[Item<'i>], selection: &Selection) -> List<'i> {
        let estimates: Vec<Estimate> = candidates.iter().map(|item| self.frequency(*item)).collect();
        let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        self.ranked(&values, selection, |place| (candidates[place], estimates[place].clone()))
    }

    fn ranked<'k>(
        &self,
        values: &[f64],
        selection: &Selection,
        row: impl Fn(usize) -> (Item<'k>, Estimate),
    ) -> List<'k> {
        let places = by_value(selection.choose(values, |_| 0.0), values);
        let selection = Selection::new(selection.request.with_noise(true), selection.least);
        let rows: Vec<(Item<'k>, Estimate)> = places.into_iter().map(row).collect();
        let estimates = rows.iter().map(|(_, estimate)| estimate);
        let shown = match selection.is_strict() {
            true => strict(estimates, values.len(), &selection),
            false => estimates.map(Shown::plain).collect(),
        };
        let ranked = |((item, estimate), shown)| Ranked { item, estimate, shown };
        List::new(rows.into_iter().zip(shown).map(ranked).collect(), &selection)
    }

    fn estimate(&self, value: f64, error_bound: f64) -> Estimate {
        Estimate {
            value,
            error_bound,
            any_order: value - error_bound..value + error_bound,
            deviations: None,
            tail: Tail::NORMAL,
            covered: self.cover.span.clone(),
            window: self.asked.window.clone(),
            capped: None,
        }
    }

    /// Each part may fail with an equal share of the probability; the misfit is certain.
    fn error_bound(&self) -> f64 {
        let Asked { plan, readable, noises, .. } = self.asked;
        if self.cover.parts.is_empty() {
            return self.asked.unknown_bound();
        }
        let failure = (1.0 - CONFIDENCE) / self.cover.parts.len() as f64;
        let (rows, columns) = (plan.shape().rows, plan.collision_columns());
        let part_error = |&part: &Part| {
            let law = plan.ranges()[part.range].law();
            noises * minimum_error(readable.released.items(part), rows, columns, law, failure / noises)
        };
        self.cover.parts.iter().map(part_error).sum::<f64>() + self.misfit_items()
    }

    /// How many items lie in the window or the cover but not in both. For a time window that is estimated by the rate
    /// of the parts at the edges.
    fn misfit_items(&self) -> f64 {
        let Asked { plan, readable, stream, window, .. } = self.asked;
        if let Window::Items(_) = plan.settings().window {
            return misfit(&self.cover.span, window) as f64;
        }
        let rate = |part: Option<&Part>| {
            let part = *part?;
            let span = positions(plan, stream, part);
            Some(readable.released.items(part) as f64 / (span.end - span.start).max(1) as f64)
        };
        let Cover { parts, span } = &self.cover;
        let at_start = span.start.abs_diff(window.start) as f64;
        let at_end = span.end.abs_diff(window.end) as f64;
        at_start * rate(parts.first()).unwrap_or(0.0) + at_end * rate(parts.last()).unwrap_or(0.0)
    }
}
