//! The answers of a view, as they are printed.

use std::ops::Range;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dpsw::plan::Prediction;
use dpsw::{Claim, Direction, Estimate, Item, ListRequest, Plan, Ranked, Shown, Threshold, Unit, WindowView};
use dpsw_frontend::plan_request;
use serde::Serialize;

use crate::count::feed::Counts;
use crate::show::why::{Empty, USUALLY, Why};
use crate::show::words;

/// The items that are shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Which {
    /// The most frequent ones, at most so many, of at least this share.
    Listed {
        most: usize,
        threshold: Option<f64>,
        rows: Rows,
    },
    Asked(Vec<String>),
}

/// The way in which the rows of a list are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rows {
    /// Also those that may be noise alone.
    pub(crate) all: bool,
    /// With intervals that hold whatever the stream is like.
    pub(crate) strict: bool,
}

impl Rows {
    fn request(self, most: usize, threshold: Option<f64>) -> Result<ListRequest> {
        let request = match threshold {
            Some(share) => ListRequest::heavy_hitters(Threshold::new(share)?).at_most(most),
            None => ListRequest::top(most),
        };
        Ok(request.with_noise(self.all).strict(self.strict))
    }
}

/// Rows to show, how many are hidden as they may be noise alone, and how many more there are.
#[derive(Default)]
struct Chosen<'a> {
    rows: Vec<Ranked<'a>>,
    hidden: usize,
    more: usize,
}

/// One answer. `schema/answer.json` describes it to programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Answer {
    pub(crate) window: Positions,
    pub(crate) covered: Positions,
    /// Items of the window that count, which shares are shares of; `null` if that is nothing, or no more than noise.
    pub(crate) total: Option<u64>,
    /// What is protected.
    pub(crate) unit: &'static str,
    /// `null` if nothing is promised.
    pub(crate) epsilon: Option<f64>,
    pub(crate) delta: Option<f64>,
    /// The promise in words.
    pub(crate) claim: String,
    /// About the count below which nothing stands out; `null` where it cannot be predicted.
    pub(crate) below_noise: Option<u64>,
    /// From where on keys are usually found; `null` with a list.
    pub(crate) found_from: Option<FoundFrom>,
    /// What became of the records; `null` for a saved view, and where their number is private.
    pub(crate) read: Option<Counts>,
    pub(crate) items: Vec<Row>,
    /// Rows that are not shown because they may be noise alone.
    pub(crate) hidden: usize,
    /// Rows that reach the threshold and are more than were asked for.
    pub(crate) more: usize,
    /// What trends hold against each other; `null` if there is none.
    pub(crate) trend_compares: Option<Compared>,
    /// Why there is no row, and what would help; `null` if there is one.
    pub(crate) why: Option<Why>,
    /// Where users are protected: about how many records of the window count for no item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capped: Option<u64>,
    /// What the answer is about, for people.
    #[serde(skip)]
    pub(crate) headline: Vec<String>,
}

/// The frequency in a window from which on a key is found by its end nine times out of ten.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct FoundFrom {
    /// Occurrences within the window.
    pub(crate) count: u64,
    /// The same as a share of the items of the window; above 1 if no key can be found.
    pub(crate) share: f64,
}

impl FoundFrom {
    /// In the window of a plan, or if a stream is over with fewer items, in all of them.
    pub(crate) fn new(plan: &Plan, all: Option<u64>) -> Option<Self> {
        let found = plan.search_plan()?;
        let window = plan.settings().window.expected_items();
        let (items, share) = match all {
            Some(all) if all <= window => (all, found.share_listed_in_all(all, USUALLY)),
            _ => (window, found.share_listed(window, USUALLY)),
        };
        Some(Self { count: (share * items as f64).ceil().max(1.0) as u64, share: rounded_share(share) })
    }

    fn of(view: &WindowView) -> Option<Self> {
        let is_counted = view.plan().settings().window.time().is_none();
        let all = view.finished().filter(|_| is_counted).map(|end| end - view.began());
        Self::new(view.plan(), all)
    }
}

/// The stretches that a trend holds against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compared {
    /// The newer half of the window against the older.
    Halves,
    /// The window against the one before it.
    Windows,
}

/// Positions from `start` up to `end`, exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Positions {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// `items`, or `ms` since 1970.
    pub(crate) unit: &'static str,
}

