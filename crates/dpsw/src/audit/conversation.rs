//! Runs of the real sketch on two neighbouring streams, and everything that an adversary can obtain of each.

use std::ops::Range;
use std::sync::Arc;

use crate::audit::feed::{
    Arrival, Choices, feed_batches, restore_state, save_state, start_sketch, watermark_lag,
};
use crate::audit::report::{AuditError, Claimed};
use crate::audit::tables::Tables;
use crate::audit::tally::Tally;
use crate::audit::tiny::{Size, tiny_keys, tiny_settings};
use crate::audit::transcript::answers_agree;
use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::law::Law;
use crate::plan::range::WHOLE;
use crate::plan::settings::{Method, NoiseChoice, Settings, Unit};
use crate::plan::structure::Plan;
use crate::privacy::accounting::{gaussian_mu, paper_mu, zcdp_rho};
use crate::privacy::parameters::{Claim, Threshold};
use crate::sealed::released::Released;
use crate::sealed::substream::SealedSubstream;
use crate::stream::sketch::DpswSketch;
use crate::view::estimate::Estimate;
use crate::view::window_view::{Sealed, WindowView};

/// How often the same question is asked.
pub(super) const ASKED: usize = 20;
/// Bits to which a slid threshold is found.
const SLIDES: u32 = 12;
/// Hash keys tried for one that separates the two keys in every row.
const KEYS_TRIED: u64 = 1 << 20;

/// The two keys of the changed event and two others, as indices.
const FIRST: usize = 0;
const SECOND: usize = 1;
const OTHER: usize = 2;
const NEUTRAL: usize = 3;
const KEYS: usize = 4;

/// The keys of items that come again and again. Where keys are cut into slices or pinned, noise decides whether the two are.
const PLAIN: [usize; 2] = [OTHER, NEUTRAL];
const CUT: [usize; 13] =
    [FIRST, OTHER, OTHER, SECOND, OTHER, OTHER, FIRST, OTHER, OTHER, SECOND, OTHER, OTHER, NEUTRAL];

/// Everything in one run that an adversary can tell the streams apart by; large values speak for the second one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// The likelihood ratio of all sealed counters.
    pub(super) sealed: f64,
    /// The same as a share of the most that they can say, where they are those of pinned keys alone; else nothing.
    pub(super) own: f64,
    /// How answers just after the changed event differ from those that the view just before it foretold.
    pub(super) around: f64,
    /// The mean of the same question, asked often.
    pub(super) repeated: f64,
    /// The totals of the sealed sketches.
    pub(super) totals: f64,
    /// The total found by sliding a threshold over the heavy hitters.
    pub(super) slid: f64,
    /// An error bound.
    pub(super) bound: f64,
    /// How much more finely the second key is cut or pinned than the first one, from the changed substream on.
    pub(super) levels: f64,
}

/// Everything about the runs that stays the same.
#[derive(Debug)]
pub(super) struct Conversation {
    plan: Plan,
    keys: Keys,
    hash_key: [u8; 32],
    /// By position or tick.
    streams: [Vec<Arrival>; 2],
    /// Where they differ: at one event, or at all events of one user.
    positions: Vec<u64>,
    /// The first of them in the last substream.
    changed: u64,
    /// How many positions are past when a view is taken.
    stops: Vec<u64>,
    /// How many items of each key count in each range of each substream, on either stream.
    sent: [Vec<[i32; KEYS]>; 2],
    /// The most that the planned noise lets an adversary learn from the counters that change.
    planned: f64,
}

/// One sealed sketch of a run.
#[derive(Debug)]
struct Sketch {
    substream: u64,
    range: usize,
    cells: Vec<i32>,
    /// The counters of each key.
    of_keys: [Vec<usize>; KEYS],
}

/// The answers and bytes that one run has shown.
#[derive(Default)]
struct Heard {
    sketches: Vec<Sketch>,
    tables: Tables,
}

/// One counter that differs between the streams.
#[derive(Debug)]
struct Change {
    law: Law,
    /// Whether it is that of a pinned key.
    is_own: bool,
    noisy: i32,
    exact: [i32; 2],
}

