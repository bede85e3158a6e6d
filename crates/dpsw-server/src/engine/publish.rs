//! Works views out before anybody asks, and lets everybody see them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dpsw::{DpswSketch, WindowView};

use crate::engine::gauge::Busy;
use crate::engine::registry::{Shared, Stream};
use crate::store::records::StreamId;

/// Working out a stream's views takes at most one part in this many of the time: newer views replace those that wait.
const REFRESH_SHARE: u32 = 5;
const SLEEP: Duration = Duration::from_secs(1);

/// The view of a stream that everybody sees: durable before it is here, and never different once it was.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Published {
    /// Answers all questions; its lists are worked out already.
    pub view: WindowView,
    /// Everything before this position or time is sealed; 0 before the first seal.
    pub sealed_until: u64,
    /// How many views of the stream were published before, since the service started; where the service's clock moves the
    /// stream, the step of the clock at which it was published.
    pub number: u64,
}

impl Published {
    /// How many substreams are sealed or were given up.
    #[must_use]
    pub fn substreams(&self) -> u64 {
        self.sealed_until / self.view.plan().substream_len()
    }

    /// What can be seen of a stream that starts, or starts again.
    pub(crate) fn first(sketch: &DpswSketch) -> Self {
        Self { view: sketch.view(), sealed_until: sketch.sealed_until(), number: 0 }
    }
}

/// A view that may be seen.
pub(crate) struct Shown {
    pub(crate) stream: Arc<Stream>,
    pub(crate) view: WindowView,
    pub(crate) sealed_until: u64,
    /// Whoever waits for all work to be done waits for this as well.
    pub(crate) busy: Busy,
}

pub(crate) struct Publisher {
    shared: Arc<Shared>,
    shown: Receiver<Shown>,
    /// The newest view of each stream that waits.
    waiting: BTreeMap<StreamId, Shown>,
    /// When the next view of a stream may be worked out.
    not_before: BTreeMap<StreamId, Instant>,
}

impl Publisher {
    pub(crate) fn new(shared: Arc<Shared>, shown: Receiver<Shown>) -> Self {
        Self { shared, shown, waiting: BTreeMap::new(), not_before: BTreeMap::new() }
    }

    /// Works until the engine stops, or those who have views are gone and all are published.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopped() {
            match self.shown.recv_timeout(self.pause()) {
                Ok(shown) => self.queue(shown),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    for shown in self.waiting.into_values() {
                        self.shared.publish(shown);
                    }
                    return;
                }
            }
            while let Ok(shown) = self.shown.try_recv() {
                self.queue(shown);
            }
            self.publish_what_is_due();
        }
    }

    fn queue(&mut self, shown: Shown) {
        let waiting = self.waiting.get(&shown.stream.id);
        // What was sealed may come after a view that was made later.
        if waiting.is_none_or(|waiting| waiting.view.window().end <= shown.view.window().end) {
            self.waiting.insert(shown.stream.id, shown);
        }
    }

    /// At a shutdown nothing waits: nobody asks any more.
    fn due(&self, stream: StreamId) -> Option<Instant> {
        if self.shared.is_closing() {
            return None;
        }
        self.not_before.get(&stream).copied()
    }

    fn pause(&self) -> Duration {
        let now = Instant::now();
        let left = |stream| self.due(stream).map_or(Duration::ZERO, |due| due.saturating_duration_since(now));
        self.waiting.keys().map(|&stream| left(stream)).min().unwrap_or(SLEEP)
    }

    fn publish_what_is_due(&mut self) {
        let now = Instant::now();
        let is_due = |stream: &StreamId| self.due(*stream).is_none_or(|due| due <= now);
        let due: Vec<StreamId> = self.waiting.keys().copied().filter(is_due).collect();
        for stream in due {
            let Some(shown) = self.waiting.remove(&stream) else { continue };
            let began = Instant::now();
            self.shared.publish(shown);
            self.not_before.insert(stream, Instant::now() + began.elapsed() * (REFRESH_SHARE - 1));
        }
        self.not_before.retain(|stream, due| self.waiting.contains_key(stream) || now < *due);
    }
}

impl Shared {
    fn publish(&self, shown: Shown) {
        let Shown { stream, view, sealed_until, busy: _busy } = shown;
        let began = Instant::now();
        if !self.is_closing() {
            work_out(&view);
        }
        let cost = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        stream.refresh_us.store(cost, Ordering::Relaxed);
        if stream.is_clocked() {
            stream.prepare(view, sealed_until);
        } else {
            stream.publish(view, sealed_until);
        }
    }
}

/// The first question after a seal costs the most: it is asked here.
pub(crate) fn work_out(view: &WindowView) {
    // Without a list of keys there is nothing to list; the window is worked out all the same.
    let _ = view.top(1).map(|list| list.len());
    let _ = view.covered();
}
