//! The threads of the engine: one commits, one for each source counts, one moves the marker, one publishes, one is the clock.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use dpsw::{DpswSketch, StateKey};

use crate::engine::EngineSettings;
use crate::engine::book::Book;
use crate::engine::commit::{Committer, Request, StartCounter};
use crate::engine::count::{Counter, Counting, Work};
use crate::engine::health::Ailment;
use crate::engine::publish::{Publisher, Shown};
use crate::engine::published::Published;
use crate::engine::recover::{Recovered, RecoveredSource, damaged, recover};
use crate::engine::registry::Shared;
use crate::engine::release::{Committed, Release, Releaser};
use crate::engine::ticker::{Order, Ticker};
use crate::error::{OpenError, Unavailable};
use crate::store::Store;
use crate::store::cipher::Cipher;
use crate::store::disk::Disk;

/// What runs.
pub(crate) struct Threads {
    committer: Mutex<Sender<Request>>,
    ticker: Mutex<Sender<Order>>,
    running: Arc<Running>,
}

#[derive(Default)]
struct Running(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        settings: &EngineSettings,
        shared: &Arc<Shared>,
    ) -> Result<Self, OpenError> {
        let cipher = Cipher::new(&settings.key);
        let state_key = || StateKey::from_bytes(*settings.key.expose());
        let (mut store, is_whole) = Store::open(Arc::clone(&disk), cipher.clone(), settings.is_durable)?;
        if !is_whole {
            let notice =
                "was damaged and was repaired: what was acknowledged last may be missing; check the disk";
            shared.vitals.notice(&format!("{} {notice}", disk.name()));
        }
        let Recovered { meta, marker, sources, names, is_unmarked } =
            recover(&mut store, shared, &state_key())?;
        shared.show_views_of(&store).map_err(|error| damaged(&store, error))?;
        // Nobody else says it.
        let _ = shared.database.set(meta.database);
        let running = Arc::new(Running::default());
        let (committer, requests) = mpsc::channel();
        let (releaser, releases) = mpsc::channel();
        let (publisher, shown) = mpsc::channel();
        let (ticker, orders) = mpsc::channel();
        let start_counter = starter(shared, &running, settings, (&committer, &publisher, &ticker));
        let mut unshown = Vec::new();
        if is_unmarked {
            for counting in sources.iter().flat_map(|source| &source.streams) {
                unshown.push(hide(counting, shared)?);
            }
        }
        let books = sources.into_iter().map(|source| {
            let book = open_book(source, &start_counter, shared, &publisher);
            (book.source.id, book)
        });
        let books: BTreeMap<_, _> = books.collect();
        if is_unmarked {
            let streams = unshown.iter().map(|committed| committed.stream.id).collect();
            let (generation, busy) = (meta.generation, shared.begin());
            // It is taken by the thread that is about to start.
            let _ = releaser.send(Release { generation, states: unshown, streams, busy });
        }
        let failed = store.unwritable().map(|reason| Unavailable::Storage(reason.to_owned()));
        failed.iter().for_each(|refusal| shared.vitals.ail(Ailment::Storage, &refusal.to_string()));
        let committing = Committer {
            books,
            store,
            meta,
            marked: marker.generation,
            state_key: state_key(),
            requests,
            releaser,
            checkpoints: BTreeMap::new(),
            is_releasing: is_unmarked,
            failed: failed.map(|refusal| (Instant::now(), refusal)),
            names: names.into_iter().collect(),
            start_counter,
            journal_bytes_max: settings.journal_bytes_max,
            senders_max: settings.senders_max,
            unconfirmed: Vec::new(),
            shared: Arc::clone(shared),
        };
        let releasing = Releaser {
            shared: Arc::clone(shared),
            disk,
            cipher,
            marker,
            releases,
            committer: committer.clone(),
            publisher,
        };
        let publishing = Publisher::new(Arc::clone(shared), shown);
        running.spawn(shared, "dpsw-commit", || committing.run());
        running.spawn(shared, "dpsw-release", || releasing.run());
        let ticking = Ticker::new(Arc::clone(shared), orders);
        running.spawn(shared, "dpsw-publish", || publishing.run());
        running.spawn(shared, "dpsw-clock", || ticking.run());
        Ok(Self { committer: Mutex::new(committer), ticker: Mutex::new(ticker), running })
    }

    pub(crate) fn send(&self, request: Request) -> Result<(), Unavailable> {
        let committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner);
        committer.send(request).map_err(|_| Unavailable::ShuttingDown)
    }

    pub(crate) fn order(&self, order: Order) -> Result<(), Unavailable> {
        let ticker = self.ticker.lock().unwrap_or_else(PoisonError::into_inner);
        ticker.send(order).map_err(|_| Unavailable::ShuttingDown)
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

/// Starts the owner of a source.
fn starter(
    shared: &Arc<Shared>,
    running: &Arc<Running>,
    settings: &EngineSettings,
    (committer, publisher, ticker): (&Sender<Request>, &Sender<Shown>, &Sender<Order>),
) -> StartCounter {
    let (shared, running, key) = (Arc::clone(shared), Arc::clone(running), settings.key.clone());
    let (committer, publisher, ticker) = (committer.clone(), publisher.clone(), ticker.clone());
    Box::new(move |name, streams| {
        let (sender, work) = mpsc::channel();
        let counter = Counter {
            shared: Arc::clone(&shared),
            key: StateKey::from_bytes(*key.expose()),
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

/// Shows nothing of a stream until the marker has moved: what will be shown then.
fn hide(counting: &Counting, shared: &Shared) -> Result<Committed, OpenError> {
    let (stream, sealed_until) = (Arc::clone(&counting.stream), counting.saved.sealed_until);
    let view = stream.published().view.clone();
    let empty =
        DpswSketch::new(view.plan().clone()).map_err(|error| OpenError::Entropy(error.to_string()))?;
    stream.hide(Published::first(&empty));
    Ok(Committed { stream, sealed_until, view, busy: shared.begin() })
}

/// The book of a source, whose streams are counted from now on.
fn open_book(
    recovered: RecoveredSource,
    start_counter: &StartCounter,
    shared: &Shared,
    publisher: &Sender<Shown>,
) -> Book {
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
    let mut book = Book::new(source, next, counter);
    durable.into_iter().for_each(|(stream, saved)| book.note(stream, saved));
    journal.into_iter().for_each(|(last, bytes)| book.note_record(last, bytes));
    book
}

impl Running {
    /// A thread whose panic is seen: nothing is taken any more that would not be counted, and whoever runs the engine is told.
    fn spawn(&self, shared: &Arc<Shared>, name: &str, run: impl FnOnce() + Send + 'static) {
        let (shared, title) = (Arc::clone(shared), name.to_owned());
        let watched = move || {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                let reason = format!(
                    "the thread {title} failed, and the log says where; what was acknowledged is in the journal and is counted \
                    at the next start"
                );
                shared.vitals.ail(Ailment::Thread, &reason);
                shared.is_closing.store(true, std::sync::atomic::Ordering::SeqCst);
                shared.failure.send_replace(Some(reason));
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(watched);
        let thread = thread.expect("the system has room for a thread");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic was reported where it happened.
            let _ = thread.join();
        }
    }
}
