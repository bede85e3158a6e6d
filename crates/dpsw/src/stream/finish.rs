//! The end of a stream: what is open is sealed once, and nothing is left to predict.

use thiserror::Error;

use crate::error::{EntropyError, IngestError};
use crate::noise::generator::Generator;
use crate::plan::settings::{Clock, TimeWindow};
use crate::plan::structure::Plan;
use crate::stream::sketch::DpswSketch;
use crate::view::window_view::WindowView;

/// A stream that could not be finished. Nothing was released: the stream is as it was, and can go on or be finished later.
#[derive(Debug, Error)]
#[non_exhaustive]
#[error("the stream cannot be finished")]
pub struct FinishError {
    /// The stream.
    pub sketch: Box<DpswSketch>,
    /// Why.
    pub source: IngestError,
}

impl DpswSketch {
    /// An empty sketch of a stream that will have so many items, if its window counts items: it begins inside the first
    /// substream, so that it is over at the end of one, and no window that ends there is cut by more than a few items. Positions
    /// begin there too. How many items there are must be public.
    ///
    /// ```
    /// use dpsw::plan::Request;
    /// use dpsw::{Batch, DpswSketch, Settings};
    ///
    /// let items = ["/", "/cart", "/"].repeat(1000); // all that there is
    /// let settings = Settings::last_items(2000, 1.0)?.with_keys(["/", "/cart"]);
    /// let plan = Request::new(settings).for_last_window().plan()?;
    /// let mut sketch = DpswSketch::ending_after(plan, items.len() as u64)?;
    /// sketch.extend(Batch::text(&items))?;
    /// let view = sketch.finish()?;
    /// println!("{}", view.frequency("/")?); // 1,333 ± 9 or so
    /// # assert!((view.frequency("/")?.value - 1333.0).abs() < 100.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn ending_after(plan: impl Into<Plan>, items: u64) -> Result<Self, EntropyError> {
        Self::new(plan)?.begun_for(items)
    }

    pub(crate) fn begun_for(mut self, items: u64) -> Result<Self, EntropyError> {
        let len = self.plan.substream_len();
        if self.plan.settings().window.time().is_none() {
            // Where it begins follows from the number of items, which the caller says is public.
            self.pass_over((len - items % len) % len)?;
            self.time.start = Some(self.time.now);
            planted!(fault::begun_inside());
        }
        Ok(self)
    }

    /// Goes on to a position in the first substream, before which there is nothing.
    fn pass_over(&mut self, position: u64) -> Result<(), EntropyError> {
        while self.time.now < position {
            let next = self.next_boundary().min(position);
            self.pass_positions(next - self.time.now)?;
        }
        Ok(())
    }

    /// Ends a stream that is over: everything up to its end is sealed, once and with full noise, and the view answers the
    /// last window without predicting any of it.
    ///
    /// The end is fixed by plan and clock, never by what is open: the position of a count window; the watermark of the
    /// caller's clock, which is advanced to the end before ([`advance`](Self::advance)); with the clock of the events just
    /// after the newest one. What lies ahead of the caller's clock counts only if it shares a segment with the end.
    ///
    /// ```
    /// use dpsw::{Batch, DpswSketch, Settings};
    ///
    /// let settings = Settings::last_items(1_000_000, 1.0)?.with_keys(["/", "/cart"]);
    /// let mut sketch = DpswSketch::new(settings.plan()?)?;
    /// sketch.extend(Batch::text(&["/", "/cart", "/"]))?; // far less than a substream
    /// let view = sketch.finish()?;
    /// println!("{}", view.frequency("/")?); // 2 ± 6 or so
    /// # assert_eq!(view.covered(), 0..3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The stream does not go on. States that it was saved in were consumed when it was restored; to
    /// [`resume`](Self::resume) one of them, start at or after [`WindowView::finished`]. What is left of the last substream
    /// counts nowhere.
    ///
    /// # Errors
    /// The sketch belongs to another process, or the system gives no randomness. Nothing was released then, and the error
    /// gives the sketch back.
    pub fn finish(mut self) -> Result<WindowView, FinishError> {
        match self.last_generators() {
            Ok(generators) => Ok(self.seal_all(generators)),
            Err(source) => Err(FinishError { sketch: Box::new(self), source }),
        }
    }

    /// Where a stream that is over ends.
    fn end_position(&self) -> u64 {
        // Plan and clock alone: how many substreams are open depends on events (PRIVACY.md: rule 34).
        let end = match self.plan.settings().window.time() {
            Some(TimeWindow { clock: Clock::Events, lateness, .. }) if self.time.start.is_some() => {
                // The watermark lags behind the newest event by the lateness; the end lies just after that event.
                self.time.now + lateness + 1
            }
            _ => self.time.now,
        };
        planted!(let end = fault::end(end, (self.number + self.open.len() as u64) * self.plan.substream_len()));
        end
    }

    /// Enough generators for all that is left to seal. They are drawn before anything is sealed, so that all of it is
    /// or nothing.
    fn last_generators(&mut self) -> Result<Vec<Generator>, IngestError> {
        self.check_owner()?;
        let substreams = self.end_position().div_ceil(self.plan.substream_len()).saturating_sub(self.number);
        // For each substream its ranges and a check of the keys, and one check more at the end.
        let seals_max = substreams * (self.plan.ranges().len() as u64 + 1) + 1;
        let generators = (0..seals_max).map(|_| self.draw_generator()).collect::<Result<_, _>>();
        generators.map_err(|source| IngestError::Entropy { accepted: 0, source })
    }

    fn seal_all(mut self, generators: Vec<Generator>) -> WindowView {
        let end = self.end_position();
        let mut generators = generators.into_iter();
        while self.next_boundary() <= end {
            self.time.now = self.time.now.max(self.next_boundary());
            self.seal_segment(&mut generators);
        }
        self.time.now = end;
        // Also if nothing fell into it (PRIVACY.md: rule 34).
        if self.number * self.plan.substream_len() < end {
            self.seal_short(&mut generators);
        } else if self.is_unseen() {
            self.check_keys_at_end(&mut generators);
        }
        planted!(fault::finished(&mut self.cached));
        self.view().into_finished()
    }

    /// Whether the running search was not looked at when its newest substream was sealed: a summary waits for its end.
    fn is_unseen(&self) -> bool {
        let (search_plan, newest) = (self.plan.search_plan(), self.number.checked_sub(1));
        search_plan.zip(newest).is_some_and(|(search_plan, newest)| !search_plan.checks_at(newest))
    }

    /// Looks for keys once more, as at the end of the search.
    fn check_keys_at_end(&mut self, generators: &mut impl Iterator<Item = Generator>) {
        let found = self.find_keys(generators.next().expect("one more was drawn than there are seals"));
        self.list_found(&found);
    }

    /// Seals the substream in which the stream is over, and looks for keys as at its own end: no search has a check more.
    fn seal_short(&mut self, generators: &mut impl Iterator<Item = Generator>) {
        let of_keys = self.plan.search_plan().is_some();
        let of_keys = of_keys.then(|| generators.next().expect("as many were drawn as there are seals"));
        // What is left of the substream counts nowhere (PRIVACY.md: rule 34).
        let len = self.time.now - self.number * self.plan.substream_len();
        let open = self.open.front_mut().expect("a substream is always open");
        let sealed = open.seal_short(&self.plan, &self.levels, len, generators);
        let found = of_keys.map(|generator| self.find_keys(generator));
        self.release_sealed(sealed, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::batch::Batch;
    use crate::item::domain::{Domain, SearchCounts, SearchSettings};
    use crate::item::hash::StreamKey;
    use crate::item::keys::Keys;
    use crate::item::value::Kind;
    use crate::noise::generator::Noise;
    use crate::plan::range::WHOLE;
    use crate::plan::settings::{CounterLayout, Method, PaperMethod, Settings, TunedMethod, Unit, Window};
    use crate::privacy::parameters::{Delta, Epsilon};

    fn key() -> StreamKey {
        StreamKey::from_bytes([7; 32])
    }

    fn methods() -> [Method; 2] {
        let counters = CounterLayout::Identity;
        [
            TunedMethod { substreams: 10, counters, ..TunedMethod::default() }.into(),
            PaperMethod { counters, ..PaperMethod::default() }.into(),
        ]
    }

    /// Events from 1000 to 1134, in substreams of 10 ticks, of which those up to 25 ticks late are waited for.
    fn sketch(method: Method, noise: Noise) -> DpswSketch {
        let time = TimeWindow { len: 100, lateness: 25, clock: Clock::Events, expected_items: 100 };
        let settings = Settings {
            window: Window::Time(time),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(1.0).expect("in range"),
            delta: Delta::new(1e-9).ok(),
            domain: Domain::Public(Keys::Range(4)),
            method: Some(method),
            retention: 1,
        };
        let plan = Plan::new(settings).expect("a valid plan");
        let mut sketch = DpswSketch::with_key(plan, key(), noise);
        let times: Vec<u64> = (1000..1135).collect();
        let items: Vec<u64> = times.iter().map(|time| time % 3).collect();
        sketch.extend(Batch::integers(&items).at(&times)).expect("in order");
        sketch
    }

    #[test]
    fn a_draw_that_fails_releases_nothing_and_gives_the_stream_back() {
        for method in methods() {
            let wanted = sketch(method.clone(), Noise::off()).finish().expect("noise is off");
            let seals = wanted.sealed().count();
            for draws in 0..4 {
                let mut running = sketch(method.clone(), Noise::off());
                let before = running.view().to_bytes();
                running.set_noise(Noise::failing_after(draws));
                let error = running.finish().expect_err("no randomness");
                assert_eq!(error.to_string(), "the stream cannot be finished");
                let mut running = *error.sketch;
                assert_eq!(running.view().to_bytes(), before, "after {draws} draws");
                running.set_noise(Noise::off());
                let finished = running.finish().expect("randomness is back");
                assert_eq!((finished.to_bytes(), finished.sealed().count()), (wanted.to_bytes(), seals));
            }
        }
    }

    #[test]
    fn a_sketch_in_another_process_finishes_nothing() {
        let [method, _] = methods();
        let forked = sketch(method, Noise::off()).owned_by(std::process::id() + 1);
        let error = forked.finish().expect_err("another process");
        assert!(matches!(error.source, IngestError::Forked { .. }), "{:?}", error.source);
    }

    #[test]
    fn events_ahead_of_the_end_count_nowhere_also_if_they_are_just_ahead() {
        let [_, paper] = methods();
        let mut settings = sketch(paper, Noise::off()).plan().settings().clone();
        settings.window =
            Window::Time(TimeWindow { len: 100, lateness: 0, clock: Clock::Caller, expected_items: 100 });
        let plan = Plan::new(settings).expect("a valid plan");
        for &end in &plan.boundaries()[..plan.boundaries().len() - 1] {
            let mut sketch = DpswSketch::with_key(plan.clone(), key(), Noise::off());
            sketch.advance(1000).expect("a clock");
            // The last before the end, the first after it, and the last of the substream, which is ten long.
            let times = [1000 + end - 1, 1000 + end, 1009];
            assert_eq!(sketch.extend(Batch::integers(&[1; 3]).at(&times)).expect("open").counted, 3);
            sketch.advance(1000 + end).expect("a clock");
            let finished = sketch.finish().expect("noise is off");
            let whole = finished.sealed().find(|sealed| sealed.range() == WHOLE).expect("sealed short");
            assert_eq!(whole.sketch().total(), 1, "an end after {end} ticks");
        }
    }

    /// Substreams of ten items. A summary is looked at when its search of three ends, and when the stream is over.
    #[test]
    fn a_summary_is_looked_at_when_the_stream_is_over_wherever_that_is() {
        let counting = SearchCounts::Summary { keys: 1000 };
        let search_plan =
            SearchSettings { counting, search_len: Some(3), ..SearchSettings::new(Kind::Integers) };
        let counters = CounterLayout::Hashed { rows: 2, columns: 32 };
        let method = TunedMethod { substreams: 5, counters, ..TunedMethod::default() };
        let settings = Settings::last_items(50, 30.0).expect("in range").with_method(method);
        let settings = settings.with_domain(Domain::Found(search_plan)).with_delta(1e-9).expect("in range");
        for items in [19, 20, 21, 30, 45, 50] {
            let noise = Noise::off();
            let mut sketch = DpswSketch::with_key(settings.clone().plan().expect("a plan"), key(), noise);
            sketch.extend(Batch::integers(&vec![7; items])).expect("valid items");
            let list = sketch.finish().expect("noise is off").top(1).expect("keys are found").all().count();
            assert_eq!(list, 1, "after {items} items");
        }
    }

    /// Windows of 120 items in substreams of 24, or with three levels of 24 in slices of six.
    #[test]
    fn a_stream_whose_length_is_known_is_over_at_the_end_of_a_substream() {
        for (items, levels) in [(500_u64, 1), (480, 1), (481, 3), (500, 3), (70, 3), (1, 1)] {
            let counters = CounterLayout::Identity;
            let method = TunedMethod { substreams: 5, counters, levels, ..TunedMethod::default() };
            let settings = Settings::last_items(120, 1.0).expect("in range").with_keys(0..600);
            let plan = settings.with_method(method).plan().expect("a plan");
            assert_eq!(plan.substream_len(), 24);
            let mut sketch =
                DpswSketch::with_key(plan, key(), Noise::off()).begun_for(items).expect("noise is off");
            sketch.extend(Batch::integers(&(0..items).collect::<Vec<_>>())).expect("valid items");
            let view = sketch.finish().expect("noise is off");
            let view = WindowView::from_bytes(&view.to_bytes()).expect("a view");
            let (began, end) = (view.began(), view.window().end);
            assert_eq!((end % 24, end - began), (0, items), "{items} items");
            assert_eq!((view.covered(), view.window().start), (view.window(), began.max(end - 120.min(end))));
            // Each item is there once, and all that are left of the window are counted exactly.
            for item in 0..items {
                let estimate = view.frequency(item).expect("a key");
                let is_inside = items.saturating_sub(120) <= item;
                assert_eq!(estimate.value, f64::from(u8::from(is_inside)), "{item} of {items}");
                assert_eq!(estimate.deviations.expect("tuned").misfit, 0.0);
            }
        }
    }
}
