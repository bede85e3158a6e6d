//! Time windows: events carry times, intervals are sealed when the watermark passes them, also when they are empty.

use std::ops::Range;

use crate::error::IngestError;
use crate::item::batch::Batch;
use crate::item::run::Run;
use crate::item::value::Item;
use crate::plan::settings::{Clock, TimeWindow};
use crate::plan::structure::Plan;
use crate::stream::sketch::{DpswSketch, Taken, Unsealed};

/// The latest time: positions and everything added to them stay in range.
pub(crate) const TIME_MAX: u64 = 1 << 61;

impl DpswSketch {
    /// Moves the watermark of a time window forward: every range that ends at or before it is sealed. An
    /// earlier watermark changes nothing: a sealed interval never opens again. The first call sets where the stream begins: earlier
    /// events are late.
    ///
    /// # Errors
    /// The window counts items, the clock is that of the events, the watermark is above 2⁶¹, or the system gives no
    /// randomness; in the last case what was sealed stays sealed and the call can be repeated. See [`IngestError`].
    pub fn advance(&mut self, watermark: u64) -> Result<(), IngestError> {
        self.check_owner()?;
        match self.plan.settings().window.time() {
            None => return Err(IngestError::CountWindow),
            Some(TimeWindow { clock: Clock::Events, .. }) => return Err(IngestError::EventsClock),
            Some(_) => {}
        }
        if TIME_MAX < watermark {
            return Err(IngestError::FarFuture(watermark));
        }
        self.move_clock(watermark).map_err(|unsealed| unsealed.into_error_after(0))
    }

    /// Takes one event of a time window. [`extend`](Self::extend) is faster for many.
    ///
    /// # Errors
    /// The event is late or too far ahead; else see [`IngestError`].
    pub fn add_at<'i>(&mut self, time: u64, item: impl Into<Item<'i>>) -> Result<(), IngestError> {
        let taken = match item.into() {
            Item::Integer(value) => self.extend(Batch::integers(&[value]).at(&[time])),
            Item::Bytes(value) => self.extend(Batch::bytes(&[value]).at(&[time])),
        }?;
        if taken.late == 1 {
            let sealed = self.earliest_open();
            return Err(IngestError::Late { by: sealed - time, sealed });
        }
        if taken.early == 1 {
            return Err(if TIME_MAX < time {
                IngestError::FarFuture(time)
            } else {
                IngestError::Early { by: time - self.open_until() + 1 }
            });
        }
        Ok(())
    }

    /// How many events were refused for being late; `None` where that is private.
    #[must_use]
    pub fn late_events(&self) -> Option<u64> {
        self.plan.has_public_totals().then_some(self.time.late)
    }

    pub(crate) fn take_at(&mut self, times: &[u64], run: Run<'_>, taken: &mut Taken) -> Result<(), Unsealed> {
        let mut done = 0;
        while done < times.len() {
            let time = times[done];
            // Left out by itself: a clock that followed it would make all others late (PRIVACY.md: rule 28).
            if TIME_MAX < time {
                (taken.early, done) = (taken.early + 1, done + 1);
                continue;
            }
            self.follow_events(time).map_err(|unsealed| unsealed.having_taken(done))?;
            // The clock has followed the event first, so that how events are batched does not matter.
            let len = self.run_len(&times[done..]);
            match self.place_of(time) {
                // Only this event is left out (PRIVACY.md: rule 28).
                Place::Late => (taken.late, self.time.late) = (taken.late + 1, self.time.late + 1),
                Place::Early => taken.early += 1,
                Place::Open { number, segment } => {
                    self.begin_by(number, &times[done..done + len]);
                    taken.add_events(len, self.take_now(number, Some(segment), run.part_from(done, len)));
                }
            }
            let newest = *times[done..done + len].iter().max().expect("a run has at least one event");
            self.follow_events(newest).map_err(|unsealed| unsealed.having_taken(done + len))?;
            done += len;
        }
        Ok(())
    }

    /// How many of these events, from the first on, fall into the first one's segment and move no boundary.
    fn run_len(&self, times: &[u64]) -> usize {
        let Place::Open { number, segment } = self.place_of(times[0]) else { return 1 };
        let Range { start, mut end } = segment_times(&self.plan, number, segment);
        let start = start.max(self.earliest_open());
        if let Some(TimeWindow { clock: Clock::Events, lateness, .. }) = self.plan.settings().window.time() {
            // An event at this time or later moves the watermark over a boundary.
            end = end.min(self.next_boundary().saturating_add(lateness));
        }
        times.iter().take_while(|time| (start..end).contains(time)).count().max(1)
    }

    /// Where an event belongs.
    fn place_of(&self, time: u64) -> Place {
        if self.time.start.is_none() || self.open_until() <= time {
            return Place::Early;
        }
        if time < self.earliest_open() {
            return Place::Late;
        }
        let (number, segment) = self.plan.locate_position(time);
        Place::Open { number, segment }
    }

    /// Events before this time are late: all of it is sealed or given up, or the caller's clock began later.
    fn earliest_open(&self) -> u64 {
        match self.plan.settings().window.time() {
            // The caller's first watermark is where the stream begins, and no event moves that.
            Some(window) if window.clock.is_callers() => {
                self.sealed_until().max(self.time.start.unwrap_or(0))
            }
            _ => self.sealed_until(),
        }
    }

    /// A stream that follows its events began no later than the first of them.
    fn begin_by(&mut self, number: u64, times: &[u64]) {
        // Earlier events come here only where events move the clock, and there their times are public.
        if let Some(start) = self.time.start.filter(|&start| number * self.plan.substream_len() < start) {
            self.time.start = times.iter().copied().chain([start]).min();
        }
    }

    /// Everything before this position or time is sealed or given up: plan and clock alone say where it is.
    #[must_use]
    pub fn sealed_until(&self) -> u64 {
        let open = self.open.front().expect("a substream is always open");
        self.number * self.plan.substream_len() + open.sealed_until(&self.plan)
    }

    /// Events from this time on have to wait for the clock.
    fn open_until(&self) -> u64 {
        (self.number + self.plan.open_substreams_max()) * self.plan.substream_len()
    }

    fn follow_events(&mut self, time: u64) -> Result<(), Unsealed> {
        match self.plan.settings().window.time() {
            Some(TimeWindow { clock: Clock::Events, lateness, .. }) => {
                self.move_clock(time.saturating_sub(lateness))
            }
            _ => Ok(()),
        }
    }

    fn move_clock(&mut self, watermark: u64) -> Result<(), Unsealed> {
        let len = self.plan.substream_len();
        if self.time.start.is_none() {
            self.begin_at(watermark);
        }
        // What is sealed stays closed, whatever the clock does (PRIVACY.md: rule 6).
        if watermark < self.time.now {
            return Ok(());
        }
        // What leaves the retention at once need not be sealed: it would never be seen.
        let oldest = watermark.saturating_sub(self.plan.retained_len()) / len;
        if self.number < oldest {
            self.jump_to(oldest);
            planted!(fault::clock_jumped());
        }
        while self.next_boundary() <= watermark {
            // Also where no event came: what is sealed must not depend on that. If the draw fails, the clock stands at what is
            // to be sealed next.
            self.time.now = self.time.now.max(self.next_boundary());
            self.close_segment().map_err(|source| Unsealed { accepted: 0, source })?;
        }
        self.time.now = watermark;
        Ok(())
    }

    pub(crate) fn check_clock(&self, window: TimeWindow) -> Result<(), IngestError> {
        if window.clock.is_callers() && self.time.start.is_none() {
            return Err(IngestError::ClockUnset);
        }
        Ok(())
    }
}

