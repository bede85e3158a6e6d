//! The service's own clock: one thread moves it, on a fixed grid, whatever arrives.
//!
//! At each instant of the grid the thread shows what was prepared since the instant before, and then tells every source the
//! time. So what is shown, when it is shown, and every time in it follow from the clock alone, as long as the work of a step
//! takes less than a step. PRIVACY.md: rule 36.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::engine::count::Work;
use crate::engine::gauge::Busy;
use crate::engine::registry::Shared;

/// The time of the service: the last instant of the grid to which its thread has come. It follows the clock of the system,
/// also back; a stream never goes back.
#[derive(Debug)]
pub(crate) struct GridTime {
    step_ms: u64,
    now_ms: AtomicU64,
}

/// An order to the thread of the clock.
pub(crate) enum Order {
    /// Tell this source the time from now on, until it is gone.
    Follow(Weak<Sender<Work>>),
    /// Look at the clock now rather than at the next instant.
    Look {
        busy: Busy,
    },
    /// Show now what waits for the next instant.
    Show {
        busy: Busy,
    },
    Stop,
}

pub(crate) struct Ticker {
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    counters: Vec<Weak<Sender<Work>>>,
}

impl GridTime {
    pub(crate) fn new(step: Duration, system_ms: u64) -> Self {
        let step_ms = u64::try_from(step.as_millis()).unwrap_or(u64::MAX).max(1);
        Self { step_ms, now_ms: AtomicU64::new(system_ms / step_ms * step_ms) }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    pub(crate) fn step_ms(&self) -> u64 {
        self.step_ms
    }

    /// The number of the step that begins at this time.
    pub(crate) fn step_of(&self, time_ms: u64) -> u64 {
        time_ms / self.step_ms
    }

    /// The last instant of the grid at or before this time.
    fn instant(&self, system_ms: u64) -> u64 {
        self.step_of(system_ms) * self.step_ms
    }
}

impl Ticker {
    pub(crate) fn new(shared: Arc<Shared>, orders: Receiver<Order>) -> Self {
        Self { shared, orders, counters: Vec::new() }
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopped() {
            match self.orders.recv_timeout(self.until_next_instant()) {
                Ok(Order::Follow(counter)) => self.counters.push(counter),
                Ok(Order::Look { busy: _busy }) => self.step(true),
                Ok(Order::Show { busy: _busy }) => self.show(self.shared.time.now_ms()),
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A shutdown saves what is sealed by then, and is done.
            if self.now_ms() != self.shared.time.now_ms() && !self.shared.is_closing() {
                self.step(false);
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.shared.time.instant(self.shared.clock.now_ms())
    }

    fn until_next_instant(&self) -> Duration {
        let step_ms = self.shared.time.step_ms;
        Duration::from_millis(step_ms - self.shared.clock.now_ms() % step_ms)
    }

    /// Comes to an instant. Whoever waits for all work to be done waits for an urgent one.
    fn step(&mut self, is_urgent: bool) {
        let now_ms = self.now_ms();
        if now_ms != self.shared.time.now_ms() {
            self.show(now_ms);
        }
        let shared = &self.shared;
        self.counters.retain(|counter| {
            let Some(counter) = counter.upgrade() else { return false };
            let busy = is_urgent.then(|| shared.begin());
            counter.send(Work::Tick { now_ms, busy }).is_ok()
        });
        // Last: a batch that has this time comes to its counter after the tick.
        shared.time.now_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Shows what was prepared, in all streams that the clock moves.
    fn show(&self, now_ms: u64) {
        let step = self.shared.time.step_of(now_ms);
        for stream in self.shared.streams.all() {
            stream.show_prepared(step);
        }
    }
}
