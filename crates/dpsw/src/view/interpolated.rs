//! The tuned answers: whole substreams, weighted at both ends of the window.

use std::borrow::Cow;
use std::ops::Range;

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::view::asked::Asked;
use crate::view::estimate::{Deviations, Estimate, Ranked, WHOLE_COUNTS};
use crate::view::list::{List, shown};
use crate::view::list_request::Selection;
use crate::view::paths::{Path, Paths};
use crate::view::prior::{Errors, Row};
use crate::view::reading::{Answer, KeySums, Reading};
use crate::view::source::Source;
use crate::view::weights::Node;

/// Keys are looked at that lie this many standard errors below a threshold.
const SLACK: f64 = 6.0;

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
            stream: self.stream,
            keys: self.readable.released.keys(self.plan),
            leases: self.readable.released.leases(),
            noises: self.noises,
        }
    }

    /// How the window is read.
    pub(crate) fn reading(&self) -> Reading {
        self.readable.fits().reading(self.source(), self.window)
    }
}

impl Interpolated<'_> {
    pub(crate) fn span(&self) -> Range<u64> {
        self.reading.weights().span.clone()
    }

    /// Keys of a list are answered from the cache of the whole window, which then answers everyone alike.
    pub(crate) fn frequency(&self, item: Item<'_>) -> Estimate {
        self.estimate(self.answer(item))
    }

    pub(crate) fn answer(&self, item: Item<'_>) -> Answer {
        let Asked { plan, readable, .. } = self.asked;
        if 0 < plan.tracked()
            && let Some(path) = self.paths().of(readable.released.mapping().fingerprint_key.item(item))
        {
            return self.answer_of(path);
        }
        let has_places = self.is_whole || 1 < plan.rungs().count();
        let keys = readable.released.keys(plan).filter(|_| has_places);
        match keys.and_then(|keys| Some((keys, readable.place(keys, item)?))) {
            Some((keys, place)) if self.is_whole => self.answer_at(place, &self.sums(keys)),
            Some((_, place)) if let Some(path) = self.paths().get(place) => self.answer_of(path),
            _ => readable.fits().answer(self.asked.source(), self.reading, item),
        }
    }

    /// The answer of the key at this place.
    fn answer_at(&self, place: usize, sums: &[KeySums]) -> Answer {
        match self.paths().get(place) {
            Some(path) => self.answer_of(path),
            None => self.reading.answer(&sums[place]),
        }
    }

    fn answer_of(&self, path: &Path) -> Answer {
        let Asked { plan, noises, window, .. } = self.asked;
        self.paths().answer(path, plan, noises, window)
    }

    /// The keys that are cut more finely than most.
    fn paths(&self) -> &Paths {
        self.asked.readable.fits().paths(self.asked.source())
    }

    /// Items of the window, by noisy counters where presence is private.
    pub(crate) fn items(&self) -> u64 {
        let total = |node: &Node| {
            let substream = &self.asked.readable.released.substreams()[node.substream];
            node.weight * node.part * substream.total() as f64
        };
        self.reading.weights().nodes.iter().map(total).sum::<f64>().max(0.0) as u64
    }

    /// Events of the window that the caps of users left out.
    pub(crate) fn capped(&self) -> Option<u64> {
        self.asked.plan.user_room()?;
        let capped = |node: &Node| {
            let substream = &self.asked.readable.released.substreams()[node.substream];
            Some(node.weight * node.part * substream.capped()? as f64)
        };
        self.reading
            .weights()
            .nodes
            .iter()
            .map(capped)
            .sum::<Option<f64>>()
            .map(|capped| capped.round() as u64)
    }

    /// Rows chosen from all keys by their estimates.
    pub(crate) fn list<'k>(&self, keys: &'k Keys, selection: &Selection) -> List<'k> {
        let sums = self.sums(keys);
        let values = self.values_of(&sums);
        let answer = |place| self.answer_at(place, &sums);
        self.chosen(self.errors(), &values, selection, answer, |place| keys.get(place))
    }

    /// The estimates of all keys.
    pub(crate) fn values(&self, keys: &Keys) -> Vec<f64> {
        self.values_of(&self.sums(keys))
    }

    fn values_of(&self, sums: &[KeySums]) -> Vec<f64> {
        let parts = self.reading.parts();
        let mut values: Vec<f64> = sums.iter().map(|sums| sums.value(parts)).collect();
        for (place, path) in self.paths().iter() {
            values[place] = self.paths().value(path, self.asked.window);
        }
        values
    }

    /// By how much rare keys are off, as most of a list are.
    pub(crate) fn errors(&self) -> Errors {
        self.reading.errors()
    }

    /// Rows chosen from candidates by their estimates.
    pub(crate) fn list_among<'i>(&self, candidates: &[Item<'i>], selection: &Selection) -> List<'i> {
        let answers: Vec<Answer> = candidates.iter().map(|item| self.answer(*item)).collect();
        self.chosen_among(self.errors(), candidates, &answers, selection)
    }

    /// The same with these answers.
    pub(crate) fn chosen_among<'i>(
        &self,
        errors: Errors,
        candidates: &[Item<'i>],
        answers: &[Answer],
        selection: &Selection,
    ) -> List<'i> {
        let values: Vec<f64> = answers.iter().map(|answer| answer.value).collect();
        let answer = |place: usize| answers[place].clone();
        self.chosen(errors, &values, selection, answer, |place| candidates[place])
    }

    /// Rows chosen from all values; `errors` are those of rare keys.
    pub(crate) fn chosen<'k>(
        &self,
        errors: Errors,
        values: &[f64],
        selection: &Selection,
        answer: impl Fn(usize) -> Answer,
        item: impl Fn(usize) -> Item<'k>,
    ) -> List<'k> {
        let places = selection.choose(values, |least| SLACK * errors.deviation(least));
        let row = |&place: &usize| {
            let answer = answer(place);
            let row = Row {
                value: answer.value,
                unrest: answer.unrest(),
                errors: answer.errors(),
                changes: answer.changes,
            };
            (row, self.estimate(answer))
        };
        let rows: Vec<(Row, Estimate)> = places.iter().map(row).collect();
        let shown = shown(errors, values, &rows, selection);
        let ranked = |((place, (_, estimate)), shown)| Ranked { item: item(place), estimate, shown };
        List::new(places.into_iter().zip(rows).zip(shown).map(ranked).collect(), selection)
    }

    fn sums(&self, keys: &Keys) -> Cow<'_, [KeySums]> {
        let (fits, source) = (self.asked.readable.fits(), self.asked.source());
        if self.is_whole {
            fits.whole(source, self.reading, keys).into()
        } else {
            fits.all(source, self.reading, keys).into()
        }
    }

    pub(crate) fn estimate(&self, answer: Answer) -> Estimate {
        let tail = answer.tail();
        let deviations = Deviations {
            noise: answer.noise.sqrt(),
            collisions: answer.collisions().max(0.0).sqrt(),
            misfit: answer.misfit().sqrt(),
        };
        let error_bound = match answer.is_known {
            true => tail.reach_95() * deviations.total() + WHOLE_COUNTS,
            false => self.asked.unknown_bound(),
        };
        Estimate {
            value: answer.value,
            error_bound,
            any_order: answer.any_order(),
            deviations: Some(deviations),
            tail,
            covered: answer.covered,
            window: self.asked.window.clone(),
            capped: self.capped(),
        }
    }
}
