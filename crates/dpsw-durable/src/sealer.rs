//! The sealer: takes each step once, seals with noise once, shows what is durable.

use std::collections::BTreeMap;

use dpsw::error::{PartialError, StoreError};
use dpsw::worker::PartialCounters;
use dpsw::{DpswSketch, FreshnessStore, Noise, Plan, SavedState, Settings, StateId, Unit, WindowView};

use crate::database::{Change, Meta, Store};
use crate::disk::Disk;
use crate::error::SealerError;
use crate::keys::SealerKeys;
use crate::marker::{Generation, Lineage, Marker, Standing};

/// The most steps that wait for a state: reading them back takes time.
const WAITING_MAX: usize = 64;
/// The number of the one stream in the marker.
const STREAM: u64 = 0;

/// The partial counters of one step of the engine. **Secret.**
#[derive(Default, PartialEq, Eq)]
pub struct Step {
    /// The bytes of partial counters, each with its substream.
    pub partials: Vec<(u64, Vec<u8>)>,
    /// Where the stream begins, if it has not begun.
    pub start: u64,
    /// Up to where events may be sealed: a public time. 0 leaves the clock where it is.
    pub watermark: u64,
    /// Events that the workers left out for being too late.
    pub late: u64,
    /// Events that the workers left out for lying too far ahead.
    pub early: u64,
}

/// Shows nothing: partial counters are exact.
impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Step")
    }
}

/// The fate of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It was taken before.
    Before,
    /// It waits for the next seal.
    Counted,
    /// Something new can be seen.
    Sealed,
}

/// The settings of a stream that begins.
pub struct Beginning<'a> {
    /// What must be the same whenever the state is opened again, by name.
    pub said: BTreeMap<String, String>,
    /// The plan, if there is no state yet.
    pub plan: &'a mut dyn FnMut() -> Result<Plan, Box<dyn std::error::Error + Send + Sync>>,
    /// Where noise comes from.
    pub noise: Noise,
}

impl std::fmt::Debug for Beginning<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beginning").field("said", &self.said).finish_non_exhaustive()
    }
}

/// One stream, counted by workers and sealed here.
///
/// Workers send exact counts of disjoint parts of the stream; noise is drawn here, once, when a substream is sealed. An engine such as
/// Spark repeats steps, so each is taken once, by its number, in one transaction with its counts. Between two seals a step is
/// kept as it came, which is cheap; a seal writes the whole state and forgets the steps before it.
///
/// What must stay true:
///
/// - Nothing is shown before it is durable, read back, and the marker has moved to its generation (PRIVACY.md: rules 8 and 9).
/// - A state that is older than what was shown gives up all that it held (rules 10 and 38).
/// - After any failure nobody knows what the sketch has that the disk has not: the sealer is broken until it is opened again.
/// - Where presence is private, the clock alone changes what is seen (rule 36).
pub struct Sealer {
    store: Store,
    keys: SealerKeys,
    meta: Meta,
    sketch: Sketch,
    /// What is durable and was read back.
    shown: WindowView,
    /// How many steps came after the state.
    waiting: usize,
}

enum Sketch {
    Running(Box<DpswSketch>),
    Finished,
    /// It may hold what is not durable.
    Broken(String),
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealer({})", self.store.name())
    }
}

impl Sealer {
    /// Goes on with the stream on this disk, or begins it.
    ///
    /// # Errors
    /// The disk is in use or damaged, the stream on it is another one, or nobody knows what was shown of it.
    pub fn open(
        disk: impl Disk,
        keys: SealerKeys,
        beginning: Beginning<'_>,
    ) -> Result<(Self, Option<String>), SealerError> {
        let store = Store::open(Box::new(disk), keys.cipher())?;
        match store.meta()? {
            None => Self::begin(store, keys, beginning).map(|sealer| (sealer, None)),
            Some(meta) => Self::go_on(store, keys, meta, beginning),
        }
    }

