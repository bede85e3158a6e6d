//! The fits of all sealed substreams, and the estimates of keys that come from them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::decide::sums::{SummedSubstream, WindowSums};
use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::tail::Moments;
use crate::plan::limits::LEFT_MAX;
use crate::sealed::found::fingerprint_keys;
use crate::view::tuned::evidence::Evidence;
use crate::view::tuned::fit::{
    Candidates, Observed, PartlyPinned, Spread, SubstreamFit, by_blocks, fit_minima,
};
use crate::view::tuned::forecast::ForecastClasses;
use crate::view::tuned::series_index::SeriesIndex;
use crate::view::tuned::weights::{Ends, Slice, WHOLE};
use crate::view::tuned::window_model::{Answer, KeySums, Running, SeenSlices, SliceStep, WindowModel};

/// How often candidates are looked for again in what the others leave.
const MORE_ROUNDS: usize = 2;

/// Keys that are added up side by side.
const LANES: usize = 4;
/// Substreams that are added up at a time, so that the sums of a key stay in the processor.
const SLICES_AT_ONCE: usize = 8;

/// The fits of all sealed substreams, made once when a view is first asked.
#[derive(Debug, Default)]
pub(crate) struct FitCache {
    /// The sums of a view before this one.
    earlier: Option<Arc<WindowSums>>,
    fit: OnceLock<WindowFit>,
    /// For the whole window, by the substreams at its ends.
    sums: Mutex<Option<(Ends, Arc<Vec<KeySums>>)>>,
}

/// Fingerprints are hashes already.
#[derive(Debug, Default, Clone, Copy)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

#[derive(Debug)]
struct WindowFit {
    /// The smallest counters of each key.
    sums: Option<Arc<WindowSums>>,
    /// By fingerprint.
    candidates: HashMap<u64, Candidate, BuildHasherDefault<FingerprintHasher>>,
    /// By index of the slice.
    fitted: Vec<SubstreamFit>,
    /// The keys that are cut more finely.
    series: SeriesIndex,
    /// From how many slices others are predicted, where keys have counters of their own.
    classes: Option<ForecastClasses>,
}

/// A key that is fitted.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// Its index in the list of keys.
    key_index: u32,
    /// Its index among the candidates.
    rank: u32,
}

impl<'a> Evidence<'a> {
    fn observe_slice(&self, slice: &Slice) -> Option<Observed<'a>> {
        let substream = &self.substreams[slice.substream];
        Some(Observed {
            sketch: substream.sketch(slice.range)?,
            mapping: &substream.mapping,
            noise: Moments::of_draws(self.plan.ranges()[slice.range].law(), self.noises),
            number: substream.number,
            length: slice.length,
            pins: self.pins,
        })
    }

    /// What the sealed slices of most keys hold.
    fn observe_all(&self) -> Vec<Observed<'a>> {
        self.slices().iter().map_while(|slice| self.observe_slice(slice)).collect()
    }

    /// The keys that are or were pinned, with their indices in the list.
    fn pinned_keys(&self, fingerprints: &[u64]) -> Vec<(u64, usize)> {
        let pinned: HashSet<u64, BuildHasherDefault<FingerprintHasher>> =
            self.pins.iter().map(|(fingerprint, _, _)| fingerprint).collect();
        if pinned.is_empty() {
            return Vec::new();
        }
        let listed = fingerprints.iter().enumerate().filter(|(_, fingerprint)| pinned.contains(fingerprint));
        listed.map(|(key_index, &fingerprint)| (fingerprint, key_index)).collect()
    }

    /// The keys with slices of their own, where nothing hashed is sealed.
    fn own_series(self) -> SeriesIndex {
        let Some(first) = self.substreams.first().filter(|_| 0 < self.plan.pinned()) else {
            return SeriesIndex::with_own_counters(self);
        };
        let by = first.mapping.fingerprint_key;
        let listed = self.keys.map_or_else(Vec::new, |keys| self.pinned_keys(&fingerprint_keys(keys, by)));
        SeriesIndex::with_pinned_keys(self, &listed, |_, _| 0.0, |_| unreachable!("no whole one is sealed"))
    }

    /// The smallest counters of all keys, summed over the substreams.
    fn sum_minima(&self, fingerprints: &[u64], earlier: Option<&WindowSums>) -> WindowSums {
        let window: Vec<_> =
            self.slices().iter().map(|slice| Arc::clone(&self.substreams[slice.substream])).collect();
        let mut sums = earlier.cloned().unwrap_or_default();
        // Sums of integers: carried on from an earlier view they are the same as added up anew.
        sums.slide_to(
            &window,
            fingerprints.len(),
            |_| (),
            |changes, sums| {
                by_blocks(fingerprints, sums, |_, block, sums| {
                    for (times, SummedSubstream { substream, .. }) in &*changes {
                        let Some(sketch) = substream.sketch(WHOLE) else { continue };
                        sketch.visit_minima(substream.mapping.rows(), block, |key_index, minimum| {
                            sums[key_index] += times * i64::from(minimum);
                        });
                    }
                });
            },
        );
        sums
    }
}

