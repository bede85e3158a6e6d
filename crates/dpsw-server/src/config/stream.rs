//! A stream: a window over one column of a source, and what it may spend.

use std::path::PathBuf;

use dpsw::plan::Request;
use dpsw::{Clock, Domain, Keys, Kind, Plan, SearchSettings, Settings, TimeWindow, Window};
use serde::{Deserialize, Serialize};

use crate::config::source::{Protects, Routing, SourceConfig};
use crate::config::{ConfigError, check_name};
use crate::quantity::{Millis, Size, Span};

/// The δ of a stream that needs one and names none.
pub(crate) const DELTA: f64 = 1e-10;

/// A stream over one column of a source.
///
/// ```toml
/// [[source.stream]]
/// name = "pages"
/// item = "page"
/// window = "15m"
/// expected = 100_000
/// epsilon = 1.0
/// keys = { file = "pages.txt" }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamConfig {
    /// Its name, of which the service has one.
    pub name: String,
    /// The column of the items.
    pub item: String,
    /// The window: a number of items or a time.
    pub window: Span,
    /// About how many items a time window holds: a public guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// How late events of a time window may come, where they bring their own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Millis>,
    /// ε of everything that it ever releases.
    pub epsilon: f64,
    /// δ; 1e-10 where the plan needs one and none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Which keys may be listed.
    #[serde(default)]
    pub keys: KeysConfig,
    /// Bytes that its sketches may take; by default what the library's planner takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// How many windows are kept.
    #[serde(default = "one_window")]
    pub retention: u32,
}

/// The usual retention.
pub(crate) fn one_window() -> u32 {
    1
}

/// The keys that may be listed. A list must not be made from the stream itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeysConfig {
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
    /// The lines of this file, as they are when the stream is made.
    File(PathBuf),
}

impl KeysConfig {
    fn kind(&self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Found => "found",
            Self::List(_) | Self::Integers(_) | Self::Below(_) | Self::File(_) => "listed",
        }
    }
}

impl StreamConfig {
    /// The library's settings of this stream.
    ///
    /// # Errors
    /// A name or number is out of range, the source has no such column, or fields contradict each other or the source.
    pub fn settings(&self, source: &SourceConfig) -> Result<Settings, ConfigError> {
        check_name(&self.name)?;
        let kind = self.kind(source)?;
        let settings = Settings::new(self.window(source)?, self.epsilon)?
            .with_unit(source.unit())
            .with_domain(self.domain(kind)?)
            .with_retention(self.retention);
        match self.delta.or(matches!(self.keys, KeysConfig::Found).then_some(DELTA)) {
            Some(delta) => Ok(settings.with_delta(delta)?),
            None => Ok(settings),
        }
    }

    /// The plan for these settings, within the memory that was given. It may take a second for long lists of keys.
    ///
    /// # Errors
    /// There is none: see [`dpsw::error::PlanError`].
    pub fn plan(&self, settings: Settings) -> Result<Plan, dpsw::error::PlanError> {
        let request = Request::new(settings);
        let request = match self.memory {
            Some(Size(bytes)) => request.with_bytes(bytes),
            None => request,
        };
        request.plan().map(Plan::from)
    }

    /// Whether its keys are a public list.
    pub(crate) fn has_list(&self) -> bool {
        self.keys.kind() == "listed"
    }