    fn begin(store: Store, keys: SealerKeys, beginning: Beginning<'_>) -> Result<Self, SealerError> {
        if store.has_marker()? {
            return Err(SealerError::Marker(format!(
                "there is no state in {}, but its marker says that a stream was shown; bring the state back, or remove the marker as \
                well to begin a new stream, which spends its epsilon on the same events again",
                store.name()
            )));
        }
        let plan = (beginning.plan)().map_err(|error| SealerError::Storage(error.to_string()))?;
        let mut sketch = DpswSketch::with_key(plan, keys.stream(), beginning.noise);
        let state = sketch.checkpoint(&keys.state())?;
        let meta = Meta {
            lineage: Lineage::draw()?,
            said: beginning.said,
            engine: None,
            last: None,
            has_gap: false,
            late: 0,
            early: 0,
            is_finished: false,
        };
        store.commit(&meta, Change::State(&state.bytes))?;
        let mut sealer = Self::running_from(store, keys, meta, sketch);
        sealer.catch_up(&Standing::New)?;
        Ok(sealer)
    }

    fn running_from(store: Store, keys: SealerKeys, meta: Meta, sketch: DpswSketch) -> Self {
        let shown = sketch.view();
        Self { store, keys, meta, sketch: Sketch::Running(Box::new(sketch)), shown, waiting: 0 }
    }

    fn go_on(
        store: Store,
        keys: SealerKeys,
        meta: Meta,
        beginning: Beginning<'_>,
    ) -> Result<(Self, Option<String>), SealerError> {
        same(&store.name(), &meta.said, &beginning.said)?;
        match store.standing(&meta)? {
            Standing::Older(_) if meta.is_finished => Err(SealerError::Marker(format!(
                "the state in {} is older than what was shown of this stream, and was over: begin a new stream with another \
                state, which spends its epsilon on the same events again",
                store.name()
            ))),
            Standing::Older(marker) => {
                let sealer = Self::go_on_after(&marker, store, keys, meta, beginning.noise)?;
                let warning = "the state is older than what was shown of it, as if brought back from a backup: all that it held \
                    is given up, and the stream goes on after what was shown";
                Ok((sealer, Some(warning.to_owned())))
            }
            standing => Ok((Self::go_on_from_newest(&standing, store, keys, meta, beginning.noise)?, None)),
        }
    }

    /// Nothing newer than the state was ever shown: it is restored, and the steps after it are counted again.
    fn go_on_from_newest(
        standing: &Standing,
        store: Store,
        keys: SealerKeys,
        meta: Meta,
        noise: Noise,
    ) -> Result<Self, SealerError> {
        if meta.is_finished {
            let shown = WindowView::from_bytes(&record(&store, "view")?)?;
            let mut sealer = Self { store, keys, meta, sketch: Sketch::Finished, shown, waiting: 0 };
            sealer.catch_up(standing)?;
            return Ok(sealer);
        }
        let state = record(&store, "state")?;
        let sketch = DpswSketch::restore(&state, &keys.state(), noise, &mut Newest)?;
        let mut sealer = Self::running_from(store, keys, meta, sketch);
        sealer.catch_up(standing)?;
        for (_, step) in sealer.store.steps()? {
            sealer.count(&step)?;
            sealer.waiting += 1;
        }
        sealer.shown = sealer.running()?.view();
        Ok(sealer)
    }

    /// The state is older than what was shown: all that it held is given up.
    fn go_on_after(
        marker: &Marker,
        store: Store,
        keys: SealerKeys,
        meta: Meta,
        noise: Noise,
    ) -> Result<Self, SealerError> {
        let until = marker.shown.get(&STREAM).copied().unwrap_or(0);
        let sketch = DpswSketch::resume(&record(&store, "state")?, &keys.state(), noise, until)?;
        let meta = Meta { has_gap: true, ..meta };
        let mut sealer = Self::running_from(store, keys, meta, sketch);
        sealer.release_state(marker.generation)?;
        Ok(sealer)
    }