impl FitCache {
    /// Those of the view after this one, which no longer has the substreams before `first`.
    pub(crate) fn after_seal(&self, first: u64) -> Self {
        let earlier = match self.fit.get() {
            Some(fit) => fit.sums.as_ref(),
            None => self.earlier.as_ref(),
        };
        let earlier = earlier.filter(|sums| {
            // Sums keep the substreams that they are made of, also those that no view has any more.
            let left = sums.window().iter().filter(|summed| summed.substream.number < first).count();
            left <= LEFT_MAX
        });
        Self { earlier: earlier.cloned(), ..Self::default() }
    }

    fn window_fit(&self, evidence: Evidence<'_>) -> &WindowFit {
        self.fit.get_or_init(|| {
            let observed = evidence.observe_all();
            let keys = evidence.keys.filter(|keys| !keys.is_empty() || 0 < evidence.plan.pinned());
            match (observed.first(), keys) {
                (Some(first), Some(keys)) if first.can_separate() || evidence.plan.has_few_keys() => {
                    WindowFit::with_candidates(evidence, &observed, keys, self.earlier.as_deref())
                }
                _ => WindowFit::without_candidates(evidence, &observed),
            }
        })
    }

    /// The keys that are cut more finely than most.
    pub(crate) fn series_index(&self, evidence: Evidence<'_>) -> &SeriesIndex {
        &self.window_fit(evidence).series
    }

    /// How a window is read.
    pub(crate) fn make_model(&self, evidence: Evidence<'_>, window: &Range<u64>) -> WindowModel {
        let fit = self.window_fit(evidence);
        WindowModel::new(evidence, window, fit.classes, |slice| fit.hashed_spread(evidence, slice))
    }

    /// The estimate of any item, from the substreams themselves.
    pub(crate) fn answer_item(&self, evidence: Evidence<'_>, model: &WindowModel, item: Item<'_>) -> Answer {
        model.answer_key(&self.window_fit(evidence).key_sums(evidence, model, item))
    }

    /// The estimates of all keys of the public list, in its order.
    pub(crate) fn sum_all_keys(
        &self,
        evidence: Evidence<'_>,
        model: &WindowModel,
        keys: &Keys,
    ) -> Vec<KeySums> {
        self.window_fit(evidence).all_sums(evidence, model, keys)
    }

    /// The same for the whole window, computed when it is first needed and again when its ends reach other substreams.
    pub(crate) fn sum_whole_window<'r>(
        &self,
        evidence: Evidence<'_>,
        model: &'r WindowModel,
        keys: &Keys,
    ) -> &'r [KeySums] {
        model.whole.get_or_init(|| self.cached_sums(evidence, model, keys))
    }

    fn cached_sums(&self, evidence: Evidence<'_>, model: &WindowModel, keys: &Keys) -> Arc<Vec<KeySums>> {
        let ends = model.weights().ends();
        // Windows whose ends reach the same slices have the same sums; only the shares at the ends differ.
        let mut cached = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sums)) = cached.as_ref().filter(|(known, _)| *known == ends) {
            return Arc::clone(sums);
        }
        let sums = Arc::new(self.sum_all_keys(evidence, model, keys));
        *cached = Some((ends, Arc::clone(&sums)));
        sums
    }
}

