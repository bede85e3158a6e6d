//! What can be wrong with a parameter, a plan, an arrival or a question.

use std::convert::Infallible;
use std::fmt;
use std::ops::Range;

use crate::item::value::Kind;

/// A number outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// See [`Epsilon`](crate::Epsilon).
    #[error("epsilon must lie between 1e-6 and 1e6, got {0}")]
    Epsilon(f64),
    /// See [`Delta`](crate::Delta).
    #[error("delta must lie strictly between 0 and 1, got {0}")]
    Delta(f64),
    /// See [`Rho`](crate::privacy::Rho).
    #[error("rho must be positive and finite, got {0}")]
    Rho(f64),
    /// See [`Threshold`](crate::Threshold).
    #[error("threshold must lie between 0 (exclusive) and 1, got {0}")]
    Threshold(f64),
    /// A fraction that is none.
    #[error("{name} must lie strictly between 0 and 1, got {value}")]
    Fraction {
        /// Which fraction.
        name: Fraction,
        /// What was given.
        value: f64,
    },
    /// A ratio that is not a non-negative number with at most 18 significant digits.
    #[error("a ratio must be a non-negative number below 1e9, got {0}")]
    Ratio(f64),
    /// An expected share or a sum of them.
    #[error("expected shares must be non-negative and not all zero, got {0}")]
    Expectation(f64),
    /// A line of a file of expectations.
    #[error("line {line} must end in a non-negative number, an expected count or share, got {field:?}")]
    ExpectationLine {
        /// From 1.
        line: usize,
        /// What stands there.
        field: String,
    },
    /// A text that is no number.
    #[error("{0:?} is not a number")]
    Number(String),
    /// A ratio with denominator zero.
    #[error("the denominator of {0}/0 must be at least 1")]
    Denominator(u64),
}

impl From<Infallible> for ParameterError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Settings from which no plan can be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A number outside its range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A whole number outside its range.
    #[error("{name} must lie between {low} and {high}, got {value}{}", name.hint())]
    OutOfRange {
        /// Which number.
        name: Quantity,
        /// What was given or derived.
        value: u64,
        /// The smallest allowed value.
        low: u64,
        /// The largest allowed value.
        high: u64,
    },
    /// Presence can only be hidden where positions do not depend on it.
    #[error(
        "add/remove neighbours need a time window: in a count window, removing an item would shift all later positions"
    )]
    AddRemoveItems,
    /// A clock that the events move shows their presence.
    #[error(
        "add/remove neighbours need the caller's clock: one event far ahead would move the events' clock past all others"
    )]
    AddRemoveEvents,
    /// Caps of users follow the order of arrival, which may not depend on items.
    #[error(
        "users cannot be protected where the order of events depends on their items: another item would decide which events \
        of its user count"
    )]
    UsersByItem,
    /// The paper's method protects single events.
    #[error("the paper's method protects single events; use the tuned one for users")]
    PaperUsers,
    /// Something whose promise has a delta above 0, without one.
    #[error("{0} needs a delta: give one below 1/(items per window x retention)")]
    DeltaNeeded(DeltaUse),
    /// An epsilon for which no threshold of found keys keeps the delta, or that does not divide.
    #[error(
        "keys cannot be found with epsilon {epsilon}: their delta shrinks with e^epsilon, and their share must be a fraction \
        of 64-bit numbers; take an epsilon below 600 with fewer digits, or a public domain"
    )]
    KeysEpsilon {
        /// What was given.
        epsilon: f64,
    },
    /// A delta that allows a catastrophe per window.
    #[error("delta must not exceed 1/(items per window x retention) = {limit:e}, got {delta:e}")]
    DeltaTooLarge {
        /// What was given.
        delta: f64,
        /// The largest allowed value.
        limit: f64,
    },
    /// Identity counters without a list of keys.
    #[error("identity counters need a public domain; give one, or rows and columns")]
    IdentityNeedsDomain,
    /// Several levels with shared counters or Gaussian noise.
    #[error("several levels need a counter for each key, or pinned keys, and Laplace noise; take one level")]
    LevelsNeedOwnCounters,
    /// Pinned keys with counters for all, without a list, or with Gaussian noise.
    #[error("pinned keys need hashed counters, a list of keys, public or found, and Laplace noise; pin none")]
    PinnedNeedList,
    /// Too few or too many explicit shares.
    #[error(
        "{wanted} checkpoints need {wanted} budget shares (whole first, then one per checkpoint), got {got}"
    )]
    ShareCount {
        /// How many there are checkpoints.
        wanted: usize,
        /// How many shares were given.
        got: usize,
    },
    /// The shares of sketches that one event can touch add up to more than one.
    #[error("the budget shares that one event can touch add up to {0}, more than 1")]
    ShareSum(f64),
    /// The plan costs more than its budget.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The noise would hide every item.
    #[error(
        "with epsilon {epsilon} the noise would hide an item that fills a whole window of {items} items; raise epsilon \
        or take a longer window"
    )]
    OnlyNoise {
        /// What was given.
        epsilon: f64,
        /// Items of a window.
        items: u64,
    },
    /// No sketch is small enough.
    #[error("no sketch of at least 16 columns fits into {bytes} bytes; give more")]
    TooSmall {
        /// What was given.
        bytes: u64,
    },
    /// No budget reaches the error.
    #[error("no epsilon up to 1000 reaches this error; allow a larger one or give more bytes")]
    UnreachableEpsilon,
    /// No size reaches the error.
    #[error("no size up to 10^11 bytes reaches this error; allow a larger one or give more epsilon")]
    UnreachableBytes,
    /// A public domain with a key twice.
    #[error("key {second} of the domain repeats key {first}; list each key once")]
    DuplicateKey {
        /// Index of the first occurrence.
        first: usize,
        /// Index of the repetition.
        second: usize,
    },
}

