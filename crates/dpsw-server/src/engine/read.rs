//! What readers of brokers ask of the engine.

use crate::config::BrokerConfig;
use crate::engine::registry::Source;
use crate::engine::{Engine, Pending};
use crate::error::{IngestError, Unknown};
use crate::events::Events;
use crate::store::position::{Position, Step};

impl Engine {
    /// The sources that have a broker and streams, with their brokers.
    pub(crate) fn brokered(&self) -> Vec<(String, BrokerConfig)> {
        let streams = self.shared.streams.all();
        let has_streams = |source: &Source| streams.iter().any(|stream| stream.source.id == source.id);
        let sources = self.shared.sources.all().into_iter().filter(|source| has_streams(source));
        sources
            .filter_map(|source| Some((source.config.name.clone(), source.config.broker.clone()?)))
            .collect()
    }

    /// Who reads for a source, as brokers know it: names of sources are never used again.
    pub(crate) fn reader(&self, source: &str) -> String {
        let database = self.shared.database.get().map_or(0, |word| u128::from_be_bytes(*word));
        format!("{database:032x}/{source}")
    }

    /// How far a source has read its broker, durably.
    ///
    /// # Errors
    /// There is no such source.
    pub fn position(&self, source: &str) -> Result<Position, Unknown> {
        Ok(self.shared.sources.get(source)?.position())
    }

    /// Hands over what was read of a broker. It is durable together with where it ends, or not at all.
    ///
    /// # Errors
    /// There is no such source, or the engine is shutting down. That the source does not stand where the batch begins is the
    /// result of [`Pending`]: read again from [`position`](Self::position).
    pub fn ingest_read(&self, source: &str, events: Events, step: Step) -> Result<Pending, IngestError> {
        let source = self.shared.sources.get(source)?;
        self.check_open()?;
        self.hand_over(source, None, events, Some(step))
    }

    /// Why a source does not read its broker now; `None` if it does.
    pub(crate) fn note_broker(&self, source: &str, reason: Option<String>) {
        self.shared.health.note_broker(source, reason);
    }

    /// Says what the operator should know, for as long as the service runs.
    pub fn notice(&self, notice: &str) {
        self.shared.health.notice(notice);
    }
}
