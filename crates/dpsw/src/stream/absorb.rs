//! A sketch takes what workers counted.

use crate::error::PartialError;
use crate::plan::settings::Clock;
use crate::secret::partial::{Origin, PartialCounters, PartialId};
use crate::stream::sketch::DpswSketch;

/// The most ids remembered for open substreams.
const ABSORBED_MAX: usize = 1_000_000;

/// What became of partial counters.
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
        if self.plan.settings().window.time().is_none_or(|time| time.clock != Clock::Caller) {
            return Err(PartialError::EventsClock);
        }
        Origin::new(&self.plan, &self.keys.stream).check(partial.origin)?;
        self.check_open(partial.substream)?;
        // Those of sealed substreams would be refused as late.
        self.absorbed = self.absorbed.split_off(&(self.number, PartialId::FIRST));
        if ABSORBED_MAX < self.absorbed.len() + partial.parts.len() {
            return Err(PartialError::Many(ABSORBED_MAX));
        }
        let substream = partial.substream;
        let closed = if substream == self.number { self.open_substream(substream).closed() } else { 0 };
        let mut absorbed = Absorbed::default();
        for (id, segments) in partial.parts {
            if !self.absorbed.insert((substream, id)) {
                absorbed.repeated += 1;
                continue;
            }
            absorbed.new += 1;
            for (segment, counters) in segments.range(closed..) {
                self.open_substream(substream).count(*segment, |open, _| open.add(counters));
            }
        }
        Ok(absorbed)
    }

    fn check_open(&self, substream: u64) -> Result<(), PartialError> {
        if self.time.start.is_none() || self.number + self.plan.open_substreams_max() <= substream {
            return Err(PartialError::Early { substream });
        }
        if substream < self.number { Err(PartialError::Late { substream }) } else { Ok(()) }
    }
}
