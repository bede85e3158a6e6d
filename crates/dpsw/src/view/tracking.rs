//! Which keys are tracked next, and how finely tracked ones are cut: by what is sealed of the last window. Cheap enough for
//! every seal.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::plan::limits::TRACKED_DEVIATIONS;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::changes::Changes;
use crate::sealed::leases::{Leases, slot_in};
use crate::sealed::released::Released;
use crate::sealed::rungs::Rungs;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::fit::absent_middle;
use crate::view::scores::{newest_window, observed};

/// A tracked key stays tracked while it stands out by half as much.
const STILL_TRACKED: f64 = TRACKED_DEVIATIONS / 2.0;
/// A key is tracked at once that stands out in the newest substream by so many deviations.
const RISING: f64 = 5.0;
/// A count of one substream must exceed what it has to by this many deviations to be taken for the whole window.
const SURE: f64 = 2.0;

/// How frequent keys are in the last window.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Of the public list, made when it is first needed.
    fingerprints: Vec<u64>,
    /// What the smallest hashed counters of each of them add up to.
    sums: Vec<i64>,
    /// Of the keys that are found now.
    found: Vec<u64>,
    seen: VecDeque<Seen>,
}

/// A substream of the last window.
#[derive(Debug)]
struct Seen {
    substream: Arc<SealedSubstream>,
    /// What an absent key sees in the hashed counters, and its deviation.
    absent: (f64, f64),
    /// What keys that stand out here without being tracked leave of the hashed counters, and what they count.
    residual: Vec<i32>,
    peeled: HashMap<u64, i32>,
    /// By slot: what tracked keys count, and in how many nodes.
    own: Vec<(i64, u8)>,
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    sum: f64,
    variance: f64,
    last: f64,
    last_variance: f64,
}

impl Known {
    /// By its counts in the substreams of the window, and the variances of what they are off by.
    fn of(counts: &[[f64; 2]]) -> Self {
        let [last, last_variance] = counts.last().copied().unwrap_or_default();
        let (sum, variance) =
            counts.iter().fold((0.0, 0.0), |(sum, all), [count, variance]| (sum + count, all + variance));
        Self { sum, variance, last, last_variance }
    }

    fn stands_out(&self, deviations: f64) -> bool {
        deviations * self.variance.sqrt() < self.sum || RISING * self.last_variance.sqrt() < self.last
    }
}

impl Seen {
    fn new(substream: &Arc<SealedSubstream>, plan: &Plan) -> Self {
        let mut nodes = vec![1; plan.own_len() as usize];
        substream.rungs().listed().for_each(|(slot, rung)| nodes[slot as usize] = 1 << rung);
        let own = substream.totals(plan).into_iter().zip(nodes).collect();
        let residual = substream.sketch(WHOLE).map_or_else(Vec::new, SealedSketch::cells);
        let mut seen = Self {
            substream: Arc::clone(substream),
            absent: (0.0, 0.0),
            residual,
            peeled: HashMap::new(),
            own,
        };
        // Frequent keys that are not tracked yet are above the middle.
        let (level, [below, _]) = seen.absent();
        seen.absent = (level, below);
        seen
    }

    fn absent(&self) -> (f64, [f64; 2]) {
        absent_middle(self.substream.mapping.shape, &self.residual, self.substream.number)
    }

    /// The smallest counter of each key.
    fn sealed_minima(&self, fingerprints: &[u64], put: impl FnMut(usize, i32)) {
        if let Some(observed) = observed(&self.substream) {
            observed.minima(fingerprints, put);
        }
    }

    /// The same without keys that stand out.
    fn minima(&self, fingerprints: &[u64], put: impl FnMut(usize, i32)) {
        let rows = self.substream.mapping.rows();
        rows.fold_all(fingerprints, &self.residual, i32::MAX, i32::min, put);
    }

