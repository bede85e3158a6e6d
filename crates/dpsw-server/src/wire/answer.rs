//! Answers: each row has an estimate, where the true count lies, and what is covered.

use std::ops::Range;

use dpsw::{Claim, Direction, Estimate, Item, List, Ranked, Shown, Trend, Unit, WindowView};
use serde::Serialize;
use utoipa::ToSchema;

use crate::config::Protects;
use crate::wire::item::{ItemShape, names};

/// What is asked about and what is promised, with every answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct About {
    /// The positions that are asked about.
    pub(crate) window: Positions,
    /// The positions that sealed sketches cover.
    pub(crate) covered: Positions,
    /// Whose privacy one event is.
    pub(crate) protects: Protects,
    /// ε of everything that the stream ever releases; `null` if nothing is promised.
    pub(crate) epsilon: Option<f64>,
    /// δ of the same.
    pub(crate) delta: Option<f64>,
    /// How many items of the window count, which shares are shares of; `null` where that is private, nothing or no more than noise.
    pub(crate) total: Option<u64>,
}

/// Positions from `start` up to `end`, exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Positions {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// `items`, or `ms` since 1970.
    #[schema(example = "items")]
    pub(crate) unit: &'static str,
}

/// Rows for items that were listed or asked for.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Answer {
    #[serde(flatten)]
    pub(crate) about: About,
    /// The largest first in a list; else in the order in which they were asked for.
    pub(crate) items: Vec<Row>,
    /// Rows that are not shown because they may be noise alone.
    pub(crate) hidden: usize,
    /// Where users are protected: about how many events of the window count for no item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capped: Option<u64>,
}

/// One item of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Row {
    /// From 1.
    pub(crate) rank: usize,
    pub(crate) item: ItemShape,
    /// The bytes, where the text is not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item_base64: Option<String>,
    #[serde(flatten)]
    pub(crate) count: Count,
    /// `rising`, `steady`, `falling`, or `null` if that is unknown or was not asked for.
    #[schema(example = "steady")]
    pub(crate) trend: Option<&'static str>,
    /// Whether the count may be less than a quarter of the estimate.
    pub(crate) unsure: bool,
}

/// How often an item occurred.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Count {
    /// In a list, what the item probably counts, as it was chosen for its size; else noise can make it negative.
    pub(crate) estimate: f64,
    /// The true count lies between this and `upper` with probability 95 %; `null` where nothing is known of it.
    pub(crate) lower: Option<f64>,
    /// See `lower`.
    pub(crate) upper: Option<f64>,
    /// The ends of the interval that holds however the item is spread inside the substreams that the window cuts; `null`
    /// for an upper end that is not known.
    #[schema(value_type = Vec<Option<f64>>, min_items = 2, max_items = 2)]
    pub(crate) any_order: [Option<f64>; 2],
    /// Of the items of the window that count; `null` if there are none, or their number is all noise.
    pub(crate) share: Option<f64>,
}

/// An item in each substream that is kept, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct History {
    #[serde(flatten)]
    pub(crate) about: About,
    pub(crate) item: ItemShape,
    /// The bytes, where the text is not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item_base64: Option<String>,
    pub(crate) substreams: Vec<Spell>,
}

/// An item in one stretch of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Spell {
    pub(crate) window: Positions,
    pub(crate) covered: Positions,
    #[serde(flatten)]
    pub(crate) count: Count,
}

/// An item now and before.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct TrendAnswer {
    #[serde(flatten)]
    pub(crate) about: About,
    pub(crate) item: ItemShape,
    /// The bytes, where the text is not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item_base64: Option<String>,
    /// `rising`, `steady`, `falling`, or `null` if too little is sealed to tell.
    #[schema(example = "rising")]
    pub(crate) trend: Option<&'static str>,
    /// The newer window.
    pub(crate) now: Spell,
    /// The older window of the same length.
    pub(crate) before: Spell,
}

impl Positions {
    fn new(range: &Range<u64>, view: &WindowView) -> Self {
        let unit = if view.plan().settings().window.time().is_some() { "ms" } else { "items" };
        Self { start: range.start, end: range.end, unit }
    }
}

impl About {
    pub(crate) fn new(view: &WindowView) -> Self {
        let (epsilon, delta) = promised(view.claim());
        let protects = protects(view.plan().settings().unit);
        // Where presence is private, the number of items is noisy and stays inside: shares say what can be said.
        let total = view.counted().filter(|_| protects != Protects::Presence);
        let [window, covered] = [view.window(), view.covered()].map(|range| Positions::new(&range, view));
        Self { window, covered, protects, epsilon, delta, total }
    }
}

