//! Health, lists, questions, and what the service is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::engine::report::HealthReport;
use crate::wire::item::{QuestionItem, QuestionItems};
use crate::wire::source::SourceInfo;
use crate::wire::stream::StreamInfo;
use crate::wire::token::TokenInfo;

/// Whether the service takes batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Readiness {
    pub(crate) ready: bool,
    /// Whether the service is starting; nothing but its health is answered yet.
    pub(crate) starting: bool,
}

/// Whether the service takes batches, and what the operator should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Status {
    pub(crate) ready: bool,
    /// Why batches are refused.
    pub(crate) reasons: Vec<String>,
    /// Which sources do not read their brokers, and why. All others go on.
    pub(crate) brokers: Vec<String>,
    /// Which streams stand still, and why. All others go on.
    pub(crate) streams: Vec<String>,
    /// What happened that the operator should know, oldest first.
    pub(crate) notices: Vec<String>,
}

/// What the service is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Version {
    #[schema(example = "dpsw-server")]
    pub(crate) name: &'static str,
    #[schema(example = "0.1.0")]
    pub(crate) version: &'static str,
}

/// All sources.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Sources {
    pub(crate) sources: Vec<SourceInfo>,
}

/// All streams.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Streams {
    pub(crate) streams: Vec<StreamInfo>,
}

/// All tokens, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Tokens {
    pub(crate) tokens: Vec<TokenInfo>,
}

/// A question about many items.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrequenciesQuestion {
    /// The items, answered in this order.
    #[schema(value_type = Vec<QuestionItem>, min_items = 1)]
    pub(crate) items: QuestionItems,
}

/// A question about one item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemQuestion {
    /// The item.
    pub(crate) item: QuestionItem,
}

/// A question which of many items are frequent.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CandidatesQuestion {
    /// The items to choose from.
    #[schema(value_type = Vec<QuestionItem>, min_items = 1)]
    pub(crate) items: QuestionItems,
    /// The share of the window that a heavy hitter has at least.
    #[schema(example = 0.01, exclusive_minimum = 0, maximum = 1)]
    pub(crate) threshold: f64,
}

impl From<HealthReport> for Status {
    fn from(health: HealthReport) -> Self {
        let ready = health.is_ready();
        let HealthReport { reasons, brokers, streams, notices } = health;
        Self { ready, reasons, brokers, streams, notices }
    }
}
