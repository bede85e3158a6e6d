//! The tuned answers: whole substreams, weighted at both ends of the window.

use std::borrow::Cow;
use std::ops::Range;

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::sealed::substream::SealedSubstream;
use crate::view::estimate::{Deviations, Estimate, Ranked, WHOLE_COUNTS};
use crate::view::list::{List, show_rows};
use crate::view::list_request::Selection;
use crate::view::prior::Errors;
use crate::view::question::Question;
use crate::view::tuned::evidence::Evidence;
use crate::view::tuned::series::KeySeries;
use crate::view::tuned::series_index::SeriesIndex;
use crate::view::tuned::weights::Slice;
use crate::view::tuned::window_model::{Answer, KeySums, WindowModel};

/// Keys are looked at that lie this many standard errors below a threshold.
const SLACK: f64 = 6.0;

/// A window and how it is read.
pub(crate) struct TunedAnswers<'a> {
    pub(crate) question: Question<'a>,
    pub(crate) model: &'a WindowModel,
    /// Whether the window is the one that the plan is for, whose estimates are cached.
    pub(crate) is_whole: bool,
}

impl<'a> Question<'a> {
    fn evidence(&self) -> Evidence<'a> {
        Evidence {
            plan: self.plan,
            substreams: self.cached.released.substreams(),
            stream: self.stream,
            keys: self.cached.released.keys(self.plan),
            pins: self.cached.released.pins(),
            noises: self.noises,
        }
    }

    /// How the window is read.
    pub(crate) fn make_model(&self) -> WindowModel {
        self.cached.fits().make_model(self.evidence(), self.window)
    }
}

