//! The engine: takes batches, makes them durable, counts them, seals, and publishes what is sealed.

mod api;
mod batch_id;
mod change;
mod commit;
mod count;
mod feed;
mod gauge;
mod health;
mod isolate;
#[cfg(feature = "planted")]
mod planted;
pub(crate) mod publish;
mod read;
mod recover;
mod registry;
mod release;
mod remote;
pub(crate) mod report;
mod retry;
mod rollback;
mod senders;
mod source_state;
mod threads;
mod ticker;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use dpsw::Plan;
use tokio::sync::{oneshot, watch};

pub use api::{EngineSettings, Pending, Receipt, SENDERS_MAX};
pub use batch_id::{BATCH_NUMBER_MAX, BatchId, SENDER_LEN_MAX};
pub use change::{SOURCES_MAX, STREAMS_MAX};
pub use feed::ITEM_LEN_MAX;

use dpsw_durable::disk::{Disk, Folders};

use crate::budget::Budget;
use crate::clock::Clock;
use crate::config::{SourceConfig, StreamConfig};
use crate::engine::commit::{Committer, Request};
use crate::engine::health::Ailment;
use crate::engine::publish::Published;
use crate::engine::registry::{Shared, Source, Stream};
use crate::engine::remote::{RemoteStream, SentView};
use crate::engine::report::{Contract, Counted, HealthReport, LedgerReport, SourceReport, StreamReport};
use crate::engine::source_state::Ingest;
use crate::engine::threads::Threads;
use crate::engine::ticker::Order;
use crate::error::{ChangeError, IngestError, OpenError, Unavailable, Unknown};
use crate::events::Events;
use crate::input::Wanted;
use crate::ledger;
use crate::store::position::Step;

/// The engine. All methods may be called from any thread; those that change sources or streams,
/// [`settle`](Self::settle) and [`shutdown`](Self::shutdown) wait for the disk and belong on a thread that may block.
///
/// Dropped without a shutdown it stops at once, as in a crash: what was acknowledged is in the journal.
pub struct Engine {
    shared: Arc<Shared>,
    threads: Threads,
}

impl Engine {
    /// Opens the data folder, or makes it; restores every stream and counts what was acknowledged and not yet counted.
    ///
    /// # Errors
    /// The folders cannot be used, are in use, damaged, or belong to another key.
    pub fn open(settings: &EngineSettings, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let disk = Folders::open(&settings.data_folder, &settings.marker_folder)?;
        Self::open_on(Arc::new(disk), settings, clock)
    }

