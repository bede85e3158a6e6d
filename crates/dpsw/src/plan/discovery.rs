//! How keys are found.

use crate::error::{ParameterError, PlanError, Quantity};
use crate::item::domain::{Discovery, Tracking};
use crate::item::value::Kind;
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::plan::budget::{KEY_MARGIN, KeyBudget};
use crate::plan::layout::{kept, substream_items, touched};
use crate::plan::limits::{
    EPOCH_ITEMS_MAX, EPOCH_MAX, KEY_LEN_MAX, KEYS_MAX, RECENT_LEN, ROOM, TRACKED_LEN, check,
};
use crate::plan::range::LazyTable;
use crate::plan::reach::Events;
use crate::plan::settings::{Settings, Window};
use crate::privacy::ledger::{Cost, Ledger};
use crate::ratio::Ratio;

/// How keys are found: everything that follows from a [`Discovery`].
#[derive(Debug, Clone)]
pub struct PlannedDiscovery {
    discovery: Discovery,
    epoch: u64,
    items_max: u64,
    release: Release,
    table: LazyTable,
}

impl PlannedDiscovery {
    /// Substreams per epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The items of an epoch that are searched for keys: all of them, or in a time window the first ones, at most this many.
    #[must_use]
    pub fn items_max(&self) -> u64 {
        self.items_max
    }

    /// The law of the noise on the count of a key.
    #[must_use]
    pub fn law(&self) -> Law {
        Law::Laplace { scale: self.release.scale }
    }

    /// A key is released if its noisy count exceeds this.
    #[must_use]
    pub fn threshold(&self) -> i64 {
        self.release.threshold
    }

    /// The probability that a key comes out although only one event brought it in or, where users are protected, only what
    /// one user sent in a window.
    #[must_use]
    pub fn seen_once(&self) -> f64 {
        self.release.seen_once
    }

    /// The smallest count in an epoch that is found with this probability.
    #[must_use]
    pub fn count_found(&self, probability: f64) -> f64 {
        let missing = match self.discovery.tracking {
            Tracking::Exact => 0,
            Tracking::Summary { keys } => self.items_max / (keys + 1),
        };
        let steps = steps_beyond(self.release.scale.to_f64(), 1.0 - probability)
            .map_or(f64::INFINITY, |steps| steps as f64);
        self.threshold() as f64 + missing as f64 + steps
    }

    /// The smallest share of an epoch that is found with this probability; above 1 if none is.
    #[must_use]
    pub fn share_found(&self, probability: f64) -> f64 {
        self.count_found(probability) / self.items_max as f64
    }

    pub(crate) fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(self.law()))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.discovery.kind
    }

    /// The most keys of a summary.
    pub(crate) fn limit(&self) -> Option<usize> {
        match self.discovery.tracking {
            Tracking::Exact => None,
            Tracking::Summary { keys } => usize::try_from(keys).ok(),
        }
    }

    pub(crate) fn key_len_max(&self) -> usize {
        self.discovery.key_len_max as usize
    }

    fn entry_len(&self) -> u64 {
        match self.discovery.kind {
            Kind::Integers => 16,
            Kind::Bytes => TRACKED_LEN as u64,
        }
    }

    /// About how many keys an epoch releases at most.
    pub(crate) fn found_max(&self) -> u64 {
        self.items_max / self.release.threshold.max(1) as u64 + 1
    }

    /// The most bytes that the keys of a running epoch take: entries at the least load of the map, and key bytes.
    pub(crate) fn tracker_bytes(&self) -> u64 {
        let entries = self.limit().map_or(self.items_max, |limit| self.items_max.min(limit as u64));
        // Lists grow by doubling; the map of places holds 8 bytes per slot.
        let slots = (entries * 4 / 3 + 1).next_power_of_two();
        let keys = match self.discovery.kind {
            Kind::Integers => 0,
            Kind::Bytes => entries * u64::from(self.discovery.key_len_max),
        };
        slots * 8 + entries.next_power_of_two() * self.entry_len() + keys + RECENT_LEN as u64
    }
}

/// The smallest z ≥ 0 with P[noise > z - 1] = qᶻ / (1 + q) ≤ `probability`, for q = exp(-1 / scale); none if it is beyond
/// what counts can reach.
fn steps_beyond(scale: f64, probability: f64) -> Option<u64> {
    let q = (-1.0 / scale).exp();
    let z = (-scale * (probability * (1.0 + q)).ln() * (1.0 + 1e-12)).ceil().max(0.0);
    (z <= THRESHOLD_MAX as f64).then_some(z as u64)
}