impl Conversation {
    pub(super) fn new(settings: &Settings) -> Result<Self, AuditError> {
        let plan = Plan::new(tiny_settings(settings, Size::TINY)?)?;
        let settings = plan.settings();
        let lag = watermark_lag(settings.window);
        let len = plan.substream_len();
        // A window touches one substream more than it is long, and a user can send in all of them.
        let each = settings.unit.per_substream();
        let window = settings.window.len() / len;
        let touched = if each.is_some() { window + 1 } else { window };
        let is_cut = plan.has_slices();
        // Who is pinned in the last substream but one depends on the noise of one that was sealed before it opened.
        let ahead = if 0 < plan.pinned() { plan.open_substreams_max() } else { 0 };
        let substreams = touched.max(ahead + 2);
        // What is cut finely in the last substream depends on the noise of the one before.
        let changed_in = substreams - if is_cut { 2 } else { 1 };
        let positions: Vec<u64> = match each {
            Some(each) => {
                (substreams - touched..substreams).flat_map(|n| users_positions(n * len, len, each)).collect()
            }
            None => vec![changed_position(&plan, lag, changed_in)],
        };
        let changed = positions.iter().copied().find(|position| changed_in * len <= *position);
        let changed = changed.expect("this substream is changed");
        let others: &[usize] = if is_cut { &CUT } else { &PLAIN };
        let streams = [FIRST, SECOND].map(|key| {
            // Under add/remove the first stream lacks the event.
            let key = Some(key).filter(|_| settings.unit != Unit::AddRemove || key == SECOND);
            // All others send once, so caps leave out nothing but items of the changed user.
            let arrival = |at: u64| match positions.contains(&at) {
                true => Arrival { at, user: u64::MAX, key },
                false => Arrival { at, user: at, key: Some(others[at as usize % others.len()]) },
            };
            (0..substreams * len + lag).map(arrival).collect()
        });
        let ends = (0..substreams).flat_map(|n| plan.boundaries().iter().map(move |end| n * len + end + lag));
        // Nothing leaves the first window before it is past.
        let ends = ends.filter(|end| 1 < plan.ranges().len() || window * len <= *end);
        let mut stops: Vec<u64> = ends.chain([changed, changed + 1]).collect();
        stops.sort_unstable();
        stops.dedup();
        let keys = tiny_keys(&settings.domain, Size::TINY.columns);
        let (hash_key, sent, planned) = ([0; 32], Default::default(), 0.0);
        let mut conversation =
            Self { plan, keys, hash_key, streams, positions, changed, stops, sent, planned };
        conversation.sent = [0, 1].map(|second| conversation.count_sent(substreams, second));
        conversation.choose_hash_key()?;
        Ok(conversation)
    }

    /// Finds a hash key that gives the two keys different counters in every row, and notes what they may show.
    fn choose_hash_key(&mut self) -> Result<(), AuditError> {
        let mut choices = Choices::new()?;
        // A counter that both keys share hides part of the change: the runs would show less than the noise has to cover.
        for number in 0..KEYS_TRIED {
            self.hash_key[..8].copy_from_slice(&number.to_le_bytes());
            let (mut seen, mut are_apart) = (Heard::default(), true);
            self.play_stream(false, &self.stops, &mut choices, |_, view| {
                self.note_new_sketches(view, &mut seen);
                are_apart &= view.cached.released.substreams().iter().all(|one| self.is_apart(one));
                Ok(())
            })?;
            if are_apart {
                self.planned = self.sum_costs(&self.find_changes(&seen));
                return Ok(());
            }
        }
        Err(AuditError::Collisions)
    }

    /// Whether the two keys have different counters in every row, also where they are pinned.
    fn is_apart(&self, substream: &SealedSubstream) -> bool {
        let [first, second] = [FIRST, SECOND].map(|key| substream.mapping.cells(self.keys.get(key)));
        first.zip(second).all(|(a, b)| a != b)
    }

    /// How many items of each key count, range after range.
    fn count_sent(&self, substreams: u64, second: usize) -> Vec<[i32; KEYS]> {
        let places =
            (0..substreams).flat_map(|n| self.plan.ranges().iter().map(move |range| (n, range.offsets())));
        places.map(|(number, offsets)| self.count_sent_in(number, offsets, second)).collect()
    }

