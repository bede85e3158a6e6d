//! The tuned answers: whole substreams, weighted at both ends of the window.

use std::ops::Range;
use std::sync::Arc;

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::sealed::sketch::SealedSketch;
use crate::view::asked::Asked;
use crate::view::estimate::{Deviations, Estimate, Ranked, WHOLE_COUNTS};
use crate::view::fits::{Answer, KeySums, Reading, Source};
use crate::view::ranking::by_value;
use crate::view::weights::{Node, WHOLE, Weights};

/// A window and how it is read.
pub(crate) struct Interpolated<'a> {
    pub(crate) asked: Asked<'a>,
    pub(crate) reading: &'a Reading,
    /// Whether the window is the one that the plan is for, whose estimates are cached.
    pub(crate) is_whole: bool,
}

impl<'a> Asked<'a> {
    fn source(&self) -> Source<'a> {
        Source {
            plan: self.plan,
            substreams: self.readable.released.substreams(),
            keys: self.readable.released.keys(self.plan),
            noises: self.noises,
        }
    }

    /// How the window is read.
    pub(crate) fn reading(&self) -> Reading {
        let weights = Weights::new(self.readable.released.substreams(), self.plan, self.window);
        Reading::new(self.readable.fits(), self.source(), weights)
    }
}

impl Interpolated<'_> {
    pub(crate) fn span(&self) -> Range<u64> {
        self.reading.weights.span.clone()
    }

    /// Keys of a list are answered from the cache of the whole window, which then answers everyone alike.
    pub(crate) fn frequency(&self, item: Item<'_>) -> Estimate {
        let Asked { plan, readable, .. } = self.asked;
        let keys = readable.released.keys(plan).filter(|_| self.is_whole);
        let place = keys.and_then(|keys| Some((keys, readable.place(keys, item)?)));
        let answer = match place {
            Some((keys, place)) => self.reading.answer(&self.sums(keys)[place]),
            None => readable.fits().answer(self.asked.source(), self.reading, item),
        };
        self.estimate(answer)
    }

    /// Items of the window, by noisy counters where presence is private.
    pub(crate) fn items(&self) -> u64 {
        let total = |node: &Node| {
            let sketch = self.asked.readable.released.substreams()[node.index].sketch(WHOLE);
            node.weight * sketch.map_or(0, SealedSketch::total) as f64
        };
        self.reading.weights.nodes.iter().map(total).sum::<f64>().max(0.0) as u64
    }

    /// The chosen keys, largest first.
    pub(crate) fn ranked<'k>(
        &self,
        keys: &'k Keys,
        choose: impl FnOnce(&[f64]) -> Vec<usize>,
    ) -> Vec<Ranked<'k>> {
        let sums = self.sums(keys);
        let values: Vec<f64> = sums.iter().map(|sums| sums.value(&self.reading.weights)).collect();
        let ranked = |place: usize| {
            let answer = self.reading.answer(&sums[place]);
            Ranked { item: keys.get(place), estimate: self.estimate(answer) }
        };
        by_value(choose(&values), &values).into_iter().map(ranked).collect()
    }

    fn sums(&self, keys: &Keys) -> Arc<Vec<KeySums>> {
        let (fits, source) = (self.asked.readable.fits(), self.asked.source());
        if self.is_whole {
            fits.cached(source, self.reading, keys)
        } else {
            Arc::new(fits.all(source, self.reading, keys))
        }
    }

    fn estimate(&self, answer: Answer) -> Estimate {
        let weights = &self.reading.weights;
        let deviations = Deviations {
            noise: answer.noise.sqrt(),
            collisions: answer.collisions.max(0.0).sqrt(),
            misfit: answer.misfit.sqrt(),
        };
        let is_known = !weights.nodes.is_empty();
        let error_bound = match is_known {
            true => answer.tail.reach_95() * deviations.total() + WHOLE_COUNTS,
            false => self.asked.unknown_bound(),
        };
        Estimate {
            value: answer.value,
            error_bound,
            deviations: Some(deviations),
            tail: answer.tail,
            covered: weights.span.clone(),
            window: self.asked.window.clone(),
        }
    }
}
