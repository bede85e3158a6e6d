//! Runs of the real sketch on two neighbouring streams, and everything that an adversary can obtain of each.

use std::sync::Arc;

use crate::audit::feed::{Arrival, Backup, Choices, feed, lag, start};
use crate::audit::report::{AuditError, Claimed};
use crate::audit::tally::Tally;
use crate::audit::tiny::{Size, tiny, tiny_keys};
use crate::audit::transcript::said;
use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::generator::Noise;
use crate::noise::law::Law;
use crate::plan::settings::{Method, NoiseChoice, Settings, Unit};
use crate::plan::structure::Plan;
use crate::privacy::accounting::{gaussian_mu, paper_mu, zcdp_rho};
use crate::privacy::parameters::{Claim, Threshold};
use crate::stream::sketch::DpswSketch;
use crate::stream::state::StateKey;
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

/// What one run gives an adversary to tell the streams apart by; large values speak for the second one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// The likelihood ratio of all sealed counters.
    pub(super) sealed: f64,
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
    slots: Vec<Slot>,
    changes: Vec<Change>,
}

/// One sealed sketch of a run, with its exact counters in both streams.
#[derive(Debug)]
struct Slot {
    substream: u64,
    range: usize,
    exact: [Vec<i32>; 2],
}

/// One counter that differs between the streams.
#[derive(Debug)]
struct Change {
    slot: usize,
    cell: usize,
    law: Law,
    exact: [i32; 2],
}

