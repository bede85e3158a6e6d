//! The best structure of the tuned method for a budget and a size, and the smallest budget or size for an error.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::{PlanError, Quantity};
use crate::item::domain::Domain;
use crate::item::keys::Keys;
use crate::noise::law::Law;
use crate::plan::budget::Budget;
use crate::plan::layout::{count_kept, count_touched, open_max, substream_items};
use crate::plan::levels::LevelPlan;
use crate::plan::limits::{
    LEFT_SHARE, LEVELS_MAX, LIST_KEYS, PIN_LEN, PINNED_MAX, SUBSTREAM_ITEMS_MAX, check_range, check_settings,
};
use crate::plan::memory::{overflow_bytes, pins_max};
use crate::plan::predict::counts::Counts;
use crate::plan::predict::errors::{
    ALL_PHASES, Expectation, NO_PHASE, Pinned, PredictedStructure, Prediction, RankError,
};
use crate::plan::predict::false_rows::LISTED;
use crate::plan::reach::Reach;
use crate::plan::search::SearchPlan;
use crate::plan::settings::{CounterLayout, Method, NoiseChoice, Settings, TunedMethod};
use crate::plan::structure::Plan;
use crate::plan::tuned::calibrate_noise;
use crate::privacy::parameters::Epsilon;
use crate::ratio::Ratio;
use crate::words::{grouped, percent};

/// A request for a plan. The planner chooses substreams, counters and noise.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Window, budget, keys; a method in it is ignored.
    pub settings: Settings,
    /// Bytes that the sketches may take.
    pub bytes: u64,
    /// A public guess of what a window looks like, never made from the stream.
    pub expectation: Expectation,
    /// The most levels to consider; 5 where nothing else is said. More cut frequent keys more finely, which halves their error
    /// where shares drift. With 1 no key is pinned either.
    pub levels: u32,
    /// Whether nothing but the last window of a stream is asked, which ends with a substream: see
    /// [`for_last_window`](Self::for_last_window).
    pub is_last: bool,
    /// The steps in which the times of events go, in ticks; 1 where nothing else is said. See [`with_step`](Self::with_step).
    pub step: u64,
}

/// Sketches take this many bytes where nothing else is said.
const BYTES: u64 = 400_000;
/// Counters for each key of a public list may take this many.
const IDENTITY_BYTES: u64 = 64_000_000;
/// Frequent keys are cut into up to 16 slices per substream where nothing else is said.
const LEVELS: u32 = 5;
/// Keys that are expected where there is no list.
const KEYS_EXPECTED: usize = 100_000;

impl Settings {
    /// The plan of the given method, or the best that the planner finds for a typical window (see [`Request::new`]).
    ///
    /// # Errors
    /// A number is out of range, a delta is missing or too large, the plan costs more than the budget, or the noise would
    /// hide every item.
    pub fn plan(self) -> Result<Plan, PlanError> {
        match self.method.clone() {
            Some(method) => Plan::derive(self, method),
            None => Request::new(self).plan().map(|planned| planned.plan),
        }
    }
}

impl Plan {
    /// As [`Settings::plan`].
    ///
    /// # Errors
    /// See there.
    pub fn new(settings: Settings) -> Result<Self, PlanError> {
        settings.plan()
    }
}

impl From<Planned> for Plan {
    fn from(planned: Planned) -> Self {
        planned.plan
    }
}

/// Items whose error is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Group {
    /// The 50 most frequent.
    Frequent,
    /// The others that occur at least 100 times.
    Rare,
}

/// A mean error to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// In items.
    Absolute(Group, f64),
    /// As a share of the count.
    Relative(Group, f64),
}

impl Target {
    /// The error that is aimed at.
    fn goal(self) -> f64 {
        let (Self::Absolute(_, error) | Self::Relative(_, error)) = self;
        error
    }

    /// The error that is predicted.
    fn predicted_error(self, prediction: &Prediction) -> f64 {
        match self {
            Self::Absolute(Group::Frequent, _) => prediction.frequent(),
            Self::Absolute(Group::Rare, _) => prediction.rare(),
            Self::Relative(Group::Frequent, _) => prediction.frequent_relative(),
            Self::Relative(Group::Rare, _) => prediction.rare_relative(),
        }
    }
}

/// A plan with the error that it will probably have.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Its error.
    pub prediction: Prediction,
}