    /// Whether all settings are the same but those of the keys.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let keyless = |config: &Self| Self { keys: KeysConfig::Asked, ..config.clone() };
        keyless(self) == keyless(other)
    }

    /// Whether a stream may go on with these settings: its column and its kind of keys never change.
    pub(crate) fn check_successor(&self, new: &Self) -> Result<(), ConfigError> {
        if self.item == new.item && self.keys.kind() == new.keys.kind() {
            return Ok(());
        }
        let item = &self.item;
        let keys = self.keys.kind();
        self.contradiction(&format!(
            "keeps its column {item:?} and its keys, which are {keys}; make another stream"
        ))
    }

    fn contradiction<T>(&self, text: &str) -> Result<T, ConfigError> {
        Err(ConfigError::Contradiction(format!("stream {:?} {text}", self.name)))
    }

    fn kind(&self, source: &SourceConfig) -> Result<Kind, ConfigError> {
        let Some(column) = source.columns.get(&self.item) else {
            let known = source.columns.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(ConfigError::Column { stream: self.name.clone(), column: self.item.clone(), known });
        };
        Ok(column.kind())
    }

    fn window(&self, source: &SourceConfig) -> Result<Window, ConfigError> {
        match self.window {
            Span::Items(len) => self.count_window(len, source),
            Span::Time(Millis(len)) => self.time_window(len, source),
        }
    }

    fn time_window(&self, len: u64, source: &SourceConfig) -> Result<Window, ConfigError> {
        let Some(expected_items) = self.expected else {
            return self.contradiction("has a time window; say about how many items it holds with expected");
        };
        let has_times = source.time_column.is_some();
        let is_by_item = source.routing() == Routing::ByItem;
        if !has_times && self.lateness.is_some() {
            return self.contradiction(
                "takes the time of arrival, so nothing is late; leave out lateness, or give the source a time_column",
            );
        }
        if !has_times && source.broker.is_some() && is_by_item {
            return self.contradiction(
                "takes the time of arrival, but its broker routes events by item: when one is read would depend on the items of \
                others; give the source a time_column and the stream a lateness, and the service's clock seals the times of events",
            );
        }
        if has_times && is_by_item && self.lateness.is_none_or(|lateness| lateness.0 == 0) {
            return self.contradiction(
                "has event times that the service's clock seals, as its source routes events by item; say with lateness how long \
                after its time an event may come, such as \"1m\"",
            );
        }
        // PRIVACY.md: rule 36. By item, the order in which events are read would decide which of the others are late.
        let clock = match (has_times, is_by_item) {
            (true, false) => Clock::Events,
            (true, true) => Clock::CallerByItem,
            (false, _) => Clock::Caller,
        };
        let lateness = self.lateness.unwrap_or_default().0;
        Ok(Window::Time(TimeWindow { len, lateness, clock, expected_items }))
    }

    fn count_window(&self, len: u64, source: &SourceConfig) -> Result<Window, ConfigError> {
        if self.expected.is_some() || self.lateness.is_some() {
            return self.contradiction(
                "counts items; leave out expected and lateness, or give a time such as \"15m\"",
            );
        }
        if source.protects == Protects::Presence {
            return self.contradiction(
                "counts items, but its source protects presence: one event less would shift all later ones; give a time \
                such as \"15m\"",
            );
        }
        if source.routing() == Routing::ByItem {
            return self.contradiction(
                "counts items, but its source routes events by item: in which order they come would depend on items; \
                give a time such as \"15m\"",
            );
        }
        Ok(Window::Items(len))
    }

    fn domain(&self, kind: Kind) -> Result<Domain, ConfigError> {
        let keys = match &self.keys {
            KeysConfig::Asked => return Ok(Domain::Asked(kind)),
            KeysConfig::Found => return Ok(Domain::Found(SearchSettings::new(kind))),
            KeysConfig::List(texts) => Keys::text(texts),
            KeysConfig::Integers(integers) => Keys::integers(integers.iter().copied()),
            KeysConfig::Below(end) => Keys::Range(*end),
            KeysConfig::File(path) => self.keys_of_file(path, kind)?,
        };
        if keys.kind() == kind {
            return Ok(Domain::Public(keys));
        }
        self.contradiction(&format!("lists keys that are {}, but its column has {kind}", keys.kind()))
    }

    fn keys_of_file(&self, path: &PathBuf, kind: Kind) -> Result<Keys, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::KeysFile {
            stream: self.name.clone(),
            path: path.display().to_string(),
            source,
        })?;
        let lines = || text.lines().filter(|line| !line.is_empty());
        if kind == Kind::Bytes {
            return Ok(Keys::text(lines()));
        }
        match lines()
            .enumerate()
            .map(|(at, line)| line.parse().map_err(|_| at + 1))
            .collect::<Result<Vec<u64>, _>>()
        {
            Ok(integers) => Ok(Keys::integers(integers)),
            Err(line) => self.contradiction(&format!(
                "lists keys in {}, of which number {line} is no integer from 0 to {}",
                path.display(),
                u64::MAX
            )),
        }
    }
}
