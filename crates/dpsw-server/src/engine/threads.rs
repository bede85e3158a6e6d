//! The threads of the engine: one commits, one for each source counts, one moves the marker, one publishes, one is the clock.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use dpsw::DpswSketch;
use dpsw_durable::disk::Disk;

use crate::engine::EngineSettings;
use crate::engine::commit::{Committer, Request, StartCounter};
use crate::engine::count::{Counter, Counting, Work};
use crate::engine::health::Ailment;
use crate::engine::publish::{Published, Publisher, Shown};
use crate::engine::recover::{Recovered, RecoveredSource, damaged, recover};
use crate::engine::registry::Shared;
use crate::engine::release::{Committed, Release, Releaser};
use crate::engine::source_state::SourceState;
use crate::engine::ticker::{Order, Ticker};
use crate::error::{OpenError, Unavailable};
use crate::store::Store;
use crate::sync::LockAnyway;

/// The threads that run, and the ways to reach them.
pub(crate) struct Threads {
    committer: Sender<Request>,
    ticker: Sender<Order>,
    running: Arc<Running>,
}

#[derive(Default)]
struct Running(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// Restores everything, and starts the threads on it. Until the last of them runs, what they are sent waits in their queues.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        settings: &EngineSettings,
        shared: &Arc<Shared>,
    ) -> Result<Self, OpenError> {
        let (store, recovered) = restore(disk, settings, shared)?;
        let running = Arc::new(Running::default());
        let (committer, requests) = mpsc::channel();
        let (releaser, releases) = mpsc::channel();
        let (publisher, shown) = mpsc::channel();
        let (ticker, orders) = mpsc::channel();
        let start_counter = starter(shared, &running, settings, (&committer, &publisher, &ticker));
        // Before any source is opened: what is not hidden by then is published there.
        if recovered.is_unmarked {
            let _ = releaser.send(hide_all(&recovered, shared)?);
        }
        let releasing = Releaser {
            shared: Arc::clone(shared),
            disk: Arc::clone(store.disk()),
            cipher: store.cipher().clone(),
            releases,
            committer: committer.clone(),
            publisher: publisher.clone(),
            marker: recovered.marker.clone(),
        };
        let ends = (requests, releaser, &publisher);
        let committing = build_committer(store, recovered, settings, start_counter, ends, shared);
        let publishing = Publisher::new(Arc::clone(shared), shown);
        let ticking = Ticker::new(Arc::clone(shared), orders);
        running.spawn(shared, "dpsw-commit", || committing.run());
        running.spawn(shared, "dpsw-release", || releasing.run());
        running.spawn(shared, "dpsw-publish", || publishing.run());
        running.spawn(shared, "dpsw-clock", || ticking.run());
        Ok(Self { committer, ticker, running })
    }

    pub(crate) fn send(&self, request: Request) -> Result<(), Unavailable> {
        self.committer.send(request).map_err(|_| Unavailable::ShuttingDown)
    }

    pub(crate) fn order(&self, order: Order) -> Result<(), Unavailable> {
        self.ticker.send(order).map_err(|_| Unavailable::ShuttingDown)
    }

    /// The clock stands still from now on.
    pub(crate) fn stop_clock(&self) {
        // One that is gone was stopped before.
        let _ = self.order(Order::Stop);
    }

    /// Ends all threads: at once if the engine is stopped, else when they have done their work.
    pub(crate) fn stop(&self) {
        self.stop_clock();
        // A committer that is gone was stopped before.
        let _ = self.send(Request::Stop);
        self.running.join();
    }
}

/// Opens the database and reads everything back. Views that were sent here are shown at once: they were released elsewhere, and no
/// marker has to move for them.
fn restore(
    disk: Arc<dyn Disk>,
    settings: &EngineSettings,
    shared: &Shared,
) -> Result<(Store, Recovered), OpenError> {
    let (mut store, is_whole) = Store::open(disk, &settings.key, settings.is_durable)?;
    if !is_whole {
        notice_repair(&store, shared);
    }
    let recovered = recover(&mut store, shared, &settings.key.state_key())?;
    shared.show_views_of(&store).map_err(|error| damaged(&store, error))?;
    // Nobody else says it.
    let _ = shared.database.set(recovered.meta.lineage.database);
    Ok((store, recovered))
}

/// The committer of what was recovered, whose sources are counted from now on.
fn build_committer(
    store: Store,
    recovered: Recovered,
    settings: &EngineSettings,
    start_counter: StartCounter,
    (requests, releaser, publisher): (Receiver<Request>, Sender<Release>, &Sender<Shown>),
    shared: &Arc<Shared>,
) -> Committer {
    let mut sources = BTreeMap::new();
    for source in recovered.sources {
        let state = open_source(source, &start_counter, shared, publisher);
        sources.insert(state.source.id, state);
    }
    Committer {
        sources,
        meta: recovered.meta,
        marked: recovered.marker.generation,
        state_key: settings.key.state_key(),
        requests,
        releaser,
        checkpoints: BTreeMap::new(),
        is_releasing: recovered.is_unmarked,
        failed: first_failure(&store, shared),
        store,
        names: recovered.names.into_iter().collect(),
        start_counter,
        journal_bytes_max: settings.journal_bytes_max,
        senders_max: settings.senders_max,
        unconfirmed: Vec::new(),
        shared: Arc::clone(shared),
    }
}

