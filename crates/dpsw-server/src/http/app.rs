//! What handlers share.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::watch;

use crate::auth::keeper::{Keeper, TokensError};
use crate::budget::Budget;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::http::problem::Problem;
use crate::http::request::RequestIds;
use crate::http::work::Workers;
use crate::limits::Limits;
use crate::metrics::Metrics;

/// The parts of the HTTP side.
#[non_exhaustive]
pub struct AppSettings {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The tokens.
    pub keeper: Keeper,
    /// The limits.
    pub limits: Limits,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The streams whose top items may be read as Prometheus metrics.
    pub prometheus: BTreeSet<String>,
}

impl AppSettings {
    /// With the usual limits and no stream for Prometheus.
    #[must_use]
    pub fn new(engine: Arc<Engine>, keeper: Keeper, clock: Arc<dyn Clock>) -> Self {
        Self { engine, keeper, limits: Limits::default(), clock, prometheus: BTreeSet::new() }
    }
}

/// The state that handlers share. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// Seen through [`App`].
pub struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) keeper: Keeper,
    pub(crate) limits: Limits,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) prometheus: BTreeSet<String>,
    pub(crate) metrics: Metrics,
    pub(crate) ids: RequestIds,
    pub(crate) workers: Workers,
    /// Memory for bodies, from their first byte until they are counted.
    pub(crate) budget: Budget,
    /// Places for requests that are being answered, of all who show a token.
    pub(crate) requests: Budget,
    /// Places for clients that follow a stream.
    pub(crate) live_clients: Budget,
    /// Set when the service shuts down.
    pub(crate) closing: watch::Sender<bool>,
}

impl App {
    /// The parts put together.
    #[must_use]
    pub fn new(settings: AppSettings) -> Self {
        let AppSettings { engine, keeper, limits, clock, prometheus } = settings;
        Self(Arc::new(Shared {
            metrics: Metrics::new(clock.now_ms()),
            ids: RequestIds::default(),
            workers: Workers::new(limits.readers()),
            budget: Budget::new(limits.waiting_memory()),
            requests: Budget::new(limits.requests),
            live_clients: Budget::new(limits.live_clients),
            closing: watch::Sender::new(false),
            engine,
            keeper,
            limits,
            clock,
            prometheus,
        }))
    }

    /// Calls the engine where a thread may block.
    pub(crate) async fn engine<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Engine) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let engine = Arc::clone(&self.engine);
        let done = tokio::task::spawn_blocking(move || call(&engine)).await;
        done.map_err(|_| Problem::internal())?
    }
}

impl Shared {
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Ties tokens that name streams to those that are there now.
    pub(crate) fn bind_tokens(&self) -> Result<(), TokensError> {
        self.keeper.bind(|stream| self.engine.stream_id(stream))
    }
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App")
    }
}
