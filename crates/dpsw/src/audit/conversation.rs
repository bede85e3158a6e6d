//! Runs of the real sketch on two neighbouring streams, and everything that an adversary can obtain of each.

use std::sync::Arc;

use crate::audit::report::{AuditError, Claimed};
use crate::audit::tiny::{SUBSTREAMS, arrive, lag, start, tiny_keys};
use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::generator::Noise;
use crate::noise::law::Law;
use crate::plan::settings::{Method, Settings, Unit};
use crate::plan::structure::Plan;
use crate::privacy::accounting::{gaussian_mu, normal_quantile, paper_mu, zcdp_rho};
use crate::privacy::parameters::{Claim, Threshold};
use crate::store::memory::MemoryStore;
use crate::stream::freshness::FreshnessStore;
use crate::stream::sketch::DpswSketch;
use crate::stream::state::StateKey;
use crate::view::window_view::{Sealed, WindowView};

/// How often the same question is asked.
pub(super) const ASKED: usize = 20;
/// So many runs are saved and restored: that takes a thousand times as long as a run, and no chance is involved.
const CARRIED: u64 = 10;
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
}

/// What never happens in a correct build, over all runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// Runs in which an answer inside a segment was not the one that the view before foretold.
    pub(super) moved: u64,
    /// Runs in which the same question had two answers.
    pub(super) wavered: u64,
    /// Sealed sketches that two views showed differently, or that were missing.
    pub(super) altered: u64,
    /// Views that did not come back from bytes, from a merge or from a saved state, and sketches that came back
    /// differently.
    pub(super) lost: u64,
    /// Runs that did not end at the position of their last arrival.
    pub(super) shifted: u64,
    runs: u64,
    pub(super) signs: Signs,
    /// Of each counter that differs between the streams, the sum of its noise.
    noise: Vec<f64>,
}

/// How the signs of the noise agree between one seal and the next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    pub(super) pairs: u64,
    pub(super) sum: i64,
}

impl Signs {
    pub(super) fn compare(&mut self, one: impl Iterator<Item = i32>, other: impl Iterator<Item = i32>) {
        for (a, b) in one.zip(other) {
            self.pairs += 1;
            self.sum += i64::from(a.signum() * b.signum());
        }
    }

    /// Whether the mean product lies within the limit.
    pub(super) fn are_unrelated(self, limit: f64) -> bool {
        (self.sum as f64 / self.pairs.max(1) as f64).abs() <= limit
    }
}

