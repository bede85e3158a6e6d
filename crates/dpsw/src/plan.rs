//! Settings → Plan: every derived number, checked once.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use dashu_int::UBig;

use crate::accounting::{gaussian_variance, heaviest, laplace_scale, paper_rho, zcdp_rho};
use crate::batch::USER_LEN;
use crate::bound::{Asymptotic, Structure, frequency_error, frequency_parts, main_error, sketch_error};
use crate::checkpoint::{Role, checkpoints, ranges};
use crate::counters::Shape;
use crate::error::{ParameterError, PlanError};
use crate::hash::Index;
use crate::item::{Discovery, Keys, Kind, Tracking};
use crate::ledger::{Cost, Ledger};
use crate::noise::Law;
use crate::privacy::{Claim, Delta, Epsilon, Rho};
use crate::ratio::Ratio;
use crate::settings::{
    Clock, CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Settings, Shares, SubstreamLen,
    TunedMethod, Unit, Window,
};
use crate::sketch::{OVERFLOW_LEN, Width};
use crate::table::Table;

/// The longest window, in items.
pub(crate) const WINDOW_LEN_MAX: u64 = 1 << 40;
/// The longest substream: its counts and noise fit in 32 bits.
pub(crate) const SUBSTREAM_LEN_MAX: u64 = 1 << 30;
/// The most substreams kept at a time.
pub(crate) const SUBSTREAMS_MAX: u64 = 10_000;
/// The most checkpoints of a substream.
pub(crate) const CHECKPOINTS_MAX: usize = 200;
/// The most rows of a sketch.
pub(crate) const ROWS_MAX: u32 = 16;
/// The most counters of a sketch.
pub(crate) const CELLS_MAX: u64 = 1 << 28;
/// The most keys of a public domain.
pub(crate) const KEYS_MAX: u64 = 1 << 24;
/// The longest retention, in windows.
pub(crate) const RETENTION_MAX: u32 = 1000;
/// The largest variance parameter of Gaussian noise; the samplers' arithmetic is exact up to here.
pub(crate) const VARIANCE_MAX: u64 = (1 << 32) - 1;
/// Candidates of a fit are at most this share of the counters; beyond it they cannot be told apart.
pub(crate) const CANDIDATE_SHARE: f64 = 0.15;
/// Beyond this many substreams that left since the last fit, the next one adds up the totals of the keys anew.
pub(crate) const LEFT_MAX: usize = 2;
/// Bytes that a view caches for each key of an interpolated plan.
const KEY_SUMS_LEN: usize = 32;
/// Bytes of a candidate in the map of a fit, at its usual load.
const CANDIDATE_LEN: u64 = 28;
/// The most substreams of an epoch, and the longest keys that can be found.
pub(crate) const EPOCH_MAX: u64 = 1000;
pub(crate) const KEY_LEN_MAX: u64 = 1 << 16;
/// The most items of an epoch: their counts and noise fit in 32 bits.
pub(crate) const EPOCH_ITEMS_MAX: u64 = 1 << 30;
/// Time windows leave room for this many times the expected items of an epoch or substream.
const ROOM: u64 = 2;
/// Bytes of a key in the map of an epoch, without those of a byte string.
pub(crate) const TRACKED_LEN: usize = 24;
/// Bytes of the keys of an epoch that were met lately.
pub(crate) const RECENT_LEN: usize = 1 << 16;
/// Bytes that a released key is taken to have.
const FOUND_KEY_LEN: u64 = 32;
/// How many sets of domain estimates a view's cache holds.
pub(crate) const CACHED_COVERS_MAX: usize = 2;

/// One range of a substream that is sealed with its own noise.
#[derive(Debug, Clone)]
pub struct PlannedRange {
    role: Role,
    offsets: Range<u64>,
    law: Law,
    /// Made when it is first needed; views never do.
    table: Arc<OnceLock<Table>>,
}

impl PlannedRange {
    /// Whole, prefix or suffix.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The positions it covers, counted from the start of its substream.
    #[must_use]
    pub fn offsets(&self) -> Range<u64> {
        self.offsets.clone()
    }

    /// The law of its noise.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    pub(crate) fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(self.law))
    }
}

/// How keys are found: everything that follows from a [`Discovery`].
#[derive(Debug, Clone)]
pub struct PlannedDiscovery {
    discovery: Discovery,
    items_max: u64,
    law: Law,
    table: Arc<OnceLock<Table>>,
    threshold: i64,
    seen_once: f64,
}

