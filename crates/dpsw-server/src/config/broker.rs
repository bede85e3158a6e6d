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
        let is_right = match self.kind {
            BrokerKind::Kafka => self.address.split(',').all(is_address),
            BrokerKind::Nats | BrokerKind::Redis => is_address(&self.address),
        };
        if is_right {
            return Ok(());
        }
        refuse(format!(
            "has a broker at {:?}; give its host and port, such as \"127.0.0.1:9092\"; a password belongs into a [[broker]] \
            of the service's own settings",
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

/// Whether this is one host and its port.
pub(crate) fn is_address(address: &str) -> bool {
    let (host, port) = address.rsplit_once(':').unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    !host.is_empty() && host.chars().all(is_plain) && port.parse::<u16>().is_ok()
}

fn refuse<T>(text: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Contradiction(text.into()))
}

#[cfg(feature = "redis")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StreamConfig;

    const SOURCE: &str = "name = 'web'\nprotects = 'event'\nepsilon = 1\ncolumns = { page = 'text' }\n";
    const BROKER: &str =
        "[broker]\nkind = 'redis'\naddress = 'localhost:6379'\ntopic = 'visits'\nrouting = 'independent'\n";

    fn source(text: &str) -> SourceConfig {
        toml::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// What is refused with these replacements, and in which words.
    #[track_caller]
    fn check(replaced: &[(&str, &str)], wanted: &str) {
        let text =
            replaced.iter().fold(SOURCE.to_owned() + BROKER, |text, (old, new)| text.replace(old, new));
        let refused = source(&text).check().expect_err(&text).to_string();
        assert!(refused.contains(wanted) && refused.starts_with("source \"web\" "), "{refused}");
    }

    #[test]
    fn what_cannot_be_meant_of_a_broker_is_refused_in_words() {
        source(&(SOURCE.to_owned() + BROKER)).check().expect("a source");
        for address in
            ["", "localhost", ":1", "localhost:70000", "user:secret@localhost:1", "a:1,b:2", "a b:1"]
        {
            check(&[("localhost:6379", address)], "give its host and port");
        }
        for topic in ["", "a b", "vis*", &"x".repeat(201)] {
            check(&[("'visits'", &format!("'{topic}'"))], "a topic of redis has 1 to 200 letters");
        }
        check(
            &[("routing = 'independent'", "routing = 'independent'\nfields = { page = '/p' }")],
            "set values = \"json\"",
        );
        check(&[("{ page = 'text' }", "{ page = 'text', status = 'integer' }")], "set values = \"json\"");
        let fields =
            |fields: &str| format!("routing = 'independent'\nvalues = 'json'\nfields = {{ {fields} }}");
        check(
            &[("routing = 'independent'", &fields("pages = '/p'"))],
            "\"pages\" stands, which is no column; it has page",
        );
        check(&[("routing = 'independent'", &fields("page = 'p'"))], "a JSON pointer begins with a slash");
        check(
            &[("'event'", "'presence'"), ("independent", "by_item")],
            "when a record is read would depend on the items",
        );
        check(&[("[broker]", "routing = 'by_item'\n[broker]")], "say which it is");
    }

    #[test]
    fn routing_has_no_default() {
        let text = (SOURCE.to_owned() + BROKER).replace("routing = 'independent'\n", "");
        let error = toml::from_str::<SourceConfig>(&text).expect_err("it must be said").to_string();
        assert!(error.contains("missing field `routing`"), "{error}");
    }

    /// Where the item decides the partition, other events are read in another order and at other times.
    #[test]
    fn where_routing_depends_on_the_item_events_need_times_of_their_own() {
        let stream = |window: &str| -> StreamConfig {
            toml::from_str(&format!("name = 's'\nitem = 'page'\nepsilon = 1.0\n{window}")).expect("a stream")
        };
        let (count, time) = (stream("window = 100"), stream("window = '1m'\nexpected = 100"));
        let independent = source(&(SOURCE.to_owned() + BROKER));
        let by_item = source(&(SOURCE.to_owned() + &BROKER.replace("independent", "by_item")));
        let timed =
            source(&(SOURCE.to_owned() + "time_column = 'at'\n" + &BROKER.replace("independent", "by_item")));
        for config in [&independent, &by_item, &timed] {
            config.check().expect("a source");
        }
        for stream in [&count, &time] {
            stream.settings(&independent).expect("nothing depends on items");
            let refused = stream.settings(&by_item).expect_err("it does").to_string();
            assert!(refused.contains("route") && refused.contains("by item"), "{refused}");
        }
        assert!(count.settings(&timed).is_err());
        let refused = time.settings(&timed).expect_err("nobody says how late they may be").to_string();
        assert!(refused.contains("say with lateness"), "{refused}");
        let late = stream("window = '1m'\nexpected = 100\nlateness = '10s'");
        let clock = |source: &SourceConfig| {
            late.settings(source).expect("times").window.time().map(|time| time.clock)
        };
        assert_eq!(clock(&timed), Some(dpsw::Clock::CallerByItem), "the order of reading decides nothing");
        let timed = source(&(SOURCE.to_owned() + "time_column = 'at'\n" + BROKER));
        assert_eq!(clock(&timed), Some(dpsw::Clock::Events));
    }

    /// The order of arrival decides whom a cap admits.
    #[test]
    fn users_are_refused_where_routing_depends_on_the_item_whatever_the_window() {
        let users = "user_column = 'who'\nitems_per_user = 1\n";
        for times in ["", "time_column = 'at'\n"] {
            let by_item = BROKER.replace("'independent'", "'by_item'\nvalues = 'json'");
            for (routing, broker) in [("", &*by_item), ("routing = 'by_item'\n", "")] {
                let text = SOURCE.replace("'event'", "'users'") + users + times + routing + broker;
                let refused = source(&text).check().expect_err("it depends on items").to_string();
                assert!(refused.contains("protects users, but routes events by item"), "{refused}");
            }
        }
    }

    #[cfg(not(feature = "kafka"))]
    #[test]
    fn a_broker_that_was_not_built_is_refused_with_what_to_do() {
        check(&[("'redis'", "'kafka'")], "build it with --features kafka");
    }
}
