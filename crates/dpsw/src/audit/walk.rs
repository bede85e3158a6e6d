//! Walks through all that a stream can meet, on two neighbours side by side: late and early events, clocks that jump,
//! saved states, batches of random sizes, the end of the stream. What they show besides sealed counters must be equal, to the last byte.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::audit::feed::{
    Arrival, Choices, is_callers, restore_state, save_state, send_batch, start_sketch, state_key, with_batch,
};
use crate::audit::report::AuditError;
use crate::audit::tables::Tables;
use crate::audit::tally::{Tally, unit_distance};
use crate::audit::tiny::{Size, tiny_keys, tiny_settings};
use crate::audit::transcript::{answers_agree, blank_counters, strip_slices, write_spans};
use crate::error::StateError;
use crate::item::batch::Batch;
use crate::item::hash::StreamKey;
use crate::item::keys::Keys;
use crate::noise::generator::Noise;
use crate::noise::law::Law;
use crate::plan::settings::{Clock, Method, NoiseChoice, Settings, TunedMethod, Unit};
use crate::plan::structure::Plan;
use crate::privacy::parameters::Epsilon;
use crate::secret::partial::{PartialCounters, PartialId};
use crate::stream::sketch::DpswSketch;
use crate::stream::worker::Worker;
use crate::view::window_view::WindowView;

/// More counters than the sampler takes at a time.
const CELLS: u32 = 1_100;
/// Pairs of neighbours, each with another walk: with noise, and without it, where nothing is asked.
const WALKS: usize = 3;
const QUIET_WALKS: usize = 8;
/// Stretches of a walk.
const STRETCHES: usize = 24;
/// The stretches after which the stream is saved and restored, and saved and given up.
const RESTORED: usize = 8;
const RESUMED: usize = 16;
/// Stretches from one time that all questions are asked to the next.
const ASKED_EVERY: usize = 6;
/// What workers count at a time.
const WORKED: u64 = 6;
/// Users, and keys that most events have.
const USERS: u64 = 2;
const FEW_KEYS: u64 = 6;
/// At this many scales of noise every draw is zero: another one has probability 2 exp(-100).
const QUIET: f64 = 100.0;

const HASH_KEY: [u8; 32] = [0; 32];

/// The next operation of a walk.
#[derive(Debug, Clone)]
enum WalkStep {
    /// These arrive, whatever their times.
    Send(Vec<Arrival>),
    /// Workers count.
    Work(Work),
    /// The caller's clock is set.
    Clock(u64),
    /// Somebody looks, and asks or not.
    Look { asks: bool },
    /// The stream is saved and goes on.
    Restore,
    /// The stream is saved, and goes on this much later, without what was open.
    Resume(u64),
    /// The stream is over.
    Finish,
}

/// The part of a batch that workers count: those in the range.
#[derive(Debug, Clone)]
struct Work {
    batch: u64,
    range: Range<u64>,
    arrivals: Vec<Arrival>,
}

/// Everything that one walk showed.
#[derive(Default)]
struct WalkSeen {
    /// At each look, everything but the counters and what follows from them.
    public: Vec<(Vec<u8>, String)>,
    /// How long each saved state was, and before it how long what had been released.
    states: Vec<[usize; 2]>,
    /// Which keys were cut into slices or pinned, and what those held.
    tables: Tables,
    /// By substream and range.
    sealed: BTreeMap<(u64, usize), Vec<i32>>,
}

