//! Settings → Plan: every derived number, checked once.

use crate::error::{PlanError, Quantity};
use crate::item::domain::Domain;
use crate::item::index::check_distinct;
use crate::item::mapping::Shape;
use crate::noise::law::Law;
use crate::plan::budget::Budget;
use crate::plan::layout::{count_kept, open_max, substream_items};
use crate::plan::levels::LevelPlan;
use crate::plan::limits::{ROOM, SUBSTREAMS_MAX, Width, check_range, check_settings};
use crate::plan::paper::ranges as paper;
use crate::plan::range::{PlannedRange, Sketches, WHOLE, find_boundaries};
use crate::plan::search::{ListLimits, SearchPlan};
use crate::plan::settings::{Clock, CounterLayout, Method, Settings, Unit, Window};
use crate::plan::tuned;
use crate::privacy::ledger::{Cost, Ledger};
use crate::privacy::parameters::Claim;

/// Everything that follows from [`Settings`]: structure, noise, cost, bytes and error bounds.
///
/// A plan is public and complete: it is made before the first item, from settings alone, and nothing that is counted later
/// changes it. Sketches, views, saved states and the audit all read the same plan; none of them computes a scale, a range or a
/// size by itself.
///
/// Scales and shares are exact ratios and round towards more noise, so that the promise does not depend on rounding errors.
///
/// Invariant: what one event can touch costs at most the budget, by the [`Ledger`] inside.
#[derive(Debug, Clone)]
pub struct Plan {
    settings: Settings,
    method: Method,
    substream_len: u64,
    shape: Shape,
    ranges: Vec<PlannedRange>,
    boundaries: Vec<u64>,
    search_plan: Option<SearchPlan>,
    levels: LevelPlan,
    pinned: u32,
    ledger: Ledger,
}

impl Plan {
    /// The plan of this method.
    ///
    /// # Errors
    /// A number is out of range, a delta is missing or too large, or the plan costs more than the budget.
    pub(crate) fn derive(settings: Settings, method: Method) -> Result<Self, PlanError> {
        check_settings(&settings)?;
        if let Some(keys) = settings.domain.keys() {
            check_distinct(keys)?;
        }
        let search_plan = Self::find_keys(&settings, &method)?;
        let share = search_plan.as_ref().map(SearchPlan::share);
        let budget = Budget::for_sketches(&settings, share, method.noise())?;
        let sketches = match &method {
            Method::Paper(method) => paper::plan_sketches(&settings, method, budget)?,
            Method::Tuned(method) => tuned::plan_sketches(&settings, method, budget)?,
        };
        let plan = Self::assemble(settings, method, sketches, search_plan)?;
        check_range(Quantity::SubstreamsKept, plan.substreams_kept(), 1, SUBSTREAMS_MAX)?;
        planted!(let plan = fault::planned(plan));
        Ok(plan)
    }

    fn assemble(
        settings: Settings,
        method: Method,
        sketches: Sketches,
        search_plan: Option<SearchPlan>,
    ) -> Result<Self, PlanError> {
        let Sketches { substream_len, shape, ranges, mut ledger } = sketches;
        if let Some(found) = &search_plan {
            let epsilon = settings.epsilon.ratio().checked_mul(found.share());
            let epsilon = epsilon.ok_or(PlanError::KeysEpsilon { epsilon: settings.epsilon.get() })?;
            // In the ledger of the sketches: both see the same events (PRIVACY.md: rule 22).
            ledger.charge("the keys of a search", Cost::Approximate(epsilon, found.delta()))?;
        }
        // What was left open is now chosen.
        let domain =
            search_plan.as_ref().map_or(settings.domain, |found| Domain::Found(found.chosen_settings()));
        let settings = Settings { domain, method: Some(method.clone()), ..settings };
        let boundaries = find_boundaries(&ranges);
        let (levels, pinned) = match &method {
            Method::Paper(_) => (1, 0),
            Method::Tuned(method) => (method.levels, method.pinned),
        };
        let substreams = settings.window.len().div_ceil(substream_len);
        let items = settings.window.expected_items();
        let levels = match pinned {
            0 => LevelPlan::new(levels, substreams, items, shape.columns as usize, ranges[WHOLE].law()),
            keys => LevelPlan::new(levels, substreams, items, keys as usize, ranges[1].law()).beside_hashed(),
        };
        let plan = Self {
            settings,
            method,
            substream_len,
            shape,
            ranges,
            boundaries,
            search_plan,
            levels,
            pinned,
            ledger,
        };
        Ok(plan)
    }