/// The highest threshold of found keys: it and the noise fit in 32 bits.
const THRESHOLD_MAX: u64 = 1 << 29;

impl PlannedDiscovery {
    /// How keys are found with this budget; see PRIVACY.md.
    pub(crate) fn new(
        settings: &Settings,
        discovery: Discovery,
        budget: KeyBudget,
        substream_len: u64,
        ledger: &mut Ledger,
    ) -> Result<Self, PlanError> {
        let kept = kept(settings.window.len(), settings.retention, substream_len);
        let events = settings.unit.events(touched(settings.window.len(), substream_len));
        let with = |epoch: u64| {
            let items_max = items_max(settings.window, epoch, substream_len);
            check_discovery(discovery, epoch, kept, items_max)?;
            let refused = ParameterError::Epsilon(budget.epsilon.to_f64());
            let release = Release::new(events, epoch, budget).ok_or(refused)?;
            Ok::<_, PlanError>(Self { discovery, epoch, items_max, release, table: LazyTable::default() })
        };
        let planned = match discovery.epoch {
            Some(epoch) => with(epoch)?,
            None => with(with(1)?.epoch_wanted(settings.window.len().div_ceil(substream_len)))?,
        };
        let delta = (1.0 + settings.epsilon.get().exp()) * budget.delta_of_key;
        ledger.charge("the keys of an epoch", Cost::Approximate(budget.epsilon, delta))?;
        Ok(planned)
    }

    /// As few substreams as find keys with a small share of the window, at most a whole window; this is a plan for one.
    fn epoch_wanted(&self, window: u64) -> u64 {
        ((self.share_found(FOUND) / SHARE_FOUND).ceil() as u64).clamp(1, window)
    }

    /// What was asked for, with the epoch that was chosen.
    pub(crate) fn chosen(&self) -> Discovery {
        Discovery { epoch: Some(self.epoch), ..self.discovery }
    }
}

/// Where the length of an epoch is not given, it finds keys with this share of the window, with this probability.
const SHARE_FOUND: f64 = 0.001;
const FOUND: f64 = 0.99;

/// Which noisy counts come out.
#[derive(Debug, Clone, Copy)]
struct Release {
    scale: Ratio,
    threshold: i64,
    seen_once: f64,
}

impl Release {
    /// `None` for an ε that is too fine.
    fn new(events: Events, epoch: u64, budget: KeyBudget) -> Option<Self> {
        let Events { of_substream, of_window } = events;
        let of_epoch = of_window.min(of_substream.saturating_mul(epoch));
        // An event that is added can push the last one out of the epoch's room, so two counts change then as well.
        let scale = budget.epsilon.checked_divide(2 * of_window)?;
        let steps = steps_beyond(scale.to_f64(), budget.delta_of_key / of_window as f64)?;
        let threshold = (of_epoch - 1).checked_add(steps).filter(|&t| t <= THRESHOLD_MAX)? as i64;
        let q = (-1.0 / scale.to_f64()).exp();
        let seen_once = of_window as f64 * q.powf(steps as f64) / (1.0 + q);
        let is_kept = (0.0..=budget.delta_of_key * (1.0 + KEY_MARGIN)).contains(&seen_once);
        is_kept.then_some(Self { scale, threshold, seen_once })
    }
}

/// The items of an epoch that are looked at.
fn items_max(window: Window, epoch: u64, substream_len: u64) -> u64 {
    let room = match window {
        Window::Items(_) => 1,
        Window::Time(_) => ROOM,
    };
    substream_items(window, substream_len).saturating_mul(epoch).saturating_mul(room)
}

