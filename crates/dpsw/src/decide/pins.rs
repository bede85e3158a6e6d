//! Which keys are pinned next, and how finely pinned ones are cut: by what is sealed of the last window. Cheap enough for
//! every seal.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::decide::levels::{KeyCounts, levels_for};
use crate::decide::sums::{SummedSubstream, WindowSums, newest_window};
use crate::plan::limits::PINNED_DEVIATIONS;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::absent::absent_middle;
use crate::sealed::found::fingerprint_keys;
use crate::sealed::levels::Levels;
use crate::sealed::pins::{Pins, slot_in};
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;

/// A pinned key stays pinned while it stands out by half as much.
const STILL_PINNED: f64 = PINNED_DEVIATIONS / 2.0;
/// A key is pinned at once that stands out in the newest substream by so many deviations.
const RISING: f64 = 5.0;

/// Assigns slots to the keys that are frequent in the last window.
#[derive(Debug, Default)]
pub(crate) struct PinChooser {
    /// Of the public list, made when it is first needed.
    fingerprints: Vec<u64>,
    /// Of the keys that are found now.
    found: Vec<u64>,
    /// What the smallest hashed counters of each key of the list add up to.
    sums: WindowSums<Residual>,
}

/// The hashed counters of a substream without the keys that stand out there unpinned.
#[derive(Debug)]
struct Residual {
    cells: Vec<i32>,
    /// What those keys count.
    peeled: HashMap<u64, i32>,
    /// What an absent key sees in the counters, and its deviation.
    absent: (f64, f64),
    /// By slot: what pinned keys count, and in how many slices.
    own: Vec<(i64, u8)>,
}

impl Residual {
    fn new(substream: &SealedSubstream, plan: &Plan) -> Self {
        let mut slices = vec![1; plan.own_len() as usize];
        for (slot, level) in substream.levels().listed_keys() {
            slices[slot as usize] = 1 << level;
        }
        let own = substream.key_totals(plan).into_iter().zip(slices).collect();
        let cells = substream.sketch(WHOLE).map_or_else(Vec::new, SealedSketch::cells);
        // Frequent keys that are not pinned yet are above the middle.
        let (level, [below, _]) = absent_middle(substream.mapping.shape, &cells, substream.number);
        Self { cells, peeled: HashMap::new(), absent: (level, below), own }
    }

    /// The smallest count with which a key stands out that is not pinned here.
    fn least_rising(&self) -> i32 {
        (self.absent.0 + RISING * self.absent.1).floor() as i32
    }

    /// Takes keys away that stand out here, the largest first: others that share counters with them do no longer.
    fn peel_off(&mut self, substream: &SealedSubstream, mut keys: Vec<(i32, u64)>) {
        keys.sort_unstable_by_key(|&(minimum, fingerprint)| (Reverse(minimum), fingerprint));
        let level = self.absent.0;
        let least = RISING * self.absent.1;
        let rows = substream.mapping.rows();
        for (_, fingerprint) in keys {
            let minimum = rows.cells_of(fingerprint).map(|cell| self.cells[cell]).min();
            let count = minimum.unwrap_or(0) - level as i32;
            if least < f64::from(count) {
                for cell in rows.cells_of(fingerprint) {
                    self.cells[cell] -= count;
                }
                self.peeled.insert(fingerprint, count);
            }
        }
        let (level, [below, above]) = absent_middle(substream.mapping.shape, &self.cells, substream.number);
        self.absent = (level, below.max(above));
    }

    /// What hashed counters hold of a key.
    fn count_key(&self, substream: &SealedSubstream, fingerprint: u64) -> f64 {
        if let Some(&count) = self.peeled.get(&fingerprint) {
            return count.into();
        }
        let cells = substream.mapping.rows().cells_of(fingerprint);
        f64::from(cells.map(|cell| self.cells[cell]).min().unwrap_or(0)) - self.absent.0
    }
}

impl KeyCounts {
    fn stands_out(&self, deviations: f64) -> bool {
        let [last, last_variance] = self.last();
        deviations * self.variance().sqrt() < self.sum() || RISING * last_variance.sqrt() < last
    }
}

impl PinChooser {
    /// Who is pinned in the substream that is to be decided next, and how finely those are cut that are pinned in the
    /// oldest open one.
    pub(crate) fn choose_pins(&mut self, plan: &Plan, released: &Released) -> (Pins, Levels) {
        let key = released.mapping().fingerprint_key;
        if let (true, Some(keys)) = (self.fingerprints.is_empty(), plan.settings().domain.keys()) {
            self.fingerprints = fingerprint_keys(keys, key);
        }
        let found = fingerprint_keys(released.found().keys(), key);
        // Keys that are found later stand out in earlier substreams as well: a restored stream sees no others.
        if self.found != found {
            self.found = found;
            self.sums.forget();
        }
        self.slide_sums(plan, released);
        let pins =
            Pins::clone(released.pins()).with_next_substream(&self.frequent_keys(plan, released), plan);
        // PRIVACY.md: rule 33. Levels are those of the oldest open substream, pins those of one that no event can have reached.
        let levels = self.choose_levels(plan, &pins, released.pins().horizon().next_oldest_open(plan));
        (pins, levels)
    }