/// A whole number of a plan that has a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// Length of the window.
    WindowLen,
    /// Expected items of a time window.
    ExpectedItems,
    /// Lateness of a time window.
    Lateness,
    /// Windows for which sealed substreams are kept.
    Retention,
    /// Items of a user and substream that count.
    UserItems,
    /// Keys of a public domain.
    Keys,
    /// Substreams of a window.
    Substreams,
    /// Levels.
    Levels,
    /// Pinned keys.
    Pinned,
    /// Length of a substream.
    SubstreamLen,
    /// Items of a substream, or about as many as are expected.
    SubstreamItems,
    /// Sealed substreams that are kept.
    SubstreamsKept,
    /// Steps in which checkpoints are considered.
    GridUnits,
    /// Checkpoints of a substream.
    Checkpoints,
    /// Rows of a sketch.
    Rows,
    /// Columns of a sketch.
    Columns,
    /// Counters of a sketch.
    Counters,
    /// Variance of Gaussian noise.
    Variance,
    /// Substreams over which keys are counted before all counts are wiped.
    SearchLen,
    /// Items over which keys are counted.
    SearchItems,
    /// Bytes of the keys that are counted at a time.
    SearchBytes,
    /// Bytes of a key that can be found.
    KeyLen,
    /// Keys of a summary.
    SummaryKeys,
}