impl PlannedDiscovery {
    /// Substreams of an epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.discovery.epoch
    }

    /// The items of an epoch, or as many as are looked at in a time window; the others are null items here.
    #[must_use]
    pub fn items_max(&self) -> u64 {
        self.items_max
    }

    /// The law of the noise on the count of a key.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    /// A key is released if its noisy count exceeds this.
    #[must_use]
    pub fn threshold(&self) -> i64 {
        self.threshold
    }

    /// The probability that a key comes out that only what is protected together has brought in: one event, or all that one
    /// user sends in a window.
    #[must_use]
    pub fn seen_once(&self) -> f64 {
        self.seen_once
    }

    /// The smallest count in an epoch that is found with this probability.
    #[must_use]
    pub fn count_found(&self, probability: f64) -> f64 {
        let missing = match self.discovery.tracking {
            Tracking::Exact => 0,
            Tracking::Summary { keys } => self.items_max / (keys + 1),
        };
        let steps = steps_beyond(self.scale(), 1.0 - probability).map_or(f64::INFINITY, |steps| steps as f64);
        self.threshold as f64 + missing as f64 + steps
    }

    /// The smallest share of an epoch that is found with this probability; above 1 if none is.
    #[must_use]
    pub fn share_found(&self, probability: f64) -> f64 {
        self.count_found(probability) / self.items_max as f64
    }

    pub(crate) fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(self.law))
    }

    fn scale(&self) -> f64 {
        match self.law {
            Law::Laplace { scale } => scale.to_f64(),
            Law::Gaussian { .. } => unreachable!("keys are found with Laplace noise"),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.discovery.kind
    }

    /// The most keys of a summary.
    pub(crate) fn limit(&self) -> Option<usize> {
        match self.discovery.tracking {
            Tracking::Exact => None,
            Tracking::Summary { keys } => usize::try_from(keys).ok(),
        }
    }

    pub(crate) fn key_len_max(&self) -> usize {
        self.discovery.key_len_max as usize
    }

    fn entry_len(&self) -> u64 {
        match self.discovery.kind {
            Kind::Integers => 16,
            Kind::Bytes => TRACKED_LEN as u64,
        }
    }

    /// About how many keys an epoch releases at most.
    fn found_max(&self) -> u64 {
        self.items_max / self.threshold.max(1) as u64 + 1
    }

    /// The most bytes that the keys of a running epoch take: entries at the least load of the map, and key bytes.
    fn tracker_bytes(&self) -> u64 {
        let entries = self.limit().map_or(self.items_max, |limit| self.items_max.min(limit as u64));
        // Lists grow by doubling; the map of places holds 8 bytes a slot.
        let slots = (entries * 4 / 3 + 1).next_power_of_two();
        let keys = match self.discovery.kind {
            Kind::Integers => 0,
            Kind::Bytes => entries * u64::from(self.discovery.key_len_max),
        };
        slots * 8 + entries.next_power_of_two() * self.entry_len() + keys + RECENT_LEN as u64
    }
}

/// Everything that follows from [`Settings`]: structure, noise, cost, bytes and error bounds.
///
/// Invariant: what one event can touch costs at most the budget, by the [`Ledger`] inside.
#[derive(Debug, Clone)]
pub struct Plan {
    settings: Settings,
    substream_len: u64,
    shape: Shape,
    identity: bool,
    one_hash: bool,
    threshold_slack: f64,
    ranges: Vec<PlannedRange>,
    boundaries: Vec<u64>,
    discovery: Option<PlannedDiscovery>,
    ledger: Ledger,
}

/// What the sketches may spend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Option<Delta>,
    /// What finding keys may spend.
    keys: Option<(Ratio, f64)>,
}

/// What one event, or all events of a user in a window, can move in the sketches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The sum of the changes of all counters.
    pub(crate) sum: u64,
    /// The sum of their squares.
    pub(crate) squares: u64,
}

impl Reach {
    /// With so many rows, where a window touches at most so many substreams. In the worst case all that a user sends in a
    /// substream falls on the same counters.
    pub(crate) fn new(unit: Unit, rows: u32, substreams: u64) -> Self {
        let (of_substream, of_window) = unit.events(substreams);
        let sum = unit.shifts().saturating_mul(rows.into()).saturating_mul(of_window);
        Self { sum, squares: sum.saturating_mul(of_substream) }
    }

    /// Whether every counter moves by at most one.
    fn is_by_ones(self) -> bool {
        self.sum == self.squares
    }
}

impl Plan {
    /// Derives the plan.
    ///
    /// # Errors
    /// A number is out of range, a delta is missing or too large, or the plan costs more than the budget.
    pub fn new(settings: Settings) -> Result<Self, PlanError> {
        check_settings(&settings)?;
        if let Some(keys) = settings.domain.keys() {
            check(
                "number of keys in the domain",
                keys.len() as u64,
                1,
                KEYS_MAX,
                "; ask for candidates instead",
            )?;
            keys.check_distinct()?;
        }
        let plan = match settings.method.clone() {
            Method::Paper(method) => Self::paper(settings, &method)?,
            Method::Tuned(method) => Self::tuned(settings, &method)?,
        };
        let kept = plan.substreams_kept();
        check(
            "number of substreams kept",
            kept,
            1,
            SUBSTREAMS_MAX,
            "; use longer substreams or less retention",
        )?;
        Ok(plan)
    }

    fn paper(settings: Settings, method: &PaperMethod) -> Result<Self, PlanError> {
        let budget = Budget::of(&settings, true)?;
        let delta = budget.delta.ok_or(PlanError::DeltaNeeded("the paper's method"))?;
        check_fraction("alpha", method.alpha.to_f64())?;
        let substream_len = substream_len(method.substream, settings.window.len())?;
        let lengths = checkpoint_lengths(method, substream_len)?;
        let shape = shape(method.counters, &settings)?;
        let shares = shares(&method.shares, method.alpha, lengths.len())?;
        let planned = ranges(&lengths);
        check_share_sum(&planned, &shares)?;
        let rho = paper_rho(budget.epsilon, delta);
        let shifts = settings.unit.shifts() * u64::from(shape.rows);
        let laws =
            shares.iter().map(|&share| shared_law(shifts, rho, share)).collect::<Result<Vec<_>, _>>()?;
        let mut ledger = Ledger::new(settings.epsilon, settings.delta);
        let costs: Vec<_> = planned
            .iter()
            .map(|(_, offsets, index)| (offsets.clone(), spent_rho(shifts, laws[*index])))
            .collect();
        ledger.charge("the sketches over one position", Cost::Zcdp(heaviest(&costs)))?;
        let laws: Vec<Law> = planned.iter().map(|(_, _, index)| laws[*index]).collect();
        Self::assemble(settings, budget, substream_len, shape, planned, &laws, ledger)
    }