    /// How keys are found, if they are. Everything else has what they leave of the budget.
    fn find_keys(settings: &Settings, method: &Method) -> Result<Option<SearchPlan>, PlanError> {
        let Some(search) = settings.domain.search() else { return Ok(None) };
        let substream_len = method.substream_len(settings.window)?;
        SearchPlan::new(settings, search, method.noise(), substream_len).map(Some)
    }

    /// The same with a shorter list of found keys, for audits.
    pub(crate) fn with_list(self, list: ListLimits) -> Self {
        Self { search_plan: self.search_plan.map(|search_plan| search_plan.with_list(list)), ..self }
    }

    /// What was asked for, with everything that was left to the planner.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How the budget is spent.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The length of a substream, in items or ticks.
    #[must_use]
    pub fn substream_len(&self) -> u64 {
        self.substream_len
    }

    /// The shape of each sketch.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether there is one counter for each key of the domain.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.method.counters() == CounterLayout::Identity
    }

    /// The ranges of a substream, the whole first.
    #[must_use]
    pub fn ranges(&self) -> &[PlannedRange] {
        &self.ranges
    }

    /// How keys are found, if they are.
    #[must_use]
    pub fn search_plan(&self) -> Option<&SearchPlan> {
        self.search_plan.as_ref()
    }

    /// What one event can cost.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What is promised of everything that a stream of this plan releases.
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.ledger.budget()
    }

    /// Makes the tables of the noise, which sealing would otherwise wait for.
    pub(crate) fn prepare_tables(&self) {
        for range in &self.ranges {
            range.table();
        }
        if let Some(search_plan) = &self.search_plan {
            search_plan.lasting_table();
            search_plan.fresh_table();
        }
    }

    /// Which counts are cut how finely.
    pub(crate) fn levels(&self) -> &LevelPlan {
        &self.levels
    }

    /// The most keys with counters of their own beside hashed ones.
    pub(crate) fn pinned(&self) -> u32 {
        self.pinned
    }

    /// Whether keys are cut into slices.
    pub(crate) fn has_slices(&self) -> bool {
        1 < self.levels.count() || 0 < self.pinned
    }

    /// Whether keys are fitted in any case: those that were found, or what pinned ones leave.
    pub(crate) fn has_few_keys(&self) -> bool {
        self.search_plan.is_some() || 0 < self.pinned
    }

    /// How many keys can have counters of their own.
    pub(crate) fn own_len(&self) -> u32 {
        if 0 < self.pinned { self.pinned } else { self.shape.columns }
    }

    /// The law of the noise on counters of their own.
    pub(crate) fn own_law(&self) -> Law {
        self.ranges[self.levels.ranges_of(0).start].law()
    }

    /// Counters of a sketch and of pinned keys.
    pub(crate) fn counters_len(&self) -> usize {
        self.shape.cells() + self.pinned as usize
    }

    /// The ranges in which most keys count, where their lowest level is this one.
    pub(crate) fn ranges_of_most(&self, base: u32) -> std::ops::Range<usize> {
        if self.is_identity() { self.levels.ranges_of(base) } else { WHOLE..WHOLE + 1 }
    }

    /// Whether the numbers of events, of those in a range and of those that were late, are public.
    #[must_use]
    pub fn has_public_totals(&self) -> bool {
        // Where items decide the order of arrival they decide which events are late (PRIVACY.md: rule 36).
        let is_by_item = self.settings.window.time().is_some_and(|time| time.clock == Clock::CallerByItem);
        self.settings.unit != Unit::AddRemove && !is_by_item
    }

    /// Whether a window is made up of whole substreams that are weighted at both ends, and not of the complete ranges nearest
    /// to it, as in the paper.
    pub(crate) fn is_tuned(&self) -> bool {
        matches!(self.method, Method::Tuned(_))
    }

    /// The number under which a substream is hashed.
    pub(crate) fn hash_number(&self, substream: u64) -> u64 {
        match self.method {
            // One family for the stream, as in the paper.
            Method::Paper(_) => 0,
            Method::Tuned(_) => substream,
        }
    }

    /// How wide sealed counters are stored: 32 bits in the paper's structure, else 16 with a list for the few that are
    /// larger.
    pub(crate) fn width(&self) -> Width {
        match self.method {
            Method::Paper(_) => Width::Wide,
            Method::Tuned(_) => Width::Narrow,
        }
    }

    /// By what share of the window heavy hitters may fall short of the threshold: ζ = 1/columns in the paper's method.
    pub(crate) fn threshold_slack(&self) -> f64 {
        match self.method {
            Method::Paper(_) => self.collision_columns().map_or(0.0, |columns| 1.0 / f64::from(columns)),
            Method::Tuned(_) => 0.0,
        }
    }

    /// The offsets at which a segment ends, ascending; the last is the substream's length.
    pub(crate) fn boundaries(&self) -> &[u64] {
        &self.boundaries
    }

    /// The substream and the segment of a position.
    pub(crate) fn locate_position(&self, position: u64) -> (u64, usize) {
        let offset = position % self.substream_len;
        // Ranges are half-open: a boundary belongs to what begins there.
        let segment = self.boundaries.partition_point(|&boundary| boundary <= offset);
        (position / self.substream_len, segment)
    }

    /// The number of columns that collisions are spread over; none for identity counters.
    pub(crate) fn collision_columns(&self) -> Option<u32> {
        (!self.is_identity()).then_some(self.shape.columns)
    }

    /// Items or ticks that stay retained behind the newest position.
    pub(crate) fn retained_len(&self) -> u64 {
        self.settings.window.len() * u64::from(self.settings.retention)
    }

    /// The substreams that a window spans where it begins with one.
    pub(crate) fn substreams_per_window(&self) -> usize {
        self.settings.window.len().div_ceil(self.substream_len) as usize
    }

    /// The most sealed substreams that are kept at a time.
    #[must_use]
    pub fn substreams_kept(&self) -> u64 {
        count_kept(self.settings.window.len(), self.settings.retention, self.substream_len)
    }

    /// The most substreams that are open at a time.
    pub(crate) fn open_substreams_max(&self) -> u64 {
        open_max(self.settings.window, self.substream_len)
    }

    /// About how many items a substream holds.
    pub(crate) fn substream_items(&self) -> u64 {
        substream_items(self.settings.window, self.substream_len)
    }

    /// The most users of a substream whose items count, where users are protected: for a time window twice as many as items
    /// are expected in it.
    #[must_use]
    pub fn user_room(&self) -> Option<u64> {
        self.settings.unit.per_substream().map(|_| self.users_max())
    }

    /// The most users of a substream whose items count.
    pub(crate) fn users_max(&self) -> u64 {
        match self.settings.window {
            Window::Items(_) => self.substream_len,
            // Who comes too late for it follows from arrivals alone (PRIVACY.md: rule 14).
            Window::Time(_) => ROOM.saturating_mul(self.substream_items()),
        }
    }

    /// The smallest count in a window of a key that is usually found; 0 where all keys are listed.
    pub(crate) fn least_found(&self) -> f64 {
        self.search_plan.as_ref().map_or(0.0, |search_plan| {
            search_plan.share_found(0.5) * self.settings.window.expected_items() as f64
        })
    }

    /// The same with other noise, for planted mistakes.
    #[cfg(test)]
    pub(crate) fn with_laws(mut self, law: impl Fn(&Self, Law) -> Law) -> Self {
        let laws: Vec<Law> = self.ranges.iter().map(|range| law(&self, range.law())).collect();
        self.ranges = self.ranges.iter().zip(laws).map(|(range, law)| range.with_law(law)).collect();
        self
    }
}