impl Quantity {
    /// What to do about it, after a semicolon; empty where the range says it all.
    fn hint(self) -> &'static str {
        match self {
            Self::Lateness => "; a longer one would exceed the window",
            Self::Keys => "; ask for candidates instead",
            Self::SubstreamItems => "; use a shorter window, or more substreams in it",
            Self::SubstreamsKept => "; use longer substreams or less retention",
            Self::GridUnits => "; a unit is at least one item",
            Self::Checkpoints => " or more; use a larger alpha or a coarser grid",
            Self::Variance => "; spend more epsilon or larger shares",
            Self::SearchItems => "; use shorter searches or more substreams",
            Self::SearchBytes => "; use a summary, shorter searches or shorter keys",
            Self::WindowLen
            | Self::ExpectedItems
            | Self::Retention
            | Self::UserItems
            | Self::Substreams
            | Self::Levels
            | Self::Pinned
            | Self::SubstreamLen
            | Self::Rows
            | Self::Columns
            | Self::Counters
            | Self::SearchLen
            | Self::KeyLen
            | Self::SummaryKeys => "",
        }
    }

    /// The name of a number of the search for keys.
    fn search_name(self) -> &'static str {
        match self {
            Self::SearchLen => "substreams of a search",
            Self::SearchItems => "items of a search",
            Self::SearchBytes => "bytes of the keys of a search",
            Self::KeyLen => "length of a key",
            Self::SummaryKeys => "keys of a summary",
            _ => unreachable!("numbers of windows and sketches are named where they are shown"),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WindowLen => "window length",
            Self::ExpectedItems => "expected items per window",
            Self::Lateness => "lateness",
            Self::Retention => "retention",
            Self::UserItems => "items per user and substream that count",
            Self::Keys => "number of keys in the domain",
            Self::Substreams => "number of substreams",
            Self::Levels => "number of levels",
            Self::Pinned => "number of pinned keys",
            Self::SubstreamLen => "substream length",
            Self::SubstreamItems => "number of items in a substream",
            Self::SubstreamsKept => "number of substreams kept",
            Self::GridUnits => "number of grid units",
            Self::Checkpoints => "number of checkpoints",
            Self::Rows => "number of rows",
            Self::Columns => "number of columns",
            Self::Counters => "number of counters in a sketch",
            Self::Variance => "noise variance",
            Self::SearchLen | Self::SearchItems | Self::SearchBytes | Self::KeyLen | Self::SummaryKeys => {
                self.search_name()
            }
        })
    }
}

/// A number strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fraction {
    /// The smooth factor of the paper.
    Alpha,
    /// The exponent of a substream's length.
    Beta,
    /// The relative error of a sketch.
    Zeta,
    /// The failure probability of a sketch.
    Eta,
    /// A share of the budget.
    Share,
    /// The share of epsilon that finding keys takes.
    KeyShare,
    /// The probability with which an interval holds the truth.
    Confidence,
    /// The probability with which the audit of a correct build fails.
    FalseAlarm,
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::Zeta => "zeta",
            Self::Eta => "eta",
            Self::Share => "a budget share",
            Self::KeyShare => "the share of epsilon that finding keys takes",
            Self::Confidence => "confidence",
            Self::FalseAlarm => "the probability of a false alarm",
        })
    }
}

/// The use of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeltaUse {
    /// The paper's method.
    Paper,
    /// Gaussian noise.
    Gaussian,
    /// Finding keys.
    Keys,
}

impl fmt::Display for DeltaUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "the paper's method",
            Self::Gaussian => "Gaussian noise",
            Self::Keys => "finding keys",
        })
    }
}

/// A charge that the budget cannot bear.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{what} would bring the cost to {spent}, over the budget of {budget}")]
#[non_exhaustive]
pub struct OverBudget {
    /// What was to be charged.
    pub what: String,
    /// The cost with it.
    pub spent: String,
    /// The budget.
    pub budget: String,
}

/// The system gave no randomness, so nothing was sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no randomness: {reason}")]
#[non_exhaustive]
pub struct EntropyError {
    /// The system's words.
    pub reason: String,
}