impl WindowFit {
    /// Where nothing has to be told apart: keys have counters of their own, or there is no list of them.
    fn without_candidates(evidence: Evidence<'_>, observed: &[Observed<'_>]) -> Self {
        let has_classes = evidence.plan.is_identity();
        Self {
            sums: None,
            candidates: HashMap::default(),
            fitted: fit_minima(observed),
            series: evidence.own_series(),
            classes: has_classes.then(|| ForecastClasses::new(evidence, &evidence.slices())),
        }
    }

    fn with_candidates(
        evidence: Evidence<'_>,
        observed: &[Observed<'_>],
        keys: &Keys,
        earlier: Option<&WindowSums>,
    ) -> Self {
        let fingerprints = fingerprint_keys(keys, observed[0].mapping.fingerprint_key);
        let sums = evidence.sum_minima(&fingerprints, earlier);
        let cells = evidence.plan.shape().cells();
        let listed = evidence.pinned_keys(&fingerprints);
        let pinned: Vec<PartlyPinned> =
            listed.iter().map(|&(key, key_index)| sum_unpinned(observed, key, key_index)).collect();
        // Found keys all stand out; in a public list the bulk of the keys does not.
        let (mut candidates, rounds) = match (evidence.plan.search_plan(), observed[0].can_separate()) {
            (Some(_), _) => (Candidates::all_keys(sums.sums().to_vec(), &pinned, cells), 0),
            (None, true) => (Candidates::new(sums.sums().to_vec(), &pinned, cells), MORE_ROUNDS),
            (None, false) => (Candidates::default(), 0),
        };
        let mut fitted = candidates.fit_substreams(observed, keys);
        for _ in 0..rounds {
            if !candidates.add_more(observed, &fitted, &fingerprints) {
                break;
            }
            fitted = candidates.fit_substreams(observed, keys);
        }
        let candidates = (0..).zip(&candidates.key_indices);
        let candidates = candidates
            .map(|(rank, &index)| (fingerprints[index], Candidate { key_index: index as u32, rank }))
            .collect();
        let sums = Some(Arc::new(sums));
        let mut fit = Self { sums, candidates, fitted, series: SeriesIndex::default(), classes: None };
        fit.series = SeriesIndex::with_pinned_keys(
            evidence,
            &listed,
            |slice, fingerprint| fit.estimate_hashed(evidence, slice, fingerprint),
            |slice| fit.hashed_spread(evidence, slice),
        );
        fit
    }

    /// How far estimates from hashed counters of a substream are off.
    fn hashed_spread(&self, evidence: Evidence<'_>, slice: &Slice) -> Spread {
        self.fitted[slice.index].estimate_spread(evidence.plan.shape())
    }

    /// The rank of a key among the candidates, if it is one.
    fn rank_of(&self, fingerprint: u64) -> Option<usize> {
        self.candidates.get(&fingerprint).map(|candidate| candidate.rank as usize)
    }

    /// What hashed counters of a substream hold of a key.
    fn estimate_hashed(&self, evidence: Evidence<'_>, slice: &Slice, fingerprint: u64) -> f64 {
        let candidate = self.rank_of(fingerprint);
        let cells = evidence.substreams[slice.substream].mapping.hashed_cells(fingerprint);
        self.fitted[slice.index].estimate_key(evidence.sketch_of(slice), cells, candidate)
    }

    fn key_sums(&self, evidence: Evidence<'_>, model: &WindowModel, item: Item<'_>) -> KeySums {
        let Some(substream) = evidence.substreams.first() else { return KeySums::default() };
        let fingerprint = substream.mapping.fingerprint_key.hash_item(item);
        let candidate = self.rank_of(fingerprint);
        let mut seen = SeenSlices::default();
        let mut running = Running::NONE;
        for slice in &model.weights().seen {
            let substream = &evidence.substreams[slice.substream];
            let sketch = substream.sketch(slice.range).expect("weights name sealed slices");
            let cells = substream.mapping.cells_of(item, fingerprint);
            let estimate = self.fitted[slice.index].estimate_key(sketch, cells, candidate);
            running.add_slice([estimate], seen.next_step(slice, model));
        }
        let [sums] = running.key_sums(&seen, model);
        sums
    }

    /// The same for all keys.
    fn all_sums(&self, evidence: Evidence<'_>, model: &WindowModel, keys: &Keys) -> Vec<KeySums> {
        let observed = evidence.observe_all();
        let Some(first) = observed.first() else { return vec![KeySums::default(); keys.len()] };
        let fingerprints = fingerprint_keys(keys, first.mapping.fingerprint_key);
        let mut seen = SeenSlices::default();
        let steps: Vec<SliceStep> =
            model.weights().seen.iter().map(|slice| seen.next_step(slice, model)).collect();
        let mut all = vec![KeySums::default(); keys.len()];
        let mut estimates = Vec::new();
        by_blocks(&fingerprints, &mut all, |first, block, all| {
            let read = Read { observed: &observed, slices: &model.weights().seen, steps: &steps };
            let running = self.add_up_block(read, (first, block), &mut estimates);
            for (running, all) in running.iter().zip(all.chunks_mut(LANES)) {
                all.copy_from_slice(&running.key_sums(&seen, model)[..all.len()]);
            }
        });
        all
    }

    /// The estimates of a block of keys: the index of the first in the list, and the fingerprints.
    fn add_up_block(
        &self,
        read: Read<'_>,
        (first, block): (usize, &[u64]),
        estimates: &mut Vec<[f64; LANES]>,
    ) -> Vec<Running<LANES>> {
        let in_block = first..first + block.len();
        let mut candidates: Vec<Candidate> = self.candidates.values().copied().collect();
        candidates.retain(|candidate| in_block.contains(&(candidate.key_index as usize)));
        let lanes = block.len().div_ceil(LANES);
        estimates.resize(lanes * SLICES_AT_ONCE, [0.0; LANES]);
        let mut running = vec![Running::NONE; lanes];
        for (slices, steps) in read.slices.chunks(SLICES_AT_ONCE).zip(read.steps.chunks(SLICES_AT_ONCE)) {
            for (slice, estimates) in slices.iter().zip(estimates.chunks_mut(lanes)) {
                let fitted = &self.fitted[slice.index];
                let estimates = estimates.as_flattened_mut();
                fitted.estimate_all(read.observed[slice.index], block, first, estimates);
                for &Candidate { key_index, rank } in &candidates {
                    estimates[key_index as usize - first] += fitted.fitted_count(rank as usize);
                }
            }
            for (lane, running) in running.iter_mut().enumerate() {
                // A copy stays in the processor's registers; sums behind a reference would go to memory at each step.
                let mut so_far = *running;
                for (step, estimates) in steps.iter().zip(estimates.chunks(lanes)) {
                    so_far.add_slice(estimates[lane], *step);
                }
                *running = so_far;
            }
        }
        running
    }
}

