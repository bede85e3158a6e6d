//! A sketch takes what workers counted.

use crate::error::PartialError;
use crate::secret::partial::{Origin, PartialCounters, PartialId};
use crate::stream::sketch::DpswSketch;

/// The most ids remembered for open substreams.
const ABSORBED_MAX: usize = 1_000_000;

/// The outcome of absorbing partial counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Absorbed {
    /// Ids whose events are counted now.
    pub new: usize,
    /// Ids that were absorbed before: repeated deliveries, which do not count again.
    pub repeated: usize,
}

impl DpswSketch {
    /// Takes what workers counted in a substream that is still open. The noise is drawn once, when it is sealed.
    ///
    /// No event decides whether others count: which counters there are follows from the public range that a worker was
    /// given, an id that was absorbed before is left out by itself, and so are segments that are already sealed.
    ///
    /// # Errors
    /// The counters belong to another plan or stream key, or their substream is sealed or too far ahead. Nothing changes
    /// then. See [`PartialError`].
    pub fn absorb(&mut self, partial: PartialCounters) -> Result<Absorbed, PartialError> {
        self.check_owner()?;
        if self.plan.settings().window.time().is_none_or(|time| !time.clock.is_callers()) {
            return Err(PartialError::EventsClock);
        }
        // What refuses a part as a whole is public: plan, key, substream, number of ids (PRIVACY.md: rule 28).
        Origin::new(&self.plan, &self.keys.stream).check_equal(partial.origin)?;
        self.check_open(partial.substream)?;
        // Those of sealed substreams would be refused as late.
        self.absorbed = self.absorbed.split_off(&(self.number, PartialId::FIRST));
        if ABSORBED_MAX < self.absorbed.len() + partial.parts.len() {
            return Err(PartialError::Many(ABSORBED_MAX));
        }
        let substream = partial.substream;
        let closed = if substream == self.number { self.open_substream(substream).closed_count() } else { 0 };
        let mut absorbed = Absorbed::default();
        for (id, segments) in partial.parts {
            // Left out by itself: what was merged with it still counts (PRIVACY.md: rule 11).
            if !self.absorbed.insert((substream, id)) {
                absorbed.repeated += 1;
                continue;
            }
            absorbed.new += 1;
            // Sealed segments are left out one by one (PRIVACY.md: rule 28).
            for (segment, counters) in segments.range(closed..) {
                self.open_substream(substream).count_in_segment(*segment, |open, _| open.add(counters));
            }
        }
        planted!(fault::absorbed());
        Ok(absorbed)
    }

    /// Forgets which partial counters were absorbed: for whoever remembers the batches that were taken, with the state, and gives
    /// none of them again. Used otherwise, what comes twice would count twice.
    #[cfg(any(test, feature = "checkpoints"))]
    pub fn forget_absorbed(&mut self) {
        self.absorbed.clear();
    }

    fn check_open(&self, substream: u64) -> Result<(), PartialError> {
        if self.time.start.is_none() || self.number + self.plan.open_substreams_max() <= substream {
            return Err(PartialError::Early { substream });
        }
        if substream < self.number { Err(PartialError::Late { substream }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::batch::Batch;
    use crate::item::hash::StreamKey;
    use crate::noise::generator::Noise;
    use crate::plan::settings::{Clock, CounterLayout, Settings, TunedMethod};
    use crate::plan::structure::Plan;
    use crate::stream::worker::Worker;

    fn plan() -> Plan {
        let counters = CounterLayout::Identity;
        let method = TunedMethod { substreams: 5, counters, ..TunedMethod::default() };
        let settings = Settings::last_ticks(100, 1000, 1.0).expect("in range").with_keys(0..4);
        settings.with_clock(Clock::Caller).with_method(method).plan().expect("a plan")
    }

    fn id(batch: u64) -> PartialId {
        PartialId { source: 1, batch, partition: 0 }
    }

    #[test]
    fn ids_are_remembered_up_to_a_named_maximum_and_those_of_sealed_substreams_are_not() {
        let key = || StreamKey::from_bytes([3; 32]);
        let worker = Worker::new(plan(), key()).expect("a worker");
        let one = |batch, time| {
            let counted = worker.count(id(batch), time..time + 1, Batch::integers(&[2]).at(&[time]));
            counted.expect("valid").partials.remove(0)
        };
        let mut sketch = DpswSketch::with_key(plan(), key(), Noise::off());
        sketch.advance(1000).expect("a clock");
        let many = (1..ABSORBED_MAX as u64).map(|batch| (50, id(1000 + batch)));
        sketch.absorbed = many.collect();
        assert!(sketch.absorb(one(1, 1000)).is_ok());
        assert_eq!(sketch.absorb(one(2, 1000)), Err(PartialError::Many(ABSORBED_MAX)));
        sketch.advance(1020).expect("a clock");
        assert!(sketch.absorb(one(2, 1020)).is_ok());
        assert_eq!(sketch.absorbed.len(), 1);
    }

    #[test]
    fn counts_are_taken_up_to_the_last_open_substream() {
        let key = || StreamKey::from_bytes([3; 32]);
        let worker = Worker::new(plan(), key()).expect("a worker");
        let mut sketch = DpswSketch::with_key(plan(), key(), Noise::off());
        sketch.advance(1000).expect("a clock");
        let mut absorb = |substream: u64| {
            let time = substream * 20;
            let counted = worker.count(id(1), time..time + 1, Batch::integers(&[2]).at(&[time]));
            sketch.absorb(counted.expect("valid").partials.remove(0)).map(|absorbed| absorbed.new)
        };
        let last = 50 + plan().open_substreams_max() - 1;
        assert_eq!(absorb(last), Ok(1));
        assert_eq!(absorb(last + 1), Err(PartialError::Early { substream: last + 1 }));
    }
}
