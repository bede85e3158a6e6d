//! Streams, as they are asked for and as they are shown.

use dpsw::{Domain, Plan, Settings};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::stream::one_window;
use crate::config::{ColumnKind, KeysConfig, Protects, StreamConfig};
use crate::engine::report::{Contract, StreamReport};
use crate::quantity::{Millis, Size, Span};
use crate::wire::answer::{promised, protects};
use crate::wire::source::Ledger;

/// A stream: a window over one column of a source, and what it may spend.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Stream)]
pub(crate) struct StreamShape {
    /// Its name, of which the service has one: 1 to 64 letters, digits, `-`, `_` and `.`, a letter or digit first.
    #[schema(example = "pages", min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    pub(crate) name: String,
    /// The column of the items.
    #[schema(example = "page")]
    pub(crate) item: String,
    /// The window: a number of items or a time.
    pub(crate) window: Span,
    /// About how many items a time window holds: a public guess.
    #[serde(default)]
    pub(crate) expected: Option<u64>,
    /// How late events of a time window may come, where they bring their own time.
    #[serde(default)]
    pub(crate) lateness: Option<Millis>,
    /// ε of everything that it ever releases.
    #[schema(example = 1.0, exclusive_minimum = 0)]
    pub(crate) epsilon: f64,
    /// δ; 1e-10 where the plan needs one and none is given.
    #[serde(default)]
    pub(crate) delta: Option<f64>,
    /// Which keys may be listed.
    #[serde(default)]
    pub(crate) keys: KeysShape,
    /// Bytes that its sketches may take; by default what the planner takes.
    #[serde(default)]
    pub(crate) memory: Option<Size>,
    /// How many windows are kept.
    #[serde(default = "one_window")]
    #[schema(minimum = 1, default = 1)]
    pub(crate) retention: u32,
}

/// Which keys may be listed. A list must not be made from the stream itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Keys)]
pub(crate) enum KeysShape {
    /// None: questions name the keys.
    #[default]
    Asked,
    /// Those that are found privately in the stream.
    Found,
    /// These texts.
    List(Vec<String>),
    /// These integers.
    Integers(Vec<u64>),
    /// The integers from 0 up to this one, exclusive.
    Below(u64),
}

/// A stream and its plan.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct StreamInfo {
    pub(crate) name: String,
    /// `null` if it is sealed elsewhere.
    pub(crate) source: Option<String>,
    /// The column of the items; `null` if it is sealed elsewhere.
    pub(crate) item: Option<String>,
    /// What its items are.
    pub(crate) kind: ColumnKind,
    pub(crate) window: Span,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lateness: Option<Millis>,
    /// How many windows are kept.
    pub(crate) retention: u32,
    pub(crate) keys: KeysInfo,
    /// When it started, in milliseconds since 1970; `null` if it is only being checked, or sealed elsewhere.
    pub(crate) from_ms: Option<u64>,
    /// Why it stands still, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
    pub(crate) plan: PlanInfo,
}

/// Which keys may be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeysInfo {
    /// None: questions name the keys.
    Asked,
    /// Those that are found privately in the stream.
    Found,
    /// A public list with so many keys.
    Listed(usize),
}

/// What the planner chose.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct PlanInfo {
    /// ε of everything that it ever releases.
    pub(crate) epsilon: Option<f64>,
    /// δ of the same.
    pub(crate) delta: Option<f64>,
    /// The method: `tuned` or `paper`.
    #[schema(example = "tuned")]
    pub(crate) method: &'static str,
    /// The length of a substream, in items or milliseconds: so often something new can be seen.
    pub(crate) substream_len: u64,
    /// Rows of counters.
    pub(crate) rows: u32,
    /// Counters of each row.
    pub(crate) columns: u32,
    /// Bytes of all sketches.
    pub(crate) sketch_bytes: u64,
    /// Bytes with all that is needed beside them.
    pub(crate) resident_bytes: u64,
    /// The plan in words.
    pub(crate) words: String,
}