impl TunedAnswers<'_> {
    pub(crate) fn covered_span(&self) -> Range<u64> {
        self.model.weights().span.clone()
    }

    /// Keys of a list are answered from the cache of the whole window, which then answers everyone alike.
    pub(crate) fn estimate_item(&self, item: Item<'_>) -> Estimate {
        self.to_estimate(self.answer_item(item))
    }

    pub(crate) fn answer_item(&self, item: Item<'_>) -> Answer {
        let Question { plan, cached, .. } = self.question;
        // Where a key is pinned the rows hold nothing of it (PRIVACY.md: rule 33).
        if 0 < plan.pinned()
            && let Some(series) =
                self.series_index().get_pinned(cached.released.mapping().fingerprint_key.hash_item(item))
        {
            return self.answer_of(series);
        }
        // Looking a key up in a long list costs more than reading its counters, where nothing is known of it by index.
        let is_indexed = self.is_whole || 1 < plan.levels().count();
        let keys = cached.released.keys(plan).filter(|_| is_indexed);
        match keys.and_then(|keys| Some((keys, cached.key_index(keys, item)?))) {
            Some((keys, key_index)) if self.is_whole => self.answer_at(key_index, &self.sums_of_keys(keys)),
            Some((_, key_index)) if let Some(series) = self.series_index().get(key_index) => {
                self.answer_of(series)
            }
            _ => cached.fits().answer_item(self.question.evidence(), self.model, item),
        }
    }

    /// The answer of the key with this index.
    fn answer_at(&self, key_index: usize, sums: &[KeySums]) -> Answer {
        match self.series_index().get(key_index) {
            Some(series) => self.answer_of(series),
            None => self.model.answer_key(&sums[key_index]),
        }
    }

    fn answer_of(&self, series: &KeySeries) -> Answer {
        let Question { plan, noises, window, .. } = self.question;
        self.series_index().answer_series(series, plan, noises, window)
    }

    /// The keys that are cut more finely than most.
    fn series_index(&self) -> &SeriesIndex {
        self.question.cached.fits().series_index(self.question.evidence())
    }

    /// Items of the window, by noisy counters where presence is private.
    pub(crate) fn count_items(&self) -> u64 {
        let slices = self.model.weights().slices.iter();
        // Totals are sealed with their noise where presence is private (PRIVACY.md: rule 18).
        let total: f64 =
            slices.map(|slice| slice.weight * slice.part * self.substream_of(slice).total() as f64).sum();
        total.max(0.0) as u64
    }

    fn substream_of(&self, slice: &Slice) -> &SealedSubstream {
        &self.question.cached.released.substreams()[slice.substream]
    }

    /// Events of the window that the caps of users left out.
    pub(crate) fn count_capped(&self) -> Option<u64> {
        self.question.plan.user_room()?;
        let slices = self.model.weights().slices.iter();
        let capped: Option<f64> = slices
            .map(|slice| Some(slice.weight * slice.part * self.substream_of(slice).capped()? as f64))
            .sum();
        Some(capped?.round() as u64)
    }

    /// Rows chosen from all keys by their estimates.
    pub(crate) fn list_keys<'k>(&self, keys: &'k Keys, selection: &Selection) -> List<'k> {
        let sums = self.sums_of_keys(keys);
        let values = self.values_of(&sums);
        self.choose_rows(self.errors_of_rare(), &values, selection, |key_index| {
            (keys.get(key_index), self.answer_at(key_index, &sums))
        })
    }

    /// The estimates of all keys.
    pub(crate) fn values_of_keys(&self, keys: &Keys) -> Vec<f64> {
        self.values_of(&self.sums_of_keys(keys))
    }

    fn values_of(&self, sums: &[KeySums]) -> Vec<f64> {
        let parts = self.model.parts();
        let mut values: Vec<f64> = sums.iter().map(|sums| sums.estimate_window(parts)).collect();
        for (key_index, series) in self.series_index().iter() {
            values[key_index] = self.series_index().estimate_value(series, self.question.window);
        }
        values
    }

    /// By how much rare keys are off, as most of a list are.
    pub(crate) fn errors_of_rare(&self) -> Errors {
        self.model.rare_errors()
    }

    /// Rows chosen from candidates by their estimates.
    pub(crate) fn list_among<'i>(&self, candidates: &[Item<'i>], selection: &Selection) -> List<'i> {
        let answers: Vec<Answer> = candidates.iter().map(|item| self.answer_item(*item)).collect();
        self.choose_among(self.errors_of_rare(), candidates, &answers, selection)
    }

    /// The same with these answers.
    pub(crate) fn choose_among<'i>(
        &self,
        errors: Errors,
        candidates: &[Item<'i>],
        answers: &[Answer],
        selection: &Selection,
    ) -> List<'i> {
        let values: Vec<f64> = answers.iter().map(|answer| answer.value).collect();
        self.choose_rows(errors, &values, selection, |index| (candidates[index], answers[index].clone()))
    }

    /// Rows chosen from all values; `errors` are those of rare keys.
    pub(crate) fn choose_rows<'k>(
        &self,
        errors: Errors,
        values: &[f64],
        selection: &Selection,
        answer: impl Fn(usize) -> (Item<'k>, Answer),
    ) -> List<'k> {
        let mut items = Vec::new();
        let mut rows = Vec::new();
        // What is shown of a row differs from its estimate: some that lie below a threshold may reach it.
        for index in selection.choose_indices(values, |least| SLACK * errors.deviation_at(least)) {
            let (item, answer) = answer(index);
            items.push(item);
            rows.push((answer.to_row(), self.to_estimate(answer)));
        }
        let shown = show_rows(errors, values, &rows, selection);
        let mut ranked = Vec::with_capacity(rows.len());
        for ((item, (_, estimate)), shown) in items.into_iter().zip(rows).zip(shown) {
            ranked.push(Ranked { item, estimate, shown });
        }
        List::new(ranked, selection)
    }

    fn sums_of_keys(&self, keys: &Keys) -> Cow<'_, [KeySums]> {
        let fits = self.question.cached.fits();
        let evidence = self.question.evidence();
        if self.is_whole {
            fits.sum_whole_window(evidence, self.model, keys).into()
        } else {
            fits.sum_all_keys(evidence, self.model, keys).into()
        }
    }

    pub(crate) fn to_estimate(&self, answer: Answer) -> Estimate {
        let tail = answer.tail();
        let deviations = Deviations {
            noise: answer.noise.sqrt(),
            collisions: answer.collision_variance().max(0.0).sqrt(),
            misfit: answer.edge_variance().sqrt(),
        };
        let error_bound = match answer.is_known {
            true => tail.reach_95() * deviations.total() + WHOLE_COUNTS,
            false => self.question.unknown_bound(),
        };
        Estimate {
            value: answer.value,
            error_bound,
            any_order: answer.any_order(),
            deviations: Some(deviations),
            tail,
            covered: answer.covered,
            window: self.question.window.clone(),
            capped: self.count_capped(),
        }
    }
}
