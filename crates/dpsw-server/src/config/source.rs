//! A source: where events come from, whose privacy one event is, and the budget of all its streams together.

use std::collections::BTreeMap;

use dpsw::{Delta, Epsilon, Kind, Unit};
use serde::{Deserialize, Serialize};

use crate::config::broker::BrokerConfig;
use crate::config::stream::StreamConfig;
use crate::config::{ConfigError, check_name};

/// A source of events.
///
/// ```toml
/// [[source]]
/// name = "web"
/// protects = "event"
/// epsilon = 2.0
/// columns = { page = "text", status = "integer" }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// Its name.
    pub name: String,
    /// Whose privacy one event is, for all its streams, for life.
    pub protects: Protects,
    /// Of each user so many items per substream count; only where users are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_per_user: Option<u32>,
    /// The ε that all its streams may spend together on any event.
    pub epsilon: f64,
    /// The δ that they may spend together; without one, streams that need a δ are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The columns of items, and what stands in them.
    pub columns: BTreeMap<String, ColumnKind>,
    /// The column with the time of each event. Without it, events have the time of their arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_column: Option<String>,
    /// The column with who sent each event; needed where users are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_column: Option<String>,
    /// How events find their way to the producers that send them here.
    #[serde(default)]
    pub routing: Routing,
    /// Where it takes its events from, if nobody sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<BrokerConfig>,
    /// Its streams, in a settings file. A source that is made by itself has none yet.
    #[serde(default, rename = "stream", skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamConfig>,
}

/// Whose privacy one event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protects {
    /// What the event is about; when and that it came is public.
    Event,
    /// Also whether it came at all.
    Presence,
    /// All that one user sends inside a window.
    Users,
}

/// What stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Text or bytes.
    Text,
    /// Integers from 0 to 2⁶⁴ - 1.
    Integer,
}

impl ColumnKind {
    /// The library's word for it.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Text => Kind::Bytes,
            Self::Integer => Kind::Integers,
        }
    }
}

/// How events find their way to the producers that send them here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// By anything but the item.
    #[default]
    Independent,
    /// By the item, as in a topic with the item as its key. In which order events come then depends on items, so that count
    /// windows and users are refused, and event times are sealed by the service's clock.
    ByItem,
}

impl SourceConfig {
    /// Everything that can be told before there is a stream.
    ///
    /// # Errors
    /// A name, a number or a combination of fields cannot be meant.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_name(&self.name)?;
        self.columns.keys().try_for_each(|name| check_name(name))?;
        self.budget()?;
        if self.columns.is_empty() {
            return self
                .contradiction("has no columns; name at least one, such as columns = { page = \"text\" }");
        }
        if let Some(broker) = &self.broker {
            broker.check(self).or_else(|error| match error {
                ConfigError::Contradiction(text) => self.contradiction(&text),
                error => Err(error),
            })?;
        }
        self.check_protection()
    }

    fn contradiction(&self, text: &str) -> Result<(), ConfigError> {
        Err(ConfigError::Contradiction(format!("source {:?} {text}", self.name)))
    }

    /// Whether whom it protects, its columns and its routing go together.
    fn check_protection(&self) -> Result<(), ConfigError> {
        let users = self.user_column.is_some();
        let is_capped = self.items_per_user.is_some();
        match self.protects {
            Protects::Users if !users => {
                self.contradiction("protects users; say who sent each event with user_column")
            }
            Protects::Users if !is_capped => self.contradiction(
                "protects users; say how many items of each count per substream with items_per_user",
            ),
            Protects::Event | Protects::Presence if users || is_capped => {
                self.contradiction("does not protect users; leave out user_column and items_per_user")
            }
            Protects::Presence if self.time_column.is_some() => self.contradiction(
                "protects presence, so events have the time of their arrival; leave out time_column (one event far ahead \
                would make all others late)",
            ),
            Protects::Users if self.routing() == Routing::ByItem => self.contradiction(
                "protects users, but routes events by item: the items of some users would decide which events of others count; \
                route events by anything but the item, such as the user",
            ),
            _ => Ok(()),
        }
    }

    /// How events find their way here.
    #[must_use]
    pub fn routing(&self) -> Routing {
        self.broker.as_ref().map_or(self.routing, |broker| broker.routing)
    }

    /// ε and δ of all streams together.
    ///
    /// # Errors
    /// A number is out of range.
    pub fn budget(&self) -> Result<(Epsilon, Option<Delta>), ConfigError> {
        Ok((Epsilon::new(self.epsilon)?, self.delta.map(Delta::new).transpose()?))
    }

    /// The library's word for whose privacy one event is.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match self.protects {
            Protects::Event => Unit::ReplaceOne,
            Protects::Presence => Unit::AddRemove,
            Protects::Users => Unit::Users { per_substream: self.items_per_user.unwrap_or(1) },
        }
    }
}
