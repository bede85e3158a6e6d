//! Every limit of the HTTP side, by name.

use serde::Deserialize;

use crate::config::ConfigError;
use crate::engine::{ITEM_LEN_MAX, SENDERS_MAX};
use crate::events::{COLUMN_BYTES_MAX, EVENTS_MAX};
use crate::input::InputLimits;
use crate::quantity::{Millis, Size};
use crate::wire::item::QUESTION_ITEMS_MAX;

/// The limits of what the service takes from strangers. What is larger, faster or slower is refused with 408, 413, 429 or 503, and with
/// how long to wait where waiting helps.
///
/// ```toml
/// [limits]
/// body = "16MiB"
/// requests_per_second = 10_000
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a body as it is sent.
    pub body: Size,
    /// Bytes of a body when it is unpacked.
    pub unpacked_body: Size,
    /// Bytes of memory for all bodies, from their first byte until they are counted. Half of it is shared by those that are received
    /// and wait, the other half is for reading them.
    pub memory: Size,
    /// Events of a batch.
    pub batch_events: usize,
    /// Bytes of an item or of a user's name. A longer one counts nowhere and takes its place.
    pub key_len: usize,
    /// Requests of one token in a second, on average.
    pub requests_per_second: u32,
    /// Requests of one token that may come at once after a pause.
    pub requests_burst: u32,
    /// Requests that are answered at a time.
    pub requests: usize,
    /// Open connections.
    pub connections: usize,
    /// Clients that follow a stream live.
    pub live_clients: usize,
    /// Items of one question.
    pub question_items: usize,
    /// Rows of one answer.
    pub answer_rows: usize,
    /// Keys that a view lists which is sent to be shown. Working it out takes about 64 bytes for each, as long as it is shown.
    pub view_keys: usize,
    /// Views that are merged at a time.
    pub merged_views: usize,
    /// Streams up to which requests may make new ones.
    pub streams: usize,
    /// Tokens that exist at a time.
    pub tokens: usize,
    /// Senders of the tokens of one name that a source remembers; none is ever forgotten.
    pub senders: u32,
    /// How long a client may take to send the head of a request, or to begin with one.
    pub head_time: Millis,
    /// How long it may take to send the body.
    pub body_time: Millis,
    /// How long it may take nothing of a reply.
    pub write_time: Millis,
    /// How long requests that are being answered may take when the service shuts down.
    pub shutdown_time: Millis,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: Size(16 << 20),
            unpacked_body: Size(32 << 20),
            memory: Size(512 << 20),
            batch_events: 1_000_000,
            key_len: 1024,
            requests_per_second: 10_000,
            requests_burst: 20_000,
            requests: 512,
            connections: 1024,
            live_clients: 64,
            question_items: 1000,
            answer_rows: 10_000,
            view_keys: 1_000_000,
            merged_views: 64,
            streams: 1000,
            tokens: 1000,
            senders: SENDERS_MAX,
            head_time: Millis(10_000),
            body_time: Millis(30_000),
            write_time: Millis(30_000),
            shutdown_time: Millis(10_000),
        }
    }
}

impl Limits {
    /// Whether a service with these limits can do anything at all.
    ///
    /// # Errors
    /// A limit lets nothing through, or more than can be kept.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_counts()?;
        self.check_bounds()?;
        self.check_memory()
    }

    /// A limit of 0 would let nothing through.
    fn check_counts(&self) -> Result<(), ConfigError> {
        let counts = [
            ("batch_events", self.batch_events),
            ("key_len", self.key_len),
            ("requests_per_second", self.requests_per_second as usize),
            ("requests_burst", self.requests_burst as usize),
            ("requests", self.requests),
            ("connections", self.connections),
            ("question_items", self.question_items),
            ("answer_rows", self.answer_rows),
            ("tokens", self.tokens),
            ("senders", self.senders as usize),
        ];
        let sizes = [("body", self.body), ("unpacked_body", self.unpacked_body), ("memory", self.memory)];
        let sizes = sizes.map(|(name, Size(bytes))| (name, usize::try_from(bytes).unwrap_or(usize::MAX)));
        match counts.into_iter().chain(sizes).find(|(_, got)| !(1..=COUNT_MAX).contains(got)) {
            Some((name, got)) => wrong(&format!("{name} must be from 1 to {COUNT_MAX}, got {got}")),
            None => Ok(()),
        }
    }

    /// What is let through must be what batches, questions and columns can hold.
    fn check_bounds(&self) -> Result<(), ConfigError> {
        let bounded = [
            ("batch_events", self.batch_events, EVENTS_MAX),
            ("question_items", self.question_items, QUESTION_ITEMS_MAX),
            ("key_len", self.key_len, ITEM_LEN_MAX),
            // A column of a longer body could be longer than columns may be, by the length of its items.
            ("body", Self::bytes(self.body), COLUMN_BYTES_MAX),
            ("unpacked_body", Self::bytes(self.unpacked_body), COLUMN_BYTES_MAX),
        ];
        match bounded.into_iter().find(|(_, got, most)| most < got) {
            Some((name, got, most)) => wrong(&format!("{name} must be at most {most}, got {got}")),
            None => Ok(()),
        }
    }

    fn check_memory(&self) -> Result<(), ConfigError> {
        let least = MEMORY_PER_BODY * Self::bytes(self.body.max(self.unpacked_body));
        if Self::bytes(self.memory) < least {
            return wrong(&format!(
                "memory must be at least {MEMORY_PER_BODY} times body and unpacked_body, which is {least}, got {}",
                self.memory.0
            ));
        }
        Ok(())
    }

    /// The memory for bodies that are received or wait.
    pub(crate) fn waiting_memory(&self) -> usize {
        Self::bytes(self.memory) / 2
    }

    /// How many bodies may be unpacked and read at a time. Each takes its unpacked bytes, the bytes of its columns, and as much again
    /// while they grow.
    pub(crate) fn readers(&self) -> usize {
        let each = 4 * Self::bytes(self.unpacked_body.max(self.body));
        (Self::bytes(self.memory) / 2 / each.max(1)).max(1)
    }

    pub(crate) fn input(&self) -> InputLimits {
        InputLimits { events_max: self.batch_events, key_len_max: self.key_len }
    }

    /// A size as memory is counted.
    pub(crate) fn bytes(size: Size) -> usize {
        usize::try_from(size.0).unwrap_or(usize::MAX)
    }
}

/// The memory holds so many of the largest body, so that one token never takes all of it.
const MEMORY_PER_BODY: usize = 8;
/// The most that a limit may be set to: 4 GiB of something is no limit.
const COUNT_MAX: usize = 1 << 32;

fn wrong(text: &str) -> Result<(), ConfigError> {
    Err(ConfigError::Contradiction(format!("in [limits], {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_used_and_limits_that_let_nothing_through_cannot() {
        Limits::default().check().expect("the defaults");
        for (text, wanted) in [
            ("body = 0", "body must be from 1"),
            ("requests = 0", "requests must be from 1"),
            ("batch_events = 100000000", "batch_events must be at most"),
            ("memory = 1000", "memory must be at least 8 times body"),
            ("memory = '8GiB'", "memory must be from 1"),
            ("unpacked_body = '1GiB'\nmemory = '4GiB'", "unpacked_body must be at most 268435456"),
            ("key_len = 100000", "key_len must be at most 65536"),
        ] {
            let limits: Limits = toml::from_str(text).expect(text);
            let error = limits.check().expect_err(text).to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn unknown_limits_are_refused() {
        assert!(toml::from_str::<Limits>("boddy = 5").is_err());
    }
}