const SUBSTREAMS: RangeInclusive<u64> = 5..=50;
/// A last window needs no more than two, so that its halves can be compared.
const LAST_SUBSTREAMS: RangeInclusive<u64> = 2..=2;
const ROWS: RangeInclusive<u32> = 1..=5;
/// Narrower sketches are not worth having.
const COLUMNS_MIN: u64 = 16;
/// Good lists are worth at most this many times the smallest score.
const SCORE_RANGE: f64 = 2.0;
/// Where all plans have more false rows than they should, a difference of one is no matter.
const FALSE_ROWS_EQUAL: f64 = 1.0;
/// Fewer false rows are not worth a word.
const FALSE_ROWS_SAID: f64 = 0.5;
/// Bounds of the searches for an epsilon or a size.
const EPSILON_RANGE: (f64, f64) = (1e-3, 1e3);
const BYTES_RANGE: (f64, f64) = (1e3, 1e11);
/// Keys are pinned with these shares of the bytes.
const PINNED_SHARES: [f64; 5] = [0.125, 0.25, 0.375, 0.5, 0.625];
/// With one row alone, keys that share a counter with a frequent one could not be told from it before it is pinned.
const PINNED_ROWS_MIN: u32 = 2;
/// Rounds of those searches: a relative precision of about 1e-6.
const ROUNDS: usize = 24;