/// Walks with a plan of the real calibration, and with one whose noise is zero.
pub(super) fn check_walks(
    settings: &Settings,
    choices: &mut Choices,
    tally: &mut Tally,
) -> Result<(), AuditError> {
    let plan = Plan::new(settings.clone())?;
    let columns = CELLS.div_ceil(plan.shape().rows).max(Size::TINY.columns);
    // Nobody is pinned before as many substreams are sealed as can be open.
    let lateness = if 0 < plan.pinned() { 12 } else { 60 };
    let size = Size { columns, substreams: 5, substream_len: 24, lateness, retention: 3 };
    let small = tiny_settings(settings, size)?;
    let keys = tiny_keys(&settings.domain, columns);
    let real = Walk::new(Plan::new(small.clone())?, &keys, true);
    for walk in 0..WALKS {
        real.compare_neighbours(is_over(walk), choices, tally)?;
    }
    if let Some(plan) = quiet_plan(&small)? {
        let quiet = Walk::new(plan, &keys, false);
        for walk in 0..QUIET_WALKS {
            let ([first, second], touched) = quiet.compare_neighbours(is_over(walk), choices, tally)?;
            tally.exceeded += quiet.count_exceeded(&first, &second, touched);
        }
    }
    Ok(())
}

/// Every other walk ends with the stream.
fn is_over(walk: usize) -> bool {
    walk.is_multiple_of(2)
}

/// The same plan with a budget so large that every draw is zero; Gaussian noise never is.
fn quiet_plan(settings: &Settings) -> Result<Option<Plan>, AuditError> {
    let Some(Method::Tuned(method)) = &settings.method else { return Ok(None) };
    let method = Some(Method::Tuned(TunedMethod { noise: NoiseChoice::Laplace, ..method.clone() }));
    let with = |epsilon: f64| -> Result<Plan, AuditError> {
        let epsilon = Epsilon::new(epsilon)?;
        Ok(Plan::new(Settings { epsilon, method: method.clone(), ..settings.clone() })?)
    };
    // Scales are proportional to 1/epsilon.
    let Law::Laplace { scale } = with(1.0)?.ranges()[0].law() else { return Ok(None) };
    Ok(Some(with(QUIET * scale.to_f64())?))
}

struct Walk {
    plan: Plan,
    keys: Keys,
    /// Where the plan has workers.
    worker: Option<Worker>,
    asks: bool,
}

impl Walk {
    fn new(plan: Plan, keys: &Keys, asks: bool) -> Self {
        let worker = Worker::new(plan.clone(), StreamKey::from_bytes(HASH_KEY)).ok();
        Self { plan, keys: keys.clone(), worker, asks }
    }

    /// One walk on two neighbours.
    fn compare_neighbours(
        &self,
        is_over: bool,
        choices: &mut Choices,
        tally: &mut Tally,
    ) -> Result<([WalkSeen; 2], u64), AuditError> {
        let first = self.choose_steps(is_over, choices);
        let (second, touched) = self.make_neighbour(&first, choices);
        let seen = [self.play_steps(&first, choices, tally)?, self.play_steps(&second, choices, tally)?];
        let pairs = seen[0].public.iter().zip(&seen[1].public);
        tally.exposed += pairs.filter(|(one, other)| one != other).count() as u64;
        // The length of a state may follow from what is released, not from what is open (PRIVACY.md: rule 29).
        let states = seen[0].states.iter().zip(&seen[1].states);
        tally.exposed +=
            states.filter(|(one, other)| one[0] == other[0] && one[1] != other[1]).count() as u64;
        Ok((seen, touched))
    }

    fn choose_steps(&self, is_over: bool, choices: &mut Choices) -> Vec<WalkStep> {
        let len = self.plan.substream_len();
        let (mut steps, mut clock) = (Vec::new(), 0);
        for stretch in 1..=STRETCHES {
            let by_workers = self.worker.is_some() && choices.coin();
            let count = if by_workers { WORKED } else { 1 + len + len / 4 };
            let arrivals = self.choose_arrivals(clock, count, choices);
            let around = clock..clock + len;
            if is_callers(&self.plan) {
                let jump =
                    if choices.below(self.jumps_every()) == 0 { 2 * self.plan.retained_len() } else { len };
                clock += choices.below(jump);
            }
            clock = self.clock_after(&arrivals).unwrap_or(clock).max(clock);
            steps.push(match by_workers {
                true => WalkStep::Work(Work { batch: stretch as u64, range: around, arrivals }),
                false => WalkStep::Send(arrivals),
            });
            // One time in four the clock is set back, which must open nothing again (PRIVACY.md: rule 6).
            steps.push(WalkStep::Clock(clock.saturating_sub(choices.below(4) / 3 * len)));
            steps.push(WalkStep::Look { asks: self.asks && stretch % ASKED_EVERY == 0 });
            if stretch == RESTORED {
                steps.push(WalkStep::Restore);
            }
            if stretch == RESUMED {
                let later = choices.below(len);
                steps.push(WalkStep::Resume(later));
                clock = (clock + later).next_multiple_of(len);
            }
        }
        if is_over {
            steps.extend([
                WalkStep::Clock(clock),
                WalkStep::Send(vec![self.choose_farthest(clock, choices)]),
                WalkStep::Finish,
            ]);
        }
        steps
    }