/// Items that were not, or not all, taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// The stream counts the other kind of item. Nothing was taken.
    #[error("this stream counts {wanted}, got {got}; nothing was taken")]
    Kind {
        /// What the plan says.
        wanted: Kind,
        /// What arrived.
        got: Kind,
    },
    /// The substream could not be sealed. It stays unreadable; the next call tries again.
    #[error("the substream could not be sealed after {accepted} items of this call were taken: {source}")]
    Entropy {
        /// How many items of this call were taken; give the rest again.
        accepted: usize,
        /// Why.
        source: EntropyError,
    },
    /// A time window without times. Nothing was taken.
    #[error("a time window needs the time of each event: add them with Batch::at; nothing was taken")]
    NoTimes,
    /// A count window with times, or a clock for it. Nothing was taken.
    #[error("a count window goes by arrivals and has no times; nothing was taken")]
    CountWindow,
    /// The caller's clock was never set. Nothing was taken.
    #[error("the clock is not set: call advance first; nothing was taken")]
    ClockUnset,
    /// The caller moves a clock that the events move.
    #[error("the events move this clock; only plans with the caller's clock are advanced")]
    EventsClock,
    /// A time beyond what can be kept.
    #[error("times must not exceed 2^61 ticks, got {0}")]
    FarFuture(u64),
    /// As many times as items are needed. Nothing was taken.
    #[error("{times} times for {items} items; nothing was taken")]
    TimeCount {
        /// How many times were given.
        times: usize,
        /// How many items were given.
        items: usize,
    },
    /// A plan that protects users, without users. Nothing was taken.
    #[error("this plan protects whole users: add the user of each item with Batch::by; nothing was taken")]
    NoUsers,
    /// A plan that protects single events, with users. Nothing was taken.
    #[error("this plan protects single events and has no users; nothing was taken")]
    UnwantedUsers,
    /// As many users as items are needed. Nothing was taken.
    #[error("{users} users for {items} items; nothing was taken")]
    UserCount {
        /// How many users were given.
        users: usize,
        /// How many items were given.
        items: usize,
    },
    /// The event's interval is sealed.
    #[error(
        "the event is {by} ticks late: everything before {sealed} is sealed; raise the lateness to count such events"
    )]
    Late {
        /// How far it lies before what is still open.
        by: u64,
        /// Everything before this time is sealed.
        sealed: u64,
    },
    /// The event lies further ahead of the clock than intervals are kept open for.
    #[error("the event is {by} ticks ahead of what is open; advance the clock first")]
    Early {
        /// How far it lies behind the last open interval.
        by: u64,
    },
    /// The sketch was carried into another process by a fork. Nothing was taken.
    #[error("this sketch belongs to process {owner}; a forked copy must not be used")]
    Forked {
        /// The process that made the sketch.
        owner: u32,
    },
}

/// A question that the view cannot answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The stream counts the other kind of item.
    #[error("this stream counts {wanted}, asked for {got}")]
    Kind {
        /// What the plan says.
        wanted: Kind,
        /// What was asked.
        got: Kind,
    },
    /// Identity counters know the keys of the public domain only.
    #[error(
        "the item is not in the public domain, so it was not counted; add it to the domain or use rows and columns"
    )]
    NotInDomain,
    /// Keys that were seen are never listed, so without a public domain the asker names candidates.
    #[error("the domain is not public, so keys cannot be listed; name the candidates")]
    NoDomain,
    /// More keys come into question than rows may be made.
    #[error("{got} items may reach the threshold, and there may be at most {most}; raise the threshold")]
    ManyRows {
        /// How many come into question.
        got: usize,
        /// The most.
        most: usize,
    },
    /// Part of the window is no longer retained.
    #[error(
        "the window {asked:?} reaches outside {retained:?}, the positions that are retained; ask for less or raise the retention"
    )]
    NotRetained {
        /// Positions asked for.
        asked: Range<u64>,
        /// Positions that can be asked for.
        retained: Range<u64>,
    },
    /// A window of no items.
    #[error("a window must hold at least 1 item, got 0")]
    EmptyWindow,
    /// A number outside its range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

/// Bytes from which nothing can be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// They begin with something else.
    #[error("these bytes do not begin like a saved one; is it the right file?")]
    Foreign,
    /// They were written by another version.
    #[error("these bytes are of version {found}, and this program reads version {known}")]
    Version {
        /// The version in the bytes.
        found: u16,
        /// The version that can be read.
        known: u16,
    },
    /// The checksum is wrong.
    #[error("the checksum does not fit: the bytes are damaged")]
    Checksum,
    /// They end too early.
    #[error("the bytes end too early")]
    Truncated,
    /// They describe something impossible.
    #[error("the bytes are not valid: {0}")]
    Invalid(Flaw),
    /// Their plan cannot be made.
    #[error("the plan in the bytes is refused: {0}")]
    Plan(#[from] PlanError),
}

/// The reason why bytes cannot be read; a sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flaw(&'static str);

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl SnapshotError {
    pub(crate) fn invalid(flaw: &'static str) -> Self {
        Self::Invalid(Flaw(flaw))
    }
}