    fn tuned(settings: Settings, method: &TunedMethod) -> Result<Self, PlanError> {
        let substream_len = substream_len(SubstreamLen::PerWindow(method.substreams), settings.window.len())?;
        let shape = shape(method.counters, &settings)?;
        let budget = Budget::of(&settings, method.noise == NoiseChoice::Gaussian)?;
        let reach = Reach::new(settings.unit, shape.rows, touched(settings.window.len(), substream_len));
        let (law, cost) = match method.noise {
            NoiseChoice::Laplace => laplace(budget.epsilon, reach)?,
            NoiseChoice::Gaussian => gaussian(budget, reach)?,
        };
        let delta = settings.delta.filter(|_| budget.delta.is_some() || budget.keys.is_some());
        let mut ledger = Ledger::new(settings.epsilon, delta);
        let what = match settings.unit {
            Unit::Users { .. } => "the sketches that a user reaches in a window",
            Unit::ReplaceOne | Unit::AddRemove => "the sketch over one position",
        };
        ledger.charge(what, cost)?;
        let planned = ranges(&[substream_len]);
        Self::assemble(settings, budget, substream_len, shape, planned, &[law], ledger)
    }

    fn assemble(
        settings: Settings,
        budget: Budget,
        substream_len: u64,
        shape: Shape,
        planned: Vec<(Role, Range<u64>, usize)>,
        laws: &[Law],
        mut ledger: Ledger,
    ) -> Result<Self, PlanError> {
        let (one_hash, layout) = match &settings.method {
            Method::Paper(method) => (true, method.counters),
            Method::Tuned(method) => (false, method.counters),
        };
        let identity = layout == CounterLayout::Identity;
        let threshold_slack = if one_hash && !identity { 1.0 / f64::from(shape.columns) } else { 0.0 };
        let tables = tables(laws);
        let ranges: Vec<PlannedRange> = planned
            .into_iter()
            .zip(tables)
            .map(|((role, offsets, _), (law, table))| PlannedRange { role, offsets, law, table })
            .collect();
        let boundaries = boundaries(&ranges);
        let discovery = match (settings.domain.discovery(), budget.keys) {
            (Some(discovery), Some(keys)) => {
                Some(plan_discovery(&settings, discovery, keys, substream_len, &mut ledger)?)
            }
            _ => None,
        };
        Ok(Self {
            settings,
            substream_len,
            shape,
            identity,
            one_hash,
            threshold_slack,
            ranges,
            boundaries,
            discovery,
            ledger,
        })
    }