    /// In how many stretches the clock jumps once on average: rarely where keys have to be pinned in between.
    fn jumps_every(&self) -> u64 {
        if 0 < self.plan.pinned() { STRETCHES as u64 } else { 8 }
    }

    /// An arrival as far ahead as one can be that is still taken.
    fn choose_farthest(&self, clock: u64, choices: &mut Choices) -> Arrival {
        let len = self.plan.substream_len();
        let at = (clock / len + self.plan.open_substreams_max()) * len - 1;
        Arrival { at, user: choices.below(USERS), key: Some(choices.below(FEW_KEYS) as usize) }
    }

    /// Some arrivals: on time, too late and too early.
    fn choose_arrivals(&self, clock: u64, count: u64, choices: &mut Choices) -> Vec<Arrival> {
        let len = self.plan.substream_len();
        let lateness = self.plan.settings().window.time().map_or(0, |time| time.lateness);
        let is_counted = self.plan.settings().window.time().is_none();
        let is_cut = self.plan.has_slices();
        let mut arrival = |place: u64| {
            let at = match choices.below(12) {
                _ if is_counted => clock + place,
                0 => clock.saturating_sub(lateness + choices.below(3 * len)),
                1 => clock + lateness + choices.below(3 * len),
                2..5 => clock.saturating_sub(choices.below(lateness + 1)),
                _ => clock + choices.below(len),
            };
            let key = match choices.below(10) {
                0 => None,
                1 => Some(choices.below(self.keys.len() as u64)),
                // Some of them far more often than others.
                _ if is_cut => Some(choices.below(FEW_KEYS) * choices.below(FEW_KEYS) / FEW_KEYS),
                _ => Some(choices.below(FEW_KEYS)),
            };
            Arrival { at, user: choices.below(USERS), key: key.map(|key| key as usize) }
        };
        (0..count).map(&mut arrival).collect()
    }

    /// Where the stream stands after these, unless the caller's clock says it.
    fn clock_after(&self, arrivals: &[Arrival]) -> Option<u64> {
        let newest = arrivals.iter().map(|one| one.at).max()?;
        match self.plan.settings().window.time() {
            None => Some(newest + 1),
            Some(time) => (time.clock == Clock::Events).then(|| newest.saturating_sub(time.lateness)),
        }
    }

    /// The same steps with another item at one event, without it, or with other items of one user in one stretch; and
    /// in how many substreams they may differ.
    fn make_neighbour(&self, steps: &[WalkStep], choices: &mut Choices) -> (Vec<WalkStep>, u64) {
        let mut steps = steps.to_vec();
        let unit = self.plan.settings().unit;
        let mut stretches: Vec<&mut Vec<Arrival>> =
            steps.iter_mut().filter_map(WalkStep::arrivals_mut).collect();
        let chosen = choices.below(stretches.len() as u64) as usize;
        // At the end of a stream half of the time the one that lies far ahead, all by itself.
        let last = Some(stretches.len() - 1).filter(|&last| last == STRETCHES && choices.coin());
        let stretch = &mut stretches[last.unwrap_or(chosen)];
        let one = choices.below(stretch.len() as u64) as usize;
        // Half of the time the earliest one, which is likely to be late.
        let earliest = (0..stretch.len()).min_by_key(|&index| stretch[index].at);
        let one = earliest.filter(|_| choices.coin()).unwrap_or(one);
        let (user, to_null) = (stretch[one].user, choices.coin());
        let mut substreams = BTreeSet::new();
        for (index, arrival) in stretch.iter_mut().enumerate() {
            let is_changed = index == one || (unit.per_substream().is_some() && arrival.user == user);
            if is_changed {
                let other = Some(choices.below(self.keys.len() as u64) as usize);
                arrival.key = other.filter(|_| unit != Unit::AddRemove && !to_null);
                substreams.insert(arrival.at / self.plan.substream_len());
            }
        }
        (steps, substreams.len() as u64)
    }

