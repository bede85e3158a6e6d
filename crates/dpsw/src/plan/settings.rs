//! What is asked for. [`Plan`](crate::Plan) derives everything else.

use crate::error::ParameterError;
use crate::item::domain::{Domain, SearchSettings};
use crate::item::keys::Keys;
use crate::item::value::Kind;
use crate::privacy::parameters::{Delta, Epsilon};
use crate::ratio::Ratio;

/// The settings of a stream: window, budget, keys.
///
/// ```
/// use dpsw::{Settings, Unit};
///
/// let settings = Settings::last_items(1_000_000, 1.0)?.with_keys(["/", "/cart"]);
/// let settings = Settings::last_ticks(3_600, 50_000, 0.5)?.with_found_keys().with_delta(1e-9)?;
/// println!("{}", settings.plan()?); // the planner chooses the structure
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which recent part of the stream answers are about.
    pub window: Window,
    /// What one event's privacy means.
    pub unit: Unit,
    /// ε, for everything that the stream ever releases.
    pub epsilon: Epsilon,
    /// δ. Gaussian noise and finding keys need one; nothing else uses it.
    pub delta: Option<Delta>,
    /// Which keys may be listed.
    pub domain: Domain,
    /// How the budget is spent; `None` lets the planner choose.
    pub method: Option<Method>,
    /// How many windows of sealed substreams are kept; at least 1.
    pub retention: u32,
}

impl Settings {
    /// Asks about the last items of a stream, with ε for everything that is ever released. One event is protected, and any
    /// key can be asked for by name; the `with_` methods change that.
    ///
    /// # Errors
    /// ε is not between 1e-6 and 1e6.
    pub fn last_items<E>(window_len: u64, epsilon: E) -> Result<Self, ParameterError>
    where
        E: TryInto<Epsilon>,
        ParameterError: From<E::Error>,
    {
        Self::new(Window::Items(window_len), epsilon)
    }

    /// Asks about the last ticks of event time, in which about this many items are expected. Events move the clock and must
    /// come in order; see [`with_lateness`](Self::with_lateness) and [`with_clock`](Self::with_clock).
    ///
    /// # Errors
    /// ε is not between 1e-6 and 1e6.
    pub fn last_ticks<E>(window_len: u64, expected_items: u64, epsilon: E) -> Result<Self, ParameterError>
    where
        E: TryInto<Epsilon>,
        ParameterError: From<E::Error>,
    {
        let window = TimeWindow { len: window_len, lateness: 0, clock: Clock::Events, expected_items };
        Self::new(Window::Time(window), epsilon)
    }

    /// Asks about any window.
    ///
    /// # Errors
    /// ε is not between 1e-6 and 1e6.
    pub fn new<E>(window: Window, epsilon: E) -> Result<Self, ParameterError>
    where
        E: TryInto<Epsilon>,
        ParameterError: From<E::Error>,
    {
        Ok(Self {
            window,
            unit: Unit::ReplaceOne,
            epsilon: epsilon.try_into()?,
            delta: None,
            domain: Domain::Asked(Kind::Bytes),
            method: None,
            retention: 1,
        })
    }

    /// The same with a public list of keys that may be listed. It must not be made from the stream itself.
    #[must_use]
    pub fn with_keys(self, keys: impl Into<Keys>) -> Self {
        self.with_domain(Domain::Public(keys.into()))
    }

    /// The same with keys, bytes or text, that are found privately in the stream itself. Needs a δ.
    #[must_use]
    pub fn with_found_keys(self) -> Self {
        self.with_domain(Domain::Found(SearchSettings::new(Kind::Bytes)))
    }

    /// The same with any domain.
    #[must_use]
    pub fn with_domain(self, domain: Domain) -> Self {
        Self { domain, ..self }
    }

    /// The same with a δ.
    ///
    /// # Errors
    /// δ is not strictly between 0 and 1.
    pub fn with_delta<D>(self, delta: D) -> Result<Self, ParameterError>
    where
        D: TryInto<Delta>,
        ParameterError: From<D::Error>,
    {
        Ok(Self { delta: Some(delta.try_into()?), ..self })
    }

    /// The same for other neighbours.
    #[must_use]
    pub fn with_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// The same for whole users. Of each user this many items per substream count.
    #[must_use]
    pub fn with_users(self, per_substream: u32) -> Self {
        self.with_unit(Unit::Users { per_substream })
    }

