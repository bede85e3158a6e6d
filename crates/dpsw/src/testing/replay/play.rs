//! A story is played on a real sketch, and everything that it shows is noted.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::audit::transcript::write_answers;
use crate::error::{IngestError, StateError};
use crate::item::batch::Batch;
use crate::item::hash::StreamKey;
use crate::item::keys::Keys;
use crate::item::value::Kind;
use crate::noise::generator::Noise;
use crate::plan::structure::Plan;
use crate::secret::partial::{PartialCounters, PartialId};
use crate::store::memory::MemoryStore;
use crate::stream::freshness::FreshnessStore;
use crate::stream::sketch::{DpswSketch, Taken};
use crate::stream::state::{SavedState, StateKey};
use crate::stream::worker::Worker;
use crate::testing::replay::dice::Dice;
use crate::testing::replay::plans::{KEY_LEN_MAX, KEYS, STREAM_KEY, text};
use crate::testing::replay::story::{Event, Step, Story, What};
use crate::testing::replay::tape;
use crate::view::window_view::WindowView;

const STATE_KEY: [u8; 32] = [7; 32];

/// Everything that a stream shows.
#[derive(Default)]
pub(super) struct Shown {
    /// What happened and what was seen of it, in order.
    pub(super) notes: Vec<(String, Vec<u8>)>,
    /// Of each call how many events were counted, capped, late and early.
    pub(super) taken: Vec<[usize; 4]>,
    /// The position or time of each event.
    pub(super) places: Vec<u64>,
    /// Sealed counters by substream and range.
    pub(super) sealed: BTreeMap<(u64, usize), Vec<i32>>,
    /// Sealed counters that were seen to change.
    pub(super) changed: Vec<(u64, usize)>,
    /// Why a state did not come back.
    pub(super) refused: Option<String>,
}

/// Plays a story. Two streams with the same seed make the same choices, and draw the same noise on the same side alone.
pub(super) fn play(story: &Story, plan: &Plan, seed: u64, side: u64) -> Shown {
    let key = StreamKey::from_bytes(STREAM_KEY);
    let worker = Worker::new(plan.clone(), StreamKey::from_bytes(STREAM_KEY)).ok();
    let shown = Shown { places: vec![0; story.events.len()], ..Shown::default() };
    let is_unseen = false;
    let mut player = Player { plan, story, worker, dice: Dice::new(seed), side, shown, is_unseen };
    let mut sketch = DpswSketch::with_key(plan.clone(), key, player.noise());
    if let Some(items) = story.begun_for {
        sketch = sketch.begun_for(items).expect("a seed is enough");
    }
    player.play(sketch, &story.steps);
    player.shown
}

struct Player<'a> {
    plan: &'a Plan,
    story: &'a Story,
    worker: Option<Worker>,
    dice: Dice,
    side: u64,
    shown: Shown,
    is_unseen: bool,
}