    /// How many items of each key count in a range of a substream.
    fn count_sent_in(&self, number: u64, offsets: Range<u64>, second: usize) -> [i32; KEYS] {
        let each = self.plan.settings().unit.per_substream().unwrap_or(u32::MAX);
        let start = number * self.plan.substream_len();
        let mut sent = [0; KEYS];
        for position in start + offsets.start..start + offsets.end {
            // Caps start anew in each substream and count arrivals, whatever their items are (PRIVACY.md: rule 14).
            let counts = self.positions.iter().filter(|other| (start..=position).contains(other)).count();
            let is_over = self.positions.contains(&position) && (each as usize) < counts;
            if let Some(key) = self.streams[second][position as usize].key.filter(|_| !is_over) {
                sent[key] += 1;
            }
        }
        sent
    }

    /// The exact counters of a sealed sketch.
    fn exact_cells(&self, sketch: &Sketch, second: usize) -> Vec<i32> {
        let mut exact = vec![0; sketch.cells.len()];
        let place = sketch.substream as usize * self.plan.ranges().len() + sketch.range;
        for (sent, cells) in self.sent[second][place].iter().zip(&sketch.of_keys) {
            for &cell in cells {
                exact[cell] += sent;
            }
        }
        exact
    }

    /// The counters that differ between the streams. Where keys are cut into slices these are the ones on the path that the
    /// run has taken: what was sealed before says in which slices a key counts, and all other counters have the same law.
    fn find_changes(&self, seen: &Heard) -> Vec<Change> {
        let mut changes = Vec::new();
        for sketch in &seen.sketches {
            let law = self.plan.ranges()[sketch.range].law();
            let is_own = 0 < self.plan.pinned() && sketch.range != WHOLE;
            let [first, second] = [0, 1].map(|second| self.exact_cells(sketch, second));
            for ((&noisy, first), second) in sketch.cells.iter().zip(first).zip(second) {
                if first != second {
                    changes.push(Change { law, is_own, noisy, exact: [first, second] });
                }
            }
        }
        changes
    }

    fn sum_costs(&self, changes: &[Change]) -> f64 {
        let cost: f64 = changes.iter().map(|change| cost_of(change.law, change.exact)).sum();
        if let Claim::Pure(_) = self.plan.claim() { cost } else { cost.sqrt() }
    }