    /// The same with sealed substreams kept for this many windows.
    #[must_use]
    pub fn with_retention(self, retention: u32) -> Self {
        Self { retention, ..self }
    }

    /// The same with a method of your own instead of the planner's.
    #[must_use]
    pub fn with_method(self, method: impl Into<Method>) -> Self {
        Self { method: Some(method.into()), ..self }
    }

    /// The same with the caller's clock or that of the events. Count windows have no clock and stay as they are.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        self.with_time(|time| TimeWindow { clock, ..time })
    }

    /// The same with events that may come this many ticks late. Count windows stay as they are.
    #[must_use]
    pub fn with_lateness(self, lateness: u64) -> Self {
        self.with_time(|time| TimeWindow { lateness, ..time })
    }

    fn with_time(self, change: impl FnOnce(TimeWindow) -> TimeWindow) -> Self {
        match self.window {
            Window::Items(_) => self,
            Window::Time(time) => Self { window: Window::Time(change(time)), ..self },
        }
    }
}

/// The recent part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// The last w items.
    Items(u64),
    /// The last ticks of event time.
    Time(TimeWindow),
}

impl Window {
    /// Its length, in items or ticks.
    #[must_use]
    pub fn len(self) -> u64 {
        match self {
            Self::Items(len) => len,
            Self::Time(window) => window.len,
        }
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// How many items it holds; for a time window, about how many are expected.
    #[must_use]
    pub fn expected_items(self) -> u64 {
        match self {
            Self::Items(len) => len,
            Self::Time(window) => window.expected_items,
        }
    }

    /// The time window, if it is one.
    #[must_use]
    pub fn time(self) -> Option<TimeWindow> {
        match self {
            Self::Items(_) => None,
            Self::Time(window) => Some(window),
        }
    }
}

/// A window over event time. A tick is whatever unit the caller counts time in, from any origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// T, in ticks.
    pub len: u64,
    /// How many ticks an event may lag behind the newest one and still be counted. With the caller's clock: how far ahead of
    /// the watermark an event may at least be.
    pub lateness: u64,
    /// What moves time forward.
    pub clock: Clock,
    /// About how many items a window holds: a public guess. It limits δ, and sets the room for users and for finding keys.
    pub expected_items: u64,
}

/// The clock that moves the watermark, before which everything is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// The caller, by a clock that does not depend on the events.
    Caller,
    /// The caller, by such a clock, where the order in which events come depends on their items, as in a topic whose key is the
    /// item. Which events are late is then as private as the items, so no total is released. Not with [`Unit::Users`].
    CallerByItem,
    /// The events themselves: the largest time seen minus the lateness. Not with [`Unit::AddRemove`].
    Events,
}

impl Clock {
    /// Whether the caller moves the watermark, and no event does.
    #[must_use]
    pub fn is_callers(self) -> bool {
        match self {
            Self::Caller | Self::CallerByItem => true,
            Self::Events => false,
        }
    }
}

/// The unit of privacy: which streams are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// The item at one position is another one. Arrival times and totals are public.
    ReplaceOne,
    /// One event is there or not, so totals are private. Time windows with the caller's clock only.
    AddRemove,
    /// All items of one user inside any one window are other ones. Who sends when is public. The claim holds for each window;
    /// over several windows in which a user is active, what they lose adds up. Of each user this many items per substream
    /// count, the first to arrive; the others are null items, which take their position and count nowhere.
    Users {
        /// At least 1.
        per_substream: u32,
    },
}

impl Unit {
    /// How many items per user and substream count, if that is bounded.
    pub(crate) fn per_substream(self) -> Option<u32> {
        match self {
            Self::Users { per_substream } => Some(per_substream),
            Self::ReplaceOne | Self::AddRemove => None,
        }
    }
}

/// The method by which the budget is spent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// The paper's sketches: whole, prefixes and suffixes of each substream.
    Paper(PaperMethod),
    /// One sketch per substream with the whole budget.
    Tuned(TunedMethod),
}

impl From<PaperMethod> for Method {
    fn from(method: PaperMethod) -> Self {
        Self::Paper(method)
    }
}

impl From<TunedMethod> for Method {
    fn from(method: TunedMethod) -> Self {
        Self::Tuned(method)
    }
}