/// The word for a unit of privacy in settings.
pub(crate) fn protects(unit: Unit) -> Protects {
    match unit {
        Unit::AddRemove => Protects::Presence,
        Unit::Users { .. } => Protects::Users,
        _ => Protects::Event,
    }
}

/// ε and δ, if anything is promised.
pub(crate) fn promised(claim: Claim) -> (Option<f64>, Option<f64>) {
    match claim {
        Claim::Pure(epsilon) => (Some(epsilon.get()), Some(0.0)),
        Claim::Approximate(epsilon, delta) => (Some(epsilon.get()), Some(delta.get())),
        _ => (None, None),
    }
}

impl Answer {
    /// The rows of a list, which were chosen for their size.
    pub(crate) fn listed(view: &WindowView, list: &List<'_>, trends: bool) -> Self {
        Self { hidden: list.hidden.len(), ..Self::of(view, &list.rows, listed, trends) }
    }

    /// Items that were asked for.
    pub(crate) fn asked(view: &WindowView, rows: &[Ranked<'_>], trends: bool) -> Self {
        Self::of(view, rows, |ranked| plain(&ranked.estimate), trends)
    }

    fn of(view: &WindowView, rows: &[Ranked<'_>], shown: fn(&Ranked<'_>) -> [f64; 3], trends: bool) -> Self {
        let total = view.counted();
        let mut items = Vec::with_capacity(rows.len());
        for (index, ranked) in rows.iter().enumerate() {
            let (item, item_base64) = names(ranked.item);
            items.push(Row {
                rank: index + 1,
                item,
                item_base64,
                count: Count::new(shown(ranked), &ranked.estimate, total),
                trend: if trends { trend(view, ranked.item) } else { None },
                unsure: ranked.shown.marked,
            });
        }
        let capped = rows.first().and_then(|ranked| ranked.estimate.capped);
        Self { about: About::new(view), items, hidden: 0, capped }
    }
}

impl Count {
    fn new([value, lower, upper]: [f64; 3], estimate: &Estimate, total: Option<u64>) -> Self {
        let known = |end: f64| end.is_finite().then(|| rounded(end));
        Self {
            estimate: rounded(value),
            lower: known(lower),
            upper: known(upper),
            any_order: [estimate.any_order.start, estimate.any_order.end].map(known),
            share: total.map(|total| (value / total as f64 * 1e6).round() / 1e6 + 0.0),
        }
    }
}

impl History {
    pub(crate) fn new(view: &WindowView, item: Item<'_>, estimates: &[Estimate]) -> Self {
        let (item, item_base64) = names(item);
        let substreams = estimates.iter().map(|estimate| Spell::new(view, estimate)).collect();
        Self { about: About::new(view), item, item_base64, substreams }
    }
}

impl Spell {
    fn new(view: &WindowView, estimate: &Estimate) -> Self {
        let [window, covered] =
            [&estimate.window, &estimate.covered].map(|range| Positions::new(range, view));
        let len = estimate.window.end - estimate.window.start;
        let counted = len.saturating_sub(estimate.capped.unwrap_or(0));
        // The total of a part of a time window is not at hand.
        let total = (window.unit == "items" && 0 < counted).then_some(counted);
        Self { window, covered, count: Count::new(plain(estimate), estimate, total) }
    }
}

impl TrendAnswer {
    pub(crate) fn new(view: &WindowView, item: Item<'_>, trend: &Trend) -> Self {
        let (item, item_base64) = names(item);
        let [now, before] = [&trend.now, &trend.before].map(|estimate| Spell::new(view, estimate));
        Self { about: About::new(view), item, item_base64, trend: direction(trend), now, before }
    }
}

/// What a row of a list probably counts.
fn listed(ranked: &Ranked<'_>) -> [f64; 3] {
    let Shown { value, lower, upper, .. } = ranked.shown;
    [value, lower, upper]
}

/// The estimate of an item that was asked for.
fn plain(estimate: &Estimate) -> [f64; 3] {
    let Estimate { value, error_bound, .. } = *estimate;
    [value, value - error_bound, value + error_bound]
}

fn trend(view: &WindowView, item: Item<'_>) -> Option<&'static str> {
    view.trend(item).ok().and_then(|trend| direction(&trend))
}

fn direction(trend: &Trend) -> Option<&'static str> {
    // Before half a window is sealed there is nothing to compare.
    if trend.before.covered.is_empty() || trend.now.covered.is_empty() {
        return None;
    }
    Some(match trend.direction {
        Direction::Rising => "rising",
        Direction::Steady => "steady",
        Direction::Falling => "falling",
    })
}

fn rounded(value: f64) -> f64 {
    // Nobody writes -0.
    (value * 100.0).round() / 100.0 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_less_than_nothing_is_nothing() {
        assert_eq!(rounded(-0.001).to_string(), "0");
    }
}