/// Everything about the runs that stays the same.
#[derive(Debug)]
pub(super) struct Conversation {
    plan: Plan,
    keys: Keys,
    hash_key: [u8; 32],
    /// By position or tick, the index of the key that arrives.
    streams: [Vec<Option<usize>>; 2],
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
    pub(super) fn new(tiny: Settings) -> Result<Self, AuditError> {
        let plan = Plan::new(tiny)?;
        let settings = plan.settings();
        let lag = lag(settings.window);
        let len = plan.substream_len();
        // A window touches one substream more than it is long, and a user can send in all of them.
        let each = settings.unit.per_substream();
        let substreams = if each.is_some() { SUBSTREAMS + 1 } else { SUBSTREAMS };
        let positions: Vec<u64> = match each {
            // Two items more than count.
            Some(each) => (0..substreams).flat_map(|n| n * len + 1..n * len + 3 + u64::from(each)).collect(),
            None => vec![changed_position(&plan, lag)],
        };
        let changed = positions.iter().copied().find(|position| (substreams - 1) * len <= *position);
        let changed = changed.expect("the last substream is changed");
        let arrivals: Vec<_> = (0..substreams * len + lag).map(|i| Some(OTHER + i as usize % 2)).collect();
        let streams = [FIRST, SECOND].map(|key| {
            let mut stream = arrivals.clone();
            for &position in &positions {
                stream[position as usize] =
                    Some(key).filter(|_| settings.unit != Unit::AddRemove || key == SECOND);
            }
            stream
        });
        let ends = (0..substreams).flat_map(|n| plan.boundaries().iter().map(move |end| n * len + end + lag));
        let mut stops: Vec<u64> = ends.chain([changed, changed + 1]).collect();
        stops.sort_unstable();
        stops.dedup();
        let keys = tiny_keys(&settings.domain);
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
        for number in 0..KEYS_TRIED {
            self.hash_key[..8].copy_from_slice(&number.to_le_bytes());
            let mut slots = Vec::new();
            let mut is_apart = true;
            self.play(false, |_, view| {
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
            let key = self.streams[second][position as usize].filter(|_| !is_changed || sent <= each);
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

    /// Feeds one of the streams to a new sketch and shows a view at each stop.
    fn play(
        &self,
        second: bool,
        mut look: impl FnMut(u64, &WindowView) -> Result<(), AuditError>,
    ) -> Result<DpswSketch, AuditError> {
        let mut sketch = start(&self.plan, self.hash_key)?;
        let mut position = 0;
        for &stop in &self.stops {
            for key in &self.streams[usize::from(second)][position as usize..stop as usize] {
                let user = if self.positions.contains(&position) { u64::MAX } else { position };
                arrive(&mut sketch, position, user, key.map(|key| self.keys.get(key)))?;
                position += 1;
            }
            look(stop, &sketch.view())?;
        }
        Ok(sketch)
    }

    /// One run.
    pub(super) fn run(&self, second: bool, tally: &mut Tally) -> Result<Outcome, AuditError> {
        let mut seen = vec![Vec::new(); self.slots.len()];
        let mut beside = Vec::with_capacity(2);
        let sketch = self.play(second, |stop, view| {
            tally.altered += self.look(view, &mut seen);
            if stop == self.changed {
                beside.push(self.answers(&a_step_later(view))?);
            } else if stop == self.changed + 1 {
                beside.push(self.answers(view)?);
            }
            Ok(())
        })?;
        let arrived = self.stops.last().copied().unwrap_or(0);
        let is_counted = self.plan.settings().window.time().is_none();
        tally.shifted += u64::from(is_counted && sketch.position() != arrived);
        tally.altered += seen.iter().filter(|cells| cells.is_empty()).count() as u64;
        tally.moved += u64::from(beside[0] != beside[1]);
        self.compare_noise(second, &seen, &mut tally.signs);
        tally.noise.resize(self.changes.len(), 0.0);
        for (sum, change) in tally.noise.iter_mut().zip(&self.changes) {
            let noisy = seen[change.slot].get(change.cell).copied().unwrap_or(0);
            *sum += f64::from(noisy) - f64::from(change.exact[usize::from(second)]);
        }
        let view = sketch.view();
        let outcome = Outcome {
            sealed: self.loss(&seen),
            around: contrast(&beside[1]) - contrast(&beside[0]),
            repeated: self.ask_again(&view, &mut tally.wavered)?,
            totals: self.total(&view),
            slid: self.slid_total(&view)?,
        };
        tally.runs += 1;
        if tally.runs <= CARRIED {
            tally.lost += self.carry(sketch, &mut seen)?;
        }
        Ok(outcome)
    }

    /// How many counters hold something else than what should count, plus noise. The mean of so many draws is normal, and a
    /// correct build exceeds a limit with probability `doubt`.
    pub(super) fn miscounted(&self, tally: &Tally, doubt: f64) -> u64 {
        let runs = tally.runs.max(1) as f64;
        let deviations = normal_quantile(1.0 - doubt / (2.0 * self.changes.len().max(1) as f64));
        let is_off = |(sum, change): (&f64, &Change)| {
            let limit = deviations * (change.law.variance() / runs).sqrt();
            limit < (sum / runs).abs()
        };
        tally.noise.iter().zip(&self.changes).filter(|pair| is_off(*pair)).count() as u64
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

    /// Counts what does not come back as it was from bytes and from each of many restores.
    fn carry(&self, sketch: DpswSketch, seen: &mut [Vec<i32>]) -> Result<u64, AuditError> {
        let mut count = |view: Option<WindowView>| view.map_or(1, |view| self.look(&view, seen));
        let mut lost = count(WindowView::from_bytes(&sketch.view().to_bytes()).ok());
        lost += self.merge(&sketch.view())?;
        let state_key = StateKey::from_bytes(self.hash_key);
        let mut store = MemoryStore::default();
        let saved = sketch.save(&state_key, &mut store)?;
        for _ in 0..ASKED {
            // As if the note had come back with a backup.
            store.note(saved.id)?;
            let restored = DpswSketch::restore(&saved.bytes, &state_key, Noise::from_system(), &mut store);
            lost += count(restored.ok().map(|sketch| sketch.view()));
        }
        Ok(lost)
    }

    /// Counts the sketches that a merged view does not hold as the plain sum over its sites, whenever it is merged.
    fn merge(&self, view: &WindowView) -> Result<u64, AuditError> {
        let Settings { window, unit, .. } = self.plan.settings();
        // Views of users are never merged.
        if window.time().is_none() || unit.per_substream().is_some() {
            return Ok(0);
        }
        let other = self.play(false, |_, _| Ok(()))?.at_site(1).view();
        let pairs = view.sealed().zip(other.sealed());
        let sums: Vec<Vec<i32>> = pairs.map(|(one, other)| sum(&one, &other)).collect();
        let merged = [(); 2].map(|()| WindowView::merge(&[view.clone(), other.clone()]));
        let is_sum =
            |view: &WindowView| view.sealed().map(|sealed| sealed.sketch().cells()).eq(sums.iter().cloned());
        Ok(merged.iter().filter(|view| !view.as_ref().is_ok_and(is_sum)).count() as u64)
    }

    fn compare_noise(&self, second: bool, seen: &[Vec<i32>], signs: &mut Signs) {
        let noise = |slot: usize| {
            let exact = &self.slots[slot].exact[usize::from(second)];
            seen[slot].iter().zip(exact).map(|(noisy, exact)| noisy - exact)
        };
        for slot in 1..seen.len() {
            signs.compare(noise(slot - 1), noise(slot));
        }
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

    fn answers(&self, view: &WindowView) -> Result<[f64; 2], AuditError> {
        let [first, second] = [FIRST, SECOND].map(|key| view.frequency(self.keys.get(key)));
        Ok([first?.value, second?.value])
    }

    /// The total, as the largest threshold that still lists a key gives it away; 0 for a key that is never listed.
    fn slid_total(&self, view: &WindowView) -> Result<f64, AuditError> {
        let item = self.keys.get(NEUTRAL);
        let (mut listed, mut unlisted) = (0_u32, 1 << SLIDES);
        let share = |step: u32| f64::from(step) / f64::from(1_u32 << SLIDES);
        while listed + 1 < unlisted {
            let middle = listed.midpoint(unlisted);
            let threshold = Threshold::new(share(middle)).expect("a step lies between 0 and 1");
            if self.lists(view, item, threshold)? { listed = middle } else { unlisted = middle }
        }
        let share = share(listed) - self.plan.threshold_slack();
        Ok(if share <= 0.0 { 0.0 } else { view.frequency(item)?.value / share })
    }

    fn lists(&self, view: &WindowView, item: Item<'_>, threshold: Threshold) -> Result<bool, AuditError> {
        let heavy = match self.plan.settings().domain.keys() {
            Some(_) => view.heavy_hitters(threshold)?,
            None => view.heavy_hitters_among(&[item], threshold)?,
        };
        Ok(heavy.iter().any(|ranked| ranked.item == item))
    }
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
fn contrast(answers: &[f64; 2]) -> f64 {
    answers[1] - answers[0]
}

/// ln of the ratio of the probabilities of one noise value over the other's.
pub(super) fn log_ratio(law: Law, first: f64, second: f64) -> f64 {
    match law {
        Law::Laplace { scale } => (first.abs() - second.abs()) / scale.to_f64(),
        Law::Gaussian { variance } => (first * first - second * second) / (2.0 * variance as f64),
    }
}

/// What the settings promise, in the measure that a test can see.
pub(super) fn claimed(settings: &Settings, claim: Claim) -> Result<Claimed, AuditError> {
    match (claim, &settings.method) {
        (Claim::Pure(epsilon), _) => Ok(Claimed::Epsilon(epsilon.get())),
        (Claim::Approximate(epsilon, delta), Some(Method::Paper(_))) => {
            Ok(Claimed::Mu(paper_mu(epsilon, delta)))
        }
        (Claim::Approximate(epsilon, delta), _) => {
            let by_ones = settings.unit.per_substream().is_none_or(|each| each == 1);
            let by_zcdp = || (2.0 * zcdp_rho(epsilon, delta).get()).sqrt();
            Ok(Claimed::Mu(if by_ones { gaussian_mu(epsilon, delta) } else { by_zcdp() }))
        }
        (Claim::None, _) => Err(AuditError::NoClaim),
    }
}

/// A position of the last substream over which the ranges have the least noise and whose arrival seals nothing.
fn changed_position(plan: &Plan, lag: u64) -> u64 {
    let len = plan.substream_len();
    let start = (SUBSTREAMS - 1) * len;
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