/// Views that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A user can send to several sites, each of which lets the cap through anew.
    #[error("views of plans that protect whole users cannot be merged: one user may be in several of them")]
    Users,
    /// No view was given.
    #[error("there is no view to merge")]
    Nothing,
    /// The plans differ.
    #[error("the views have different plans")]
    Plan,
    /// The hash keys differ.
    #[error("the views hash with different keys; sites that merge must share the stream key")]
    Keys,
    /// The same site twice: its events would be counted double.
    #[error("site {site} is in both views")]
    Duplicate {
        /// The site.
        site: u64,
    },
    /// Too many sites.
    #[error("more than 1000 sites cannot be merged")]
    Sites,
    /// Reproducible noise claims no privacy.
    #[error("a view of reproducible noise claims no privacy and is not merged")]
    NoClaim,
    /// Sites have no common order of items.
    #[error("views of count windows cannot be merged: sites have no common order; use time windows")]
    CountWindow,
}

/// Partial counters that cannot be made, merged or absorbed. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartialError {
    /// Positions of a count window cannot be known by one worker.
    #[error("partial counters need a time window: a worker cannot know positions in a count window")]
    CountWindow,
    /// Users, found keys and pinned ones are counted by the sketch alone.
    #[error(
        "partial counters hold no users and no keys: use a public or asked domain, single events and no pinned keys"
    )]
    UsersOrKeys,
    /// The events of all workers together would move the clock.
    #[error("partial counters need the caller's clock")]
    EventsClock,
    /// The range of times that a worker counts must be public and not too long.
    #[error("the range {start}..{end} must hold at least one tick and reach over at most {most} substreams")]
    Range {
        /// The first time.
        start: u64,
        /// The time after the last.
        end: u64,
        /// The most substreams.
        most: u64,
    },
    /// Which substreams have events would show when they came.
    #[error("where presence is private, the range of times must be fixed before anything is counted")]
    PrivateTimes,
    /// They were counted for another plan.
    #[error("the partial counters belong to another plan")]
    Plan,
    /// They were counted with another stream key.
    #[error("the partial counters were counted with another stream key")]
    Keys,
    /// They belong to different substreams.
    #[error("partial counters of substreams {0} and {1} cannot be merged")]
    Substream(u64, u64),
    /// The same batch and partition again: its events would be counted double.
    #[error("batch {batch}, partition {partition} of source {source_id} is in both")]
    Duplicate {
        /// The source.
        source_id: u64,
        /// The batch.
        batch: u64,
        /// The partition.
        partition: u64,
    },
    /// Their substream is sealed.
    #[error("substream {substream} is sealed; its partial counters come too late")]
    Late {
        /// The substream.
        substream: u64,
    },
    /// Their substream lies further ahead of the clock than substreams are kept open for.
    #[error("substream {substream} lies too far ahead; advance the clock first")]
    Early {
        /// The substream.
        substream: u64,
    },
    /// Too many ids to remember.
    #[error("more than {0} partial counters for open substreams; use fewer batches or partitions")]
    Many(usize),
    /// The sketch or the worker cannot take them.
    #[error(transparent)]
    Ingest(#[from] IngestError),
}

/// A secret state that cannot be saved or restored.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The bytes are no state, or damaged.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The key does not open them.
    #[error("the state does not open with this key: the key is another one or the bytes were changed")]
    Key,
    /// The store has no note of it.
    #[error(
        "this state, generation {generation}, was restored before, or the store does not know it; resume it at a later \
        position, which gives up the open substreams"
    )]
    Stale {
        /// The generation in the bytes.
        generation: u64,
    },
    /// The stream cannot go on before where it stood.
    #[error("the stream stood at {saved}; it can resume from there to 2^61, not at {resume_at}")]
    Resume {
        /// Where the stream was to go on.
        resume_at: u64,
        /// Where it stood when it was saved.
        saved: u64,
    },
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The store of notes failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sketch belongs to another process.
    #[error(transparent)]
    Ingest(#[from] IngestError),
}

/// A store could not keep or take a note of a saved state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store of saved states failed: {reason}")]
#[non_exhaustive]
pub struct StoreError {
    /// Where and why.
    pub reason: String,
}

impl StoreError {
    /// For stores outside the library.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}