    /// Takes keys away that stand out here, the largest first: others that share counters with them do no longer.
    fn peel(&mut self, mut keys: Vec<(i32, u64)>) {
        keys.sort_unstable_by_key(|&(minimum, fingerprint)| (Reverse(minimum), fingerprint));
        let (level, least) = (self.absent.0, RISING * self.absent.1);
        for (_, fingerprint) in keys {
            let cells = || self.substream.mapping.rows().cells(fingerprint);
            let count = cells().map(|cell| self.residual[cell]).min().unwrap_or(0) - level as i32;
            if least < f64::from(count) {
                cells().for_each(|cell| self.residual[cell] -= count);
                self.peeled.insert(fingerprint, count);
            }
        }
        let (level, [below, above]) = self.absent();
        self.absent = (level, below.max(above));
    }

    /// What hashed counters hold of a key.
    fn count(&self, fingerprint: u64) -> f64 {
        if let Some(&count) = self.peeled.get(&fingerprint) {
            return count.into();
        }
        let mut minimum = 0;
        self.minima(&[fingerprint], |_, least| minimum = least);
        f64::from(minimum) - self.absent.0
    }
}

impl Standing {
    /// Who is tracked in the substream that is to be decided next, and how finely those are cut that are tracked in the
    /// oldest open one.
    pub(crate) fn next(&mut self, plan: &Plan, released: &Released) -> (Leases, Rungs) {
        if let (true, Some(keys)) = (self.fingerprints.is_empty(), plan.settings().domain.keys()) {
            self.fingerprints = fingerprints(keys, released.mapping().fingerprint_key);
            self.sums = vec![0; keys.len()];
        }
        self.find(released);
        self.see(plan, released);
        let frequent = self.frequent(plan, released);
        let leases = Leases::clone(released.leases()).next(&frequent, plan);
        let rungs = self.rungs(plan, &leases, released.leases().horizon().next_oldest_open(plan));
        (leases, rungs)
    }

    /// Keys that are found later stand out in earlier substreams as well: a restored stream sees no others.
    fn find(&mut self, released: &Released) {
        let found = fingerprints(released.found().keys(), released.mapping().fingerprint_key);
        if self.found != found {
            self.found = found;
            self.seen.clear();
            self.sums.fill(0);
        }
    }

    /// Takes new substreams in and those that left out. What it knows of others than these, it forgets.
    fn see(&mut self, plan: &Plan, released: &Released) {
        let window = newest_window(released.substreams(), plan);
        let is_first = |seen: &Seen| window.first().is_some_and(|first| Arc::ptr_eq(&seen.substream, first));
        let gone = self.seen.iter().take_while(|seen| !is_first(seen)).count();
        for left in self.seen.drain(..gone) {
            let sums = &mut self.sums;
            left.sealed_minima(&self.fingerprints, |place, minimum| sums[place] -= i64::from(minimum));
        }
        let is_known = |(seen, sealed): (&Seen, &Arc<SealedSubstream>)| Arc::ptr_eq(&seen.substream, sealed);
        if window.len() < self.seen.len() || !self.seen.iter().zip(window).all(is_known) {
            self.seen.clear();
            self.sums.fill(0);
        }
        for substream in &window[self.seen.len()..] {
            let mut seen = Seen::new(substream, plan);
            let rising = self.rising(&seen, released);
            seen.peel(rising);
            self.seen.push_back(seen);
        }
    }

    /// Adds the smallest counters of a substream, and lists the keys that are not tracked there and stand out.
    fn rising(&mut self, seen: &Seen, released: &Released) -> Vec<(i32, u64)> {
        let (number, least) = (seen.substream.number, seen.absent.0 + RISING * seen.absent.1);
        let least = least.floor() as i32;
        let mut rising = Vec::new();
        let (keys, sums) = (&self.fingerprints, &mut self.sums);
        seen.sealed_minima(keys, |place, minimum| {
            sums[place] += i64::from(minimum);
            if least < minimum {
                rising.push((minimum, keys[place]));
            }
        });
        seen.sealed_minima(&self.found, |place, minimum| rising.push((minimum, self.found[place])));
        rising.retain(|(_, key)| released.leases().slot(*key, number).is_none());
        rising
    }

