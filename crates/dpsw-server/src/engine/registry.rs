//! The sources and streams that there are, as every thread sees them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use std::time::Duration;

use dpsw::{Plan, WindowView};
use tokio::sync::watch;

use crate::budget::Budget;
use crate::clock::Clock;
use crate::config::{SourceConfig, Start, StreamConfig};
use crate::engine::gauge::{Busy, Gauge};
use crate::engine::health::Health;
use crate::engine::publish::Published;
use crate::engine::remote::RemoteStream;
use crate::engine::ticker::GridTime;
use crate::error::{ChangeError, Unknown};
use crate::input::Wanted;
use crate::ledger::Charge;
use crate::store::position::Position;
use crate::store::records::{SourceId, StreamId, StreamRecord};
use crate::sync::{LockAnyway, ShareAnyway};

/// The state that all threads share.
pub(crate) struct Shared {
    /// The clock of the system, at which the ticker looks and nobody else.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) time: GridTime,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) health: Health,
    pub(crate) sources: Registry<Source>,
    pub(crate) streams: Registry<Stream>,
    pub(crate) remote: Registry<RemoteStream>,
    /// Memory for batches that bring none of their own.
    pub(crate) budget: Budget,
    /// Which database this is: a random word, which brokers keep to know who reads.
    pub(crate) database: OnceLock<[u8; 16]>,
    /// No more batches are taken.
    pub(crate) is_closing: AtomicBool,
    /// Every thread ends at once, as in a crash.
    pub(crate) is_stopped: AtomicBool,
    /// Why a thread failed, if one did.
    pub(crate) failure: watch::Sender<Option<String>>,
}

/// Things by name.
pub(crate) struct Registry<T> {
    what: &'static str,
    entries: RwLock<BTreeMap<String, Arc<T>>>,
}

/// A source.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) id: SourceId,
    pub(crate) config: SourceConfig,
    charges: Mutex<Vec<Charge>>,
    /// What its streams take of events. The committer changes it together with the streams; whoever reads events asks here.
    wanted: RwLock<Arc<Wanted>>,
    /// How far it has read its broker, durably.
    position: Mutex<Position>,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    /// The first of those that it took the place of, or itself.
    pub(crate) origin: StreamId,
    pub(crate) source: Arc<Source>,
    pub(crate) config: StreamConfig,
    pub(crate) plan: Arc<Plan>,
    pub(crate) from_ms: u64,
    published: watch::Sender<Arc<Published>>,
    /// Everything that was sealed before this position or time may be seen.
    shown_until: AtomicU64,
    /// Where the service's clock moves the stream: what is shown at its next instant, and up to where that is sealed.
    prepared: Mutex<Option<(WindowView, u64)>>,
    /// Why it stands still, if it does.
    trouble: Mutex<Option<String>>,
    /// How long it took to work out the last view, in microseconds.
    pub(crate) refresh_us: AtomicU64,
}

impl Shared {
    pub(crate) fn new(clock: Arc<dyn Clock>, clock_step: Duration, budget: Budget) -> Self {
        Self {
            time: GridTime::new(clock_step, clock.now_ms()),
            clock,
            gauge: Arc::default(),
            health: Health::default(),
            sources: Registry::new("source"),
            streams: Registry::new("stream"),
            remote: Registry::new("stream"),
            budget,
            database: OnceLock::new(),
            is_closing: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            failure: watch::Sender::new(None),
        }
    }

    pub(crate) fn begin(&self) -> Busy {
        self.gauge.begin()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// A stream that is counted here.
    pub(crate) fn counted(&self, stream: &str) -> Result<Arc<Stream>, ChangeError> {
        let counted = self.streams.get(stream);
        if counted.is_err() && self.remote.get(stream).is_ok() {
            return Err(ChangeError::SealedElsewhere(stream.to_owned()));
        }
        Ok(counted?)
    }

    /// Whether nobody has this name yet.
    pub(crate) fn check_free(&self, stream: &str) -> Result<(), ChangeError> {
        if self.streams.get(stream).is_err() && self.remote.get(stream).is_err() {
            return Ok(());
        }
        Err(ChangeError::Exists { what: "stream", name: stream.to_owned() })
    }
}

impl<T> Registry<T> {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, entries: RwLock::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<T>, Unknown> {
        let entries = self.entries.read_anyway();
        entries.get(name).cloned().ok_or_else(|| Unknown { what: self.what, name: name.to_owned() })
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.entries.read_anyway().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.read_anyway().len()
    }