/// The times of a segment of a substream.
pub(crate) fn segment_times(plan: &Plan, substream: u64, segment: usize) -> Range<u64> {
    let origin = substream * plan.substream_len();
    let boundaries = plan.boundaries();
    let start = segment.checked_sub(1).map_or(0, |before| boundaries[before]);
    origin + start..origin + boundaries[segment]
}

enum Place {
    Late,
    Early,
    Open { number: u64, segment: usize },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::hash::StreamKey;
    use crate::noise::generator::Noise;
    use crate::plan::settings::{CounterLayout, Settings, TunedMethod};

    /// Substreams of twenty ticks; events may be ten late.
    fn sketch(clock: Clock, noise: Noise) -> DpswSketch {
        let counters = CounterLayout::Identity;
        let method = TunedMethod { substreams: 5, counters, ..TunedMethod::default() };
        let settings = Settings::last_ticks(100, 1000, 1.0).expect("in range").with_keys(0..4);
        let settings = settings.with_clock(clock).with_lateness(10).with_method(method);
        DpswSketch::with_key(settings.plan().expect("a plan"), StreamKey::from_bytes([3; 32]), noise)
    }

    #[test]
    fn the_latest_time_is_a_time_and_the_one_after_it_is_not() {
        let mut called = sketch(Clock::Caller, Noise::off());
        called.advance(1000).expect("a clock");
        let by = TIME_MAX - called.open_until() + 1;
        assert_eq!(called.add_at(TIME_MAX, 1), Err(IngestError::Early { by }));
        assert_eq!(called.add_at(TIME_MAX + 1, 1), Err(IngestError::FarFuture(TIME_MAX + 1)));
        assert_eq!(called.advance(TIME_MAX + 1), Err(IngestError::FarFuture(TIME_MAX + 1)));
        assert_eq!((called.advance(TIME_MAX), called.position()), (Ok(()), TIME_MAX));
        let mut moved = sketch(Clock::Events, Noise::off());
        assert_eq!((moved.add_at(TIME_MAX, 1), moved.position()), (Ok(()), TIME_MAX - 10));
    }

    #[test]
    fn a_failed_seal_says_how_many_events_were_taken() {
        let mut sketch = sketch(Clock::Events, Noise::failing());
        let error = sketch.extend(Batch::integers(&[1; 4]).at(&[1000, 1001, 1002, 1030]));
        assert!(matches!(error, Err(IngestError::Entropy { accepted: 3, .. })), "{error:?}");
    }

    #[test]
    fn a_run_ends_with_its_segment_or_where_the_clock_would_pass_a_boundary() {
        let mut called = sketch(Clock::Caller, Noise::off());
        called.advance(1000).expect("a clock");
        assert_eq!(called.run_len(&[1003, 1000, 1019, 1020, 1001]), 3);
        assert_eq!(called.run_len(&[1020, 1039, 1040]), 2);
        assert_eq!(called.run_len(&[999, 999]), 1);
        let mut moved = sketch(Clock::Events, Noise::off());
        moved.add_at(1015, 1).expect("in time");
        assert_eq!(moved.run_len(&[1020, 1029, 1030, 1031]), 2);
        let mut early = sketch(Clock::Caller, Noise::off());
        early.advance(20).expect("a clock");
        assert_eq!(early.run_len(&[25, 40]), 1);
    }

    #[test]
    fn a_stream_that_follows_its_events_begins_with_the_earliest_of_them() {
        let mut sketch = sketch(Clock::Events, Noise::off());
        for (time, start) in [(15, 5), (3, 3), (4, 3), (30, 3)] {
            sketch.add_at(time, 1).expect("in time");
            assert_eq!(sketch.time.start, Some(start), "after {time}");
        }
    }
}
