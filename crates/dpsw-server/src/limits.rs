//! Every limit of the HTTP side, by name.

use serde::Deserialize;

use crate::config::ConfigError;
use crate::engine::SENDERS_MAX;
use crate::events::EVENTS_MAX;
use crate::input::InputLimits;
use crate::quantity::{Millis, Size};

/// How much the service takes from strangers. What is larger, faster or slower is refused with 408, 413, 429 or 503, and with
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
    /// Bytes of all bodies that are being received and read at a time.
    pub bodies: Size,
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
            unpacked_body: Size(64 << 20),
            bodies: Size(256 << 20),
            batch_events: 1_000_000,
            key_len: 1024,
            requests_per_second: 10_000,
            requests_burst: 20_000,
            requests: 512,
            connections: 1024,
            live_clients: 64,
            question_items: 1000,
            answer_rows: 10_000,
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
        let sizes = [("body", self.body), ("unpacked_body", self.unpacked_body), ("bodies", self.bodies)];
        let sizes = sizes.map(|(name, Size(bytes))| (name, usize::try_from(bytes).unwrap_or(usize::MAX)));
        if let Some((name, got)) =
            counts.into_iter().chain(sizes).find(|(_, got)| !(1..=COUNT_MAX).contains(got))
        {
            return wrong(&format!("{name} must be from 1 to {COUNT_MAX}, got {got}"));
        }
        if EVENTS_MAX < self.batch_events {
            return wrong(&format!("batch_events must be at most {EVENTS_MAX}, got {}", self.batch_events));
        }
        if self.bodies < self.body {
            return wrong("bodies must be at least body, else no body of that size is ever taken");
        }
        Ok(())
    }

    pub(crate) fn input(&self) -> InputLimits {
        InputLimits { events_max: self.batch_events, key_len_max: self.key_len }
    }

    /// A size as memory is counted.
    pub(crate) fn bytes(size: Size) -> usize {
        usize::try_from(size.0).unwrap_or(usize::MAX)
    }
}

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
            ("bodies = 1000", "bodies must be at least body"),
            ("bodies = '8GiB'", "bodies must be from 1"),
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