    fn play_steps(
        &self,
        steps: &[WalkStep],
        choices: &mut Choices,
        tally: &mut Tally,
    ) -> Result<WalkSeen, AuditError> {
        let mut sketch = start_sketch(&self.plan, HASH_KEY)?;
        let mut seen = WalkSeen::default();
        for step in steps {
            match step {
                WalkStep::Send(arrivals) => {
                    for batch in choices.cut_batches(arrivals) {
                        send_batch(&mut sketch, &self.keys, batch)?;
                    }
                }
                WalkStep::Work(work) => {
                    // Neighbours must agree on what becomes of each delivery (PRIVACY.md: rule 28).
                    let became = self.deliver_work(&mut sketch, work, choices, tally)?;
                    seen.public.push((Vec::new(), became));
                }
                WalkStep::Clock(time) if is_callers(&self.plan) => sketch.advance(*time)?,
                WalkStep::Clock(_) => {}
                WalkStep::Look { asks } => {
                    let place = format!("{:?} {:?}", sketch.position(), sketch.late_events());
                    self.note_view(&sketch.view(), place, *asks, &mut seen, tally);
                }
                WalkStep::Finish => {
                    match sketch.finish() {
                        Ok(view) => self.note_view(&view, String::new(), self.asks, &mut seen, tally),
                        Err(_) => tally.lost += 1,
                    }
                    return Ok(seen);
                }
                WalkStep::Restore | WalkStep::Resume(_) => {
                    let (released, position) = (released_len(&sketch), sketch.position());
                    let state = save_state(sketch)?;
                    seen.states.push([released, state.len()]);
                    let Ok(restored) = go_on(&state, step, position) else {
                        tally.lost += 1;
                        return Ok(seen);
                    };
                    // A resumed stream has given up all that it sealed and decided (PRIVACY.md: rule 38).
                    if let WalkStep::Resume(_) = step {
                        seen.tables.resume_at(restored.position() / self.plan.substream_len());
                    }
                    sketch = restored;
                }
            }
        }
        Ok(seen)
    }

    /// Two workers count their parts, one delivers twice, and the sketch absorbs all. Says what became of each delivery.
    fn deliver_work(
        &self,
        sketch: &mut DpswSketch,
        work: &Work,
        choices: &mut Choices,
        tally: &mut Tally,
    ) -> Result<String, AuditError> {
        let Some(worker) = &self.worker else { return Ok(String::new()) };
        let (one, other) = work.arrivals.split_at(choices.below(WORKED) as usize);
        let mut became = String::new();
        // A part that is delivered twice must count once (PRIVACY.md: rule 11).
        for (partition, part) in [(0, one), (1, other), (0, one)] {
            let id = PartialId { source: 0, batch: work.batch, partition };
            for partial in self.count_part(worker, id, &work.range, part)? {
                match PartialCounters::from_bytes(&partial.to_bytes(), &self.plan) {
                    Ok(partial) => {
                        became += &format!("{} {:?} ", partial.substream(), sketch.absorb(partial));
                    }
                    Err(_) => tally.lost += 1,
                }
            }
        }
        Ok(became)
    }