    /// What was asked for.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The length of a substream, in items.
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
        self.identity
    }

    /// The ranges of a substream, the whole first.
    #[must_use]
    pub fn ranges(&self) -> &[PlannedRange] {
        &self.ranges
    }

    /// How keys are found, if they are.
    #[must_use]
    pub fn discovery(&self) -> Option<&PlannedDiscovery> {
        self.discovery.as_ref()
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
    pub(crate) fn prepare(&self) {
        for range in &self.ranges {
            range.table();
        }
        if let Some(discovery) = &self.discovery {
            discovery.table();
        }
    }

    /// Whether the number of items in a range is public.
    pub(crate) fn has_public_totals(&self) -> bool {
        self.settings.unit != Unit::AddRemove
    }

    /// Whether windows are interpolated from whole substreams; else covered by the nearest checkpoints.
    pub(crate) fn interpolates(&self) -> bool {
        !self.one_hash
    }

    /// Whether all substreams hash alike, as in the paper.
    pub(crate) fn has_one_hash(&self) -> bool {
        self.one_hash
    }

    /// By what share of the window heavy hitters may fall short of the threshold: the paper's ζ = 1/columns.
    pub(crate) fn threshold_slack(&self) -> f64 {
        self.threshold_slack
    }

    /// The offsets at which a segment ends, ascending; the last is the substream's length.
    pub(crate) fn boundaries(&self) -> &[u64] {
        &self.boundaries
    }

    /// The substream and the segment of a position.
    pub(crate) fn place(&self, position: u64) -> (u64, usize) {
        let offset = position % self.substream_len;
        let segment = self.boundaries.partition_point(|&boundary| boundary <= offset);
        (position / self.substream_len, segment)
    }

    /// The number of columns that collisions are spread over; none for identity counters.
    pub(crate) fn collision_columns(&self) -> Option<u32> {
        (!self.identity).then_some(self.shape.columns)
    }

    /// Items or ticks that stay retained behind the newest position.
    pub(crate) fn retained_len(&self) -> u64 {
        self.settings.window.len() * u64::from(self.settings.retention)
    }

    /// The most sealed substreams that are kept at a time.
    #[must_use]
    pub fn substreams_kept(&self) -> u64 {
        self.retained_len().div_ceil(self.substream_len)
    }

    /// Bytes of the counters: what is kept of complete substreams, and the most that the running one holds.
    #[must_use]
    pub fn sketch_bytes(&self) -> u64 {
        let kept = self.ranges.iter().filter(|range| range.role != Role::Prefix).count() as u64;
        // Each further open substream holds at most one array a segment.
        let further = (self.open_substreams_max() - 1) * self.boundaries.len() as u64;
        let cells = self.shape.cells() as u64;
        let sealed = kept * self.substreams_kept();
        let open = self.open_arrays_max() + further;
        let counters = match self.width() {
            Width::Wide => (sealed + open) * cells * size_of::<i32>() as u64,
            Width::Narrow => {
                let reserve = sealed * overflow_bytes(self.shape.rows, self.substream_items());
                Self::flat_cell_bytes(sealed, open) * cells + reserve
            }
        };
        counters + self.found_bytes()
    }

    /// How wide sealed counters are stored: 32 bits in the paper's structure, else 16 with a list for the few that are
    /// larger.
    pub(crate) fn width(&self) -> Width {
        if self.one_hash { Width::Wide } else { Width::Narrow }
    }

    /// About how many items a substream holds.
    fn substream_items(&self) -> u64 {
        substream_items(self.settings.window, self.substream_len)
    }

    /// The most users of a substream whose items count.
    pub(crate) fn users_max(&self) -> u64 {
        match self.settings.window {
            Window::Items(_) => self.substream_len,
            Window::Time(_) => ROOM.saturating_mul(self.substream_items()),
        }
    }

    /// The most epochs that are retained, and that run at a time.
    fn epochs(&self, epoch: u64) -> (u64, u64) {
        (self.substreams_kept().div_ceil(epoch) + 1, self.open_substreams_max().div_ceil(epoch) + 1)
    }

    /// The smallest count in a window of a key that is usually found; 0 where all keys are listed.
    pub(crate) fn least_found(&self) -> f64 {
        self.discovery.as_ref().map_or(0.0, |discovery| {
            let items = substream_items(self.settings.window, self.substream_len) * discovery.epoch();
            let in_window = match self.settings.window {
                Window::Items(len) => len,
                Window::Time(time) => time.expected_items,
            };
            discovery.count_found(0.5) * in_window as f64 / items as f64
        })
    }

    /// Bytes of released keys.
    pub(crate) fn found_bytes(&self) -> u64 {
        self.discovery.as_ref().map_or(0, |discovery| {
            let len = match discovery.discovery.kind {
                Kind::Integers => size_of::<u64>() as u64,
                Kind::Bytes => size_of::<Box<[u8]>>() as u64 + FOUND_KEY_LEN,
            };
            self.epochs(discovery.epoch()).0 * discovery.found_max() * len
        })
    }

    /// Bytes of the keys of running epochs, and of what views keep for each key that was found.
    fn discovery_bytes(&self) -> u64 {
        self.discovery.as_ref().map_or(0, |discovery| {
            let (retained, running) = self.epochs(discovery.epoch());
            let found = retained * discovery.found_max();
            let running = if self.settings.window.time().is_some() { running } else { 1 };
            let listed = self.found_bytes() + found * self.key_cache_bytes() as u64;
            let table = Table::bytes(discovery.law) + Index::bytes(found as usize);
            running * discovery.tracker_bytes() + listed + table as u64
        })
    }

    /// Bytes of the users of open substreams.
    fn user_bytes(&self) -> u64 {
        if self.settings.unit.per_substream().is_none() {
            return 0;
        }
        let slots = (self.users_max() * 8 / 7 + 1).next_power_of_two();
        self.open_substreams_max() * slots * (USER_LEN as u64 + 1)
    }

    /// Bytes of one counter in all the sketches of a plan with one range a substream.
    pub(crate) fn flat_cell_bytes(kept: u64, open: u64) -> u64 {
        kept * size_of::<i16>() as u64 + open * size_of::<i32>() as u64
    }

    /// Bytes of everything that a sketch and its newest view hold.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let keys = self.settings.domain.keys();
        let listed = keys.map_or(0, Keys::heap_bytes);
        let has_places = self.identity || self.interpolates();
        let indexed = keys.filter(|keys| has_places && !matches!(keys, Keys::Range(_)));
        let index = indexed.map_or(0, |keys| Index::bytes(keys.len()));
        let cached = keys.map_or(0, |keys| self.key_cache_bytes() * keys.len());
        let fitted = if self.interpolates() && !self.identity { self.fit_bytes() } else { 0 };
        let mut laws: Vec<Law> = self.ranges.iter().map(|range| range.law).collect();
        laws.dedup();
        let tables: usize = laws.into_iter().map(Table::bytes).sum();
        let fixed = (listed + index + cached + tables) as u64;
        self.sketch_bytes() + fitted + fixed + self.discovery_bytes() + self.user_bytes()
    }

    /// Bytes of what a view caches for each key.
    fn key_cache_bytes(&self) -> usize {
        if self.interpolates() { KEY_SUMS_LEN } else { CACHED_COVERS_MAX * size_of::<f64>() }
    }

    /// Bytes of the residuals, of the fitted counts, of the map of candidates, and of the totals and the substreams that
    /// the next fit starts from.
    fn fit_bytes(&self) -> u64 {
        let cells = self.shape.cells() as u64;
        let candidates = (CANDIDATE_SHARE * cells as f64) as u64;
        let each = (cells + candidates) * size_of::<f32>() as u64;
        let keys = self.settings.domain.keys().map_or(0, Keys::len) as u64;
        let earlier = keys * size_of::<i64>() as u64 + LEFT_MAX as u64 * cells * size_of::<i16>() as u64;
        self.substreams_kept() * each + candidates * CANDIDATE_LEN + earlier
    }

    /// The most substreams that are open at a time: one, or as many as the lateness reaches over.
    pub(crate) fn open_substreams_max(&self) -> u64 {
        self.settings.window.time().map_or(1, |time| time.lateness.div_ceil(self.substream_len) + 2)
    }

    /// The most arrays that the running substream holds at a time: the segment, the ranges that started before it
    /// and are not complete, and the sealed prefixes.
    fn open_arrays_max(&self) -> u64 {
        let starts = [0].into_iter().chain(self.boundaries.iter().copied());
        let live = |segment: u64| {
            let held = |range: &&PlannedRange| {
                let open = range.offsets.start < segment && segment < range.offsets.end;
                let sealed_prefix = range.role == Role::Prefix && range.offsets.end <= segment;
                open || sealed_prefix
            };
            1 + self.ranges.iter().filter(held).count() as u64
        };
        starts.filter(|&start| start < self.substream_len).map(live).max().unwrap_or(1)
    }

    /// The paper's bounds for this plan: with ζ = e/columns and η = 2 e^-rows, what each sketch, a frequency and
    /// the main theorem allow. `None` for other methods, for time
    /// windows, whose number of items is not known, and for identity counters.
    #[must_use]
    pub fn paper_bounds(&self) -> Option<PaperBounds> {
        let Method::Paper(method) = &self.settings.method else { return None };
        let Window::Items(window_len) = self.settings.window else { return None };
        let shifts = self.settings.unit.shifts() * u64::from(self.shape.rows);
        let columns = self.collision_columns()?;
        let (zeta, eta) =
            (std::f64::consts::E / f64::from(columns), 2.0 * (-f64::from(self.shape.rows)).exp());
        let whole_or_prefix = self.ranges.iter().filter(|range| range.role != Role::Suffix);
        let checkpoints: Vec<(u64, f64)> =
            whole_or_prefix.map(|range| (range.offsets.end, spent_rho(shifts, range.law()))).collect();
        let structure = Structure {
            window_len,
            alpha: method.alpha.to_f64(),
            relative_error: zeta,
            failure_probability: eta,
            checkpoints: &checkpoints,
        };
        let theorem = |domain_len: usize| {
            main_error(Asymptotic {
                window_len: window_len as f64,
                domain_len: domain_len as f64,
                relative_error: zeta,
                failure_probability: eta,
                epsilon: self.settings.epsilon.get(),
                delta: self.settings.delta.map_or(1.0, Delta::get),
            })
        };
        Some(PaperBounds {
            sketch: sketch_error(self.substream_len as f64, zeta, eta, checkpoints[0].1),
            sketch_failure: eta.min(1.0),
            frequency: frequency_error(&structure),
            frequency_failure: (frequency_parts(&structure) * eta).min(1.0),
            main: self.settings.domain.keys().map(|keys| theorem(keys.len())),
        })
    }
}

