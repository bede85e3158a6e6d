//! What can be asked: frequencies and heavy hitters of a window, from sealed sketches alone.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::accounting::normal_quantile;
use crate::bound::minimum_error;
use crate::error::{ParameterError, QueryError};
use crate::interpolate::{self, Reading, Source, Weights};
use crate::item::{Item, Keys};
use crate::plan::Plan;
use crate::privacy::{Claim, Threshold};
use crate::settings::Window;
use crate::sketch::SealedSketch;
use crate::substream::SealedSubstream;
use crate::window::{Cover, Part, Released, misfit, positions};

/// The probability with which an [`Estimate`] keeps its error bound.
pub const CONFIDENCE: f64 = 0.95;

/// How often an item occurred in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The estimated count; noise can make it negative.
    pub value: f64,
    /// With probability [`CONFIDENCE`] the true count is at most this far from the value. In the tuned method it is 1.96
    /// standard errors; in the paper's it adds up worst cases: noise, collisions, and every item by which the covered span
    /// misses the window (for a time window as many as the rates at its edges suggest).
    pub error_bound: f64,
    /// Where the standard error comes from, in the tuned method.
    pub deviations: Option<Deviations>,
    /// The positions that the answer covers: those of the complete ranges nearest to the window.
    pub covered: Range<u64>,
    /// The positions that were asked for.
    pub window: Range<u64>,
}

/// The parts of a standard error: independent deviations, whose squares add up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviations {
    /// Of the noise that protects events.
    pub noise: f64,
    /// Of keys that share counters.
    pub collisions: f64,
    /// Of the edges of the window: chance and drift in what is expired or not yet sealed.
    pub misfit: f64,
}

/// Which keys count as heavy hitters.
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
            return Err(ParameterError::Fraction { name: "confidence", value: confidence });
        }
        let reach = normal_quantile(f64::midpoint(confidence, 1.0)) / NORMAL_95 * self.error_bound;
        Ok(self.value - reach..self.value + reach)
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

    /// The standard error; in the paper's method, what would be one if the bound were 1.96 of them.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        let square = |d: Deviations| d.noise.powi(2) + d.collisions.powi(2) + d.misfit.powi(2);
        self.deviations.map_or(self.error_bound / NORMAL_95, |deviations| square(deviations).sqrt())
    }
}

/// The normal quantile of a two-sided 95 % interval.
const NORMAL_95: f64 = 1.96;

/// A key with its estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked<'a> {
    /// The key.
    pub item: Item<'a>,
    /// Its estimated count.
    pub estimate: Estimate,
}

/// What can be seen of a stream at one position: immutable, cheap to clone, safe to share.
///
/// It holds sealed sketches only, so asking any number of questions costs no further privacy.
#[derive(Debug, Clone)]
pub struct WindowView {
    pub(crate) plan: Arc<Plan>,
    pub(crate) released: Arc<Released>,
    pub(crate) claim: Claim,
    /// From the stream's start to where it stood when the view was taken, in items or ticks.
    pub(crate) stream: Range<u64>,
    /// Where the events were counted, ascending.
    pub(crate) sites: Vec<u64>,
    /// The length asked for; the window is shorter while the stream is.
    window_len: u64,
    window: Range<u64>,
    /// How the window is interpolated, once it was asked.
    reading: OnceLock<Arc<Reading>>,
}