impl Conversation {
    pub(super) fn new(settings: &Settings) -> Result<Self, AuditError> {
        let plan = Plan::new(tiny(settings, Size::TINY)?)?;
        let settings = plan.settings();
        let lag = lag(settings.window);
        let len = plan.substream_len();
        // A window touches one substream more than it is long, and a user can send in all of them.
        let each = settings.unit.per_substream();
        let window = settings.window.len() / len;
        let substreams = if each.is_some() { window + 1 } else { window };
        let positions: Vec<u64> = match each {
            // Two items more than count.
            Some(each) => (0..substreams).flat_map(|n| n * len + 1..n * len + 3 + u64::from(each)).collect(),
            None => vec![changed_position(&plan, lag, substreams - 1)],
        };
        let changed = positions.iter().copied().find(|position| (substreams - 1) * len <= *position);
        let changed = changed.expect("the last substream is changed");
        let streams = [FIRST, SECOND].map(|key| {
            let key = Some(key).filter(|_| settings.unit != Unit::AddRemove || key == SECOND);
            let arrival = |at: u64| match positions.contains(&at) {
                true => Arrival { at, user: u64::MAX, key },
                false => Arrival { at, user: at, key: Some(OTHER + at as usize % 2) },
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
        let mut conversation = Self {
            plan,
            keys,
            hash_key: [0; 32],
            streams,
            positions,
            changed,
            stops,
            slots: Vec::new(),
            changes: Vec::new(),
        };
        conversation.rehearse()?;
        Ok(conversation)
    }

    /// Finds a hash key that gives the two keys different counters in every row, and notes what is exact.
    fn rehearse(&mut self) -> Result<(), AuditError> {
        let mut choices = Choices::new()?;
        for number in 0..KEYS_TRIED {
            self.hash_key[..8].copy_from_slice(&number.to_le_bytes());
            let mut slots = Vec::new();
            let mut is_apart = true;
            self.play(false, &self.stops, &mut choices, |_, view| {
                for sealed in view.sealed() {
                    let [first, second] = [FIRST, SECOND].map(|key| sealed.cells(self.keys.get(key)));
                    is_apart &= first.iter().zip(&second).all(|(a, b)| a != b);
                    let is_known =
                        |slot: &Slot| (slot.substream, slot.range) == (sealed.substream(), sealed.range());
                    if !slots.iter().any(is_known) {
                        let exact = [0, 1].map(|second| self.exact(&sealed, second));
                        slots.push(Slot { substream: sealed.substream(), range: sealed.range(), exact });
                    }
                }
                Ok(())
            })?;
            if is_apart {
                self.changes = changes(&self.plan, &slots);
                self.slots = slots;
                return Ok(());
            }
        }
        Err(AuditError::Collisions)
    }

    fn exact(&self, sealed: &Sealed<'_>, second: usize) -> Vec<i32> {
        let mut exact = vec![0; self.plan.shape().cells()];
        let start = sealed.substream() * self.plan.substream_len();
        let offsets = self.plan.ranges()[sealed.range()].offsets();
        let each = self.plan.settings().unit.per_substream().unwrap_or(u32::MAX);
        let mut sent = 0;
        for position in start + offsets.start..start + offsets.end {
            let is_changed = self.positions.contains(&position);
            sent += u32::from(is_changed);
            let key = self.streams[second][position as usize].key.filter(|_| !is_changed || sent <= each);
            for cell in key.into_iter().flat_map(|key| sealed.cells(self.keys.get(key))) {
                exact[cell] += 1;
            }
        }
        exact
    }

    /// The most that the planned noise lets an adversary learn from the counters that change.
    pub(super) fn planned(&self) -> f64 {
        let costs = self.changes.iter().map(|change| {
            let shift = f64::from(change.exact[1] - change.exact[0]);
            match change.law {
                Law::Laplace { scale } => shift.abs() / scale.to_f64(),
                Law::Gaussian { variance } => shift * shift / variance as f64,
            }
        });
        match self.plan.claim() {
            Claim::Pure(_) => costs.sum(),
            _ => costs.sum::<f64>().sqrt(),
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Feeds one of the streams to a new sketch and shows a view at each of these stops.
    fn play(
        &self,
        second: bool,
        stops: &[u64],
        choices: &mut Choices,
        mut look: impl FnMut(u64, &WindowView) -> Result<(), AuditError>,
    ) -> Result<DpswSketch, AuditError> {
        let mut sketch = start(&self.plan, self.hash_key)?;
        let mut position = 0;
        for &stop in stops {
            let arrivals = &self.streams[usize::from(second)][position as usize..stop as usize];
            feed(&mut sketch, &self.keys, arrivals, choices)?;
            position = stop;
            look(stop, &sketch.view())?;
        }
        Ok(sketch)
    }

    /// One run. In half of them nobody looks beside the changed event, so that it lies inside a batch.
    pub(super) fn run(
        &self,
        second: bool,
        choices: &mut Choices,
        tally: &mut Tally,
    ) -> Result<Outcome, AuditError> {
        let is_beside = |stop: &u64| (self.changed..=self.changed + 1).contains(stop);
        let looks_beside = choices.coin();
        let stops: Vec<u64> =
            self.stops.iter().copied().filter(|stop| looks_beside || !is_beside(stop)).collect();
        let mut seen = vec![Vec::new(); self.slots.len()];
        let mut beside = Vec::with_capacity(2);
        let sketch = self.play(second, &stops, choices, |stop, view| {
            tally.altered += self.look(view, &mut seen);
            if stop == self.changed {
                beside.push(self.answers(&a_step_later(view))?);
            } else if stop == self.changed + 1 {
                beside.push(self.answers(view)?);
            }
            Ok(())
        })?;
        let arrived = stops.last().copied().unwrap_or(0);
        let is_counted = self.plan.settings().window.time().is_none();
        tally.shifted += u64::from(is_counted && sketch.position() != arrived);
        tally.altered += seen.iter().filter(|cells| cells.is_empty()).count() as u64;
        tally.moved += u64::from(beside.first() != beside.last());
        self.note_noise(second, &seen, tally);
        let view = sketch.view();
        let outcome = Outcome {
            sealed: self.loss(&seen),
            around: beside.last().map_or(0.0, contrast) - beside.first().map_or(0.0, contrast),
            repeated: self.ask_again(&view, &mut tally.wavered)?,
            totals: self.total(&view),
            slid: self.slid_total(&view)?,
            bound: view.frequency(self.keys.get(SECOND))?.error_bound,
        };
        Ok(outcome)
    }

    /// Counts what does not come back as it was from bytes, from a merge and from each of many restores.
    pub(super) fn carry(&self, choices: &mut Choices, tally: &mut Tally) -> Result<(), AuditError> {
        let mut seen = vec![Vec::new(); self.slots.len()];
        let sketch = self.play(choices.coin(), &self.stops, choices, |_, view| {
            tally.altered += self.look(view, &mut seen);
            Ok(())
        })?;
        let mut count = |view: Option<WindowView>| view.map_or(1, |view| self.look(&view, &mut seen));
        let view = sketch.view();
        let loaded = WindowView::from_bytes(&view.to_bytes()).ok();
        let answers = |view: &WindowView| said(view, &self.keys);
        tally.unsaid += u64::from(loaded.as_ref().map(answers) != Some(answers(&view)));
        tally.lost += count(loaded);
        tally.lost += self.merge(&view, choices)?;
        let state_key = StateKey::from_bytes(self.hash_key);
        let saved = sketch.save(&state_key, &mut Backup)?;
        for _ in 0..ASKED {
            let restored = DpswSketch::restore(&saved.bytes, &state_key, Noise::from_system(), &mut Backup);
            tally.lost += count(restored.ok().map(|sketch| sketch.view()));
        }
        Ok(())
    }

    /// The mean contrast of the same question asked often.
    fn ask_again(&self, view: &WindowView, wavered: &mut u64) -> Result<f64, AuditError> {
        let asked = (0..ASKED).map(|_| self.answers(view)).collect::<Result<Vec<_>, _>>()?;
        *wavered += u64::from(asked.iter().any(|answers| *answers != asked[0]));
        Ok(asked.iter().map(contrast).sum::<f64>() / ASKED as f64)
    }

    /// What the sealed sketches of the changed substream say that they hold.
    fn total(&self, view: &WindowView) -> f64 {
        let changed = self.changed / self.plan.substream_len();
        let sealed = view.sealed().filter(|sealed| sealed.substream() == changed);
        sealed.map(|sealed| sealed.sketch().total()).sum::<i64>() as f64
    }

    /// Counts the sketches that a merged view does not hold as the plain sum over its sites, whenever it is merged.
    fn merge(&self, view: &WindowView, choices: &mut Choices) -> Result<u64, AuditError> {
        let Settings { window, unit, .. } = self.plan.settings();
        // Views of users are never merged.
        if window.time().is_none() || unit.per_substream().is_some() {
            return Ok(0);
        }
        let other = self.play(false, &self.stops, choices, |_, _| Ok(()))?.at_site(1).view();
        let pairs = view.sealed().zip(other.sealed());
        let sums: Vec<Vec<i32>> = pairs.map(|(one, other)| sum(&one, &other)).collect();
        let merged = [(); 2].map(|()| WindowView::merge(&[view.clone(), other.clone()]));
        let is_sum =
            |view: &WindowView| view.sealed().map(|sealed| sealed.sketch().cells()).eq(sums.iter().cloned());
        Ok(merged.iter().filter(|view| !view.as_ref().is_ok_and(is_sum)).count() as u64)
    }

    fn note_noise(&self, second: bool, seen: &[Vec<i32>], tally: &mut Tally) {
        let noise = |(slot, cells): (&Slot, &Vec<i32>)| {
            let noise =
                cells.iter().zip(&slot.exact[usize::from(second)]).map(|(noisy, exact)| noisy - exact);
            (self.plan.ranges()[slot.range].law(), noise.collect())
        };
        let noises: Vec<(Law, Vec<i32>)> = self.slots.iter().zip(seen).map(noise).collect();
        for pair in noises.windows(2) {
            tally.signs.compare(&pair[0].1, &pair[1].1);
        }
        tally.counts.add(&noises);
    }

    /// Notes the sealed sketches that are new and counts those that are not as they were.
    fn look(&self, view: &WindowView, seen: &mut [Vec<i32>]) -> u64 {
        let mut altered = 0;
        for sealed in view.sealed() {
            let is_it = |slot: &Slot| (slot.substream, slot.range) == (sealed.substream(), sealed.range());
            match self.slots.iter().position(is_it).map(|slot| &mut seen[slot]) {
                Some(cells) if cells.is_empty() => *cells = sealed.sketch().cells(),
                Some(cells) => altered += u64::from(*cells != sealed.sketch().cells()),
                None => altered += 1,
            }
        }
        altered
    }

    /// The logarithm of how much likelier the counters are under the second stream.
    fn loss(&self, seen: &[Vec<i32>]) -> f64 {
        let loss = |change: &Change| {
            let noisy = seen[change.slot].get(change.cell).copied().unwrap_or(0);
            let [first, second] = change.exact.map(|exact| f64::from(noisy) - f64::from(exact));
            log_ratio(change.law, first, second)
        };
        self.changes.iter().map(loss).sum()
    }

    fn answers(&self, view: &WindowView) -> Result<[Estimate; 2], AuditError> {
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
        let share = share(listed.0) - self.plan.threshold_slack();
        Ok(if share <= 0.0 { 0.0 } else { listed.1 / share })
    }
}

/// What the heavy hitters among one key show of it.
fn heavy_value(view: &WindowView, item: Item<'_>, threshold: Threshold) -> Result<Option<f64>, AuditError> {
    let heavy = view.heavy_hitters_among(&[item], threshold)?;
    Ok(heavy.all().next().map(|ranked| ranked.shown.value))
}

fn sum(one: &Sealed<'_>, other: &Sealed<'_>) -> Vec<i32> {
    one.sketch().cells().iter().zip(other.sketch().cells()).map(|(a, b)| a + b).collect()
}

/// What was readable, seen from the next position.
fn a_step_later(view: &WindowView) -> WindowView {
    let stream = view.stream.start..view.stream.end + 1;
    let (plan, readable) = (Arc::clone(&view.plan), Arc::clone(&view.readable));
    WindowView::new(plan, readable, view.claim, stream, view.sites.clone())
}

/// How far the second key's answer lies above the first one's.
fn contrast(answers: &[Estimate; 2]) -> f64 {
    answers[1].value - answers[0].value
}

/// ln of the ratio of the probabilities of one noise value over the other's.
pub(super) fn log_ratio(law: Law, first: f64, second: f64) -> f64 {
    match law {
        Law::Laplace { scale } => (first.abs() - second.abs()) / scale.to_f64(),
        Law::Gaussian { variance } => (first * first - second * second) / (2.0 * variance as f64),
    }
}

/// What a plan promises, in the measure that a test can see.
pub(super) fn claimed(plan: &Plan) -> Result<Claimed, AuditError> {
    let (epsilon, delta) = match plan.claim() {
        Claim::Pure(epsilon) => return Ok(Claimed::Epsilon(epsilon.get())),
        Claim::Approximate(epsilon, delta) => (epsilon, delta),
        Claim::None => return Err(AuditError::NoClaim),
    };
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
    let weight = |offset: u64| -> f64 {
        let over = plan.ranges().iter().filter(|range| range.offsets().contains(&offset));
        over.map(|range| 1.0 / range.law().variance()).sum()
    };
    let seals = |offset: u64| {
        let clock = (start + offset + 1 - lag) % len;
        clock == 0 || plan.boundaries().contains(&clock)
    };
    let quiet = (0..len).filter(|&offset| !seals(offset));
    let heavier = |best: (f64, u64), offset: u64| {
        let weight = weight(offset);
        if best.0 < weight * (1.0 - 1e-12) { (weight, offset) } else { best }
    };
    start + quiet.fold((0.0, 0), heavier).1
}

fn changes(plan: &Plan, slots: &[Slot]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (number, slot) in slots.iter().enumerate() {
        let law = plan.ranges()[slot.range].law();
        for (cell, exact) in slot.exact[0].iter().copied().zip(slot.exact[1].iter().copied()).enumerate() {
            if exact.0 != exact.1 {
                changes.push(Change { slot: number, cell, law, exact: [exact.0, exact.1] });
            }
        }
    }
    changes
}
