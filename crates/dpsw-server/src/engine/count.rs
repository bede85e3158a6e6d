//! The owner of a source's sketches: one thread counts what is durable, seals, and saves what it sealed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use dpsw::error::IngestError as CountError;
use dpsw::{DpswSketch, StateKey};

use crate::engine::commit::{Checkpoint, Request};
use crate::engine::feed::{self, Care, Column, GivenUp, Probe};
use crate::engine::gauge::Busy;
use crate::engine::health::Ailment;
use crate::engine::publish::Shown;
use crate::engine::registry::{Shared, Stream};
use crate::quantity::Millis;
use crate::store::journal::Batch;
use crate::store::records::{Nulls, Saved, StateRecord, StreamId};

/// Making a state and committing it takes at most one part in this many of a stream's time: a stream that seals often shows
/// several seals at once. Waiting for a disk that refuses does not count, or a stream would be silent long after it is back.
const SAVE_SHARE: u32 = 5;
/// A view whose position alone has moved is published this often, and less often if working it out takes long. Where the
/// service's clock moves the stream, public numbers alone decide how often.
const REFRESH: Duration = Duration::from_secs(1);
const REFRESH_SHARE: u32 = 20;
/// A stream that the clock moves is refreshed at each of its steps, or with more listed keys than this less often.
const REFRESH_KEYS: u64 = 1 << 20;
/// A stream that is so many steps ahead of the service's clock stands still, and that is said.
const AHEAD_STEPS: u64 = 10;
/// Without randomness nothing is sealed; it is asked for again after this long.
const RANDOMNESS_PAUSE: Duration = Duration::from_millis(100);
/// The longest sleep of a thread that has nothing to do.
const SLEEP: Duration = Duration::from_secs(1);

/// An order to the owner of a source's sketches.
#[derive(Debug)]
pub(crate) enum Work {
    /// Count a batch, which is durable.
    Count {
        batch: Batch,
        busy: Busy,
    },
    /// The clock has come this far.
    Tick {
        now_ms: u64,
        busy: Option<Busy>,
    },
    Add {
        counting: Box<Counting>,
        busy: Busy,
    },
    Remove {
        stream: StreamId,
    },
    /// A checkpoint is durable.
    Saved {
        stream: StreamId,
        saved: Saved,
        commit_took: Duration,
        busy: Busy,
    },
    /// Save every stream, so that the journal can be emptied.
    SaveAll {
        busy: Busy,
    },
}

/// A stream and its sketch.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) stream: Arc<Stream>,
    pub(crate) sketch: DpswSketch,
    /// Batches before this number are counted.
    pub(crate) counted: u64,
    /// What the newest checkpoint holds, durable or on its way.
    pub(crate) saved: Saved,
    /// How long it took to make the state that is on its way to the disk.
    saving: Option<Duration>,
    save_after: Instant,
    /// Something was sealed that is not yet on its way to the disk.
    unsaved: Option<Busy>,
    pace: Pace,
    shown_position: u64,
    /// The events of batches of the journal that are null items here, by the number of the batch.
    pub(crate) nulls: BTreeMap<u64, Nulls>,
}

/// The moments at which a view whose position alone has moved is published.
///
/// Where the service's clock moves a stream, its steps alone decide: the time of the last view, or how long it took, would
/// show when events came. PRIVACY.md: rule 36.
#[derive(Debug)]
enum Pace {
    /// Every so many steps of the service's clock.
    Steps(u64),
    /// Not before this moment.
    After(Instant),
}

impl Pace {
    fn new(is_clocked: bool, listed: u64, now: Instant) -> Self {
        if is_clocked { Self::Steps(1 + listed / REFRESH_KEYS) } else { Self::After(now) }
    }

    fn is_due(&self, step: u64, now: Instant) -> bool {
        match self {
            Self::Steps(steps) => step.is_multiple_of(*steps),
            Self::After(moment) => *moment <= now,
        }
    }

    /// A view is published that takes this long to work out.
    fn note_published(&mut self, now: Instant, cost: Duration) {
        if let Self::After(moment) = self {
            *moment = now + REFRESH.max(cost * REFRESH_SHARE);
        }
    }
}

/// The owner of a source's sketches.
pub(crate) struct Counter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: StateKey,
    pub(crate) streams: Vec<Counting>,
    pub(crate) work: Receiver<Work>,
    pub(crate) committer: Sender<Request>,
    pub(crate) publisher: Sender<Shown>,
}

impl Counting {
    pub(crate) fn new(stream: Arc<Stream>, sketch: DpswSketch, saved: Saved) -> Self {
        let now = Instant::now();
        let listed = stream.plan.settings().domain.keys().map_or(0, |keys| keys.len() as u64);
        let pace = Pace::new(stream.is_clocked(), listed, now);
        Self {
            stream,
            shown_position: sketch.position(),
            sketch,
            counted: saved.counted,
            saved,
            saving: None,
            save_after: now,
            unsaved: None,
            pace,
            nulls: BTreeMap::new(),
        }
    }