    /// The marker is moved where the process stopped between the commit and that. From now on the database is not new: without
    /// its marker it is one from a backup.
    fn catch_up(&mut self, standing: &Standing) -> Result<(), SealerError> {
        if matches!(standing, Standing::New | Standing::Unshown) {
            self.move_marker(self.meta.lineage.replaces)?;
        }
        if self.meta.lineage.replaces.is_none() {
            self.meta.lineage = self.meta.lineage.no_longer_new();
            self.store.commit(&self.meta, Change::None)?;
        }
        Ok(())
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.shown.plan()
    }

    /// What can be seen now: all of it is durable.
    #[must_use]
    pub fn view(&self) -> WindowView {
        self.shown.clone()
    }

    /// The keys, for workers.
    #[must_use]
    pub fn keys(&self) -> &SealerKeys {
        &self.keys
    }

    /// The last step that was taken.
    #[must_use]
    pub fn last_step(&self) -> Option<u64> {
        self.meta.last
    }

    /// Events before this time are late.
    ///
    /// # Errors
    /// The stream is over, or an earlier step failed.
    pub fn sealed_until(&self) -> Result<u64, SealerError> {
        self.running().map(DpswSketch::sealed_until)
    }

    /// Whether the stream is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.meta.is_finished
    }

    /// How many events came too late and too early; `None` where that is private.
    #[must_use]
    pub fn left_out(&self) -> Option<(u64, u64)> {
        let is_public = self.plan().settings().unit != Unit::AddRemove;
        is_public.then_some((self.meta.late, self.meta.early))
    }

    fn running(&self) -> Result<&DpswSketch, SealerError> {
        match &self.sketch {
            Sketch::Running(sketch) => Ok(sketch),
            Sketch::Finished => Err(SealerError::Finished),
            Sketch::Broken(why) => Err(SealerError::Broken(why.clone())),
        }
    }

    fn running_mut(&mut self) -> Result<&mut DpswSketch, SealerError> {
        self.running()?;
        match &mut self.sketch {
            Sketch::Running(sketch) => Ok(sketch),
            _ => Err(SealerError::Finished),
        }
    }

    /// Whether steps of this engine, whose numbers begin with 0, go with the state.
    ///
    /// # Errors
    /// Those of another one were taken before.
    pub fn check_engine(&mut self, engine: &str) -> Result<(), SealerError> {
        match &self.meta.engine {
            Some(was) if was != engine => {
                Err(SealerError::Engine { was: was.clone(), got: engine.to_owned() })
            }
            Some(_) => Ok(()),
            None => {
                self.meta.engine = Some(engine.to_owned());
                Ok(())
            }
        }
    }

    /// Takes a step of the engine, once: durable when it returns.
    ///
    /// # Errors
    /// The step does not follow the last one, what workers sent does not fit, or it cannot be made durable. Then nothing of it was
    /// shown, and the sealer must be opened again.
    pub fn take(&mut self, engine: &str, number: u64, step: &Step) -> Result<Taken, SealerError> {
        self.running()?;
        self.check_engine(engine)?;
        if self.meta.last.is_some_and(|last| number <= last) {
            return Ok(Taken::Before);
        }
        let wanted = self.meta.last.map_or(0, |last| last + 1);
        if number != wanted && !self.meta.has_gap {
            return Err(SealerError::Gap { wanted, got: number });
        }
        let taken = self.try_take(number, step);
        self.check(taken)
    }

    fn try_take(&mut self, number: u64, step: &Step) -> Result<Taken, SealerError> {
        let before = self.sealed_until()?;
        self.count(step)?;
        self.meta.last = Some(number);
        self.meta.has_gap = false;
        if self.left_out().is_some() {
            self.meta.late += step.late;
            self.meta.early += step.early;
        }
        let is_sealed = self.sealed_until()? != before;
        if is_sealed || WAITING_MAX <= self.waiting {
            self.release_state(self.meta.lineage.generation)?;
        } else {
            self.store.commit(&self.meta, Change::Wait(number, step))?;
            self.waiting += 1;
        }
        // Where presence is private, so is whether a step came: the clock alone changes what is seen.
        if is_sealed || self.left_out().is_some() {
            self.shown = self.running()?.view();
        }
        Ok(if is_sealed { Taken::Sealed } else { Taken::Counted })
    }

    /// Seals what the clock of whoever runs the sealer has passed, whether steps come or not. The clock has instants: the
    /// multiples of a grid. Each range is sealed as of the first instant at or after its end, and in between nothing moves,
    /// also when this is called late or seldom: what is seen then follows from plan and clock alone. PRIVACY.md: rule 36.
    ///
    /// # Errors
    /// See [`take`](Self::take).
    ///
    /// # Panics
    /// The grid is 0.
    pub fn follow(&mut self, watermark: u64, grid: u64) -> Result<Taken, SealerError> {
        let before = self.sealed_until()?;
        let moved = self.come_to(watermark / grid * grid, grid);
        let taken = moved.and_then(|()| {
            if self.sealed_until()? == before {
                return Ok(Taken::Counted);
            }
            self.release_state(self.meta.lineage.generation)?;
            self.shown = self.running()?.view();
            Ok(Taken::Sealed)
        });
        self.check(taken)
    }

    fn come_to(&mut self, last: u64, grid: u64) -> Result<(), SealerError> {
        let sketch = self.running_mut()?;
        // Where the stream begins.
        if sketch.position() == 0 {
            sketch.advance(last)?;
        }
        // After a long pause, what would leave the retention at once is passed over.
        let Settings { window, retention, .. } = sketch.plan().settings();
        let retained = window.len().saturating_mul(u64::from(*retention) + 1);
        let kept = last.saturating_sub(retained) / grid * grid;
        loop {
            let due = sketch.next_boundary().next_multiple_of(grid).max(kept);
            if last < due {
                return Ok(());
            }
            sketch.advance(due)?;
        }
    }

    /// Ends the stream: everything is sealed.
    ///
    /// # Errors
    /// See [`take`](Self::take).
    pub fn finish(&mut self, watermark: u64) -> Result<(), SealerError> {
        let finished = self.try_finish(watermark);
        self.check(finished)
    }

    fn try_finish(&mut self, watermark: u64) -> Result<(), SealerError> {
        self.running_mut()?.advance(watermark)?;
        let view = match std::mem::replace(&mut self.sketch, Sketch::Finished) {
            Sketch::Running(sketch) => sketch.finish().map_err(|error| error.source)?,
            _ => return Err(SealerError::Finished),
        };
        let from = self.meta.lineage.generation;
        self.meta.lineage = self.meta.lineage.after(from)?;
        let meta = Meta { is_finished: true, ..self.meta.clone() };
        self.store.commit(&meta, Change::View(&view.to_bytes()))?;
        let view = WindowView::from_bytes(&record(&self.store, "view")?)?;
        self.mark(end_of(&view), Some(from))?;
        self.meta = meta;
        self.shown = view;
        Ok(())
    }

    /// After a failure nobody knows what the sketch has that the disk has not.
    fn check<T>(&mut self, result: Result<T, SealerError>) -> Result<T, SealerError> {
        result.inspect_err(|error| self.sketch = Sketch::Broken(error.to_string()))
    }

    /// Counts a step in the order of substreams. Partial counters that come too late or too early are left out, each by itself:
    /// their workers knew less of the clock.
    fn count(&mut self, step: &Step) -> Result<(), SealerError> {
        let plan = self.plan().clone();
        let sketch = self.running_mut()?;
        step.advance(sketch, step.start)?;
        let mut order: Vec<&(u64, Vec<u8>)> = step.partials.iter().collect();
        order.sort_by_key(|(substream, _)| *substream);
        for (substream, bytes) in order {
            step.advance(sketch, substream.saturating_mul(plan.substream_len()))?;
            match sketch.absorb(PartialCounters::from_bytes(bytes, &plan)?) {
                Err(PartialError::Late { .. } | PartialError::Early { .. }) => {}
                absorbed => drop(absorbed?),
            }
        }
        // Steps are taken once by their numbers.
        sketch.forget_absorbed();
        step.advance(sketch, step.watermark)
    }

    /// Commits the state, reads it back, and moves the marker on from there: then it may be shown.
    fn release_state(&mut self, from: Generation) -> Result<(), SealerError> {
        let key = self.keys.state();
        let SavedState { bytes, .. } = self.running_mut()?.checkpoint(&key)?;
        self.meta.lineage = self.meta.lineage.after(from)?;
        self.store.commit(&self.meta, Change::State(&bytes))?;
        self.waiting = 0;
        if record(&self.store, "state")? != bytes {
            return Err(SealerError::Damaged {
                what: self.store.name(),
                reason: "it does not have what was written to it".to_owned(),
            });
        }
        self.move_marker(Some(from))
    }

    fn move_marker(&mut self, from: Option<Generation>) -> Result<(), SealerError> {
        let until = match &self.sketch {
            Sketch::Running(sketch) => sketch.position().max(sketch.sealed_until()),
            _ => end_of(&self.shown),
        };
        self.mark(until, from)
    }

    fn mark(&self, until: u64, from: Option<Generation>) -> Result<(), SealerError> {
        let marker = Marker { shown: [(STREAM, until)].into(), ..Marker::new(self.meta.lineage) };
        self.store.mark(&marker, from)
    }
}