impl Request {
    /// A request with 64 MB if a counter for each key of a public list fits, else with 400 KB; for keys that follow Zipf's
    /// law and drift moderately.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let keys = settings.domain.keys().map(Keys::len);
        let fits = |keys: usize| {
            let kept = u64::from(settings.retention).saturating_mul(*SUBSTREAMS.end());
            (keys as u64).saturating_mul(Plan::flat_cell_bytes(kept, 3)) <= IDENTITY_BYTES
        };
        let bytes = if keys.is_some_and(fits) { IDENTITY_BYTES } else { BYTES };
        let expectation = Expectation::zipf(keys.unwrap_or(KEYS_EXPECTED).max(1));
        Self { settings, bytes, expectation, levels: LEVELS, is_last: false, step: 1 }
    }

    /// The same with this many bytes.
    #[must_use]
    pub fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// The same with up to so many levels.
    #[must_use]
    pub fn with_levels(self, levels: u32) -> Self {
        Self { levels, ..self }
    }

    /// The same for a stream that will end with a substream, of which nothing but the last window is asked: nothing is cut at
    /// its edges, so that two substreams are enough and their noise is all that there is. See
    /// [`DpswSketch::ending_after`](crate::DpswSketch::ending_after). Other windows of such a plan have large errors.
    #[must_use]
    pub fn for_last_window(self) -> Self {
        Self { is_last: true, ..self }
    }

    /// The same for events whose times go in steps of so many ticks, as days do in milliseconds: substreams are whole steps long
    /// where the window allows it, so that none is cut inside one. All that happens in a step happens at once, and a part of it
    /// cannot be told.
    #[must_use]
    pub fn with_step(self, step: u64) -> Self {
        Self { step, ..self }
    }

    /// The same with another guess.
    #[must_use]
    pub fn with_expectation(self, expectation: Expectation) -> Self {
        Self { expectation, ..self }
    }

    /// The plan with the smallest predicted error, of frequent and rare items together, whose lists will hardly show keys
    /// that do not belong there, if there is one (see [`Prediction::false_rows`]).
    ///
    /// # Errors
    /// No structure fits the bytes, the noise would hide every item, or see [`Plan::new`].
    pub fn plan(&self) -> Result<Planned, PlanError> {
        self.derive_plan(self.choose_best(|prediction| prediction.frequent() + prediction.rare())?)
    }

    fn derive_plan(&self, best: Choice) -> Result<Planned, PlanError> {
        // Such a plan would spend ε and tell nothing.
        if 1.0 <= best.prediction.detectable_share() {
            return Err(PlanError::OnlyNoise {
                epsilon: self.settings.epsilon.get(),
                items: self.window_items(),
            });
        }
        let Choice { substreams, tried: Tried { counters, levels, pinned, .. }, noise, share, .. } = best;
        let method = TunedMethod { substreams, counters, noise, levels, pinned };
        let plan = Plan::derive(with_share(self.settings.clone(), share), method.into())?;
        debug_assert!(plan.sketch_bytes() <= self.bytes, "{} bytes for {}", plan.sketch_bytes(), self.bytes);
        Ok(Planned { plan, prediction: best.prediction })
    }

    /// The plan with the smallest ε, up to a relative precision of 1e-6, that meets the target with these bytes.
    ///
    /// # Errors
    /// No ε between 1e-3 and 1e3 does, or see [`plan`](Self::plan).
    pub fn smallest_epsilon(&self, target: Target) -> Result<Planned, PlanError> {
        let at = |epsilon: f64| {
            let settings = Settings { epsilon: Epsilon::new(epsilon)?, ..self.settings.clone() };
            Ok(Self { settings, ..self.clone() })
        };
        search_smallest(EPSILON_RANGE, target, at)?.ok_or(PlanError::UnreachableEpsilon)
    }

    /// The plan with the fewest bytes, within a thousandth or so, that meets the target with this ε.
    ///
    /// # Errors
    /// No size up to 10¹¹ bytes does, or see [`plan`](Self::plan).
    pub fn smallest_bytes(&self, target: Target) -> Result<Planned, PlanError> {
        let at = |bytes: f64| Ok(Self { bytes: bytes as u64, ..self.clone() });
        search_smallest(BYTES_RANGE, target, at)?.ok_or(PlanError::UnreachableBytes)
    }

    /// The structure with the smallest score whose lists are good; if none are, among those with about the fewest false
    /// rows. Those with a much larger score are left out.
    fn choose_best(&self, score: impl Fn(&Prediction) -> f64) -> Result<Choice, PlanError> {
        let mut choices = self.try_structures(score)?;
        choices.sort_by(|a, b| a.score.total_cmp(&b.score));
        // The first one stays even if no score can be compared.
        let worth = choices.partition_point(|choice| choice.score <= SCORE_RANGE * choices[0].score).max(1);
        let good = choices[..worth].iter().position(|choice| choice.prediction.lists_well());
        let place = good.unwrap_or_else(|| fewest_false(&choices[..worth]));
        Ok(choices.swap_remove(place))
    }

    /// Every structure that fits, with its score: at least one.
    fn try_structures(&self, score: impl Fn(&Prediction) -> f64) -> Result<Vec<Choice>, PlanError> {
        self.check_request()?;
        let counts = self.expectation.expected_counts(self.window_items())?;
        let mut choices = Vec::new();
        let (mut laws, mut share, mut refused) = (Vec::new(), None, None);
        for substreams in self.substream_counts() {
            let keys = match self.guess_found(substreams) {
                Ok(keys) => keys,
                Err(error) => {
                    // More substreams are shorter, so the last refusal is the nearest to a plan.
                    refused = Some(error);
                    continue;
                }
            };
            // What one event reaches does not depend on the number of substreams; what a user reaches does.
            if laws.is_empty() || share != keys.share || self.settings.unit.per_substream().is_some() {
                (share, laws) = (keys.share, self.list_variants(substreams, keys.share)?);
            }
            let own = laws.iter().find(|variant| variant.is_own()).map(|variant| variant.law);
            for &variant in &laws {
                for tried in self.fit_structures(substreams, variant, own, keys.bytes) {
                    let prediction = self.predict_errors(substreams, &tried, &counts, keys.least);
                    let score = score(&prediction);
                    choices.push(Choice {
                        substreams,
                        tried,
                        noise: variant.noise,
                        share,
                        prediction,
                        score,
                    });
                }
            }
        }
        if choices.is_empty() {
            return Err(refused.unwrap_or(PlanError::TooSmall { bytes: self.bytes }));
        }
        Ok(choices)
    }

    fn check_request(&self) -> Result<(), PlanError> {
        check_settings(&self.settings)?;
        let timed = self.settings.window.time();
        let name = timed.map_or(Quantity::WindowLen, |_| Quantity::ExpectedItems);
        check_range(name, self.window_items(), 1, SUBSTREAM_ITEMS_MAX * SUBSTREAMS.end())?;
        check_range(Quantity::Levels, self.levels.into(), 1, LEVELS_MAX.into())
    }

    /// The structures with these counters that fit beside found keys of so many bytes: plain, with levels, with pinned keys.
    fn fit_structures(&self, substreams: u64, variant: Variant, own: Option<Law>, found: u64) -> Vec<Tried> {
        let Variant { counting, law, noise } = variant;
        let mut structures = Vec::new();
        if let Some(counters) = self.choose_layout(self.count_cells(substreams, found), counting) {
            let plain = Tried { counters, law, own: law, levels: 1, pinned: 0 };
            // The order decides between equal scores: the simpler structure wins.
            structures.push(plain);
            let finer = Tried { levels: self.levels, ..plain };
            if 1 < self.levels && self.has_room(substreams, &finer) {
                structures.push(finer);
            }
        }
        if let (CounterKind::Hashed { rows }, Some(own), NoiseChoice::Laplace) = (counting, own, noise) {
            structures.extend(self.try_pinned(substreams, rows, [law, own], found));
        }
        structures
    }

    /// How many substreams of a window are tried: no more than it has steps, and where that can be those that are whole steps
    /// long.
    fn substream_counts(&self) -> Vec<u64> {
        let len = self.settings.window.len();
        let is_whole = |number: &u64| len.div_ceil(*number).is_multiple_of(self.step);
        let numbers: Vec<u64> = match len / self.step.max(1) {
            few if few < *SUBSTREAMS.start() => (1..=few.max(1)).collect(),
            _ if self.is_last => LAST_SUBSTREAMS.collect(),
            _ => SUBSTREAMS.filter(|&number| number <= len).collect(),
        };
        let whole: Vec<u64> = numbers.iter().copied().filter(is_whole).collect();
        if whole.is_empty() { numbers } else { whole }
    }

    fn predict_errors(
        &self,
        substreams: u64,
        tried: &Tried,
        counts: &Arc<Counts>,
        least_fitted: f64,
    ) -> Prediction {
        let keys = self.settings.domain.keys().map_or(0, Keys::len);
        let pinned = (0 < tried.pinned).then_some(Pinned { keys: tried.pinned as usize, law: tried.own });
        let structure = PredictedStructure {
            least_fitted,
            keys,
            pinned,
            phases: if self.is_last { &NO_PHASE } else { &ALL_PHASES },
            ..structure_of(self.settings.window.len(), substreams, tried.counters, tried.law)
        };
        let prediction = Prediction::new(structure, counts, self.expectation.drift);
        let levels = self.plan_levels(substreams, tried).for_walk(self.expectation.walk());
        prediction.with_levels(levels)
    }

    /// Structures with pinned keys beside so many rows: shares of the bytes are theirs.
    fn try_pinned(&self, substreams: u64, rows: u32, [law, own]: [Law; 2], found: u64) -> Vec<Tried> {
        let is_plain = self.levels == 1 || rows < PINNED_ROWS_MIN;
        let Some(most) = self.pinned_max().filter(|_| !is_plain) else { return Vec::new() };
        let mut structures = Vec::new();
        for levels in [1, self.levels] {
            // Levels take bytes from the number of pinned keys, so both are tried.
            let Some((kept, open)) = self.count_arrays(substreams, levels) else { continue };
            let each = Plan::flat_cell_bytes(kept, open) + PIN_LEN + PIN_LEN / u64::from(LEFT_SHARE);
            for share in PINNED_SHARES {
                let pinned = ((self.bytes as f64 * share) as u64 / each).clamp(1, most) as u32;
                let counters = CounterLayout::Hashed { rows, columns: 0 };
                let tried = Tried { counters, law, own, levels, pinned };
                let items = substream_items(self.settings.window, self.substream_len(substreams, 1));
                let pins = u64::from(pins_max(pinned)) * PIN_LEN;
                let taken = u64::from(pinned) * Plan::flat_cell_bytes(kept, open)
                    + pins
                    + self.plan_levels(substreams, &tried).slice_bytes(kept, 0)
                    + kept * overflow_bytes(rows + 1, items)
                    + found;
                let cells = self.bytes.saturating_sub(taken) / Plan::flat_cell_bytes(kept, open);
                let layout = self.choose_layout(cells, CounterKind::Hashed { rows });
                structures.extend(layout.map(|counters| Tried { counters, ..tried }));
            }
        }
        structures
    }

    /// The most keys that can be pinned: fewer than all of a public list, or all that are found.
    fn pinned_max(&self) -> Option<u64> {
        let found = self.settings.domain.search().map(|_| LIST_KEYS as u64);
        let listed = self.settings.domain.keys().map(|keys| keys.len() as u64 - 1);
        found.or(listed).filter(|most| 0 < *most).map(|most| most.min(PINNED_MAX.into()))
    }

    /// Substreams that are kept, and arrays that are open at a time, with so many levels; `None` if they cannot be had.
    fn count_arrays(&self, substreams: u64, levels: u32) -> Option<(u64, u64)> {
        let (window, steps) = (self.settings.window, 1 << (levels - 1));
        let len = self.substream_len(substreams, levels);
        // Each slice needs a position, and rounding up must not exceed the window.
        if self.substream_len(substreams, 1) < steps || window.len() < len {
            return None;
        }
        let open = if window.time().is_some() { steps * open_max(window, len) } else { 1 };
        Some((count_kept(window.len(), self.settings.retention, len), open))
    }

    /// What found keys take and which are found, with this many substreams.
    fn guess_found(&self, substreams: u64) -> Result<FoundGuess, PlanError> {
        if self.settings.domain.search().is_none() {
            return Ok(FoundGuess { bytes: 0, least: 0.0, share: None });
        }
        let plan = Plan::derive(self.settings.clone(), smallest_method(substreams).into())?;
        let share = plan.search_plan().map(SearchPlan::share);
        Ok(FoundGuess { bytes: plan.found_bytes(), least: plan.least_found(), share })
    }

    /// The noise for each number of rows; identity counters are like one row.
    fn list_variants(&self, substreams: u64, keys_share: Option<Ratio>) -> Result<Vec<Variant>, PlanError> {
        let mut laws = Vec::new();
        let substreams = count_touched(self.settings.window.len(), self.substream_len(substreams, 1));
        for rows in ROWS {
            let reach = Reach::new(self.settings.unit, rows, substreams);
            // With equal noise the pure promise is taken, as it comes first.
            for noise in NoiseChoice::all() {
                let budget = Budget::for_sketches(&self.settings, keys_share, noise)?;
                let Ok((law, _)) = calibrate_noise(noise, budget, reach) else { continue };
                laws.push(Variant { counting: CounterKind::Hashed { rows }, law, noise });
                if rows == 1 {
                    laws.push(Variant { counting: CounterKind::Identity, law, noise });
                }
            }
        }
        Ok(laws)
    }

    fn choose_layout(&self, cells: u64, counting: CounterKind) -> Option<CounterLayout> {
        match counting {
            CounterKind::Identity => {
                let keys = self.settings.domain.keys()?.len() as u64;
                (keys <= cells).then_some(CounterLayout::Identity)
            }
            CounterKind::Hashed { rows } => {
                let columns = (cells / u64::from(rows)).min(1 << 24);
                (COLUMNS_MIN <= columns).then_some(CounterLayout::Hashed { rows, columns: columns as u32 })
            }
        }
    }

    /// How many counters a sketch can have beside found keys of this many bytes.
    fn count_cells(&self, substreams: u64, found: u64) -> u64 {
        let len = self.substream_len(substreams, 1);
        let kept = count_kept(self.settings.window.len(), self.settings.retention, len);
        let open = open_max(self.settings.window, len);
        let reserve = kept * overflow_bytes(*ROWS.end(), self.window_items().div_ceil(substreams));
        self.bytes.saturating_sub(reserve + found) / Plan::flat_cell_bytes(kept, open)
    }

    /// Which counts are cut how finely.
    fn plan_levels(&self, substreams: u64, tried: &Tried) -> LevelPlan {
        let listed = self.settings.domain.keys().map_or(0, Keys::len);
        let keys = if 0 < tried.pinned { tried.pinned as usize } else { listed };
        let len = self.substream_len(substreams, tried.levels);
        let substreams = self.settings.window.len().div_ceil(len);
        let levels = LevelPlan::new(tried.levels, substreams, self.window_items(), keys, tried.own);
        if 0 < tried.pinned { levels.beside_hashed() } else { levels }
    }

    /// Whether a counter for each key and so many levels can be had.
    fn has_room(&self, substreams: u64, tried: &Tried) -> bool {
        let are_own = tried.counters == CounterLayout::Identity && matches!(tried.law, Law::Laplace { .. });
        let Some((kept, open)) = self.count_arrays(substreams, tried.levels).filter(|_| are_own) else {
            return false;
        };
        let keys = self.settings.domain.keys().map_or(0, Keys::len) as u64;
        let items = substream_items(self.settings.window, self.substream_len(substreams, tried.levels));
        let reserve = kept * overflow_bytes(1, items);
        let slices = self.plan_levels(substreams, tried).slice_bytes(kept, keys);
        Plan::flat_cell_bytes(kept, open) * keys + reserve + slices <= self.bytes
    }

    /// The length of a substream that can be cut into the slices of so many levels.
    fn substream_len(&self, substreams: u64, levels: u32) -> u64 {
        self.settings.window.len().div_ceil(substreams).next_multiple_of(1 << (levels - 1))
    }

    fn window_items(&self) -> u64 {
        self.settings.window.expected_items()
    }
}