    pub(crate) fn insert(&self, name: &str, entry: Arc<T>) {
        self.entries.write_anyway().insert(name.to_owned(), entry);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.entries.write_anyway().remove(name);
    }
}

impl Source {
    pub(crate) fn new(
        id: SourceId,
        config: SourceConfig,
        charges: Vec<Charge>,
        position: Option<Position>,
    ) -> Self {
        let begins_at_end = config.broker.as_ref().is_some_and(|broker| broker.start == Start::Newest);
        let position = position.unwrap_or(Position { begins_at_end, ..Position::default() });
        let charges = Mutex::new(charges);
        let position = Mutex::new(position);
        let wanted = RwLock::new(Arc::new(Wanted::new(&config, [], 0)));
        Self { id, config, charges, wanted, position }
    }

    pub(crate) fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted.read_anyway())
    }

    pub(crate) fn set_wanted(&self, wanted: Wanted) {
        *self.wanted.write_anyway() = Arc::new(wanted);
    }

    pub(crate) fn position(&self) -> Position {
        self.position.lock_anyway().clone()
    }

    pub(crate) fn note_position(&self, position: Position) {
        *self.position.lock_anyway() = position;
    }

    pub(crate) fn charges(&self) -> MutexGuard<'_, Vec<Charge>> {
        self.charges.lock_anyway()
    }
}

impl Stream {
    pub(crate) fn new(id: StreamId, source: Arc<Source>, record: StreamRecord, first: Published) -> Self {
        let StreamRecord { config, from_ms, origin, .. } = record;
        Self {
            id,
            origin,
            source,
            config,
            plan: Arc::new(first.view.plan().clone()),
            from_ms,
            shown_until: AtomicU64::new(first.sealed_until),
            published: watch::Sender::new(Arc::new(first)),
            prepared: Mutex::default(),
            trouble: Mutex::default(),
            refresh_us: AtomicU64::new(0),
        }
    }

    pub(crate) fn shown_until(&self) -> u64 {
        self.shown_until.load(Ordering::SeqCst)
    }

    /// What was sealed before this position or time is durable, read back, and the marker says so.
    pub(crate) fn show_until(&self, sealed_until: u64) {
        self.shown_until.fetch_max(sealed_until, Ordering::SeqCst);
    }

    pub(crate) fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published.borrow())
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Published>> {
        self.published.subscribe()
    }

    /// Takes back what nobody has seen yet.
    pub(crate) fn hide(&self, empty: Published) {
        self.shown_until.store(empty.sealed_until, Ordering::SeqCst);
        self.published.send_replace(Arc::new(empty));
    }

    /// Lets everybody see a view.
    ///
    /// # Panics
    /// It holds more than what may be seen.
    pub(crate) fn publish(&self, view: WindowView, sealed_until: u64) {
        let number = self.published.borrow().number + 1;
        self.publish_as(number, view, sealed_until);
    }

    fn publish_as(&self, number: u64, view: WindowView, sealed_until: u64) {
        assert!(sealed_until <= self.shown_until(), "nothing is published before it is durable");
        self.published
            .send_modify(|published| *published = Arc::new(Published { view, sealed_until, number }));
    }

    /// Whether the service's clock moves the stream, and not its events.
    pub(crate) fn is_clocked(&self) -> bool {
        self.plan.settings().window.time().is_some_and(|time| time.clock.is_callers())
    }

    pub(crate) fn brings_times(&self) -> bool {
        self.source.config.time_column.is_some()
    }

    /// Keeps a view for the next instant of the clock.
    pub(crate) fn prepare(&self, view: WindowView, sealed_until: u64) {
        let mut prepared = self.prepared.lock_anyway();
        if prepared.as_ref().is_none_or(|(before, _)| before.window().end <= view.window().end) {
            *prepared = Some((view, sealed_until));
        }
    }

    /// Shows what was prepared, with the number of the clock's step: how many views there were before would tell which steps
    /// took too long.
    pub(crate) fn show_prepared(&self, step: u64) {
        let prepared = self.prepared.lock_anyway().take();
        if let Some((view, sealed_until)) = prepared {
            self.publish_as(step, view, sealed_until);
        }
    }

    /// Why the stream stands still, if it does.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock_anyway().clone()
    }

    pub(crate) fn note_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock_anyway() = trouble;
    }
}