    /// The most that the planned noise lets an adversary learn from the counters that change: the same on every path.
    pub(super) fn planned(&self) -> f64 {
        self.planned
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Feeds one of the streams to a new sketch and shows a view at each of these stops.
    fn play_stream(
        &self,
        second: bool,
        stops: &[u64],
        choices: &mut Choices,
        mut look: impl FnMut(u64, &WindowView) -> Result<(), AuditError>,
    ) -> Result<DpswSketch, AuditError> {
        let mut sketch = start_sketch(&self.plan, self.hash_key)?;
        let mut position = 0;
        for &stop in stops {
            let arrivals = &self.streams[usize::from(second)][position as usize..stop as usize];
            feed_batches(&mut sketch, &self.keys, arrivals, choices)?;
            position = stop;
            look(stop, &sketch.view())?;
        }
        Ok(sketch)
    }

    /// One run. In half of them nobody looks beside the changed event, so that it lies inside a batch.
    pub(super) fn run_once(
        &self,
        second: bool,
        choices: &mut Choices,
        tally: &mut Tally,
    ) -> Result<Outcome, AuditError> {
        let mut stops = self.stops.clone();
        if !choices.coin() {
            stops.retain(|stop| !(self.changed..=self.changed + 1).contains(stop));
        }
        let mut seen = Heard::default();
        let mut beside = Vec::with_capacity(2);
        let sketch = self.play_stream(second, &stops, choices, |stop, view| {
            tally.altered += self.note_new_sketches(view, &mut seen);
            tally.misled += seen.tables.check_view(view);
            if stop == self.changed {
                beside.push(self.ask_both(&a_step_later(view))?);
            } else if stop == self.changed + 1 {
                beside.push(self.ask_both(view)?);
            }
            Ok(())
        })?;
        let arrived = stops.last().copied().unwrap_or(0);
        let is_counted = self.plan.settings().window.time().is_none();
        tally.shifted += u64::from(is_counted && sketch.position() != arrived);
        tally.altered += self.count_missing(&seen);
        // In runs without a look beside the event both are `None`.
        tally.moved += u64::from(beside.first() != beside.last());
        self.note_noise(second, &seen, tally);
        let (view, changes) = (sketch.view(), self.find_changes(&seen));
        let is_own = !changes.is_empty() && changes.iter().all(|change| change.is_own);
        let outcome = Outcome {
            sealed: sum_losses(&changes),
            own: if is_own { sum_losses(&changes) / self.sum_costs(&changes) } else { 0.0 },
            levels: self.compare_levels(&view),
            around: beside.last().map_or(0.0, contrast) - beside.first().map_or(0.0, contrast),
            repeated: self.ask_again(&view, &mut tally.wavered)?,
            totals: self.changed_total(&view),
            slid: self.slid_total(&view)?,
            bound: view.frequency(self.keys.get(SECOND))?.error_bound,
        };
        Ok(outcome)
    }

    /// Counts what does not come back as it was from bytes, from a merge and from each of many restores.
    pub(super) fn check_round_trips(
        &self,
        choices: &mut Choices,
        tally: &mut Tally,
    ) -> Result<(), AuditError> {
        let mut seen = Heard::default();
        let sketch = self.play_stream(choices.coin(), &self.stops, choices, |_, view| {
            tally.altered += self.note_new_sketches(view, &mut seen);
            Ok(())
        })?;
        let view = sketch.view();
        let loaded = WindowView::from_bytes(&view.to_bytes()).ok();
        tally.unsaid += u64::from(!answers_agree(&view, loaded.as_ref(), &self.keys));
        tally.lost += loaded.map_or(1, |view| self.note_new_sketches(&view, &mut seen));
        tally.lost += self.count_wrong_merges(&view, choices)?;
        // Noise drawn at a restore would differ from one restore to the next (PRIVACY.md: rule 1).
        let saved = save_state(sketch)?;
        for _ in 0..ASKED {
            tally.lost +=
                restore_state(&saved).map_or(1, |sketch| self.note_new_sketches(&sketch.view(), &mut seen));
        }
        Ok(())
    }

    /// The mean contrast of the same question asked often.
    fn ask_again(&self, view: &WindowView, wavered: &mut u64) -> Result<f64, AuditError> {
        let asked = (0..ASKED).map(|_| self.ask_both(view)).collect::<Result<Vec<_>, _>>()?;
        *wavered += u64::from(asked.iter().any(|answers| *answers != asked[0]));
        Ok(asked.iter().map(contrast).sum::<f64>() / ASKED as f64)
    }

    /// What the sealed sketches of the changed substream say that they hold.
    fn changed_total(&self, view: &WindowView) -> f64 {
        let changed = self.changed / self.plan.substream_len();
        let sealed = view.sealed().filter(|sealed| sealed.substream() == changed);
        sealed.map(|sealed| sealed.sketch().total()).sum::<i64>() as f64
    }

    /// Counts the sketches that a merged view does not hold as the plain sum over its sites, whenever it is merged.
    fn count_wrong_merges(&self, view: &WindowView, choices: &mut Choices) -> Result<u64, AuditError> {
        let Settings { window, unit, .. } = self.plan.settings();
        // Views of users are never merged, and neither are those of sites that cut or pin different keys.
        let is_merged = unit.per_substream().is_none() && !self.plan.has_slices();
        if window.time().is_none() || !is_merged {
            return Ok(0);
        }
        let other = self.play_stream(false, &self.stops, choices, |_, _| Ok(()))?.at_site(1).view();
        let pairs = view.sealed().zip(other.sealed());
        let sums: Vec<Vec<i32>> = pairs.map(|(one, other)| add_cells(&one, &other)).collect();
        let merged = [(); 2].map(|()| WindowView::merge(&[view.clone(), other.clone()]));
        let is_sum =
            |view: &WindowView| view.sealed().map(|sealed| sealed.sketch().cells()).eq(sums.iter().cloned());
        Ok(merged.iter().filter(|view| !view.as_ref().is_ok_and(is_sum)).count() as u64)
    }

    fn note_noise(&self, second: bool, seen: &Heard, tally: &mut Tally) {
        let mut noises: Vec<Vec<i32>> = Vec::with_capacity(seen.sketches.len());
        for sketch in &seen.sketches {
            let exact = self.exact_cells(sketch, usize::from(second));
            noises.push(sketch.cells.iter().zip(exact).map(|(noisy, exact)| noisy - exact).collect());
        }
        tally.signs.compare_adjacent(&noises);
        for (sketch, noise) in seen.sketches.iter().zip(&noises) {
            let (place, law) = ((sketch.substream, sketch.range), self.plan.ranges()[sketch.range].law());
            // Which keys have slices differs from run to run, so the noise of slices is summed by key, not by counter.
            if noise.len() == self.plan.shape().cells() {
                tally.counts.add_noises(place, law, noise.iter().copied().enumerate());
            } else {
                let of_keys = sketch.of_keys.iter().enumerate();
                let noises =
                    of_keys.flat_map(|(key, cells)| cells.iter().map(move |&cell| (key, noise[cell])));
                tally.counts.add_noises(place, law, noises);
            }
        }
    }

    /// Notes the sealed sketches that are new and counts those that are not as they were.
    fn note_new_sketches(&self, view: &WindowView, seen: &mut Heard) -> u64 {
        let mut altered = 0;
        for sealed in view.sealed() {
            let (substream, range, cells) = (sealed.substream(), sealed.range(), sealed.sketch().cells());
            let known =
                seen.sketches.iter().find(|known| (known.substream, known.range) == (substream, range));
            if let Some(known) = known {
                altered += u64::from(known.cells != cells);
                continue;
            }
            let of_keys = [FIRST, SECOND, OTHER, NEUTRAL].map(|key| sealed.cells(self.keys.get(key)));
            seen.sketches.push(Sketch { substream, range, cells, of_keys });
        }
        altered
    }

    /// How many planned sketches were never seen. Of slices, [`Tables`] knows which there must be.
    fn count_missing(&self, seen: &Heard) -> u64 {
        let planned = if !self.plan.has_slices() { self.sent[0].len() } else { seen.sketches.len() };
        planned.abs_diff(seen.sketches.len()) as u64
    }

    /// How much more finely the second key is cut or pinned than the first one, from the changed substream on, also where it
    /// is decided and nothing sealed yet.
    fn compare_levels(&self, view: &WindowView) -> f64 {
        let released = &view.cached.released;
        let changed = self.changed / self.plan.substream_len();
        let substreams = released.substreams().iter().filter(|one| changed <= one.number);
        if self.plan.pinned() == 0 {
            return substreams.map(|one| self.level_in(one, SECOND) - self.level_in(one, FIRST)).sum();
        }
        let decided = changed..released.pins().horizon().range().end;
        decided
            .map(|number| {
                self.pinned_level(released, SECOND, number) - self.pinned_level(released, FIRST, number)
            })
            .sum()
    }

    /// The level of a key in a substream.
    fn level_in(&self, substream: &SealedSubstream, key: usize) -> f64 {
        let place = substream.mapping.cells(self.keys.get(key)).next();
        place.map_or(0.0, |place| f64::from(substream.levels().level_of(place as u32)))
    }

    /// One more than the level of a pinned key, and 0 if it is not pinned.
    fn pinned_level(&self, released: &Released, key: usize, number: u64) -> f64 {
        let fingerprint = released.mapping().fingerprint_key.hash_item(self.keys.get(key));
        let Some(slot) = released.pins().slot_at(fingerprint, number) else { return 0.0 };
        f64::from(1 + released.substream(number).map_or(0, |substream| substream.levels().level_of(slot)))
    }

    fn ask_both(&self, view: &WindowView) -> Result<[Estimate; 2], AuditError> {
        let [first, second] = [FIRST, SECOND].map(|key| view.frequency(self.keys.get(key)));
        Ok([first?, second?])
    }

    /// The total, as the largest threshold that still lists a key gives it away; 0 for a key that is never listed.
    fn slid_total(&self, view: &WindowView) -> Result<f64, AuditError> {
        let item = self.keys.get(NEUTRAL);
        let (mut listed, mut unlisted) = ((0_u32, 0.0), 1 << SLIDES);
        let share = |step: u32| f64::from(step) / f64::from(1_u32 << SLIDES);
        while listed.0 + 1 < unlisted {
            let middle = listed.0.midpoint(unlisted);
            let threshold = Threshold::new(share(middle)).expect("a step lies between 0 and 1");
            match heavy_value(view, item, threshold)? {
                Some(value) => listed = (middle, value),
                None => unlisted = middle,
            }
        }
        // The paper's method also lists keys that are this much below the threshold.
        let share = share(listed.0) - self.plan.threshold_slack();
        Ok(if share <= 0.0 { 0.0 } else { listed.1 / share })
    }
}

/// The logarithm of how much likelier the counters are under the second stream, given in which slices keys count: by the chain
/// rule the sum over all counters that differ.
fn sum_losses(changes: &[Change]) -> f64 {
    changes.iter().map(|change| log_ratio(change.law, change.noisy, change.exact)).sum()
}

/// What the heavy hitters among one key show of it.
fn heavy_value(view: &WindowView, item: Item<'_>, threshold: Threshold) -> Result<Option<f64>, AuditError> {
    let heavy = view.heavy_hitters_among(&[item], threshold)?;
    Ok(heavy.all().next().map(|ranked| ranked.shown.value))
}

fn add_cells(one: &Sealed<'_>, other: &Sealed<'_>) -> Vec<i32> {
    one.sketch().cells().iter().zip(other.sketch().cells()).map(|(a, b)| a + b).collect()
}

/// What was readable, seen from the next position.
fn a_step_later(view: &WindowView) -> WindowView {
    let stream = view.stream.start..view.stream.end + 1;
    let (plan, cached) = (Arc::clone(&view.plan), Arc::clone(&view.cached));
    WindowView::new(plan, cached, view.claim, stream, view.sites.clone())
}

/// How far the second key's answer lies above the first one's.
fn contrast(answers: &[Estimate; 2]) -> f64 {
    answers[1].value - answers[0].value
}

/// The logarithm of how much likelier a noisy counter is with the second of two exact counts than with the first.
pub(super) fn log_ratio(law: Law, noisy: i32, exact: [i32; 2]) -> f64 {
    let [first, second] = exact.map(|exact| f64::from(noisy) - f64::from(exact));
    match law {
        Law::Laplace { scale } => (first.abs() - second.abs()) / scale.to_f64(),
        Law::Gaussian { variance } => (first * first - second * second) / (2.0 * variance as f64),
    }
}

/// What a counter costs with these two exact counts: its share of ε, or of μ².
pub(super) fn cost_of(law: Law, exact: [i32; 2]) -> f64 {
    let shift = f64::from(exact[1]) - f64::from(exact[0]);
    match law {
        Law::Laplace { scale } => shift.abs() / scale.to_f64(),
        Law::Gaussian { variance } => shift * shift / variance as f64,
    }
}

/// What a plan promises, in the measure that a test can see.
pub(super) fn testable_claim(plan: &Plan) -> Result<Claimed, AuditError> {
    let (epsilon, delta) = match plan.claim() {
        Claim::Pure(epsilon) => return Ok(Claimed::Epsilon(epsilon.get())),
        Claim::Approximate(epsilon, delta) => (epsilon, delta),
        Claim::None => return Err(AuditError::NoClaim),
    };
    // The lattice sum needs changes by one, and several items of a user can fall on one counter.
    let by_ones = plan.settings().unit.per_substream().is_none_or(|each| each == 1);
    Ok(match (plan.method(), plan.method().noise()) {
        (_, NoiseChoice::Laplace) => Claimed::Epsilon(epsilon.get()),
        (Method::Paper(_), NoiseChoice::Gaussian) => Claimed::Mu(paper_mu(epsilon, delta)),
        (Method::Tuned(_), NoiseChoice::Gaussian) if by_ones => Claimed::Mu(gaussian_mu(epsilon, delta)),
        (Method::Tuned(_), NoiseChoice::Gaussian) => {
            Claimed::Mu((2.0 * zcdp_rho(epsilon, delta).get()).sqrt())
        }
    })
}

/// A position of a substream over which the ranges have the least noise and whose arrival seals nothing.
fn changed_position(plan: &Plan, lag: u64, substream: u64) -> u64 {
    let len = plan.substream_len();
    let start = substream * len;
    let mut best_weight = 0.0;
    let mut best_offset = 0;
    for offset in 0..len {
        let clock = (start + offset + 1 - lag) % len;
        // What the event's own arrival seals may change the answers, and `Tally::moved` would count that.
        if clock == 0 || plan.boundaries().contains(&clock) {
            continue;
        }
        let over = plan.ranges().iter().filter(|range| range.offsets().contains(&offset));
        let weight: f64 = over.map(|range| 1.0 / range.law().variance()).sum();
        // Equal weights differ by rounding: the first of them is taken.
        if best_weight < weight * (1.0 - 1e-12) {
            best_weight = weight;
            best_offset = offset;
        }
    }
    start + best_offset
}

/// Where a user sends two items more than count in a substream that begins here, all over it.
fn users_positions(start: u64, len: u64, each: u32) -> impl Iterator<Item = u64> {
    let sent = u64::from(each) + 2;
    let step = (len - 2) / sent;
    (0..sent).map(move |number| start + 1 + number * step)
}