impl WindowView {
    pub(crate) fn new(
        plan: Arc<Plan>,
        released: Arc<Released>,
        claim: Claim,
        stream: Range<u64>,
        sites: Vec<u64>,
    ) -> Self {
        let window_len = plan.settings().window.len();
        let window = last_of(&stream, window_len);
        Self { plan, released, claim, stream, sites, window_len, window, reading: OnceLock::new() }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is promised of everything that the stream releases.
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// The sites whose events are in it, ascending.
    #[must_use]
    pub fn sites(&self) -> &[u64] {
        &self.sites
    }

    /// The positions that questions are about.
    #[must_use]
    pub fn window(&self) -> Range<u64> {
        self.window.clone()
    }

    /// The positions that the answers cover: the complete ranges nearest to the window.
    #[must_use]
    pub fn covered(&self) -> Range<u64> {
        if self.plan.interpolates() { self.weights().span } else { self.cover().span }
    }

    /// The positions that windows may reach over.
    #[must_use]
    pub fn retained(&self) -> Range<u64> {
        let retained = last_of(&self.stream, self.plan.retained_len());
        let kept = self.released.substreams().first().map_or(0, |s| s.number * self.plan.substream_len());
        retained.start.max(kept)..retained.end
    }

    /// The same view with a window of the last `len` items before its end. A window longer than what had been seen
    /// starts at position 0.
    ///
    /// # Errors
    /// The window is empty or reaches back further than what is retained.
    pub fn last(&self, len: u64) -> Result<Self, QueryError> {
        if len == 0 {
            return Err(QueryError::EmptyWindow);
        }
        self.with_window(len, self.window.end)
    }

    /// The same view with the window of the same length that ended at a past position.
    ///
    /// # Errors
    /// The window lies outside what is retained.
    pub fn as_of(&self, position: u64) -> Result<Self, QueryError> {
        self.with_window(self.window_len, position)
    }

    fn with_window(&self, window_len: u64, end: u64) -> Result<Self, QueryError> {
        let window = last_of(&(self.stream.start..end), window_len);
        let retained = self.retained();
        if window.start < retained.start || retained.end < window.end {
            return Err(QueryError::NotRetained { asked: window, retained });
        }
        Ok(Self { window_len, window, reading: OnceLock::new(), ..self.clone() })
    }

    /// How often an item occurred in the window. A few reads per substream.
    ///
    /// # Errors
    /// The stream counts the other kind of item, or has identity counters and the item is not in the public domain.
    pub fn frequency<'i>(&self, item: impl Into<Item<'i>>) -> Result<Estimate, QueryError> {
        let item = item.into();
        self.check(item)?;
        let estimate = if self.plan.interpolates() {
            self.interpolated(self.interpolate(item))
        } else {
            let cover = self.cover();
            self.answer(&cover).of(self.released.estimate(&cover, item))
        };
        #[cfg(test)]
        let estimate = crate::fault::answer(&self.released, item, estimate);
        Ok(estimate)
    }

    fn weights(&self) -> Weights {
        Weights::new(self.released.substreams(), &self.plan, &self.window)
    }