impl Player<'_> {
    fn noise(&mut self) -> Noise {
        Noise::seeded(self.dice.word() ^ self.side)
    }

    fn note(&mut self, what: &str, seen: impl Into<Vec<u8>>) {
        if !self.is_unseen {
            self.shown.notes.push((what.to_owned(), seen.into()));
        }
    }

    /// What is left of the stream after these steps, unless it is over.
    fn play(&mut self, mut sketch: DpswSketch, steps: &[Step]) -> Option<DpswSketch> {
        for step in steps {
            match step {
                Step::Send(events) => self.send(&mut sketch, events.clone()),
                Step::Work { batch, times, events } => self.work(&mut sketch, *batch, times, events.clone()),
                Step::Clock(time) => self.advance(&mut sketch, *time),
                Step::Look { asks } => self.look(&sketch, *asks),
                Step::Dry(draws) => {
                    let seed = self.dice.word() ^ self.side;
                    sketch.set_noise(Noise::running_dry(seed, *draws));
                }
                Step::Restore => sketch = self.restore(sketch)?,
                Step::Lost(steps) => {
                    let state = self.checkpoint(&mut sketch);
                    self.lose(sketch, steps)?;
                    sketch = self.restored(&state)?;
                    sketch = self.play(sketch, steps)?;
                }
                Step::TwoLines { lost, seen, later } => {
                    sketch = self.two_lines(sketch, lost, seen, *later)?;
                }
                Step::Resume { later } => {
                    let (position, state) = (sketch.position(), self.save(sketch));
                    sketch = self.resumed(&state, position + later)?;
                }
                Step::Finish => {
                    self.finish(sketch);
                    return None;
                }
            }
            self.look(&sketch, false);
        }
        Some(sketch)
    }

    /// Plays steps of which nobody sees anything; a checkpoint is left of them.
    fn lose(&mut self, sketch: DpswSketch, steps: &[Step]) -> Option<SavedState> {
        let dice = self.dice.fork();
        let dice = std::mem::replace(&mut self.dice, dice);
        self.is_unseen = true;
        let state = tape::unseen(|| {
            let mut sketch = self.play(sketch, steps)?;
            Some(self.checkpoint(&mut sketch))
        });
        self.is_unseen = false;
        self.dice = dice;
        state
    }

    fn two_lines(
        &mut self,
        mut sketch: DpswSketch,
        lost: &[Step],
        seen: &[Step],
        later: u64,
    ) -> Option<DpswSketch> {
        let state = self.checkpoint(&mut sketch);
        let stale = self.lose(sketch, lost)?;
        let sketch = self.restored(&state)?;
        let sketch = self.play(sketch, seen)?;
        self.resumed(&stale, sketch.position() + later)
    }

    fn checkpoint(&mut self, sketch: &mut DpswSketch) -> SavedState {
        sketch.checkpoint(&StateKey::from_bytes(STATE_KEY)).expect("a state")
    }

    /// The state, whose length everybody may know.
    fn save(&mut self, sketch: DpswSketch) -> SavedState {
        let saved =
            sketch.save(&StateKey::from_bytes(STATE_KEY), &mut MemoryStore::default()).expect("a state");
        self.note("a state", format!("{} bytes, generation {}", saved.bytes.len(), saved.generation));
        saved
    }

    fn restore(&mut self, sketch: DpswSketch) -> Option<DpswSketch> {
        let state = self.save(sketch);
        self.restored(&state)
    }

    fn restored(&mut self, state: &SavedState) -> Option<DpswSketch> {
        let mut store = MemoryStore::default();
        store.note(state.id).expect("there is room");
        let key = StateKey::from_bytes(STATE_KEY);
        let restored = DpswSketch::restore(&state.bytes, &key, self.noise(), &mut store);
        self.came_back(restored)
    }

    fn resumed(&mut self, state: &SavedState, at: u64) -> Option<DpswSketch> {
        let key = StateKey::from_bytes(STATE_KEY);
        let resumed = DpswSketch::resume(&state.bytes, &key, self.noise(), at);
        self.came_back(resumed)
    }

    fn came_back(&mut self, sketch: Result<DpswSketch, StateError>) -> Option<DpswSketch> {
        sketch.map_err(|error| self.shown.refused = Some(error.to_string())).ok()
    }

    /// Sends events in batches of random sizes.
    fn send(&mut self, sketch: &mut DpswSketch, events: Range<usize>) {
        let mut taken = Some([0; 4]);
        let mut start = events.start;
        while start < events.end {
            let end = start + 1 + self.dice.below((events.end - start) as u64) as usize;
            let batch: Vec<usize> = (start..end).filter(|&event| self.story.events[event].is_there).collect();
            let is_null = |event: &usize| self.story.events[*event].what == What::Null;
            for run in batch.chunk_by(|one, next| is_null(one) == is_null(next)) {
                taken = taken.zip(self.send_run(sketch, run)).map(|(all, now)| sum(all, now));
            }
            start = end;
        }
        if !self.is_unseen {
            self.shown.taken.push(taken.unwrap_or_default());
        }
    }

    /// Sends a batch, and what is left of it if a seal in between found no randomness. Says what became of its events, unless
    /// that happened: where the calls begin depends on which items are null.
    fn send_run(&mut self, sketch: &mut DpswSketch, mut run: &[usize]) -> Option<[usize; 4]> {
        let mut is_whole = true;
        loop {
            self.place(sketch, run);
            let sent: Vec<Event> = run.iter().map(|&event| self.story.events[event]).collect();
            match with_batch(self.plan, &sent, |batch| sketch.extend(batch)) {
                Ok(Taken { counted, capped, late, early }) => {
                    return is_whole.then_some([counted, capped, late, early]);
                }
                Err(IngestError::Entropy { accepted, source }) => {
                    self.note("a batch", format!("{source} after {}", run[0] + accepted));
                    sketch.set_noise(self.noise());
                    (run, is_whole) = (&run[accepted..], false);
                }
                Err(error) => panic!("a batch of the plan: {error}"),
            }
            if run.is_empty() {
                return None;
            }
        }
    }

    fn place(&mut self, sketch: &DpswSketch, run: &[usize]) {
        let is_timed = self.plan.settings().window.time().is_some();
        for (&event, position) in run.iter().zip(sketch.position()..) {
            self.shown.places[event] = if is_timed { self.story.events[event].at } else { position };
        }
    }

    fn advance(&mut self, sketch: &mut DpswSketch, time: u64) {
        while let Err(error) = sketch.advance(time) {
            self.note("the clock", error.to_string());
            sketch.set_noise(self.noise());
        }
    }

    /// Two workers count their parts, one delivers twice, and the sketch absorbs all.
    fn work(&mut self, sketch: &mut DpswSketch, batch: u64, times: &Range<u64>, events: Range<usize>) {
        let middle = events.start + self.dice.below(events.len() as u64) as usize;
        for (partition, part) in
            [(0, events.start..middle), (1, middle..events.end), (0, events.start..middle)]
        {
            let id = PartialId { source: 0, batch, partition };
            for partial in self.count(id, times, part) {
                let substream = partial.substream();
                let partial =
                    PartialCounters::from_bytes(&partial.to_bytes(), self.plan).expect("partial counters");
                let became = sketch.absorb(partial);
                self.note("partial counters", format!("{substream} {became:?}"));
            }
        }
    }

    fn count(&mut self, id: PartialId, times: &Range<u64>, events: Range<usize>) -> Vec<PartialCounters> {
        let Some(worker) = &self.worker else { return Vec::new() };
        let there: Vec<usize> = events.filter(|&event| self.story.events[event].is_there).collect();
        for &event in &there {
            self.shown.places[event] = self.story.events[event].at;
        }
        let is_null = |event: &Event| event.what == What::Null;
        let sent: Vec<Event> = there.iter().map(|&event| self.story.events[event]).collect();
        let mut counting = worker.start(id, times.clone()).expect("a short range");
        for run in sent.chunk_by(|one, next| is_null(one) == is_null(next)) {
            with_batch(self.plan, run, |batch| worker.add(&mut counting, &[batch]))
                .expect("a batch of the plan");
        }
        let debug = format!("{counting:?}");
        let counted = worker.finish(counting);
        self.note("a worker", format!("{debug} {} {:?}", counted.partials.len(), counted.partials));
        if self.plan.has_public_totals() {
            self.note("a worker's times", format!("{:?} {:?}", counted.outside, counted.times));
        }
        counted.partials
    }

    fn finish(&mut self, mut sketch: DpswSketch) {
        let view = loop {
            match sketch.finish() {
                Ok(view) => break view,
                Err(error) => {
                    self.note("the end", format!("{error} {}", error.source));
                    sketch = *error.sketch;
                    sketch.set_noise(self.noise());
                }
            }
        };
        self.see(&view, true);
    }

    fn look(&mut self, sketch: &DpswSketch, asks: bool) {
        if self.is_unseen {
            return;
        }
        let place = (sketch.position(), sketch.sealed_until(), sketch.late_events());
        self.note("the sketch", format!("{place:?} {sketch:?}"));
        self.see(&sketch.view(), asks);
    }

    fn see(&mut self, view: &WindowView, asks: bool) {
        self.note("a view", view.to_bytes());
        if asks {
            self.note("answers", write_answers(view, &asked(self.plan)));
        }
        for sealed in view.sealed() {
            let (place, cells) = ((sealed.substream(), sealed.range()), sealed.sketch().cells());
            let known = self.shown.sealed.entry(place).or_insert_with(|| cells.clone());
            if *known != cells {
                self.shown.changed.push(place);
            }
        }
    }
}