    /// Counts a batch, unless the restored sketch has it already: event by event where there is a probe, which then says which
    /// one it has come to.
    fn count(&mut self, batch: &Batch, shared: &Shared, probe: Probe<'_>) -> Result<(), GivenUp> {
        if batch.sequence < self.counted {
            return Ok(());
        }
        let care = Care { nulls: self.nulls.get(&batch.sequence), probe };
        let column = Column { item: &self.stream.config.item, has_times: self.stream.brings_times() };
        let patience = &mut |error: &CountError| wait(shared, error);
        feed::count(&mut self.sketch, column, batch, care, patience)?;
        self.counted = batch.sequence + 1;
        Ok(())
    }

    /// Counts a batch of the journal, with a probe or without: the clock is where it was when the batch came, or further.
    pub(crate) fn count_again(
        &mut self,
        batch: &Batch,
        shared: &Shared,
        probe: Probe<'_>,
    ) -> Result<(), GivenUp> {
        if self.counted <= batch.sequence {
            self.advance(batch.arrival_ms, shared)?;
        }
        self.count(batch, shared, probe)
    }

    /// The service's clock has come this far.
    pub(crate) fn advance(&mut self, now_ms: u64, shared: &Shared) -> Result<(), GivenUp> {
        feed::advance(&mut self.sketch, now_ms, &mut |error| wait(shared, error))
    }

    /// Says whether the stream is so far ahead of the service's clock that it stands still.
    fn note_clock(&self, now_ms: u64, shared: &Shared) {
        let ahead_ms = feed::ahead(&self.sketch, now_ms);
        let is_ahead = AHEAD_STEPS * shared.time.step_ms() < ahead_ms;
        if is_ahead == self.stream.trouble().is_some() {
            return;
        }
        self.stream.note_trouble(is_ahead.then(|| stands_still(&self.stream.config.name, ahead_ms)));
        if let Some(trouble) = self.stream.trouble() {
            shared.health.notice(&trouble);
        }
    }

    fn has_sealed(&self) -> bool {
        self.saved.sealed_until < self.sketch.sealed_until()
    }

    fn may_save(&self, now: Instant) -> bool {
        self.saving.is_none() && self.save_after <= now
    }

    fn checkpoint(&mut self, key: &StateKey, shared: &Shared) -> Option<Checkpoint> {
        let began = Instant::now();
        let state = loop {
            match self.sketch.checkpoint(key) {
                Ok(state) => break state,
                Err(error) if wait(shared, &error) => {}
                Err(_) => return None,
            }
        };
        let record = StateRecord::new(self.counted, self.sketch.sealed_until(), state);
        self.saved = record.saved;
        self.saving = Some(began.elapsed());
        let busy = self.unsaved.take().unwrap_or_else(|| shared.begin());
        Some(Checkpoint { stream: Arc::clone(&self.stream), record, view: self.sketch.view(), busy })
    }
}

fn stands_still(stream: &str, ahead_ms: u64) -> String {
    let ahead = Millis(ahead_ms / 1000 * 1000);
    format!(
        "stream {stream:?} stands still: its clock is {ahead} ahead of the service's, and what was shown is never shown otherwise. \
        Events are counted, but nothing new is shown until then. If the service's clock is right now, begin the stream anew: \
        PUT /v1/streams/{stream} with its settings, or delete it and create it again. It begins now, with an empty window, and \
        where users are protected they pay its epsilon again"
    )
}

/// Whether to ask again for randomness, after a while.
fn wait(shared: &Shared, error: &dyn std::fmt::Display) -> bool {
    shared.health.ail(Ailment::Randomness, &error.to_string());
    std::thread::sleep(RANDOMNESS_PAUSE);
    !shared.is_stopped()
}

