//! Settings → Plan: every derived number, checked once.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use dashu_int::UBig;

use crate::accounting::{gaussian_variance, heaviest, laplace_scale, paper_rho};
use crate::bound::{Asymptotic, Structure, frequency_error, frequency_parts, main_error, sketch_error};
use crate::checkpoint::{Role, checkpoints, ranges};
use crate::counters::Shape;
use crate::error::{ParameterError, PlanError};
use crate::hash::Index;
use crate::item::Keys;
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
    ledger: Ledger,
}

impl Plan {
    /// Derives the plan.
    ///
    /// # Errors
    /// A number is out of range, a delta is missing or too large, or the plan costs more than the budget.
    pub fn new(settings: Settings) -> Result<Self, PlanError> {
        check("window length", settings.window.len(), 1, WINDOW_LEN_MAX, "")?;
        check_time(&settings)?;
        check("retention", settings.retention.into(), 1, RETENTION_MAX.into(), "")?;
        check_delta(&settings)?;
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
        let delta = settings.delta.ok_or(PlanError::DeltaNeeded("the paper's method"))?;
        check_fraction("alpha", method.alpha.to_f64())?;
        let substream_len = substream_len(method.substream, settings.window.len())?;
        let lengths = checkpoint_lengths(method, substream_len)?;
        let shape = shape(method.counters, &settings)?;
        let shares = shares(&method.shares, method.alpha, lengths.len())?;
        let planned = ranges(&lengths);
        check_share_sum(&planned, &shares)?;
        let rho = paper_rho(settings.epsilon, delta);
        let shifts = settings.unit.shifts() * u64::from(shape.rows);
        let laws =
            shares.iter().map(|&share| shared_law(shifts, rho, share)).collect::<Result<Vec<_>, _>>()?;
        let mut ledger = Ledger::new(settings.epsilon, Some(delta));
        let costs: Vec<_> = planned
            .iter()
            .map(|(_, offsets, index)| (offsets.clone(), spent_rho(shifts, laws[*index])))
            .collect();
        ledger.charge("the sketches over one position", Cost::Zcdp(heaviest(&costs)))?;
        let laws: Vec<Law> = planned.iter().map(|(_, _, index)| laws[*index]).collect();
        Ok(Self::assemble(settings, substream_len, shape, planned, &laws, ledger))
    }

    fn tuned(settings: Settings, method: &TunedMethod) -> Result<Self, PlanError> {
        let substream_len = substream_len(SubstreamLen::PerWindow(method.substreams), settings.window.len())?;
        let shape = shape(method.counters, &settings)?;
        let shifts = settings.unit.shifts() * u64::from(shape.rows);
        let (law, cost, delta) = match method.noise {
            NoiseChoice::Laplace => laplace(settings.epsilon, shifts)?,
            NoiseChoice::Gaussian => gaussian(&settings, shifts)?,
        };
        let mut ledger = Ledger::new(settings.epsilon, delta);
        ledger.charge("the sketch over one position", cost)?;
        let planned = ranges(&[substream_len]);
        Ok(Self::assemble(settings, substream_len, shape, planned, &[law], ledger))
    }

    fn assemble(
        settings: Settings,
        substream_len: u64,
        shape: Shape,
        planned: Vec<(Role, Range<u64>, usize)>,
        laws: &[Law],
        ledger: Ledger,
    ) -> Self {
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
        Self {
            settings,
            substream_len,
            shape,
            identity,
            one_hash,
            threshold_slack,
            ranges,
            boundaries,
            ledger,
        }
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
    }

    /// Whether the number of items in a range is public.
    pub(crate) fn has_public_totals(&self) -> bool {
        self.settings.unit == Unit::ReplaceOne
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
        match self.width() {
            Width::Wide => (sealed + open) * cells * size_of::<i32>() as u64,
            Width::Narrow => {
                let reserve = sealed * overflow_bytes(self.shape.rows, self.substream_items());
                Self::flat_cell_bytes(sealed, open) * cells + reserve
            }
        }
    }

    /// How wide sealed counters are stored: 32 bits in the paper's structure, else 16 with a list for the few that are
    /// larger.
    pub(crate) fn width(&self) -> Width {
        if self.one_hash { Width::Wide } else { Width::Narrow }
    }

    /// About how many items a substream holds.
    fn substream_items(&self) -> u64 {
        match self.settings.window {
            Window::Items(_) => self.substream_len,
            Window::Time(time) => time.expected_items.div_ceil(time.len.div_ceil(self.substream_len)),
        }
    }

    /// Bytes of one counter in all the sketches of a plan with one range a substream.
    pub(crate) fn flat_cell_bytes(kept: u64, open: u64) -> u64 {
        kept * size_of::<i16>() as u64 + open * size_of::<i32>() as u64
    }

    /// Bytes of everything that a sketch and its newest view hold.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let keys = self.settings.domain.keys();
        let listed = keys.map_or(0, Keys::bytes);
        let has_places = self.identity || self.interpolates();
        let indexed = keys.filter(|keys| has_places && !matches!(keys, Keys::Range(_)));
        let index = indexed.map_or(0, |keys| Index::bytes(keys.len()));
        let cached = keys.map_or(0, |keys| self.key_cache_bytes() * keys.len());
        let fitted = if self.interpolates() && !self.identity { self.fit_bytes() } else { 0 };
        let mut laws: Vec<Law> = self.ranges.iter().map(|range| range.law).collect();
        laws.dedup();
        let tables: usize = laws.into_iter().map(Table::bytes).sum();
        self.sketch_bytes() + fitted + (listed + index + cached + tables) as u64
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
        writeln!(
            f,
            "ledger     one event costs epsilon {epsilon:.6}, delta {delta:e}; budget {}",
            self.claim()
        )?;
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
        let change = match settings.unit {
            Unit::ReplaceOne => "replaced by another",
            Unit::AddRemove => "added or removed",
        };
        write!(
            f,
            "contract   everything released, for ever, together: {} for one event {change}",
            self.claim()
        )
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
        (Unit::ReplaceOne, _) | (Unit::AddRemove, Some(Clock::Caller)) => Ok(()),
        (Unit::AddRemove, None) => {
            Err(PlanError::AddRemove("removing an item would shift all later positions"))
        }
        (Unit::AddRemove, Some(Clock::Events)) => {
            Err(PlanError::AddRemove("one event far ahead would make all others late"))
        }
    }
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

fn laplace(epsilon: Epsilon, shifts: u64) -> Result<(Law, Cost, Option<Delta>), PlanError> {
    let scale = laplace_scale(epsilon, shifts).ok_or(ParameterError::Epsilon(epsilon.get()))?;
    let cost = scale.checked_divide(shifts).ok_or(ParameterError::Epsilon(epsilon.get()))?;
    Ok((Law::Laplace { scale }, Cost::Pure(cost), None))
}

fn gaussian(settings: &Settings, shifts: u64) -> Result<(Law, Cost, Option<Delta>), PlanError> {
    let delta = settings.delta.ok_or(PlanError::DeltaNeeded("Gaussian noise"))?;
    let law = gaussian_law(gaussian_variance(settings.epsilon, delta, shifts))?;
    Ok((law, Cost::Approximate(settings.epsilon.ratio(), delta.get()), Some(delta)))
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