impl Method {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Paper(_) => "paper",
            Self::Tuned(_) => "tuned",
        }
    }

    /// The law of the noise.
    pub(crate) fn noise(&self) -> NoiseChoice {
        match self {
            Self::Paper(_) => NoiseChoice::Gaussian,
            Self::Tuned(method) => method.noise,
        }
    }

    /// The counters of each sketch.
    pub(crate) fn counters(&self) -> CounterLayout {
        match self {
            Self::Paper(method) => method.counters,
            Self::Tuned(method) => method.counters,
        }
    }
}

/// Algorithms 1-3 of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperMethod {
    /// Length of a substream.
    pub substream: SubstreamLen,
    /// The smooth factor α, strictly between 0 and 1.
    pub alpha: Ratio,
    /// The steps in which checkpoints are considered.
    pub grid: Grid,
    /// The counters of each sketch.
    pub counters: CounterLayout,
    /// The shares of ρ of the sketches of a substream.
    pub shares: Shares,
}

impl Default for PaperMethod {
    /// Substreams of 0.1 w, three checkpoints (α = 0.75 on a grid of ten), 4 x 2000 counters, shares as printed.
    fn default() -> Self {
        Self {
            substream: SubstreamLen::PerWindow(10),
            alpha: Ratio::new(3, 4).expect("4 is not zero"),
            grid: Grid::Units(10),
            counters: CounterLayout::Hashed { rows: 4, columns: 2000 },
            shares: Shares::Printed,
        }
    }
}

/// One sketch per substream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunedMethod {
    /// W, substreams per window.
    pub substreams: u64,
    /// The counters of each sketch.
    pub counters: CounterLayout,
    /// The law of the noise.
    pub noise: NoiseChoice,
    /// How many numbers of slices a key may have in a substream: 1, 2, 4 and so on. A frequent key is cut more finely than a
    /// rare one. More than one needs counters of their own for all keys or for pinned ones, and Laplace noise.
    pub levels: u32,
    /// The most keys of a list, public or found, that have counters of their own beside hashed ones while they are frequent.
    /// Needs Laplace noise.
    pub pinned: u32,
}

impl Default for TunedMethod {
    /// 20 substreams of 2 x 6666 counters with Laplace noise.
    fn default() -> Self {
        Self {
            substreams: 20,
            counters: CounterLayout::Hashed { rows: 2, columns: 6666 },
            noise: NoiseChoice::Laplace,
            levels: 1,
            pinned: 0,
        }
    }
}

/// Length of a substream.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SubstreamLen {
    /// This many items.
    Items(u64),
    /// The window length divided by this number, rounded up.
    PerWindow(u64),
    /// ⌈w^β⌉ items, β strictly between 0 and 1.
    Exponent(f64),
}

/// The steps in which checkpoints are considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grid {
    /// The substream in this many equal steps.
    Units(u64),
    /// Every item, as printed.
    Items,
}

/// The counters of a sketch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum CounterLayout {
    /// Rows and columns, items hashed.
    Hashed {
        /// a, between 1 and 16.
        rows: u32,
        /// b, at least 2.
        columns: u32,
    },
    /// columns = ⌈e/ζ⌉ and rows = ⌈ln 1/η⌉.
    Accuracy {
        /// ζ, strictly between 0 and 1.
        relative_error: f64,
        /// η, strictly between 0 and 1.
        failure_probability: f64,
    },
    /// One counter for each key of a public domain; other items are null items, which take their position and count
    /// nowhere.
    Identity,
}

impl Eq for CounterLayout {}

/// How the sketches of a substream share ρ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shares {
    /// 2α - α² for the whole, α^(j-2) (1-α)³ / 2 for each of the two sketches of checkpoint j.
    Printed,
    /// The share of the whole, then that of each of the two sketches of each further checkpoint.
    Explicit(Vec<Ratio>),
}

/// The law of the noise of a one-sketch plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoiseChoice {
    /// Discrete Laplace: pure ε, δ = 0.
    Laplace,
    /// Discrete Gaussian, calibrated on the exact lattice sum; needs a δ.
    Gaussian,
}

impl NoiseChoice {
    /// All laws, the pure one first. Their order is that of their numbers in bytes.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        std::iter::successors(Some(Self::Laplace), |law| law.next())
    }

    /// The law after this one, so that a new one is forgotten nowhere.
    fn next(self) -> Option<Self> {
        match self {
            Self::Laplace => Some(Self::Gaussian),
            Self::Gaussian => None,
        }
    }

    /// Whether its promise has a δ above 0.
    pub(crate) fn needs_delta(self) -> bool {
        match self {
            Self::Laplace => false,
            Self::Gaussian => true,
        }
    }
}