fn check_discovery(discovery: Discovery, epoch: u64, kept: u64, items_max: u64) -> Result<(), PlanError> {
    check(Quantity::Epoch, epoch, 1, kept.min(EPOCH_MAX))?;
    check(Quantity::KeyLen, discovery.key_len_max.into(), 1, KEY_LEN_MAX)?;
    check(Quantity::EpochItems, items_max, 1, EPOCH_ITEMS_MAX)?;
    let entries = match discovery.tracking {
        Tracking::Exact => items_max,
        Tracking::Summary { keys } => {
            check(Quantity::SummaryKeys, keys, 1, KEYS_MAX)?;
            keys.min(items_max)
        }
    };
    let bytes = entries.saturating_mul(discovery.key_len_max.into());
    check(Quantity::EpochBytes, bytes, 1, u32::MAX.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::plan::settings::{CounterLayout, Method, NoiseChoice, TunedMethod, Unit};
    use crate::plan::structure::Plan;
    use crate::privacy::parameters::{Delta, Epsilon};

    /// P[noise > z - 1].
    fn beyond(scale: f64, z: u64) -> f64 {
        let q = (-1.0 / scale).exp();
        q.powf(z as f64) / (1.0 + q)
    }

    #[test]
    fn the_threshold_is_the_smallest_that_noise_passes_rarely_enough() {
        for scale in [0.3, 1.0, 10.0, 1234.5] {
            for probability in [0.3, 1e-3, 1e-9, 1e-20] {
                let steps = steps_beyond(scale, probability).expect("within reach");
                assert!(beyond(scale, steps) <= probability, "scale {scale}, {probability:e}");
                assert!(
                    steps == 0 || probability < beyond(scale, steps - 1),
                    "scale {scale}, {probability:e}"
                );
            }
        }
        assert_eq!(steps_beyond(1.0, 0.9), Some(0));
        assert_eq!(steps_beyond(1e9, 1e-9), None);
        // Where the probability is met exactly, but for rounding errors, one step more is taken.
        assert_eq!(steps_beyond(10.0, beyond(10.0, 200)), Some(201));
    }

    #[test]
    fn what_is_found_and_what_it_takes_follow_from_the_threshold() {
        let discovery = Discovery {
            epoch: Some(1),
            tracking: Tracking::Summary { keys: 9 },
            ..Discovery::new(Kind::Bytes)
        };
        let plan = Plan::new(Settings {
            window: Window::Items(1000),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(5.0).expect("in range"),
            delta: Delta::new(1e-9).ok(),
            domain: Domain::Discovered(discovery),
            method: Some(Method::Tuned(TunedMethod {
                substreams: 10,
                counters: CounterLayout::Hashed { rows: 1, columns: 2 },
                noise: NoiseChoice::Laplace,
            })),
            retention: 1,
        });
        let plan = plan.expect("a plan");
        let found = plan.discovery().expect("keys are found");
        assert_eq!((found.epoch(), found.items_max(), found.limit()), (1, 100, Some(9)));
        let scale = found.law().scale().expect("Laplace");
        let above = found.count_found(0.99) - found.threshold() as f64 - 100.0 / 10.0;
        assert!(beyond(scale, above as u64) <= 0.01 && 0.01 < beyond(scale, above as u64 - 1));
        assert_eq!(found.share_found(0.99), found.count_found(0.99) / 100.0);
        assert!((found.seen_once() / beyond(scale, found.threshold() as u64) - 1.0).abs() < 1e-9);
        assert_eq!(found.found_max(), 100 / found.threshold() as u64 + 1);
        // Nine keys: sixteen slots of 8 bytes, room for sixteen entries, 256 bytes a key, and those met lately.
        assert_eq!(found.tracker_bytes(), 16 * 8 + 16 * 24 + 9 * 256 + (1 << 16));
        assert_eq!(found.chosen(), discovery);
    }

    #[test]
    fn what_one_user_brings_in_alone_comes_out_as_rarely_as_the_budget_says() {
        let budget = KeyBudget { epsilon: Ratio::new(1, 2).expect("a ratio"), delta_of_key: 1e-9 };
        for (of_substream, of_window, epoch, most) in [(1, 1, 4, 1), (3, 15, 2, 6), (3, 15, 9, 15)] {
            let release =
                Release::new(Events { of_substream, of_window }, epoch, budget).expect("a threshold");
            // The scale is two changes of each item over epsilon.
            assert_eq!(release.scale, Ratio::new(4 * of_window, 1).expect("a ratio"));
            // A key of `most` items comes out if the noise exceeds what is missing to the threshold.
            let missing = release.threshold as u64 - most + 1;
            let scale = release.scale.to_f64();
            assert!(of_window as f64 * beyond(scale, missing) <= budget.delta_of_key);
            assert!(budget.delta_of_key < of_window as f64 * beyond(scale, missing - 1));
            let seen = of_window as f64 * beyond(scale, missing);
            assert!((release.seen_once / seen - 1.0).abs() < 1e-9);
        }
    }
}