/// What the paper proves about a plan, in items. The bounds are far above typical errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperBounds {
    /// Theorem on the private count-min sketch, for the sketch of a whole substream.
    pub sketch: f64,
    /// The probability with which it may fail.
    pub sketch_failure: f64,
    /// Lemma on frequency, for the worst phase of the window.
    pub frequency: f64,
    /// The probability with which it may fail.
    pub frequency_failure: f64,
    /// Main theorem, up to its open constant; needs a public domain.
    pub main: Option<f64>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        let name = if self.one_hash { "paper" } else { "tuned" };
        writeln!(
            f,
            "method     {name}, {}",
            if self.identity { "identity counters" } else { "hashed counters" }
        )?;
        let unit = if settings.window.time().is_some() { "ticks" } else { "items" };
        writeln!(
            f,
            "window     {} {unit}, kept for {} window(s)",
            settings.window.len(),
            settings.retention
        )?;
        writeln!(f, "substreams {} {unit} each, {} kept", self.substream_len, self.substreams_kept())?;
        writeln!(f, "sketch     {} x {} counters", self.shape.rows, self.shape.columns)?;
        for range in &self.ranges {
            let Range { start, end } = range.offsets();
            writeln!(f, "  {:<8} [{start}, {end})  {}", format!("{:?}", range.role), describe(range.law()))?;
        }
        writeln!(f, "bytes      {} in sketches, {} resident", self.sketch_bytes(), self.resident_bytes())?;
        let (epsilon, delta) = self.ledger.spent();
        let one = if settings.unit.per_substream().is_some() { "a user's window" } else { "one event" };
        writeln!(f, "ledger     {one} costs epsilon {epsilon:.6}, delta {delta:e}; budget {}", self.claim())?;
        if let Some(bounds) = self.paper_bounds() {
            let PaperBounds { sketch, sketch_failure, frequency, frequency_failure, main } = bounds;
            writeln!(
                f,
                "bounds     a whole sketch errs by at most {sketch:.0} (but for probability {sketch_failure:.3})"
            )?;
            writeln!(f, "           a frequency by at most {frequency:.0} (but for {frequency_failure:.3})")?;
            if let Some(main) = main {
                writeln!(f, "           main theorem, up to a constant: {main:.0}")?;
            }
        }
        if let Some(discovery) = &self.discovery {
            let (share, epoch) = (discovery.share_found(0.99), discovery.epoch());
            writeln!(
                f,
                "keys       found in epochs of {epoch} substreams by {}, above {}",
                describe(discovery.law),
                discovery.threshold
            )?;
            writeln!(
                f,
                "           {:.4} % of an epoch is found with 99 %; what one event or user brings in, with {:.1e}",
                100.0 * share,
                discovery.seen_once
            )?;
        }
        write!(f, "contract   {}", self.contract())
    }
}

impl Plan {
    /// What is promised, in one sentence.
    #[must_use]
    pub fn contract(&self) -> String {
        let claim = self.claim();
        match self.settings.unit {
            Unit::ReplaceOne => {
                format!("everything released, for ever, together: {claim} for one event replaced by another")
            }
            Unit::AddRemove => {
                format!("everything released, for ever, together: {claim} for one event added or removed")
            }
            Unit::Users { per_substream } => format!(
                "everything released, together: {claim} for all items of one user inside any one window, of which \
                {per_substream} a substream count; who sends when is public, and what a user loses adds up over \
                windows: epsilon n-fold over n of them, delta faster"
            ),
        }
    }
}