/// Starts the owner of a source.
fn starter(
    shared: &Arc<Shared>,
    running: &Arc<Running>,
    settings: &EngineSettings,
    (committer, publisher, ticker): (&Sender<Request>, &Sender<Shown>, &Sender<Order>),
) -> StartCounter {
    let shared = Arc::clone(shared);
    let running = Arc::clone(running);
    let key = settings.key.clone();
    let committer = committer.clone();
    let publisher = publisher.clone();
    let ticker = ticker.clone();
    Box::new(move |name, streams| {
        let (sender, work) = mpsc::channel();
        let counter = Counter {
            shared: Arc::clone(&shared),
            key: key.state_key(),
            streams,
            work,
            committer: committer.clone(),
            publisher: publisher.clone(),
        };
        running.spawn(&shared, &format!("dpsw-count-{name}"), move || counter.run());
        let sender = Arc::new(sender);
        // A clock that is gone means that the engine stops.
        let _ = ticker.send(Order::Follow(Arc::downgrade(&sender)));
        sender
    })
}

fn notice_repair(store: &Store, shared: &Shared) {
    shared.health.notice(&format!(
        "{} was damaged and was repaired: what was acknowledged last may be missing; check the disk",
        store.disk().name()
    ));
}

/// Why the database can be read and not written, which is said.
fn first_failure(store: &Store, shared: &Shared) -> Option<(Instant, Unavailable)> {
    let refusal = Unavailable::Storage(store.unwritable()?.to_owned());
    shared.health.ail(Ailment::Storage, &refusal.to_string());
    Some((Instant::now(), refusal))
}

/// Shows nothing until the marker has moved: what will be shown then.
fn hide_all(recovered: &Recovered, shared: &Shared) -> Result<Release, OpenError> {
    let mut states = Vec::new();
    for counting in recovered.sources.iter().flat_map(|source| &source.streams) {
        states.push(hide(counting, shared)?);
    }
    let streams = states.iter().map(|committed| committed.stream.id).collect();
    let generation = recovered.meta.lineage.generation;
    Ok(Release { generation, states, streams, busy: shared.begin() })
}

/// Shows nothing of a stream until the marker has moved: what will be shown then.
fn hide(counting: &Counting, shared: &Shared) -> Result<Committed, OpenError> {
    let stream = Arc::clone(&counting.stream);
    let sealed_until = counting.saved.sealed_until;
    let view = stream.published().view.clone();
    let empty =
        DpswSketch::new(view.plan().clone()).map_err(|error| OpenError::Entropy(error.to_string()))?;
    stream.hide(Published::first(&empty));
    Ok(Committed { stream, sealed_until, view, busy: shared.begin() })
}

/// The state of a source, whose streams are counted from now on.
fn open_source(
    recovered: RecoveredSource,
    start_counter: &StartCounter,
    shared: &Shared,
    publisher: &Sender<Shown>,
) -> SourceState {
    let RecoveredSource { source, next, streams, journal } = recovered;
    let durable: Vec<_> =
        streams.iter().map(|counting| (Arc::clone(&counting.stream), counting.saved)).collect();
    for (stream, saved) in &durable {
        shared.streams.insert(&stream.config.name, Arc::clone(stream));
        if stream.shown_until() < saved.sealed_until {
            continue;
        }
        let view = stream.published().view.clone();
        // What was restored is worked out before anybody asks; the publisher is not yet running, and its queue is open.
        let _ = publisher.send(Shown {
            stream: Arc::clone(stream),
            view,
            sealed_until: saved.sealed_until,
            busy: shared.begin(),
        });
    }
    shared.sources.insert(&source.config.name, Arc::clone(&source));
    let counter: Arc<Sender<Work>> = start_counter(&source.config.name, streams);
    let mut state = SourceState::new(source, next, counter);
    for (stream, saved) in durable {
        state.note(stream, saved);
    }
    for (last, bytes) in journal {
        state.note_record(last, bytes);
    }
    state
}

impl Running {
    /// A thread whose panic is seen: nothing is taken any more that would not be counted, and whoever runs the engine is told.
    fn spawn(&self, shared: &Arc<Shared>, name: &str, run: impl FnOnce() + Send + 'static) {
        let shared = Arc::clone(shared);
        let title = name.to_owned();
        let watched = move || {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                let reason = format!(
                    "the thread {title} failed, and the log says where; what was acknowledged is in the journal and is counted \
                    at the next start"
                );
                shared.health.ail(Ailment::Thread, &reason);
                shared.is_closing.store(true, std::sync::atomic::Ordering::SeqCst);
                shared.failure.send_replace(Some(reason));
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(watched);
        let thread = thread.expect("the system has room for a thread");
        self.0.lock_anyway().push(thread);
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *self.0.lock_anyway());
        for thread in threads {
            // A panic was reported where it happened.
            let _ = thread.join();
        }
    }
}
