//! Where a source takes its events from, if nobody sends them: a topic of a broker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::config::source::{Protects, Routing, SourceConfig};

/// A topic that a source reads. All its events come from there, each once.
///
/// ```toml
/// [source.broker]
/// kind = "kafka"
/// address = "127.0.0.1:9092"
/// topic = "visits"
/// routing = "independent"
/// values = "json"
/// fields = { page = "/request/path" }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Broker)]
pub struct BrokerConfig {
    /// Which broker.
    pub kind: BrokerKind,
    /// Its host and port; for Kafka several may stand there, with commas between.
    #[schema(example = "127.0.0.1:9092")]
    pub address: String,
    /// The topic of Kafka, the stream of JetStream, or the key of the Redis stream.
    #[schema(example = "visits")]
    pub topic: String,
    /// How events find their way to partitions and producers. It has no default: a topic whose key is the item is `by_item`.
    pub routing: Routing,
    /// How a value is written.
    #[serde(default)]
    pub values: Values,
    /// Where columns stand in JSON, as JSON pointers. A column that is not named is the member of its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(example = json!({"page": "/request/path"}))]
    pub fields: BTreeMap<String, String>,
    /// Where the first reading begins.
    #[serde(default)]
    pub start: Start,
}

/// Which broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BrokerKind {
    /// Apache Kafka.
    Kafka,
    /// NATS JetStream.
    Nats,
    /// Redis streams.
    Redis,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// It is the item, and the time of the event is the broker's.
    #[default]
    Text,
    /// It is a JSON document.
    Json,
}

/// Where the first reading begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// With the oldest record that the topic has.
    #[default]
    Oldest,
    /// After the newest one.
    Newest,
}

impl BrokerKind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Nats => "nats",
            Self::Redis => "redis",
        }
    }

    /// Whether this program can speak to it.
    fn is_built(self) -> bool {
        match self {
            Self::Kafka => cfg!(feature = "kafka"),
            Self::Nats => cfg!(feature = "nats"),
            Self::Redis => cfg!(feature = "redis"),
        }
    }

    /// What a topic may be called, beside letters, digits, `-` and `_`.
    fn marks(self) -> &'static str {
        match self {
            Self::Kafka => ".",
            Self::Nats => "",
            Self::Redis => ".:/",
        }
    }
}

/// The longest name of a topic.
const TOPIC_LEN_MAX: usize = 200;

impl BrokerConfig {
    /// # Errors
    /// A field cannot be meant, or not with this source.
    pub(crate) fn check(&self, source: &SourceConfig) -> Result<(), ConfigError> {
        let kind = self.kind.name();
        if !self.kind.is_built() {
            return refuse(format!(
                "has a broker of kind {kind:?}, which this program was built without; build it with --features {kind}"
            ));
        }
        self.check_address()?;
        self.check_topic()?;
        self.check_routing(source)?;
        self.check_values(source)
    }

    fn check_address(&self) -> Result<(), ConfigError> {
        let is_one = |address: &str| {
            let (host, port) = address.rsplit_once(':').unwrap_or_default();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
            !host.is_empty() && host.chars().all(is_plain) && port.parse::<u16>().is_ok()
        };
        let is_right = match self.kind {
            BrokerKind::Kafka => self.address.split(',').all(is_one),
            BrokerKind::Nats | BrokerKind::Redis => is_one(&self.address),
        };
        if is_right {
            return Ok(());
        }
        refuse(format!(
            "has a broker at {:?}; give its host and port, such as \"127.0.0.1:9092\", and no password, which everybody would \
            see who may see the source",
            self.address
        ))
    }

    fn check_topic(&self) -> Result<(), ConfigError> {
        let marks = self.kind.marks();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c) || marks.contains(c);
        if (1..=TOPIC_LEN_MAX).contains(&self.topic.len()) && self.topic.chars().all(is_plain) {
            return Ok(());
        }
        refuse(format!(
            "reads the topic {:?}; a topic of {} has 1 to {TOPIC_LEN_MAX} letters, digits, and any of \"-_{marks}\"",
            self.topic,
            self.kind.name()
        ))
    }

    /// Where the item decides in which partition a record lies, the order of reading depends on items.
    fn check_routing(&self, source: &SourceConfig) -> Result<(), ConfigError> {
        if self.routing == Routing::Independent && source.routing == Routing::ByItem {
            return refuse(
                "routes by item and its broker does not; say which it is, with the routing of the broker",
            );
        }
        if self.routing == Routing::ByItem && source.protects == Protects::Presence {
            return refuse(
                "protects presence, so events have the time of their arrival, and its broker routes by item: when a record \
                is read would depend on the items of others; use a topic that is routed by anything but the item",
            );
        }
        Ok(())
    }

    fn check_values(&self, source: &SourceConfig) -> Result<(), ConfigError> {
        if self.values == Values::Text {
            return self.check_text(source);
        }
        let known = source.columns.keys().chain(&source.time_column).chain(&source.user_column);
        let known: Vec<&str> = known.map(String::as_str).collect();
        for (name, pointer) in &self.fields {
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                return refuse(format!("says where {name:?} stands, which is no column; it has {known}"));
            }
            if !pointer.starts_with('/') {
                return refuse(format!(
                    "says that {name:?} stands at {pointer:?}; a JSON pointer begins with a slash, such as \"/request/path\""
                ));
            }
        }
        Ok(())
    }

    fn check_text(&self, source: &SourceConfig) -> Result<(), ConfigError> {
        if source.columns.len() != 1 || source.user_column.is_some() || !self.fields.is_empty() {
            return refuse(
                "takes the values of its broker as text, which is one item; for several columns, users or fields, set \
                values = \"json\"",
            );
        }
        Ok(())
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Contradiction(text.into()))
}