/// The same with the share of ε by which the keys were judged.
fn with_share(mut settings: Settings, share: Option<Ratio>) -> Settings {
    if let Domain::Found(search) = &mut settings.domain {
        search.share = share;
    }
    settings
}

/// A plan by which keys are judged; they do not depend on the counters.
fn smallest_method(substreams: u64) -> TunedMethod {
    let counters = CounterLayout::Hashed { rows: 1, columns: COLUMNS_MIN as u32 };
    TunedMethod { substreams, counters, ..TunedMethod::default() }
}

/// Counters and noise that the planner tries.
#[derive(Clone, Copy)]
struct Variant {
    counting: CounterKind,
    law: Law,
    noise: NoiseChoice,
}

impl Variant {
    /// Whether each key has a counter of its own, with Laplace noise.
    fn is_own(&self) -> bool {
        matches!(self.counting, CounterKind::Identity) && self.noise == NoiseChoice::Laplace
    }
}

#[derive(Clone, Copy)]
enum CounterKind {
    Identity,
    Hashed { rows: u32 },
}

struct FoundGuess {
    bytes: u64,
    /// The smallest count in a window that is usually found.
    least: f64,
    /// The share of ε that they take.
    share: Option<Ratio>,
}

/// Counters that the planner tries.
#[derive(Clone, Copy)]
struct Tried {
    counters: CounterLayout,
    /// Their noise, and that of counters that a key has for itself.
    law: Law,
    own: Law,
    levels: u32,
    pinned: u32,
}