    fn source(&self) -> Source<'_> {
        Source {
            plan: &self.plan,
            substreams: self.released.substreams(),
            keys: self.released.keys(&self.plan),
            noises: self.sites.len() as f64,
        }
    }

    fn reading(&self) -> &Reading {
        self.reading
            .get_or_init(|| Arc::new(Reading::new(self.released.fits(), self.source(), self.weights())))
    }

    /// Keys of a public list are answered from the cache of the whole window, which then answers everyone alike.
    fn interpolate(&self, item: Item<'_>) -> interpolate::Answer {
        let (fits, reading) = (self.released.fits(), self.reading());
        let keys = self.released.keys(&self.plan).filter(|_| self.is_whole());
        let place = keys.and_then(|keys| Some((keys, self.released.place(keys, item)?)));
        match place {
            Some((keys, place)) => {
                let sums = fits.cached(self.source(), reading, keys)[place];
                reading.answer(sums.value(&reading.weights), sums.drift)
            }
            None => fits.answer(self.source(), reading, item),
        }
    }

    /// Whether the window is the one that the plan is for.
    fn is_whole(&self) -> bool {
        self.window_len == self.plan.settings().window.len() && self.window.end == self.stream.end
    }

    fn interpolated(&self, answer: interpolate::Answer) -> Estimate {
        let weights = &self.reading().weights;
        let deviations = Deviations {
            noise: answer.noise.sqrt(),
            collisions: answer.collisions.max(0.0).sqrt(),
            misfit: answer.misfit.sqrt(),
        };
        let mut estimate = Estimate {
            value: answer.value,
            error_bound: 0.0,
            deviations: Some(deviations),
            covered: weights.span.clone(),
            window: self.window.clone(),
        };
        let is_known = !weights.parts.is_empty();
        estimate.error_bound =
            if is_known { NORMAL_95 * estimate.standard_error() } else { self.unknown_bound() };
        estimate
    }

    /// The keys of the public domain whose estimate reaches the threshold, largest first; in the paper's method
    /// (γ - 1/columns) w. The first call after a seal looks at every key in every sketch, later ones at one number per key.
    ///
    /// # Errors
    /// The domain is not public.
    pub fn heavy_hitters(&self, threshold: Threshold) -> Result<Vec<Ranked<'_>>, QueryError> {
        let least = self.least(threshold);
        self.ranked(|values| (0..values.len()).filter(|&i| least <= values[i]).collect())
    }

    /// The same with a choice on which side to err.
    ///
    /// # Errors
    /// The domain is not public.
    pub fn heavy_hitters_with(
        &self,
        threshold: Threshold,
        certainty: Certainty,
    ) -> Result<Vec<Ranked<'_>>, QueryError> {
        let least = self.least(threshold);
        let reaches = |estimate: &Estimate| match certainty {
            Certainty::Plain => least <= estimate.value,
            Certainty::Sure => least <= estimate.value - estimate.error_bound,
            Certainty::Possible => least <= estimate.value + estimate.error_bound,
        };
        let all = self.ranked(|values| (0..values.len()).collect())?;
        Ok(all.into_iter().filter(|ranked| reaches(&ranked.estimate)).collect())
    }

    /// The `count` keys of the public domain with the largest estimates, largest first. Costs like
    /// [`heavy_hitters`](Self::heavy_hitters).
    ///
    /// # Errors
    /// The domain is not public.
    pub fn top(&self, count: usize) -> Result<Vec<Ranked<'_>>, QueryError> {
        self.ranked(|values| largest(values, count))
    }

    /// The candidates whose estimate reaches the threshold, largest first: heavy hitters without a public domain.
    ///
    /// # Errors
    /// A candidate cannot be asked for; see [`frequency`](Self::frequency).
    pub fn heavy_hitters_among<'i>(
        &self,
        candidates: &[Item<'i>],
        threshold: Threshold,
    ) -> Result<Vec<Ranked<'i>>, QueryError> {
        let least = self.least(threshold);
        let mut ranked = Vec::new();
        for &item in candidates {
            let estimate = self.frequency(item)?;
            if least <= estimate.value {
                ranked.push(Ranked { item, estimate });
            }
        }
        ranked.sort_by(|a, b| b.estimate.value.total_cmp(&a.estimate.value));
        Ok(ranked)
    }

    /// Every sealed sketch that the view holds, oldest first: all that anyone can learn from it.
    pub fn sealed(&self) -> impl Iterator<Item = Sealed<'_>> {
        self.released.substreams().iter().flat_map(|substream| {
            let sketches = substream.sketches().iter();
            sketches.map(move |(range, sketch)| Sealed { substream, range: *range, sketch })
        })
    }

    fn check(&self, item: Item<'_>) -> Result<(), QueryError> {
        let wanted = self.plan.settings().domain.kind();
        if item.kind() != wanted {
            return Err(QueryError::Kind { wanted, got: item.kind() });
        }
        if self.released.knows(item) { Ok(()) } else { Err(QueryError::NotInDomain) }
    }

    fn cover(&self) -> Cover {
        self.released.cover(&self.plan, &self.window)
    }

    /// The smallest estimate of a heavy hitter.
    fn least(&self, threshold: Threshold) -> f64 {
        let fraction = threshold.get() - self.plan.threshold_slack();
        self.items().map_or(f64::INFINITY, |items| fraction * items as f64)
    }

    /// How many items the window holds, which shares refer to: public for a count window (fixed in the paper's method),
    /// else those covered, by noisy counters where presence is private. `None` for nothing, or a total that is all noise.
    #[must_use]
    pub fn items(&self) -> Option<u64> {
        let items = match self.plan.settings().window {
            Window::Items(_) if self.plan.has_one_hash() => self.window_len,
            Window::Items(_) => self.window.end - self.window.start,
            Window::Time(_) if self.plan.interpolates() => self.weighted_items(),
            Window::Time(_) => {
                let items = self.cover().parts.into_iter().map(|part| self.released.items(part));
                items.fold(0, u64::saturating_add)
            }
        };
        (self.total_noise() < items as f64).then_some(items)
    }

    /// What the noise alone makes of the total of a time window, at 95 %; nothing where totals are public.
    fn total_noise(&self) -> f64 {
        if self.plan.has_public_totals() {
            return 0.0;
        }
        let loudest = self.plan.ranges().iter().map(|range| range.law().variance()).fold(0.0, f64::max);
        let shape = self.plan.shape();
        let of_one = shape.cells() as f64 * loudest * self.sites.len() as f64 / f64::from(shape.rows).powi(2);
        let parts = self.window_len.div_ceil(self.plan.substream_len()) + 1;
        NORMAL_95 * (of_one * parts as f64).sqrt()
    }

    fn weighted_items(&self) -> u64 {
        let total = |(index, weight): &(usize, f64)| {
            let sketch = self.released.substreams()[*index].sketch(0);
            weight * sketch.map_or(0, SealedSketch::total) as f64
        };
        self.weights().parts.iter().map(total).sum::<f64>().max(0.0) as u64
    }

    fn ranked(&self, choose: impl FnOnce(&[f64]) -> Vec<usize>) -> Result<Vec<Ranked<'_>>, QueryError> {
        let keys: &Keys = self.released.keys(&self.plan).ok_or(QueryError::NoDomain)?;
        if self.plan.interpolates() {
            return Ok(self.ranked_by_weights(keys, choose));
        }
        let cover = self.cover();
        let answer = self.answer(&cover);
        let values = self.released.estimates(&cover, keys);
        let mut chosen = choose(&values);
        chosen.sort_unstable_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
        let ranked = |i: usize| Ranked { item: keys.get(i), estimate: answer.of(values[i]) };
        Ok(chosen.into_iter().map(ranked).collect())
    }

    fn ranked_by_weights<'k>(
        &self,
        keys: &'k Keys,
        choose: impl FnOnce(&[f64]) -> Vec<usize>,
    ) -> Vec<Ranked<'k>> {
        let (fits, source, reading) = (self.released.fits(), self.source(), self.reading());
        let sums = if self.is_whole() {
            fits.cached(source, reading, keys)
        } else {
            Arc::new(fits.all(source, reading, keys))
        };
        let values: Vec<f64> = sums.iter().map(|sums| sums.value(&reading.weights)).collect();
        let mut chosen = choose(&values);
        chosen.sort_unstable_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
        let ranked = |place: usize| {
            let answer = reading.answer(values[place], sums[place].drift);
            Ranked { item: keys.get(place), estimate: self.interpolated(answer) }
        };
        chosen.into_iter().map(ranked).collect()
    }

    fn answer(&self, cover: &Cover) -> Answer {
        Answer {
            error_bound: self.error_bound(cover),
            covered: cover.span.clone(),
            window: self.window.clone(),
        }
    }

    /// Before anything is sealed all that is known is the length of a count window.
    fn unknown_bound(&self) -> f64 {
        match self.plan.settings().window {
            Window::Items(_) => (self.window.end - self.window.start) as f64,
            Window::Time(_) => f64::INFINITY,
        }
    }

    /// Each part may fail with an equal share of the probability; the misfit is certain.
    fn error_bound(&self, cover: &Cover) -> f64 {
        if cover.parts.is_empty() {
            return self.unknown_bound();
        }
        let failure = (1.0 - CONFIDENCE) / cover.parts.len() as f64;
        let (rows, columns) = (self.plan.shape().rows, self.plan.collision_columns());
        let part_error = |&part: &Part| {
            let law = self.plan.ranges()[part.range].law();
            let noises = self.sites.len() as f64;
            noises * minimum_error(self.released.items(part), rows, columns, law, failure / noises)
        };
        cover.parts.iter().map(part_error).sum::<f64>() + self.misfit_items(cover)
    }

    /// How many items lie in the window or the cover but not in both. For a time window that is estimated by the rate
    /// of the parts at the edges.
    fn misfit_items(&self, cover: &Cover) -> f64 {
        if let Window::Items(_) = self.plan.settings().window {
            return misfit(&cover.span, &self.window) as f64;
        }
        let rate = |part: Option<&Part>| {
            let part = *part?;
            let span = positions(&self.plan, part);
            Some(self.released.items(part) as f64 / (span.end - span.start) as f64)
        };
        let at_start = cover.span.start.abs_diff(self.window.start) as f64;
        let at_end = cover.span.end.abs_diff(self.window.end) as f64;
        at_start * rate(cover.parts.first()).unwrap_or(0.0) + at_end * rate(cover.parts.last()).unwrap_or(0.0)
    }
}