    /// What a worker makes of its part: null items under a number of their own.
    fn count_part(
        &self,
        worker: &Worker,
        id: PartialId,
        range: &Range<u64>,
        part: &[Arrival],
    ) -> Result<Vec<PartialCounters>, AuditError> {
        let (items, nulls): (Vec<Arrival>, Vec<Arrival>) = part.iter().partition(|one| one.key.is_some());
        let mut partials =
            with_batch(&self.keys, &items, |batch| worker.count(id, range.clone(), batch))?.partials;
        if self.plan.settings().unit != Unit::AddRemove {
            let times: Vec<u64> = nulls.iter().map(|one| one.at).collect();
            let id = PartialId { source: id.source + 1, ..id };
            // An id is absorbed once, so nulls need an id of their own.
            let nulls = worker.count(id, range.clone(), Batch::nulls(times.len()).at(&times))?;
            partials.extend(nulls.partials);
        }
        Ok(partials)
    }

    /// Looks at a view; `public` is what the stream itself says.
    fn note_view(
        &self,
        view: &WindowView,
        mut public: String,
        asks: bool,
        seen: &mut WalkSeen,
        tally: &mut Tally,
    ) {
        for sealed in view.sealed() {
            let cells = sealed.sketch().cells();
            let known =
                seen.sealed.entry((sealed.substream(), sealed.range())).or_insert_with(|| cells.clone());
            tally.altered += u64::from(*known != cells);
        }
        let is_cut = self.plan.has_slices();
        let loaded = (asks || is_cut).then(|| WindowView::from_bytes(&view.to_bytes()).ok());
        if is_cut {
            // Bytes hold nothing open.
            tally.misled += loaded.iter().flatten().map(|loaded| seen.tables.check_view(loaded)).sum::<u64>();
        }
        let stripped = strip_slices(view);
        if asks {
            public += &write_spans(&stripped, &self.keys);
            tally.unsaid += u64::from(!answers_agree(view, loaded.flatten().as_ref(), &self.keys));
        }
        seen.public.push((blank_counters(&stripped), public));
    }

    /// How often neighbours' exact counters differ by more than the noise is made for: in one substream, or in all
    /// together; the changed events touch `touched` substreams.
    fn count_exceeded(&self, first: &WalkSeen, second: &WalkSeen, touched: u64) -> u64 {
        let rows = u64::from(self.plan.shape().rows);
        let (most, substreams) = match self.plan.settings().unit {
            Unit::ReplaceOne => (2 * rows, 1),
            Unit::AddRemove => (rows, 1),
            Unit::Users { per_substream } => (2 * rows * u64::from(per_substream), touched),
        };
        let distances = if self.plan.has_slices() {
            first.tables.substream_distances(&second.tables)
        } else {
            let pairs =
                first.sealed.iter().filter_map(|(place, cells)| Some((cells, second.sealed.get(place)?)));
            pairs.map(|(one, other)| unit_distance(one, other)).collect()
        };
        let beyond = distances.iter().filter(|&&distance| most < distance).count() as u64;
        let strays = first.tables.count_strays() + second.tables.count_strays();
        beyond + strays + u64::from(most * substreams < distances.iter().sum())
    }
}

impl WalkStep {
    fn arrivals_mut(&mut self) -> Option<&mut Vec<Arrival>> {
        match self {
            Self::Send(arrivals) | Self::Work(Work { arrivals, .. }) => Some(arrivals),
            _ => None,
        }
    }
}

/// How much is released, and which keys of the next substream are cut finely follows from that.
fn released_len(sketch: &DpswSketch) -> usize {
    let cut: usize = sketch.levels.finer_lists().iter().map(|places| size_of_val(&**places)).sum();
    sketch.view().to_bytes().len() + cut
}

/// Goes on from a state that was saved at this position: where it stood, or later, without what was open.
fn go_on(state: &[u8], step: &WalkStep, position: u64) -> Result<DpswSketch, StateError> {
    match step {
        WalkStep::Resume(later) => {
            DpswSketch::resume(state, &state_key(), Noise::from_system(), position + later)
        }
        _ => restore_state(state),
    }
}