impl Positions {
    /// Some of a view; items are counted from the first one of the stream.
    pub(crate) fn of(view: &WindowView, range: &Range<u64>) -> Self {
        let is_time = view.plan().settings().window.time().is_some();
        let (unit, first) = if is_time { ("ms", 0) } else { ("items", view.began()) };
        Self { start: range.start.saturating_sub(first), end: range.end.saturating_sub(first), unit }
    }

    pub(crate) fn is_time(&self) -> bool {
        self.unit == "ms"
    }
}

/// One item of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) rank: usize,
    /// As text; bytes that are no UTF-8 are replaced.
    pub(crate) item: String,
    /// The bytes, where the text is not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item_base64: Option<String>,
    /// In a list, what the item probably counts, as it was chosen for its size; else noise can make it negative.
    pub(crate) estimate: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    /// The ends of the interval that holds however the item is spread inside the substreams that the window cuts; `null`
    /// for an upper end that is not known.
    pub(crate) any_order: [Option<f64>; 2],
    /// Of the items of the window that count; `null` if there are none, or their number is all noise.
    pub(crate) share: Option<f64>,
    /// `rising`, `steady`, `falling`, or `null` if that is unknown.
    pub(crate) trend: Option<&'static str>,
    /// Whether the count may be less than a quarter of the estimate.
    pub(crate) unsure: bool,
}

/// A question that is asked of a stream again and again.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    which: Which,
    /// About the count below which nothing stands out in a whole window, where that can be predicted.
    noise: Option<f64>,
}

impl Question {
    pub(crate) fn new(which: Which, plan: &Plan, prediction: Option<&Prediction>) -> Self {
        let items = plan.settings().window.expected_items() as f64;
        Self { which, noise: prediction.map(|prediction| prediction.detectable_share() * items) }
    }

    /// The same where nothing is predicted yet.
    pub(crate) fn of_plan(which: Which, plan: &Plan) -> Result<Self> {
        let prediction = plan.predict(&plan_request::expectation(&plan.settings().domain))?;
        Ok(Self::new(which, plan, prediction.as_ref()))
    }

    /// Asks a view. What was read is not known of a saved one.
    pub(crate) fn ask(&self, view: &WindowView, read: Option<Counts>) -> Result<Answer> {
        let Chosen { rows: ranked, hidden, more } = self.rows(view)?;
        let plan = view.plan();
        let total = view.counted();
        let is_saved = read.is_none();
        let read = read.filter(|_| plan.settings().unit != Unit::AddRemove);
        let rows = ranked.iter().enumerate().map(|(index, ranked)| self.row(view, total, index + 1, ranked));
        let (epsilon, delta) = promised(view.claim());
        let capped = ranked.first().and_then(|ranked| ranked.estimate.capped);
        Ok(Answer {
            window: Positions::of(view, &view.window()),
            covered: Positions::of(view, &view.covered()),
            total,
            unit: unit(plan.settings().unit),
            epsilon,
            delta,
            claim: claim(view),
            below_noise: self.below_noise(view),
            found_from: FoundFrom::of(view),
            read,
            items: rows.collect(),
            hidden,
            more,
            trend_compares: ranked.first().and_then(|ranked| Some(trend(view, ranked.item)?.1)),
            why: ranked.is_empty().then(|| Empty { is_saved, read, ..self.empty(view, hidden) }.why()),
            capped,
            headline: words::headline(view, capped),
        })
    }

    /// The rows to show. Before anything is sealed there is nothing to list.
    fn rows<'v>(&'v self, view: &'v WindowView) -> Result<Chosen<'v>> {
        let (most, threshold, rows) = match &self.which {
            Which::Asked(items) => return Ok(Chosen { rows: asked(view, items)?, ..Chosen::default() }),
            _ if view.covered().is_empty() => return Ok(Chosen::default()),
            Which::Listed { most, threshold, rows } => (*most, *threshold, rows),
        };
        let list = view.list(rows.request(most, threshold)?)?;
        Ok(Chosen { hidden: list.hidden.len(), more: list.more, rows: list.rows })
    }

