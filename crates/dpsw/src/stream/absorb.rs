//! A sketch takes what workers counted.

use crate::error::{IngestError, PartialError};
use crate::plan::settings::Clock;
use crate::secret::partial::{Origin, PartialCounters, PartialId};
use crate::stream::sketch::DpswSketch;

/// The most ids remembered for open substreams.
const ABSORBED_MAX: usize = 1_000_000;

impl DpswSketch {
    /// Takes what a worker counted in a substream that is still open. The noise is drawn once, when it is sealed.
    ///
    /// # Errors
    /// The counters belong to another plan or stream key, were absorbed before, or their substream is sealed or too far
    /// ahead. Nothing is changed then.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "what was absorbed must not be at hand to be absorbed again"
    )]
    pub fn absorb(&mut self, partial: PartialCounters) -> Result<(), PartialError> {
        self.check_owner()?;
        if self.plan.settings().window.time().is_some_and(|time| time.clock == Clock::Events) {
            return Err(IngestError::Times("partial counters need the caller's clock").into());
        }
        Origin::new(&self.plan, &self.keys.stream).check(partial.origin)?;
        self.check_open(&partial)?;
        let substream = partial.substream;
        if let Some(id) = partial.ids.iter().find(|id| self.absorbed.contains(&(substream, **id))) {
            return Err(id.duplicate());
        }
        // Those of sealed substreams would be refused as late.
        self.absorbed = self.absorbed.split_off(&(self.number, PartialId::FIRST));
        if ABSORBED_MAX < self.absorbed.len() + partial.ids.len() {
            return Err(PartialError::Many(ABSORBED_MAX));
        }
        self.absorbed.extend(partial.ids.iter().map(|id| (substream, *id)));
        for (segment, counters) in &partial.segments {
            self.open_substream(substream).count(*segment, |open, _| open.add(counters));
        }
        Ok(())
    }

    fn check_open(&self, partial: &PartialCounters) -> Result<(), PartialError> {
        let substream = partial.substream;
        let has_closed = |segment: usize| {
            let front = self.open.front().expect("a substream is always open");
            substream == self.number && segment < front.closed()
        };
        if self.time.start.is_none() || self.number + self.plan.open_substreams_max() <= substream {
            return Err(PartialError::Early { substream });
        }
        if substream < self.number || partial.segments.keys().any(|&segment| has_closed(segment)) {
            return Err(PartialError::Late { substream });
        }
        Ok(())
    }
}