/// What is promised of a stream, made from its plan and the ledger of its source.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct ContractInfo {
    pub(crate) stream: String,
    /// `null` if it is sealed elsewhere.
    pub(crate) source: Option<String>,
    /// Whose privacy one event is.
    pub(crate) protects: Protects,
    /// ε of everything that the stream ever releases.
    pub(crate) epsilon: Option<f64>,
    /// δ of the same.
    pub(crate) delta: Option<f64>,
    /// What is promised, in words.
    pub(crate) sentence: String,
    /// What is spent with all other streams of the source; `null` if the stream is sealed elsewhere, and this is spent there.
    pub(crate) ledger: Option<Ledger>,
}

impl From<StreamShape> for StreamConfig {
    fn from(shape: StreamShape) -> Self {
        Self {
            name: shape.name,
            item: shape.item,
            window: shape.window,
            expected: shape.expected,
            lateness: shape.lateness,
            epsilon: shape.epsilon,
            delta: shape.delta,
            keys: shape.keys.into(),
            memory: shape.memory,
            retention: shape.retention,
        }
    }
}

impl From<KeysShape> for KeysConfig {
    fn from(shape: KeysShape) -> Self {
        match shape {
            KeysShape::Asked => Self::Asked,
            KeysShape::Found => Self::Found,
            KeysShape::List(texts) => Self::List(texts),
            KeysShape::Integers(integers) => Self::Integers(integers),
            KeysShape::Below(end) => Self::Below(end),
        }
    }
}

impl StreamInfo {
    /// A stream of this plan, running or not, which counts a column of a source or is sealed elsewhere.
    pub(crate) fn new(
        name: String,
        counted: Option<(String, String)>,
        plan: &Plan,
        from_ms: Option<u64>,
    ) -> Self {
        let Settings { window, domain, retention, .. } = plan.settings();
        let (source, item) = counted.unzip();
        let time = window.time();
        Self {
            name,
            source,
            item,
            kind: match domain.kind() {
                dpsw::Kind::Integers => ColumnKind::Integer,
                dpsw::Kind::Bytes => ColumnKind::Text,
            },
            window: time.map_or(Span::Items(window.len()), |time| Span::Time(Millis(time.len))),
            expected: time.map(|time| time.expected_items),
            lateness: time.map(|time| Millis(time.lateness)).filter(|lateness| 0 < lateness.0),
            retention: *retention,
            keys: KeysInfo::of(domain),
            from_ms,
            trouble: None,
            plan: PlanInfo::from(plan),
        }
    }
}

impl From<&StreamReport> for StreamInfo {
    fn from(report: &StreamReport) -> Self {
        let StreamReport { name, plan, counted, .. } = report;
        let from_ms = counted.as_ref().map(|counted| counted.from_ms);
        let trouble = counted.as_ref().and_then(|counted| counted.trouble.clone());
        let counted = counted.as_ref().map(|counted| (counted.source.clone(), counted.config.item.clone()));
        Self { trouble, ..Self::new(name.clone(), counted, plan, from_ms) }
    }
}

impl KeysInfo {
    fn of(domain: &Domain) -> Self {
        match (domain.keys(), domain.search()) {
            (Some(keys), _) => Self::Listed(keys.len()),
            (None, Some(_)) => Self::Found,
            (None, None) => Self::Asked,
        }
    }
}

impl From<&Plan> for PlanInfo {
    fn from(plan: &Plan) -> Self {
        let (epsilon, delta) = promised(plan.claim());
        let shape = plan.shape();
        Self {
            epsilon,
            delta,
            method: plan.method().name(),
            substream_len: plan.substream_len(),
            rows: shape.rows,
            columns: shape.columns,
            sketch_bytes: plan.sketch_bytes(),
            resident_bytes: plan.resident_bytes(),
            words: plan.in_words(|ms| Millis(ms).to_string()),
        }
    }
}

impl From<Contract> for ContractInfo {
    fn from(contract: Contract) -> Self {
        let Contract { stream, source, unit, claim, sentence, ledger } = contract;
        let ((epsilon, delta), ledger) = (promised(claim), ledger.map(Ledger::from));
        Self { stream, source, protects: protects(unit), epsilon, delta, sentence, ledger }
    }
}