/// A key that is pinned in some of these substreams.
fn sum_unpinned(observed: &[Observed<'_>], fingerprint: u64, key_index: usize) -> PartlyPinned {
    let mut sum = 0;
    let mut count = 0;
    for observed in observed.iter().filter(|observed| observed.counts_key(fingerprint)) {
        observed.visit_minima(&[fingerprint], |_, minimum| sum += i64::from(minimum));
        count += 1;
    }
    PartlyPinned { key_index, sum, share: f64::from(count) / observed.len() as f64 }
}

/// The substreams that are seen, and what is to be done with each.
#[derive(Clone, Copy)]
struct Read<'a> {
    observed: &'a [Observed<'a>],
    slices: &'a [Slice],
    steps: &'a [SliceStep],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::item::hash::StreamKey;
    use crate::item::mapping::{Columns, Mapping};
    use crate::noise::generator::{Generator, Noise};
    use crate::plan::settings::{CounterLayout, Method, Settings, TunedMethod, Unit, Window};
    use crate::plan::structure::Plan;
    use crate::privacy::parameters::Epsilon;
    use crate::sealed::pins::Pins;
    use crate::sealed::sketch::SealedSketch;
    use crate::sealed::substream::SealedSubstream;

    const KEYS: u64 = 400;
    const SUBSTREAM_LEN: u64 = 100;
    static ENDLESS: Range<u64> = 0..u64::MAX;
    const TWO_ROWS: CounterLayout = CounterLayout::Hashed { rows: 2, columns: 100 };

    /// A plan, and the substreams of a stream with some frequent keys.
    struct Stream {
        plan: Plan,
        keys: Keys,
        substreams: Vec<Arc<SealedSubstream>>,
    }

    impl Stream {
        fn new(counters: CounterLayout) -> Self {
            let keys = Keys::Range(KEYS);
            let settings = Settings {
                window: Window::Items(8 * SUBSTREAM_LEN),
                unit: Unit::ReplaceOne,
                epsilon: Epsilon::new(1.0).expect("in range"),
                delta: None,
                domain: Domain::Public(keys.clone()),
                method: Some(Method::Tuned(TunedMethod {
                    substreams: 8,
                    counters,
                    ..TunedMethod::default()
                })),
                retention: 1,
            };
            let plan = Plan::new(settings).expect("a valid plan");
            let mut generator = generator(5);
            let substreams = (0..12).map(|number| substream(&plan, number, &mut generator)).collect();
            Self { plan, keys, substreams }
        }

        fn evidence(&self, substreams: Range<usize>) -> Evidence<'_> {
            let (substreams, keys) = (&self.substreams[substreams], Some(&self.keys));
            Evidence { plan: &self.plan, substreams, stream: &ENDLESS, keys, pins: Pins::none(), noises: 1.0 }
        }

        fn model(&self, fits: &FitCache, evidence: Evidence<'_>) -> WindowModel {
            let end = evidence.substreams.last().map_or(0, |s| s.number + 1) * SUBSTREAM_LEN;
            let window = end - 7 * SUBSTREAM_LEN - 30..end + 40;
            fits.make_model(Evidence { stream: &(0..window.end), ..evidence }, &window)
        }
    }

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
    }

    /// Key k occurs 200 / (k + 1) times, rounded down.
    fn substream(plan: &Plan, number: u64, generator: &mut Generator) -> Arc<SealedSubstream> {
        let (shape, stream) = (plan.shape(), StreamKey::from_bytes([3; 32]));
        let columns = match plan.is_identity() {
            true => Columns::Range,
            false => Columns::Hashed(stream.row_keys(number, shape.rows as usize).into()),
        };
        let fingerprint_key = stream.fingerprint_key();
        let mapping = Mapping { shape, fingerprint_key, columns, pinned: None };
        let law = plan.ranges()[WHOLE].law();
        let mut cells: Vec<i32> = (0..shape.cells()).map(|_| law.draw_exactly(generator) as i32).collect();
        for key in 0..KEYS {
            mapping.cells(key.into()).for_each(|cell| cells[cell] += 200 / (key as i32 + 1));
        }
        let whole = SealedSketch::of_released(shape, &cells, None, plan.width());
        Arc::new(SealedSubstream::from_parts(number, mapping, vec![(WHOLE, Arc::new(whole))]))
    }

    fn layouts() -> [CounterLayout; 4] {
        let hashed = |rows| CounterLayout::Hashed { rows, columns: 100 };
        [CounterLayout::Identity, hashed(1), TWO_ROWS, hashed(4)]
    }

    #[test]
    fn estimates_of_all_keys_equal_those_of_one() {
        for counters in layouts() {
            let (stream, fits) = (Stream::new(counters), FitCache::default());
            let evidence = stream.evidence(0..8);
            let model = stream.model(&fits, evidence);
            let all = fits.sum_all_keys(evidence, &model, &stream.keys);
            for (key, sums) in (0..KEYS).zip(&all) {
                let of_one = fits.answer_item(evidence, &model, key.into());
                assert_eq!(model.answer_key(sums), of_one, "{counters:?}");
            }
            let candidates = fits.window_fit(evidence).candidates.len();
            assert_eq!(1 < stream.plan.shape().rows, 0 < candidates, "several rows tell keys apart");
        }
    }

    #[test]
    fn the_estimate_of_a_window_is_the_weighted_sum_of_those_of_its_substreams() {
        for counters in layouts() {
            let (stream, fits) = (Stream::new(counters), FitCache::default());
            let evidence = stream.evidence(0..8);
            let model = stream.model(&fits, evidence);
            let made = fits.window_fit(evidence);
            let (mut value, mut variance, mut noise) = (0.0, 0.0, 0.0);
            for &Slice { index, weight, .. } in &model.weights().slices {
                let (substream, fitted) = (&stream.substreams[index], &made.fitted[index]);
                let fingerprint = substream.mapping.fingerprint_key.hash_integer(3);
                let candidate = made.candidates.get(&fingerprint).map(|candidate| candidate.rank as usize);
                let sketch = substream.sketch(WHOLE).expect("sealed");
                let cells = substream.mapping.cells(3_u64.into());
                value += weight * fitted.estimate_key(sketch, cells, candidate);
                let spread = fitted.estimate_spread(stream.plan.shape());
                variance += weight.powi(2) * spread.all.variance;
                noise += weight.powi(2) * spread.noise;
            }
            let answer = fits.answer_item(evidence, &model, 3_u64.into());
            let off = [answer.value - value, answer.noise - noise, answer.base.variance - variance];
            assert!(off.iter().all(|off| off.abs() < 1e-6), "{counters:?}: {off:?}");
        }
    }

    /// All that the fits of some substreams hold, to the last bit.
    fn contents(fits: &FitCache, evidence: Evidence<'_>) -> String {
        let made = fits.window_fit(evidence);
        let sums = made.sums.as_ref().map(|sums| sums.sums());
        format!("{sums:?} {:?}", made.fitted)
    }

    #[test]
    fn the_fit_that_goes_on_from_an_earlier_one_equals_the_fresh_one() {
        let stream = Stream::new(TWO_ROWS);
        let fresh = |substreams| contents(&FitCache::default(), stream.evidence(substreams));
        let mut fits = FitCache::default();
        fits.window_fit(stream.evidence(0..8));
        for first in 1..=3 {
            fits = fits.after_seal(first as u64);
            assert!(fits.earlier.is_some());
            assert_eq!(contents(&fits, stream.evidence(first..first + 8)), fresh(first..first + 8));
        }
    }

    #[test]
    fn a_fit_goes_on_over_views_that_were_not_asked_while_few_substreams_have_left() {
        let stream = Stream::new(TWO_ROWS);
        let mut fits = FitCache::default();
        fits.window_fit(stream.evidence(0..8));
        for (first, goes_on) in [(1, true), (2, true), (3, false)] {
            fits = fits.after_seal(first as u64);
            assert_eq!(fits.earlier.is_some(), goes_on);
            let question = FitCache { earlier: fits.earlier.clone(), ..FitCache::default() };
            let fresh = contents(&FitCache::default(), stream.evidence(first..first + 8));
            assert_eq!(contents(&question, stream.evidence(first..first + 8)), fresh);
        }
    }

    #[test]
    fn a_substream_that_came_and_left_between_two_questions_is_not_taken_off() {
        let stream = Stream::new(TWO_ROWS);
        let fits = FitCache::default();
        fits.window_fit(stream.evidence(0..1));
        let fits = fits.after_seal(1).after_seal(2);
        assert!(fits.earlier.is_some());
        let fresh = contents(&FitCache::default(), stream.evidence(2..3));
        assert_eq!(contents(&fits, stream.evidence(2..3)), fresh);
    }
}