impl Counter {
    /// Works until the engine stops, or those who hand out work are gone.
    pub(crate) fn run(mut self) {
        // The journal may have brought some at the start.
        self.note_seals();
        while !self.shared.is_stopped() {
            let done = match self.work.recv_timeout(self.pause()) {
                Ok(work) => self.take(work),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if done.is_err() || self.save_what_is_sealed().is_err() {
                return;
            }
        }
    }

    /// How long there is nothing to do unless work comes.
    fn pause(&self) -> Duration {
        let now = Instant::now();
        let due =
            self.streams.iter().filter(|counting| counting.unsaved.is_some() && counting.saving.is_none());
        let due = due.map(|counting| counting.save_after.saturating_duration_since(now));
        due.min().unwrap_or(SLEEP)
    }

    fn take(&mut self, work: Work) -> Result<(), GivenUp> {
        match work {
            Work::Count { batch, busy: _busy } => {
                let mut streams = self.streams.iter_mut();
                let counted = streams.try_for_each(|counting| counting.count(&batch, &self.shared, None));
                self.note_seals();
                return counted;
            }
            Work::Tick { now_ms, busy } => return self.tick(now_ms, busy.as_ref()),
            Work::Add { counting, busy: _busy } => self.streams.push(*counting),
            Work::Remove { stream } => self.streams.retain(|counting| counting.stream.id != stream),
            Work::Saved { stream, saved, commit_took, busy: _busy } => {
                self.saved(stream, saved, commit_took);
            }
            Work::SaveAll { busy: _busy } => return self.save_all(),
        }
        Ok(())
    }

    /// Marks what was sealed, so that nobody takes the work for done.
    fn note_seals(&mut self) {
        for counting in &mut self.streams {
            if counting.has_sealed() && counting.unsaved.is_none() {
                counting.unsaved = Some(self.shared.begin());
            }
        }
    }

    fn tick(&mut self, now_ms: u64, busy: Option<&Busy>) -> Result<(), GivenUp> {
        let shared = &self.shared;
        for counting in &mut self.streams {
            counting.advance(now_ms, shared)?;
            counting.note_clock(now_ms, shared);
        }
        self.note_seals();
        let step = self.shared.time.step_of(now_ms);
        for counting in &mut self.streams {
            if busy.is_some() || counting.pace.is_due(step, Instant::now()) {
                counting.refresh(&self.shared, &self.publisher);
            }
        }
        Ok(())
    }

    fn save_what_is_sealed(&mut self) -> Result<(), GivenUp> {
        let now = Instant::now();
        for counting in &mut self.streams {
            if counting.unsaved.is_some() && counting.may_save(now) {
                send_checkpoint(counting, &self.key, &self.shared, &self.committer)?;
            }
        }
        Ok(())
    }

    fn save_all(&mut self) -> Result<(), GivenUp> {
        for counting in &mut self.streams {
            if counting.saved.counted < counting.counted || counting.unsaved.is_some() {
                send_checkpoint(counting, &self.key, &self.shared, &self.committer)?;
            }
        }
        Ok(())
    }

    fn saved(&mut self, stream: StreamId, saved: Saved, commit_took: Duration) {
        let Some(counting) = self.streams.iter_mut().find(|counting| counting.stream.id == stream) else {
            return;
        };
        if counting.saved.id != saved.id {
            return;
        }
        if let Some(making_took) = counting.saving.take() {
            counting.save_after = Instant::now() + (making_took + commit_took) * (SAVE_SHARE - 1);
        }
    }
}

fn send_checkpoint(
    counting: &mut Counting,
    key: &StateKey,
    shared: &Shared,
    committer: &Sender<Request>,
) -> Result<(), GivenUp> {
    let checkpoint = counting.checkpoint(key, shared).ok_or(GivenUp)?;
    shared.health.heal(Ailment::Randomness);
    committer.send(Request::Checkpoint(checkpoint)).map_err(|_| GivenUp)
}

impl Counting {
    /// Publishes a view whose position alone has moved: everything in it was shown before.
    fn refresh(&mut self, shared: &Shared, publisher: &Sender<Shown>) {
        let position = self.sketch.position();
        let sealed_until = self.sketch.sealed_until();
        if position == self.shown_position || sealed_until != self.stream.shown_until() {
            return;
        }
        let cost = Duration::from_micros(self.stream.refresh_us.load(Ordering::Relaxed));
        self.pace.note_published(Instant::now(), cost);
        self.shown_position = position;
        let stream = Arc::clone(&self.stream);
        let view = self.sketch.view();
        let busy = shared.begin();
        // A publisher that is gone means that the engine stops.
        let _ = publisher.send(Shown { stream, view, sealed_until, busy });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was published before, whenever, and however long that took.
    #[test]
    fn where_the_clock_moves_a_stream_its_steps_alone_say_when_a_view_is_published() {
        let now = Instant::now();
        for (listed, every) in [(0, 1), (REFRESH_KEYS - 1, 1), (2 * REFRESH_KEYS, 3)] {
            let mut pace = Pace::new(true, listed, now);
            for step in 0..10 {
                for later in [0, 1, 3600].map(Duration::from_secs) {
                    assert_eq!(
                        pace.is_due(step, now + later),
                        step % every == 0,
                        "{listed} keys, step {step}"
                    );
                }
                pace.note_published(now, Duration::from_secs(step));
            }
        }
    }

    #[test]
    fn where_events_move_a_stream_views_that_cost_much_are_published_less_often() {
        let now = Instant::now();
        let mut pace = Pace::new(false, 0, now);
        assert!(pace.is_due(1, now));
        for (cost, pause) in [(0, REFRESH), (1, Duration::from_secs(u64::from(REFRESH_SHARE)))] {
            pace.note_published(now, Duration::from_secs(cost));
            assert!(!pace.is_due(1, now + pause - Duration::from_millis(1)), "{cost} s");
            assert!(pace.is_due(1, now + pause), "{cost} s");
        }
    }
}