fn sum(one: [usize; 4], other: [usize; 4]) -> [usize; 4] {
    std::array::from_fn(|index| one[index] + other[index])
}

/// The keys that are asked for.
fn asked(plan: &Plan) -> Keys {
    match plan.settings().domain.kind() {
        Kind::Integers => Keys::Range(KEYS),
        Kind::Bytes => (0..KEYS).map(text).collect::<Vec<_>>().into(),
    }
}

/// Gives events, all null or none, as a batch of the plan.
fn with_batch<T>(plan: &Plan, events: &[Event], take: impl FnOnce(Batch<'_>) -> T) -> T {
    let settings = plan.settings();
    let times: Vec<u64> = events.iter().map(|event| event.at).collect();
    let users: Vec<u64> = events.iter().map(|event| event.user).collect();
    let numbers: Vec<u64> = events.iter().map(|event| number(event.what)).collect();
    let texts: Vec<String> = events.iter().map(|event| word(event.what)).collect();
    let batch = match settings.domain.kind() {
        _ if events[0].what == What::Null => Batch::nulls(events.len()),
        Kind::Integers => Batch::integers(&numbers),
        Kind::Bytes => Batch::text(&texts),
    };
    let batch = if settings.window.time().is_some() { batch.at(&times) } else { batch };
    take(if settings.unit.per_substream().is_some() { batch.by(&users) } else { batch })
}

fn number(what: What) -> u64 {
    match what {
        What::Key(key) => key,
        What::Unlisted => KEYS + 1,
        What::Long => u64::MAX,
        What::Null => 0,
    }
}

fn word(what: What) -> String {
    match what {
        What::Key(key) => text(key),
        What::Unlisted => "no key".to_owned(),
        What::Long => "x".repeat(KEY_LEN_MAX as usize + 1),
        What::Null => String::new(),
    }
}
