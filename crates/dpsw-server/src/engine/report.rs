//! What the engine says about itself: sources, streams, ledgers, contracts, health. Public numbers alone.

use std::sync::Arc;

use dpsw::{Claim, Plan, Unit};

use crate::config::{SourceConfig, StreamConfig};

/// A source and what its streams spend.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceReport {
    /// Its settings, without streams.
    pub config: SourceConfig,
    /// The names of its streams.
    pub streams: Vec<String>,
    /// What its streams spend.
    pub ledger: LedgerReport,
}

/// The budget of a source and the charges of its streams.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LedgerReport {
    /// What they may spend.
    pub budget: Claim,
    /// The most that any event, or where users are protected any user, has cost or can cost so far: ε and δ.
    pub spent: (f64, f64),
    /// The charges, oldest first. Those of deleted streams stay.
    pub charges: Vec<ChargeReport>,
}

/// The charge of one stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChargeReport {
    /// The stream.
    pub stream: String,
    /// What everything that it releases costs.
    pub claim: Claim,
    /// When it started, in milliseconds since 1970.
    pub from_ms: u64,
    /// When it was deleted, if it was.
    pub until_ms: Option<u64>,
}

/// A stream and its plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamReport {
    /// Its name.
    pub name: String,
    /// Its own number, which no other stream ever has, and which stays when its settings change.
    pub id: u64,
    /// Its plan.
    pub plan: Arc<Plan>,
    /// What it counts; `None` if it is sealed elsewhere.
    pub counted: Option<Counted>,
}

impl StreamReport {
    /// Its source, if it has one.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.counted.as_ref().map(|counted| counted.source.as_str())
    }
}

/// The source and the settings of a stream that is counted here.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Counted {
    /// Its source.
    pub source: String,
    /// Its settings.
    pub config: StreamConfig,
    /// When it started, in milliseconds since 1970.
    pub from_ms: u64,
    /// Why it stands still, if it does.
    pub trouble: Option<String>,
}

/// The promise of a stream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Contract {
    /// The stream.
    pub stream: String,
    /// Its source; `None` if it is sealed elsewhere.
    pub source: Option<String>,
    /// Whose privacy one event is.
    pub unit: Unit,
    /// What its own releases cost together.
    pub claim: Claim,
    /// What is promised, in one sentence.
    pub sentence: String,
    /// What is spent with all other streams of the source.
    pub ledger: Option<LedgerReport>,
}

/// The health of the engine, and what the operator should know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthReport {
    /// Why batches are refused; none means ready.
    pub reasons: Vec<String>,
    /// Which sources do not read their brokers, and why. All others go on.
    pub brokers: Vec<String>,
    /// Which streams stand still, and why. All others go on.
    pub streams: Vec<String>,
    /// What happened that the operator should know, oldest first: what was given up at the start, and why.
    pub notices: Vec<String>,
}

impl HealthReport {
    /// Whether batches are taken.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }
}