    /// The same on another disk; the folders of the settings are not touched.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_on(
        disk: Arc<dyn Disk>,
        settings: &EngineSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let budget = Budget::new(settings.waiting_bytes_max);
        let shared = Arc::new(Shared::new(clock, settings.clock_step, budget));
        let threads = Threads::start(disk, settings, &shared)?;
        Ok(Self { shared, threads })
    }

    /// Makes a source without streams; [`ensure`](Self::ensure) makes one with them.
    ///
    /// # Errors
    /// The settings cannot be meant or have streams, or the name was ever taken: the ledger of a source outlives it.
    pub fn create_source(&self, config: SourceConfig) -> Result<(), ChangeError> {
        self.change(move |committer| committer.create_source(config))
    }

    /// Makes a source and its streams as far as they are not there yet, as a settings file asks for them. What is there goes on
    /// as it is, and so does what the file does not name.
    ///
    /// What is there with other settings, or cannot be made, is returned, each with its reason: nothing of it keeps the rest from
    /// being made.
    pub fn ensure(&self, config: &SourceConfig) -> Vec<(String, ChangeError)> {
        let named = |what: &str, name: &str| format!("{what} {name:?}");
        let made = self.ensure_source(config).map_err(|error| (named("source", &config.name), error));
        let mut failed: Vec<_> = made.err().into_iter().collect();
        if self.shared.sources.get(&config.name).is_err() {
            return failed;
        }
        for stream in &config.streams {
            let made = self.ensure_stream(&config.name, stream);
            failed.extend(made.err().map(|error| (named("stream", &stream.name), error)));
        }
        failed
    }

    fn ensure_source(&self, config: &SourceConfig) -> Result<(), ChangeError> {
        let bare = SourceConfig { streams: Vec::new(), ..config.clone() };
        match self.shared.sources.get(&config.name) {
            Ok(source) if source.config == bare => Ok(()),
            Ok(_) => Err(ChangeError::Differs { what: "source" }),
            Err(_) => self.create_source(bare),
        }
    }

    /// Makes a stream if it is not there yet.
    ///
    /// # Errors
    /// It is there with other settings, or see [`create_stream`](Self::create_stream).
    pub fn ensure_stream(&self, source: &str, config: &StreamConfig) -> Result<(), ChangeError> {
        let Ok(stream) = self.shared.streams.get(&config.name) else {
            return self.create_stream(source, config.clone());
        };
        let source_config = &stream.source.config;
        let plan = &stream.plan;
        let has_same_keys = match stream.config.has_list() && config.has_list() {
            // Files of keys are the same if they hold the same keys, wherever they lie.
            true => config.settings(source_config)?.domain == plan.settings().domain,
            false => stream.config.keys == config.keys,
        };
        let is_same = source_config.name == source && stream.config.is_alike(config) && has_same_keys;
        if is_same { Ok(()) } else { Err(ChangeError::Differs { what: "stream" }) }
    }

    /// Removes a source without streams. Its ledger stays, and its name is not given again.
    ///
    /// # Errors
    /// There is no such source, or it has streams.
    pub fn delete_source(&self, name: &str) -> Result<(), ChangeError> {
        let name = name.to_owned();
        self.change(move |committer| committer.delete_source(&name))
    }

    /// Charges a stream to its source and starts it with the next batch.
    ///
    /// # Errors
    /// The settings cannot be meant, no plan fits them, or the budget of the source does not bear it.
    pub fn create_stream(&self, source: &str, config: StreamConfig) -> Result<(), ChangeError> {
        let settings = config.settings(&self.shared.sources.get(source)?.config)?;
        let plan = config.plan(settings)?;
        let source = source.to_owned();
        self.change(move |committer| committer.create_stream(&source, config, plan))
    }

    /// The plan of a stream that could be made now. Nothing is charged or made.
    ///
    /// # Errors
    /// Those with which [`create_stream`](Self::create_stream) would refuse it.
    pub fn check_stream(&self, source: &str, config: &StreamConfig) -> Result<Plan, ChangeError> {
        let source = self.shared.sources.get(source)?;
        let plan = config.plan(config.settings(&source.config)?)?;
        self.shared.check_free(&config.name)?;
        // Of the batches to come, those count whose streams run.
        change::charge(&source, &source.charges(), config, &plan, (u64::MAX, 0))?;
        Ok(plan)
    }

    /// Gives a stream other settings from the next batch on, all but its column and its kind of keys. What is open is given up,
    /// and its window fills anew. Its events are charged until then as before, and from then on as the new settings say.
    ///
    /// # Errors
    /// There is no such stream, or those with which [`create_stream`](Self::create_stream) would refuse the settings. Then it goes
    /// on as it was.
    pub fn replace_stream(&self, config: StreamConfig) -> Result<(), ChangeError> {
        let old = self.shared.counted(&config.name)?;
        old.config.check_successor(&config)?;
        let plan = config.plan(config.settings(&old.source.config)?)?;
        self.change(move |committer| committer.replace_stream(config, plan))
    }

    /// Shows a view of a stream that is sealed elsewhere, once it is durable. The first one makes the stream, if that is
    /// allowed. Nothing is charged: what it costs is spent where it is sealed. Sent again it changes nothing.
    ///
    /// # Errors
    /// The bytes are no view, it promises nothing, the stream is counted here, or the view cannot take the place of the one
    /// before (see [`dpsw::SuccessionError`]). Then nothing has changed.
    pub fn put_view(&self, stream: &str, view: Bytes, may_make: bool) -> Result<(), ChangeError> {
        self.put_view_up_to(stream, view, may_make, usize::MAX)
    }

    /// The same, if the view lists at most so many keys: it is refused before it is worked out.
    pub(crate) fn put_view_up_to(
        &self,
        stream: &str,
        view: Bytes,
        may_make: bool,
        keys_max: usize,
    ) -> Result<(), ChangeError> {
        let sent = SentView::read(view, keys_max)?;
        let name = stream.to_owned();
        self.change(move |committer| committer.put_view(&name, sent, may_make))
    }

    /// Ends a stream. What is open is given up; its charge stays.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn delete_stream(&self, stream: &str) -> Result<(), ChangeError> {
        let name = stream.to_owned();
        self.change(move |committer| committer.delete_stream(&name))
    }

    /// Lets the committer make a change, and waits until it is durable.
    fn change(
        &self,
        change: impl FnOnce(&mut Committer) -> Result<(), ChangeError> + Send + 'static,
    ) -> Result<(), ChangeError> {
        self.check_open()?;
        let (reply, answer) = oneshot::channel();
        self.threads.send(Request::Change { change: Box::new(change), reply })?;
        answer.blocking_recv().map_err(|_| Unavailable::Unconfirmed("the service stopped".to_owned()))?
    }

    fn check_open(&self) -> Result<(), Unavailable> {
        if self.shared.is_closing() { Err(Unavailable::ShuttingDown) } else { Ok(()) }
    }

    /// Hands over a batch. It is acknowledged, through [`Pending`], when it is durable.
    ///
    /// # Errors
    /// There is no such source, it has a broker, or too much is waiting. What fails later is the result of [`Pending`].
    pub fn ingest(&self, source: &str, id: Option<BatchId>, events: Events) -> Result<Pending, IngestError> {
        self.check_open()?;
        let source = self.shared.sources.get(source)?;
        if source.config.broker.is_some() {
            return Err(IngestError::Brokered(source.config.name.clone()));
        }
        let events = self.with_room(&source, events)?;
        self.hand_over(source, id, events, None)
    }

    /// Bodies bring the memory that was reserved for them. Events that were made otherwise get it here.
    fn with_room(&self, source: &Source, events: Events) -> Result<Events, IngestError> {
        if events.reserved().is_some() {
            return Ok(events);
        }
        let name = &source.config.name;
        let size = events.size();
        match self.shared.budget.reserve(name, size) {
            Ok(room) => Ok(events.with_room(room)),
            // It would never be let in.
            Err(_) if !self.shared.budget.could_ever_hold(size) => Ok(events),
            Err(_) => Err(IngestError::Busy(name.clone())),
        }
    }

    fn hand_over(
        &self,
        source: Arc<Source>,
        id: Option<BatchId>,
        events: Events,
        step: Option<Step>,
    ) -> Result<Pending, IngestError> {
        let (reply, receipt) = oneshot::channel();
        let busy = self.shared.begin();
        let ingest = Ingest { source, id, events, step, reply, busy };
        self.threads.send(Request::Ingest(ingest))?;
        Ok(Pending(receipt))
    }

    /// What can be seen of a stream.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn view(&self, stream: &str) -> Result<Arc<Published>, Unknown> {
        match self.shared.streams.get(stream) {
            Ok(stream) => Ok(stream.published()),
            Err(_) => Ok(self.shared.remote.get(stream)?.published()),
        }
    }

    /// What can be seen of a stream, whenever it changes. Ends with the stream.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn subscribe(&self, stream: &str) -> Result<watch::Receiver<Arc<Published>>, Unknown> {
        match self.shared.streams.get(stream) {
            Ok(stream) => Ok(stream.subscribe()),
            Err(_) => Ok(self.shared.remote.get(stream)?.subscribe()),
        }
    }

    /// All sources with their ledgers, by name.
    #[must_use]
    pub fn sources(&self) -> Vec<SourceReport> {
        self.shared.sources.all().iter().map(|source| self.source_report(source)).collect()
    }

    /// One source with its ledger.
    ///
    /// # Errors
    /// There is no such source.
    pub fn source(&self, name: &str) -> Result<SourceReport, Unknown> {
        Ok(self.source_report(&*self.shared.sources.get(name)?))
    }

    fn source_report(&self, source: &Source) -> SourceReport {
        let streams = self.shared.streams.all();
        let own = streams.iter().filter(|stream| stream.source.id == source.id);
        SourceReport {
            config: source.config.clone(),
            streams: own.map(|stream| stream.config.name.clone()).collect(),
            ledger: ledger_of(source),
        }
    }

    /// All streams, by name.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamReport> {
        let counted = self.shared.streams.all();
        let elsewhere = self.shared.remote.all();
        let counted = counted.iter().map(|stream| stream_report(stream));
        let mut all: Vec<_> = counted.chain(elsewhere.iter().map(|stream| remote_report(stream))).collect();
        all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// One stream with its plan.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn stream(&self, name: &str) -> Result<StreamReport, Unknown> {
        match self.shared.streams.get(name) {
            Ok(stream) => Ok(stream_report(&stream)),
            Err(_) => Ok(remote_report(&*self.shared.remote.get(name)?)),
        }
    }

    /// What is taken of the events of a source now.
    pub(crate) fn wanted(&self, source: &str) -> Result<Arc<Wanted>, Unknown> {
        Ok(self.shared.sources.get(source)?.wanted())
    }

    /// The source that a stream belongs to; `None` if there is no such stream, or it is sealed elsewhere.
    #[must_use]
    pub fn source_of(&self, stream: &str) -> Option<String> {
        Some(self.shared.streams.get(stream).ok()?.source.config.name.clone())
    }

    /// The own number of a stream, which no other stream ever has, and which stays when its settings change.
    #[must_use]
    pub fn stream_id(&self, name: &str) -> Option<u64> {
        match self.shared.streams.get(name) {
            Ok(stream) => Some(stream.origin.0),
            Err(_) => Some(self.shared.remote.get(name).ok()?.id.0),
        }
    }

    /// What is promised of a stream, from its plan and the ledger of its source.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn contract(&self, stream: &str) -> Result<Contract, Unknown> {
        let StreamReport { name: stream, plan, counted, .. } = self.stream(stream)?;
        let mut sentence = plan.contract();
        let source = counted.map(|counted| counted.source);
        if source.is_none() {
            sentence.push_str("; it is sealed elsewhere, where that is spent");
        }
        let ledger =
            source.as_ref().and_then(|source| Some(ledger_of(&*self.shared.sources.get(source).ok()?)));
        Ok(Contract { stream, source, unit: plan.settings().unit, claim: plan.claim(), sentence, ledger })
    }

    /// Whether the engine takes batches, and what the operator should know.
    #[must_use]
    pub fn health(&self) -> HealthReport {
        let streams = self.shared.streams.all();
        let streams = streams.iter().filter_map(|stream| stream.trouble()).collect();
        HealthReport { streams, ..self.shared.health.report() }
    }

    /// Ready when a thread of the engine has failed: which one, and what to do. Nothing is counted from then on, so the process
    /// should end; the next start counts what was acknowledged.
    pub async fn failed(&self) -> String {
        let mut failure = self.shared.failure.subscribe();
        match failure.wait_for(Option::is_some).await.map(|failure| failure.clone()) {
            Ok(Some(reason)) => reason,
            // The sender lives as long as the engine.
            _ => std::future::pending().await,
        }
    }

    /// Looks at the clock now rather than soon, and returns when all that was handed over before is durable, counted,
    /// sealed where the clock says so, and published. For tests, and for those who must see what they sent.
    ///
    /// # Errors
    /// The storage refuses data meanwhile, or the engine is shutting down.
    pub fn settle(&self) -> Result<(), Unavailable> {
        // The first round seals and shows; the second publishes where the streams stand by then.
        for _ in 0..2 {
            self.rest()?;
            self.threads.order(Order::Show { busy: self.shared.begin() })?;
            self.wait_until_idle()?;
        }
        Ok(())
    }

    /// Looks at the clock now rather than soon, and returns when all that was handed over before is durable, counted and
    /// sealed where the clock says so. What the clock moves is shown at its next step, as always. For tests.
    ///
    /// # Errors
    /// See [`settle`](Self::settle).
    pub fn rest(&self) -> Result<(), Unavailable> {
        // What was sent before comes before the step.
        self.wait_until_idle()?;
        self.threads.order(Order::Look { busy: self.shared.begin() })?;
        self.wait_until_idle()
    }

    fn wait_until_idle(&self) -> Result<(), Unavailable> {
        while !self.shared.gauge.is_idle_within(Duration::from_millis(50)) {
            if let Some(reason) = self.shared.health.ailing(Ailment::Closing) {
                return Err(Unavailable::Storage(reason));
            }
        }
        Ok(())
    }

    /// Takes no more batches, makes durable what was handed over, and saves every stream. Nothing is sealed early. Later calls
    /// of other methods say that the service is shutting down.
    ///
    /// # Errors
    /// Streams could not be saved; what was acknowledged is in the journal and is counted at the next start.
    pub fn shutdown(&self) -> Result<(), Unavailable> {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.health.ail(Ailment::Closing, "the service is shutting down");
        // First, or each of its steps would seal what is to be saved.
        self.threads.stop_clock();
        let saved = self
            .threads
            .send(Request::SaveAll { busy: self.shared.begin() })
            .and_then(|()| self.wait_until_idle());
        if saved.is_err() {
            self.shared.is_stopped.store(true, Ordering::SeqCst);
        }
        self.threads.stop();
        saved
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.threads.stop();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

fn ledger_of(source: &Source) -> LedgerReport {
    ledger::report(&source.config, &source.charges()).expect("every charge was checked before it was made")
}

fn stream_report(stream: &Stream) -> StreamReport {
    let source = stream.source.config.name.clone();
    let config = stream.config.clone();
    let counted = Some(Counted { source, config, from_ms: stream.from_ms, trouble: stream.trouble() });
    let name = stream.config.name.clone();
    let id = stream.origin.0;
    StreamReport { name, id, plan: Arc::clone(&stream.plan), counted }
}

fn remote_report(stream: &RemoteStream) -> StreamReport {
    StreamReport { name: stream.name.clone(), id: stream.id.0, plan: Arc::clone(&stream.plan), counted: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::clock::SystemClock;

    fn stream(name: &str, item: &str) -> StreamConfig {
        let keys = "keys = { list = ['a'] }";
        toml::from_str(&format!("name = '{name}'\nitem = '{item}'\nwindow = 1000\nepsilon = 1.0\n{keys}"))
            .expect("a stream")
    }

    /// It would count as null items in the new stream.
    #[test]
    fn a_batch_that_was_read_before_a_column_was_wanted_is_refused_and_taken_when_it_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = EngineSettings::new(folder.path().join("data"), Key::from_bytes([7; 32]));
        let engine = Engine::open(&settings, Arc::new(SystemClock)).expect("a folder");
        let source =
            "name = 'web'\nprotects = 'event'\nepsilon = 9\ncolumns = { page = 'text', site = 'text' }";
        engine.create_source(toml::from_str(source).expect("a source")).expect("a source");
        let read = || Events::new(3).expect("few").read_for(engine.wanted("web").expect("a source").version);
        let send = |events| engine.ingest("web", None, events).expect("room").wait();
        let refused = Err(IngestError::StreamsChanged("web".to_owned()));
        for (name, item, is_refused) in
            [("one", "page", true), ("two", "page", false), ("three", "site", true)]
        {
            let before = read();
            engine.create_stream("web", stream(name, item)).expect("a stream");
            assert_eq!(send(before) == refused, is_refused, "{name}");
            send(read()).expect("it was read again");
        }
        let before = read();
        engine.delete_stream("three").expect("it is there");
        send(before).expect("it has more than is wanted");
    }
}