/// Up to where a view of a stream that is over shows it.
fn end_of(view: &WindowView) -> u64 {
    view.finished().unwrap_or(view.covered().end)
}

fn record(store: &Store, name: &str) -> Result<Vec<u8>, SealerError> {
    store.record(name)?.ok_or_else(|| SealerError::Damaged {
        what: format!("the {name}"),
        reason: "it is missing".to_owned(),
    })
}

fn same(
    state: &str,
    was: &BTreeMap<String, String>,
    asked: &BTreeMap<String, String>,
) -> Result<(), SealerError> {
    let none = || "nothing".to_owned();
    for name in was.keys().chain(asked.keys()) {
        let was = was.get(name);
        let asked = asked.get(name);
        if was != asked {
            let [was, asked] = [was, asked].map(|text| text.cloned().unwrap_or_else(none));
            return Err(SealerError::Other { state: state.to_owned(), name: name.clone(), was, asked });
        }
    }
    Ok(())
}

/// The marker has said that nothing newer than this state was ever shown.
struct Newest;

impl FreshnessStore for Newest {
    fn note(&mut self, _id: StateId) -> Result<(), StoreError> {
        Err(StoreError::new("states of a sealer are noted by its marker"))
    }

    fn consume(&mut self, _id: StateId) -> Result<bool, StoreError> {
        Ok(true)
    }
}

impl Step {
    /// Moves the clock of a sketch to this time, and not beyond the watermark.
    fn advance(&self, sketch: &mut DpswSketch, time: u64) -> Result<(), SealerError> {
        if self.watermark != 0 {
            sketch.advance(time.min(self.watermark))?;
        }
        Ok(())
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [self.start, self.watermark, self.late, self.early] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for (substream, partial) in &self.partials {
            bytes.extend_from_slice(&substream.to_le_bytes());
            bytes.extend_from_slice(&(partial.len() as u64).to_le_bytes());
            bytes.extend_from_slice(partial);
        }
        bytes
    }

    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut step = Self {
            partials: Vec::new(),
            start: take_word(&mut bytes)?,
            watermark: take_word(&mut bytes)?,
            late: take_word(&mut bytes)?,
            early: take_word(&mut bytes)?,
        };
        while !bytes.is_empty() {
            let substream = take_word(&mut bytes)?;
            let len = take_word(&mut bytes)?;
            let (partial, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
            bytes = rest;
            step.partials.push((substream, partial.to_vec()));
        }
        Some(step)
    }
}

fn take_word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}