/// Bytes reserved for the counters of one sealed sketch that do not fit in 16 bits: so many fit into its items.
pub(crate) fn overflow_bytes(rows: u32, items: u64) -> u64 {
    u64::from(rows) * (items / i16::MAX as u64 + 1) * OVERFLOW_LEN
}

fn describe(law: Law) -> String {
    match law {
        Law::Laplace { scale } => format!("discrete Laplace, scale {scale:.4}"),
        Law::Gaussian { variance } => format!("discrete Gaussian, variance {variance}"),
    }
}

fn check(name: &'static str, value: u64, low: u64, high: u64, hint: &'static str) -> Result<(), PlanError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(PlanError::OutOfRange { name, value, low, high, hint })
    }
}

fn check_fraction(name: &'static str, value: f64) -> Result<(), ParameterError> {
    if 0.0 < value && value < 1.0 { Ok(()) } else { Err(ParameterError::Fraction { name, value }) }
}

fn check_time(settings: &Settings) -> Result<(), PlanError> {
    if let Some(time) = settings.window.time() {
        check("lateness", time.lateness, 0, time.len, "; a longer one would exceed the window")?;
        check("expected items per window", time.expected_items, 1, WINDOW_LEN_MAX, "")?;
    }
    match (settings.unit, settings.window.time().map(|time| time.clock)) {
        (Unit::ReplaceOne | Unit::Users { .. }, _) | (Unit::AddRemove, Some(Clock::Caller)) => Ok(()),
        (Unit::AddRemove, None) => {
            Err(PlanError::AddRemove("removing an item would shift all later positions"))
        }
        (Unit::AddRemove, Some(Clock::Events)) => {
            Err(PlanError::AddRemove("one event far ahead would make all others late"))
        }
    }
}

/// What can be told before anything is derived.
pub(crate) fn check_settings(settings: &Settings) -> Result<(), PlanError> {
    check("window length", settings.window.len(), 1, WINDOW_LEN_MAX, "")?;
    check_time(settings)?;
    check("retention", settings.retention.into(), 1, RETENTION_MAX.into(), "")?;
    check_delta(settings)?;
    check_unit(settings)
}

fn check_unit(settings: &Settings) -> Result<(), PlanError> {
    let Unit::Users { per_substream } = settings.unit else { return Ok(()) };
    check("items of a user and substream that count", per_substream.into(), 1, 1 << 20, "")?;
    match settings.method {
        Method::Tuned(_) => Ok(()),
        Method::Paper(_) => {
            Err(PlanError::Users("the paper's method protects single events; use the tuned one for users"))
        }
    }
}

/// About how many items a substream of this length holds.
fn substream_items(window: Window, substream_len: u64) -> u64 {
    match window {
        Window::Items(_) => substream_len,
        Window::Time(time) => time.expected_items.div_ceil(time.len.div_ceil(substream_len)),
    }
}

/// How many substreams a window touches at most.
pub(crate) fn touched(window_len: u64, substream_len: u64) -> u64 {
    window_len.div_ceil(substream_len) + 1
}

impl Budget {
    pub(crate) fn of(settings: &Settings, needs_delta: bool) -> Result<Self, PlanError> {
        Self::new(settings.epsilon, settings.delta, settings.domain.discovery(), needs_delta)
    }

    /// What the sketches have left after the keys; a δ only if their noise needs one.
    pub(crate) fn new(
        whole: Epsilon,
        delta: Option<Delta>,
        discovery: Option<Discovery>,
        needs_delta: bool,
    ) -> Result<Self, PlanError> {
        let Some(discovery) = discovery else {
            return Ok(Self { epsilon: whole, delta: delta.filter(|_| needs_delta), keys: None });
        };
        let delta = delta.ok_or(PlanError::DeltaNeeded("finding keys"))?.get();
        check_fraction("the share of epsilon that finding keys takes", discovery.share.to_f64())?;
        let refused = PlanError::KeysEpsilon { epsilon: whole.get() };
        let keys = whole.ratio().checked_mul(discovery.share).ok_or(refused.clone())?;
        let rest = whole.ratio().checked_sub(keys).ok_or(refused.clone())?;
        let of_sketch = if needs_delta { delta / 2.0 } else { 0.0 };
        let of_key = (delta - of_sketch) / (1.0 + whole.get().exp()) * (1.0 - KEY_MARGIN);
        if of_key < f64::MIN_POSITIVE {
            return Err(refused);
        }
        let sketch_delta = needs_delta.then(|| Delta::new(of_sketch)).transpose()?;
        Ok(Self { epsilon: Epsilon::from_ratio(rest)?, delta: sketch_delta, keys: Some((keys, of_key)) })
    }
}

/// Kept back from the δ of a key, so that rounding errors fall on the side of a higher threshold.
const KEY_MARGIN: f64 = 1e-9;

/// The smallest z ≥ 0 with P[noise > z - 1] = qᶻ / (1 + q) ≤ `probability`, for q = exp(-1 / scale); none if it is beyond
/// what counts can reach.
fn steps_beyond(scale: f64, probability: f64) -> Option<u64> {
    let q = (-1.0 / scale).exp();
    let z = (-scale * (probability * (1.0 + q)).ln() * (1.0 + 1e-12)).ceil().max(0.0);
    (z <= THRESHOLD_MAX as f64).then_some(z as u64)
}

/// The highest threshold of found keys: it and the noise fit in 32 bits.
const THRESHOLD_MAX: u64 = 1 << 29;

