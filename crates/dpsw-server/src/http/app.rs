//! What handlers share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{Semaphore, watch};

use crate::auth::keeper::Keeper;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::Unknown;
use crate::http::problem::Problem;
use crate::http::request::RequestIds;
use crate::http::work::Workers;
use crate::input::Wanted;
use crate::limits::Limits;
use crate::metrics::Metrics;

/// What the HTTP side is made of.
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

/// What handlers share. Cheap to clone.
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
    /// Requests that may still be answered.
    pub(crate) requests: Semaphore,
    /// Room for bodies, in [`BODY_UNIT`]s.
    pub(crate) bodies: Semaphore,
    /// Clients that may still follow a stream.
    pub(crate) live_clients: Arc<Semaphore>,
    /// Set when the service shuts down.
    pub(crate) closing: watch::Sender<bool>,
    wanted: RwLock<Remembered>,
}

/// What is taken of the events of sources, until sources or streams change.
#[derive(Debug, Default)]
struct Remembered {
    /// How often they have changed.
    changes: u64,
    wanted: BTreeMap<String, Arc<Wanted>>,
}

/// Room for bodies is counted in pieces of this many bytes, as a semaphore counts to less than 2^32 on some machines.
pub(crate) const BODY_UNIT: usize = 1 << 12;

impl App {
    /// The parts put together.
    #[must_use]
    pub fn new(settings: AppSettings) -> Self {
        let AppSettings { engine, keeper, limits, clock, prometheus } = settings;
        Self(Arc::new(Shared {
            metrics: Metrics::new(clock.now_ms()),
            ids: RequestIds::default(),
            workers: Workers::new(),
            requests: Semaphore::new(limits.requests),
            bodies: Semaphore::new(Limits::bytes(limits.bodies) / BODY_UNIT),
            live_clients: Arc::new(Semaphore::new(limits.live_clients)),
            closing: watch::Sender::new(false),
            wanted: RwLock::default(),
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
        call: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let engine = Arc::clone(&self.engine);
        let done = tokio::task::spawn_blocking(move || call(&engine)).await;
        done.map_err(|_| Problem::internal())
    }
}

impl Shared {
    /// Whether the service shuts down.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// What is taken of the events of a source.
    pub(crate) fn wanted(&self, source: &str) -> Result<Arc<Wanted>, Unknown> {
        let changes = {
            let remembered = self.wanted.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(wanted) = remembered.wanted.get(source) {
                return Ok(Arc::clone(wanted));
            }
            remembered.changes
        };
        let wanted = Arc::new(self.wanted_now(source)?);
        let mut remembered = self.wanted.write().unwrap_or_else(PoisonError::into_inner);
        // What was looked up before a change must not outlive it: a new stream would count nothing.
        if remembered.changes == changes {
            remembered.wanted.insert(source.to_owned(), Arc::clone(&wanted));
        }
        Ok(wanted)
    }

    fn wanted_now(&self, source: &str) -> Result<Wanted, Unknown> {
        let report = self.engine.source(source)?;
        // A stream that is deleted meanwhile wants nothing.
        let streams = report.streams.iter().filter_map(|stream| self.engine.stream(stream).ok());
        let columns: Vec<String> =
            streams.filter_map(|stream| stream.counted).map(|counted| counted.config.item).collect();
        Ok(Wanted::new(&report.config, columns.iter().map(String::as_str)))
    }

    /// Call it whenever sources or streams have changed.
    pub(crate) fn forget_wanted(&self) {
        let mut remembered = self.wanted.write().unwrap_or_else(PoisonError::into_inner);
        remembered.changes += 1;
        remembered.wanted.clear();
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
