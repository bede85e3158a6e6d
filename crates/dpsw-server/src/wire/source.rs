//! Sources, as they are asked for and as they are shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::{BrokerConfig, ColumnKind, Protects, Routing, SourceConfig};
use crate::engine::report::{ChargeReport, LedgerReport, SourceReport};
use crate::wire::answer::promised;

/// A source of events: whose privacy one event is, its columns, and the budget of all its streams together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Source)]
pub(crate) struct SourceShape {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`, a letter or digit first.
    #[schema(example = "web", min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    pub(crate) name: String,
    /// Whose privacy one event is, for all its streams, for life.
    pub(crate) protects: Protects,
    /// Of each user so many items per substream count; only where users are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) items_per_user: Option<u32>,
    /// The ε that all its streams may spend together on any event.
    #[schema(example = 2.0, exclusive_minimum = 0)]
    pub(crate) epsilon: f64,
    /// The δ that they may spend together; without one, streams that need a δ are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delta: Option<f64>,
    /// The columns of items, and what stands in them.
    #[schema(example = json!({"page": "text"}))]
    pub(crate) columns: BTreeMap<String, ColumnKind>,
    /// The column with the time of each event. Without it, events have the time of their arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_column: Option<String>,
    /// The column with who sent each event; needed where users are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user_column: Option<String>,
    /// How events find their way to the producers that send them here.
    #[serde(default)]
    pub(crate) routing: Routing,
    /// Where it takes its events from, if nobody sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) broker: Option<BrokerConfig>,
}

/// A source with its streams and what they spend.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct SourceInfo {
    pub(crate) name: String,
    /// Whose privacy one event is.
    pub(crate) protects: Protects,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) items_per_user: Option<u32>,
    /// The columns of items, and what stands in them.
    pub(crate) columns: BTreeMap<String, ColumnKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_column: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_column: Option<String>,
    pub(crate) routing: Routing,
    /// Where it takes its events from, if nobody sends them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker: Option<BrokerConfig>,
    /// The names of its streams.
    pub(crate) streams: Vec<String>,
    pub(crate) ledger: Ledger,
}

/// What the streams of a source may spend and spend.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Ledger {
    /// The ε that they may spend together.
    pub(crate) epsilon: Option<f64>,
    /// The δ that they may spend together.
    pub(crate) delta: Option<f64>,
    /// The most ε that any event, or where users are protected any user, has cost or can cost so far.
    pub(crate) epsilon_spent: f64,
    /// The same for δ.
    pub(crate) delta_spent: f64,
    /// Oldest first. Those of deleted streams stay.
    pub(crate) charges: Vec<Charge>,
}

/// What one stream spends.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Charge {
    pub(crate) stream: String,
    pub(crate) epsilon: Option<f64>,
    pub(crate) delta: Option<f64>,
    /// When it started, in milliseconds since 1970.
    pub(crate) from_ms: u64,
    /// When it was deleted, if it was.
    pub(crate) until_ms: Option<u64>,
}

impl From<SourceShape> for SourceConfig {
    fn from(shape: SourceShape) -> Self {
        Self {
            name: shape.name,
            protects: shape.protects,
            items_per_user: shape.items_per_user,
            epsilon: shape.epsilon,
            delta: shape.delta,
            columns: shape.columns,
            time_column: shape.time_column,
            user_column: shape.user_column,
            routing: shape.routing,
            broker: shape.broker,
            streams: Vec::new(),
        }
    }
}

impl From<SourceReport> for SourceInfo {
    fn from(report: SourceReport) -> Self {
        let SourceReport { config, streams, ledger, .. } = report;
        Self {
            name: config.name,
            protects: config.protects,
            items_per_user: config.items_per_user,
            columns: config.columns,
            time_column: config.time_column,
            user_column: config.user_column,
            routing: config.routing,
            broker: config.broker,
            streams,
            ledger: ledger.into(),
        }
    }
}

impl From<LedgerReport> for Ledger {
    fn from(report: LedgerReport) -> Self {
        let (epsilon, delta) = promised(report.budget);
        let (epsilon_spent, delta_spent) = report.spent;
        let charges = report.charges.into_iter().map(Charge::from).collect();
        Self { epsilon, delta, epsilon_spent, delta_spent, charges }
    }
}

impl From<ChargeReport> for Charge {
    fn from(report: ChargeReport) -> Self {
        let (epsilon, delta) = promised(report.claim);
        let ChargeReport { stream, from_ms, until_ms, .. } = report;
        Self { stream, epsilon, delta, from_ms, until_ms }
    }
}