/// How keys are found with this ε and this δ for each side of a neighbouring pair; see PRIVACY.md.
fn plan_discovery(
    settings: &Settings,
    discovery: Discovery,
    (epsilon, of_key): (Ratio, f64),
    substream_len: u64,
    ledger: &mut Ledger,
) -> Result<PlannedDiscovery, PlanError> {
    let kept = (settings.window.len() * u64::from(settings.retention)).div_ceil(substream_len);
    let hint = "; an epoch must not outlast what is retained";
    check("substreams of an epoch", discovery.epoch, 1, kept.min(EPOCH_MAX), hint)?;
    check("length of a key", discovery.key_len_max.into(), 1, KEY_LEN_MAX, "")?;
    if let Tracking::Summary { keys } = discovery.tracking {
        check("keys of a summary", keys, 1, KEYS_MAX, "")?;
    }
    let room = if settings.window.time().is_some() { ROOM } else { 1 };
    let items = substream_items(settings.window, substream_len).saturating_mul(discovery.epoch);
    let items_max = items.saturating_mul(room);
    check("items of an epoch", items_max, 1, EPOCH_ITEMS_MAX, "; use shorter epochs or more substreams")?;
    let entries = match discovery.tracking {
        Tracking::Exact => items_max,
        Tracking::Summary { keys } => keys.min(items_max),
    };
    let bytes = entries.saturating_mul(discovery.key_len_max.into());
    let hint = "; use a summary, shorter epochs or shorter keys";
    check("bytes of the keys of an epoch", bytes, 1, u32::MAX.into(), hint)?;
    let (of_substream, of_window) = settings.unit.events(touched(settings.window.len(), substream_len));
    let of_epoch = of_window.min(of_substream.saturating_mul(discovery.epoch));
    // An event that is added can push the last one out of the epoch's room, so also then two counts change.
    let too_fine = || ParameterError::Epsilon(epsilon.to_f64());
    let scale = epsilon.checked_divide(2 * of_window).ok_or_else(too_fine)?;
    let steps = steps_beyond(scale.to_f64(), of_key / of_window as f64).ok_or_else(too_fine)?;
    let threshold = (of_epoch - 1).checked_add(steps).filter(|&t| t <= THRESHOLD_MAX).ok_or_else(too_fine)?;
    let q = (-1.0 / scale.to_f64()).exp();
    let seen_once = of_window as f64 * q.powf(steps as f64) / (1.0 + q);
    if !(0.0..=of_key * (1.0 + KEY_MARGIN)).contains(&seen_once) {
        return Err(too_fine().into());
    }
    let threshold = threshold as i64;
    let delta = (1.0 + settings.epsilon.get().exp()) * of_key;
    ledger.charge("the keys of an epoch", Cost::Approximate(epsilon, delta))?;
    let law = Law::Laplace { scale };
    Ok(PlannedDiscovery { discovery, items_max, law, table: Arc::default(), threshold, seen_once })
}

fn check_delta(settings: &Settings) -> Result<(), PlanError> {
    let Some(delta) = settings.delta else { return Ok(()) };
    let items = match settings.window {
        Window::Items(len) => len,
        Window::Time(window) => window.expected_items,
    };
    let limit = 1.0 / (items.max(1) as f64 * f64::from(settings.retention));
    if delta.get() <= limit { Ok(()) } else { Err(PlanError::DeltaTooLarge { delta: delta.get(), limit }) }
}

fn substream_len(choice: SubstreamLen, window_len: u64) -> Result<u64, PlanError> {
    let len = match choice {
        SubstreamLen::Items(items) => items,
        SubstreamLen::PerWindow(count) => {
            check("number of substreams", count, 1, window_len, "")?;
            window_len.div_ceil(count)
        }
        SubstreamLen::Exponent(beta) => {
            check_fraction("beta", beta)?;
            // An exact power must not be rounded up past itself.
            ((window_len as f64).powf(beta) * (1.0 - 1e-12)).ceil() as u64
        }
    };
    check("substream length", len, 1, SUBSTREAM_LEN_MAX, "; use more substreams")?;
    Ok(len)
}

fn checkpoint_lengths(method: &PaperMethod, substream_len: u64) -> Result<Vec<u64>, PlanError> {
    let units = match method.grid {
        Grid::Items => substream_len,
        Grid::Units(units) => units,
    };
    check("number of grid units", units, 1, substream_len, "; a unit is at least one item")?;
    let in_items = |length: u64| {
        let product = u128::from(length) * u128::from(substream_len);
        product.div_ceil(u128::from(units)) as u64
    };
    let lengths: Vec<u64> = checkpoints(units, method.alpha).take(CHECKPOINTS_MAX + 1).collect();
    let high = CHECKPOINTS_MAX as u64;
    check(
        "number of checkpoints",
        lengths.len() as u64,
        1,
        high,
        " or more; use a larger alpha or a coarser grid",
    )?;
    Ok(lengths.into_iter().map(in_items).collect())
}

fn shape(layout: CounterLayout, settings: &Settings) -> Result<Shape, PlanError> {
    let (rows, columns) = match layout {
        CounterLayout::Hashed { rows, columns } => (rows, columns),
        CounterLayout::Accuracy { relative_error, failure_probability } => {
            check_fraction("zeta", relative_error)?;
            check_fraction("eta", failure_probability)?;
            let columns = (std::f64::consts::E / relative_error).ceil();
            ((-failure_probability.ln()).ceil() as u32, columns.min(f64::from(u32::MAX)) as u32)
        }
        CounterLayout::Identity => {
            let keys = settings.domain.keys().ok_or(PlanError::IdentityNeedsDomain)?;
            return Ok(Shape { rows: 1, columns: keys.len() as u32 });
        }
    };
    check("number of rows", rows.into(), 1, ROWS_MAX.into(), "")?;
    check("number of columns", columns.into(), 2, CELLS_MAX, "")?;
    check("number of counters in a sketch", u64::from(rows) * u64::from(columns), 2, CELLS_MAX, "")?;
    Ok(Shape { rows, columns })
}