    /// Keys that are frequent enough to be tracked, the most frequent first.
    fn frequent(&self, plan: &Plan, released: &Released) -> Vec<u64> {
        let leases = released.leases();
        let last = leases.horizon().last();
        let score = |fingerprint: u64| {
            let known = Known::of(&self.counts(plan, leases, fingerprint).collect::<Vec<_>>());
            let is_tracked = leases.slot(fingerprint, last).is_some();
            let stands_out = known.stands_out(if is_tracked { STILL_TRACKED } else { TRACKED_DEVIATIONS });
            stands_out.then(|| (self.score(plan, &known), fingerprint))
        };
        let mut scores: Vec<(f64, u64)> = self.considered(released).into_iter().filter_map(score).collect();
        scores.sort_unstable_by(|(one, key), (other, key_of_other)| {
            other.total_cmp(one).then(key.cmp(key_of_other))
        });
        scores.into_iter().map(|(_, fingerprint)| fingerprint).collect()
    }

    /// Keys that may be frequent: tracked ones, those that stood out in a substream, found ones and those that stand out in
    /// what these leave.
    fn considered(&self, released: &Released) -> Vec<u64> {
        let (level, variance) = self.seen.iter().fold((0.0, 0.0), |(level, variance), seen| {
            (level + seen.absent.0, variance + seen.absent.1.powi(2))
        });
        let least = (level + TRACKED_DEVIATIONS * f64::sqrt(variance)).floor() as i64;
        let counts = self.fingerprints.iter().zip(&self.sums);
        let frequent = counts.filter(|(_, sum)| least < **sum).map(|(key, _)| *key);
        let peeled = self.seen.iter().flat_map(|seen| seen.peeled.keys().copied());
        let tracked = released.leases().iter().map(|(key, _, _)| key);
        let mut considered: Vec<u64> =
            frequent.chain(peeled).chain(tracked).chain(self.found.iter().copied()).collect();
        considered.sort_unstable();
        considered.dedup();
        considered
    }

    /// The counts of a key in the substreams of the window, and the variances of what they are off by.
    fn counts(&self, plan: &Plan, leases: &Leases, fingerprint: u64) -> impl Iterator<Item = [f64; 2]> {
        let (noise, slots) = (plan.own_law().variance(), leases.of(fingerprint));
        self.seen.iter().map(move |seen| match slot_in(slots.clone(), seen.substream.number) {
            Some(slot) => {
                let (count, nodes) = seen.own[slot as usize];
                [count as f64, noise * f64::from(nodes)]
            }
            None => [seen.count(fingerprint), seen.absent.1.powi(2)],
        })
    }

    /// A key's count per window.
    fn score(&self, plan: &Plan, known: &Known) -> f64 {
        let substreams = plan.settings().window.len().div_ceil(plan.substream_len()) as f64;
        let rising = substreams * (known.last - SURE * known.last_variance.sqrt());
        (known.sum * substreams / self.seen.len().max(1) as f64).max(rising)
    }

    fn rungs(&self, plan: &Plan, leases: &Leases, oldest: u64) -> Rungs {
        if plan.rungs().count() == 1 || self.seen.is_empty() {
            return Rungs::first(plan);
        }
        let counts = |(key, slot)| (self.counts(plan, leases, key).collect::<Vec<_>>(), slot);
        let tracked: Vec<(Vec<[f64; 2]>, u32)> = leases.at(oldest).map(counts).collect();
        let score = |counts: &[[f64; 2]]| self.score(plan, &Known::of(counts));
        let mut changes = Changes::default();
        let substreams = plan.settings().window.len().div_ceil(plan.substream_len()) as f64;
        let least = plan.rungs().first() * self.seen.len() as f64 / substreams;
        let frequent = tracked.iter().filter(|(counts, _)| least < Known::of(counts).sum);
        frequent.for_each(|(counts, _)| changes.add(counts));
        let planned = plan.rungs().clone().for_walk(changes.walk(substreams));
        let scores = tracked.iter().map(|(counts, slot)| (score(counts), *slot));
        let scores = scores.filter(|(score, _)| planned.first() < *score).collect();
        Rungs::by_score(&planned, scores)
    }
}

fn fingerprints(keys: &Keys, by: FingerprintKey) -> Vec<u64> {
    keys.iter().map(|item| by.item(item)).collect()
}