/// The last `len` positions of a span, or all of a shorter one.
fn last_of(span: &Range<u64>, len: u64) -> Range<u64> {
    span.end.saturating_sub(len).max(span.start).min(span.end)..span.end
}

/// One sealed sketch of a view.
#[derive(Debug, Clone, Copy)]
pub struct Sealed<'a> {
    substream: &'a SealedSubstream,
    range: usize,
    sketch: &'a SealedSketch,
}

impl Sealed<'_> {
    /// The number of its substream.
    #[must_use]
    pub fn substream(&self) -> u64 {
        self.substream.number
    }

    /// The index of its range in [`Plan::ranges`].
    #[must_use]
    pub fn range(&self) -> usize {
        self.range
    }

    /// The noisy counters.
    #[must_use]
    pub fn sketch(&self) -> &SealedSketch {
        self.sketch
    }

    /// The indices of an item's counters: one per row, or none outside a public list.
    pub fn cells<'i>(&self, item: impl Into<Item<'i>>) -> Vec<usize> {
        self.substream.mapping.cells(item.into()).collect()
    }
}

/// What all estimates of one window have in common.
struct Answer {
    error_bound: f64,
    covered: Range<u64>,
    window: Range<u64>,
}

impl Answer {
    fn of(&self, value: f64) -> Estimate {
        Estimate {
            value,
            error_bound: self.error_bound,
            deviations: None,
            covered: self.covered.clone(),
            window: self.window.clone(),
        }
    }
}