/// The share of the whole, then of each further checkpoint, rounded down.
fn shares(shares: &Shares, alpha: Ratio, checkpoints: usize) -> Result<Vec<Ratio>, PlanError> {
    let list = match shares {
        Shares::Printed => (1..=checkpoints).map(|j| printed_share(alpha, j)).collect(),
        Shares::Explicit(list) => list.clone(),
    };
    if list.len() != checkpoints {
        return Err(PlanError::ShareCount { wanted: checkpoints, got: list.len() });
    }
    match list.iter().find(|share| share.numerator() == 0 || Ratio::ONE < **share) {
        Some(share) => Err(ParameterError::Fraction { name: "a budget share", value: share.to_f64() }.into()),
        None => Ok(list),
    }
}

/// The printed share of checkpoint j = 1, 2, ..., rounded down to a multiple of 2⁻⁶².
fn printed_share(alpha: Ratio, j: usize) -> Ratio {
    let unit = 1_u64 << 62;
    let (n, d) = (UBig::from(alpha.numerator()), UBig::from(alpha.denominator()));
    let rest = &d - &n;
    let (numerator, denominator) = match j {
        1 => (&n * (&d + &rest), &d * &d),
        _ => (n.pow(j - 2) * rest.pow(3), UBig::from(2_u8) * d.pow(j + 1)),
    };
    let floor = u64::try_from(numerator * UBig::from(unit) / denominator).expect("a share is below 1");
    Ratio::new(floor, unit).expect("the unit is not zero")
}

/// The shares of the sketches over any one offset must add up to at most 1, exactly.
fn check_share_sum(planned: &[(Role, Range<u64>, usize)], shares: &[Ratio]) -> Result<(), PlanError> {
    for (_, at, _) in planned {
        let over = planned.iter().filter(|(_, offsets, _)| offsets.contains(&at.start));
        let mut over = over.map(|(_, _, index)| shares[*index]);
        let sum = over.try_fold(Ratio::new(0, 1)?, Ratio::checked_add);
        if sum.is_none_or(|sum| Ratio::ONE < sum) {
            return Err(PlanError::ShareSum(sum.map_or(f64::INFINITY, Ratio::to_f64)));
        }
    }
    Ok(())
}

/// Discrete Gaussian noise for this share of ρ when an event moves so many counters: variance ⌈shifts / (2 ρ share)⌉,
/// which is ⌈rows / (ρ share)⌉ under replace-one.
fn shared_law(shifts: u64, rho: Rho, share: Ratio) -> Result<Law, PlanError> {
    let variance = (shifts as f64 / (2.0 * rho.get() * share.to_f64()) * (1.0 + 1e-12)).ceil();
    gaussian_law(variance as u64)
}

fn gaussian_law(variance: u64) -> Result<Law, PlanError> {
    check("noise variance", variance, 1, VARIANCE_MAX, "; spend more epsilon or larger shares")?;
    Ok(Law::Gaussian { variance })
}

/// The ρ of a sketch with this noise when an event moves so many counters by one.
fn spent_rho(shifts: u64, law: Law) -> f64 {
    match law {
        Law::Gaussian { variance } => shifts as f64 / (2.0 * variance as f64),
        Law::Laplace { .. } => unreachable!("the paper's method has Gaussian noise"),
    }
}

fn laplace(epsilon: Epsilon, reach: Reach) -> Result<(Law, Cost), PlanError> {
    let scale = laplace_scale(epsilon, reach.sum).ok_or(ParameterError::Epsilon(epsilon.get()))?;
    let cost = scale.checked_divide(reach.sum).ok_or(ParameterError::Epsilon(epsilon.get()))?;
    Ok((Law::Laplace { scale }, Cost::Pure(cost)))
}

fn gaussian(budget: Budget, reach: Reach) -> Result<(Law, Cost), PlanError> {
    let delta = budget.delta.ok_or(PlanError::DeltaNeeded("Gaussian noise"))?;
    let law = gaussian_law(reach_variance(budget.epsilon, delta, reach))?;
    Ok((law, Cost::Approximate(budget.epsilon.ratio(), delta.get())))
}

/// The smallest variance that covers this reach: by the exact lattice sum where counters move by one, else by zCDP, which
/// holds for any integers.
pub(crate) fn reach_variance(epsilon: Epsilon, delta: Delta, reach: Reach) -> u64 {
    if reach.is_by_ones() {
        return gaussian_variance(epsilon, delta, reach.sum);
    }
    let variance = reach.squares as f64 / (2.0 * zcdp_rho(epsilon, delta).get()) * (1.0 + 1e-12);
    variance.ceil().max(2.0) as u64
}

/// One place for a table for each different law.
fn tables(laws: &[Law]) -> Vec<(Law, Arc<OnceLock<Table>>)> {
    let mut tables: Vec<(Law, Arc<OnceLock<Table>>)> = Vec::with_capacity(laws.len());
    for &law in laws {
        let known = tables.iter().find(|(known, _)| *known == law).map(|(_, table)| Arc::clone(table));
        tables.push((law, known.unwrap_or_default()));
    }
    tables
}

fn boundaries(ranges: &[PlannedRange]) -> Vec<u64> {
    let mut boundaries: Vec<u64> = ranges
        .iter()
        .flat_map(|range| [range.offsets.start, range.offsets.end])
        .filter(|&at| at != 0)
        .collect();
    boundaries.sort_unstable();
    boundaries.dedup();
    boundaries
}