    fn row(&self, view: &WindowView, total: Option<u64>, rank: usize, ranked: &Ranked<'_>) -> Row {
        let is_listed = !matches!(self.which, Which::Asked(_));
        let [value, lower, upper] = if is_listed { listed(ranked) } else { plain(ranked) };
        let (item, item_base64) = names(ranked.item);
        let any_order = &ranked.estimate.any_order;
        Row {
            rank,
            item,
            item_base64,
            estimate: rounded(value),
            lower: rounded(lower),
            upper: rounded(upper),
            any_order: [any_order.start, any_order.end].map(|end| end.is_finite().then(|| rounded(end))),
            share: total.map(|total| rounded_share(value / total as f64)),
            trend: trend(view, ranked.item).map(|(direction, _)| direction),
            unsure: ranked.shown.marked,
        }
    }

    fn empty<'v>(&self, view: &'v WindowView, hidden: usize) -> Empty<'v> {
        let threshold = if let Which::Listed { threshold, .. } = self.which { threshold } else { None };
        let below_noise = self.below_noise(view);
        Empty { view, is_saved: false, read: None, threshold, below_noise, hidden }
    }

    /// About the count below which nothing stands out in this window: noise grows with the root of its substreams.
    fn below_noise(&self, view: &WindowView) -> Option<u64> {
        let plan = view.plan();
        let window = view.window();
        let parts = |len: u64| len.div_ceil(plan.substream_len()).max(1) as f64;
        let share = parts(window.end - window.start) / parts(plan.settings().window.len());
        Some((self.noise? * share.min(1.0).sqrt()).ceil().max(1.0) as u64)
    }
}

fn asked<'i>(view: &WindowView, items: &'i [String]) -> Result<Vec<Ranked<'i>>> {
    let mut rows = Vec::with_capacity(items.len());
    for item in items {
        let asked = view.frequencies(&[Item::from(item)]);
        rows.extend(asked.map_err(|error| anyhow::Error::new(error).context(format!("{item:?}")))?);
    }
    Ok(rows)
}

/// What a row of a list probably counts.
fn listed(ranked: &Ranked<'_>) -> [f64; 3] {
    let Shown { value, lower, upper, .. } = ranked.shown;
    [value, lower, upper]
}

/// The estimate of an item that was asked for.
fn plain(ranked: &Ranked<'_>) -> [f64; 3] {
    let Estimate { value, error_bound, .. } = ranked.estimate;
    [value, value - error_bound, value + error_bound]
}

fn names(item: Item<'_>) -> (String, Option<String>) {
    let lossless = match item {
        Item::Bytes(bytes) => std::str::from_utf8(bytes).is_ok(),
        Item::Integer(_) => true,
    };
    let base64 = match item {
        Item::Bytes(bytes) if !lossless => Some(STANDARD.encode(bytes)),
        _ => None,
    };
    (item.to_string(), base64)
}

fn trend(view: &WindowView, item: Item<'_>) -> Option<(&'static str, Compared)> {
    let trend = view.trend(item).ok()?;
    // Before half a window is sealed there is nothing to compare.
    if trend.before.covered.is_empty() || trend.now.covered.is_empty() {
        return None;
    }
    let direction = match trend.direction {
        Direction::Rising => "rising",
        Direction::Steady => "steady",
        Direction::Falling => "falling",
    };
    let is_whole = trend.now.window == view.window();
    Some((direction, if is_whole { Compared::Windows } else { Compared::Halves }))
}

fn rounded(value: f64) -> f64 {
    // Nobody writes -0.
    (value * 100.0).round() / 100.0 + 0.0
}

fn rounded_share(share: f64) -> f64 {
    (share * 1e6).round() / 1e6 + 0.0
}

/// The name of what is protected, as options and documents have it.
pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::AddRemove => "add-remove",
        Unit::Users { .. } => "users",
        _ => "replace-one",
    }
}

fn claim(view: &WindowView) -> String {
    match view.claim() {
        Claim::None => "nothing is promised: the noise is reproducible".to_owned(),
        _ => view.plan().contract(),
    }
}

pub(crate) fn promised(claim: Claim) -> (Option<f64>, Option<f64>) {
    match claim {
        Claim::Pure(epsilon) => (Some(epsilon.get()), Some(0.0)),
        Claim::Approximate(epsilon, delta) => (Some(epsilon.get()), Some(delta.get())),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_less_than_nothing_is_nothing() {
        assert_eq!([rounded(-0.001), rounded_share(-1e-9)].map(|zero| zero.to_string()), ["0", "0"]);
    }
}