struct Choice {
    substreams: u64,
    tried: Tried,
    noise: NoiseChoice,
    share: Option<Ratio>,
    prediction: Prediction,
    score: f64,
}

/// The first place with hardly more false rows than any.
fn fewest_false(choices: &[Choice]) -> usize {
    let rows: Vec<f64> = choices.iter().map(|choice| choice.prediction.false_rows()).collect();
    let fewest = rows.iter().copied().fold(f64::INFINITY, f64::min);
    rows.iter().position(|&rows| rows <= fewest + FALSE_ROWS_EQUAL).expect("there is a structure")
}

impl Plan {
    /// The error of this plan for another guess; `None` for the paper's method, whose bounds are worst cases.
    ///
    /// # Errors
    /// The expectation has no key or a negative share.
    pub fn predict(&self, expectation: &Expectation) -> Result<Option<Prediction>, PlanError> {
        let Method::Tuned(method) = self.method() else { return Ok(None) };
        let settings = self.settings();
        let items = settings.window.expected_items();
        let shape = self.shape();
        let counters = match method.counters {
            CounterLayout::Identity => CounterLayout::Identity,
            _ => CounterLayout::Hashed { rows: shape.rows, columns: shape.columns },
        };
        let structure =
            structure_of(settings.window.len(), method.substreams, counters, self.ranges()[0].law());
        let keys = settings.domain.keys().map_or(0, Keys::len);
        let pinned =
            (0 < self.pinned()).then(|| Pinned { keys: self.pinned() as usize, law: self.own_law() });
        let structure = PredictedStructure { least_fitted: self.least_found(), keys, pinned, ..structure };
        let prediction = Prediction::new(structure, &expectation.expected_counts(items)?, expectation.drift);
        Ok(Some(prediction.with_levels(self.levels().clone().for_walk(expectation.walk()))))
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.plan)?;
        for RankError { rank, count, error } in self.prediction.ranks() {
            let (share, count) = (100.0 * error / count, grouped(count));
            writeln!(
                f,
                "expected   rank {rank}: {count} items, off by {error:.0} ({share:.1} %) on average"
            )?;
        }
        let false_rows = self.prediction.false_rows();
        if FALSE_ROWS_SAID <= false_rows {
            writeln!(f, "listed     of {LISTED} rows about {false_rows:.0} hardly occur in the window")?;
        }
        let share = self.prediction.detectable_share();
        write!(f, "smallest   an item with {} of the window stands out from the noise", percent(share))
    }
}