/// The places of the largest values, of equal ones the first.
fn largest(values: &[f64], count: usize) -> Vec<usize> {
    let keep = |places: &mut Vec<usize>| {
        if 0 < count && count < places.len() {
            places
                .select_nth_unstable_by(count - 1, |&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
        }
        places.truncate(count);
    };
    let (mut places, mut least) = (Vec::new(), f64::NEG_INFINITY);
    for (place, value) in values.iter().enumerate().filter(|_| 0 < count) {
        if least <= *value {
            places.push(place);
        }
        if places.len() == count.saturating_mul(2).max(CHOSEN_AT_ONCE) {
            keep(&mut places);
            least = values[places[count.min(places.len()) - 1]];
        }
    }
    keep(&mut places);
    places
}

/// Places that are gathered before the largest are chosen among them.
const CHOSEN_AT_ONCE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_values_are_those_that_sorting_finds() {
        for modulus in [7, 997, 1_000_003] {
            let values: Vec<f64> = (0..10_000_u64).map(|i| (i * 7919 % modulus) as f64).collect();
            let mut wanted: Vec<usize> = (0..values.len()).collect();
            wanted.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
            for count in [0, 1, 20, 600, 5000, 10_000, usize::MAX] {
                let mut found = largest(&values, count);
                found.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
                assert_eq!(found, wanted[..count.min(values.len())], "{count} of {modulus}");
            }
        }
    }
}