    fn slide_sums(&mut self, plan: &Plan, released: &Released) {
        let Self { fingerprints, found, sums } = self;
        sums.slide_to(
            newest_window(released.substreams(), plan),
            fingerprints.len(),
            |substream| Residual::new(substream, plan),
            |changes, sums| {
                for (times, SummedSubstream { substream, details }) in changes {
                    let Some(sketch) = substream.sketch(WHOLE) else { continue };
                    let is_new = 0 < *times;
                    let least = details.least_rising();
                    let mut rising = Vec::new();
                    sketch.visit_minima(substream.mapping.rows(), fingerprints, |key_index, minimum| {
                        sums[key_index] += *times * i64::from(minimum);
                        if is_new && least < minimum {
                            rising.push((minimum, fingerprints[key_index]));
                        }
                    });
                    // What leaves the window was peeled when it came.
                    if is_new {
                        sketch.visit_minima(substream.mapping.rows(), found, |key_index, minimum| {
                            rising.push((minimum, found[key_index]));
                        });
                        rising.retain(|(_, key)| released.pins().slot_at(*key, substream.number).is_none());
                        details.peel_off(substream, rising);
                    }
                }
            },
        );
    }

    /// Keys that are frequent enough to be pinned, the most frequent first.
    fn frequent_keys(&self, plan: &Plan, released: &Released) -> Vec<u64> {
        let pins = released.pins();
        let last = pins.horizon().last_decided();
        let mut scores: Vec<(f64, u64)> = Vec::new();
        for fingerprint in self.keys_considered(released) {
            let counts = self.counts_of(plan, pins, fingerprint);
            let is_pinned = pins.slot_at(fingerprint, last).is_some();
            if counts.stands_out(if is_pinned { STILL_PINNED } else { PINNED_DEVIATIONS }) {
                scores.push((counts.per_window(plan), fingerprint));
            }
        }
        // Equal counts go by fingerprint: whoever decides again must come to the same pins (PRIVACY.md: rule 33).
        scores.sort_unstable_by(|(one, key), (other, key_of_other)| {
            other.total_cmp(one).then(key.cmp(key_of_other))
        });
        scores.into_iter().map(|(_, fingerprint)| fingerprint).collect()
    }

    /// Keys that may be frequent: pinned ones, those that stood out in a substream, found ones and those that stand out in
    /// what these leave.
    fn keys_considered(&self, released: &Released) -> Vec<u64> {
        let mut level = 0.0;
        let mut variance = 0.0;
        let mut considered = self.found.clone();
        for summed in self.sums.window() {
            level += summed.details.absent.0;
            variance += summed.details.absent.1.powi(2);
            considered.extend(summed.details.peeled.keys());
        }
        let least = (level + PINNED_DEVIATIONS * f64::sqrt(variance)).floor() as i64;
        let sums = self.fingerprints.iter().zip(self.sums.sums());
        considered.extend(sums.filter(|(_, sum)| least < **sum).map(|(key, _)| *key));
        considered.extend(released.pins().iter().map(|(key, _, _)| key));
        considered.sort_unstable();
        considered.dedup();
        considered
    }

    /// The counts of a key in the substreams of the window.
    fn counts_of(&self, plan: &Plan, pins: &Pins, fingerprint: u64) -> KeyCounts {
        let noise = plan.own_law().variance();
        let slots = pins.slots_of(fingerprint);
        let mut counts = Vec::with_capacity(self.sums.window().len());
        for SummedSubstream { substream, details } in self.sums.window() {
            counts.push(match slot_in(slots.clone(), substream.number) {
                Some(slot) => {
                    let (count, slices) = details.own[slot as usize];
                    [count as f64, noise * f64::from(slices)]
                }
                None => [details.count_key(substream, fingerprint), details.absent.1.powi(2)],
            });
        }
        KeyCounts(counts)
    }

    fn choose_levels(&self, plan: &Plan, pins: &Pins, oldest: u64) -> Levels {
        if plan.levels().count() == 1 || self.sums.window().is_empty() {
            return Levels::first(plan);
        }
        let pinned: Vec<(KeyCounts, u32)> =
            pins.keys_at(oldest).map(|(key, slot)| (self.counts_of(plan, pins, key), slot)).collect();
        let planned = levels_for(plan, pinned.iter().map(|(counts, _)| counts));
        Levels::of_largest(&planned, pinned.iter().map(|(counts, slot)| (counts.per_window(plan), *slot)))
    }
}