/// What is predicted of a structure; identity counters do not collide.
pub(crate) fn structure_of(
    window_len: u64,
    substreams: u64,
    counters: CounterLayout,
    law: Law,
) -> PredictedStructure {
    let substreams = window_len as f64 / window_len.div_ceil(substreams) as f64;
    let (rows, columns) = match counters {
        CounterLayout::Hashed { rows, columns } => (rows.into(), Some(columns.into())),
        _ => (1.0, None),
    };
    let (least_fitted, keys, pinned, phases) = (0.0, 0, None, &ALL_PHASES);
    PredictedStructure { substreams, rows, columns, law, least_fitted, keys, pinned, phases }
}

/// The smallest value in the range whose plan meets the target, by bisection in the logarithm.
fn search_smallest(
    (low, high): (f64, f64),
    target: Target,
    at: impl Fn(f64) -> Result<Request, PlanError>,
) -> Result<Option<Planned>, PlanError> {
    let best = |request: &Request| request.choose_best(|prediction| target.predicted_error(prediction));
    let meets = |value: f64| -> Result<bool, PlanError> {
        match best(&at(value)?) {
            Ok(choice) => Ok(choice.score <= target.goal()),
            Err(PlanError::TooSmall { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    };
    // Errors fall as the value grows: if the largest does not meet the target, none does.
    if !meets(high)? {
        return Ok(None);
    }
    let (mut low, mut high) = (low.ln(), high.ln());
    for _ in 0..ROUNDS {
        let middle = f64::midpoint(low, high);
        if meets(middle.exp())? { high = middle } else { low = middle }
    }
    let request = at(high.exp())?;
    request.derive_plan(best(&request)?).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::value::Kind;
    use crate::privacy::parameters::Delta;

    fn settings() -> Settings {
        Settings::last_items(1_000_000, 1.0).expect("in range").with_keys(0..25_600)
    }

    fn request(bytes: u64) -> Request {
        Request::new(settings()).with_bytes(bytes)
    }

    fn layout(planned: &Planned) -> CounterLayout {
        let Method::Tuned(method) = planned.plan.method() else { unreachable!("the planner is tuned") };
        method.counters
    }

    #[test]
    fn identity_counters_are_taken_when_they_fit() {
        let wide = request(3_000_000).plan().expect("a plan");
        assert_eq!(layout(&wide), CounterLayout::Identity);
        let narrow = request(112_000).plan().expect("a plan");
        assert!(matches!(layout(&narrow), CounterLayout::Hashed { .. }));
        assert!(wide.prediction.rare() < narrow.prediction.rare());
        for planned in [wide, narrow] {
            assert!(planned.plan.sketch_bytes() <= 3_000_000);
        }
    }

    #[test]
    fn single_rows_that_list_false_keys_are_left_though_their_mean_error_is_the_smallest() {
        for (keys, epsilon, bytes) in
            [(35_519, 1.0, 400_000), (35_519, 0.1, 100_000), (100_000, 0.1, 100_000)]
        {
            let settings = Settings::last_items(20_000, epsilon).expect("in range").with_keys(0..keys);
            let request = Request::new(settings).with_bytes(bytes).with_levels(1);
            let choices = request
                .try_structures(|prediction| prediction.frequent() + prediction.rare())
                .expect("plans");
            let smallest = choices.iter().min_by(|a, b| a.score.total_cmp(&b.score)).expect("plans");
            assert!(
                matches!(smallest.tried.counters, CounterLayout::Hashed { rows: 1, .. }),
                "{keys}, {epsilon}"
            );
            let planned = request.plan().expect("a plan");
            assert!(matches!(layout(&planned), CounterLayout::Hashed { rows: 2, .. }), "{planned}");
            assert!(planned.prediction.false_rows() < 0.1, "{planned}");
        }
    }

    #[test]
    fn the_bytes_are_nearly_all_spent_and_never_exceeded() {
        for bytes in [20_000, 112_000, 560_000, 1_120_000] {
            let asked = settings().with_domain(Domain::Asked(Kind::Bytes));
            let spent = Request::new(asked).with_bytes(bytes).plan().expect("a plan").plan.sketch_bytes();
            assert!(spent <= bytes && bytes * 9 / 10 < spent, "{spent} of {bytes}");
        }
    }

    #[test]
    fn windows_of_a_few_items_are_planned_or_refused_for_their_noise() {
        for window in 1..=10 {
            let settings = |epsilon| Settings::last_items(window, epsilon).expect("in range").with_keys(0..3);
            assert!(matches!(settings(0.1).plan(), Err(PlanError::OnlyNoise { .. })), "{window}");
            let planned = Request::new(settings(100.0)).plan().expect("a plan");
            assert!(planned.plan.substream_len() <= window, "{planned}");
        }
    }

    #[test]
    fn both_directions_agree() {
        let forward = request(560_000).plan().expect("a plan");
        let target = Target::Absolute(Group::Frequent, forward.prediction.frequent() * 1.001);
        let by_epsilon = request(560_000).smallest_epsilon(target).expect("reachable");
        let epsilon = by_epsilon.plan.settings().epsilon.get();
        assert!((0.8..=1.0).contains(&epsilon), "epsilon {epsilon}");
        assert!(by_epsilon.prediction.frequent() <= forward.prediction.frequent() * 1.001);
        let by_bytes = request(1).smallest_bytes(target).expect("reachable");
        assert!(by_bytes.plan.sketch_bytes() <= 560_000);
        let relative = Target::Relative(Group::Rare, 0.2);
        let planned = request(560_000).smallest_epsilon(relative).expect("reachable");
        assert!(planned.prediction.rare_relative() <= 0.2);
    }

    #[test]
    fn what_cannot_be_useful_is_refused_and_says_what_would_help() {
        let message = |settings: Settings| settings.plan().expect_err("refused").to_string();
        let tiny = Epsilon::new(1e-6).expect("in range");
        let hidden = message(Settings { epsilon: tiny, ..settings() });
        assert!(hidden.contains("raise epsilon"), "{hidden}");
        let small = request(100).plan().expect_err("too small").to_string();
        assert!(small.contains("100 bytes"), "{small}");
        let endless = message(Settings::last_items(1 << 50, 1.0).expect("in range"));
        assert!(endless.starts_with("window length must lie"), "{endless}");
        let long = message(Settings::last_items(1_000_000_000_000, 1.0).expect("in range").with_keys(0..3));
        assert_eq!(long, "window length must lie between 1 and 53687091200, got 1000000000000");
        let found = settings().with_found_keys().with_delta(1e-10).expect("in range");
        let nobody = found.clone().with_users(0).plan();
        assert!(matches!(nobody, Err(PlanError::OutOfRange { value: 0, .. })));
        for keys in [0, 1 << 40] {
            let refused = message(Settings::last_items(1000, 1.0).expect("in range").with_keys(0..keys));
            assert!(refused.starts_with("number of keys in the domain must lie between 1 and"), "{refused}");
        }
        let loud =
            Settings { epsilon: Epsilon::new(1000.0).expect("in range"), ..found }.with_users(1).plan();
        assert!(loud.is_err(), "what one user's events may cost each is too little to calculate with");
        let needless = settings().with_found_keys().plan();
        assert!(matches!(needless, Err(PlanError::DeltaNeeded(_))));
        let impossible = request(560_000).smallest_epsilon(Target::Absolute(Group::Frequent, 0.0));
        assert!(matches!(impossible, Err(PlanError::UnreachableEpsilon)));
    }

    #[test]
    fn a_plan_predicts_for_any_guess_and_prints_it() {
        let planned = request(560_000).plan().expect("a plan");
        let again = planned.plan.predict(&Expectation::zipf(25_600)).expect("a prior").expect("tuned");
        assert_eq!(again, planned.prediction);
        let text = planned.to_string();
        for part in ["rank 1:", "rank 1000:", "stands out from the noise", "epsilon = 1, delta = 0"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_list_that_shows_false_keys_is_announced() {
        let counters = CounterLayout::Hashed { rows: 1, columns: 28_557 };
        let method = TunedMethod { substreams: 5, counters, ..TunedMethod::default() };
        let settings = Settings::last_items(20_000, 1.0).expect("in range").with_keys(0..35_519);
        let plan = settings.with_method(method).plan().expect("a plan");
        let prediction = plan.predict(&Expectation::zipf(35_519)).expect("a prior").expect("tuned");
        let text = Planned { plan, prediction }.to_string();
        assert!(text.contains("of 20 rows about 11 hardly occur"), "{text}");
    }

    #[test]
    fn levels_are_taken_where_they_promise_less_error() {
        let [plain, finer] =
            [1, 5].map(|levels| request(1_120_000).with_levels(levels).plan().expect("a plan"));
        let levels = |planned: &Planned| planned.plan.levels().count();
        assert_eq!((levels(&plain), levels(&finer)), (1, 5));
        assert!(finer.prediction.frequent() < plain.prediction.frequent(), "{finer} {plain}");
        assert!(finer.plan.sketch_bytes() <= 1_120_000);
        for levels in [0, LEVELS_MAX + 1, u32::MAX] {
            let refused = request(1_120_000).with_levels(levels).plan();
            assert!(matches!(refused, Err(PlanError::OutOfRange { name: Quantity::Levels, .. })), "{levels}");
        }
        let small = request(560_000).with_levels(5).plan().expect("a plan");
        assert!(small.plan.sketch_bytes() <= 560_000);
        let gaussian = Settings { delta: Delta::new(1e-9).ok(), ..settings() }.with_users(1);
        let users = Request::new(gaussian).with_levels(5).plan().expect("a plan");
        assert_eq!(
            users.prediction,
            users.plan.predict(&Expectation::zipf(25_600)).expect("a prior").expect("tuned")
        );
    }

    #[test]
    fn a_last_window_takes_two_substreams_and_errs_by_their_noise_alone() {
        for (window, epsilon) in [(10_000, 1.0), (1_000_000, 0.1), (1_000_000, 5.0)] {
            let settings = Settings::last_items(window, epsilon).expect("in range").with_keys(0..25_600);
            let any = Request::new(settings.clone()).plan().expect("a plan");
            let last = Request::new(settings).for_last_window().plan().expect("a plan");
            assert_eq!((last.plan.substreams_kept(), last.plan.levels().count()), (2, 1));
            let deviation = (2.0 * last.plan.ranges()[0].law().variance()).sqrt();
            assert!((last.prediction.frequent() / (0.797_884_56 * deviation) - 1.0).abs() < 1e-6, "{last}");
            assert!(last.prediction.frequent() < 0.7 * any.prediction.frequent(), "{last} {any}");
        }
    }

    #[test]
    fn substreams_are_whole_steps_long_where_the_window_allows_it() {
        const DAY: u64 = 86_400_000;
        for (window, step, wanted) in [
            (7 * DAY, DAY, &[DAY][..]),
            (DAY, DAY, &[DAY]),
            (3 * DAY, DAY, &[DAY]),
            (30 * DAY, DAY, &[DAY, 2 * DAY, 3 * DAY, 5 * DAY, 6 * DAY]),
            (364 * DAY, DAY, &[7 * DAY, 13 * DAY, 14 * DAY, 26 * DAY, 28 * DAY, 52 * DAY]),
        ] {
            let settings = Settings::last_ticks(window, 10_000, 1.0).expect("in range").with_keys(0..100);
            let planned = Request::new(settings).with_step(step).plan().expect("a plan");
            assert!(wanted.contains(&planned.plan.substream_len()), "{planned}");
        }
        // 53 is a prime number, and too many substreams.
        let settings = Settings::last_ticks(53 * DAY, 10_000, 1.0).expect("in range").with_keys(0..100);
        let any = Request::new(settings.clone()).plan().expect("a plan");
        let steps = Request::new(settings).with_step(DAY).plan().expect("a plan");
        assert_eq!(steps.plan.substream_len(), any.plan.substream_len());
    }

    #[test]
    fn drift_asks_for_more_substreams() {
        let substreams = |drift| {
            let expectation = Expectation { drift, ..Expectation::zipf(25_600) };
            let planned = request(3_000_000).with_expectation(expectation).plan().expect("a plan");
            planned.plan.substreams_kept()
        };
        assert!(substreams(None) < substreams(Some(crate::plan::predict::errors::ExpectedDrift::MODERATE)));
    }
}
