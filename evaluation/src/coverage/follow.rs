//! A sketch that follows arrivals from position to position.

use anyhow::{Result, ensure};
use dpsw::{Batch, DpswSketch, Noise, Plan, WindowView};

use super::arrivals::Arrivals;

/// A sketch that follows arrivals.
#[derive(Debug)]
pub struct Follower<'a> {
    sketch: DpswSketch,
    arrivals: &'a Arrivals,
    position: u64,
}

impl<'a> Follower<'a> {
    /// Before the first item; all noise comes from the seed.
    pub fn new(plan: Plan, arrivals: &'a Arrivals, seed: u64) -> Result<Self> {
        Ok(Self { sketch: DpswSketch::with_noise(plan, Noise::seeded(seed))?, arrivals, position: 0 })
    }

    /// Takes everything before a position.
    pub fn advance(&mut self, position: u64) -> Result<()> {
        if self.arrivals.times().is_none() {
            return self.take_before(position);
        }
        // The clock enters a substream before its events come, so that none is early.
        let len = self.sketch.plan().substream_len();
        while self.position < position {
            self.sketch.advance(self.position)?;
            self.take_before(position.min((self.position / len + 1) * len))?;
        }
        Ok(self.sketch.advance(position)?)
    }

    fn take_before(&mut self, position: u64) -> Result<()> {
        let range = self.arrivals.before(self.position)..self.arrivals.before(position);
        let batch = Batch::integers(&self.arrivals.items()[range.clone()]);
        let len = range.len();
        let taken = match self.arrivals.times() {
            None => self.sketch.extend(batch)?,
            Some(times) => self.sketch.extend(batch.at(&times[range]))?,
        };
        ensure!(taken.counted == len, "{} of {len} items were late or early", len - taken.counted);
        self.position = position;
        Ok(())
    }

    /// What can be asked now.
    pub fn view(&self) -> WindowView {
        self.sketch.view()
    }
}

#[cfg(test)]
mod tests {
    use dpsw::plan::TunedMethod;
    use dpsw::{Settings, Window};

    use super::*;
    use crate::coverage::{Made, Occurrences};

    #[track_caller]
    fn check(window: Window, arrivals: &Arrivals) {
        // The noise of so large a budget is 0 but for one draw in e^5000.
        let method = TunedMethod {
            substreams: 10,
            counters: dpsw::plan::CounterLayout::Identity,
            ..TunedMethod::default()
        };
        let settings = Settings::new(window, 10_000.0).expect("a budget");
        let plan = settings.with_keys(0..arrivals.keys() as u64).with_method(method).plan().expect("a plan");
        let truth = Occurrences::of(arrivals);
        let mut follower = Follower::new(plan, arrivals, 1).expect("seeded");
        for position in [1_000, 1_250, 2_700] {
            follower.advance(position).expect("nothing is late or early");
            let sealed = position / 100 * 100;
            let view = follower.view().last(500).and_then(|view| view.as_of(sealed)).expect("retained");
            for item in 0..20 {
                let estimate = view.frequency(item).expect("a key").value.round() as u64;
                assert_eq!(estimate, truth.count(item, &view.window()), "item {item} up to {sealed}");
            }
        }
    }

    #[test]
    fn everything_before_a_position_is_counted_once() {
        for made in Made::ALL {
            check(made.window(1_000), &made.arrivals(1_000, 100, 3));
        }
    }
}
